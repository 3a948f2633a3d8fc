//! The load engine: mio, one shard (thread, epoll, slots, histogram) for each
//! CPU, no async runtime, no lock and no allocation a message.
//!
//! Drivers (`wsbench client`, the runner, a control API) decide *when* a phase
//! begins; the engine does everything else. It knows nothing of the server's
//! process.

use std::sync::atomic::AtomicBool;
use thiserror::Error;
use wsbench_schema::{Load, Phase, PhaseReport, Progress, Target};

/// Why a load cannot be run at all. What goes wrong during a phase is counted
/// in its report instead.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The load contradicts itself or the machine's limits.
    #[error("{0}")]
    Load(String),
}

/// One client: all its connections, on all its CPUs.
pub struct Engine {}

impl Engine {
    /// Makes the frames, checks the limits, starts a shard on each allowed CPU.
    ///
    /// # Errors
    /// If the load is invalid, the host unknown, or the machine's limits too low.
    pub fn prepare(_load: Load, _target: &Target, _seed: u64) -> Result<Self, EngineError> {
        Err(EngineError::Load("not written yet".into()))
    }

    /// One for each CPU that this process may use.
    #[must_use]
    pub fn shards(&self) -> u32 {
        0
    }

    /// The phases of the load in the order in which [`Engine::run`] takes them.
    #[must_use]
    pub fn phases(&self) -> Vec<Phase> {
        Vec::new()
    }

    /// Runs a phase to its end: nothing is in flight when it returns. Begins at
    /// `at_ns` of `CLOCK_MONOTONIC`, or at once. `progress` is called about
    /// once a second. When `stop` becomes true the phase ends early; what was
    /// measured until then is returned.
    ///
    /// # Errors
    /// If a shard cannot go on (epoll or a thread failed).
    pub fn run(
        &mut self,
        _phase: Phase,
        _at_ns: Option<u64>,
        _stop: &AtomicBool,
        _progress: &mut dyn FnMut(Progress),
    ) -> Result<PhaseReport, EngineError> {
        Err(EngineError::Load("not written yet".into()))
    }
}
