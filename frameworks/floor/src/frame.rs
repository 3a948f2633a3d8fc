//! Frames answered where they lie: an answer has no mask and is four bytes
//! shorter, so it always fits in the place of what it answers.

use std::ops::Range;

const FIN: u8 = 0x80;
const MASKED: u8 = 0x80;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
/// No message can be longer, whatever is allowed: lengths are added up.
pub const LONGEST: usize = isize::MAX as usize / 2;
const LONGEST_CONTROL: usize = 125;
/// Unmasked at once; a multiple of the key's length.
const BLOCK: usize = 32;

/// What [`echo`] made of the bytes it was given.
pub struct Echo {
    /// Where the answers lie now.
    pub answers: Range<usize>,
    /// Where the frames that were answered end; what follows is the start of one more.
    pub consumed: usize,
    /// Length in all of that one, as far as its header is here; otherwise 0.
    pub next_frame: usize,
    /// The peer has closed, or broken the protocol: nothing after it is answered.
    pub last: bool,
}

/// One client frame: its kind and where its parts lie.
struct Frame {
    opcode: u8,
    key: [u8; 4],
    payload: Range<usize>,
}

enum Parsed {
    Frame(Frame),
    /// Its payload ends behind what is here.
    Cut(Frame),
    Incomplete,
    Refused,
}

/// Answers every whole frame in `bytes` from `start` on, and lays the answers one
/// behind the other. Of the first one's payload, `unmasked` bytes are so already.
pub fn echo(bytes: &mut [u8], start: usize, mut unmasked: usize, max_message: usize) -> Echo {
    let mut echo = Echo {
        answers: 0..0,
        consumed: start,
        next_frame: 0,
        last: false,
    };
    while !echo.last {
        let frame = match parse(bytes, echo.consumed, max_message) {
            Parsed::Frame(frame) => frame,
            Parsed::Cut(frame) => {
                echo.next_frame = frame.payload.end - echo.consumed;
                break;
            }
            Parsed::Incomplete => break,
            Parsed::Refused => {
                echo.last = true;
                break;
            }
        };
        echo.consumed = frame.payload.end;
        echo.last = frame.opcode == CLOSE;
        let masked = frame.payload.start + std::mem::take(&mut unmasked)..frame.payload.end;
        if frame.opcode == PONG {
            continue;
        }
        let length = frame.payload.len();
        unmask(&mut bytes[masked], frame.key);
        let (header, header_length) = header(frame.opcode, length);
        if echo.answers.is_empty() {
            // The first answer needs no move: its header goes right before its payload.
            let start = frame.payload.start - header_length;
            echo.answers = start..start;
        }
        let start = echo.answers.end;
        bytes[start..start + header_length].copy_from_slice(&header[..header_length]);
        let start = start + header_length;
        if start != frame.payload.start {
            bytes.copy_within(frame.payload, start);
        }
        echo.answers.end = start + length;
    }
    echo
}

fn parse(bytes: &[u8], start: usize, max_message: usize) -> Parsed {
    let Some([first, second, rest @ ..]) = bytes.get(start..) else {
        return Parsed::Incomplete;
    };
    let (length, header_length) = match second & !MASKED {
        126 => match rest.first_chunk() {
            Some(length) => (u64::from(u16::from_be_bytes(*length)), 8),
            None => return Parsed::Incomplete,
        },
        127 => match rest.first_chunk() {
            Some(length) => (u64::from_be_bytes(*length), 14),
            None => return Parsed::Incomplete,
        },
        length => (u64::from(length), 6),
    };
    let Ok(length) = usize::try_from(length) else {
        return Parsed::Refused;
    };
    let opcode = first & !FIN;
    let longest = match opcode {
        TEXT | BINARY => max_message,
        CLOSE | PING | PONG => LONGEST_CONTROL,
        _ => return Parsed::Refused,
    };
    if first & FIN == 0 || second & MASKED == 0 || length > longest {
        return Parsed::Refused;
    }
    let payload = start + header_length..start + header_length + length;
    let key = bytes.get(..payload.start).and_then(<[u8]>::last_chunk);
    let Some(&key) = key else {
        return Parsed::Incomplete;
    };
    let cut = payload.end > bytes.len();
    let frame = Frame {
        opcode,
        key,
        payload,
    };
    if cut {
        Parsed::Cut(frame)
    } else {
        Parsed::Frame(frame)
    }
}

