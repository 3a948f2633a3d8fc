//! `splice` on io_uring, through a pooled pipe: into it and out of it in one submission.
//!
//! io_uring has no way to try a splice: each goes to a worker thread of the kernel. So
//! the ring waits until a socket is ready, and a worker never waits.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use io_uring::squeue::Flags;
use io_uring::types::Fd;
use io_uring::{cqueue, opcode};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with};

use crate::method::{Files, Method};
use crate::relay::Relay;
use crate::rings::{self, Mover, Progress, Queue, Way, outcome};

pub const METHOD: Method = Method {
    name: "io_uring_splice",
    about: "io_uring: splice through a pooled pipe",
    files: Files::SocketsAndPool,
    run: rings::run::<Splice>,
};

const READABLE: u8 = 0;
const FILL: u8 = 1;
const DRAIN: u8 = 2;
const WRITABLE: u8 = 3;

const PIPE_BYTES: u32 = 256 << 10;
const SPLICE_FLAGS: u32 = SpliceFlags::NONBLOCK.union(SpliceFlags::MOVE).bits();
/// Of a ring, of each kind.
const WORKERS: u32 = 2;

struct Splice {
    pipes: Pipes,
    buffer_bytes: usize,
}

#[derive(Default)]
struct Flow {
    store: Store,
    source_ended: bool,
}

/// Where the bytes of a direction are: nowhere while it waits for some, in a pipe or,
/// if there is none to be had, in a buffer.
#[derive(Default)]
enum Store {
    #[default]
    Nothing,
    Pipe {
        pipe: Pipe,
        holds: usize,
    },
    Buffer {
        bytes: Vec<u8>,
        start: usize,
        end: usize,
    },
}

impl Splice {
    fn poll(socket: Fd, operation: u8, events: PollFlags, way: &mut Way<'_>) -> io::Result<()> {
        let entry = opcode::PollAdd::new(socket, events.bits().into()).build();
        // SAFETY: it points to nothing.
        unsafe { way.push(operation, entry) }
    }

    /// Takes in what has arrived, and sends on what there is after that.
    fn fill(&mut self, flow: &mut Flow, way: &mut Way<'_>) -> io::Result<()> {
        if let Some(pipe) = self.pipes.take() {
            let to = Fd(pipe.writer.as_raw_fd());
            let entry = opcode::Splice::new(way.from, -1, to, -1, PIPE_BYTES)
                .flags(SPLICE_FLAGS)
                .build()
                // What follows is done even when this brought less than it might have.
                .flags(Flags::IO_HARDLINK);
            // SAFETY: it points to nothing.
            unsafe { way.push(FILL, entry) }?;
            flow.store = Store::Pipe { pipe, holds: 0 };
            return Self::drain(flow, way);
        }
        let mut bytes = vec![0; self.buffer_bytes];
        let entry = opcode::Recv::new(way.from, bytes.as_mut_ptr(), bytes.len() as u32).build();
        // SAFETY: the flow has the buffer, and is released after everything has completed.
        unsafe { way.push(FILL, entry) }?;
        flow.store = Store::Buffer {
            bytes,
            start: 0,
            end: 0,
        };
        Ok(())
    }

    fn drain(flow: &Flow, way: &mut Way<'_>) -> io::Result<()> {
        match &flow.store {
            Store::Nothing => Ok(()),
            Store::Pipe { pipe, .. } => {
                let from = Fd(pipe.reader.as_raw_fd());
                let entry = opcode::Splice::new(from, -1, way.to, -1, PIPE_BYTES)
                    .flags(SPLICE_FLAGS)
                    .build();
                // SAFETY: it points to nothing.
                unsafe { way.push(DRAIN, entry) }
            }
            Store::Buffer { bytes, start, end } => {
                let bytes = &bytes[*start..*end];
                let entry = opcode::Send::new(way.to, bytes.as_ptr(), bytes.len() as u32)
                    .flags(SendFlags::NOSIGNAL.bits().cast_signed())
                    .build();
                // SAFETY: as above; and nothing writes into the buffer now.
                unsafe { way.push(DRAIN, entry) }
            }
        }
    }
}

impl Flow {
    fn filled(&mut self, length: usize) {
        match &mut self.store {
            Store::Nothing => {}
            Store::Pipe { holds, .. } => *holds = length,
            Store::Buffer { end, .. } => *end = length,
        }
    }

    /// Takes off what was sent, and says what is left.
    fn drained(&mut self, length: usize) -> usize {
        match &mut self.store {
            Store::Nothing => 0,
            Store::Pipe { holds, .. } => {
                *holds -= length.min(*holds);
                *holds
            }
            Store::Buffer { start, end, .. } => {
                *start += length;
                *end - *start
            }
        }
    }
}

