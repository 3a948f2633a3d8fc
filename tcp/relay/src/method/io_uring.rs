//! `recv` and `send` on io_uring, the buffers picked by the kernel when bytes are there.
//!
//! A direction either receives or sends, so it holds one buffer at most, none while
//! it waits for bytes, and a destination that takes none stops its source.

mod buffers;

use std::io;

use io_uring::squeue::Flags;
use io_uring::{cqueue, opcode};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use crate::method::{Files, Method};
use crate::relay::Relay;
use crate::rings::{self, Mover, Progress, Queue, Way, outcome};

use buffers::{BufferId, Buffers, GROUP};

pub const METHOD: Method = Method {
    name: "io_uring",
    about: "io_uring: recv into provided buffers, send",
    files: Files::Sockets,
    run: rings::run::<Copy>,
};

const RECV: u8 = 0;
const SEND: u8 = 1;

/// `IORING_RECVSEND_POLL_FIRST`: there is nothing yet, so don't try.
const POLL_FIRST: u16 = 1;

struct Copy {
    buffers: Buffers,
}

/// The bytes that are being sent.
#[derive(Default)]
struct Flow {
    buffer: Option<BufferId>,
    sent: usize,
    filled: usize,
    /// More than fitted into the buffer was there.
    more: bool,
}

impl Copy {
    fn receive(flow: &Flow, way: &mut Way<'_>) -> io::Result<()> {
        let entry = opcode::Recv::new(way.from, std::ptr::null_mut(), 0)
            .buf_group(GROUP)
            .ioprio(if flow.more { 0 } else { POLL_FIRST })
            .build()
            .flags(Flags::BUFFER_SELECT);
        // SAFETY: the buffer is one of the group's, which live as long as the ring.
        unsafe { way.push(RECV, entry) }
    }

    fn send(&self, flow: &Flow, buffer: BufferId, way: &mut Way<'_>) -> io::Result<()> {
        let bytes = &self.buffers.bytes(buffer)[flow.sent..flow.filled];
        // All of it: the ring waits for room, and the buffer is asked for once.
        let flags = SendFlags::NOSIGNAL.bits() | RecvFlags::WAITALL.bits();
        let entry = opcode::Send::new(way.to, bytes.as_ptr(), bytes.len() as u32)
            .flags(flags as i32)
            .build();
        // SAFETY: the buffer goes back to the group only after the send has completed.
        unsafe { way.push(SEND, entry) }
    }
}

impl Mover for Copy {
    type Flow = Flow;
    const BLOCKING: bool = true;

    fn new(relay: &'static Relay, queue: &mut Queue) -> io::Result<Self> {
        let buffers = Buffers::register(queue, relay.buffer_bytes)?;
        Ok(Self { buffers })
    }

    fn start(&mut self, flow: &mut Flow, way: &mut Way<'_>) -> io::Result<()> {
        Self::receive(flow, way)
    }

    fn completed(
        &mut self,
        flow: &mut Flow,
        way: &mut Way<'_>,
        operation: u8,
        completion: &cqueue::Entry,
    ) -> io::Result<Progress> {
        if operation == RECV {
            flow.buffer = self.buffers.picked(completion);
            let result = outcome(completion);
            if out_of_buffers(&result) {
                self.buffers.add();
                Self::receive(flow, way)?;
                return Ok(Progress::Going);
            }
            flow.filled = result?;
            flow.sent = 0;
            flow.more = cqueue::sock_nonempty(completion.flags());
        } else {
            flow.sent += outcome(completion)?;
        }
        match flow.buffer {
            Some(buffer) if flow.sent < flow.filled => self.send(flow, buffer, way)?,
            buffer => {
                if let Some(buffer) = buffer {
                    self.buffers.put_back(buffer);
                    flow.buffer = None;
                }
                if flow.filled == 0 {
                    return Ok(Progress::Ended);
                }
                Self::receive(flow, way)?;
            }
        }
        Ok(Progress::Going)
    }

    fn abandoned(&mut self, _: &mut Flow, completion: &cqueue::Entry) {
        if let Some(buffer) = self.buffers.picked(completion) {
            self.buffers.put_back(buffer);
        }
    }

    fn release(&mut self, flow: Flow, _: &mut Queue) -> io::Result<()> {
        if let Some(buffer) = flow.buffer {
            self.buffers.put_back(buffer);
        }
        Ok(())
    }
}

fn out_of_buffers(result: &io::Result<usize>) -> bool {
    let wanted = Some(Errno::NOBUFS.raw_os_error());
    result
        .as_ref()
        .is_err_and(|error| error.raw_os_error() == wanted)
}
