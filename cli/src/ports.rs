//! Ports for a server: free ones, and whether those that the user named can be used.
//!
//! All are outside the range from which the kernel takes the ports of outgoing
//! connections: inside it, any client of anybody may hold a port just when a
//! server wants to listen on it.

use crate::process;
use crate::sockets::{self, Socket};
use anyhow::{Context as _, bail};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use std::collections::HashSet;
use std::fs;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use wsbench_schema::PortRange;

/// Ports of a server if the user does not say.
pub const DEFAULT_PORTS: u16 = 10;

/// Free ports are looked for from here on first: below are many well-known services.
const PREFERRED_FIRST: u16 = 10001;
const UNPRIVILEGED_FIRST: u16 = 1024;

/// `count` consecutive ports that a server can listen on now, from a random
/// place on, so that two runs at the same time do not choose the same.
pub fn free_ports(count: u16, host: &str) -> anyhow::Result<PortRange> {
    if count == 0 {
        bail!("a server needs at least 1 port");
    }
    let address = resolve(host)?;
    let ephemeral = Ephemeral::of_this_host()?;
    let listeners = sockets::listening()?;
    let mut usable = vec![true; 1 << 16];
    for port in 0..=u16::MAX {
        usable[usize::from(port)] = port != 0 && !ephemeral.contains(port);
    }
    for listener in listeners {
        usable[usize::from(listener.local.port())] = false;
    }
    let start = fastrand::u16(..);
    for candidate in candidates(&usable, count, start) {
        let mut ports = candidate.iter();
        // A privileged port that this user may not take is like a used one.
        let refused = ports.find_map(|port| match try_bind(address, port) {
            Ok(()) => None,
            Err(Errno::ADDRNOTAVAIL) => Some(true),
            Err(_) => Some(false),
        });
        match refused {
            None => return Ok(candidate),
            Some(true) => bail!(not_ours(host)),
            Some(false) => {}
        }
    }
    bail!(
        "there are no {count} consecutive free ports outside net.ipv4.ip_local_port_range ({ephemeral}) \
         (make room: sysctl -w net.ipv4.ip_local_port_range=\"32768 60999\", or name ports with --ports)"
    )
}

/// How many ports a server could listen on now, those of root apart.
pub fn usable_count() -> anyhow::Result<u64> {
    let ephemeral = Ephemeral::of_this_host()?;
    let listening: HashSet<u16> = sockets::listening()?
        .iter()
        .map(|listener| listener.local.port())
        .collect();
    let usable = (UNPRIVILEGED_FIRST..=u16::MAX)
        .filter(|port| !ephemeral.contains(*port) && !listening.contains(port));
    Ok(usable.count() as u64)
}

/// How many ports the kernel gives to the outgoing connections of an address.
pub fn ephemeral_count() -> anyhow::Result<u64> {
    let ephemeral = Ephemeral::of_this_host()?;
    let ports = (ephemeral.first..=ephemeral.last).filter(|port| ephemeral.contains(*port));
    Ok(ports.count() as u64)
}

/// Whether a server can listen on the ports that the user named.
pub fn check_ports(range: PortRange, host: &str) -> anyhow::Result<()> {
    let address = resolve(host)?;
    let ephemeral = Ephemeral::of_this_host()?;
    if let Some(port) = range.iter().find(|port| ephemeral.contains(*port)) {
        let reserved = match ephemeral.reserved_text.as_str() {
            "" => range.to_string(),
            others => format!("{others},{range}"),
        };
        bail!(
            "port {port} is inside net.ipv4.ip_local_port_range ({ephemeral}), where any outgoing connection \
             may hold it (choose other ports, or run: sysctl -w net.ipv4.ip_local_reserved_ports={reserved})"
        );
    }
    check_unused(range, address)
}

