//! Frames, written and read by the examiner's own code, so that a mistake of the
//! load engine cannot hide one of the server.

use super::super::case::{Outcome, Wrong};

pub const CONTINUATION: u8 = 0;
pub const TEXT: u8 = 1;
pub const BINARY: u8 = 2;
pub const CLOSE: u8 = 8;
pub const PING: u8 = 9;
pub const PONG: u8 = 10;

/// The bits of a frame's first byte beside the opcode.
pub const FIN: u8 = 0x80;

/// A frame of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub fin: bool,
    pub opcode: u8,
    pub payload: Vec<u8>,
}

impl Frame {
    /// In words, without its bytes.
    pub fn describe(&self) -> String {
        let length = self.payload.len();
        let fragment = if self.fin { "" } else { ", a fragment" };
        match self.opcode {
            CONTINUATION => format!("a continuation frame of {length} bytes"),
            TEXT => format!("a text message of {length} bytes{fragment}"),
            BINARY => format!("a binary message of {length} bytes{fragment}"),
            CLOSE => describe_close(&self.payload),
            PING => format!("a ping of {length} bytes"),
            PONG => format!("a pong of {length} bytes"),
            opcode => format!("a frame with the reserved opcode {opcode}"),
        }
    }

    /// Status code of a close frame.
    pub fn code(&self) -> Option<u16> {
        let [high, low, ..] = self.payload[..] else {
            return None;
        };
        (self.opcode == CLOSE).then(|| u16::from_be_bytes([high, low]))
    }
}

/// The first frame of the bytes and its whole length; `None` if there is more to come.
/// One that claims to be longer than `most_bytes` is wrong at once.
pub fn parse(bytes: &[u8], most_bytes: u64) -> Outcome<Option<(Frame, usize)>> {
    let [first, second, rest @ ..] = bytes else {
        return Ok(None);
    };
    if first & 0x70 != 0 {
        let seen = format!("a frame with reserved bits set (first byte {first:#04x})");
        return Err(Wrong::new(seen));
    }
    if second & 0x80 != 0 {
        let seen = "a masked frame, which a server must not send";
        return Err(Wrong::new(seen));
    }
    let (fin, opcode) = (first & FIN != 0, first & 0x0f);
    let extended = match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let Some((length, rest)) = rest.split_at_checked(extended) else {
        return Ok(None);
    };
    let length = match extended {
        0 => u64::from(second & 0x7f),
        _ => length
            .iter()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
    };
    let shortest = match length {
        0..=125 => 0,
        126..=0xffff => 2,
        _ => 8,
    };
    if extended != shortest {
        let seen = format!("a length of {length} written in {extended} bytes");
        return Err(Wrong::new(seen));
    }
    if opcode >= 8 && (length > 125 || !fin) {
        let seen = "a control frame in fragments or longer than 125 bytes";
        return Err(Wrong::new(seen));
    }
    if length > most_bytes {
        let seen = format!("a frame that claims to be {length} bytes long");
        return Err(Wrong::new(seen));
    }
    let Some(payload) = usize::try_from(length)
        .ok()
        .and_then(|length| rest.get(..length))
    else {
        return Ok(None);
    };
    let whole = 2 + extended + payload.len();
    let payload = payload.to_vec();
    Ok(Some((
        Frame {
            fin,
            opcode,
            payload,
        },
        whole,
    )))
}

fn describe_close(payload: &[u8]) -> String {
    match payload {
        [high, low, reason @ ..] => {
            let code = u16::from_be_bytes([*high, *low]);
            let reason: String = String::from_utf8_lossy(reason).chars().take(80).collect();
            format!("a close frame ({code} {reason})").replace(" )", ")")
        }
        [_] => "a close frame with a body of 1 byte".into(),
        [] => "a close frame".into(),
    }
}

/// A client's frame, masked with a random key that has no zero byte, so that a
/// server that does not unmask cannot be right by chance. `first` is its first
/// byte: [`FIN`] or not, and the opcode.
pub fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        #[expect(clippy::cast_possible_truncation, reason = "the pattern says so")]
        short @ 0..=125 => frame.push(0x80 | short as u8),
        #[expect(clippy::cast_possible_truncation, reason = "the pattern says so")]
        medium @ 126..=0xffff => {
            frame.push(0x80 | 126);
            frame.extend((medium as u16).to_be_bytes());
        }
        long => {
            frame.push(0x80 | 127);
            frame.extend((long as u64).to_be_bytes());
        }
    }
    add_masked(&mut frame, payload);
    frame
}

