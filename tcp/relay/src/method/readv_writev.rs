//! `readv` into a chain of short buffers and `writev` of what is in it, on epoll: a short
//! message takes one of them, a long one all.

use std::array;
use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Range;
use std::os::fd::BorrowedFd;

use rustix::io::{Errno, readv, writev};

use crate::epoll::{self, Mover, Read, Written};
use crate::method::{Files, Method};
use crate::relay::Relay;

pub const METHOD: Method = Method {
    name: "readv_writev",
    about: "readv and writev with a chain of short buffers, on epoll",
    files: Files::Sockets,
    run,
};

/// Buffers that a direction fills at most. Together they are as long as one of the others is.
const LINKS: usize = 4;
/// Kept for the next at most, a thread.
const SPARE_BYTES: usize = 8 << 20;

fn run(relay: &'static Relay) -> io::Result<()> {
    let link_bytes = relay.buffer_bytes.div_ceil(LINKS);
    epoll::run(relay, move || ReadvWritev {
        spare: Vec::new(),
        link_bytes,
    })
}

struct ReadvWritev {
    spare: Vec<Box<[u8]>>,
    link_bytes: usize,
}

/// Those that hold nothing are empty. `held` counts through all of them.
#[derive(Default)]
struct Chain {
    links: [Box<[u8]>; LINKS],
    held: Range<usize>,
}

impl ReadvWritev {
    fn take(&mut self) -> Box<[u8]> {
        let link_bytes = self.link_bytes;
        self.spare
            .pop()
            .unwrap_or_else(|| vec![0; link_bytes].into())
    }

    /// Takes back the links from number `first` on.
    fn give(&mut self, links: &mut [Box<[u8]>]) {
        for link in links.iter_mut().map(std::mem::take) {
            if !link.is_empty() && self.spare.len() < SPARE_BYTES / self.link_bytes {
                self.spare.push(link);
            }
        }
    }
}

impl Mover for ReadvWritev {
    type Held = Chain;

    fn read(&mut self, source: BorrowedFd<'_>, held: &mut Chain) -> Result<Read, Errno> {
        held.links = array::from_fn(|_| self.take());
        let mut room = held.links.each_mut().map(|link| IoSliceMut::new(link));
        let (length, read) = match readv(source, &mut room) {
            Ok(0) => (0, Ok(Read::End)),
            // A read that leaves room has left nothing behind.
            Ok(length) if length < LINKS * self.link_bytes => (length, Ok(Read::LastBytes)),
            Ok(length) => (length, Ok(Read::Bytes)),
            Err(Errno::AGAIN) => (0, Ok(Read::WouldBlock)),
            Err(error) => (0, Err(error)),
        };
        held.held = 0..length;
        self.give(&mut held.links[length.div_ceil(self.link_bytes)..]);
        read
    }

    fn write(&mut self, held: &mut Chain, destination: BorrowedFd<'_>) -> Result<Written, Errno> {
        let mut slices = [IoSlice::new(&[]); LINKS];
        let mut used = 0;
        for (nth, link) in held.links.iter().enumerate() {
            let start = nth * self.link_bytes;
            let range = held.held.start.max(start)..held.held.end.min(start + link.len());
            if !range.is_empty() {
                slices[used] = IoSlice::new(&link[range.start - start..range.end - start]);
                used += 1;
            }
        }
        match writev(destination, &slices[..used]) {
            Ok(length) => held.held.start += length,
            Err(Errno::AGAIN) => {}
            Err(error) => return Err(error),
        }
        if !held.held.is_empty() {
            return Ok(Written::Part);
        }
        self.give(&mut held.links);
        Ok(Written::All)
    }

    fn discard(&mut self, mut held: Chain) {
        self.give(&mut held.links);
    }
}
