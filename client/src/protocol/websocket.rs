//! WebSocket messages as a client sends them, and what a server may answer.
//!
//! The hot path compares what came with the plain form of the answer: header
//! and payload in one `memcmp`. Whatever differs is read again, from the start
//! of its message, by [`FrameReader`], which knows every other legal form.

use super::handshake;
use super::reader::{Found, FrameReader};
use super::template::{Templates, masked_frame};
use super::{Cursor, Event, Protocol, Welcome};
use std::sync::Arc;

/// The first byte of a close frame.
const CLOSE: u8 = 0x88;
/// Status 1000 of RFC 6455.
const NORMAL_CLOSURE: [u8; 2] = 1000_u16.to_be_bytes();

/// A shard's view of the pool.
pub struct WebSocket {
    templates: Arc<Templates>,
    check: bool,
    host: String,
    path: String,
}

impl WebSocket {
    /// `host` and `path` as they stand in the request; `check` compares every
    /// byte of the payload (opcode and length are compared always).
    #[must_use]
    pub fn new(templates: Arc<Templates>, check: bool, host: String, path: String) -> Self {
        Self {
            templates,
            check,
            host,
            path,
        }
    }

    fn next(&self, cursor: &mut Cursor) {
        cursor.offset = 0;
        cursor.index += 1;
        if cursor.index == self.templates.count() {
            cursor.index = 0;
        }
    }

    /// How much of `bytes` is what the plain answer goes on with, or `None` if
    /// it differs.
    #[inline]
    fn plain(&self, cursor: Cursor, bytes: &[u8]) -> Option<usize> {
        let offset = cursor.offset as usize;
        let answer = &self.templates.answer(cursor.index)[offset..];
        let part = answer.len().min(bytes.len());
        let compared = match self.check {
            true => part,
            false => self.templates.header_len().saturating_sub(offset).min(part),
        };
        (answer[..compared] == bytes[..compared]).then_some(part)
    }

    /// Reads on in a form that is not plain, past pongs, which mean nothing.
    fn read_odd(
        &self,
        cursor: &mut Cursor,
        odd: &mut Option<Box<FrameReader>>,
        awaited: bool,
        bytes: &[u8],
        reply: &mut Vec<u8>,
    ) -> (usize, Event) {
        let (templates, check) = (&self.templates, self.check);
        let reader = odd.get_or_insert_with(|| {
            // What came of this message until now was plain: the reader gets it first.
            let mut reader = Box::new(FrameReader::default());
            let seen = &templates.answer(cursor.index)[..cursor.offset as usize];
            let (_, found) = reader.read(templates, cursor.index, check, awaited, seen, reply);
            debug_assert_eq!(found, Found::More);
            cursor.offset = 0;
            reader
        });
        let mut taken = 0;
        let event = loop {
            let rest = &bytes[taken..];
            let (part, found) = reader.read(templates, cursor.index, check, awaited, rest, reply);
            taken += part;
            match found {
                Found::Nothing if taken < bytes.len() => {}
                Found::Nothing | Found::More => break Event::More,
                Found::Message => {
                    self.next(cursor);
                    break Event::Answer;
                }
                Found::Pong => break Event::Reply,
                Found::Fault(cause) => break Event::Fault(cause),
            }
        };
        if reader.is_idle() {
            *odd = None;
        }
        (taken, event)
    }
}

impl Protocol for WebSocket {
    type Odd = FrameReader;

    fn templates(&self) -> u32 {
        self.templates.count()
    }

    fn outgoing(&self, first: u32, count: u32) -> &[u8] {
        self.templates.sent(first, count)
    }

    fn request(&self, nonce: u64, _first: u32, port: u16, out: &mut Vec<u8>) {
        handshake::request(&self.host, port, &self.path, &handshake::key(nonce), out);
    }

    fn farewell(&self, out: &mut Vec<u8>) {
        let key = fastrand::u32(1..).to_le_bytes();
        masked_frame(CLOSE, &NORMAL_CLOSURE, key, out);
    }

    fn welcome(&self, nonce: u64, _first: u32, answer: &[u8]) -> Welcome {
        handshake::judge(&handshake::key(nonce), answer)
    }

    #[inline]
    fn receive(
        &self,
        cursor: &mut Cursor,
        odd: &mut Option<Box<FrameReader>>,
        awaited: u32,
        bytes: &[u8],
        reply: &mut Vec<u8>,
    ) -> (usize, Event) {
        let may_be_plain = odd.is_none() && awaited > 0;
        if let Some(part) = may_be_plain.then(|| self.plain(*cursor, bytes)).flatten() {
            cursor.offset += part as u32;
            if cursor.offset as usize == self.templates.answer(cursor.index).len() {
                self.next(cursor);
                return (part, Event::Answer);
            }
            return (part, Event::More);
        }
        self.read_odd(cursor, odd, awaited > 0, bytes, reply)
    }
}

#[cfg(test)]
mod tests;
