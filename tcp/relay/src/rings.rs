//! What the methods on io_uring share: a ring a thread, the connections that it
//! serves, and how they come and go. How bytes move is the method's [`Mover`].
//!
//! A socket is closed only after every operation on it has completed: until then the
//! kernel holds the socket, and neither an end nor a reset would reach its peer.

mod queue;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use io_uring::types::{CancelBuilder, Fd};
use io_uring::{cqueue, opcode, squeue};
use rustix::event::PollFlags;
use rustix::io::ioctl_fionbio;
use rustix::net::sockopt::socket_error;
use rustix::net::{Shutdown, SocketFlags, shutdown};

use crate::accept::{Client, Seat, accept_on_threads};
use crate::inbox::Inbox;
use crate::relay::{Relay, reset};

pub use queue::Queue;

/// Completions that are no connection's.
const INBOX: u64 = u64::MAX;
/// Operations of a connection that are not its mover's.
const CONNECTED: u8 = 255;
const WATCH: u8 = 254;
const CANCEL: u8 = 253;

/// How a method moves bytes from one socket to another. One a thread.
pub trait Mover: Sized {
    /// What one direction of one connection holds.
    type Flow: Default;
    /// Whether sockets block. Operations on a blocking one wait in the ring.
    const BLOCKING: bool;

    /// Called once in the ring's thread.
    fn new(relay: &'static Relay, queue: &mut Queue) -> io::Result<Self>;

    /// Both sockets are connected: starts what waits for bytes.
    fn start(&mut self, flow: &mut Self::Flow, way: &mut Way<'_>) -> io::Result<()>;

    /// An operation of this direction completed. An error resets both sockets.
    fn completed(
        &mut self,
        flow: &mut Self::Flow,
        way: &mut Way<'_>,
        operation: u8,
        completion: &cqueue::Entry,
    ) -> io::Result<Progress>;

    /// The same when the connection was given up: only what came with it has to be put back.
    fn abandoned(&mut self, _flow: &mut Self::Flow, _completion: &cqueue::Entry) {}

    /// No operation is left that uses what the direction holds.
    fn release(&mut self, flow: Self::Flow, queue: &mut Queue) -> io::Result<()>;
}

/// Whether a direction goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Going,
    /// Its source ended and everything was delivered.
    Ended,
}

/// One direction of a connection: where its operations go.
pub struct Way<'a> {
    queue: &'a mut Queue,
    pending: &'a mut u32,
    connection: u32,
    side: u8,
    /// The socket that bytes come from.
    pub from: Fd,
    /// The socket that bytes go to.
    pub to: Fd,
}

impl Way<'_> {
    /// Submits an operation with the next call into the kernel.
    ///
    /// # Safety
    /// What its entry points to is valid until it has completed.
    pub unsafe fn push(&mut self, operation: u8, entry: squeue::Entry) -> io::Result<()> {
        let token = token(self.connection, self.side, operation);
        // SAFETY: the caller's promise.
        unsafe { self.queue.push(entry.user_data(token)) }?;
        *self.pending += 1;
        Ok(())
    }
}

/// Serves for ever.
pub fn run<M: Mover>(relay: &'static Relay) -> io::Result<()> {
    let inboxes: Arc<[Inbox]> = (0..relay.threads)
        .map(|_| Inbox::new())
        .collect::<io::Result<_>>()?;
    let (ended, first_ended) = mpsc::channel();
    for index in 0..inboxes.len() {
        let (inboxes, ended) = (inboxes.clone(), ended.clone());
        let serve = move || {
            // The ring is made where it is used: only one thread may submit to it.
            let served = Server::<M>::new(relay).and_then(|mut it| it.serve(&inboxes[index]));
            ended.send(served)
        };
        thread::Builder::new().name("ring".into()).spawn(serve)?;
    }
    let accepted = AtomicUsize::new(0);
    let flags = match M::BLOCKING {
        true => SocketFlags::empty(),
        false => SocketFlags::NONBLOCK,
    };
    accept_on_threads(relay, flags, move |client| {
        let turn = accepted.fetch_add(1, Ordering::Relaxed);
        inboxes[turn % inboxes.len()].put(client);
    })?;
    // A thread ends only when its ring fails; half a relay must not stay up then.
    first_ended.recv().map_err(io::Error::other)?
}

