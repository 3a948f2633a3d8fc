//! A mover through one buffer, for methods that differ in the calls they read and write with.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::buffers::Buffers;
use crate::epoll::{Mover, Read, Written};

/// The two calls.
pub trait Calls {
    /// Reads behind what is in `buffer`, into the room that it has.
    fn read(source: BorrowedFd<'_>, buffer: &mut Vec<u8>) -> Result<usize, Errno>;

    fn write(destination: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno>;
}

pub struct Buffered<C> {
    buffers: Buffers,
    calls: std::marker::PhantomData<C>,
}

/// Bytes that were read; those before `start` have been written.
#[derive(Default)]
pub struct Bytes {
    buffer: Vec<u8>,
    start: usize,
}

impl Bytes {
    /// Those that have not been written.
    pub fn as_slice(&self) -> &[u8] {
        &self.buffer[self.start..]
    }
}

impl<C: Calls> Buffered<C> {
    pub fn new(buffer_bytes: usize) -> Self {
        Self {
            buffers: Buffers::new(buffer_bytes),
            calls: std::marker::PhantomData,
        }
    }
}

impl<C: Calls> Mover for Buffered<C> {
    type Held = Bytes;

    fn read(&mut self, source: BorrowedFd<'_>, held: &mut Bytes) -> Result<Read, Errno> {
        let mut buffer = self.buffers.take();
        let read = C::read(source, &mut buffer);
        let room = buffer.capacity() - buffer.len();
        let read = match read {
            Ok(0) => Ok(Read::End),
            // A read that leaves room has left nothing behind.
            Ok(_) if room > 0 => Ok(Read::LastBytes),
            Ok(_) => Ok(Read::Bytes),
            Err(Errno::AGAIN) => Ok(Read::WouldBlock),
            Err(error) => Err(error),
        };
        if matches!(read, Ok(Read::Bytes | Read::LastBytes)) {
            *held = Bytes { buffer, start: 0 };
        } else {
            self.buffers.give(buffer);
        }
        read
    }

    fn write(&mut self, held: &mut Bytes, destination: BorrowedFd<'_>) -> Result<Written, Errno> {
        match C::write(destination, held.as_slice()) {
            // Less than all was taken: the socket is full.
            Ok(length) => held.start += length,
            Err(Errno::AGAIN) => {}
            Err(error) => return Err(error),
        }
        if held.start < held.buffer.len() {
            return Ok(Written::Part);
        }
        self.discard(std::mem::take(held));
        Ok(Written::All)
    }

    fn discard(&mut self, held: Bytes) {
        if held.buffer.capacity() > 0 {
            self.buffers.give(held.buffer);
        }
    }
}
