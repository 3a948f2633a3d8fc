//! Copying while messages are short and splicing while bytes stream, on epoll: each
//! direction of a connection for itself, by what its last reads have brought.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::epoll::spliced::{Spliced, Store};
use crate::epoll::{self, Mover, Read, Written};
use crate::method::{Files, Method};
use crate::relay::Relay;

pub const METHOD: Method = Method {
    name: "adaptive",
    about: "recv and send, moving to splice through a 1 MiB pipe for streams, on epoll",
    files: Files::SocketsAndPool,
    run,
};

const PIPE_BYTES: usize = 1 << 20;
/// So many buffers filled one after another are a stream.
const FULL_READS: u8 = 4;
/// So many reads one after another that a buffer would have taken are none any more.
const SHORT_READS: u8 = 4;

fn run(relay: &'static Relay) -> io::Result<()> {
    epoll::run(relay, || Adaptive {
        spliced: Spliced::new(relay, PIPE_BYTES),
        buffer_bytes: relay.buffer_bytes,
    })
}

struct Adaptive {
    spliced: Spliced,
    buffer_bytes: usize,
}

#[derive(Default)]
struct Held {
    store: Store,
    streams: bool,
    /// How many reads in a row spoke for the other way.
    against: u8,
}

impl Mover for Adaptive {
    type Held = Held;

    fn read(&mut self, source: BorrowedFd<'_>, held: &mut Held) -> Result<Read, Errno> {
        let read = if held.streams {
            self.spliced.read_piped(source, &mut held.store)?
        } else {
            self.spliced.read_copied(source, &mut held.store)?
        };
        let length = held.store.length();
        if length > 0 {
            let was_long = length >= self.buffer_bytes;
            if was_long == held.streams {
                held.against = 0;
            } else {
                held.against += 1;
            }
            let most = if held.streams {
                SHORT_READS
            } else {
                FULL_READS
            };
            if held.against == most {
                held.streams = !held.streams;
                held.against = 0;
            }
        }
        Ok(read)
    }

    fn write(&mut self, held: &mut Held, destination: BorrowedFd<'_>) -> Result<Written, Errno> {
        self.spliced.write(&mut held.store, destination)
    }

    fn discard(&mut self, held: Held) {
        self.spliced.discard(held.store);
    }
}
