//! The connections of one shard and what can be done with them. Workloads act
//! through it; the loop in `shard.rs` feeds it events.

use super::clock::now_ns;
use super::slot::{Slot, SlotId, State};
use crate::cause::Cause;
use crate::protocol::{Event, Protocol};
use mio::Registry;
use mio::net::TcpStream;
use std::io::{self, ErrorKind, Read, Write};

/// One read takes at most this much; larger answers take several.
const READ_BUFFER_BYTES: usize = 64 << 10;
/// Reads that fill the buffer before the other connections have their turn.
const READS_AT_ONCE: u32 = 16;
/// Control frames that are collected before they are sent.
const REPLY_BYTES: usize = 16 << 10;
/// Control frames that wait for a peer to read them, at most.
const REPLY_MAX_BYTES: usize = 64 << 10;

/// The connections of one shard.
pub struct Net<P: Protocol> {
    /// What is sent and expected.
    pub protocol: P,
    /// The connections, by [`SlotId`].
    pub slots: Vec<Slot<P::Odd>>,
    /// Of the shard's epoll.
    pub registry: Registry,
    /// Bytes sent, framing included.
    pub sent_bytes: u64,
    /// Bytes received, framing included.
    pub received_bytes: u64,
    /// Connections in [`State::Open`].
    pub open: u32,
    /// Connections that have more to read although no event will tell, each once.
    unread: Vec<SlotId>,
    buffer: Box<[u8]>,
    reply: Vec<u8>,
}

/// What came of reading a connection dry.
pub enum Reading {
    /// So many awaited messages came whole and right, the last at this time.
    Answers(u32, u64),
    /// The connection must be given up; so many answers came before.
    Fault(u32, u64, Cause),
}

/// What came of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// The socket took everything.
    Whole,
    /// The rest waits until the socket is writable.
    Waits,
    /// The connection must be given up.
    Fault(Cause),
}

impl Writing {
    fn fault(self) -> Option<Cause> {
        match self {
            Writing::Fault(cause) => Some(cause),
            Writing::Whole | Writing::Waits => None,
        }
    }
}

impl<P: Protocol> Net<P> {
    /// `connections` unborn connections.
    pub fn new(protocol: P, connections: u32, registry: Registry) -> Self {
        Self {
            slots: (0..connections)
                .map(|id| Slot::new(protocol.first(id)))
                .collect(),
            protocol,
            registry,
            sent_bytes: 0,
            received_bytes: 0,
            open: 0,
            unread: Vec::new(),
            buffer: vec![0; READ_BUFFER_BYTES].into_boxed_slice(),
            reply: Vec::new(),
        }
    }

    /// The connection `id`.
    #[inline]
    pub fn slot(&mut self, id: SlotId) -> &mut Slot<P::Odd> {
        &mut self.slots[id as usize]
    }

    /// Whether messages can be sent on it.
    #[inline]
    pub fn is_open(&self, id: SlotId) -> bool {
        self.slots[id as usize].state == State::Open
    }

    /// Sends `count` messages on an open connection on which nothing waits to
    /// be written, or queues what the socket does not take.
    #[inline]
    pub fn send(&mut self, id: SlotId, count: u32) -> Writing {
        let slot = &mut self.slots[id as usize];
        debug_assert!(slot.state == State::Open && !slot.is_writing());
        let bytes = self.protocol.outgoing(slot.next, count);
        let first = slot.next;
        slot.next = (first + count) % self.protocol.templates();
        slot.awaited += count;
        match write(slot.stream.as_mut(), bytes) {
            Ok(written) => {
                self.sent_bytes += written as u64;
                if written == bytes.len() {
                    return Writing::Whole;
                }
                slot.batch_first = first;
                slot.batch_count = count;
                slot.batch_written = written as u32;
                Writing::Waits
            }
            Err(error) => Writing::Fault(Cause::of(&error)),
        }
    }

