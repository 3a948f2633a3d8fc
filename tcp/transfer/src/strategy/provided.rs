//! The kernel picks the buffer: one ring a thread, with a group of buffers that it fills as bytes come.
//!
//! A connection has one operation in flight: a receive, for which no buffer is taken until bytes are there,
//! or the send of what it brought. As in the pool, who finds no buffer waits in line, and while somebody
//! does, a peer that has taken nothing for a while has the rest copied aside.

mod buffers;
mod inbox;
mod ring;

use std::collections::VecDeque;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::{mem, thread};

use io_uring::cqueue::{self, buffer_select};
use io_uring::types::{Fd, Timespec};
use io_uring::{opcode, squeue};
use rustix::io::Errno;
use wsbench_server_kit::{Result, accept_forever};

use self::buffers::{Buffers, GROUP};
use self::inbox::Inbox;
use self::ring::Ring;
use super::Strategy;
use crate::counters::{Served, Slot, add, count_read};
use crate::kept::Kept;
use crate::options::Options;
use crate::pool::{PATIENCE, bound};

pub const STRATEGY: Strategy = Strategy {
    name: "provided",
    about: "io_uring, a ring a thread; the kernel picks one of the ring's provided buffers",
    run,
};

/// What completed, in the low bits of an operation's token; the connection is in the others.
const RECEIVED: u64 = 0;
const SENT: u64 = 1;
const CANCELLED: u64 = 2;
const INBOX: u64 = 3;
const TIMER: u64 = 4;
const KINDS: u64 = 8;

static WAIT: Timespec = Timespec::new().nsec(PATIENCE.subsec_nanos());

fn run(options: &Options, listeners: Vec<TcpListener>) -> Result<()> {
    let inboxes: Arc<[Inbox]> = (0..options.threads)
        .map(|_| Inbox::new())
        .collect::<io::Result<_>>()?;
    let buffers = bound(options.threads).div_ceil(options.threads);
    let bytes = options.buffer;
    let (ended, first_ended) = mpsc::channel();
    for index in 0..inboxes.len() {
        let (inboxes, ended) = (inboxes.clone(), ended.clone());
        thread::Builder::new().spawn(move || {
            add(Slot::Threads, 1);
            // The ring is made where it is used: only one thread may submit to it.
            ended.send(Server::new(buffers, bytes).and_then(|mut it| it.serve(&inboxes[index])))
        })?;
    }
    let accepted = Arc::new(AtomicUsize::new(0));
    for listener in listeners {
        let (inboxes, accepted) = (inboxes.clone(), accepted.clone());
        thread::Builder::new().spawn(move || {
            add(Slot::Threads, 1);
            accept_forever(&listener, |stream, _| {
                let turn = accepted.fetch_add(1, Ordering::Relaxed);
                inboxes[turn % inboxes.len()].put(stream);
            })
        })?;
    }
    // A thread ends only when its ring fails; half a server must not stay up then.
    first_ended.recv()??;
    Ok(())
}

struct Server {
    ring: Ring,
    buffers: Buffers,
    connections: Vec<Option<Connection>>,
    /// Places in `connections`.
    free: Vec<usize>,
    /// Connections that found no buffer, the first to come first.
    line: VecDeque<usize>,
    timer_is_set: bool,
    /// How often the timer has gone off.
    ticks: u64,
}

struct Connection {
    stream: TcpStream,
    unsent: Unsent,
    _served: Served,
}

/// What was received and is being sent.
enum Unsent {
    Nothing,
    Provided {
        buffer: u16,
        sent: usize,
        length: usize,
        since_tick: u64,
    },
    Aside {
        rest: Kept,
        sent: usize,
    },
}

impl Server {
    fn new(buffers: usize, bytes: usize) -> io::Result<Self> {
        let ring = Ring::new()?;
        Ok(Self {
            buffers: Buffers::register(&ring, buffers, bytes)?,
            ring,
            connections: Vec::new(),
            free: Vec::new(),
            line: VecDeque::new(),
            timer_is_set: false,
            ticks: 0,
        })
    }

    fn serve(&mut self, inbox: &Inbox) -> io::Result<()> {
        self.await_inbox(inbox)?;
        let mut completions = Vec::new();
        loop {
            self.ring.submit_and_wait(&mut completions)?;
            for completion in completions.drain(..) {
                let (place, kind) = (
                    completion.user_data() / KINDS,
                    completion.user_data() % KINDS,
                );
                let place = place as usize;
                match kind {
                    RECEIVED => self.received(place, &completion)?,
                    SENT => self.sent(place, completion.result())?,
                    INBOX => {
                        for stream in inbox.take()? {
                            self.adopt(stream)?;
                        }
                        self.await_inbox(inbox)?;
                    }
                    TIMER => self.tick()?,
                    // What was to be cancelled tells how it ended itself.
                    _ => {}
                }
            }
        }
    }

    fn push(&mut self, place: usize, kind: u64, operation: squeue::Entry) -> io::Result<()> {
        // SAFETY: what an operation points to are the provided buffers, bytes aside that their connection
        // keeps until the operation has completed, and a static.
        unsafe {
            self.ring
                .push(&operation.user_data(place as u64 * KINDS + kind))
        }
    }

    fn await_inbox(&mut self, inbox: &Inbox) -> io::Result<()> {
        let readable = rustix::event::PollFlags::IN.bits();
        let poll = opcode::PollAdd::new(Fd(inbox.as_raw_fd()), readable.into()).build();
        self.push(0, INBOX, poll)
    }

    fn adopt(&mut self, stream: TcpStream) -> io::Result<()> {
        let connection = Connection {
            stream,
            unsent: Unsent::Nothing,
            _served: Served::begin(),
        };
        let place = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        self.connections[place] = Some(connection);
        self.receive(place)
    }

