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

use crate::epoll::pool::Pool;

/// Neither end may block, and pages are to be moved, not copied.
const FLAGS: SpliceFlags = SpliceFlags::NONBLOCK.union(SpliceFlags::MOVE);
/// Spliced at once at most. Measured on streams: 64 KiB take a third more CPU a byte for
/// more calls, 512 KiB and more as much again, which is then no longer in the cache.
const MOST_BYTES: usize = 256 << 10;
/// Of the kernel's pages. A slot of a pipe takes a page, or a part of one of any length.
const PAGE_BYTES: usize = 4096;

pub struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
    /// One slot a page of these bytes.
    size: usize,
    /// Bytes in it.
    pub holds: usize,
}

pub struct Pipes {
    pool: Pool<Pipe>,
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
            pool: Pool::new(most),
            size,
        }
    }

    /// An empty one; `None` when there are as many as there may be, or the system gives
    /// no more: then a connection has to do without.
    pub fn take(&mut self) -> Option<Pipe> {
        self.pool.take(|| Pipe::new(self.size).ok())
    }

    /// Takes one back, or closes it, if there are bytes in it.
    pub fn give(&mut self, pipe: Pipe) {
        if pipe.holds == 0 {
            self.pool.give(pipe);
        } else {
            self.pool.lose();
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
        let most = self.size.min(MOST_BYTES);
        match splice(source, None, &self.writer, None, most, FLAGS) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    /// What one end sends, the other, which does not block, receives.
    fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (receiver, _) = listener.accept().unwrap();
        sender.set_nodelay(true).unwrap();
        receiver.set_nonblocking(true).unwrap();
        (sender, receiver)
    }

    #[test]
    fn a_pipe_whose_slots_are_full_does_not_say_that_the_source_is_empty() {
        let (mut sender, source) = connection();
        let (destination, mut receiver) = connection();
        let mut pipe = Pipe::new(PAGE_BYTES).unwrap();
        // One segment goes into its one slot; the others stay in the socket.
        let sent: Vec<u8> = (0..100).collect();
        for byte in &sent {
            sender.write_all(&[*byte]).unwrap();
        }
        let mut fills = 0;
        loop {
            match pipe.fill(source.as_fd()).unwrap() {
                Filled::WouldBlock => break,
                filled => assert_eq!(filled, Filled::Bytes, "after {fills} fills"),
            }
            fills += 1;
            pipe.drain(destination.as_fd()).unwrap();
            assert_eq!(pipe.holds, 0);
        }
        assert!(fills > 1, "all of it went into one slot: nothing was tried");
        drop(destination);
        receiver.set_nonblocking(false).unwrap();
        let mut received = Vec::new();
        receiver.read_to_end(&mut received).unwrap();
        assert_eq!(received, sent);
    }

    #[test]
    fn fewer_bytes_than_slots_are_the_last_and_then_comes_the_end() {
        let (mut sender, source) = connection();
        let mut pipe = Pipe::new(16 * PAGE_BYTES).unwrap();
        sender.write_all(b"fifteen is less").unwrap();
        assert_eq!(pipe.fill(source.as_fd()), Ok(Filled::LastBytes));
        let (destination, _receiver) = connection();
        pipe.drain(destination.as_fd()).unwrap();
        drop(sender);
        assert_eq!(pipe.fill(source.as_fd()), Ok(Filled::End));
    }

    #[test]
    fn a_pipe_with_bytes_in_it_is_not_used_again() {
        let (mut sender, source) = connection();
        sender.write_all(b"of another").unwrap();
        let mut pipes = Pipes::new(PAGE_BYTES, 1);
        let mut pipe = pipes.take().unwrap();
        pipe.fill(source.as_fd()).unwrap();
        pipes.give(pipe);
        let pipe = pipes.take().unwrap();
        let left = rustix::io::read(&pipe.reader, &mut [0; 16]);
        assert_eq!((pipe.holds, left), (0, Err(Errno::AGAIN)));
        assert!(pipes.take().is_none(), "one more than there may be");
        pipes.give(pipe);
        assert!(pipes.take().is_some());
    }

    #[test]
    fn a_pipe_that_may_not_be_so_large_stays_as_it_is() {
        let pipe = Pipe::new(usize::MAX).unwrap();
        assert_eq!(fcntl_getpipe_size(&pipe.writer), Ok(pipe.size));
    }
}
