//! `send` with `MSG_ZEROCOPY` from pooled buffers: the kernel sends from the buffer itself,
//! and says on the socket's error queue when it has no more use for it.
//!
//! A buffer goes back to the pool when every send from it has completed, not before; that
//! of a connection that is reset meanwhile never does. Small sends are copied, as pinning
//! pages costs more. So are those for which the kernel has no room to tell of later.

mod buffer;
mod completions;

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Once};

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

use crate::method::{Files, Method};
use crate::relay::Relay;
use crate::watch::{self, Next, Sockets, Watcher};

use buffer::{Buffer, Pool};

pub const METHOD: Method = Method {
    name: "zerocopy",
    about: "recv, and send with MSG_ZEROCOPY from 10 KiB on, on epoll",
    files: Files::Sockets,
    run,
};

/// The kernel's documentation: "generally only effective at writes over around 10 KB".
const LEAST_BYTES: usize = 10 << 10;
/// A direction with so many sends that have not completed does not read.
const MOST_SENDS: usize = 16;
/// After so many reads the others have their turn.
const READS_A_TURN: usize = 16;

const WATCHED: EventFlags = EventFlags::IN
    .union(EventFlags::OUT)
    .union(EventFlags::RDHUP);
const MSG_ZEROCOPY: SendFlags = SendFlags::from_bits_retain(libc::MSG_ZEROCOPY as u32);

fn run(relay: &'static Relay) -> io::Result<()> {
    let copies = (0..relay.threads).map(|_| Copy(Pool::new(relay.buffer_bytes)));
    watch::run(relay, copies.collect())
}

struct Copy(Pool);

struct Pair {
    /// From the client to the upstream, and back.
    flows: [Flow; 2],
    /// The client's socket, and the upstream's: each takes, or may take, bytes.
    writable: [bool; 2],
}

#[derive(Default)]
struct Flow {
    /// What was read, as far as not all of it was sent.
    held: Option<Arc<Buffer>>,
    start: usize,
    end: usize,
    /// Sends that were not told to have completed, by number from `first` on; among
    /// them are some that were, out of order.
    sends: VecDeque<Option<Arc<Buffer>>>,
    first: u32,
    /// The source has, or may have, something.
    readable: bool,
    /// The source's end is behind what is still to read.
    peer_ended: bool,
    ended: bool,
}

impl Flow {
    fn go_on(
        &mut self,
        sockets: &Sockets,
        side: usize,
        writable: &mut bool,
        pool: &mut Pool,
    ) -> io::Result<Next> {
        for _ in 0..READS_A_TURN {
            if !self.send(sockets, side, pool)? {
                *writable = false;
            }
            if self.ended && self.sends.is_empty() {
                return Ok(Next::Ended);
            }
            let full = self.sends.len() >= MOST_SENDS;
            if self.ended || !self.readable || !*writable || full {
                return Ok(Next::Waiting);
            }
            self.read(sockets, side, pool)?;
        }
        Ok(Next::Again)
    }

