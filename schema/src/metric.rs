//! The names of phases, metrics, histograms and series.
//!
//! A metric is `<phase>.<name>`, an integer in the unit that ends its name.
//! A metric that was not measured is absent; it is never zero.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A stretch of a trial between a `go` and a `done`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Dials and handshakes.
    Connect,
    /// Echoes that are not measured.
    Warmup,
    /// The closed loop.
    Echo,
    /// The open loop.
    Rate,
}

impl Phase {
    /// All phases in the order in which they run.
    pub const ALL: [Phase; 4] = [Phase::Connect, Phase::Warmup, Phase::Echo, Phase::Rate];

    /// The prefix of this phase's metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Phase::Connect => "connect",
            Phase::Warmup => "warmup",
            Phase::Echo => "echo",
            Phase::Rate => "rate",
        }
    }

    /// The full name of a metric of this phase.
    #[must_use]
    pub fn metric(self, name: &str) -> String {
        format!("{}.{name}", self.name())
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

// From the client, in every phase.

/// Connections to open, echoes to make, or messages that became due.
pub const PLANNED: &str = "planned_count";
/// Connections established, echoes answered rightly, messages answered rightly.
pub const SUCCEEDED: &str = "succeeded_count";
/// Everything that was tried and did not succeed; the causes add up to it.
pub const FAILED: &str = "failed_count";
/// One cause of failure: `failed_<cause>_count`.
#[must_use]
pub fn failed_by(cause: &str) -> String {
    format!("failed_{cause}_count")
}
/// From `go` to the last success (to the end of the phase if there was none).
pub const ELAPSED: &str = "elapsed_ns";
/// CPU time of the client process between `go` and `done`.
pub const CLIENT_CPU: &str = "client_cpu_ns";
/// Wall time between the two readings of [`CLIENT_CPU`].
pub const CLIENT_WINDOW: &str = "client_window_ns";
/// CPUs that the client may use, which is also its number of shards.
pub const CLIENT_CPUS: &str = "client_cpus_count";
/// Connections open when the phase began.
pub const CONNECTIONS: &str = "connections_count";
/// Connections closed by a failure or by the server during the phase.
pub const CONNECTIONS_LOST: &str = "connections_lost_count";
/// One cause of it: `connections_lost_<cause>_count`. Each lost connection has
/// exactly one, so that these add up to [`CONNECTIONS_LOST`], whether or not a
/// message failed with it. Causes without any are absent.
#[must_use]
pub fn lost_by(cause: &str) -> String {
    format!("connections_lost_{cause}_count")
}
/// Dials or echoes in flight at most.
pub const CONCURRENCY: &str = "concurrency_count";
/// Messages sent whole or in part.
pub const SENT: &str = "sent_count";
/// Bytes sent, framing included.
pub const SENT_BYTES: &str = "sent_bytes";
/// Bytes received, framing included.
pub const RECEIVED_BYTES: &str = "received_bytes";

// From the client, connect phase.

/// Failed attempts that were repeated, for each cause: `retried_<cause>_count`.
#[must_use]
pub fn retried_by(cause: &str) -> String {
    format!("retried_{cause}_count")
}
/// All failed attempts that were repeated.
pub const RETRIED: &str = "retried_count";

// From the client, echo phase.

/// Planned echoes that no connection was left to carry.
pub const NOT_SENT: &str = "not_sent_count";

// From the client, rate phase.

/// Messages that were due but still unsent at the end.
pub const SHORTFALL: &str = "shortfall_count";
/// Messages sent more than a millisecond after they were due.
pub const LATE: &str = "late_count";
/// How long messages were due.
pub const DURATION: &str = "duration_ns";
/// From the last due time to the last answer.
pub const DRAIN: &str = "drain_ns";
/// Frames written to a connection at once.
pub const BATCH: &str = "batch_count";

// From the observer of the server, in every phase; see `observe::Edge`.

/// CPU time of the server's process tree between the phase's edges.
pub const SERVER_CPU: &str = "server_cpu_ns";
/// Wall time between the phase's edges.
pub const SERVER_WINDOW: &str = "server_window_ns";
/// CPUs that the server may use.
pub const SERVER_CPUS: &str = "server_cpus_count";
/// Resident memory of the server's process tree before `go`.
pub const SERVER_RSS_START: &str = "server_rss_start_bytes";
/// Resident memory of the server's process tree after `done`.
pub const SERVER_RSS_END: &str = "server_rss_end_bytes";
/// Processes of the server's tree at the end of the phase.
pub const SERVER_PROCESSES: &str = "server_processes_count";
/// Threads of the server's tree at the end of the phase.
pub const SERVER_THREADS: &str = "server_threads_count";

// From the observer of the server, connect phase; see `observe::ListenQueue`.

/// Connection requests dropped because the queue of connections to be accepted was full.
pub const LISTEN_OVERFLOWS: &str = "listen_overflows_count";
/// Connection requests dropped for any reason, [`LISTEN_OVERFLOWS`] among them.
pub const LISTEN_DROPS: &str = "listen_drops_count";

// Histograms.

/// Connect phase: each successful attempt, from `connect` to a verified handshake.
pub const DIAL_LATENCY: &str = "dial_ns";
/// Echo phase: from just before the send to just after the read that completed it.
pub const ECHO_LATENCY: &str = "latency_ns";
/// Rate phase: from the intended time of the message to its answer.
pub const INTENDED_LATENCY: &str = "intended_latency_ns";
/// Rate phase: from the actual send of the message to its answer.
pub const ACTUAL_LATENCY: &str = "actual_latency_ns";

// Series.

/// CPU of the server's process tree; 100,000 is one CPU fully used.
pub const SERVER_CPU_SERIES: &str = "server_cpu_millipercent";
/// Resident memory of the server's process tree.
pub const SERVER_RSS_SERIES: &str = "server_rss_bytes";
