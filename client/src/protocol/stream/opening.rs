//! The first bytes of a stream: what the connection is for. They come back as they
//! were sent, which ends the dial.

use super::ring::Ring;
use crate::cause::Cause;
use crate::protocol::Welcome;
use wsbench_schema::{Direction, Load};

/// `wsb`, and the version of the layout.
const MAGIC: [u8; 4] = *b"wsb\x01";

/// What the other end of a stream does once it has sent the opening back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It sends back whatever comes.
    Echo,
    /// It checks the pieces that come and tells how many bytes were right.
    Sink,
    /// It sends the pieces once it is told to begin.
    Source,
}

impl From<Direction> for Mode {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Both => Mode::Echo,
            Direction::Up => Mode::Sink,
            Direction::Down => Mode::Source,
        }
    }
}

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// What the other end does.
    pub mode: Mode,
    /// Bytes of a message, or of a piece of a transfer.
    pub piece_bytes: u32,
    /// Pieces of the transfer; an echo goes on until the end of the stream.
    pub pieces: u32,
    /// The first message's template, or the first piece's [number](Ring::piece).
    pub first: u32,
}

impl Opening {
    /// Of an opening, each way.
    pub const BYTES: usize = 24;

    /// As it is sent. `nonce` differs for each attempt to open a connection, so
    /// that an answer to another one is noticed; 48 bits of it are in there.
    #[must_use]
    pub fn to_bytes(self, nonce: u64) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let mode = match self.mode {
            Mode::Echo => b'e',
            Mode::Sink => b'u',
            Mode::Source => b'd',
        };
        let nonce = nonce.to_le_bytes();
        let fields: [&[u8]; 6] = [
            &MAGIC,
            &[mode, 0],
            &nonce[..6],
            &self.piece_bytes.to_le_bytes(),
            &self.pieces.to_le_bytes(),
            &self.first.to_le_bytes(),
        ];
        for (byte, value) in bytes.iter_mut().zip(fields.into_iter().flatten()) {
            *byte = *value;
        }
        bytes
    }

    /// Reads what [`Opening::to_bytes`] has written. `None` for anything else.
    #[must_use]
    pub fn parse(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let number = |at: usize| {
            let four = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
            u32::from_le_bytes(four)
        };
        let mode = match bytes[4] {
            b'e' => Mode::Echo,
            b'u' => Mode::Sink,
            b'd' => Mode::Source,
            _ => return None,
        };
        let opening = Self {
            mode,
            piece_bytes: number(12),
            pieces: number(16),
            first: number(20),
        };
        let is_ours = bytes[..4] == MAGIC && bytes[5] == 0;
        let is_possible = (1..=Load::PAYLOAD_MAX_BYTES).contains(&opening.piece_bytes)
            && (mode == Mode::Echo || (opening.pieces > 0 && opening.first < Ring::BYTES));
        (is_ours && is_possible).then_some(opening)
    }

    /// Bytes of the whole transfer.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        u64::from(self.piece_bytes) * u64::from(self.pieces)
    }
}

/// Judges what has come in answer to an opening: the first byte that differs ends it.
#[must_use]
pub fn judge(sent: &[u8; Opening::BYTES], answer: &[u8]) -> Welcome {
    let part = answer.len().min(sent.len());
    if answer[..part] != sent[..part] {
        Welcome::Rejected(Cause::WrongOpening)
    } else if part < sent.len() {
        Welcome::Partial
    } else {
        Welcome::Accepted(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENING: Opening = Opening {
        mode: Mode::Sink,
        piece_bytes: 32_768,
        pieces: 3_000_000_000,
        first: 65_536,
    };

    #[test]
    fn an_opening_reads_back() {
        for mode in [Mode::Echo, Mode::Sink, Mode::Source] {
            let opening = Opening { mode, ..OPENING };
            assert_eq!(Opening::parse(&opening.to_bytes(u64::MAX)), Some(opening));
        }
        assert_eq!(OPENING.total_bytes(), 98_304_000_000_000);
    }

    #[test]
    fn what_nobody_can_mean_is_no_opening() {
        let parse = |opening: Opening| Opening::parse(&opening.to_bytes(1));
        let (none, many) = (0, Load::PAYLOAD_MAX_BYTES + 1);
        for piece_bytes in [none, many] {
            let opening = Opening {
                piece_bytes,
                ..OPENING
            };
            assert_eq!(parse(opening), None);
        }
        assert_eq!(
            parse(Opening {
                pieces: 0,
                ..OPENING
            }),
            None
        );
        let first = Ring::BYTES;
        assert_eq!(parse(Opening { first, ..OPENING }), None);
        for at in 0..6 {
            let mut bytes = OPENING.to_bytes(1);
            bytes[at] ^= 0x80;
            assert_eq!(Opening::parse(&bytes), None, "byte {at}");
        }
    }

    #[test]
    fn an_answer_is_right_as_a_whole_or_wrong_at_its_first_wrong_byte() {
        let sent = OPENING.to_bytes(7);
        for len in 0..sent.len() {
            assert_eq!(judge(&sent, &sent[..len]), Welcome::Partial);
            let mut wrong = sent;
            wrong[len] ^= 1;
            let rejected = Welcome::Rejected(Cause::WrongOpening);
            assert_eq!(judge(&sent, &wrong[..=len]), rejected);
            assert_eq!(judge(&sent, &wrong), rejected);
        }
        let more = [&sent[..], b"more"].concat();
        assert_eq!(judge(&sent, &more), Welcome::Accepted(24));
        let other = OPENING.to_bytes(8);
        assert_eq!(judge(&sent, &other), Welcome::Rejected(Cause::WrongOpening));
    }
}
