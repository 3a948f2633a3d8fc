//! One connection in one cache line.

use crate::protocol::Cursor;
use mio::net::TcpStream;

/// A connection's index among those of its shard.
pub type SlotId = u32;

/// Where a connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not dialled yet, or waiting to be dialled again.
    Unborn,
    /// `connect` was called.
    Connecting,
    /// The request was sent.
    Handshaking,
    /// Ready for messages.
    Open,
    /// Closed for good.
    Dead,
}

/// Rare state: bytes that wait for something, kept apart so that a slot stays
/// small.
#[derive(Debug, Default)]
pub struct Aside {
    /// What came of the handshake's answer, when it did not come at once.
    pub answer: Vec<u8>,
    /// Control frames that could not be sent at once.
    pub reply: Vec<u8>,
}

/// One connection.
#[derive(Debug)]
#[repr(align(64))]
pub struct Slot<O> {
    /// The socket; `None` while unborn or dead.
    pub stream: Option<TcpStream>,
    /// Where the connection is in its life.
    pub state: State,
    /// Failed attempts to dial it.
    pub attempts: u16,
    /// It waits to be read again, see [`Net::read_again`](super::net::Net::read_again).
    pub is_unread: bool,
    /// Where it stands in the stream of answers.
    pub cursor: Cursor,
    /// Template of the next message to send.
    pub next: u32,
    /// Messages in flight.
    pub awaited: u32,
    /// The batch that is not wholly written: first template, ...
    pub batch_first: u32,
    /// ... number of messages (0: everything is written), ...
    pub batch_count: u32,
    /// ... and bytes that are written.
    pub batch_written: u32,
    /// When the attempt to dial began, or the oldest message in flight was sent;
    /// when none is in flight, what the workload keeps of the last answer.
    pub since_ns: u64,
    /// State of an answer that is not in plain form.
    pub odd: Option<Box<O>>,
    /// Rare state.
    pub aside: Option<Box<Aside>>,
}

impl<O> Slot<O> {
    /// An unborn connection that begins with template `first`.
    #[must_use]
    pub fn new(first: u32) -> Self {
        Self {
            stream: None,
            state: State::Unborn,
            attempts: 0,
            is_unread: false,
            cursor: Cursor {
                index: first,
                offset: 0,
            },
            next: first,
            awaited: 0,
            batch_first: 0,
            batch_count: 0,
            batch_written: 0,
            since_ns: 0,
            odd: None,
            aside: None,
        }
    }

    /// Whether something waits until the socket takes more bytes.
    #[must_use]
    pub fn is_writing(&self) -> bool {
        self.batch_count > 0
            || self
                .aside
                .as_ref()
                .is_some_and(|aside| !aside.reply.is_empty())
    }
}

/// In debug builds mio's sockets carry more than their descriptor.
#[cfg(not(debug_assertions))]
const _: () = assert!(size_of::<Slot<()>>() == 64);

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a debug build's slot only the fields tell, since its size is rounded up.
    #[test]
    fn a_slot_is_one_cache_line_but_for_what_debug_builds_add_to_a_socket() {
        let slot = Slot::<crate::protocol::reader::FrameReader>::new(0);
        assert_eq!(align_of_val(&slot), 64);
        let Slot {
            stream,
            state,
            attempts,
            is_unread,
            cursor,
            next,
            awaited,
            batch_first,
            batch_count,
            batch_written,
            since_ns,
            odd,
            aside,
        } = slot;
        let ours = size_of_val(&state)
            + size_of_val(&attempts)
            + size_of_val(&is_unread)
            + size_of_val(&cursor)
            + size_of_val(&next)
            + size_of_val(&awaited)
            + size_of_val(&batch_first)
            + size_of_val(&batch_count)
            + size_of_val(&batch_written)
            + size_of_val(&since_ns)
            + size_of_val(&odd)
            + size_of_val(&aside);
        let descriptor = size_of::<i32>();
        assert!(ours + descriptor <= 64, "{ours} + {descriptor} bytes");
        let of_debug_builds = size_of_val(&stream) - descriptor;
        assert!(cfg!(debug_assertions) || of_debug_builds == 0);
    }
}
