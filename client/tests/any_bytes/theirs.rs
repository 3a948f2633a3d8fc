//! What tungstenite makes of a stream.

use std::io::{self, Cursor, Read, Write};
use tungstenite::error::{Error, ProtocolError};
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Message, WebSocket};

/// Beyond every frame of a case that is right.
pub const FRAME_MAX: usize = 128 << 10;

/// With a masking key.
const HEADER_MAX: usize = 14;

/// How a stream ends.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// In order, or in the middle of a frame: more may come.
    Open,
    /// A frame, or its place among the others, is against the rules.
    Broken,
    /// A frame is longer than [`FRAME_MAX`].
    TooLong,
    /// A text message, or the reason of a close frame, is not UTF-8.
    NotUtf8,
}

/// The messages up to a close frame or an error.
pub fn read(stream: &[u8]) -> (Vec<Message>, End) {
    let config = WebSocketConfig::default()
        .read_buffer_size(4 << 10)
        .max_frame_size(Some(FRAME_MAX))
        .max_message_size(None);
    let peer = Peer(Cursor::new(stream));
    let mut socket = WebSocket::from_raw_socket(peer, Role::Client, Some(config));
    let mut messages = Vec::new();
    loop {
        match socket.read() {
            Ok(message) => {
                let closes = message.is_close();
                messages.push(message);
                if closes {
                    return (messages, End::Open);
                }
            }
            Err(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)) => {
                return (messages, End::Open);
            }
            Err(Error::Protocol(_)) => return (messages, End::Broken),
            Err(Error::Capacity(_)) => return (messages, End::TooLong),
            Err(Error::Utf8(_)) => return (messages, End::NotUtf8),
            Err(other) => panic!("no verdict: {other}"),
        }
    }
}

/// Where the first frame begins whose length is not in the shortest form, which
/// RFC 6455 asks for and tungstenite does not look at.
pub fn first_long_form(stream: &[u8]) -> Option<usize> {
    let mut frames = frames(stream);
    frames
        .find(|frame| frame.is_long_form)
        .map(|frame| frame.start)
}

/// The stream with its last frame brought to its end by zeros.
pub fn completed(stream: &[u8]) -> Vec<u8> {
    let mut whole = stream.to_vec();
    // A longer frame is judged by its header alone.
    let most = stream.len() + FRAME_MAX + HEADER_MAX;
    let end = frames(stream).last().map(|frame| frame.end.unwrap_or(most));
    whole.resize(end.map_or(0, |end| end.clamp(stream.len(), most)), 0);
    whole
}

struct Frame {
    start: usize,
    is_long_form: bool,
    /// `None` if it is beyond all memory.
    end: Option<usize>,
}

/// The frames of a stream by their headers alone. Of the last one, missing bytes
/// count as zeros.
fn frames(stream: &[u8]) -> impl Iterator<Item = Frame> {
    let mut next = Some(0);
    std::iter::from_fn(move || {
        let start = next.filter(|start| *start < stream.len())?;
        let mut header = [0; 10];
        let there = &stream[start..stream.len().min(start + header.len())];
        header[..there.len()].copy_from_slice(there);
        let short = header[1] & 0x7F;
        let extended: usize = match short {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let length = match extended {
            0 => u64::from(short),
            _ => header[2..2 + extended]
                .iter()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
        };
        let key = usize::from(header[1] >> 7) * 4;
        let payload = usize::try_from(length).ok();
        next = payload.and_then(|payload| (start + 2 + extended + key).checked_add(payload));
        let least = [0, 126, 65_536][extended.div_ceil(4)];
        Some(Frame {
            start,
            is_long_form: there.len() >= 2 + extended && length < least,
            end: next,
        })
    })
}

struct Peer<'a>(Cursor<&'a [u8]>);

impl Read for Peer<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

/// Takes the answers to pings.
impl Write for Peer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