    /// Sends what is held; not all of it, if the destination takes no more.
    fn send(&mut self, sockets: &Sockets, side: usize, pool: &mut Pool) -> io::Result<bool> {
        let Some(buffer) = &self.held else {
            return Ok(true);
        };
        let destination = sockets.get(1 - side);
        let mut may_pin = true;
        while self.start < self.end {
            let bytes = &buffer.bytes()[self.start..self.end];
            let pins = may_pin && bytes.len() >= LEAST_BYTES;
            let flags = if pins {
                MSG_ZEROCOPY
            } else {
                SendFlags::empty()
            };
            match send(destination, bytes, flags | SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    self.start += sent;
                    if pins {
                        self.sends.push_back(Some(buffer.clone()));
                    }
                }
                // No room for more to be told (net.core.optmem_max).
                Err(Errno::NOBUFS) if pins => may_pin = false,
                Err(Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(buffer) = self.held.take() {
            pool.give(buffer);
        }
        Ok(true)
    }

    fn read(&mut self, sockets: &Sockets, side: usize, pool: &mut Pool) -> io::Result<()> {
        let mut buffer = pool.take()?;
        let Some(room) = Arc::get_mut(&mut buffer) else {
            return Err(io::Error::other("a buffer of the pool is in use"));
        };
        let (read, _) = match recv(sockets.get(side), room.bytes_mut(), RecvFlags::empty()) {
            Ok(read) => read,
            Err(Errno::AGAIN) => {
                self.readable = false;
                pool.give(buffer);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        if read == 0 {
            self.ended = true;
            pool.give(buffer);
            shutdown(sockets.get(1 - side), Shutdown::Write)?;
        } else {
            // A read that leaves room has left nothing behind but, perhaps, the end.
            self.readable = read == buffer.bytes().len() || self.peer_ended;
            (self.held, self.start, self.end) = (Some(buffer), 0, read);
        }
        Ok(())
    }

    /// Puts back the buffers of sends that have completed. Whether any have.
    fn complete(&mut self, sockets: &Sockets, side: usize, pool: &mut Pool) -> io::Result<bool> {
        let mut any = false;
        // Nothing is left to be told when no send is left.
        while !self.sends.is_empty() {
            let Some(completed) = completions::next(sockets.get(1 - side))? else {
                break;
            };
            any = true;
            if completed.copied {
                say_that_it_copies();
            }
            for number in completed.numbers() {
                let index = number.wrapping_sub(self.first) as usize;
                if let Some(buffer) = self.sends.get_mut(index).and_then(Option::take) {
                    pool.give(buffer);
                }
            }
            while let Some(None) = self.sends.front() {
                self.sends.pop_front();
                self.first = self.first.wrapping_add(1);
            }
        }
        Ok(any)
    }
}

impl Watcher for Copy {
    type Pair = Pair;

    fn connected(&mut self, sockets: &Sockets) -> io::Result<(Pair, Next)> {
        for side in 0..2 {
            completions::ask_for_them(sockets.get(side))?;
            sockets.watch(side, WATCHED)?;
        }
        let pair = Pair {
            flows: Default::default(),
            writable: [true; 2],
        };
        Ok((pair, Next::Waiting))
    }

    fn event(
        &mut self,
        pair: &mut Pair,
        sockets: &Sockets,
        side: usize,
        flags: EventFlags,
    ) -> io::Result<Next> {
        let Pair { flows, writable } = pair;
        // Completions are told as an error. With an error they come together too.
        if flags.contains(EventFlags::ERR) {
            let any = flows[1 - side].complete(sockets, 1 - side, &mut self.0)?;
            if !any || flags.contains(EventFlags::HUP) {
                socket_error(sockets.get(side))??;
            }
        }
        let flow = &mut flows[side];
        flow.peer_ended |= flags.intersects(EventFlags::RDHUP | EventFlags::HUP);
        flow.readable |= flow.peer_ended || flags.contains(EventFlags::IN);
        writable[side] |= flags.contains(EventFlags::OUT);
        self.again(pair, sockets)
    }

    fn again(&mut self, pair: &mut Pair, sockets: &Sockets) -> io::Result<Next> {
        let Pair { flows, writable } = pair;
        let mut next = Next::Ended;
        for (side, flow) in flows.iter_mut().enumerate() {
            next = match (
                flow.go_on(sockets, side, &mut writable[1 - side], &mut self.0)?,
                next,
            ) {
                (Next::Again, _) | (_, Next::Again) => Next::Again,
                (Next::Ended, Next::Ended) => Next::Ended,
                _ => Next::Waiting,
            };
        }
        Ok(next)
    }

    /// What has not completed is unmapped: the kernel keeps its pages for as long as it
    /// sends from them, and nobody else writes into them.
    fn release(&mut self, pair: Pair) {
        drop(pair);
    }
}

fn say_that_it_copies() {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        eprintln!(
            "relay: the kernel says that it copied what it was to send without (SO_EE_CODE_ZEROCOPY_COPIED), as it does on loopback"
        );
    });
}
