//! One connection: two sockets, and what flows between them in each direction.
//!
//! A direction reads only when it holds nothing, so that a destination which does not
//! take bytes stops the reading of its source, and of nothing else.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};

use crate::accept::Seat;
use crate::epoll::{Mover, Read, Written};
use crate::relay::reset;

/// After so many reads the others have their turn, however fast this source is.
const READS_A_TURN: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Client,
    Upstream,
}

/// How a step has left a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It waits for an event.
    Waiting,
    /// There is more to read, of which no event will tell.
    Unread,
    /// Both directions have ended.
    Ended,
    /// One side was reset or failed: so is the other to be.
    Failed,
}

pub struct Pair<H> {
    client: Socket,
    upstream: Socket,
    /// From the client to the upstream.
    up: Flow<H>,
    /// From the upstream to the client.
    down: Flow<H>,
    /// Whether it is on the loop's list of those with more to read.
    pub listed: bool,
    /// Given back after the sockets are closed: fields are dropped in their order.
    _seat: Seat,
}

struct Socket {
    fd: OwnedFd,
    /// Has, or may have, something to read: bytes or their end.
    readable: bool,
    /// Takes, or may take, bytes. Not before it is connected.
    writable: bool,
    /// The peer has sent its last: the end is behind what is still to read.
    peer_ended: bool,
}

#[derive(Default)]
struct Flow<H> {
    held: H,
    holds: bool,
    ended: bool,
    /// The last turn was over before there was nothing to do.
    unread: bool,
}

impl Side {
    pub fn from_bit(bits: u64) -> Self {
        if bits & 1 == 0 {
            Self::Client
        } else {
            Self::Upstream
        }
    }

    pub fn bit(self) -> u64 {
        match self {
            Self::Client => 0,
            Self::Upstream => 1,
        }
    }
}

impl<H: Default> Pair<H> {
    /// Both sockets do not block. The upstream may still be connecting.
    pub fn new(client: OwnedFd, upstream: OwnedFd, seat: Seat) -> Self {
        let socket = |fd| Socket {
            fd,
            readable: false,
            writable: false,
            peer_ended: false,
        };
        Self {
            client: socket(client),
            upstream: socket(upstream),
            up: Flow::default(),
            down: Flow::default(),
            listed: false,
            _seat: seat,
        }
    }

    /// Takes in what epoll said of one side, and does what can be done then.
    pub fn event<M: Mover<Held = H>>(
        &mut self,
        side: Side,
        flags: EventFlags,
        mover: &mut M,
    ) -> State {
        if flags.contains(EventFlags::ERR) {
            return State::Failed;
        }
        let socket = match side {
            Side::Client => &mut self.client,
            Side::Upstream => &mut self.upstream,
        };
        if flags.intersects(EventFlags::RDHUP | EventFlags::HUP) {
            socket.peer_ended = true;
            socket.readable = true;
        }
        if flags.contains(EventFlags::IN) {
            socket.readable = true;
        }
        // A source waits for its destination with bytes held, or for it to be connected.
        let was_awaited = !socket.writable && flags.contains(EventFlags::OUT);
        socket.writable |= was_awaited;
        // Flags of a socket in its usual state: only what comes from it can go on.
        let (from_client, from_upstream) = match side {
            Side::Client => (self.client.readable, was_awaited),
            Side::Upstream => (was_awaited, self.upstream.readable),
        };
        self.go_on(from_client, from_upstream, mover)
    }

    /// Goes on with what was not done in the last turn.
    pub fn next_turn<M: Mover<Held = H>>(&mut self, mover: &mut M) -> State {
        self.go_on(self.up.unread, self.down.unread, mover)
    }

    fn go_on<M: Mover<Held = H>>(
        &mut self,
        from_client: bool,
        from_upstream: bool,
        mover: &mut M,
    ) -> State {
        let (client, upstream) = (&mut self.client, &mut self.upstream);
        let mut done = Ok(());
        if from_client {
            done = self.up.go_on(client, upstream, mover);
        }
        if from_upstream && done.is_ok() {
            done = self.down.go_on(upstream, client, mover);
        }
        match done {
            Err(_) => State::Failed,
            Ok(()) if self.up.ended && self.down.ended => State::Ended,
            Ok(()) if self.up.unread || self.down.unread => State::Unread,
            Ok(()) => State::Waiting,
        }
    }

    /// Ends both connections at once, so that both peers know that something was lost.
    pub fn reset<M: Mover<Held = H>>(self, mover: &mut M) {
        mover.discard(self.up.held);
        mover.discard(self.down.held);
        reset(self.client.fd);
        reset(self.upstream.fd);
    }
}

impl<H> Flow<H> {
    /// Writes what is held, then reads and writes until there is nothing to read, the
    /// destination takes no more or the turn is over.
    fn go_on<M: Mover<Held = H>>(
        &mut self,
        source: &mut Socket,
        destination: &mut Socket,
        mover: &mut M,
    ) -> Result<(), Errno> {
        self.unread = false;
        for _ in 0..READS_A_TURN {
            if self.holds {
                if !destination.writable {
                    return Ok(());
                }
                match mover.write(&mut self.held, destination.fd.as_fd())? {
                    Written::All => self.holds = false,
                    Written::Part => {
                        destination.writable = false;
                        return Ok(());
                    }
                }
            }
            if self.ended || !source.readable || !destination.writable {
                return Ok(());
            }
            match mover.read(source.fd.as_fd(), &mut self.held)? {
                Read::Bytes => self.holds = true,
                Read::LastBytes => {
                    self.holds = true;
                    // Unless the end is behind them, which makes no event of its own any more.
                    source.readable = source.peer_ended;
                }
                Read::WouldBlock => source.readable = false,
                Read::End => {
                    self.ended = true;
                    source.readable = false;
                    shutdown(&destination.fd, Shutdown::Write)?;
                }
            }
        }
        // What the last read brought is written first thing in the next turn.
        self.unread = true;
        Ok(())
    }
}
