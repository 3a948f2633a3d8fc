//! WebSocket frames on blocking streams.

use std::io::{self, ErrorKind, Read};

pub const CONTINUATION: u8 = 0;
pub const TEXT: u8 = 1;
pub const BINARY: u8 = 2;
pub const CLOSE: u8 = 8;
pub const PING: u8 = 9;
pub const PONG: u8 = 10;

pub struct Frame {
    pub last: bool,
    pub opcode: u8,
    pub payload: Vec<u8>,
}

/// Reads a client's frame. An error of kind `InvalidData` is the client's
/// fault, one of kind `FileTooLarge` a payload longer than `max`.
pub fn read(stream: &mut impl Read, max: usize) -> io::Result<Frame> {
    let [first, second] = take(stream)?;
    let length = match second & 0x7f {
        126 => u64::from(u16::from_be_bytes(take(stream)?)),
        127 => u64::from_be_bytes(take(stream)?),
        short => u64::from(short),
    };
    if first & 0x70 != 0 || second & 0x80 == 0 {
        return Err(ErrorKind::InvalidData.into());
    }
    let length = usize::try_from(length)
        .ok()
        .filter(|&length| length <= max)
        .ok_or(ErrorKind::FileTooLarge)?;
    let mask: [u8; 4] = take(stream)?;
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload)?;
    for (index, byte) in payload.iter_mut().enumerate() {
        *byte ^= mask[index % 4];
    }
    Ok(Frame {
        last: first & 0x80 != 0,
        opcode: first & 0x0f,
        payload,
    })
}

/// A server's whole frame.
pub fn build(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(payload.len() + 10);
    frame.push(0x80 | opcode);
    match payload.len() {
        short @ 0..=125 => frame.push(short as u8),
        medium @ 126..=0xffff => {
            frame.push(126);
            frame.extend((medium as u16).to_be_bytes());
        }
        long => {
            frame.push(127);
            frame.extend((long as u64).to_be_bytes());
        }
    }
    frame.extend(payload);
    frame
}

fn take<const N: usize>(stream: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}
