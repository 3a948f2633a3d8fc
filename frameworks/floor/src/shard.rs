//! One epoll loop: readiness, one read, the echo of what it held, one write.
//!
//! An idle connection costs no memory here: its descriptor and whether it has
//! been upgraded are the data of its epoll registration. Bytes are kept only for
//! a connection whose request or frame is cut, or whose peer does not take its
//! echoes; that one is not read until it has taken them.

use std::collections::HashMap;
use std::io;
use std::mem::take;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::frame;
use crate::handshake::{self, Handshake};
use crate::kept::{Kept, Next, Progress};
use crate::spares::Spares;

/// Read at once, a thread: one message whole, or many short ones. What is longer is gathered.
const BUFFER_BYTES: usize = 256 << 10;
const EVENTS: usize = 512;
const SEND: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
/// Edge-triggered: an event that stays until it is dealt with costs epoll a second
/// look at the socket. A read that does not fill the buffer has left nothing, unless
/// the peer has closed, which shows in the event.
const READABLE: EventFlags = EventFlags::IN
    .union(EventFlags::RDHUP)
    .union(EventFlags::ET);
const ENDED: EventFlags = EventFlags::RDHUP
    .union(EventFlags::HUP)
    .union(EventFlags::ERR);
/// Beside the descriptor in a registration's data.
const UPGRADED: u64 = 1 << 32;
/// The same; for good from the first answer on that was not taken at once, so that
/// only a connection that needs to know when it can write pays for being told.
const WRITABLE_TOO: u64 = 1 << 33;

pub struct Shard {
    epoll: OwnedFd,
    max_message: usize,
}

/// What a thread needs to serve its shard.
pub struct Workplace {
    buffer: Vec<u8>,
    events: Vec<Event>,
    kept: HashMap<RawFd, Kept>,
    spares: Spares,
}

