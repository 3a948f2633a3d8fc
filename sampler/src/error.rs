//! Why a process cannot be observed.

use std::time::Duration;
use thiserror::Error;

/// Why a process cannot be observed.
#[derive(Debug, Error)]
pub enum SamplerError {
    /// The root is not there, is a zombie, or its number belongs to another process by now.
    #[error(
        "process {pid} is gone, so its CPU and memory cannot be read (see why it ended in its log)"
    )]
    Gone {
        /// The root of the tree.
        pid: u32,
    },
    /// A file of `/proc` cannot be read or is not what Linux writes.
    #[error("cannot read {path}: {cause} (is /proc mounted, and may this user see the process?)")]
    Proc {
        /// Which file.
        path: String,
        /// What is wrong with it.
        cause: String,
    },
    /// The kernel does not tell the CPU clock of a process.
    #[error("cannot read the CPU clock of process {pid}: {cause}")]
    Clock {
        /// Whose clock.
        pid: u32,
        /// The kernel's answer.
        cause: std::io::Error,
    },
    /// See [`crate::MIN_INTERVAL`].
    #[error(
        "a sampling interval of {asked:?} is too short: below {least:?} the clock ticks of \
         10 ms make the percentages meaningless (choose {least:?} or more)"
    )]
    Interval {
        /// What was asked for.
        asked: Duration,
        /// The least that is allowed.
        least: Duration,
    },
    /// sysinfo does not work here.
    #[error("cannot sample processes: {0}")]
    Sysinfo(String),
    /// The sampling thread cannot be started or has panicked.
    #[error("the sampling thread failed: {0}")]
    Thread(String),
}
