//! Clients on their way from the threads that accept to the one that serves them.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

use crate::accept::Client;

pub struct Inbox {
    clients: Mutex<Vec<Client>>,
    /// Readable while there are some.
    filled: OwnedFd,
}

impl Inbox {
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            clients: Mutex::default(),
            filled: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    pub fn put(&self, client: Client) {
        self.clients
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(client);
        // Refused only when 2^64 clients wait.
        let _ = rustix::io::write(&self.filled, &1_u64.to_ne_bytes());
    }

    pub fn take(&self) -> io::Result<Vec<Client>> {
        match rustix::io::read(&self.filled, &mut [0_u8; 8]) {
            Ok(_) | Err(rustix::io::Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut clients))
    }
}

impl AsRawFd for Inbox {
    fn as_raw_fd(&self) -> RawFd {
        self.filled.as_raw_fd()
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.filled.as_fd()
    }
}