/// Unmasks what is here of the payload of the frame that `bytes` is the start of,
/// but for what is `unmasked` already. Returns how much is unmasked now.
pub fn unmask_cut(bytes: &mut [u8], unmasked: usize) -> usize {
    // What it may be as a message was looked at when the frame's start was.
    let Parsed::Cut(frame) = parse(bytes, 0, LONGEST) else {
        return unmasked;
    };
    let here = &mut bytes[frame.payload.start..];
    // Whole blocks, so that the key starts anew with what is left.
    let end = here.len() / BLOCK * BLOCK;
    unmask(&mut here[unmasked..end], frame.key);
    end
}

fn header(opcode: u8, length: usize) -> ([u8; 10], usize) {
    let mut header = [0; 10];
    header[0] = FIN | if opcode == PING { PONG } else { opcode };
    if length <= 125 {
        header[1] = length as u8;
        (header, 2)
    } else if let Ok(length) = u16::try_from(length) {
        header[1] = 126;
        header[2..4].copy_from_slice(&length.to_be_bytes());
        (header, 4)
    } else {
        header[1] = 127;
        header[2..].copy_from_slice(&(length as u64).to_be_bytes());
        (header, 10)
    }
}

/// A block at a time, which the compiler turns into vector instructions.
fn unmask(payload: &mut [u8], key: [u8; 4]) {
    let word = u64::from_ne_bytes([
        key[0], key[1], key[2], key[3], key[0], key[1], key[2], key[3],
    ]);
    let (blocks, rest) = payload.as_chunks_mut::<BLOCK>();
    for block in blocks {
        for bytes in block.as_chunks_mut::<8>().0 {
            *bytes = (u64::from_ne_bytes(*bytes) ^ word).to_ne_bytes();
        }
    }
    for (byte, key) in rest.iter_mut().zip(key.iter().cycle()) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 4] = [0x5a, 0x01, 0xff, 0x80];

    fn client_frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let (header, length) = header(first & 0x0f, payload.len());
        let mut frame = header[..length].to_vec();
        frame[0] = first;
        frame[1] |= MASKED;
        frame.extend(KEY);
        frame.extend(
            payload
                .iter()
                .zip(KEY.iter().cycle())
                .map(|(byte, key)| byte ^ key),
        );
        frame
    }

    fn server_frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let (header, length) = header(first & 0x0f, payload.len());
        let mut frame = header[..length].to_vec();
        frame[0] = first;
        frame.extend(payload);
        frame
    }

    fn payload(length: usize) -> Vec<u8> {
        (0..length)
            .map(|index| (index * 7 + index / 251) as u8)
            .collect()
    }

    #[test]
    fn every_length_around_a_boundary_is_answered() {
        for length in [
            0, 1, 3, 4, 31, 32, 33, 125, 126, 127, 65_535, 65_536, 100_001,
        ] {
            let mut bytes = client_frame(FIN | BINARY, &payload(length));
            let whole = bytes.len();
            let echo = echo(&mut bytes, 0, 0, 1 << 20);
            assert_eq!((echo.consumed, echo.last), (whole, false), "{length} bytes");
            assert_eq!(
                bytes[echo.answers],
                server_frame(FIN | BINARY, &payload(length)),
                "{length} bytes"
            );
        }
    }

    #[test]
    fn frames_of_one_read_are_answered_in_one_piece_and_the_cut_one_is_left() {
        let lengths = [5, 0, 300, 125, 70_000, 1];
        let mut bytes: Vec<u8> = lengths
            .iter()
            .flat_map(|&length| client_frame(FIN | TEXT, &payload(length)))
            .collect();
        let whole = bytes.len();
        let cut = client_frame(FIN | TEXT, &payload(200));
        bytes.extend(&cut[..100]);
        let echo = echo(&mut bytes, 0, 0, 1 << 20);
        let answers: Vec<u8> = lengths
            .iter()
            .flat_map(|&length| server_frame(FIN | TEXT, &payload(length)))
            .collect();
        assert!(bytes[echo.answers] == answers);
        assert_eq!((echo.consumed, echo.next_frame), (whole, cut.len()));
        assert!(bytes[whole..] == cut[..100]);
    }

    #[test]
    fn a_frame_cut_anywhere_waits() {
        let whole = client_frame(FIN | BINARY, &payload(300));
        for cut in 0..whole.len() {
            let mut bytes = whole[..cut].to_vec();
            let echo = echo(&mut bytes, 0, 0, 1 << 20);
            assert_eq!(
                (echo.consumed, echo.answers.len(), echo.last),
                (0, 0, false),
                "cut at {cut}"
            );
            assert!(bytes == whole[..cut], "cut at {cut}");
        }
    }

    #[test]
    fn a_close_is_answered_and_nothing_after_it() {
        let mut bytes = client_frame(FIN | CLOSE, &1000_u16.to_be_bytes());
        bytes.extend(client_frame(FIN | TEXT, b"late"));
        let echo = echo(&mut bytes, 0, 0, 1 << 20);
        assert!(echo.last);
        assert_eq!(
            bytes[echo.answers],
            server_frame(FIN | CLOSE, &1000_u16.to_be_bytes())
        );
    }

    #[test]
    fn a_ping_is_answered_and_a_pong_is_not() {
        let mut bytes = client_frame(FIN | PONG, b"unasked");
        bytes.extend(client_frame(FIN | PING, b"there?"));
        let echo = echo(&mut bytes, 0, 0, 1 << 20);
        assert_eq!(bytes[echo.answers], server_frame(FIN | PONG, b"there?"));
    }

    #[test]
    fn what_it_does_not_do_ends_the_connection() {
        let refused = |mut bytes: Vec<u8>| {
            let echo = echo(&mut bytes, 0, 0, 1000);
            echo.last && echo.answers.is_empty()
        };
        assert!(refused(client_frame(TEXT, b"a fragment")));
        assert!(refused(client_frame(FIN, b"a continuation")));
        assert!(refused(client_frame(FIN | 0x40 | TEXT, b"compressed")));
        assert!(refused(server_frame(FIN | TEXT, b"unmasked")));
        assert!(refused(client_frame(FIN | BINARY, &payload(1001))));
        assert!(refused(client_frame(FIN | PING, &payload(126))));
        assert!(!refused(client_frame(FIN | BINARY, &payload(1000))));
    }

    #[test]
    fn a_frame_unmasked_as_it_comes_is_answered_the_same() {
        for length in [0, 31, 32, 33, 64, 300, 70_000] {
            let whole = client_frame(FIN | BINARY, &payload(length));
            for step in [1, 31, 32, 45, 1000].map(|step: usize| step.max(length / 50)) {
                let (mut bytes, mut unmasked) = (Vec::new(), 0);
                for piece in whole[..whole.len() - 1].chunks(step) {
                    bytes.extend(piece);
                    unmasked = unmask_cut(&mut bytes, unmasked);
                }
                bytes.extend(whole.last());
                let echo = echo(&mut bytes, 0, unmasked, 1 << 20);
                assert!(
                    bytes[echo.answers] == server_frame(FIN | BINARY, &payload(length)),
                    "{length} bytes by {step}"
                );
            }
        }
    }
}
