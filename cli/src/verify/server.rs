//! The examination of a server that was started for it: whether it still runs at
//! the end is a finding like any other.

use super::socket;
use super::stream::{self, Upstream};
use crate::lines::one_line;
use crate::server::{Server, ServerSpec};
use crate::subject::Subject;
use crate::{ports, process};
use anyhow::Context as _;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use wsbench_schema::{Examination, Finding, Level, Suite, Target, Verdict};

/// Group of what is found out about the process.
pub const GROUP: &str = "server";

/// For the news that a server has ended.
const LATE_MOST: Duration = Duration::from_secs(2);

/// Starts the subject's server, asks it everything that its suite is asked, then sees
/// whether it still runs, and puts what was found and how long it took into the examination.
/// The server still runs unless it ended by itself.
///
/// # Errors
/// If the server cannot be started, or what it is put in front of.
pub fn start_and_examine(
    subject: &Subject,
    mut spec: ServerSpec,
    examination: &mut Examination,
) -> anyhow::Result<Server> {
    let upstream = match subject.suite == Suite::Relay && !subject.is_direct() {
        true => {
            let upstream = Upstream::bind(&spec.host)?;
            let count = u16::try_from(upstream.ports().count())?;
            spec.ports = ports::free_ports(count, &spec.host)?;
            spec = spec.with_upstream(upstream.ports());
            Some(upstream)
        }
        false => None,
    };
    let address = format!("{}:{}", spec.host, spec.ports.first);
    let address: SocketAddr = address.parse().context("address of the server")?;
    let nodelay = spec.nodelay;
    let mut server = Server::start(spec)?;
    let begin = Instant::now();
    let omits = &subject.omits;
    examination.findings = match subject.suite {
        // A part of the harness: there is nobody to examine.
        _ if subject.is_direct() => Vec::new(),
        Suite::Websocket => {
            let path = Target::DEFAULT_PATH;
            let mut findings = super::examine(address, path, omits);
            findings.extend(socket::nodelay(address, path, server.keeper_pid(), nodelay));
            findings
        }
        Suite::Relay | Suite::Transfer => {
            let ports = server.ports().iter();
            let addresses: Vec<_> = ports
                .map(|port| SocketAddr::new(address.ip(), port))
                .collect();
            stream::examine(&addresses, upstream.as_ref(), server.keeper_pid(), omits)
        }
    };
    if let Some(exit) = gone(&mut server, address) {
        examination.findings.push(died(&exit));
    }
    examination.elapsed_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Ok(server)
}

/// How the server ended, if it did. That nobody listens is known at once, how it
/// came about only a moment later.
fn gone(server: &mut Server, address: SocketAddr) -> Option<String> {
    let patience = match TcpStream::connect_timeout(&address, LATE_MOST) {
        Ok(_) => Duration::ZERO,
        Err(_) => LATE_MOST,
    };
    let mut exit = None;
    process::wait_until(patience, || {
        exit = server.exited();
        exit.is_some()
    });
    exit
}

/// A server that is gone answers no case that comes after; this is why.
fn died(exit: &str) -> Finding {
    Finding {
        group: GROUP.into(),
        name: "runs to the end of the examination".into(),
        level: Level::Must,
        verdict: Verdict::Fail,
        expected: "a server that still runs".into(),
        seen: Some(format!("server {}", one_line(exit))),
        sent: None,
    }
}
