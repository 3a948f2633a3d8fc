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
use ask::{Ask, Limits, Question};
use resources::Below;
use scene::{Scale, Scene};
use std::net::SocketAddr;
use std::time::Duration;
use wsbench_schema::{Finding, Level};

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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

impl Kind {
    /// Every case, in the order in which they are asked.
    pub fn cases(self) -> Vec<Case<Question>> {
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
}

/// Asks a relay that has that upstream and a port for each of the upstream's, or
/// without one a server that sends back what it gets, everything but what it leaves
/// out. All of its processes descend from `keeper`. Takes no longer than 15 s, whatever it does.
pub fn examine(
    addresses: &[SocketAddr],
    upstream: Option<&Upstream>,
    keeper: u32,
    omits: &Omits,
) -> Vec<Finding> {
    let (kind, scale) = match upstream {
        Some(_) => (Kind::Relay, Scale::RELAY),
        None => (Kind::Echo, Scale::ECHO),
    };
    let examiner = ask::Examiner {
        addresses,
        upstream,
        resources: &Below(keeper),
        scale,
        limits: Limits::default(),
    };
    examiner.ask(&kind.cases(), omits)
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
