//! Connections on their way from the threads that accept to the ring that serves them.

use std::io;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

pub struct Inbox {
    streams: Mutex<Vec<TcpStream>>,
    /// Readable while there are some.
    bell: OwnedFd,
}

impl Inbox {
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            streams: Mutex::default(),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    pub fn put(&self, stream: TcpStream) {
        self.streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(stream);
        // Refused only when it was rung 2^64 times and not heard.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    pub fn take(&self) -> io::Result<Vec<TcpStream>> {
        match rustix::io::read(&self.bell, &mut [0_u8; 8]) {
            Ok(_) | Err(Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut streams))
    }
}

impl AsRawFd for Inbox {
    fn as_raw_fd(&self) -> RawFd {
        self.bell.as_raw_fd()
    }
}
