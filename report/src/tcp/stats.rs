//! The formulas of the two suites, each from one trial and one phase, as in
//! [`crate::stats`]: `None` where something was not measured.

use crate::section::crossed;
use crate::stats::{self, metric, quotient};
use wsbench_schema::{Phase, TrialRecord, metric};

/// Bytes of a GiB.
pub const GIB: f64 = 1_073_741_824.0;
const MIB: f64 = 1_048_576.0;

/// Payload bytes that crossed and were right: of a round trip each counts on its way
/// there and on its way back, of a transfer as often as its direction says.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "reports show fewer digits")]
pub fn bytes(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    match phase {
        Phase::Bulk => crossed(trial).map(|(crossed, _)| crossed as f64),
        Phase::Echo => {
            let payload = f64::from(trial.load.payload_bytes);
            Some(metric(trial, phase, metric::SUCCEEDED)? * payload * 2.0)
        }
        Phase::Connect | Phase::Warmup | Phase::Rate | Phase::Release => None,
    }
}

/// From the start to the last success; of transfers to the last byte that was right,
/// which comes later where a transfer did not succeed. In nanoseconds.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "reports show fewer digits")]
pub fn duration(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    let elapsed = metric(trial, phase, metric::ELAPSED)?;
    let series = trial.series.get(&phase.metric(metric::CLIENT_BYTES_SERIES));
    let last_byte = series.and_then(|series| {
        let all = series.values.last()?;
        let readings = series.offsets_ns.iter().zip(&series.values);
        let mut ends = readings.filter(|(_, bytes)| *bytes == all);
        ends.next().map(|(offset, _)| *offset as f64)
    });
    let is_whole = crossed(trial).is_none_or(|(crossed, planned)| crossed >= planned);
    match (is_whole, last_byte) {
        (false, Some(last_byte)) => Some(elapsed.max(last_byte)),
        _ => Some(elapsed),
    }
}

/// Nanoseconds of the phase for each round trip, however many were in flight.
#[must_use]
pub fn ns_per_operation(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    let succeeded = metric(trial, phase, metric::SUCCEEDED)?;
    quotient(metric(trial, phase, metric::ELAPSED)?, succeeded)
}

/// Bytes that crossed a second.
#[must_use]
pub fn throughput(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    quotient(bytes(trial, phase)? * 1e9, duration(trial, phase)?)
}

/// CPU time of the server in the phase, in nanoseconds.
#[must_use]
pub fn cpu(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    metric(trial, phase, metric::SERVER_CPU)
}

/// Nanoseconds of the server's CPU for each GiB that crossed.
#[must_use]
pub fn cpu_per_gib(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    quotient(cpu(trial, phase)? * GIB, bytes(trial, phase)?)
}

/// Told in ticks of 10 ms, less is too coarse to be shown.
const CPUS_BUSY_MIN_NS: f64 = 200e6;

/// Nanoseconds that the server's CPUs were busy, for whomever, for each GiB that crossed.
#[must_use]
pub fn cpus_busy_per_gib(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    let busy = metric(trial, phase, metric::SERVER_CPUS_BUSY)?;
    let is_fine_enough = busy >= CPUS_BUSY_MIN_NS;
    is_fine_enough.then(|| quotient(busy * GIB, bytes(trial, phase)?))?
}

/// The server's system calls for each MiB, of the pass in which they were counted.
#[must_use]
pub fn syscalls_per_mib(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    let calls = metric(trial, phase, metric::SERVER_SYSCALLS)?;
    quotient(
        calls * MIB,
        metric(trial, phase, metric::SERVER_SYSCALLS_BYTES)?,
    )
}

/// The longest time in which nothing came of a transfer, in nanoseconds.
#[must_use]
pub fn longest_stall(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    metric(trial, phase, metric::LONGEST_STALL)
}

/// Resident memory at most, of every reading there is.
#[must_use]
pub fn peak_memory(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    let peak = metric(trial, phase, metric::SERVER_RSS_PEAK);
    let readings = stats::mem_max(trial, phase);
    peak.into_iter().chain(readings).reduce(f64::max)
}

/// Resident memory before the first connection.
#[must_use]
pub fn memory_before(trial: &TrialRecord, _phase: Phase) -> Option<f64> {
    metric(trial, Phase::Connect, metric::SERVER_RSS_START)
}

/// What the server's memory had grown by at its peak since before the first
/// connection, for each connection established.
#[must_use]
pub fn memory_per_connection(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    let grown = peak_memory(trial, phase)? - memory_before(trial, phase)?;
    quotient(grown, metric(trial, Phase::Connect, metric::SUCCEEDED)?)
}

/// Heap in use at its peak, which the server counts itself, and stacks in use.
#[must_use]
pub fn peak_heap_and_stacks(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    let heap = metric(trial, phase, metric::SERVER_HEAP_PEAK)?;
    let stacks = STACKS.map(|name| metric(trial, phase, name));
    Some(heap + stacks[0]?.max(stacks[1]?))
}

/// A count of the server from before the first connection to after the phase: what a
/// connection costs is spent where it is accepted, and not where bytes come.
fn since_before(trial: &TrialRecord, phase: Phase, name: &str) -> Option<f64> {
    let connecting = metric(trial, Phase::Connect, name).unwrap_or(0.0);
    Some(connecting + metric(trial, phase, name)?)
}

/// Calls of the server's allocator.
#[must_use]
pub fn allocations(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    since_before(trial, phase, metric::SERVER_ALLOC_CALLS)
}

