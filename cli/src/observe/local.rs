//! Watches a server on this host.

use super::Observer;
use anyhow::bail;
use std::time::Duration;
use wsbench_schema::{Edge, Phase, Sample};

/// Reads a process tree of this host.
pub struct LocalObserver {
    cpus: Vec<u32>,
}

impl LocalObserver {
    /// Watches `pid` and all its descendants, a sample every `interval`.
    pub fn new(_pid: u32, cpus: Vec<u32>, _interval: Duration) -> anyhow::Result<Self> {
        Ok(Self { cpus })
    }
}

impl Observer for LocalObserver {
    fn begin(&mut self, _phase: Phase) -> anyhow::Result<Edge> {
        bail!("`LocalObserver::begin` is not written yet")
    }

    fn end(&mut self, _phase: Phase) -> anyhow::Result<(Edge, Vec<Sample>)> {
        bail!("`LocalObserver::end` is not written yet")
    }

    fn server_cpus(&self) -> &[u32] {
        &self.cpus
    }
}
