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
    /// Transfers of many bytes.
    Bulk,
    /// Some of the connections are closed, and nothing else happens.
    Release,
}

impl Phase {
    /// All phases in the order in which they run.
    pub const ALL: [Phase; 6] = [
        Phase::Connect,
        Phase::Warmup,
        Phase::Echo,
        Phase::Rate,
        Phase::Bulk,
        Phase::Release,
    ];

    /// The prefix of this phase's metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Phase::Connect => "connect",
            Phase::Warmup => "warmup",
            Phase::Echo => "echo",
            Phase::Rate => "rate",
            Phase::Bulk => "bulk",
            Phase::Release => "release",
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

/// Connections to open, echoes to make, messages that became due, transfers to make
/// (one on each connection that was asked for), or connections to close.
pub const PLANNED: &str = "planned_count";
/// Connections established, echoes answered rightly, messages answered rightly,
/// transfers of which every byte arrived and was right, or connections of which the
/// server completed the close.
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

// From the client, echo and bulk phase.

/// Planned echoes or transfers that no connection was left to carry.
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

// From the client, bulk phase.

/// Payload of all planned transfers, in one direction.
pub const PLANNED_BYTES: &str = "planned_bytes";
/// Payload that arrived and was right: at the client, or in direction `up` at the
/// origin, as far as it has told.
pub const VERIFIED_BYTES: &str = "verified_bytes";
/// Transfers that the end of the phase's duration cut off. With the succeeded, the
/// failed and those not sent they are all that were planned.
pub const UNFINISHED: &str = "unfinished_count";
/// The longest time in which nothing came of a transfer that was not over. Slow
/// readers, which are slow themselves, do not count.
pub const LONGEST_STALL: &str = "longest_stall_ns";

// From the observer of the server, in every phase; see `observe::Edge`.

/// CPU time of the server's process tree between the phase's edges.
pub const SERVER_CPU: &str = "server_cpu_ns";
/// Wall time between the phase's edges.
pub const SERVER_WINDOW: &str = "server_window_ns";
/// CPUs that the server may use.
pub const SERVER_CPUS: &str = "server_cpus_count";
/// What the CPUs of the server did between the phase's edges, for whomever: the server,
/// the kernel for its sockets, strangers. In ticks of 10 ms.
pub const SERVER_CPUS_BUSY: &str = "server_cpus_busy_ns";
/// Resident memory of the server's process tree before `go`.
pub const SERVER_RSS_START: &str = "server_rss_start_bytes";
/// Resident memory of the server's process tree after `done`.
pub const SERVER_RSS_END: &str = "server_rss_end_bytes";
/// Processes of the server's tree at the end of the phase.
pub const SERVER_PROCESSES: &str = "server_processes_count";
/// Threads of the server's tree before `go`.
pub const SERVER_THREADS_START: &str = "server_threads_start_count";
/// Threads of the server's tree at the end of the phase.
pub const SERVER_THREADS: &str = "server_threads_count";

// Of the machine, in every phase of a trial whose server and clients run on one: between
// the phase's edges, of the CPUs of server and client together.

/// Their number.
pub const HOST_CPUS: &str = "host_cpus_count";
/// CPU time that processes used on them, whoever's they are. In ticks of 10 ms.
pub const HOST_BUSY: &str = "host_busy_ns";
/// What a hypervisor took of them. In ticks of 10 ms.
pub const HOST_STEAL: &str = "host_steal_ns";
/// CPU time of the runner, the sampler included, if it may run on them.
pub const RUNNER_CPU: &str = "runner_cpu_ns";
/// Time in which some process of the machine waited for a CPU: the server's and the
/// client's own are among them.
pub const HOST_CPU_PRESSURE: &str = "host_cpu_pressure_ns";
/// Time in which some process of the machine waited for memory.
pub const HOST_MEMORY_PRESSURE: &str = "host_memory_pressure_ns";

// From observers, bulk phase.

/// CPU time of the origin behind a relay between the phase's edges.
pub const ORIGIN_CPU: &str = "origin_cpu_ns";
/// Resident memory of the server's process tree at most.
pub const SERVER_RSS_PEAK: &str = "server_rss_peak_bytes";
/// Pages of the server that were mapped without reading.
pub const SERVER_MINOR_FAULTS: &str = "server_minor_faults_count";
/// Pages of the server that had to be read.
pub const SERVER_MAJOR_FAULTS: &str = "server_major_faults_count";
/// Times that a thread of the server went to sleep.
pub const SERVER_VOLUNTARY_SWITCHES: &str = "server_voluntary_switches_count";
/// Times that a thread of the server was made to wait.
pub const SERVER_INVOLUNTARY_SWITCHES: &str = "server_involuntary_switches_count";
/// System calls of the server, in a pass of its own that is not timed, ...
pub const SERVER_SYSCALLS: &str = "server_syscalls_count";
/// ... in which so many bytes were transferred.
pub const SERVER_SYSCALLS_BYTES: &str = "server_syscalls_bytes";

// From the server about itself, bulk phase.

/// Calls of its allocator.
pub const SERVER_ALLOC_CALLS: &str = "server_alloc_calls_count";
/// Bytes that those asked for.
pub const SERVER_ALLOC_BYTES: &str = "server_alloc_bytes";
/// Heap in use before `go`.
pub const SERVER_HEAP_START: &str = "server_heap_start_bytes";
/// Heap in use after `done`.
pub const SERVER_HEAP_END: &str = "server_heap_end_bytes";
/// Heap in use at most.
pub const SERVER_HEAP_PEAK: &str = "server_heap_peak_bytes";
/// Stacks in use before `go`.
pub const SERVER_STACK_START: &str = "server_stack_start_bytes";
/// Stacks in use after `done`.
pub const SERVER_STACK_END: &str = "server_stack_end_bytes";
/// Tasks before `go`.
pub const SERVER_TASKS_START: &str = "server_tasks_start_count";
/// Tasks after `done`.
pub const SERVER_TASKS_END: &str = "server_tasks_end_count";

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
/// Bulk phase: from the beginning of the phase to the last byte of each transfer that
/// succeeded.
pub const TRANSFER_LATENCY: &str = "transfer_ns";
/// Bulk phase: the longest stall of each connection, see [`LONGEST_STALL`].
pub const STALL: &str = "stall_ns";

// Series.

/// Bulk phase: bytes verified until then, since the phase began; in direction `up`
/// bytes that the sockets took.
pub const CLIENT_BYTES_SERIES: &str = "client_bytes";
/// Echo, warm-up and rate phase: messages answered rightly until then, since the phase began.
pub const SUCCEEDED_SERIES: &str = SUCCEEDED;

/// CPU of the server's process tree; 100,000 is one CPU fully used.
pub const SERVER_CPU_SERIES: &str = "server_cpu_millipercent";
/// Resident memory of the server's process tree.
pub const SERVER_RSS_SERIES: &str = "server_rss_bytes";
