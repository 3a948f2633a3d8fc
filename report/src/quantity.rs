//! Quantities by which two results, or the subjects of one, are compared: each a figure a
//! round, so that rounds can be tested against rounds.

use crate::latency::Latency;
use crate::stats::{self, Stat};
use crate::tcp;
use crate::units::Unit;
use wsbench_schema::{Phase, TrialRecord, metric};

/// What is compared.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// As it is asked for on a command line.
    pub key: &'static str,
    /// As in the tables.
    pub name: &'static str,
    /// Of which phase.
    pub phase: Phase,
    /// Of its figures.
    pub unit: Unit,
    /// Whether a lower value is the better one.
    pub less_is_better: bool,
    stat: Stat,
}

const fn less(
    key: &'static str,
    name: &'static str,
    phase: Phase,
    unit: Unit,
    stat: Stat,
) -> Quantity {
    Quantity {
        key,
        name,
        phase,
        unit,
        less_is_better: true,
        stat,
    }
}

const fn more(
    key: &'static str,
    name: &'static str,
    phase: Phase,
    unit: Unit,
    stat: Stat,
) -> Quantity {
    Quantity {
        less_is_better: false,
        ..less(key, name, phase, unit, stat)
    }
}

/// The server's CPU time a message in the closed loop.
pub const CPU: Quantity = less(
    "cpu",
    "Server CPU/msg",
    Phase::Echo,
    Unit::Duration,
    stats::server_cpu_per_message,
);
/// Echoes a second.
pub const TPS: Quantity = more("tps", "TPS", Phase::Echo, Unit::PerSecond, stats::tps);
const TP99: Quantity = less("tp99", "TP99", Phase::Echo, Unit::Duration, tp99);
/// The server's CPU time a message in the open loop.
pub const CPU_RATE: Quantity = less(
    "cpu-rate",
    "Server CPU/msg, open loop",
    Phase::Rate,
    Unit::Duration,
    stats::server_cpu_per_message,
);
const TP99_RATE: Quantity = less(
    "tp99-rate",
    "TP99 intended",
    Phase::Rate,
    Unit::Duration,
    tp99,
);
const MEMORY: Quantity = less(
    "memory",
    "MEM/conn",
    Phase::Connect,
    Unit::Bytes,
    stats::memory_per_connection,
);
/// CPU time for each GiB that crossed.
pub const CPU_GIB: Quantity = less(
    "cpu-gib",
    "CPU/GiB",
    Phase::Bulk,
    Unit::Duration,
    tcp::stats::cpu_per_gib,
);
/// Bytes a second.
pub const THROUGHPUT: Quantity = more(
    "throughput",
    "Throughput",
    Phase::Bulk,
    Unit::DataPerSecond,
    tcp::stats::throughput,
);
const PEAK_MEMORY: Quantity = less(
    "peak-memory",
    "Peak memory",
    Phase::Bulk,
    Unit::Bytes,
    tcp::stats::peak_memory,
);

/// All of them, what matters most first.
pub const ALL: [Quantity; 9] = [
    CPU,
    TPS,
    TP99,
    CPU_RATE,
    TP99_RATE,
    MEMORY,
    CPU_GIB,
    THROUGHPUT,
    PEAK_MEMORY,
];

/// Connections and messages that failed: no figure to choose somebody by, and none that may
/// grow unseen.
pub(crate) const FAILED: Quantity =
    less("failed", "Failed a round", Phase::Echo, Unit::Count, failed);

#[expect(clippy::cast_precision_loss, reason = "numbers of messages")]
fn failed(trial: &TrialRecord, _: Phase) -> Option<f64> {
    Some(failed_messages(trial) as f64)
}

/// Of all phases.
pub(crate) fn failed_messages(trial: &TrialRecord) -> u64 {
    let failed = |phase: &Phase| trial.metric(*phase, metric::FAILED).unwrap_or(0);
    Phase::ALL.iter().map(failed).sum()
}

/// The TP99 of one round; of the rate phase from when a message was due.
fn tp99(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    let name = match phase {
        Phase::Rate => metric::INTENDED_LATENCY,
        _ => metric::ECHO_LATENCY,
    };
    let text = trial.histograms.get(&phase.metric(name))?;
    // One that cannot be read is told where the record is.
    let latency = Latency::merged([text.as_str()]).ok()??;
    latency.percentile_ns(990)
}

impl Quantity {
    /// The one that is called so.
    #[must_use]
    pub fn of_key(key: &str) -> Option<Self> {
        ALL.into_iter().find(|quantity| quantity.key == key)
    }

    /// Of one round.
    #[must_use]
    pub fn of(&self, trial: &TrialRecord) -> Option<f64> {
        (self.stat)(trial, self.phase).filter(|value| value.is_finite())
    }
}
