//! Whether a relay carries bytes as TCP does, and whether a bulk echo server
//! sends them back: whole, in order, with each end where it belongs, and with nothing
//! kept. One set of cases, asked through a relay or of a server itself.

mod ask;
mod bytes;
mod ends;
mod flow;
mod left;
mod many;
mod origin;
mod resources;
mod scene;
mod stall;
mod tape;
mod upstream;
#[cfg(test)]
mod wrong;

pub use upstream::Upstream;

use super::case::{Case, Group, Outcome};
use super::omits::Omits;
use super::server;
use crate::server::Server;
use ask::{Ask, Limits, Question};
use resources::Below;
use scene::{Scale, Scene};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use wsbench_schema::{Examination, Level};

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// It carries bytes between a client and an origin.
    Relay,
    /// It sends back what it gets.
    Echo,
}

impl Scale {
    /// Of a relay, between two sockets for each connection.
    const RELAY: Self = Self {
        bulk_bytes: 64 << 20,
        offered_bytes: 64 << 20,
        crowd: 2000,
        stalled: 300,
        quiet: Duration::from_millis(60),
    };

    const ECHO: Self = Self {
        crowd: 1000,
        ..Self::RELAY
    };
}

impl Subject {
    /// Every case, in the order in which they are asked.
    fn cases(self) -> Vec<Case<Question>> {
        [
            bytes::cases(self),
            ends::cases(self),
            stall::cases(self),
            many::cases(self),
            origin::cases(self),
            left::cases(self),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Names of the groups, in the order of the findings.
    pub fn groups(self) -> Vec<&'static str> {
        let mut groups: Vec<_> = self.cases().iter().map(|case| case.group).collect();
        groups.dedup();
        groups
    }

    /// Reads `omits` of a manifest; see [`Omits::read`].
    ///
    /// # Errors
    /// If nothing has such a name, or a `must` is among what it names.
    pub fn read_omits(self, names: &[String]) -> Result<Omits, String> {
        Omits::of(names, &self.cases())
    }
}

/// Examines a relay that was started with the upstream's ports as its `--upstream`
/// and as many ports of its own, of which `address` is the first.
pub fn relay(
    server: &mut Server,
    address: SocketAddr,
    upstream: &Upstream,
    omits: &Omits,
    examination: &mut Examination,
) {
    let upstream = Some(upstream);
    examine(
        Subject::Relay,
        server,
        address,
        upstream,
        omits,
        examination,
    );
}

/// Examines a server that sends back what it gets.
pub fn echo(
    server: &mut Server,
    address: SocketAddr,
    omits: &Omits,
    examination: &mut Examination,
) {
    examine(Subject::Echo, server, address, None, omits, examination);
}

fn examine(
    subject: Subject,
    server: &mut Server,
    address: SocketAddr,
    upstream: Option<&Upstream>,
    omits: &Omits,
    examination: &mut Examination,
) {
    let begin = Instant::now();
    let ports = server.ports().iter();
    let addresses: Vec<_> = ports
        .map(|port| SocketAddr::new(address.ip(), port))
        .collect();
    let resources = Below(server.keeper_pid());
    let scale = match subject {
        Subject::Relay => Scale::RELAY,
        Subject::Echo => Scale::ECHO,
    };
    let examiner = ask::Examiner {
        addresses: &addresses,
        upstream,
        resources: &resources,
        scale,
        limits: Limits::default(),
    };
    examination.findings = examiner.ask(&subject.cases(), omits);
    server::conclude(server, address, begin, examination);
}

impl Group<Question> {
    /// Adds a case behind the others.
    fn ask(
        &mut self,
        level: Level,
        name: impl Into<String>,
        expected: impl Into<String>,
        ask: impl Fn(&Scene<'_>) -> Outcome + Send + Sync + 'static,
    ) {
        let ask: Ask = Box::new(ask);
        self.put(level, name, expected, Question { ask, aside: false });
    }
}
