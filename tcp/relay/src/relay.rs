//! What every method is given: the sockets it accepts on, where they lead, and the
//! settings; and what all of them do alike with a socket.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_linger, set_tcp_nodelay};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with};
use wsbench_server_kit::listen_on;

use crate::accept::Seats;
use crate::options::Options;

/// Files that no connection takes: standard streams, listeners and epolls have room in it.
const SPARE_FILES: usize = 128;

pub struct Relay {
    /// Listening sockets, one a port. They block; an accepted socket has `TCP_NODELAY` from them.
    pub listeners: Vec<TcpListener>,
    /// Whether sockets on both sides have `TCP_NODELAY`.
    pub nodelay: bool,
    /// Threads that copy.
    pub threads: usize,
    /// What a buffer holds, where a method copies through one.
    pub buffer_bytes: usize,
    /// Files that pools of pipes and the like may hold open in all.
    pub pool_files: usize,
    /// How many connections there may be.
    pub seats: Seats,
    /// Files for connections in all.
    connection_files: usize,
    upstreams: Vec<SocketAddr>,
}

impl Relay {
    /// Listens on every port. `open_files` is the limit of this process, `None` for no limit.
    pub fn listen(options: &Options, open_files: Option<u64>) -> wsbench_server_kit::Result<Self> {
        let mut listeners = Vec::new();
        for port in options.ports.clone() {
            let listener = listen_on(SocketAddr::new(options.host, port))?;
            // Linux hands it down to every socket accepted here: no system call each.
            set_tcp_nodelay(&listener, options.nodelay)?;
            listeners.push(listener);
        }
        let files = open_files
            .and_then(|files| usize::try_from(files).ok())
            .unwrap_or(1 << 20)
            .saturating_sub(SPARE_FILES + listeners.len());
        // A quarter is for pools, which have to do with what they get; the rest is for
        // connections, of two sockets each: those without a seat wait to be accepted.
        let pool_files = files / 4;
        Ok(Self {
            listeners,
            nodelay: options.nodelay,
            threads: options.threads()?,
            buffer_bytes: options.buffer_bytes(),
            pool_files,
            seats: Seats::new(((files - pool_files) / 2).max(1)),
            connection_files: files - pool_files,
            upstreams: options.upstream.0.clone(),
        })
    }

    /// Where connections to the listener number `port` lead.
    pub fn upstream(&self, port: usize) -> SocketAddr {
        self.upstreams[port % self.upstreams.len()]
    }

    /// How many connections there may be, where each takes `files`.
    pub fn connections(&self, files: usize) -> usize {
        (self.connection_files / files).max(1)
    }

    /// Begins to connect. The socket does not block: it is connected once it can be
    /// written to, or has an error then.
    pub fn connect_upstream(&self, port: usize) -> io::Result<OwnedFd> {
        let address = self.upstream(port);
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        if self.nodelay {
            set_tcp_nodelay(&socket, true)?;
        }
        match connect(&socket, &address) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
            Err(error) => Err(error.into()),
        }
    }

    /// Connects, and waits for it.
    pub fn connect_upstream_blocking(&self, port: usize) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(self.upstream(port))?;
        if self.nodelay {
            stream.set_nodelay(true)?;
        }
        Ok(stream)
    }
}

/// Closes a socket so that its peer sees a reset: what it was sent is not all there was.
pub fn reset(socket: impl AsFd) {
    // Refused only for what is no socket.
    let _ = set_socket_linger(socket.as_fd(), Some(Duration::ZERO));
    drop(socket);
}
