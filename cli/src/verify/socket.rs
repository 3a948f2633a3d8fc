//! What the server did to its own socket of a connection, read from that very socket:
//! no answer on the wire tells it.

use super::connection::{Patience, Peer};
use super::server::GROUP;
use crate::{process, sockets};
use anyhow::{Context as _, bail};
use rustix::net::sockopt;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use wsbench_schema::{Finding, Level, PortRange, Verdict};

/// For a handshake.
const WITHIN: Duration = Duration::from_secs(2);

/// Whether TCP_NODELAY is as the server was told, on a connection whose handshake is
/// done. Not asked where the kernel lets nobody look; nothing where there is no
/// connection to look at, which other cases tell.
pub fn nodelay(address: SocketAddr, path: &str, keeper: u32, wanted: bool) -> Option<Finding> {
    let patience = Patience {
        silence: WITHIN,
        end: Instant::now() + WITHIN,
    };
    let peer = Peer::new(address, path, patience);
    let connection = peer.open().ok()?;
    let local = connection.raw.local().ok()?;
    let found = process::descendants(keeper).and_then(|tree| {
        let pids: Vec<u32> = tree.iter().map(|process| process.identity.pid).collect();
        is_nodelay(&pids, address.port(), local)
    });
    let (verdict, seen) = match found {
        Ok(found) if found == wanted => (Verdict::Pass, Finding::AS_EXPECTED.to_owned()),
        Ok(found) => (Verdict::Fail, described(found).to_owned()),
        Err(error) => (Verdict::Omitted, format!("cannot be looked at: {error:#}")),
    };
    Some(Finding {
        group: GROUP.into(),
        name: "TCP_NODELAY".into(),
        level: Level::Must,
        verdict,
        expected: format!("{} on the server's socket", described(wanted)),
        seen: Some(seen),
        sent: None,
    })
}

fn described(is_on: bool) -> &'static str {
    match is_on {
        true => "TCP_NODELAY set",
        false => "TCP_NODELAY not set",
    }
}

/// Of the socket of a server's port whose other end is `remote`, in one of these processes.
fn is_nodelay(pids: &[u32], port: u16, remote: SocketAddr) -> anyhow::Result<bool> {
    let range = PortRange::starting_at(port, 1).context("no such port")?;
    let inode = sockets::inode_of(range, remote)?.context("the kernel does not list the socket")?;
    let socket = duplicate(pids, inode)?;
    sockopt::tcp_nodelay(&socket).context("the kernel does not tell")
}

/// The same open socket, in this process.
fn duplicate(pids: &[u32], inode: u64) -> anyhow::Result<OwnedFd> {
    for &pid in pids {
        let Some(descriptor) = sockets::descriptor_of(pid, inode) else {
            continue;
        };
        let pid = process::to_pid(pid).context("no such process")?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).context("pidfd_open")?;
        return pidfd_getfd(&pidfd, descriptor, PidfdGetfdFlags::empty()).context(
            "pidfd_getfd (run as root, or as the user who may trace the server: see ptrace_scope)",
        );
    }
    bail!("no process of the server has it open as a file")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_option_is_read_from_the_other_end_itself() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (server, _) = listener.accept().unwrap();
        let remote = client.local_addr().unwrap();
        // What the client's own end has says nothing.
        client.set_nodelay(true).unwrap();
        for is_on in [false, true, false] {
            server.set_nodelay(is_on).unwrap();
            let found = is_nodelay(&[std::process::id()], port, remote).unwrap();
            assert_eq!(found, is_on);
        }
        let nobody = is_nodelay(&[], port, remote).unwrap_err().to_string();
        assert!(nobody.starts_with("no process"), "{nobody}");
    }
}
