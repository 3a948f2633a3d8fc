//! Opening sockets: which address and port each connection goes to, which
//! source address it comes from, and a non-blocking `connect`.

use crate::EngineError;
use mio::net::TcpStream;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::time::Duration;
use wsbench_schema::{Part, PortRange, Target};

/// In 127.0.0.0/8.
const LOOPBACK_ADDRESSES: u32 = 1 << 24;
/// Of `linux/in.h`; the libc crate does not have it.
const IP_LOCAL_PORT_RANGE: libc::c_int = 51;

/// Where every connection goes to and comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    ip: IpAddr,
    ports: PortRange,
    /// Number of the first connection among those of all client processes.
    first: u32,
    from: From,
}

/// Where connections come from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum From {
    /// The kernel chooses address and port.
    Any,
    /// The kernel chooses too, but ports of the whole range without preference.
    WholeRange(LocalPorts),
    /// These addresses, used in turn.
    Sources(Vec<Ipv4Addr>),
}

/// The local ports that the kernel gives out by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LocalPorts {
    low: u16,
    high: u16,
}

/// Local ports that the kernel gives out by itself.
#[must_use]
pub fn local_ports() -> u32 {
    LocalPorts::of_this_machine().count()
}

impl LocalPorts {
    fn of_this_machine() -> Self {
        let range =
            fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
        let mut ends = range.split_whitespace().filter_map(|end| end.parse().ok());
        match (ends.next(), ends.next()) {
            (Some(low), Some(high)) if high >= low => Self { low, high },
            // The kernel's default, where /proc is not readable.
            _ => Self {
                low: 32_768,
                high: 60_999,
            },
        }
    }

    fn count(self) -> u32 {
        u32::from(self.high - self.low) + 1
    }
}

/// Connections to one port for which a single source address is used at most, of so
/// many local ports. Beyond half of them a `connect` from the same address becomes slow;
/// an eighth of the half is left for ports bound by others, which are passed over.
#[must_use]
pub fn ports_of_one_source(local_ports: u32) -> u32 {
    (local_ports / 16 * 7).max(1)
}

impl Route {
    /// Finds the host, and enough source addresses for `connections` of this
    /// client process, which is `part` of the client.
    ///
    /// A socket that the kernel gives a port by itself gets every second port of
    /// the range first. Once those are taken for a destination, each `connect`
    /// searches all of them before it tries the others, and is hundreds of times
    /// slower. On loopback every 127.x.y.z is at hand without set-up, so each is
    /// used for less than half its ports, and each client process has addresses
    /// of its own. From a single address, a socket that names its range
    /// (`IP_LOCAL_PORT_RANGE`, Linux 6.8) has no such preference.
    ///
    /// # Errors
    /// If the host is unknown, or its ports cannot take so many connections
    /// from this machine.
    pub fn plan(target: &Target, connections: u32, part: Part) -> Result<Self, EngineError> {
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
        let local = LocalPorts::of_this_machine();
        Self::with_local_ports(ip, target.ports, connections, part, local)
    }

    fn with_local_ports(
        ip: IpAddr,
        ports: PortRange,
        connections: u32,
        part: Part,
        local: LocalPorts,
    ) -> Result<Self, EngineError> {
        let servers = ports.count() as u32;
        let comfortable = ports_of_one_source(local.count());
        let all = connections.saturating_mul(part.of);
        let per_port = all.div_ceil(servers);
        let is_loopback_v4 = matches!(ip, IpAddr::V4(ip) if ip.is_loopback());
        let from = if per_port <= comfortable {
            From::Any
        } else if is_loopback_v4 {
            let count = connections.div_ceil(servers).div_ceil(comfortable);
            // The same for all parts, whatever their share: 127.0.0.0/8 in blocks.
            let block = LOOPBACK_ADDRESSES / part.of.next_power_of_two();
            if count >= block {
                return Err(EngineError::Ports {
                    connections,
                    ports,
                    ephemeral: local.count(),
                });
            }
            let first = u32::from(Ipv4Addr::LOCALHOST) + part.index * block;
            From::Sources((first..first + count).map(Ipv4Addr::from).collect())
        } else if per_port <= local.count() {
            From::WholeRange(local)
        } else {
            return Err(EngineError::Ports {
                connections: all,
                ports,
                ephemeral: local.count(),
            });
        };
        Ok(Self {
            ip,
            ports,
            first: connections.saturating_mul(part.index),
            from,
        })
    }

    /// Number of the first connection of this client process among those of all.
    #[must_use]
    pub fn first(&self) -> u32 {
        self.first
    }

    /// The destination of a connection, by its number among those of this client process.
    #[must_use]
    pub fn destination(&self, number: u32) -> SocketAddr {
        let turn = self.first.wrapping_add(number) % self.ports.count() as u32;
        SocketAddr::new(self.ip, self.ports.first + turn as u16)
    }

    /// The address that it is bound to, if it is bound to one.
    #[must_use]
    pub fn source(&self, number: u32) -> Option<Ipv4Addr> {
        let From::Sources(sources) = &self.from else {
            return None;
        };
        let turn = number as usize / self.ports.count() % sources.len();
        Some(sources[turn])
    }

