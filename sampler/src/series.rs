//! CPU and memory of a process tree over time, by sysinfo, on a thread of its own.

use crate::SamplerError;
use crate::tree::{Identity, Tree};
use std::collections::HashMap;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};
use wsbench_schema::observe::Sample;

/// The shortest interval of a series.
///
/// The kernel tells a process' CPU time to sysinfo in ticks of 10 ms, so a
/// reading of one busy CPU is good to 5 % at 200 ms and worse below. (sysinfo's own percentages are
/// wrong below it: it divides by the time of the machine, which it reads every 200 ms only.)
pub const MIN_INTERVAL: Duration = Duration::from_millis(200);

/// A thread that reads CPU and memory of a process tree at an interval.
///
/// The percentage is the growth of sysinfo's cumulative CPU time over the wall
/// time between two readings. sysinfo's own percentage is not used because it
/// says 0 for the first interval in which a process uses any CPU. What a
/// process used between its last reading and its death is not in the series;
/// it is in [`Tree::edge`].
#[derive(Debug)]
pub struct SeriesSampler {
    // Dropped to say stop.
    stop: Sender<()>,
    thread: JoinHandle<Result<Vec<Sample>, SamplerError>>,
}

impl SeriesSampler {
    /// Starts the series. Offsets count from the return of this call; the first sample
    /// comes an interval later.
    ///
    /// # Errors
    /// [`SamplerError::Interval`] if the interval is below [`MIN_INTERVAL`],
    /// [`SamplerError::Gone`] if the process is not there, or if `/proc` cannot be read.
    pub fn start(root_pid: u32, interval: Duration) -> Result<Self, SamplerError> {
        Self::start_all(&[root_pid], interval)
    }

    /// As [`SeriesSampler::start`], of several trees as one; see [`Tree::of_all`].
    ///
    /// # Errors
    /// As [`SeriesSampler::start`].
    pub fn start_all(root_pids: &[u32], interval: Duration) -> Result<Self, SamplerError> {
        if interval < MIN_INTERVAL {
            return Err(SamplerError::Interval {
                asked: interval,
                least: MIN_INTERVAL,
            });
        }
        let mut reader = Reader::of(root_pids)?;
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("sampler".into())
            .spawn(move || {
                let mut samples = Vec::new();
                let mut due = reader.started + interval;
                loop {
                    let wait = due.saturating_duration_since(Instant::now());
                    if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                        return Ok(samples);
                    }
                    match reader.sample() {
                        Ok(sample) => samples.push(sample),
                        Err(SamplerError::Gone { .. }) => return Ok(samples),
                        Err(error) => return Err(error),
                    }
                    // A reading that came late does not make the next one too short.
                    due = (due + interval).max(reader.last_at + MIN_INTERVAL);
                }
            })
            .map_err(|error| SamplerError::Thread(error.to_string()))?;
        Ok(Self { stop, thread })
    }

    /// Ends the series at once and returns it. The interval that had begun is dropped.
    /// If a root ended before, the series ends with it: that is no error here, as
    /// what was seen until then is what one wants to know.
    ///
    /// # Errors
    /// If `/proc` could not be read or the thread panicked.
    pub fn stop(self) -> Result<Vec<Sample>, SamplerError> {
        drop(self.stop);
        match self.thread.join() {
            Ok(result) => result,
            Err(_) => Err(SamplerError::Thread("it panicked".into())),
        }
    }
}

/// Takes the readings.
struct Reader {
    tree: Tree,
    system: System,
    /// CPU time of each member at the last reading.
    used_ms: HashMap<Identity, u64>,
    started: Instant,
    last_at: Instant,
}

impl Reader {
    /// Takes the reading that the first sample is compared with.
    fn of(root_pids: &[u32]) -> Result<Self, SamplerError> {
        let system = System::new().map_err(|error| SamplerError::Sysinfo(error.to_string()))?;
        let now = Instant::now();
        let mut reader = Self {
            tree: Tree::of_all(root_pids)?,
            system,
            used_ms: HashMap::new(),
            started: now,
            last_at: now,
        };
        reader.sample()?;
        reader.started = reader.last_at;
        Ok(reader)
    }

    fn sample(&mut self) -> Result<Sample, SamplerError> {
        let members = self.tree.refresh()?;
        let pids: Vec<Pid> = members
            .iter()
            .map(|member| Pid::from_u32(member.pid))
            .collect();
        let at = Instant::now();
        self.system.refresh_processes_specifics(
            ProcessesToUpdate::Some(&pids),
            true,
            ProcessRefreshKind::nothing()
                .with_cpu()
                .with_memory()
                .without_tasks(),
        );
        let mut used_ms = HashMap::with_capacity(members.len());
        let mut grown_ms = 0;
        let mut rss_bytes = 0;
        for (member, pid) in members.iter().zip(pids) {
            let Some(process) = self.system.process(pid) else {
                continue;
            };
            let now_ms = process.accumulated_cpu_time();
            // A process born since the last reading used all its time since then.
            let before_ms = self.used_ms.get(member).copied().unwrap_or(0);
            grown_ms += now_ms.saturating_sub(before_ms);
            rss_bytes += process.memory();
            used_ms.insert(*member, now_ms);
        }
        let sample = Sample {
            offset_ns: nanoseconds(at - self.started),
            cpu_millipercent: millipercent(grown_ms, at - self.last_at),
            rss_bytes,
        };
        self.used_ms = used_ms;
        self.last_at = at;
        Ok(sample)
    }
}

/// 100,000 is one CPU used all the time.
fn millipercent(used_ms: u64, wall: Duration) -> u64 {
    let hundred_thousandfold = u128::from(used_ms) * 1_000_000 * 100_000;
    let value = hundred_thousandfold / wall.as_nanos().max(1);
    u64::try_from(value).unwrap_or(u64::MAX)
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_busy_cpu_is_a_hundred_thousand() {
        assert_eq!(millipercent(1_000, Duration::from_secs(1)), 100_000);
        assert_eq!(millipercent(500, Duration::from_millis(200)), 250_000);
        assert_eq!(millipercent(0, Duration::from_secs(1)), 0);
    }

    #[test]
    fn an_interval_that_is_too_short_is_refused_with_the_least() {
        let error = SeriesSampler::start(std::process::id(), Duration::from_millis(199))
            .expect_err("199 ms is below the least");
        assert!(error.to_string().contains("199ms"), "{error}");
        assert!(error.to_string().contains("200ms"), "{error}");
    }
}