struct Server<M: Mover> {
    relay: &'static Relay,
    queue: Queue,
    mover: M,
    connections: Vec<Option<Connection<M::Flow>>>,
    free: Vec<u32>,
}

struct Connection<F> {
    /// The client's socket and the upstream's. Closed before the seat is given back.
    sockets: [OwnedFd; 2],
    _seat: Seat,
    /// From the client to the upstream, and back.
    flows: [F; 2],
    ended: [bool; 2],
    state: State,
    /// Operations that have not completed.
    pending: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Connecting,
    Relaying,
    /// Closed once nothing is pending: with an end, or with a reset.
    Ending,
    Resetting,
}

impl<M: Mover> Server<M> {
    fn new(relay: &'static Relay) -> io::Result<Self> {
        let mut queue = Queue::new()?;
        let mover = M::new(relay, &mut queue)?;
        Ok(Self {
            relay,
            queue,
            mover,
            connections: Vec::new(),
            free: Vec::new(),
        })
    }

    fn serve(&mut self, inbox: &Inbox) -> io::Result<()> {
        self.wait_for_clients(inbox)?;
        let mut completions = Vec::new();
        loop {
            self.queue.submit_and_wait(&mut completions)?;
            for completion in completions.drain(..) {
                if completion.user_data() == INBOX {
                    for client in inbox.take()? {
                        self.adopt(client)?;
                    }
                    if !cqueue::more(completion.flags()) {
                        self.wait_for_clients(inbox)?;
                    }
                } else {
                    self.completed(&completion)?;
                }
            }
        }
    }

    fn wait_for_clients(&mut self, inbox: &Inbox) -> io::Result<()> {
        let entry = opcode::PollAdd::new(Fd(inbox.as_raw_fd()), PollFlags::IN.bits().into())
            .multi(true)
            .build()
            .user_data(INBOX);
        // SAFETY: it points to nothing.
        unsafe { self.queue.push(entry) }
    }

