//! A loop for methods that do not read and write in turn, and so need to be told more of
//! a socket than what it is ready for: errors that are none.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::SocketFlags;
use rustix::net::sockopt::socket_error;
use slab::Slab;
use wsbench_server_kit::complain;

use crate::accept::{Client, Seat, accept_on_threads};
use crate::inbox::Inbox;
use crate::relay::{Relay, reset};

const EVENTS: usize = 512;
const INBOX: u64 = u64::MAX;

/// What a method does with connected pairs of sockets. There is one a thread.
pub trait Watcher {
    /// Of one connection.
    type Pair;

    /// Both sockets are connected, and do not block. It says what it wants to be told of them.
    fn connected(&mut self, sockets: &Sockets) -> io::Result<(Self::Pair, Next)>;

    /// What epoll says of one of them. An error resets both.
    fn event(
        &mut self,
        pair: &mut Self::Pair,
        sockets: &Sockets,
        side: usize,
        flags: EventFlags,
    ) -> io::Result<Next>;

    /// It said [`Next::Again`].
    fn again(&mut self, pair: &mut Self::Pair, sockets: &Sockets) -> io::Result<Next>;

    /// Its sockets are about to be closed or reset.
    fn release(&mut self, pair: Self::Pair);
}

/// What a pair waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// An event.
    Waiting,
    /// Its next turn.
    Again,
    /// Nothing: both directions have ended.
    Ended,
}

/// The client's socket and the upstream's, and how to be told of them.
pub struct Sockets {
    sockets: [OwnedFd; 2],
    epoll: Arc<OwnedFd>,
    token: u64,
}

impl Sockets {
    pub fn get(&self, side: usize) -> BorrowedFd<'_> {
        self.sockets[side].as_fd()
    }

    /// What is to be told of one of them from now on. What is so already is told at once.
    pub fn watch(&self, side: usize, flags: EventFlags) -> io::Result<()> {
        let data = EventData::new_u64(self.token | side as u64);
        epoll::modify(&self.epoll, self.get(side), data, flags | EventFlags::ET)?;
        Ok(())
    }
}

/// Serves for ever, with a watcher a thread.
pub fn run<W: Watcher + Send + 'static>(relay: &'static Relay, watchers: Vec<W>) -> io::Result<()> {
    let (ended, first_ended) = mpsc::channel();
    let mut inboxes = Vec::new();
    for watcher in watchers {
        let inbox = Arc::new(Inbox::new()?);
        inboxes.push(inbox.clone());
        let ended = ended.clone();
        let serve = move || ended.send(Server::new(relay, inbox, watcher).and_then(Server::serve));
        thread::Builder::new().name("watch".into()).spawn(serve)?;
    }
    let accepted = AtomicUsize::new(0);
    accept_on_threads(relay, SocketFlags::NONBLOCK, move |client| {
        let turn = accepted.fetch_add(1, Ordering::Relaxed);
        inboxes[turn % inboxes.len()].put(client);
    })?;
    // A loop ends only when epoll fails; half a relay must not stay up then.
    first_ended.recv().map_err(io::Error::other)?
}

struct Server<W: Watcher> {
    relay: &'static Relay,
    epoll: Arc<OwnedFd>,
    inbox: Arc<Inbox>,
    watcher: W,
    connections: Slab<Connection<W::Pair>>,
    /// Connections that have another turn.
    again: Vec<usize>,
}

struct Connection<P> {
    /// `None` until the upstream is connected.
    pair: Option<P>,
    sockets: Sockets,
    /// Whether it is on the list.
    listed: bool,
    /// Given back after the sockets are closed: fields are dropped in their order.
    _seat: Seat,
}

impl<W: Watcher> Server<W> {
    fn new(relay: &'static Relay, inbox: Arc<Inbox>, watcher: W) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &*inbox, EventData::new_u64(INBOX), EventFlags::IN)?;
        Ok(Self {
            relay,
            epoll: Arc::new(epoll),
            inbox,
            watcher,
            connections: Slab::new(),
            again: Vec::new(),
        })
    }

