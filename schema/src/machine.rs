//! The machine that a trial ran on.

use serde::{Deserialize, Serialize};

/// What a reader needs to know to judge the numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Its name; `unknown` in what schema version 1 wrote.
    pub host: String,
    /// As `uname -sr`.
    pub kernel: String,
    /// Model name of the first CPU.
    pub cpu_model: String,
    /// CPUs that the runner may use.
    pub cpus_count: u32,
    /// Physical memory.
    pub memory_bytes: u64,
    /// CPU frequency governor; `none` where the kernel offers none.
    pub governor: String,
    /// TCP congestion control.
    pub congestion_control: String,
    /// `net.ipv4.ip_local_port_range`.
    pub ephemeral_ports: String,
    /// Hard limit of open files a process.
    pub nofile_hard_count: u64,
    /// As `rustc --version`, of the harness.
    pub rustc: String,
}

/// Which CPUs each side may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuMap {
    /// CPUs of the server.
    pub server: Vec<u32>,
    /// CPUs of the client.
    pub client: Vec<u32>,
    /// CPUs of the runner and its sampler.
    pub runner: Vec<u32>,
    /// True if server and client share a CPU, which marks every row.
    pub shared: bool,
}
