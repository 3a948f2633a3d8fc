//! Opening sockets: which address and port each connection goes to, which
//! source address it comes from, and a non-blocking `connect`.

use crate::EngineError;
use mio::net::TcpStream;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::AsRawFd;
use wsbench_schema::{PortRange, Target};

/// Where every connection goes to and comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    ip: IpAddr,
    ports: PortRange,
    /// Source addresses, used in turn; empty lets the kernel choose.
    sources: Vec<Ipv4Addr>,
}

/// Local ports that the kernel gives out by itself.
fn ephemeral_ports() -> u32 {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut ends = range
        .split_whitespace()
        .filter_map(|end| end.parse::<u32>().ok());
    match (ends.next(), ends.next()) {
        (Some(low), Some(high)) if high >= low => high - low + 1,
        // The kernel's default, where /proc is not readable.
        _ => 28_232,
    }
}

impl Route {
    /// Finds the host, and enough source addresses for `connections`.
    ///
    /// From one address, `connect` becomes hundreds of times slower once half
    /// the ephemeral ports are taken for a destination. On loopback every
    /// 127.x.y.z is at hand without set-up, so each is used for half at most.
    ///
    /// # Errors
    /// If the host is unknown, or its ports cannot take so many connections
    /// from this machine.
    pub fn plan(target: &Target, connections: u32) -> Result<Self, EngineError> {
        let host = target.host.as_str();
        let unknown = |reason: &str| EngineError::Host {
            host: host.into(),
            reason: reason.into(),
        };
        let mut addresses = (host, target.ports.first)
            .to_socket_addrs()
            .map_err(|error| unknown(&error.to_string()))?;
        let ip = addresses
            .next()
            .ok_or_else(|| unknown("it has no address"))?
            .ip();
        Self::with_ephemeral(ip, target.ports, connections, ephemeral_ports())
    }

    fn with_ephemeral(
        ip: IpAddr,
        ports: PortRange,
        connections: u32,
        ephemeral: u32,
    ) -> Result<Self, EngineError> {
        let per_port = connections.div_ceil(ports.count() as u32);
        let comfortable = (ephemeral / 2).max(1);
        let sources = per_port.div_ceil(comfortable);
        let is_loopback_v4 = matches!(ip, IpAddr::V4(ip) if ip.is_loopback());
        if is_loopback_v4 && sources > 1 {
            let address = |index: u32| Ipv4Addr::from(u32::from(Ipv4Addr::LOCALHOST) + index);
            return Ok(Self {
                ip,
                ports,
                sources: (0..sources).map(address).collect(),
            });
        }
        if per_port > ephemeral {
            return Err(EngineError::Ports {
                connections,
                ports,
                ephemeral,
            });
        }
        Ok(Self {
            ip,
            ports,
            sources: Vec::new(),
        })
    }

    /// The destination of a connection, by its number among all of the client.
    #[must_use]
    pub fn destination(&self, number: u32) -> SocketAddr {
        let count = self.ports.count() as u32;
        SocketAddr::new(self.ip, self.ports.first + (number % count) as u16)
    }

    fn source(&self, number: u32) -> Option<Ipv4Addr> {
        let turn = (number as usize / self.ports.count()).checked_rem(self.sources.len())?;
        Some(self.sources[turn])
    }

    /// Calls `connect` without waiting for its result.
    ///
    /// # Errors
    /// If the kernel refuses at once.
    pub fn connect(&self, number: u32) -> io::Result<TcpStream> {
        let destination = self.destination(number);
        let kind = Type::STREAM.nonblocking().cloexec();
        let socket = Socket::new(Domain::for_address(destination), kind, Some(Protocol::TCP))?;
        socket.set_tcp_nodelay(true)?;
        if let Some(source) = self.source(number) {
            bind_address_no_port(&socket)?;
            socket.bind(&SockAddr::from(SocketAddr::new(source.into(), 0)))?;
        }
        match socket.connect(&destination.into()) {
            Err(error) if !in_progress(&error) => Err(error),
            _ => Ok(TcpStream::from_std(socket.into())),
        }
    }
}

fn in_progress(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EINPROGRESS)
}

/// Leaves the choice of the port to `connect`, which knows the destination, so
/// that a port can serve one connection for each destination.
fn bind_address_no_port(socket: &Socket) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the pointer and length are those of a live integer; the call
    // keeps neither. No safe wrapper of this option exists in socket2 or rustix.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn ports(count: u16) -> PortRange {
        PortRange::starting_at(10_001, count).unwrap()
    }

    #[test]
    fn the_kernel_chooses_the_source_while_half_the_ports_suffice() {
        let route = Route::with_ephemeral(LOCAL, ports(10), 140_000, 28_000).unwrap();
        assert!(route.sources.is_empty());
    }

    #[test]
    fn a_million_connections_have_sources_enough() {
        let route = Route::with_ephemeral(LOCAL, ports(10), 1_000_000, 28_000).unwrap();
        assert_eq!(route.sources.len(), 8);
        let mut uses = std::collections::HashMap::new();
        for number in 0..1_000_000 {
            *uses
                .entry((route.source(number), route.destination(number)))
                .or_insert(0) += 1;
        }
        assert_eq!(uses.len(), 80);
        assert!(uses.values().all(|count| *count <= 14_000));
    }

    #[test]
    fn too_many_connections_for_another_host_are_refused_with_the_remedy() {
        let far = "192.0.2.1".parse().unwrap();
        let error = Route::with_ephemeral(far, ports(1), 30_000, 28_000)
            .unwrap_err()
            .to_string();
        assert!(error.contains("ip_local_port_range"), "{error}");
    }

    #[test]
    fn a_bound_source_is_the_peer_that_the_server_sees() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let route = Route {
            ip: LOCAL,
            ports: PortRange {
                first: port,
                last: port,
            },
            sources: vec![Ipv4Addr::new(127, 0, 0, 2)],
        };
        let stream = route.connect(0).unwrap();
        let (_, peer) = listener.accept().unwrap();
        assert_eq!(peer.ip(), Ipv4Addr::new(127, 0, 0, 2));
        assert_eq!(stream.local_addr().unwrap(), peer);
    }
}