impl Shard {
    pub fn new(max_message: usize) -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            max_message: max_message.min(frame::LONGEST),
        })
    }

    /// Takes a connection over from the thread that accepted it.
    pub fn adopt(&self, stream: OwnedFd) {
        let data = EventData::new_u64(stream.as_raw_fd() as u64);
        // Refused only when the kernel is out of memory; then this connection is closed and no other.
        if epoll::add(&self.epoll, &stream, data, READABLE).is_ok() {
            let _ = stream.into_raw_fd();
        }
    }

    /// Serves the adopted connections, for ever.
    pub fn run(&self) -> io::Result<()> {
        let mut workplace = Workplace::new();
        loop {
            self.serve_ready(&mut workplace, None)?;
        }
    }

    /// One turn for every connection with an event.
    fn serve_ready(&self, work: &mut Workplace, patience: Option<&Timespec>) -> io::Result<()> {
        let mut events = take(&mut work.events);
        match epoll::wait(&self.epoll, spare_capacity(&mut events), patience) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in events.drain(..) {
            self.turn(event, work);
        }
        work.events = events;
        Ok(())
    }

    fn turn(&self, event: Event, work: &mut Workplace) {
        let (data, flags) = (event.data.u64(), event.flags);
        let raw = data as u32 as RawFd;
        // SAFETY: `adopt` gave the descriptor up to this loop, which alone closes it, below.
        let fd = unsafe { BorrowedFd::borrow_raw(raw) };
        let kept = if work.kept.is_empty() {
            None
        } else {
            work.kept.remove(&raw)
        };
        let after = match kept {
            None => self.read(fd, data & UPGRADED != 0, work),
            Some(kept) if kept.is_writing() => write_on(fd, flags, kept, &mut work.spares),
            Some(kept) => self.read_on(fd, kept, work),
        };
        let (upgraded, unread, kept) = match after {
            Ok(Next::Close) | Err(_) => {
                // SAFETY: given up by `adopt`, closed once: a closed descriptor has no more events.
                drop(unsafe { OwnedFd::from_raw_fd(raw) });
                return;
            }
            Ok(Next::Idle { upgraded, drained }) => (upgraded, !drained, None),
            Ok(Next::Keep(kept)) => (kept.progress.upgraded, kept.unread, Some(kept)),
        };
        let unread = unread || flags.intersects(ENDED);
        let mut data_now = data;
        if upgraded {
            data_now |= UPGRADED;
        }
        let kept = kept.map(|kept| Kept { unread, ..kept });
        let is_writing = kept.as_ref().is_some_and(Kept::is_writing);
        if is_writing {
            data_now |= WRITABLE_TOO;
        }
        // What cannot be read before a write ends is asked for after it.
        if data_now != data || unread && !is_writing {
            // Only an unknown descriptor is refused, and this one has just had an event.
            let _ = self.register(fd, data_now);
        }
        work.kept.extend(kept.map(|kept| (raw, kept)));
    }

    /// Asks for the next event, which comes at once if there is more to do already.
    fn register(&self, fd: BorrowedFd<'_>, data: u64) -> rustix::io::Result<()> {
        let interest = if data & WRITABLE_TOO == 0 {
            READABLE
        } else {
            READABLE | EventFlags::OUT
        };
        epoll::modify(&self.epoll, fd, EventData::new_u64(data), interest)
    }

    /// The usual turn: nothing is kept, and what is read is answered where it lies.
    fn read(
        &self,
        fd: BorrowedFd<'_>,
        upgraded: bool,
        work: &mut Workplace,
    ) -> rustix::io::Result<Next> {
        let buffer = &mut work.buffer;
        let bytes = match recv(fd, &mut buffer[..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Ok(Next::Close),
            Ok((length, _)) => &mut buffer[..length],
            Err(Errno::AGAIN) => {
                return Ok(Next::Idle {
                    upgraded,
                    drained: true,
                });
            }
            Err(error) => return Err(error),
        };
        let unread = bytes.len() == BUFFER_BYTES;
        let progress = self.answer(fd, bytes, 0, upgraded)?;
        if progress.unsent.is_empty() && progress.consumed == bytes.len() && !progress.last {
            return Ok(Next::Idle {
                upgraded: progress.upgraded,
                drained: !unread,
            });
        }
        let kept = Kept::copy(bytes, progress, unread, &mut work.spares)?;
        match kept.settle(&mut work.spares) {
            Next::Keep(kept) if kept.unread && !kept.is_writing() => self.read_on(fd, kept, work),
            next => Ok(next),
        }
    }

    /// More of a request or frame that was cut, read to where it lies.
    fn read_on(
        &self,
        fd: BorrowedFd<'_>,
        mut kept: Kept,
        work: &mut Workplace,
    ) -> rustix::io::Result<Next> {
        loop {
            let room = kept.make_room(&mut work.spares)?;
            let length = match recv(fd, spare_capacity(&mut kept.bytes), RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Ok(Next::Close),
                Ok((length, _)) => length,
                Err(Errno::AGAIN) => {
                    kept.unread = false;
                    return Ok(Next::Keep(kept));
                }
                Err(error) => return Err(error),
            };
            kept.unread = length == room;
            let (unmasked, upgraded) = (kept.unmasked, kept.progress.upgraded);
            kept.progress = self.answer(fd, &mut kept.bytes, unmasked, upgraded)?;
            let still_cut = kept.progress.consumed == 0;
            if !still_cut {
                kept.unmasked = 0;
            }
            match kept.settle(&mut work.spares) {
                Next::Keep(next) if next.unread && still_cut => kept = next,
                next => return Ok(next),
            }
        }
    }

    /// Answers what is whole in `bytes`, and sends of it what the peer takes at once.
    fn answer(
        &self,
        fd: BorrowedFd<'_>,
        bytes: &mut [u8],
        unmasked: usize,
        upgraded: bool,
    ) -> rustix::io::Result<Progress> {
        let mut start = 0;
        if !upgraded {
            match handshake::answer(bytes) {
                Handshake::Incomplete => return Ok(Progress::default()),
                Handshake::Accepted { response, consumed } => {
                    send(fd, response.as_bytes(), SEND)?;
                    start = consumed;
                }
                Handshake::Refused { response } => {
                    send(fd, response.as_bytes(), SEND)?;
                    return Ok(Progress {
                        last: true,
                        ..Progress::default()
                    });
                }
            }
        }
        let echo = frame::echo(bytes, start, unmasked, self.max_message);
        let mut unsent = echo.answers;
        if !unsent.is_empty() {
            unsent.start += send_some(fd, &bytes[unsent.clone()])?;
        }
        Ok(Progress {
            upgraded: true,
            unsent,
            consumed: echo.consumed,
            next_frame: echo.next_frame,
            last: echo.last,
        })
    }
}

impl Workplace {
    fn new() -> Self {
        Self {
            buffer: vec![0; BUFFER_BYTES],
            events: Vec::with_capacity(EVENTS),
            kept: HashMap::new(),
            spares: Spares::default(),
        }
    }
}

/// A peer that does not take its answers is not read from.
fn write_on(
    fd: BorrowedFd<'_>,
    flags: EventFlags,
    mut kept: Kept,
    spares: &mut Spares,
) -> rustix::io::Result<Next> {
    kept.unread |= flags.contains(EventFlags::IN);
    if flags.intersects(EventFlags::OUT | EventFlags::HUP | EventFlags::ERR) {
        kept.progress.unsent.start += send_some(fd, &kept.bytes[kept.progress.unsent.clone()])?;
    }
    Ok(kept.settle(spares))
}

fn send_some(fd: BorrowedFd<'_>, bytes: &[u8]) -> rustix::io::Result<usize> {
    match send(fd, bytes, SEND) {
        Err(Errno::AGAIN) => Ok(0),
        sent => sent,
    }
}

#[cfg(test)]
mod tests;
