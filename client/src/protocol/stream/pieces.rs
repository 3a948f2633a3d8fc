//! The pieces of a transfer, and the few words that are said around them.
//!
//! | direction | client | other end |
//! |---|---|---|
//! | both | pieces, and the last word when all are back | whatever came |
//! | up | pieces, and the last word behind the receipt | the receipt behind the last piece; FIN |
//! | down | one byte: go | pieces; FIN |
//!
//! The last word and the FIN show that nothing came between the last right byte and
//! them. The client never says FIN first in a transfer that is whole, so that none of
//! its ports is left in TIME_WAIT.

use super::opening::{self, Mode, Opening};
use super::ring::Ring;
use crate::cause::Cause;
use crate::engine::slot::SlotId;
use crate::protocol::{Cursor, Event, Protocol, Welcome};
use std::sync::Arc;
use wsbench_schema::Direction;

/// Behind the last piece.
pub const LAST_WORD: [u8; 8] = *b"that all";
/// Before the first piece that comes down.
pub const GO: [u8; 1] = *b"g";
/// Bytes of a receipt: a number, little-endian.
pub const RECEIPT_BYTES: usize = size_of::<u64>();

/// A shard's view of the transfers.
pub struct Pieces {
    ring: Arc<Ring>,
    mode: Mode,
    pieces: u32,
    first_number: u32,
}

impl Pieces {
    /// In place of a piece's number: the last word is sent, or awaited.
    pub const LAST_WORD: u32 = Ring::BYTES;
    /// In place of a piece's number: the byte that begins a transfer down is sent.
    pub const GO: u32 = Ring::BYTES + 1;
    /// In place of a piece's number: the receipt is awaited.
    pub const RECEIPT: u32 = Ring::BYTES + 2;
    /// In place of a piece's number: nothing but the end is awaited.
    pub const END: u32 = Ring::BYTES + 3;

    /// Transfers of so many pieces on connections of which the first of this shard
    /// has this number among all.
    #[must_use]
    pub fn new(ring: Arc<Ring>, direction: Direction, pieces: u32, first_number: u32) -> Self {
        Self {
            ring,
            mode: direction.into(),
            pieces,
            first_number,
        }
    }

    fn opening(&self, nonce: u64, first: u32) -> [u8; Opening::BYTES] {
        let opening = Opening {
            mode: self.mode,
            piece_bytes: self.ring.piece_bytes(),
            pieces: self.pieces,
            first,
        };
        opening.to_bytes(nonce)
    }
}

/// What the other end has told of the pieces that it got.
#[derive(Debug, Default)]
pub struct Receipt([u8; RECEIPT_BYTES]);

impl Receipt {
    /// Bytes that were right, until the first that was not.
    #[must_use]
    pub fn right_bytes(&self) -> u64 {
        u64::from_le_bytes(self.0)
    }
}

impl Protocol for Pieces {
    type Odd = Receipt;

    fn templates(&self) -> u32 {
        Ring::BYTES
    }

    /// Each connection begins with another piece, so that no connection's bytes
    /// are right on another.
    fn first(&self, id: SlotId) -> u32 {
        self.first_number.wrapping_add(id) % Ring::BYTES
    }

    fn outgoing(&self, first: u32, count: u32) -> &[u8] {
        debug_assert_eq!(count, 1);
        match first {
            Self::LAST_WORD => &LAST_WORD,
            Self::GO => &GO,
            piece => self.ring.piece(piece),
        }
    }

    fn request(&self, nonce: u64, first: u32, _port: u16, out: &mut Vec<u8>) {
        out.extend(self.opening(nonce, first));
    }

    fn welcome(&self, nonce: u64, first: u32, answer: &[u8]) -> Welcome {
        opening::judge(&self.opening(nonce, first), answer)
    }

    #[inline]
    fn receive(
        &self,
        cursor: &mut Cursor,
        odd: &mut Option<Box<Receipt>>,
        awaited: u32,
        bytes: &[u8],
        _reply: &mut Vec<u8>,
    ) -> (usize, Event) {
        let offset = cursor.offset as usize;
        let ends_after = |part: usize, whole: usize| match offset + part == whole {
            true => (part, Event::Answer),
            false => (part, Event::More),
        };
        match cursor.index {
            _ if awaited == 0 => (0, Event::Fault(Cause::Unexpected)),
            Self::END => (0, Event::Fault(Cause::Unexpected)),
            Self::LAST_WORD => {
                let part = bytes.len().min(LAST_WORD.len() - offset);
                if LAST_WORD[offset..offset + part] != bytes[..part] {
                    return (0, Event::Fault(Cause::Unexpected));
                }
                cursor.offset += part as u32;
                if offset + part == LAST_WORD.len() {
                    cursor.index = Self::END;
                }
                ends_after(part, LAST_WORD.len())
            }
            Self::RECEIPT => {
                let part = bytes.len().min(RECEIPT_BYTES - offset);
                let Receipt(receipt) = &mut **odd.get_or_insert_default();
                receipt[offset..offset + part].copy_from_slice(&bytes[..part]);
                cursor.offset += part as u32;
                if offset + part == RECEIPT_BYTES {
                    cursor.index = Self::END;
                }
                ends_after(part, RECEIPT_BYTES)
            }
            piece => {
                let whole = self.ring.piece_bytes() as usize;
                let part = bytes.len().min(whole - offset);
                let right = self.ring.right(piece, offset as u64, &bytes[..part]);
                cursor.offset += right as u32;
                if right < part {
                    return (right, Event::Fault(Cause::WrongPayload));
                }
                let (part, event) = ends_after(part, whole);
                if event == Event::Answer {
                    *cursor = Cursor {
                        index: (piece + 1) % Ring::BYTES,
                        offset: 0,
                    };
                }
                (part, event)
            }
        }
    }
}