    fn adopt(&mut self, client: Client) -> io::Result<()> {
        let Client { socket, port, seat } = client;
        let Ok(upstream) = self.relay.connect_upstream(port) else {
            reset(socket);
            return Ok(());
        };
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.connections.push(None);
                (self.connections.len() - 1) as u32
            }
        };
        let connection = self.connections[index as usize].insert(Connection {
            sockets: [socket, upstream],
            _seat: seat,
            flows: Default::default(),
            ended: [false; 2],
            state: State::Connecting,
            pending: 0,
        });
        connection.watch(&mut self.queue, index, 0)?;
        connection.poll(&mut self.queue, index, 1, CONNECTED, PollFlags::OUT)
    }

    fn completed(&mut self, completion: &cqueue::Entry) -> io::Result<()> {
        let (index, side, operation) = parts(completion.user_data());
        let Some(connection) = &mut self.connections[index as usize] else {
            return Ok(());
        };
        if !cqueue::more(completion.flags()) {
            connection.pending -= 1;
        }
        match connection.state {
            State::Connecting | State::Relaying => {
                if let Err(_gone) = self.progress(index, side, operation, completion) {
                    self.end(index, State::Resetting)?;
                }
            }
            State::Ending | State::Resetting => {
                if !matches!(operation, CONNECTED | WATCH | CANCEL) {
                    let flow = &mut connection.flows[usize::from(side)];
                    self.mover.abandoned(flow, completion);
                }
            }
        }
        self.close_when_done(index)
    }

    /// An error is the connection's own: it resets both its sockets.
    fn progress(
        &mut self,
        index: u32,
        side: u8,
        operation: u8,
        completion: &cqueue::Entry,
    ) -> io::Result<()> {
        let Some(connection) = &mut self.connections[index as usize] else {
            return Ok(());
        };
        match operation {
            CONNECTED => {
                socket_error(&connection.sockets[1])??;
                ioctl_fionbio(&connection.sockets[1], !M::BLOCKING)?;
                connection.state = State::Relaying;
                connection.watch(&mut self.queue, index, 1)?;
                for side in 0..2 {
                    let (flow, mut way) = connection.way(&mut self.queue, index, side);
                    self.mover.start(flow, &mut way)?;
                }
            }
            WATCH => {
                let events = outcome(completion)?;
                // An end of the peer's sending wakes it too; that is a mover's to find.
                if events & usize::from(PollFlags::ERR.bits()) != 0 {
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
                if !cqueue::more(completion.flags()) {
                    connection.watch(&mut self.queue, index, side)?;
                }
            }
            CANCEL => {}
            _ => {
                let (flow, mut way) = connection.way(&mut self.queue, index, side);
                let progress = self
                    .mover
                    .completed(flow, &mut way, operation, completion)?;
                if progress == Progress::Ended {
                    shutdown(&connection.sockets[usize::from(1 - side)], Shutdown::Write)?;
                    connection.ended[usize::from(side)] = true;
                    if connection.ended == [true; 2] {
                        self.end(index, State::Ending)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Cancels what is pending, so that the sockets can be closed.
    fn end(&mut self, index: u32, state: State) -> io::Result<()> {
        let Some(connection) = &mut self.connections[index as usize] else {
            return Ok(());
        };
        connection.state = state;
        for side in 0..2 {
            let cancel = CancelBuilder::fd(connection.fd(side)).all();
            let entry = opcode::AsyncCancel2::new(cancel).build();
            let (_, mut way) = connection.way(&mut self.queue, index, side);
            // SAFETY: it points to nothing.
            unsafe { way.push(CANCEL, entry) }?;
        }
        Ok(())
    }

    fn close_when_done(&mut self, index: u32) -> io::Result<()> {
        let done = |connection: &mut Connection<M::Flow>| {
            connection.pending == 0 && matches!(connection.state, State::Ending | State::Resetting)
        };
        let Some(connection) = self.connections[index as usize].take_if(done) else {
            return Ok(());
        };
        self.free.push(index);
        for flow in connection.flows {
            self.mover.release(flow, &mut self.queue)?;
        }
        if connection.state == State::Resetting {
            for socket in connection.sockets {
                reset(socket);
            }
        }
        Ok(())
    }
}

impl<F> Connection<F> {
    fn fd(&self, side: u8) -> Fd {
        Fd(self.sockets[usize::from(side)].as_raw_fd())
    }

    fn way<'a>(&'a mut self, queue: &'a mut Queue, index: u32, side: u8) -> (&'a mut F, Way<'a>) {
        let (from, to) = (self.fd(side), self.fd(1 - side));
        let way = Way {
            queue,
            pending: &mut self.pending,
            connection: index,
            side,
            from,
            to,
        };
        (&mut self.flows[usize::from(side)], way)
    }

    /// Waits for a reset, which a direction that waits for its destination would not see:
    /// it does not read then. A poll always wakes for errors, whatever else it asks for.
    fn watch(&mut self, queue: &mut Queue, index: u32, side: u8) -> io::Result<()> {
        self.poll(queue, index, side, WATCH, PollFlags::empty())
    }

    fn poll(
        &mut self,
        queue: &mut Queue,
        index: u32,
        side: u8,
        operation: u8,
        events: PollFlags,
    ) -> io::Result<()> {
        let entry = opcode::PollAdd::new(self.fd(side), events.bits().into())
            .multi(operation == WATCH)
            .build();
        let (_, mut way) = self.way(queue, index, side);
        // SAFETY: it points to nothing.
        unsafe { way.push(operation, entry) }
    }
}

fn token(connection: u32, side: u8, operation: u8) -> u64 {
    u64::from(connection) | u64::from(side) << 32 | u64::from(operation) << 40
}

fn parts(token: u64) -> (u32, u8, u8) {
    (token as u32, (token >> 32) as u8, (token >> 40) as u8)
}

/// What an operation completed with, or its error.
pub fn outcome(completion: &cqueue::Entry) -> io::Result<usize> {
    usize::try_from(completion.result())
        .map_err(|_| io::Error::from_raw_os_error(-completion.result()))
}