/// Bytes that they asked for.
#[must_use]
pub fn allocated(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    since_before(trial, phase, metric::SERVER_ALLOC_BYTES)
}

/// Pages mapped in.
#[must_use]
pub fn minor_faults(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    since_before(trial, phase, metric::SERVER_MINOR_FAULTS)
}

/// Pages read from a disk.
#[must_use]
pub fn major_faults(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    since_before(trial, phase, metric::SERVER_MAJOR_FAULTS)
}

/// Times that a thread went to sleep.
#[must_use]
pub fn voluntary_switches(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    since_before(trial, phase, metric::SERVER_VOLUNTARY_SWITCHES)
}

/// Times that a thread was made to wait.
#[must_use]
pub fn involuntary_switches(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    since_before(trial, phase, metric::SERVER_INVOLUNTARY_SWITCHES)
}

/// Stacks in use, before and after; see [`change`].
pub const STACKS: [&str; 2] = [metric::SERVER_STACK_START, metric::SERVER_STACK_END];
/// Heap in use.
pub const HEAP: [&str; 2] = [metric::SERVER_HEAP_START, metric::SERVER_HEAP_END];
/// Threads of the server.
pub const THREADS: [&str; 2] = [metric::SERVER_THREADS_START, metric::SERVER_THREADS];
/// Tasks of the server's runtime.
pub const TASKS: [&str; 2] = [metric::SERVER_TASKS_START, metric::SERVER_TASKS_END];

/// Before the first connection if that was read, or else before the phase; and after
/// the phase.
#[must_use]
pub fn change(trial: &TrialRecord, phase: Phase, [start, end]: [&str; 2]) -> Option<[f64; 2]> {
    let before = metric(trial, Phase::Connect, start).or_else(|| metric(trial, phase, start));
    Some([before?, metric(trial, phase, end)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use wsbench_schema::{Direction, Series};

    fn expect(value: Option<f64>, expected: f64) {
        let value = value.expect("measured");
        assert!(
            (value - expected).abs() < 1e-9 * expected.abs(),
            "{value} is not {expected}"
        );
    }

    #[test]
    fn bytes_count_on_their_way_there_and_on_their_way_back() {
        let echo = example::relayed("splice", 1, 100);
        // 100,000 round trips of 10,240 bytes in a second and 0.9 s of CPU.
        expect(bytes(&echo, Phase::Echo), 2.048e9);
        expect(ns_per_operation(&echo, Phase::Echo), 10_000.0);
        expect(cpu_per_gib(&echo, Phase::Echo), 0.9e9 * GIB / 2.048e9);
        let mut bulk = example::transferred("pool", 1, 100);
        // 500 x 2 MB each way in 10 s.
        expect(bytes(&bulk, Phase::Bulk), 2e9);
        expect(throughput(&bulk, Phase::Bulk), 2e8);
        bulk.load.bulk.as_mut().unwrap().direction = Direction::Up;
        expect(throughput(&bulk, Phase::Bulk), 1e8);
    }

    #[test]
    fn a_transfer_that_did_not_succeed_took_until_its_last_byte() {
        let mut trial = example::transferred("stack", 1, 100);
        let series = Series {
            offsets_ns: vec![5_000_000_000, 12_000_000_000, 17_000_000_000],
            values: vec![700_000_000, 800_000_000, 800_000_000],
        };
        trial
            .series
            .insert(Phase::Bulk.metric(metric::CLIENT_BYTES_SERIES), series);
        expect(duration(&trial, Phase::Bulk), 1e10);
        trial
            .metrics
            .insert(Phase::Bulk.metric(metric::VERIFIED_BYTES), 800_000_000);
        expect(duration(&trial, Phase::Bulk), 1.2e10);
        expect(throughput(&trial, Phase::Bulk), 1.6e9 / 12.0);
    }

    #[test]
    fn memory_a_connection_is_of_the_peak_and_since_before_the_first() {
        let trial = example::transferred("pool", 1, 100);
        let mib = 1_048_576.0;
        expect(peak_memory(&trial, Phase::Bulk), 36.0 * mib);
        expect(
            memory_per_connection(&trial, Phase::Bulk),
            32.0 * mib / 500.0,
        );
        expect(peak_heap_and_stacks(&trial, Phase::Bulk), 19.0 * mib);
        // Half of it when connections were accepted.
        expect(allocations(&trial, Phase::Bulk), 1500.0);
        let before = change(
            &trial,
            Phase::Bulk,
            [metric::SERVER_RSS_START, metric::SERVER_RSS_END],
        );
        assert_eq!(before.map(|change| change[0]), Some(4.0 * mib));
    }

    #[test]
    fn what_was_not_measured_is_missing() {
        let every: [stats::Stat; 17] = [
            allocations,
            allocated,
            minor_faults,
            major_faults,
            voluntary_switches,
            involuntary_switches,
            bytes,
            duration,
            ns_per_operation,
            throughput,
            cpu,
            cpu_per_gib,
            syscalls_per_mib,
            longest_stall,
            peak_memory,
            memory_per_connection,
            peak_heap_and_stacks,
        ];
        let empty = example::empty("axum", 1);
        let mut zero = example::transferred("pool", 1, 100);
        zero.metrics.values_mut().for_each(|value| *value = 0);
        zero.series.clear();
        for stat in every {
            for phase in Phase::ALL {
                assert_eq!(stat(&empty, phase), None);
                assert!(stat(&zero, phase).is_none_or(f64::is_finite));
            }
        }
    }
}