    /// Writes what waits on a connection that became writable.
    pub fn flush(&mut self, id: SlotId) -> Writing {
        let slot = &mut self.slots[id as usize];
        if slot.batch_count > 0 {
            let bytes = self.protocol.outgoing(slot.batch_first, slot.batch_count);
            let rest = &bytes[slot.batch_written as usize..];
            match write(slot.stream.as_mut(), rest) {
                Ok(written) => {
                    self.sent_bytes += written as u64;
                    slot.batch_written += written as u32;
                    if written < rest.len() {
                        return Writing::Waits;
                    }
                    slot.batch_count = 0;
                }
                Err(error) => return Writing::Fault(Cause::of(&error)),
            }
        }
        let Some(aside) = slot.aside.as_mut() else {
            return Writing::Whole;
        };
        match write(slot.stream.as_mut(), &aside.reply) {
            Ok(written) => {
                self.sent_bytes += written as u64;
                aside.reply.drain(..written);
                if !aside.reply.is_empty() {
                    return Writing::Waits;
                }
                slot.aside = None;
                Writing::Whole
            }
            Err(error) => Writing::Fault(Cause::of(&error)),
        }
    }

    /// Reads until the socket is drained, or for a turn: a peer that sends without
    /// end must not be read without end. A read shorter than the buffer
    /// drains it, unless the peer has closed: epoll reports each later arrival
    /// as a new edge.
    #[inline]
    pub fn read(&mut self, id: SlotId, peer_closed: bool) -> Reading {
        let (mut answers, mut now) = (0, 0);
        for _ in 0..READS_AT_ONCE {
            let read = match self.fetch(id, READ_BUFFER_BYTES) {
                Ok(Some(read)) => read,
                Ok(None) => return Reading::Answers(answers, now),
                Err(cause) => return Reading::Fault(answers, now_ns(), cause),
            };
            now = now_ns();
            self.received_bytes += read as u64;
            match self.take(id, read) {
                (count, None) => answers += count,
                (count, Some(cause)) => return Reading::Fault(answers + count, now, cause),
            }
            if read < self.buffer.len() && !peer_closed {
                return Reading::Answers(answers, now);
            }
        }
        self.read_again(id);
        Reading::Answers(answers, now)
    }

    /// The connection is to be read once all events at hand have had their turn.
    pub fn read_again(&mut self, id: SlotId) {
        let slot = &mut self.slots[id as usize];
        if !std::mem::replace(&mut slot.is_unread, true) {
            self.unread.push(id);
        }
    }

    /// Those that [`Net::read_again`] was called for.
    #[inline]
    pub fn take_unread(&mut self) -> Vec<SlotId> {
        std::mem::take(&mut self.unread)
    }

    /// Reads once, so much at most: what is left is for the caller to come back for.
    pub fn read_at_most(&mut self, id: SlotId, most: usize) -> Reading {
        if most == 0 {
            return Reading::Answers(0, 0);
        }
        let read = match self.fetch(id, most.min(READ_BUFFER_BYTES)) {
            Ok(Some(read)) => read,
            Ok(None) => return Reading::Answers(0, 0),
            Err(cause) => return Reading::Fault(0, now_ns(), cause),
        };
        let now = now_ns();
        self.received_bytes += read as u64;
        match self.take(id, read) {
            (answers, None) => Reading::Answers(answers, now),
            (answers, Some(cause)) => Reading::Fault(answers, now, cause),
        }
    }

