//! Whether a server listens: on every port, and it rather than somebody else.

use crate::sockets::{self, Socket};
use crate::{ports, process};
use std::fmt;
use std::net::IpAddr;
use wsbench_schema::PortRange;

/// What was seen of a server's ports.
#[derive(Debug, Default)]
pub struct Readiness {
    /// Ports on which nobody listens, or not on the address.
    missing: Vec<u16>,
    /// Ports on which only others listen.
    foreign: Vec<Socket>,
}

/// Looks once. The processes are only looked at when all ports have a listener,
/// so a look while a server starts is a few small reads.
pub fn look(keeper: u32, range: PortRange, address: IpAddr) -> anyhow::Result<Readiness> {
    let listeners: Vec<Socket> = sockets::listening()?
        .into_iter()
        .filter(|socket| range.contains(socket.local.port()) && socket.serves(address))
        .collect();
    let of_port = |port: u16| listeners.iter().filter(move |s| s.local.port() == port);
    let missing: Vec<u16> = range
        .iter()
        .filter(|port| of_port(*port).next().is_none())
        .collect();
    if listeners.is_empty() {
        return Ok(Readiness {
            missing,
            foreign: Vec::new(),
        });
    }
    // What the server started counts, in whatever group or session: the keeper has adopted it.
    let family = process::descendants(keeper)?;
    let own = sockets::owners(family.iter().map(|process| process.identity.pid));
    let foreign = range
        .iter()
        .filter(|port| !of_port(*port).any(|socket| own.contains_key(&socket.inode)))
        .filter_map(|port| of_port(port).next().copied())
        .collect();
    Ok(Readiness { missing, foreign })
}

impl Readiness {
    /// It listens on all its ports.
    pub fn is_ready(&self) -> bool {
        self.missing.is_empty() && self.foreign.is_empty()
    }

    /// Who listens in its place.
    pub fn foreign(&self) -> Option<String> {
        let socket = self.foreign.first()?;
        Some(format!(
            "{} listens on {}, not the server",
            ports::holder(socket),
            socket.local
        ))
    }
}

impl fmt::Display for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(foreign) = self.foreign() {
            return f.write_str(&foreign);
        }
        match self.missing.as_slice() {
            [] => f.write_str("it listens on all ports"),
            [port] => write!(
                f,
                "nobody listens on port {port} of the address it was given"
            ),
            [port, .., last] => write!(
                f,
                "nobody listens on {} of its ports ({port} to {last}) of the address it was given",
                self.missing.len()
            ),
        }
    }
}
