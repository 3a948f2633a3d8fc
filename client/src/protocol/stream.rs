//! Plain TCP: an opening, then the bytes of the messages and nothing else.
//!
//! The peer is a server that echoes, or a relay with an [origin](crate::origin)
//! behind it. Either sends the opening back as it came; a server that echoes needs
//! to know nothing of it.

pub mod opening;
pub mod pieces;
pub mod ring;

use super::template::Templates;
use super::{Cursor, Event, Protocol, Welcome};
use crate::cause::Cause;
use opening::{Mode, Opening};
use std::sync::Arc;

/// Messages that are answered as they were sent: a shard's view of the pool.
pub struct Messages {
    templates: Arc<Templates>,
    check: bool,
}

impl Messages {
    /// `templates` are [bare](Templates::bare); `check` compares every byte. Without
    /// it only their number counts, for nothing else is told by a stream.
    #[must_use]
    pub fn new(templates: Arc<Templates>, check: bool) -> Self {
        Self { templates, check }
    }

    fn opening(&self, nonce: u64, first: u32) -> [u8; Opening::BYTES] {
        let opening = Opening {
            mode: Mode::Echo,
            piece_bytes: self.templates.sent_len() as u32,
            pieces: 0,
            first,
        };
        opening.to_bytes(nonce)
    }
}

impl Protocol for Messages {
    /// There is no other form than the plain one.
    type Odd = std::convert::Infallible;

    fn templates(&self) -> u32 {
        self.templates.count()
    }

    fn outgoing(&self, first: u32, count: u32) -> &[u8] {
        self.templates.sent(first, count)
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
        _odd: &mut Option<Box<Self::Odd>>,
        awaited: u32,
        bytes: &[u8],
        _reply: &mut Vec<u8>,
    ) -> (usize, Event) {
        if awaited == 0 {
            return (0, Event::Fault(Cause::Unexpected));
        }
        let answer = &self.templates.answer(cursor.index)[cursor.offset as usize..];
        let part = answer.len().min(bytes.len());
        if self.check && answer[..part] != bytes[..part] {
            return (0, Event::Fault(Cause::WrongPayload));
        }
        if part < answer.len() {
            cursor.offset += part as u32;
            return (part, Event::More);
        }
        cursor.offset = 0;
        cursor.index += 1;
        if cursor.index == self.templates.count() {
            cursor.index = 0;
        }
        (part, Event::Answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wsbench_schema::MessageKind;

    fn messages(check: bool) -> Messages {
        let templates = Templates::bare(MessageKind::Binary, 100, 3, 7);
        Messages::new(Arc::new(templates), check)
    }

    /// What comes of `bytes` in pieces of `cut` while `awaited` are in flight.
    fn answers(messages: &Messages, mut awaited: u32, bytes: &[u8], cut: usize) -> (u32, Event) {
        let (mut cursor, mut count) = (Cursor::default(), 0);
        for piece in bytes.chunks(cut) {
            let mut taken = 0;
            while taken < piece.len() {
                let (part, event) = messages.receive(
                    &mut cursor,
                    &mut None,
                    awaited,
                    &piece[taken..],
                    &mut Vec::new(),
                );
                taken += part;
                match event {
                    Event::Answer => (count, awaited) = (count + 1, awaited - 1),
                    Event::More => assert_eq!(taken, piece.len()),
                    fault => return (count, fault),
                }
            }
        }
        (count, Event::More)
    }

    #[test]
    fn messages_are_answered_as_they_were_sent_wherever_they_are_cut() {
        let messages = messages(true);
        let sent = messages.outgoing(0, 3).to_vec();
        assert_eq!(sent.len(), 300, "no header and no mask");
        for cut in [1, 7, 99, 100, 101, 300] {
            assert_eq!(answers(&messages, 3, &sent, cut), (3, Event::More));
            let unasked = (2, Event::Fault(Cause::Unexpected));
            assert_eq!(answers(&messages, 2, &sent, cut), unasked);
            let mut wrong = sent.clone();
            wrong[250] ^= 1;
            let fault = (2, Event::Fault(Cause::WrongPayload));
            assert_eq!(answers(&messages, 3, &wrong, cut), fault);
            let mut short = sent.clone();
            short.remove(120);
            let fault = (1, Event::Fault(Cause::WrongPayload));
            assert_eq!(answers(&messages, 3, &short, cut), fault);
        }
    }

    #[test]
    fn without_the_check_bytes_are_counted_only() {
        let (wrong, unchecked) = ([0; 300], messages(false));
        assert_eq!(answers(&unchecked, 3, &wrong, 64), (3, Event::More));
    }
}