/// Whether nobody holds these ports; the error names who does.
pub fn check_unused(range: PortRange, address: IpAddr) -> anyhow::Result<()> {
    let listeners = sockets::listening()?;
    let taken = |socket: &&Socket| range.contains(socket.local.port()) && socket.covers(address);
    if let Some(listener) = listeners.iter().find(taken) {
        bail!(
            "port {} is in use: {} listens on {} (stop it, or choose others with --ports)",
            listener.local.port(),
            holder(listener),
            listener.local
        );
    }
    for port in range.iter() {
        match try_bind(address, port) {
            Ok(()) => {}
            Err(Errno::ADDRINUSE) => {
                let one = PortRange::starting_at(port, 1).context("port 0 is no port")?;
                let socket = sockets::alive(one)?
                    .into_iter()
                    .find(|socket| socket.covers(address));
                let holder = socket
                    .as_ref()
                    .map_or("a socket that does not listen".into(), holder);
                bail!("port {port} is in use by {holder} (stop it, or choose others with --ports)");
            }
            Err(Errno::ADDRNOTAVAIL) => bail!(not_ours(&address.to_string())),
            Err(Errno::ACCESS) => bail!(
                "port {port} is for root only (choose ports from {UNPRIVILEGED_FIRST} on with --ports)"
            ),
            Err(error) => {
                return Err(error).context(format!("cannot use port {port} of {address}"));
            }
        }
    }
    Ok(())
}

/// The first address that a host's name or address stands for.
pub fn resolve(host: &str) -> anyhow::Result<IpAddr> {
    let mut addresses = (host, 0)
        .to_socket_addrs()
        .with_context(|| format!("`{host}` is not an address or a known host"))?;
    let first = addresses
        .next()
        .with_context(|| format!("`{host}` has no address"))?;
    Ok(first.ip())
}

/// `pid 12 (nginx)`, as far as it can be found.
pub fn holder(socket: &Socket) -> String {
    let pids = process::all().unwrap_or_default();
    let owners = sockets::owners(pids.iter().map(|process| process.identity.pid));
    match owners.get(&socket.inode) {
        Some(pid) => format!("pid {pid} ({})", process::name(*pid)),
        None => "a process of another user".into(),
    }
}

fn not_ours(host: &str) -> String {
    format!("cannot listen on {host}: it is not an address of this host (see: ip address)")
}

/// As a server would, which is how a socket in TIME_WAIT does not matter.
fn try_bind(address: IpAddr, port: u16) -> Result<(), Errno> {
    let family = match address {
        IpAddr::V4(_) => AddressFamily::INET,
        IpAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &SocketAddr::new(address, port))
}

/// Ranges of usable ports, each begin once: those from 10001 on, from `start`
/// around; then the lower ones; those of root last.
fn candidates(usable: &[bool], count: u16, start: u16) -> impl Iterator<Item = PortRange> {
    let begins = |from: u16, to: u16| {
        (from..=to).filter(move |first| {
            let range = PortRange::starting_at(*first, count);
            range.is_some_and(|range| range.iter().all(|port| usable[usize::from(port)]))
        })
    };
    let preferred: Vec<u16> = begins(PREFERRED_FIRST, u16::MAX).collect();
    let turn = usize::from(start) % preferred.len().max(1);
    let around = (0..preferred.len()).map(move |i| preferred[(turn + i) % preferred.len()]);
    let rest = begins(UNPRIVILEGED_FIRST, PREFERRED_FIRST - 1);
    let roots = begins(1, UNPRIVILEGED_FIRST - 1);
    around
        .chain(rest)
        .chain(roots)
        .filter_map(move |first| PortRange::starting_at(first, count))
}

/// Where the kernel takes the ports of outgoing connections.
struct Ephemeral {
    first: u16,
    last: u16,
    /// Inside, but never taken.
    reserved: Vec<PortRange>,
    reserved_text: String,
}

impl Ephemeral {
    fn of_this_host() -> anyhow::Result<Self> {
        let range = sysctl("ip_local_port_range")?;
        Self::parse(&range, &sysctl("ip_local_reserved_ports")?)
    }

