//! `sendfile`, which sends from a file: between sockets there is none, so the bytes go
//! through a file in memory, on epoll.
//!
//! The kernel sends the pages of the file themselves, and they are in use until the
//! peer has read them, which nothing tells. So no page is written to twice: once all
//! is sent the file is cut to nothing, and gets new pages for what comes next.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create, sendfile};
use rustix::io::{Errno, pwrite};

use crate::epoll::buffered::{Buffered, Bytes};
use crate::epoll::pool::Pool;
use crate::epoll::{self, Mover, Read, Written};
use crate::method::unix_syscall::RecvSend;
use crate::method::{Files, Method};
use crate::relay::Relay;

pub const METHOD: Method = Method {
    name: "sendfile",
    about: "recv, pwrite to a pooled memfd and sendfile from it, on epoll",
    files: Files::SocketsAndPool,
    run,
};

fn run(relay: &'static Relay) -> io::Result<()> {
    epoll::run(relay, || Sendfile {
        reading: Buffered::new(relay.buffer_bytes),
        files: Pool::new(relay.pool_files / relay.threads),
    })
}

struct Sendfile {
    reading: Buffered<RecvSend>,
    /// Files of no length.
    files: Pool<OwnedFd>,
}

/// Where the bytes of a direction are.
#[derive(Default)]
enum Store {
    #[default]
    Nothing,
    File {
        file: OwnedFd,
        sent: u64,
        length: u64,
    },
    /// No file was to be had: they are sent from the buffer. Slower, but not lost.
    Buffer(Bytes),
}

impl Sendfile {
    /// A file with these bytes in it; `None` when there are as many as there may be, or
    /// the system gives no more.
    fn store(&mut self, bytes: &[u8]) -> Option<OwnedFd> {
        let file = self
            .files
            .take(|| memfd_create(c"relay", MemfdFlags::CLOEXEC).ok())?;
        let mut written = 0;
        while written < bytes.len() {
            match pwrite(&file, &bytes[written..], written as u64) {
                Ok(length) if length > 0 => written += length,
                _ => {
                    self.give(file);
                    return None;
                }
            }
        }
        Some(file)
    }

    fn give(&mut self, file: OwnedFd) {
        match ftruncate(&file, 0) {
            Ok(()) => self.files.give(file),
            Err(_) => self.files.lose(),
        }
    }
}

impl Mover for Sendfile {
    type Held = Store;

    fn read(&mut self, source: BorrowedFd<'_>, held: &mut Store) -> Result<Read, Errno> {
        let mut bytes = Bytes::default();
        let read = self.reading.read(source, &mut bytes)?;
        if matches!(read, Read::Bytes | Read::LastBytes) {
            *held = match self.store(bytes.as_slice()) {
                None => Store::Buffer(bytes),
                Some(file) => {
                    let length = bytes.as_slice().len() as u64;
                    self.reading.discard(bytes);
                    Store::File {
                        file,
                        sent: 0,
                        length,
                    }
                }
            };
        }
        Ok(read)
    }

    fn write(&mut self, held: &mut Store, destination: BorrowedFd<'_>) -> Result<Written, Errno> {
        match held {
            Store::Nothing => {}
            Store::Buffer(bytes) => {
                if self.reading.write(bytes, destination)? == Written::Part {
                    return Ok(Written::Part);
                }
            }
            Store::File { file, sent, length } => {
                while sent < length {
                    let rest = (*length - *sent) as usize;
                    // It moves `sent` on itself.
                    match sendfile(destination, &*file, Some(sent), rest) {
                        // The file has no more, though it was written to: it is not ours alone.
                        Ok(0) => return Err(Errno::IO),
                        Ok(_) => {}
                        Err(Errno::AGAIN) => return Ok(Written::Part),
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        self.discard(std::mem::take(held));
        Ok(Written::All)
    }

    fn discard(&mut self, held: Store) {
        match held {
            Store::Nothing => {}
            Store::Buffer(bytes) => self.reading.discard(bytes),
            Store::File { file, .. } => self.give(file),
        }
    }
}