    fn serve(mut self) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        loop {
            // Who has another turn does not wait for events.
            let at_once = Timespec::default();
            let patience = (!self.again.is_empty()).then_some(&at_once);
            match epoll::wait(&self.epoll, spare_capacity(&mut events), patience) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let again = std::mem::take(&mut self.again);
            let mut clients = Vec::new();
            for event in events.drain(..) {
                match event.data.u64() {
                    INBOX => clients = self.inbox.take()?,
                    token => self.event(token, event.flags),
                }
            }
            for key in again {
                if let Some(connection) = self.connections.get_mut(key) {
                    connection.listed = false;
                    self.turn(key);
                }
            }
            // Last: a key that was freed above is not that of another connection before
            // all events of this wait have been looked at.
            for client in clients {
                self.adopt(client);
            }
        }
    }

    /// Connects a client to the upstream.
    fn adopt(&mut self, client: Client) {
        let Ok(upstream) = self.relay.connect_upstream(client.port) else {
            reset(client.socket);
            return;
        };
        let entry = self.connections.vacant_entry();
        let sockets = Sockets {
            sockets: [client.socket, upstream],
            epoll: self.epoll.clone(),
            token: (entry.key() as u64) << 1,
        };
        let add = |side: usize, flags: EventFlags| {
            let data = EventData::new_u64(sockets.token | side as u64);
            epoll::add(&self.epoll, sockets.get(side), data, flags | EventFlags::ET)
        };
        // Of the client only an error is of interest before the upstream is connected.
        let added = add(0, EventFlags::empty()).and_then(|()| add(1, EventFlags::OUT));
        let connection = Connection {
            pair: None,
            sockets,
            listed: false,
            _seat: client.seat,
        };
        match added {
            Ok(()) => drop(entry.insert(connection)),
            // Refused only when the kernel is out of memory or watches.
            Err(error) => {
                complain(format_args!(
                    "cannot serve a connection: {error} (reset it)"
                ));
                connection.sockets.sockets.into_iter().for_each(reset);
            }
        }
    }

    fn event(&mut self, token: u64, flags: EventFlags) {
        let (key, side) = ((token >> 1) as usize, (token & 1) as usize);
        // Of a connection that has just ended there may be more events.
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let sockets = &connection.sockets;
        let next = match &mut connection.pair {
            Some(pair) => self.watcher.event(pair, sockets, side, flags),
            None => match begin(&mut self.watcher, sockets, side, flags) {
                Ok((pair, next)) => {
                    connection.pair = pair;
                    Ok(next)
                }
                Err(error) => Err(error),
            },
        };
        self.settle(key, next);
    }

    fn turn(&mut self, key: usize) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        if let Some(pair) = &mut connection.pair {
            let next = self.watcher.again(pair, &connection.sockets);
            self.settle(key, next);
        }
    }

    fn settle(&mut self, key: usize, next: io::Result<Next>) {
        let connection = &mut self.connections[key];
        match next {
            Ok(Next::Waiting) => {}
            Ok(Next::Again) if !connection.listed => {
                connection.listed = true;
                self.again.push(key);
            }
            Ok(Next::Again) => {}
            Ok(Next::Ended) | Err(_) => {
                let connection = self.connections.remove(key);
                if let Some(pair) = connection.pair {
                    self.watcher.release(pair);
                }
                if next.is_err() {
                    connection.sockets.sockets.into_iter().for_each(reset);
                }
            }
        }
    }
}

/// What an event means to a connection whose upstream was not connected yet.
fn begin<W: Watcher>(
    watcher: &mut W,
    sockets: &Sockets,
    side: usize,
    flags: EventFlags,
) -> io::Result<(Option<W::Pair>, Next)> {
    if flags.contains(EventFlags::ERR) {
        socket_error(sockets.get(side))??;
        return Err(io::ErrorKind::ConnectionReset.into());
    }
    if side == 0 || !flags.contains(EventFlags::OUT) {
        return Ok((None, Next::Waiting));
    }
    let (pair, next) = watcher.connected(sockets)?;
    Ok((Some(pair), next))
}
