//! One epoll loop, its connections, and the inbox through which they come.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;
use slab::Slab;
use wsbench_server_kit::complain;

use crate::accept::Client;
use crate::epoll::Mover;
use crate::epoll::pair::{Pair, Side, State};
use crate::relay::{Relay, reset};

const EVENTS: usize = 512;
const INBOX: u64 = u64::MAX;
/// Once for the life of a socket. Edge-triggered, so that nothing is told twice and
/// nothing has to be told off: what is ready is remembered in the pair.
const INTEREST: EventFlags = EventFlags::IN
    .union(EventFlags::OUT)
    .union(EventFlags::RDHUP)
    .union(EventFlags::ET);

/// Where the accepting threads put connections.
pub struct Inbox {
    clients: Mutex<Vec<Client>>,
    /// Never read: each write is an edge.
    bell: OwnedFd,
}

impl Inbox {
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            clients: Mutex::default(),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    pub fn put(&self, client: Client) {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.push(client);
        let rings = clients.len() == 1;
        drop(clients);
        if rings && let Err(error) = rustix::io::write(&self.bell, &1_u64.to_ne_bytes()) {
            complain(format_args!("cannot wake a thread that copies: {error}"));
        }
    }

    fn empty(&self) -> Vec<Client> {
        std::mem::take(&mut *self.clients.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

pub struct Shard<M: Mover> {
    relay: &'static Relay,
    epoll: OwnedFd,
    inbox: Arc<Inbox>,
    mover: M,
    pairs: Slab<Pair<M::Held>>,
    /// Pairs that had more to read than a turn takes.
    unread: Vec<usize>,
}

impl<M: Mover> Shard<M> {
    pub fn new(relay: &'static Relay, inbox: Arc<Inbox>, mover: M) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let data = EventData::new_u64(INBOX);
        epoll::add(&epoll, &inbox.bell, data, EventFlags::IN | EventFlags::ET)?;
        Ok(Self {
            relay,
            epoll,
            inbox,
            mover,
            pairs: Slab::new(),
            unread: Vec::new(),
        })
    }

    /// Serves for ever.
    pub fn run(mut self) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        let mut turn = Vec::new();
        loop {
            let no_time = Timespec::default();
            let patience = (!self.unread.is_empty()).then_some(&no_time);
            match epoll::wait(&self.epoll, spare_capacity(&mut events), patience) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            std::mem::swap(&mut self.unread, &mut turn);
            let mut rung = false;
            for event in events.drain(..) {
                let (data, flags) = (event.data.u64(), event.flags);
                if data == INBOX {
                    rung = true;
                } else {
                    let (key, side) = ((data >> 1) as usize, Side::from_bit(data));
                    self.step(key, |pair, mover| pair.event(side, flags, mover));
                }
            }
            for key in turn.drain(..) {
                self.step(key, |pair, mover| {
                    pair.listed = false;
                    pair.next_turn(mover)
                });
            }
            // Last: a key that was freed above is not that of another pair before all
            // events of this wait have been looked at.
            if rung {
                for client in self.inbox.empty() {
                    self.adopt(client);
                }
            }
        }
    }

    /// Has a pair do something, and ends it if that was its end.
    fn step(&mut self, key: usize, act: impl FnOnce(&mut Pair<M::Held>, &mut M) -> State) {
        // Of a pair that has just ended there may be more events.
        let Some(pair) = self.pairs.get_mut(key) else {
            return;
        };
        match act(pair, &mut self.mover) {
            State::Waiting => {}
            State::Unread if pair.listed => {}
            State::Unread => {
                pair.listed = true;
                self.unread.push(key);
            }
            State::Ended => drop(self.pairs.remove(key)),
            State::Failed => self.pairs.remove(key).reset(&mut self.mover),
        }
    }

    /// Connects a client to the upstream, and waits for events of both.
    fn adopt(&mut self, client: Client) {
        let Ok(upstream) = self.relay.connect_upstream(client.port) else {
            reset(client.socket);
            return;
        };
        let entry = self.pairs.vacant_entry();
        let key = entry.key() as u64;
        let add = |socket: &OwnedFd, side: Side| {
            let data = EventData::new_u64(key << 1 | side.bit());
            epoll::add(&self.epoll, socket.as_fd(), data, INTEREST)
        };
        let added = add(&client.socket, Side::Client).and_then(|()| add(&upstream, Side::Upstream));
        let pair = Pair::new(client.socket, upstream, client.seat);
        match added {
            Ok(()) => {
                entry.insert(pair);
            }
            // Refused only when the kernel is out of memory or watches.
            Err(error) => {
                complain(format_args!(
                    "cannot serve a connection: {error} (reset it)"
                ));
                pair.reset(&mut self.mover);
            }
        }
    }
}
