//! What `wsbench serve` says to a client elsewhere: JSON over HTTP. The types
//! of both sides are here.
//!
//! ```text
//! GET  /v1/status                  Status
//! POST /v1/phases/{phase}/begin    Edge
//! POST /v1/phases/{phase}/end      PhaseEnd
//! POST /v1/stop                    true
//! ```
//!
//! Anything but 200 has a [`Problem`] as its body: 401 wrong token, 403 a web
//! page, 404 no such phase, 409 out of order, 410 the server is gone, 500.

mod api;
mod guard;
mod serve;

pub use api::Served;
pub use serve::answer;
#[cfg(any(test, fuzzing))]
pub use serve::connection;

use serde::{Deserialize, Serialize};
use wsbench_schema::{Edge, Machine, PortRange, Sample};

/// Every request carries it with the value 1. A web page cannot set it on a
/// request to another origin without asking first, which is refused.
pub const MARK_HEADER: &str = "x-wsbench";

/// `GET /v1/status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// Subject, variant included.
    pub name: String,
    /// The variant's name, if the subject is one.
    pub variant: Option<String>,
    /// As its `--version` prints it.
    pub version: String,
    /// Programming language.
    pub language: String,
    /// Process that was started.
    pub pid: u32,
    /// Ports that it listens on.
    pub ports: PortRange,
    /// CPUs that it may use.
    pub cpus: Vec<u32>,
    /// `--nodelay` that it was started with.
    pub nodelay: bool,
    /// Its host.
    pub machine: Machine,
    /// Revision of the harness on its host.
    pub harness: String,
}

/// Answer to `POST /v1/phases/{phase}/end`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseEnd {
    /// The edge after `done`.
    pub edge: Edge,
    /// Readings since `begin`.
    pub samples: Vec<Sample>,
}

/// Body of every answer that is not 200.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Problem {
    /// What, cause, remedy.
    pub error: String,
}
