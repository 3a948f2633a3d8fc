//! TCP sockets of this host: who listens, who owns a socket, and what is left of
//! a server that has ended.
//!
//! `/proc/net/tcp` and `tcp6` list listening sockets first. Looking for those ends at the first
//! other row, so it costs the same with ten sockets and with a million. Those of
//! some ports are asked for by [`diag`], and read from there only where the kernel cannot be asked.

mod diag;

use anyhow::Context as _;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::ControlFlow;
use wsbench_schema::PortRange;

const LISTEN: u8 = 0x0a;
const TIME_WAIT: u8 = 0x06;
const CLOSE_WAIT: u8 = 0x08;

/// One socket, as the kernel tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Its own end.
    pub local: SocketAddr,
    /// The other end.
    remote: SocketAddr,
    /// As the kernel numbers them.
    state: u8,
    /// Ties it to a file descriptor; 0 if it has none any more.
    pub inode: u64,
}

impl Socket {
    /// Whether it waits for connections.
    pub fn is_listening(&self) -> bool {
        self.state == LISTEN
    }

    /// Whether its other end has ended, and its owner has not yet closed it.
    pub fn is_half_closed(&self) -> bool {
        self.state == CLOSE_WAIT
    }

    /// Whether who listens on this address and the same port would collide with it.
    pub fn covers(&self, address: IpAddr) -> bool {
        address.is_unspecified() || self.serves(address)
    }

    /// Whether it is what a server listens with that was told to use this address.
    pub fn serves(&self, address: IpAddr) -> bool {
        let own = self.local.ip();
        own.is_unspecified() || own.to_canonical() == address.to_canonical()
    }
}

/// Every listening socket.
pub fn listening() -> anyhow::Result<Vec<Socket>> {
    let mut found = Vec::new();
    each(|socket| {
        let listens = socket.state == LISTEN;
        if listens {
            found.push(*socket);
        }
        listens
    })?;
    Ok(found)
}

/// Sockets of these local ports, listening ones included, TIME_WAIT apart.
pub fn alive(ports: PortRange) -> anyhow::Result<Vec<Socket>> {
    alive_at_most(ports, usize::MAX)
}

/// How many there are of [`alive`], but no more than that many are counted.
pub fn count_alive(ports: PortRange, most: usize) -> anyhow::Result<usize> {
    Ok(alive_at_most(ports, most)?.len())
}

fn alive_at_most(ports: PortRange, most: usize) -> anyhow::Result<Vec<Socket>> {
    let mut found = Vec::new();
    let mut take = |socket| {
        found.push(socket);
        match found.len() < most {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    };
    if !diag::each_alive(ports, &mut take)? {
        listed_alive(ports, &mut take)?;
    }
    Ok(found)
}

/// The same from `/proc`.
fn listed_alive(
    ports: PortRange,
    take: &mut dyn FnMut(Socket) -> ControlFlow<()>,
) -> anyhow::Result<()> {
    each(|socket| {
        let is_meant = ports.contains(socket.local.port()) && socket.state != TIME_WAIT;
        !is_meant || take(*socket).is_continue()
    })
}

/// Whether the kernel still has the end of a connection that belongs to a server's
/// port; TIME_WAIT, which nobody holds, apart. `remote` is the other end.
pub fn is_held(port: u16, remote: SocketAddr) -> anyhow::Result<bool> {
    match PortRange::starting_at(port, 1) {
        Some(port) => Ok(inode_of(port, remote)?.is_some()),
        None => Ok(false),
    }
}

/// Inode of the socket of one of these ports whose other end is `remote`.
pub fn inode_of(ports: PortRange, remote: SocketAddr) -> anyhow::Result<Option<u64>> {
    let is_other_end = |socket: &&Socket| {
        let (have, want) = (socket.remote.ip(), remote.ip());
        socket.remote.port() == remote.port() && have.to_canonical() == want.to_canonical()
    };
    let found = alive(ports)?;
    Ok(found.iter().find(is_other_end).map(|socket| socket.inode))
}

/// Under which number a process has a socket open; `None` if it has not, or may not be
/// looked at.
pub fn descriptor_of(pid: u32, inode: u64) -> Option<i32> {
    let mut open = open_sockets(pid);
    open.find(|(_, found)| *found == inode)
        .map(|(descriptor, _)| descriptor)
}

/// Number and inode of each socket that a process has open.
fn open_sockets(pid: u32) -> impl Iterator<Item = (i32, u64)> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten();
    entries.flatten().filter_map(|entry| {
        let link = fs::read_link(entry.path()).ok()?;
        let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
        let descriptor = entry.file_name().to_str()?.parse().ok()?;
        Some((descriptor, inode.parse().ok()?))
    })
}

/// Which of these processes holds which socket, by inode. Those of other users
/// can only be seen by root; they are left out.
pub fn owners(pids: impl Iterator<Item = u32>) -> HashMap<u64, u32> {
    let mut owners = HashMap::new();
    for pid in pids {
        for (_, inode) in open_sockets(pid) {
            owners.entry(inode).or_insert(pid);
        }
    }
    owners
}

/// Gives the rows of each file to `look` until it answers false.
fn each(mut look: impl FnMut(&Socket) -> bool) -> anyhow::Result<()> {
    for path in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let file = match File::open(path) {
            Ok(file) => file,
            // A kernel without IPv6.
            Err(error) if error.kind() == ErrorKind::NotFound && path.ends_with('6') => continue,
            Err(error) => return Err(error).context(format!("cannot read {path}")),
        };
        let mut reader = BufReader::new(file);
        let mut line = String::new();
        let mut heading = true;
        loop {
            line.clear();
            let length = reader
                .read_line(&mut line)
                .with_context(|| format!("cannot read {path}"))?;
            if length == 0 {
                break;
            }
            if std::mem::take(&mut heading) {
                continue;
            }
            let socket = parse(&line)
                .with_context(|| format!("{path}: not a row that Linux writes: {line}"))?;
            if !look(&socket) {
                break;
            }
        }
    }
    Ok(())
}