    /// Fills up to `most` of the buffer; `None` if nothing is there now.
    #[inline]
    fn fetch(&mut self, id: SlotId, most: usize) -> Result<Option<usize>, Cause> {
        let Some(stream) = self.slots[id as usize].stream.as_mut() else {
            return Ok(None);
        };
        loop {
            return match stream.read(&mut self.buffer[..most]) {
                Ok(0) => Err(Cause::Closed),
                Ok(read) => Ok(Some(read)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => Err(Cause::of(&error)),
            };
        }
    }

    /// Gives the first `len` bytes of the buffer to the protocol.
    #[inline]
    fn take(&mut self, id: SlotId, len: usize) -> (u32, Option<Cause>) {
        let mut slot = &mut self.slots[id as usize];
        let (mut taken, mut answers) = (0, 0);
        while taken < len {
            let bytes = &self.buffer[taken..len];
            let (part, event) = self.protocol.receive(
                &mut slot.cursor,
                &mut slot.odd,
                slot.awaited,
                bytes,
                &mut self.reply,
            );
            taken += part;
            match event {
                Event::More => break,
                // Of a message that was not sent whole there is no answer.
                Event::Answer if slot.awaited <= unwritten(&self.protocol, slot) => {
                    self.reply.clear();
                    return (answers, Some(Cause::Unexpected));
                }
                Event::Answer => {
                    slot.awaited -= 1;
                    answers += 1;
                }
                Event::Reply if self.reply.len() < REPLY_BYTES => {}
                Event::Reply => {
                    if let Some(cause) = self.send_reply(id).fault() {
                        return (answers, Some(cause));
                    }
                    slot = &mut self.slots[id as usize];
                }
                Event::Fault(cause) => {
                    self.reply.clear();
                    return (answers, Some(cause));
                }
            }
        }
        match self.reply.is_empty() {
            true => (answers, None),
            false => (answers, self.send_reply(id).fault()),
        }
    }

    /// Sends the collected control frames behind whatever waits already.
    fn send_reply(&mut self, id: SlotId) -> Writing {
        let slot = &mut self.slots[id as usize];
        let was_writing = slot.is_writing();
        let aside = slot.aside.get_or_insert_default();
        if aside.reply.len() + self.reply.len() > REPLY_MAX_BYTES {
            self.reply.clear();
            return Writing::Fault(Cause::Flooded);
        }
        aside.reply.append(&mut self.reply);
        if was_writing {
            Writing::Waits
        } else {
            self.flush(id)
        }
    }

    /// Says that the connection is to be closed, behind whatever waits already.
    pub fn farewell(&mut self, id: SlotId) -> Writing {
        self.protocol.farewell(&mut self.reply);
        self.send_reply(id)
    }

    /// Gives what came behind the handshake, in the same segment, to the protocol.
    pub fn take_early(&mut self, id: SlotId, bytes: &[u8]) -> Option<Cause> {
        self.buffer[..bytes.len()].copy_from_slice(bytes);
        self.take(id, bytes.len()).1
    }

    /// Closes a connection for good, with a reset (see [`Route::connect`]).
    /// Returns how many messages were in flight.
    ///
    /// [`Route::connect`]: super::dial::Route::connect
    pub fn close(&mut self, id: SlotId) -> u32 {
        let slot = &mut self.slots[id as usize];
        if slot.state == State::Open {
            self.open -= 1;
        }
        slot.state = State::Dead;
        // The state of an answer stays: it may be what the workload is told of next.
        slot.aside = None;
        slot.batch_count = 0;
        slot.stream = None;
        std::mem::take(&mut slot.awaited)
    }
}

/// Messages of which something is still to be written.
#[inline]
fn unwritten<P: Protocol>(protocol: &P, slot: &Slot<P::Odd>) -> u32 {
    if slot.batch_count == 0 {
        return 0;
    }
    let batch = protocol.outgoing(slot.batch_first, slot.batch_count);
    let each = (batch.len() as u32 / slot.batch_count).max(1);
    slot.batch_count - slot.batch_written / each
}

/// As much as the socket takes; zero if it takes nothing now.
fn write(stream: Option<&mut TcpStream>, bytes: &[u8]) -> io::Result<usize> {
    let Some(stream) = stream else {
        return Err(ErrorKind::NotConnected.into());
    };
    loop {
        match stream.write(bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
