//! What methods that splice share: a direction's bytes in a pipe or, where there is no
//! pipe to be had, in a buffer. A connection is slower then, and not lost.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::epoll::buffered::{Buffered, Bytes};
use crate::epoll::pipes::{Filled, Pipe, Pipes};
use crate::epoll::{Mover, Read, Written};
use crate::method::unix_syscall::RecvSend;
use crate::relay::Relay;

/// Where the bytes of a direction are.
#[derive(Default)]
pub enum Store {
    #[default]
    Nothing,
    Pipe(Pipe),
    Buffer(Bytes),
}

impl Store {
    /// How many bytes it holds.
    pub fn length(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Pipe(pipe) => pipe.holds,
            Self::Buffer(bytes) => bytes.as_slice().len(),
        }
    }
}

pub struct Spliced {
    pipes: Pipes,
    copying: Buffered<RecvSend>,
}

impl Spliced {
    /// For one thread, with its part of the files that pools may have.
    pub fn new(relay: &Relay, pipe_bytes: usize) -> Self {
        let most = relay.pool_files / relay.threads / Pipe::FILES;
        Self::with(Pipes::new(pipe_bytes, most), relay.buffer_bytes)
    }

    fn with(pipes: Pipes, buffer_bytes: usize) -> Self {
        Self {
            pipes,
            copying: Buffered::new(buffer_bytes),
        }
    }

    /// Reads into a pipe, if there is one.
    pub fn read_piped(&mut self, source: BorrowedFd<'_>, store: &mut Store) -> Result<Read, Errno> {
        let Some(mut pipe) = self.pipes.take() else {
            return self.read_copied(source, store);
        };
        let filled = pipe.fill(source);
        let read = match filled {
            Ok(Filled::Bytes) => Read::Bytes,
            Ok(Filled::LastBytes) => Read::LastBytes,
            Ok(Filled::WouldBlock) => Read::WouldBlock,
            Ok(Filled::End) => Read::End,
            Err(error) => {
                self.pipes.give(pipe);
                return Err(error);
            }
        };
        if pipe.holds > 0 {
            *store = Store::Pipe(pipe);
        } else {
            self.pipes.give(pipe);
        }
        Ok(read)
    }

    /// Reads into a buffer.
    pub fn read_copied(
        &mut self,
        source: BorrowedFd<'_>,
        store: &mut Store,
    ) -> Result<Read, Errno> {
        let mut bytes = Bytes::default();
        let read = self.copying.read(source, &mut bytes)?;
        if matches!(read, Read::Bytes | Read::LastBytes) {
            *store = Store::Buffer(bytes);
        }
        Ok(read)
    }

    pub fn write(
        &mut self,
        store: &mut Store,
        destination: BorrowedFd<'_>,
    ) -> Result<Written, Errno> {
        let written = match store {
            Store::Nothing => Written::All,
            Store::Buffer(bytes) => self.copying.write(bytes, destination)?,
            Store::Pipe(pipe) => {
                pipe.drain(destination)?;
                if pipe.holds > 0 {
                    Written::Part
                } else {
                    Written::All
                }
            }
        };
        if written == Written::All {
            self.discard(std::mem::take(store));
        }
        Ok(written)
    }

    pub fn discard(&mut self, store: Store) {
        match store {
            Store::Nothing => {}
            Store::Buffer(bytes) => self.copying.discard(bytes),
            Store::Pipe(pipe) => self.pipes.give(pipe),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn without_a_pipe_bytes_go_through_a_buffer() {
        let (mut sender, source) = UnixStream::pair().unwrap();
        let (destination, mut receiver) = UnixStream::pair().unwrap();
        let mut spliced = Spliced::with(Pipes::new(64 << 10, 1), 32 << 10);
        let (mut first, mut second) = (Store::Nothing, Store::Nothing);
        for (store, is_piped) in [(&mut first, true), (&mut second, false)] {
            sender.write_all(b"bytes").unwrap();
            let read = spliced.read_piped(source.as_fd(), store);
            assert_eq!(read, Ok(Read::LastBytes));
            assert_eq!(matches!(store, Store::Pipe(_)), is_piped);
        }
        for mut store in [first, second] {
            let written = spliced.write(&mut store, destination.as_fd());
            assert_eq!((written, store.length()), (Ok(Written::All), 0));
        }
        let mut received = [0; 10];
        receiver.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"bytesbytes");
    }
}
