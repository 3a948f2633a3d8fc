//! What is read of a server of the TCP suites besides its CPU time and memory at the
//! edges: before the first edge of a phase and after the last, while nothing moves.

use crate::observe::{CounterFiles, Counters};
use std::time::Duration;
use wsbench_sampler::{Activity, PeakSampler, stack_bytes};
use wsbench_schema::{Phase, Suite, metric};

/// How often the memory is looked at for its peak.
const PEAK_INTERVAL: Duration = Duration::from_millis(10);

/// Names without the phase, and values.
pub type Figures = Vec<(&'static str, u64)>;

/// Reads them.
#[derive(Debug)]
pub struct Inside {
    suite: Suite,
    /// Of each process, if it counts.
    counters: CounterFiles,
    peak: Option<PeakSampler>,
    before: Option<Snapshot>,
}

/// What is read at both ends of a phase.
#[derive(Clone, Debug)]
struct Snapshot {
    activity: Activity,
    stack_bytes: u64,
    counters: Option<Counters>,
}

impl Inside {
    /// Of a server of this suite; `counters` are the files of its processes, if they
    /// write any.
    pub fn of(suite: Suite, counters: CounterFiles) -> Self {
        Self {
            suite,
            counters,
            peak: None,
            before: None,
        }
    }

    /// Thousands of threads take a while to read, so that it is done where it is shown:
    /// before there is a connection, and around the transfers.
    fn is_read(&self, phase: Phase) -> bool {
        self.suite == Suite::Transfer && matches!(phase, Phase::Connect | Phase::Bulk)
    }

    /// Before the first edge of a phase.
    ///
    /// # Errors
    /// If the processes cannot be read.
    pub fn begin(&mut self, phase: Phase, pids: &[u32]) -> anyhow::Result<Figures> {
        let mut figures = Figures::new();
        if self.is_read(phase) {
            let now = self.snapshot(pids)?;
            figures.push((metric::SERVER_STACK_START, now.stack_bytes));
            if let Some(counters) = now.counters {
                figures.push((metric::SERVER_TASKS_START, counters.tasks));
                let heap = counters.heap.map(|heap| heap.in_use_bytes);
                figures.extend(heap.map(|bytes| (metric::SERVER_HEAP_START, bytes)));
            }
            self.before = Some(now);
        }
        if !self.suite.is_websocket() {
            self.peak = Some(PeakSampler::start(pids, PEAK_INTERVAL)?);
        }
        Ok(figures)
    }

    /// After its last edge.
    ///
    /// # Errors
    /// If the processes cannot be read.
    pub fn end(&mut self, phase: Phase, pids: &[u32]) -> anyhow::Result<Figures> {
        let mut figures = Figures::new();
        if let Some(peak) = self.peak.take() {
            figures.push((metric::SERVER_RSS_PEAK, peak.stop()?.rss_bytes));
        }
        let before = self.before.take().filter(|_| self.is_read(phase));
        if let Some(before) = before {
            let now = self.snapshot(pids)?;
            let activity = now.activity.since(&before.activity);
            figures.extend([
                (metric::SERVER_MINOR_FAULTS, activity.minor_faults),
                (metric::SERVER_MAJOR_FAULTS, activity.major_faults),
                (metric::SERVER_STACK_END, now.stack_bytes),
            ]);
            if let Some((slept, waited)) = activity.switches {
                figures.extend([
                    (metric::SERVER_VOLUNTARY_SWITCHES, slept),
                    (metric::SERVER_INVOLUNTARY_SWITCHES, waited),
                ]);
            }
            figures.extend(grown(before.counters, now.counters));
        }
        Ok(figures)
    }

    fn snapshot(&self, pids: &[u32]) -> anyhow::Result<Snapshot> {
        Ok(Snapshot {
            activity: Activity::of(pids)?,
            stack_bytes: stack_bytes(pids)?,
            counters: self.counters.read()?,
        })
    }
}

/// What a server's own counters say of a phase.
fn grown(before: Option<Counters>, now: Option<Counters>) -> Figures {
    let (Some(before), Some(now)) = (before, now) else {
        return Figures::new();
    };
    let mut figures = vec![(metric::SERVER_TASKS_END, now.tasks)];
    if let (Some(before), Some(now)) = (before.heap, now.heap) {
        figures.extend([
            (
                metric::SERVER_ALLOC_CALLS,
                now.calls.saturating_sub(before.calls),
            ),
            (
                metric::SERVER_ALLOC_BYTES,
                now.bytes.saturating_sub(before.bytes),
            ),
            (metric::SERVER_HEAP_END, now.in_use_bytes),
            // The server's own count of it is within some KiB.
            (
                metric::SERVER_HEAP_PEAK,
                now.peak_bytes
                    .max(now.in_use_bytes)
                    .max(before.in_use_bytes),
            ),
        ]);
    }
    figures
}
