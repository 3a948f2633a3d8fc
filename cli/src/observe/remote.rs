//! Watches a server through the control API of `wsbench serve`.

use super::Observer;
use crate::control::Status;
use anyhow::bail;
use wsbench_schema::{Edge, Phase, Sample};

/// Asks `wsbench serve` on the server's host.
pub struct RemoteObserver {
    status: Status,
}

impl RemoteObserver {
    /// Asks who is served at `HOST:PORT`.
    pub fn connect(_address: &str, _token: Option<&str>) -> anyhow::Result<Self> {
        bail!("`RemoteObserver::connect` is not written yet")
    }

    /// Who is served, and where.
    pub fn status(&self) -> &Status {
        &self.status
    }
}

impl Observer for RemoteObserver {
    fn begin(&mut self, _phase: Phase) -> anyhow::Result<Edge> {
        bail!("`RemoteObserver::begin` is not written yet")
    }

    fn end(&mut self, _phase: Phase) -> anyhow::Result<(Edge, Vec<Sample>)> {
        bail!("`RemoteObserver::end` is not written yet")
    }

    fn server_cpus(&self) -> &[u32] {
        &self.status.cpus
    }
}
