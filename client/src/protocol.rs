//! What is sent and what is a right answer: bytes in, events out. No I/O, no
//! clock, resumable at any byte, no buffer a connection.
//!
//! Everything that is sent is made before the clock starts: a pool of
//! *templates*, each a message in the form in which it is sent and in the form
//! in which a plain server answers it. A connection takes them in turn, so what
//! it awaits is known from one index, and checking an answer is comparing bytes.

pub mod handshake;
pub mod reader;
pub mod stream;
pub mod template;
pub mod websocket;

use crate::cause::Cause;
use crate::engine::slot::SlotId;

/// Where a connection stands in the stream of its answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Template of the message that is awaited next.
    pub index: u32,
    /// Bytes of its plain form that have come and were right.
    pub offset: u32,
}

/// What the bytes that came amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Nothing is complete; all bytes were taken.
    More,
    /// An awaited message came whole and right.
    Answer,
    /// Something was appended to the reply, to be sent back.
    Reply,
    /// The peer broke the rules, answered wrongly, or said that it closes.
    Fault(Cause),
}

/// How far the opening of a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Welcome {
    /// More bytes are needed.
    Partial,
    /// Accepted; so many bytes belong to the handshake, the rest to the stream.
    Accepted(usize),
    /// Not what it should be.
    Rejected(Cause),
}

/// A protocol on top of a connected socket. One instance serves a shard.
pub trait Protocol: Send + 'static {
    /// State of a connection whose answer is right so far but not in plain form.
    type Odd: Send;

    /// Number of templates; indices are below it and wrap around.
    fn templates(&self) -> u32;

    /// The template with which connection `id` of the shard begins.
    fn first(&self, id: SlotId) -> u32 {
        id % self.templates()
    }

    /// `count` messages from template `first` on, in one piece, as they are sent.
    fn outgoing(&self, first: u32, count: u32) -> &[u8];

    /// Appends what opens a connection that begins with template `first`. `nonce`
    /// differs for each attempt.
    fn request(&self, nonce: u64, first: u32, port: u16, out: &mut Vec<u8>);

    /// Appends what asks the peer to close the connection. Plain streams have no such
    /// thing, and no load of them has a release.
    fn farewell(&self, _out: &mut Vec<u8>) {}

    /// Judges what has come in answer to [`Protocol::request`].
    fn welcome(&self, nonce: u64, first: u32, answer: &[u8]) -> Welcome;

    /// Takes bytes up to the next event. Returns how many it took: all of them
    /// after [`Event::More`]. `awaited` is the number of messages in flight.
    fn receive(
        &self,
        cursor: &mut Cursor,
        odd: &mut Option<Box<Self::Odd>>,
        awaited: u32,
        bytes: &[u8],
        reply: &mut Vec<u8>,
    ) -> (usize, Event);
}
