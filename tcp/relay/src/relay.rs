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
use crate::method::Files;
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
    pub connections: usize,
    /// A seat for each of these, of the methods that accept on threads.
    pub seats: Seats,
    upstreams: Vec<SocketAddr>,
}

/// Files for connections and pools, of all that a process may open.
fn files(limit: usize, listeners: usize) -> usize {
    limit.saturating_sub(SPARE_FILES + listeners)
}

/// What these files are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Room {
    pool_files: usize,
    connections: usize,
}

impl Room {
    /// A quarter is for pools, if there are any, which have to do with what they get. The
    /// rest is for connections: those without a seat wait to be accepted.
    fn of(method: Files, files: usize) -> Self {
        let pool_files = match method {
            Files::SocketsAndPool => files / 4,
            Files::Sockets | Files::SocketsAndPipes => 0,
        };
        Self {
            pool_files,
            connections: ((files - pool_files) / method.of_connection()).max(1),
        }
    }
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
        let limit = open_files.and_then(|files| usize::try_from(files).ok());
        let files = files(limit.unwrap_or(1 << 20), listeners.len());
        let room = Room::of(options.method.files, files);
        Ok(Self {
            listeners,
            nodelay: options.nodelay,
            threads: options.threads()?,
            buffer_bytes: options.buffer_bytes(),
            pool_files: room.pool_files,
            connections: room.connections,
            seats: Seats::new(room.connections),
            upstreams: options.upstream.0.clone(),
        })
    }

    /// Where connections to the listener number `port` lead.
    pub fn upstream(&self, port: usize) -> SocketAddr {
        self.upstreams[port % self.upstreams.len()]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::METHODS;

    /// Files that the manifest says a connection of that method takes.
    fn descriptors(method: &str) -> usize {
        let entry = format!("{{ name = \"{method}\"");
        let manifest = include_str!("../Cargo.toml");
        let is_its = |line: &&str| line.trim_start().starts_with(&entry);
        let line = manifest.lines().find(is_its).unwrap();
        let own = line.split("descriptors = ").nth(1);
        own.map_or(2, |rest| {
            rest.trim_end_matches([' ', '}', ',']).parse().unwrap()
        })
    }

    #[test]
    fn there_are_seats_for_as_many_connections_as_the_manifest_promises() {
        // The harness puts as many on a process as have these files within its limit,
        // but for those that any process has beside.
        const BESIDE: usize = 200;
        const PORTS: usize = 10;
        for limit in [1024, 20_000, 1 << 20] {
            for method in METHODS {
                let promised = (limit - BESIDE) / descriptors(method.name);
                let room = Room::of(method.files, files(limit, PORTS));
                let opened = room.connections * method.files.of_connection() + room.pool_files;
                let fits = opened + SPARE_FILES + PORTS <= limit;
                assert!(
                    room.connections >= promised && fits,
                    "{} of {limit}: {room:?}",
                    method.name
                );
            }
        }
        // Two processes with 20,000 files each hold 5,000 connections with both pipes.
        let room = Room::of(Files::SocketsAndPipes, files(20_000, PORTS));
        assert!(room.connections >= 2500, "{room:?}");
        // With no room at all there is a seat: an accept that fails says why.
        assert_eq!(Room::of(Files::Sockets, files(100, PORTS)).connections, 1);
    }
}
