//! One poll, its connections, and the inbox through which they come.

use std::io;
use std::mem;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token, Waker};
use slab::Slab;
use tungstenite::protocol::WebSocketConfig;
use wsbench_server_kit::complain;

use crate::connection::{Connection, Turn};
use crate::socket::Socket;

const INBOX: Token = Token(usize::MAX);

/// Where the accepting threads put connections.
pub struct Inbox {
    sender: Sender<std::net::TcpStream>,
    waker: Waker,
}

impl Inbox {
    /// Hands over a connection that does not block.
    pub fn put(&self, stream: std::net::TcpStream) -> io::Result<()> {
        self.sender.send(stream).map_err(io::Error::other)?;
        self.waker.wake()
    }
}

pub struct EventLoop {
    poll: Poll,
    inbox: Receiver<std::net::TcpStream>,
    connections: Slab<Connection>,
    config: WebSocketConfig,
}

impl EventLoop {
    pub fn new(config: WebSocketConfig) -> io::Result<(Self, Inbox)> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), INBOX)?;
        let (sender, inbox) = mpsc::channel();
        let connections = Slab::new();
        let event_loop = Self {
            poll,
            inbox,
            connections,
            config,
        };
        Ok((event_loop, Inbox { sender, waker }))
    }

    /// Serves what comes in, for ever.
    pub fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        // Connections to serve: those with an event, and those that had more to read than a turn takes.
        let (mut listed, mut served) = (Vec::new(), Vec::new());
        loop {
            let timeout = (!listed.is_empty()).then_some(Duration::ZERO);
            match self.poll.poll(&mut events, timeout) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            for event in &events {
                if event.token() == INBOX {
                    self.empty_inbox();
                } else if let Some(connection) = self.connections.get_mut(event.token().0) {
                    connection.note(event);
                    if !mem::replace(&mut connection.listed, true) {
                        listed.push(event.token().0);
                    }
                }
            }
            mem::swap(&mut listed, &mut served);
            for key in served.drain(..) {
                let connection = &mut self.connections[key];
                match connection.turn() {
                    Turn::Wait => connection.listed = false,
                    Turn::More => listed.push(key),
                    Turn::Closed => drop(self.connections.remove(key)),
                }
            }
        }
    }

    fn empty_inbox(&mut self) {
        for stream in self.inbox.try_iter() {
            let mut stream = TcpStream::from_std(stream);
            let entry = self.connections.vacant_entry();
            let interest = Interest::READABLE | Interest::WRITABLE;
            let registered =
                self.poll
                    .registry()
                    .register(&mut stream, Token(entry.key()), interest);
            match registered {
                Ok(()) => {
                    entry.insert(Connection::new(Socket::new(stream), self.config));
                }
                Err(error) => complain(format_args!(
                    "cannot serve a connection: {error} (closed it)"
                )),
            }
        }
    }
}
