//! One epoll loop: readiness, one read, the echo of what it held, one write.
//!
//! An idle connection costs no memory here: its descriptor and whether it has
//! been upgraded are the data of its epoll registration. Bytes are kept only for
//! a connection whose request or frame is cut, or whose peer does not take its
//! echoes; that one is not read until it has taken them.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::frame;
use crate::handshake::{self, Handshake};

/// Read at once, a thread: a long message whole, or many short ones.
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

pub struct Shard {
    epoll: OwnedFd,
    max_message: usize,
}

/// Where a connection stands, in the bytes it was answered from.
#[derive(Default)]
struct Progress {
    upgraded: bool,
    /// Answers that the peer has not taken yet.
    unsent: Range<usize>,
    /// From here on the bytes are the start of a request or frame.
    consumed: usize,
    /// Length in all of that frame, as far as it is known.
    next_frame: usize,
    /// The connection ends once everything is sent.
    last: bool,
}

/// What is kept of a connection that is in the middle of something.
struct Kept {
    bytes: Vec<u8>,
    progress: Progress,
}

/// How a connection's turn ended.
enum Next {
    /// Nothing of it is kept; `drained` if nothing is left to read either.
    Idle {
        upgraded: bool,
        drained: bool,
    },
    Keep(Kept),
    Close,
}

impl Shard {
    pub fn new(max_message: usize) -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            max_message,
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
        let mut events = Vec::with_capacity(EVENTS);
        let mut kept = HashMap::new();
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in events.drain(..) {
                self.turn(event, &mut buffer, &mut kept);
            }
        }
    }

    fn turn(&self, event: Event, buffer: &mut [u8], all_kept: &mut HashMap<RawFd, Kept>) {
        let (data, flags) = (event.data.u64(), event.flags);
        let (raw, was_upgraded) = (data as u32 as RawFd, data & UPGRADED != 0);
        // SAFETY: `adopt` gave the descriptor up to this loop, which alone closes it, below.
        let fd = unsafe { BorrowedFd::borrow_raw(raw) };
        let kept = if all_kept.is_empty() {
            None
        } else {
            all_kept.remove(&raw)
        };
        let after = match kept {
            None => self.read(fd, buffer, was_upgraded),
            Some(kept) if kept.is_writing() => kept.write_on(fd),
            Some(kept) => self.read_on(fd, kept),
        };
        let (upgraded, drained, kept) = match after {
            Ok(Next::Close) | Err(_) => {
                // SAFETY: given up by `adopt`, closed once: a closed descriptor has no more events.
                drop(unsafe { OwnedFd::from_raw_fd(raw) });
                return;
            }
            Ok(Next::Idle { upgraded, drained }) => (upgraded, drained, None),
            Ok(Next::Keep(kept)) => (kept.progress.upgraded, false, Some(kept)),
        };
        if !drained || upgraded != was_upgraded || flags.intersects(ENDED) {
            let writing = kept.as_ref().is_some_and(Kept::is_writing);
            // Only an unknown descriptor is refused, and this one has just had an event.
            let _ = self.register(fd, upgraded, writing);
        }
        all_kept.extend(kept.map(|kept| (raw, kept)));
    }

    /// Asks for the next event, which comes at once if there is more to do already.
    fn register(
        &self,
        fd: BorrowedFd<'_>,
        upgraded: bool,
        writing: bool,
    ) -> rustix::io::Result<()> {
        let data = fd.as_raw_fd() as u64 | if upgraded { UPGRADED } else { 0 };
        let interest = if writing { EventFlags::OUT } else { READABLE };
        epoll::modify(&self.epoll, fd, EventData::new_u64(data), interest)
    }

    /// The usual turn: nothing is kept, and what is read is answered where it lies.
    fn read(
        &self,
        fd: BorrowedFd<'_>,
        buffer: &mut [u8],
        upgraded: bool,
    ) -> rustix::io::Result<Next> {
        let bytes = match recv(fd, &mut *buffer, RecvFlags::DONTWAIT) {
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
        let progress = self.answer(fd, bytes, upgraded)?;
        if progress.unsent.is_empty() && progress.consumed == bytes.len() && !progress.last {
            return Ok(Next::Idle {
                upgraded: progress.upgraded,
                drained: bytes.len() < BUFFER_BYTES,
            });
        }
        Ok(Kept {
            bytes: bytes.to_vec(),
            progress,
        }
        .settle())
    }

    /// More of a request or frame that was cut.
    fn read_on(&self, fd: BorrowedFd<'_>, mut kept: Kept) -> rustix::io::Result<Next> {
        // A peer that only says how long its frame will be gets no more memory than it has sent bytes.
        let here = kept.bytes.len();
        kept.bytes.reserve_exact(
            kept.progress
                .next_frame
                .saturating_sub(here)
                .clamp(1 << 10, here.max(BUFFER_BYTES)),
        );
        match recv(fd, spare_capacity(&mut kept.bytes), RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Ok(Next::Close),
            Ok(_) => {}
            Err(Errno::AGAIN) => return Ok(Next::Keep(kept)),
            Err(error) => return Err(error),
        }
        kept.progress = self.answer(fd, &mut kept.bytes, kept.progress.upgraded)?;
        Ok(kept.settle())
    }

    /// Answers what is whole in `bytes`, and sends of it what the peer takes at once.
    fn answer(
        &self,
        fd: BorrowedFd<'_>,
        bytes: &mut [u8],
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
        let echo = frame::echo(bytes, start, self.max_message);
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

impl Kept {
    fn is_writing(&self) -> bool {
        !self.progress.unsent.is_empty()
    }

    fn write_on(mut self, fd: BorrowedFd<'_>) -> rustix::io::Result<Next> {
        self.progress.unsent.start += send_some(fd, &self.bytes[self.progress.unsent.clone()])?;
        Ok(self.settle())
    }

    /// Forgets what has been answered and sent.
    fn settle(mut self) -> Next {
        if self.is_writing() {
            return Next::Keep(self);
        }
        if self.progress.last {
            return Next::Close;
        }
        self.bytes.drain(..self.progress.consumed);
        self.progress.consumed = 0;
        if self.bytes.is_empty() {
            Next::Idle {
                upgraded: self.progress.upgraded,
                drained: false,
            }
        } else {
            Next::Keep(self)
        }
    }
}

fn send_some(fd: BorrowedFd<'_>, bytes: &[u8]) -> rustix::io::Result<usize> {
    match send(fd, bytes, SEND) {
        Err(Errno::AGAIN) => Ok(0),
        sent => sent,
    }
}
