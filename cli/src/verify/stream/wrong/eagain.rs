//! The trap that splice(2) sets: it answers `EAGAIN` when the source is empty, and
//! when the pipe is full. Who takes the second for the first, and is told of new bytes
//! only, waits for ever.

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};
use std::io;
use std::net::TcpStream;

const MOST_BYTES: usize = 64 << 10;

/// Copies as if there were only the first reason.
pub fn copy(from: &TcpStream, to: &TcpStream) -> io::Result<()> {
    let (reader, writer) = pipe_with(PipeFlags::NONBLOCK)?;
    let waiter = epoll::create(CreateFlags::CLOEXEC)?;
    let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    epoll::add(&waiter, from, EventData::new_u64(0), flags)?;
    let mut events = [epoll::Event {
        flags,
        data: EventData::new_u64(0),
    }];
    loop {
        epoll::wait(&waiter, &mut events, None)?;
        let mut held = 0;
        let has_ended = loop {
            match splice(from, None, &writer, None, MOST_BYTES, SpliceFlags::NONBLOCK) {
                Ok(0) => break true,
                Ok(length) => held += length,
                Err(Errno::AGAIN) => break false,
                Err(error) => return Err(error.into()),
            }
        };
        while held > 0 {
            held -= splice(&reader, None, to, None, held, SpliceFlags::empty())?;
        }
        if has_ended {
            return Ok(());
        }
    }
}
