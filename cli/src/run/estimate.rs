//! How long a run will take, and how that is known: trials of the same load and
//! subject measured here before, else assumed speeds.

use crate::run::resume;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use wsbench_schema::{CpuMap, Load, Phase, RunPlan, TrialRecord, metric};

/// Assumed where nothing was measured before.
const DIALS_PER_S: u64 = 10_000;
const ECHOES_PER_S: u64 = 50_000;
/// Start, closing and saving, for each trial.
const BESIDES: Duration = Duration::from_secs(1);
/// For each subject once; those of an interrupted run may have it behind them.
const EXAMINATION: Duration = Duration::from_secs(2);
/// Earlier runs that are looked at.
const RUNS_MAX: usize = 20;

/// A time and what it stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Of all trials together, builds aside.
    pub total: Duration,
    /// For the user.
    pub basis: String,
}

/// How long trials took before, by hash of the load and subject.
#[derive(Debug, Default)]
pub struct History(BTreeMap<(String, String), Duration>);

impl History {
    /// Reads the newest runs that were made on these CPUs. What cannot be read
    /// is passed over: an estimate is no reason to fail.
    pub fn read(results: &Path, loads: &[Load], cpus: &CpuMap) -> Self {
        let mut history = Self::default();
        for folder in resume::runs(results).iter().rev().take(RUNS_MAX) {
            let Ok(plan) = RunPlan::load(folder) else {
                continue;
            };
            let shared: Vec<&Load> = loads
                .iter()
                .filter(|load| plan.loads.contains(load))
                .collect();
            if plan.cpus != *cpus {
                continue;
            }
            for load in shared {
                for subject in &plan.subjects {
                    let key = (load.hash(), subject.clone());
                    if history.0.contains_key(&key) {
                        continue;
                    }
                    let name = format!("{}-{subject}-r1-a1.json", key.0);
                    let record = TrialRecord::load(&folder.join(name)).ok();
                    if let Some(took) = record.as_ref().and_then(duration) {
                        history.0.insert(key, took);
                    }
                }
            }
        }
        history
    }

    /// Of trials, each a subject under a load.
    pub fn estimate<'a>(&self, trials: impl Iterator<Item = (&'a str, &'a Load)>) -> Estimate {
        let (mut total, mut known, mut count) = (Duration::ZERO, 0_u32, 0_u32);
        let mut subjects = BTreeSet::new();
        for (subject, load) in trials {
            count += 1;
            if subjects.insert(subject) {
                total += EXAMINATION;
            }
            let before = self.0.get(&(load.hash(), subject.to_owned()));
            known += u32::from(before.is_some());
            total += before.copied().unwrap_or_else(|| assumed(load)) + BESIDES;
        }
        let assumption = format!("assuming {DIALS_PER_S} dials and {ECHOES_PER_S} echoes a second");
        let basis = match known {
            _ if known == count => "from earlier runs of the same load here".into(),
            0 => assumption,
            _ => format!("{known} of {count} trials from earlier runs here, the rest {assumption}"),
        };
        Estimate { total, basis }
    }
}

/// Time that a completed trial spent in its phases.
fn duration(record: &TrialRecord) -> Option<Duration> {
    let window = |phase: &Phase| record.metric(*phase, metric::CLIENT_WINDOW);
    let windows: Vec<u64> = Phase::ALL.iter().filter_map(window).collect();
    (record.outcome == wsbench_schema::Outcome::Completed && !windows.is_empty())
        .then(|| Duration::from_nanos(windows.iter().sum()))
}

fn assumed(load: &Load) -> Duration {
    let seconds = |count: u64, per_s: u64| Duration::from_secs_f64(count as f64 / per_s as f64);
    let mut total = seconds(load.dials().into(), DIALS_PER_S);
    if let Some(echo) = &load.echo {
        let limit = match echo.limit_per_s {
            0 => ECHOES_PER_S,
            limit => limit.min(ECHOES_PER_S),
        };
        let echoes = seconds(echo.echoes, limit);
        let longest = echo.duration_ms.map_or(echoes, Duration::from_millis);
        total += seconds(echo.warmup_echoes, ECHOES_PER_S) + echoes.min(longest);
    }
    if let Some(rate) = &load.rate {
        total += Duration::from_millis(rate.duration_ms);
    }
    total
}

/// `45 s`, `4 min 05 s`, `1 h 02 min`.
pub fn spoken(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().round() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::testing::{load, plan, record};
    use std::fs;
    use wsbench_schema::RateLoad;

    #[test]
    fn without_history_speeds_are_assumed_and_said() {
        let mut slow = load();
        slow.connections = 10_000;
        slow.rate = Some(RateLoad {
            connections: 0,
            duration_ms: 10_000,
            per_connection_per_s: 5,
            batch_bytes: 16_384,
            window: 0,
            limit_per_s: 0,
            timeout_ms: 5000,
        });
        let echo = slow.echo.as_mut().unwrap();
        (echo.echoes, echo.warmup_echoes) = (500_000, 50_000);
        let estimate = History::default().estimate([("axum", &slow)].into_iter());
        assert_eq!(estimate.total, Duration::from_secs(1 + 1 + 10 + 10 + 3));
        let said = "assuming 10000 dials and 50000 echoes a second";
        assert_eq!(estimate.basis, said);
        slow.echo.as_mut().unwrap().limit_per_s = 10_000;
        let limited = History::default().estimate([("axum", &slow)].into_iter());
        assert_eq!(limited.total, Duration::from_secs(1 + 1 + 50 + 10 + 3));
    }

    #[test]
    fn earlier_trials_of_the_same_load_and_cpus_are_believed() {
        let results = tempfile::tempdir().unwrap();
        let before = plan("2026-01-01");
        let folder = results.path().join(&before.run);
        fs::create_dir(&folder).unwrap();
        before.save(&folder).unwrap();
        record(&before, "axum", 1).save(&folder).unwrap();
        let loads = [load()];
        let history = History::read(results.path(), &loads, &before.cpus);
        let known = history.estimate([("axum", &loads[0])].into_iter());
        assert_eq!(known.total, Duration::from_secs(2 + 20 + 1));
        let thrice = std::iter::repeat_n(("axum", &loads[0]), 3);
        let total = history.estimate(thrice).total;
        assert_eq!(total, Duration::from_secs(2 + 3 * (20 + 1)));
        assert_eq!(known.basis, "from earlier runs of the same load here");
        let both = [("axum", &loads[0]), ("floor", &loads[0])];
        let partly = history.estimate(both.into_iter());
        assert!(
            partly
                .basis
                .starts_with("1 of 2 trials from earlier runs here")
        );
        let mut other = before.cpus.clone();
        other.server = vec![0, 1];
        let elsewhere = History::read(results.path(), &loads, &other);
        assert!(elsewhere.0.is_empty());
    }

    #[test]
    fn durations_are_spoken() {
        let spoken = |seconds| spoken(Duration::from_secs(seconds));
        assert_eq!(spoken(59), "59 s");
        assert_eq!(spoken(245), "4 min 05 s");
        assert_eq!(spoken(3725), "1 h 02 min");
    }
}
