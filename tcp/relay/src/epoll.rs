//! What the methods on epoll share: an edge-triggered loop a thread. How bytes move
//! is a [`Mover`]'s; when they can, and what the ends of a stream mean, is told here.

pub mod buffered;
mod pair;
pub mod pipes;
pub mod pool;
mod shard;
pub mod spliced;

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use rustix::io::Errno;
use rustix::net::SocketFlags;

use crate::accept::accept_on_threads;
use crate::epoll::shard::{Inbox, Shard};
use crate::relay::Relay;

/// Moves bytes from one socket to another. There is one a thread, with its pools.
pub trait Mover {
    /// The bytes that one direction of a connection has read and not written yet. The
    /// default has none, and holds no buffer, pipe or file: most connections are idle.
    type Held: Default;

    /// Reads once what has arrived, when nothing is held.
    fn read(&mut self, source: BorrowedFd<'_>, held: &mut Self::Held) -> Result<Read, Errno>;

    /// Writes what is held, as far as the destination takes it.
    fn write(
        &mut self,
        held: &mut Self::Held,
        destination: BorrowedFd<'_>,
    ) -> Result<Written, Errno>;

    /// Takes back what a connection that is reset still held. Pipes and files with
    /// bytes in them must not be used again.
    fn discard(&mut self, held: Self::Held);
}

/// What a read has brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// Bytes, and perhaps there are more.
    Bytes,
    /// Bytes, and there were no more: the next that arrive make an event.
    LastBytes,
    /// Nothing: what arrives makes an event.
    WouldBlock,
    /// The source has ended.
    End,
}

/// What a write has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    All,
    /// Something is still held: the destination makes an event when it takes more.
    Part,
}

/// Serves for ever, with a mover a thread.
pub fn run<M: Mover + 'static>(
    relay: &'static Relay,
    mover: impl Fn() -> M + Send + Sync + 'static,
) -> io::Result<()> {
    let mover = Arc::new(mover);
    let (ended, first_ended) = mpsc::channel();
    let mut inboxes = Vec::new();
    for _ in 0..relay.threads {
        let inbox = Arc::new(Inbox::new()?);
        inboxes.push(inbox.clone());
        let (mover, ended) = (mover.clone(), ended.clone());
        // The mover and all that it pools stay in the thread.
        let serve = move || ended.send(Shard::new(relay, inbox, mover()).and_then(Shard::run));
        thread::Builder::new().name("copy".into()).spawn(serve)?;
    }
    let accepted = AtomicUsize::new(0);
    accept_on_threads(relay, SocketFlags::NONBLOCK, move |client| {
        let turn = accepted.fetch_add(1, Ordering::Relaxed);
        inboxes[turn % inboxes.len()].put(client);
    })?;
    // A loop ends only when epoll fails; half a relay must not stay up then.
    first_ended.recv().map_err(io::Error::other)?
}
