//! `splice` from one socket into a pipe, and from there into the other: the bytes stay
//! in the kernel's pages and are not copied.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::epoll::spliced::{Spliced, Store};
use crate::epoll::{self, Mover, Read, Written};
use crate::method::{Files, Method};
use crate::relay::Relay;

pub const METHOD: Method = Method {
    name: "splice",
    about: "splice through a pooled pipe, on epoll",
    files: Files::SocketsAndPool,
    run,
};

/// A pipe of so many bytes has a slot for each 4 KiB of them, and each slot takes a
/// piece of a segment, of any length. 64 hold more than a socket usually has to give.
const PIPE_BYTES: usize = 256 << 10;

fn run(relay: &'static Relay) -> io::Result<()> {
    epoll::run(relay, || Splice(Spliced::new(relay, PIPE_BYTES)))
}

struct Splice(Spliced);

impl Mover for Splice {
    type Held = Store;

    fn read(&mut self, source: BorrowedFd<'_>, held: &mut Store) -> Result<Read, Errno> {
        self.0.read_piped(source, held)
    }

    fn write(&mut self, held: &mut Store, destination: BorrowedFd<'_>) -> Result<Written, Errno> {
        self.0.write(held, destination)
    }

    fn discard(&mut self, held: Store) {
        self.0.discard(held);
    }
}
