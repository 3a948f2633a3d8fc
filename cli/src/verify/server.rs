//! The examination of a server that was started for it: whether it still runs at
//! the end is a finding like any other.

use super::Omits;
use crate::lines::one_line;
use crate::process;
use crate::server::Server;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use wsbench_schema::{Examination, Finding, Level, Target, Verdict};

/// Group of what is found out about the process.
pub const GROUP: &str = "server";

/// For the news that a server has ended.
const LATE_MOST: Duration = Duration::from_secs(2);

/// Asks the server everything, then sees whether it still runs, and puts what was
/// found and how long it took into the examination.
pub fn examine(
    server: &mut Server,
    address: SocketAddr,
    omits: &Omits,
    examination: &mut Examination,
) {
    let begin = Instant::now();
    examination.findings = super::examine(address, Target::DEFAULT_PATH, omits);
    conclude(server, address, begin, examination);
}

/// Adds whether the server still runs and how long it took.
pub(super) fn conclude(
    server: &mut Server,
    address: SocketAddr,
    begin: Instant,
    examination: &mut Examination,
) {
    if let Some(exit) = gone(server, address) {
        examination.findings.push(died(&exit));
    }
    examination.elapsed_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
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
