//! Which CPUs the server, the client and the runner use.

use anyhow::bail;
use wsbench_schema::CpuMap;

/// Splits the CPUs, by physical core unless the user says which.
pub fn plan(_server: Option<&str>, _client: Option<&str>) -> anyhow::Result<CpuMap> {
    bail!("`plan` is not written yet")
}

/// Keeps this thread, and those it starts from now on, on these CPUs.
pub fn pin_self(_cpus: &[u32]) -> anyhow::Result<()> {
    bail!("`pin_self` is not written yet")
}
