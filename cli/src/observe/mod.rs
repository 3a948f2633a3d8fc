//! Who watches the server: this process, or `wsbench serve` on its host.

pub mod counters;
mod local;
mod order;
mod remote;

pub use counters::{CounterFiles, Counters};
pub use local::LocalObserver;
pub use order::OutOfOrder;
pub use remote::{RemoteObserver, request_stop};

use wsbench_schema::{Edge, Phase, Sample};

/// Watches a server's process tree through the phases of a trial.
pub trait Observer {
    /// Takes the edge before `go`; samples are collected from here on.
    ///
    /// # Errors
    /// If the server is gone or the phase is not due; see [`OutOfOrder`].
    fn begin(&mut self, phase: Phase) -> anyhow::Result<Edge>;

    /// Takes the edge after `done`, and what was collected since `begin`.
    ///
    /// # Errors
    /// As [`Observer::begin`].
    fn end(&mut self, phase: Phase) -> anyhow::Result<(Edge, Vec<Sample>)>;

    /// CPUs that the server may use.
    fn server_cpus(&self) -> &[u32];
}