    /// No operation of the connection is in flight.
    fn close(&mut self, place: usize) -> io::Result<()> {
        if let Some(Connection { unsent, .. }) = self.connections[place].take() {
            self.free.push(place);
            self.give_back(unsent)?;
        }
        Ok(())
    }

    fn receive(&mut self, place: usize) -> io::Result<()> {
        let Some(connection) = &self.connections[place] else {
            return Ok(());
        };
        let socket = Fd(connection.stream.as_raw_fd());
        let receive = opcode::Recv::new(socket, std::ptr::null_mut(), 0)
            .buf_group(GROUP)
            .build()
            .flags(squeue::Flags::BUFFER_SELECT);
        self.push(place, RECEIVED, receive)
    }

    fn received(&mut self, place: usize, completion: &cqueue::Entry) -> io::Result<()> {
        let buffer = buffer_select(completion.flags());
        if buffer.is_some() {
            self.buffers.picked();
        }
        match (completion.result(), buffer) {
            (length @ 1.., Some(buffer)) => {
                count_read(length as usize);
                let Some(connection) = &mut self.connections[place] else {
                    return self.put_back(buffer);
                };
                let since_tick = self.ticks;
                connection.unsent = Unsent::Provided {
                    buffer,
                    sent: 0,
                    length: length as usize,
                    since_tick,
                };
                self.send(place)
            }
            (error, None) if error == -Errno::NOBUFS.raw_os_error() => {
                if !self.buffers.are_all_out() {
                    // One came back in the meantime.
                    return self.receive(place);
                }
                self.line.push_back(place);
                self.set_timer()
            }
            (result, buffer) => {
                if let Some(connection) = &self.connections[place]
                    && result == 0
                {
                    // A peer that is gone already has no need of it.
                    let _ = connection.stream.shutdown(Shutdown::Write);
                }
                self.close(place)?;
                buffer.map_or(Ok(()), |buffer| self.put_back(buffer))
            }
        }
    }

    fn send(&mut self, place: usize) -> io::Result<()> {
        let Some(connection) = &self.connections[place] else {
            return Ok(());
        };
        let bytes = match &connection.unsent {
            Unsent::Nothing => return Ok(()),
            Unsent::Provided {
                buffer,
                sent,
                length,
                ..
            } => &self.buffers.bytes(*buffer)[*sent..*length],
            Unsent::Aside { rest, sent } => &rest[*sent..],
        };
        let socket = Fd(connection.stream.as_raw_fd());
        let send = opcode::Send::new(socket, bytes.as_ptr(), bytes.len() as u32)
            .flags(rustix::net::SendFlags::NOSIGNAL.bits() as i32)
            .build();
        self.push(place, SENT, send)
    }

    fn sent(&mut self, place: usize, result: i32) -> io::Result<()> {
        let Some(connection) = &mut self.connections[place] else {
            return Ok(());
        };
        let taken = match usize::try_from(result) {
            Ok(taken) => taken,
            Err(_) if result == -Errno::CANCELED.raw_os_error() => 0,
            Err(_) => return self.close(place),
        };
        let (left, came_back) = match &mut connection.unsent {
            Unsent::Nothing => return Ok(()),
            Unsent::Provided {
                buffer,
                sent,
                length,
                since_tick,
            } => {
                *sent += taken;
                *since_tick = self.ticks;
                let rest = &self.buffers.bytes(*buffer)[*sent..*length];
                let left = rest.len();
                if left > 0 && result < 0 {
                    let aside = Unsent::Aside {
                        rest: Kept::copy(rest),
                        sent: 0,
                    };
                    (left, Some(mem::replace(&mut connection.unsent, aside)))
                } else {
                    (left, None)
                }
            }
            Unsent::Aside { rest, sent } => {
                *sent += taken;
                (rest.len() - *sent, None)
            }
        };
        if let Some(unsent) = came_back {
            self.give_back(unsent)?;
        }
        if left > 0 {
            return self.send(place);
        }
        self.receive_again(place)
    }

    fn receive_again(&mut self, place: usize) -> io::Result<()> {
        if let Some(connection) = &mut self.connections[place] {
            let unsent = mem::replace(&mut connection.unsent, Unsent::Nothing);
            self.give_back(unsent)?;
        }
        self.receive(place)
    }

    fn give_back(&mut self, unsent: Unsent) -> io::Result<()> {
        match unsent {
            Unsent::Provided { buffer, .. } => self.put_back(buffer),
            Unsent::Nothing | Unsent::Aside { .. } => Ok(()),
        }
    }

    /// Gives a buffer to the kernel, and lets the first in line ask for it.
    fn put_back(&mut self, buffer: u16) -> io::Result<()> {
        self.buffers.put_back(buffer);
        match self.line.pop_front() {
            Some(place) => self.receive(place),
            None => Ok(()),
        }
    }

    fn set_timer(&mut self) -> io::Result<()> {
        if mem::replace(&mut self.timer_is_set, true) {
            return Ok(());
        }
        self.push(0, TIMER, opcode::Timeout::new(&raw const WAIT).build())
    }

    /// Cancels the sends that the peer has let wait since before the last tick, if anybody is in line.
    fn tick(&mut self) -> io::Result<()> {
        self.timer_is_set = false;
        if self.line.is_empty() {
            return Ok(());
        }
        for place in 0..self.connections.len() {
            if let Some(Connection {
                unsent: Unsent::Provided { since_tick, .. },
                ..
            }) = &self.connections[place]
                && *since_tick < self.ticks
            {
                let send = place as u64 * KINDS + SENT;
                self.push(place, CANCELLED, opcode::AsyncCancel::new(send).build())?;
            }
        }
        self.ticks += 1;
        self.set_timer()
    }
}
