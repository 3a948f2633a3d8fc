//! What a case sent and received, on all of its connections together: a server
//! that sends without end is wrong as soon as that is known.

use super::super::case::{Outcome, Wrong};
use super::super::sent::Sent;
use std::cell::{Cell, RefCell};

/// What a server may send beyond what it was asked for.
const UNASKED_MOST_BYTES: u64 = 1 << 20;
/// The head of an answer to a handshake.
const HEAD_MAX_BYTES: u64 = super::HEAD_MAX_BYTES as u64;
/// An echo in fragments of two bytes is twice as long as what was sent.
const FRAMED_MOST: u64 = 2;
/// Pings, beyond one with each other frame.
const PINGS_MOST: u64 = 100;
/// Longest control frame.
const CONTROL_MOST_BYTES: u64 = 125;

/// Sums over one case.
#[derive(Debug, Default)]
pub struct Account {
    /// On its last connection, for the finding.
    pub sent: RefCell<Sent>,
    /// That an echo may bring back: all that was sent but pongs.
    asked_bytes: Cell<u64>,
    handshakes: Cell<u64>,
    received_bytes: Cell<u64>,
    pings: Cell<u64>,
    frames: Cell<u64>,
}

impl Account {
    /// A connection was opened, on which a handshake may be answered.
    pub fn opened(&self) {
        self.handshakes.update(|count| count + 1);
    }

    /// Bytes were sent that may come back.
    pub fn asked(&self, bytes: usize) {
        self.asked_bytes.update(|sum| sum + bytes as u64);
    }

    /// Bytes came.
    pub fn received(&self, bytes: usize) {
        self.received_bytes.update(|sum| sum + bytes as u64);
    }

    /// Wrong if more came than any right server sends.
    pub fn check(&self) -> Outcome {
        let heads = HEAD_MAX_BYTES * self.handshakes.get();
        let asked = FRAMED_MOST * self.asked_bytes.get() + heads;
        let unasked = self.received_bytes.get().saturating_sub(asked);
        match unasked > UNASKED_MOST_BYTES {
            true => Err(Wrong::new(format!(
                "more than {UNASKED_MOST_BYTES} bytes that nobody asked for"
            ))),
            false => Ok(()),
        }
    }

    /// Longest frame that can be right: no echo is longer than what was sent.
    pub fn frame_most_bytes(&self) -> u64 {
        self.asked_bytes.get().max(CONTROL_MOST_BYTES)
    }

    /// A frame came; wrong if too many were pings.
    pub fn frame(&self, is_ping: bool) -> Outcome {
        let count = if is_ping { &self.pings } else { &self.frames };
        count.update(|count| count + 1);
        match self.pings.get() > PINGS_MOST + self.frames.get() {
            true => Err(Wrong::new(format!("more than {PINGS_MOST} pings"))),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_in_small_fragments_is_right_and_a_mebibyte_beyond_is_not() {
        let account = Account::default();
        account.opened();
        account.asked(16 << 20);
        account.received((32 << 20) + (1 << 20) + (16 << 10));
        assert_eq!(account.check(), Ok(()));
        account.received(1);
        let seen = "more than 1048576 bytes that nobody asked for";
        assert_eq!(account.check(), Err(Wrong::new(seen)));
        assert_eq!(account.frame_most_bytes(), 16 << 20);
    }

    #[test]
    fn a_ping_with_each_answer_is_right_and_pings_alone_are_not() {
        let account = Account::default();
        for _ in 0..10_000 {
            assert_eq!(account.frame(false), Ok(()));
            assert_eq!(account.frame(true), Ok(()));
        }
        let alone = Account::default();
        let last = (0..1_000).find_map(|_| alone.frame(true).err());
        assert_eq!(last, Some(Wrong::new("more than 100 pings")));
    }
}
