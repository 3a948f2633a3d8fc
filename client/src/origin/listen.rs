//! Accepts connections and hands them to the threads in turn.

use super::Inlet;
use crate::EngineError;
use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;
use wsbench_schema::PortRange;

/// Connections that wait to be accepted; the kernel lowers it to what it allows.
const BACKLOG: i32 = 65_535;
/// How soon it is tried again when there was no descriptor for a connection.
const RETRY: Duration = Duration::from_millis(10);

/// A listening socket for each port.
pub struct Listeners(Vec<TcpListener>);

impl Listeners {
    /// Listens on all ports of the host.
    pub fn bind(host: &str, ports: PortRange) -> Result<Self, EngineError> {
        let unknown = |reason: String| EngineError::Host {
            host: host.into(),
            reason,
        };
        let mut addresses = (host, 0)
            .to_socket_addrs()
            .map_err(|error| unknown(error.to_string()))?;
        let address = addresses
            .next()
            .ok_or_else(|| unknown("it has no address".into()))?;
        let listen = |port| {
            let address = SocketAddr::new(address.ip(), port);
            let failed = |error| EngineError::System(format!("listen on {address}"), error);
            listen(address).map_err(failed)
        };
        let listeners: Result<_, _> = (ports.first..=ports.last).map(listen).collect();
        Ok(Self(listeners?))
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let kind = Type::STREAM.nonblocking().cloexec();
    let socket = Socket::new(Domain::for_address(address), kind, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(TcpListener::from_std(socket.into()))
}

/// The listening sockets on an epoll of their own.
pub struct Acceptor {
    poll: Poll,
    events: Events,
    listeners: Vec<TcpListener>,
    inlets: Vec<Inlet>,
    next: usize,
    /// A listener has connections for which there was no descriptor.
    is_short: bool,
}

impl Acceptor {
    /// Connections go to `inlets` in turn.
    pub fn new(Listeners(mut listeners): Listeners, inlets: Vec<Inlet>) -> io::Result<Self> {
        let poll = Poll::new()?;
        for (index, listener) in listeners.iter_mut().enumerate() {
            poll.registry()
                .register(listener, Token(index), Interest::READABLE)?;
        }
        Ok(Self {
            poll,
            events: Events::with_capacity(64),
            listeners,
            inlets,
            next: 0,
            is_short: false,
        })
    }

    /// Of all listeners.
    pub fn ports(&self) -> io::Result<Vec<u16>> {
        let port = |it: &TcpListener| it.local_addr().map(|address| address.port());
        self.listeners.iter().map(port).collect()
    }

    /// Accepts what comes within a time.
    pub fn accept(&mut self, within: Duration) -> io::Result<()> {
        let within = match self.is_short {
            true => RETRY,
            false => within,
        };
        match self.poll.poll(&mut self.events, Some(within)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            result => result?,
        }
        let has_event: Vec<usize> = self.events.iter().map(|it| it.token().0).collect();
        let was_short = std::mem::take(&mut self.is_short);
        for index in 0..self.listeners.len() {
            if was_short || has_event.contains(&index) {
                self.empty(index)?;
            }
        }
        Ok(())
    }

    /// Accepts all that wait at a listener.
    fn empty(&mut self, index: usize) -> io::Result<()> {
        loop {
            match self.listeners[index].accept() {
                Ok((stream, _)) => {
                    self.inlets[self.next].hand_over(stream.into());
                    self.next = (self.next + 1) % self.inlets.len();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if is_of_the_connection(&error) => {}
                Err(error) if is_short_of(&error) => {
                    self.is_short = true;
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes all threads look whether they must stop.
    pub fn wake_all(&self) {
        for inlet in &self.inlets {
            // It fails only if the thread's descriptors are gone, and then so is the thread.
            let _ = inlet.waker.wake();
        }
    }
}

fn is_of_the_connection(error: &io::Error) -> bool {
    let kinds = [ErrorKind::ConnectionAborted, ErrorKind::Interrupted];
    kinds.contains(&error.kind())
}

fn is_short_of(error: &io::Error) -> bool {
    let errors = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    code.is_some_and(|code| errors.contains(&code))
}