    fn parse(range: &str, reserved: &str) -> anyhow::Result<Self> {
        let ends: Vec<u16> = range
            .split_whitespace()
            .filter_map(|end| end.parse().ok())
            .collect();
        let &[first, last] = ends.as_slice() else {
            bail!(
                "net.ipv4.ip_local_port_range is `{}`, not two ports",
                range.trim()
            );
        };
        let reserved_text = reserved.trim().to_owned();
        let reserved = reserved_text
            .split(',')
            .filter(|range| !range.is_empty())
            .map(str::parse)
            .collect::<Result<_, _>>()
            .context("net.ipv4.ip_local_reserved_ports")?;
        Ok(Self {
            first,
            last,
            reserved,
            reserved_text,
        })
    }

    fn contains(&self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
            && !self.reserved.iter().any(|range| range.contains(port))
    }
}

impl std::fmt::Display for Ephemeral {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

fn sysctl(name: &str) -> anyhow::Result<String> {
    let path = format!("/proc/sys/net/ipv4/{name}");
    fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    const LOOPBACK: &str = "127.0.0.1";

    /// A free port outside the ephemeral range, held by a listener of this process.
    fn listener() -> (TcpListener, PortRange) {
        loop {
            let port = free_ports(1, LOOPBACK).unwrap();
            if let Ok(listener) = TcpListener::bind((LOOPBACK, port.first)) {
                return (listener, port);
            }
        }
    }

    #[test]
    fn free_ports_can_all_be_listened_on_and_are_outside_the_ephemeral_range() {
        let ports = free_ports(10, LOOPBACK).unwrap();
        assert_eq!(ports.count(), 10);
        let ephemeral = Ephemeral::of_this_host().unwrap();
        for port in ports.iter() {
            assert!(
                port >= UNPRIVILEGED_FIRST && !ephemeral.contains(port),
                "{port}"
            );
        }
        check_ports(ports, LOOPBACK).unwrap();
    }

    #[test]
    fn a_port_in_use_is_named_with_its_holder() {
        let (_listener, port) = listener();
        let error = check_ports(port, LOOPBACK).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!(
                "port {port} is in use: pid {}",
                std::process::id()
            )),
            "{error}"
        );
        let error = check_ports(port, "0.0.0.0").unwrap_err().to_string();
        assert!(error.contains("is in use"), "{error}");
    }

    #[test]
    fn a_port_that_is_bound_but_not_listened_on_is_in_use() {
        let port = free_ports(1, LOOPBACK).unwrap();
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        let address = SocketAddr::new(LOOPBACK.parse().unwrap(), port.first);
        bind(&socket, &address).unwrap();
        let error = check_ports(port, LOOPBACK).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("port {port} is in use by")),
            "{error}"
        );
    }

    #[test]
    fn an_ephemeral_port_is_refused_with_the_remedy() {
        let range = Ephemeral::of_this_host().unwrap();
        let port = PortRange::starting_at(range.first, 1).unwrap();
        let error = check_ports(port, LOOPBACK).unwrap_err().to_string();
        assert!(error.contains(&format!("({range})")), "{error}");
        assert!(
            error.contains("net.ipv4.ip_local_reserved_ports="),
            "{error}"
        );
    }

    #[test]
    fn reserved_ports_count_as_outside() {
        let range = Ephemeral::parse("1024\t65535\n", "2000-2009,3000\n").unwrap();
        assert!(range.contains(1999) && range.contains(3001) && range.contains(65535));
        assert!(!range.contains(2000) && !range.contains(2009) && !range.contains(3000));
        assert!(!range.contains(1023));
        assert!(Ephemeral::parse("1024", "").is_err());
    }

    #[test]
    fn a_host_that_is_not_here_is_refused_as_such() {
        // TEST-NET-1, which no host has.
        let error = free_ports(1, "192.0.2.1").unwrap_err().to_string();
        assert!(error.contains("not an address of this host"), "{error}");
    }

    #[test]
    fn candidates_avoid_used_ports_and_prefer_high_ones() {
        let mut usable = vec![false; 1 << 16];
        for port in [80, 81, 1024, 1025, 20000, 20001, 20003, 20004, 20005] {
            usable[port] = true;
        }
        let firsts: Vec<u16> = candidates(&usable, 2, 1).map(|range| range.first).collect();
        assert_eq!(firsts, [20003, 20004, 20000, 1024, 80]);
        assert_eq!(candidates(&usable, 4, 0).count(), 0);
    }
}