impl Mover for Splice {
    type Flow = Flow;
    const BLOCKING: bool = false;

    fn new(relay: &'static Relay, queue: &mut Queue) -> io::Result<Self> {
        // Otherwise workers run on any CPU, also on those that this process was kept off.
        queue.submitter().register_iowq_aff(&own_cpus()?)?;
        // Of both kinds: for files, and for what may wait for ever, as sockets.
        queue
            .submitter()
            .register_iowq_max_workers(&mut [WORKERS, WORKERS])?;
        Ok(Self {
            pipes: Pipes {
                spare: Vec::new(),
                left: relay.pool_files / relay.threads / Pipe::FILES,
            },
            buffer_bytes: relay.buffer_bytes,
        })
    }

    fn start(&mut self, _: &mut Flow, way: &mut Way<'_>) -> io::Result<()> {
        Self::poll(way.from, READABLE, PollFlags::IN, way)
    }

    fn completed(
        &mut self,
        flow: &mut Flow,
        way: &mut Way<'_>,
        operation: u8,
        completion: &cqueue::Entry,
    ) -> io::Result<Progress> {
        match operation {
            READABLE => {
                outcome(completion)?;
                self.fill(flow, way)?;
            }
            WRITABLE => {
                outcome(completion)?;
                Self::drain(flow, way)?;
            }
            FILL => {
                let length = moved(completion)?;
                flow.source_ended = length == Some(0);
                flow.filled(length.unwrap_or(0));
                match (&flow.store, length) {
                    (Store::Buffer { .. }, Some(1..)) => Self::drain(flow, way)?,
                    (Store::Buffer { .. }, _) => return self.next(flow, way),
                    _ => {}
                }
            }
            _ => {
                let length = moved(completion)?.unwrap_or(0);
                if flow.drained(length) > 0 {
                    Self::poll(way.to, WRITABLE, PollFlags::OUT, way)?;
                } else {
                    return self.next(flow, way);
                }
            }
        }
        Ok(Progress::Going)
    }

    /// A connection that was reset may have left bytes in a pipe of which nobody was told.
    fn release(&mut self, flow: Flow, _: &mut Queue) -> io::Result<()> {
        if let Store::Pipe { pipe, .. } = flow.store {
            self.pipes.close(pipe);
        }
        Ok(())
    }
}

impl Splice {
    /// Nothing is left of what was taken in.
    fn next(&mut self, flow: &mut Flow, way: &mut Way<'_>) -> io::Result<Progress> {
        if let Store::Pipe { pipe, .. } = std::mem::take(&mut flow.store) {
            self.pipes.give(pipe);
        }
        if flow.source_ended {
            return Ok(Progress::Ended);
        }
        Self::poll(way.from, READABLE, PollFlags::IN, way)?;
        Ok(Progress::Going)
    }
}

struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
}

impl Pipe {
    const FILES: usize = 2;

    fn new() -> Result<Self, Errno> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Refused beyond pipe-max-size and pipe-user-pages-soft: then it is smaller, and
        // takes more operations.
        let _ = fcntl_setpipe_size(&writer, PIPE_BYTES as usize);
        Ok(Self { reader, writer })
    }
}

/// A ring's pipes. One with bytes in it is closed, not used again: they would go to the
/// wrong peer.
struct Pipes {
    spare: Vec<Pipe>,
    /// How many more may be made.
    left: usize,
}

impl Pipes {
    fn take(&mut self) -> Option<Pipe> {
        if let Some(pipe) = self.spare.pop() {
            return Some(pipe);
        }
        self.left = self.left.checked_sub(1)?;
        match Pipe::new() {
            Ok(pipe) => Some(pipe),
            Err(_) => {
                self.left += 1;
                None
            }
        }
    }

    /// Takes back one that is empty.
    fn give(&mut self, pipe: Pipe) {
        self.spare.push(pipe);
    }

    fn close(&mut self, pipe: Pipe) {
        drop(pipe);
        self.left += 1;
    }
}

/// Bytes; `None` if the socket was not ready, or the pipe.
fn moved(completion: &cqueue::Entry) -> io::Result<Option<usize>> {
    match outcome(completion) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.raw_os_error() == Some(Errno::AGAIN.raw_os_error()) => Ok(None),
        Err(error) => Err(error),
    }
}

fn own_cpus() -> io::Result<libc::cpu_set_t> {
    // SAFETY: a set of zeros is one of no CPU.
    let mut cpus: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: there is room for a set; 0 is the calling thread.
    match unsafe { libc::sched_getaffinity(0, size_of_val(&cpus), &raw mut cpus) } {
        0 => Ok(cpus),
        _ => Err(io::Error::last_os_error()),
    }
}