/// Adds a key and the payload under it.
pub fn add_masked(frame: &mut Vec<u8>, payload: &[u8]) {
    let key: [u8; 4] = std::array::from_fn(|_| fastrand::u8(1..));
    frame.extend(key);
    let start = frame.len();
    frame.extend_from_slice(payload);
    let [a, b, c, d] = key;
    let twice = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (blocks, rest) = frame[start..].as_chunks_mut::<8>();
    for block in blocks {
        *block = (u64::from_ne_bytes(*block) ^ twice).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(key.iter().cycle()) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const MOST_BYTES: u64 = 1000;

    proptest! {
        #[test]
        fn what_is_said_of_a_frame_does_not_depend_on_how_much_has_come(
            first in prop_oneof![any::<u8>(), Just(0x81), Just(0x82), Just(0x00), Just(0x89)],
            rest in vec(prop_oneof![any::<u8>(), 0u8..2, 125u8..128], 0..150),
        ) {
            let bytes = [&[first][..], &rest].concat();
            let mut ends = 0..=bytes.len();
            let said = ends.find_map(|end| parse(&bytes[..end], MOST_BYTES).transpose());
            prop_assert_eq!(parse(&bytes, MOST_BYTES).transpose(), said);
        }
    }

    #[test]
    fn a_masked_frame_is_the_rfcs_but_for_the_key() {
        let frame = masked(FIN | TEXT, b"Hello");
        assert_eq!(frame[..2], [0x81, 0x85]);
        let key = &frame[2..6];
        assert!(key.iter().all(|byte| *byte != 0));
        let plain: Vec<u8> = frame[6..]
            .iter()
            .zip(key.iter().cycle())
            .map(|(a, b)| a ^ b)
            .collect();
        assert_eq!(plain, b"Hello");
        let long = masked(FIN | TEXT, b"Hello, long payload");
        let key = &long[2..6];
        let plain = long[6..].iter().zip(key.iter().cycle());
        let plain: Vec<u8> = plain.map(|(a, b)| a ^ b).collect();
        assert_eq!(plain, b"Hello, long payload");
        assert_eq!(masked(CONTINUATION, &[0; 126])[..4], [0x00, 0xfe, 0, 126]);
        assert_eq!(
            masked(FIN | BINARY, &[0; 65536])[..10],
            [0x82, 0xff, 0, 0, 0, 0, 0, 1, 0, 0]
        );
    }

    fn payload_of(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
        let found = parse(bytes, MOST_BYTES).unwrap();
        found.map(|(frame, length)| (frame.payload, length))
    }

    #[test]
    fn frames_are_read_whole_or_not_at_all() {
        let long = [&[0x82, 126, 0, 200][..], &[7; 200]].concat();
        for cut in 0..long.len() {
            assert_eq!(payload_of(&long[..cut]), None, "{cut}");
        }
        assert_eq!(payload_of(&long), Some((vec![7; 200], 204)));
        assert_eq!(payload_of(&[0x81, 1, b'x', 0x81]), Some((vec![b'x'], 3)));
    }

    #[test]
    fn what_a_server_must_not_send_is_named() {
        for (bytes, seen) in [
            (
                &[0xc1, 0][..],
                "a frame with reserved bits set (first byte 0xc1)",
            ),
            (
                &[0x81, 0x80],
                "a masked frame, which a server must not send",
            ),
            (&[0x81, 126, 0, 5], "a length of 5 written in 2 bytes"),
            (
                &[0x81, 127, 0, 0, 0, 0, 0, 0, 1, 0],
                "a length of 256 written in 8 bytes",
            ),
            (
                &[0x09, 0],
                "a control frame in fragments or longer than 125 bytes",
            ),
            (
                &[0x82, 127, 0xff, 0, 0, 0, 0, 0, 0, 0],
                "a frame that claims to be 18374686479671623680 bytes long",
            ),
            (
                &[0x82, 126, 3, 233],
                "a frame that claims to be 1001 bytes long",
            ),
        ] {
            assert_eq!(parse(bytes, MOST_BYTES), Err(Wrong::new(seen)));
        }
        assert_eq!(describe_close(&[]), "a close frame");
        assert_eq!(describe_close(&[3, 234]), "a close frame (1002)");
        assert_eq!(describe_close(b"\x03\xeano"), "a close frame (1002 no)");
    }
}