    /// Calls `connect` without waiting for its result.
    ///
    /// However the socket is closed, even by the end of a killed process, it is
    /// closed with a reset, so that a million connections leave no million ports in
    /// TIME_WAIT for the next trial.
    ///
    /// # Errors
    /// If the kernel refuses at once.
    pub fn connect(&self, number: u32) -> io::Result<TcpStream> {
        let destination = self.destination(number);
        let kind = Type::STREAM.nonblocking().cloexec();
        let socket = Socket::new(Domain::for_address(destination), kind, Some(Protocol::TCP))?;
        socket.set_tcp_nodelay(true)?;
        socket.set_linger(Some(Duration::ZERO))?;
        match &self.from {
            From::Any => {}
            From::WholeRange(local) => name_local_ports(&socket, *local),
            From::Sources(_) => {
                if let Some(source) = self.source(number) {
                    set_ip_option(&socket, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
                    socket.bind(&SockAddr::from(SocketAddr::new(source.into(), 0)))?;
                }
            }
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

/// Lets the port be any of the range, where the kernel knows the option; where
/// it does not, dials become slow beyond half of it, and that is all.
fn name_local_ports(socket: &Socket, local: LocalPorts) {
    let range =
        i32::from_ne_bytes((u32::from(local.high) << 16 | u32::from(local.low)).to_ne_bytes());
    let _ = set_ip_option(socket, IP_LOCAL_PORT_RANGE, range);
}

/// Sets an option of level `IPPROTO_IP` for which neither socket2 nor rustix has a
/// wrapper. `IP_BIND_ADDRESS_NO_PORT` leaves the choice of the port to `connect`,
/// which knows the destination, so that a port can serve one connection for each.
fn set_ip_option(socket: &Socket, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the pointer and length are those of a live integer; the call
    // keeps neither.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
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
    use socket2::SockRef;
    use std::collections::HashMap;
    use std::net::TcpListener;

    const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    /// 28,000 of them.
    const LOCAL_PORTS: LocalPorts = LocalPorts {
        low: 32_000,
        high: 59_999,
    };

    fn ports(count: u16) -> PortRange {
        PortRange::starting_at(10_001, count).unwrap()
    }

    fn plan(ip: IpAddr, ports: PortRange, connections: u32, part: Part) -> Route {
        Route::with_local_ports(ip, ports, connections, part, LOCAL_PORTS).unwrap()
    }

    #[test]
    fn the_kernel_chooses_the_source_while_less_than_half_the_ports_suffice() {
        let route = plan(LOCAL, ports(10), 122_500, Part::WHOLE);
        assert_eq!(route.from, From::Any);
        let route = plan(LOCAL, ports(10), 122_501, Part::WHOLE);
        assert!(matches!(route.from, From::Sources(sources) if sources.len() == 2));
    }

    #[test]
    fn a_million_connections_have_sources_enough() {
        let route = plan(LOCAL, ports(10), 1_000_000, Part::WHOLE);
        let mut uses = HashMap::new();
        for number in 0..1_000_000 {
            *uses
                .entry((route.source(number), route.destination(number)))
                .or_insert(0) += 1;
        }
        assert_eq!(uses.len(), 90);
        assert!(uses.values().all(|count| *count <= 12_250));
    }

    #[test]
    fn client_processes_share_the_ports_without_sharing_a_source() {
        // 19,231 and 19,230 connections, as a million splits over 52.
        for (ports, servers) in [(ports(52), 52), (ports(520), 520), (ports(1), 1)] {
            let mut uses = HashMap::new();
            let mut loads = HashMap::new();
            for index in 0..52 {
                let share = if index < 40 { 19_231 } else { 19_230 };
                let route = plan(LOCAL, ports, share, Part { index, of: 52 });
                for number in 0..share {
                    let to = route.destination(number).port();
                    *uses.entry((route.source(number), to)).or_insert(0) += 1;
                    *loads.entry(to).or_insert(0) += 1;
                }
            }
            assert!(uses.values().all(|count| *count <= 12_250));
            // Every port of the servers takes the same load: no process' remainder goes
            // where another's went.
            let (least, most) = (loads.values().min(), loads.values().max());
            assert_eq!(loads.len(), servers);
            assert!(most.unwrap() - least.unwrap() <= 52, "{least:?} {most:?}");
        }
    }

    #[test]
    fn from_a_single_address_the_whole_range_is_named_once_half_is_too_little() {
        let far = "192.0.2.1".parse().unwrap();
        assert_eq!(plan(far, ports(1), 12_250, Part::WHOLE).from, From::Any);
        let whole = From::WholeRange(LOCAL_PORTS);
        assert_eq!(plan(far, ports(1), 28_000, Part::WHOLE).from, whole);
        let part = Part { index: 1, of: 2 };
        assert_eq!(plan(far, ports(1), 14_000, part).from, whole);
        let error = Route::with_local_ports(far, ports(1), 28_001, Part::WHOLE, LOCAL_PORTS)
            .unwrap_err()
            .to_string();
        assert!(error.contains("ip_local_port_range"), "{error}");
    }

    #[test]
    fn a_bound_source_is_the_peer_that_the_server_sees() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let ports = PortRange::starting_at(port, 1).unwrap();
        let sources = vec![Ipv4Addr::new(127, 0, 0, 2)];
        let local = LocalPorts::of_this_machine();
        for from in [From::Sources(sources), From::WholeRange(local), From::Any] {
            let route = Route {
                ip: LOCAL,
                ports,
                first: 0,
                from,
            };
            let stream = route.connect(0).unwrap();
            let linger = SockRef::from(&stream).linger().unwrap();
            assert_eq!(linger, Some(Duration::ZERO), "it is closed with a reset");
            let (_, peer) = listener.accept().unwrap();
            let expected = route.source(0).unwrap_or(Ipv4Addr::LOCALHOST);
            assert_eq!(peer.ip(), expected);
            assert_eq!(stream.local_addr().unwrap(), peer);
            assert!((local.low..=local.high).contains(&peer.port()));
        }
    }
}