fn parse(row: &str) -> Option<Socket> {
    let mut fields = row.split_ascii_whitespace().skip(1);
    let local = parse_address(fields.next()?)?;
    let remote = parse_address(fields.next()?)?;
    let state = u8::from_str_radix(fields.next()?, 16).ok()?;
    let inode = fields.nth(5)?.parse().ok()?;
    Some(Socket {
        local,
        remote,
        state,
        inode,
    })
}

/// Words of four bytes in the machine's order, as they lie in memory.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        let word = u32::from_str_radix(address.get(at..at + 8)?, 16).ok()?;
        Some(word.to_ne_bytes())
    };
    let ip = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    #[cfg(target_endian = "little")]
    fn rows_of_both_families_are_read() {
        let row = "   3: 0100007F:2711 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000 100 0 0 10 0";
        let socket = parse(row).unwrap();
        assert_eq!(socket.local, "127.0.0.1:10001".parse().unwrap());
        assert_eq!((socket.state, socket.inode), (LISTEN, 4711));
        let row = "  11: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 06 00000000:00000000 00:00000000 00000000     0        0 0 1 0000";
        let socket = parse(row).unwrap();
        assert_eq!(socket.local, "[::1]:8080".parse().unwrap());
        assert_eq!((socket.state, socket.inode), (TIME_WAIT, 0));
        assert_eq!(parse("  11: 0000:1F90"), None);
    }

    #[test]
    fn a_listener_is_found_with_its_owner_until_it_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let port = PortRange::starting_at(address.port(), 1).unwrap();
        let found = listening().unwrap();
        let socket = found
            .iter()
            .find(|socket| socket.local == address)
            .expect("it listens");
        let own = std::process::id();
        assert_eq!(owners([own].into_iter()).get(&socket.inode), Some(&own));
        let stream = TcpStream::connect(address).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        assert_eq!(alive(port).unwrap().len(), 2, "listener and accepted one");
        let client = stream.local_addr().unwrap();
        assert!(is_held(address.port(), client).unwrap());
        assert!(!is_held(client.port(), client).unwrap(), "two ends of one");
        // The side that closes first keeps a TIME_WAIT, which does not count.
        drop(accepted);
        drop(stream);
        drop(listener);
        assert!(!is_held(address.port(), client).unwrap());
        let gone = crate::process::wait_until(std::time::Duration::from_secs(5), || {
            alive(port).unwrap().is_empty()
        });
        assert!(gone, "{:?}", alive(port).unwrap());
    }

    #[test]
    fn the_kernel_tells_the_same_sockets_as_proc() {
        let listeners = [
            TcpListener::bind("127.0.0.1:0").unwrap(),
            TcpListener::bind("[::1]:0").unwrap(),
        ];
        for listener in listeners {
            let address = listener.local_addr().unwrap();
            let _pair = (
                TcpStream::connect(address).unwrap(),
                listener.accept().unwrap(),
            );
            let port = PortRange::starting_at(address.port(), 1).unwrap();
            let key = |socket: &Socket| (socket.local, socket.state, socket.inode);
            let mut asked = Vec::new();
            let mut take = |socket| {
                asked.push(socket);
                ControlFlow::Continue(())
            };
            assert!(
                diag::each_alive(port, &mut take).unwrap(),
                "sock_diag is here"
            );
            let mut listed = Vec::new();
            listed_alive(port, &mut |socket| {
                listed.push(socket);
                ControlFlow::Continue(())
            })
            .unwrap();
            asked.sort_by_key(key);
            listed.sort_by_key(key);
            // /proc lists a socket twice if others come while it is read.
            listed.dedup_by_key(|socket| socket.inode);
            assert_eq!((asked.len(), &asked), (2, &listed));
            assert_eq!(count_alive(port, 1).unwrap(), 1);
        }
    }

    #[test]
    fn looking_for_listeners_does_not_read_the_connections() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connections: Vec<_> = (0..400)
            .map(|_| {
                (
                    TcpStream::connect(address).unwrap(),
                    listener.accept().unwrap(),
                )
            })
            .collect();
        let port = PortRange::starting_at(address.port(), 1).unwrap();
        assert_eq!(alive(port).unwrap().len(), 401);
        // Of each family: the listeners, and the first row that is none.
        let mut rows = 0;
        each(|socket| {
            rows += 1;
            socket.state == LISTEN
        })
        .unwrap();
        assert!(rows <= listening().unwrap().len() + 20, "{rows}");
        drop(connections);
    }

    #[test]
    fn a_wildcard_covers_every_address() {
        let socket = |local: &str| Socket {
            local: local.parse().unwrap(),
            remote: "0.0.0.0:0".parse().unwrap(),
            state: LISTEN,
            inode: 1,
        };
        let loopback: IpAddr = "127.0.0.1".parse().unwrap();
        assert!(socket("0.0.0.0:1").covers(loopback));
        assert!(socket("[::]:1").covers(loopback));
        assert!(socket("[::ffff:127.0.0.1]:1").covers(loopback));
        assert!(!socket("127.0.0.2:1").covers(loopback));
        let all: IpAddr = "0.0.0.0".parse().unwrap();
        assert!(socket("127.0.0.2:1").covers(all));
        assert!(!socket("127.0.0.2:1").serves(all), "others cannot reach it");
        assert!(socket("[::]:1").serves(all));
    }
}
