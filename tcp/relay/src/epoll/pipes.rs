//! A thread's pipes. A direction has one only while bytes are in it: 5,000 connections
//! with a pipe each way would be 30,000 files, and most of them empty.
//!
//! A pipe that is given back is empty. One with bytes in it is closed: the next
//! connection would send them to the wrong peer.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::pipe::{
    PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice,
};

/// Neither end may block, and pages are to be moved, not copied.
const FLAGS: SpliceFlags = SpliceFlags::NONBLOCK.union(SpliceFlags::MOVE);
/// Of the kernel's pages. A slot of a pipe takes a page, or a part of one of any length.
const PAGE_BYTES: usize = 4096;

pub struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
    /// Bytes asked for at once, and one slot a page of them.
    size: usize,
    /// Bytes in it.
    pub holds: usize,
}

pub struct Pipes {
    spare: Vec<Pipe>,
    /// In use and spare.
    open: usize,
    most: usize,
    size: usize,
}

/// What [`Pipe::fill`] has brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filled {
    /// Bytes. The source may have more: a pipe is full when its slots are, whatever is in them.
    Bytes,
    /// Fewer bytes than the pipe has slots: not it was full, the source was empty.
    LastBytes,
    /// The source is empty. (The pipe, which is full just as quietly, was empty before.)
    WouldBlock,
    End,
}

impl Pipes {
    /// Pipes of `size` bytes each, `most` of them at a time.
    pub fn new(size: usize, most: usize) -> Self {
        Self {
            spare: Vec::new(),
            open: 0,
            most,
            size,
        }
    }

    /// An empty one; `None` when there are as many as there may be, or the system gives
    /// no more: then a connection has to do without.
    pub fn take(&mut self) -> Option<Pipe> {
        if let Some(pipe) = self.spare.pop() {
            return Some(pipe);
        }
        if self.open == self.most {
            return None;
        }
        let pipe = Pipe::new(self.size).ok()?;
        self.open += 1;
        Some(pipe)
    }

    /// Takes one back, or closes it, if there are bytes in it.
    pub fn give(&mut self, pipe: Pipe) {
        if pipe.holds == 0 {
            self.spare.push(pipe);
        } else {
            self.open -= 1;
        }
    }
}

impl Pipe {
    /// Its ends.
    pub const FILES: usize = 2;

    fn new(size: usize) -> Result<Self, Errno> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Refused beyond pipe-max-size, and to a user who has pipes of pipe-user-pages-soft
        // pages already. Then it stays as it is, smaller, and takes more calls.
        let size = match fcntl_setpipe_size(&writer, size) {
            Ok(_) => size,
            Err(_) => fcntl_getpipe_size(&writer)?,
        };
        Ok(Self {
            reader,
            writer,
            size,
            holds: 0,
        })
    }

    /// Takes in what has arrived at a socket. The pipe is empty, so that "would block" has one meaning.
    pub fn fill(&mut self, source: BorrowedFd<'_>) -> Result<Filled, Errno> {
        debug_assert_eq!(self.holds, 0);
        match splice(source, None, &self.writer, None, self.size, FLAGS) {
            Ok(0) => Ok(Filled::End),
            Ok(length) => {
                self.holds = length;
                if length < self.size / PAGE_BYTES {
                    Ok(Filled::LastBytes)
                } else {
                    Ok(Filled::Bytes)
                }
            }
            Err(Errno::AGAIN) => Ok(Filled::WouldBlock),
            Err(error) => Err(error),
        }
    }

    /// Gives a socket what it takes, until it takes no more or nothing is left. Only
    /// "would block" says that an event will come, so fewer bytes than asked for is no end.
    pub fn drain(&mut self, destination: BorrowedFd<'_>) -> Result<(), Errno> {
        while self.holds > 0 {
            match splice(&self.reader, None, destination, None, self.holds, FLAGS) {
                Ok(length) => self.holds -= length.min(self.holds),
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
