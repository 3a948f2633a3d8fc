//! Whether a server answers as RFC 6455 asks, and in [`stream`] whether relays and bulk
//! servers carry bytes as TCP does. Cases stand in groups, a file each; a case opens
//! connections of its own, and says what it expected, what it saw and what it sent.
//! Only [`server`] knows subjects or starts a server.

mod ask;
mod case;
mod close;
mod connection;
mod control;
mod echo;
mod fragmentation;
mod handshake;
mod omits;
mod refusal;
mod refused;
mod sent;
pub mod server;
mod socket;
mod stream;
#[cfg(test)]
mod wrong;

pub use omits::Omits;

use ask::Limits;
use case::Case;
use std::net::SocketAddr;
use wsbench_schema::{Finding, Level, Suite};

/// Every case, in the order in which they are asked.
fn cases() -> Vec<Case> {
    [
        handshake::cases(),
        echo::cases(),
        fragmentation::cases(),
        control::cases(),
        close::cases(),
        refused::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Names of the groups that a suite is asked, in the order of the findings.
pub fn groups(suite: Suite) -> Vec<&'static str> {
    match suite {
        Suite::Websocket => case::groups(&cases()),
        Suite::Relay => case::groups(&stream::Kind::Relay.cases()),
        Suite::Transfer => case::groups(&stream::Kind::Echo.cases()),
    }
}

/// Every case that is no `must`, as a manifest's `omits` names it.
pub fn optional() -> Vec<String> {
    let cases = cases().into_iter();
    let optional = cases.filter(|case| case.level != Level::Must);
    optional
        .map(|case| format!("{}/{}", case.group, case.name))
        .collect()
}

/// Asks the server at that address everything but what it leaves out, in two passes
/// that take no longer than ten seconds together, whatever it does. Only where up to
/// three musts were late in both is each of these given ten seconds more.
pub fn examine(addr: SocketAddr, path: &str, omits: &Omits) -> Vec<Finding> {
    ask::all(addr, path, &cases(), omits, Limits::default())
}
