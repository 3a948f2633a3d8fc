//! A search for the highest rate at which a server holds an objective: one file a subject
//! and round in `results/<run>/slo/`, written again after every stage, so that an
//! interruption loses nothing that was measured.

use crate::record::{Loaded, RecordError, read_json, write_json};
use crate::{CpuMap, Load, Machine, RunPlan, SubjectId, Suite};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Of latencies, from when a message was due to its answer: so much of them must be below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// The percentile in thousandths; [`Bound::MAX`] is the longest of all.
    pub permille: u64,
    /// It must be below this.
    pub below_ns: u64,
}

impl Bound {
    /// Stands for the longest latency.
    pub const MAX: u64 = 1000;
    /// Messages behind a percentile, at least.
    const BEYOND: u64 = 10;
    /// Messages of a stage, at least, whatever it is asked for.
    const LEAST: u64 = 1000;

    /// Messages that must be answered before this says anything: ten of them beyond the
    /// percentile, and a thousand at least.
    #[must_use]
    pub fn needs(self) -> u64 {
        match Self::MAX.saturating_sub(self.permille) {
            0 => Self::LEAST,
            beyond => (Self::BEYOND * Self::MAX / beyond).max(Self::LEAST),
        }
    }

    /// `tp99`, `tp99.9`, `max`.
    #[must_use]
    pub fn name(self) -> String {
        match (self.permille / 10, self.permille % 10) {
            _ if self.permille >= Self::MAX => "max".to_owned(),
            (percent, 0) => format!("tp{percent}"),
            (percent, tenth) => format!("tp{percent}.{tenth}"),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let below = self.below_ns;
        let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us")];
        let unit = units.iter().find(|(ns, _)| below.is_multiple_of(*ns));
        let (ns, unit) = unit.copied().unwrap_or((1, "ns"));
        write!(f, "{}<{}{unit}", self.name(), below / ns)
    }
}

/// What a server must hold: every bound, and that nothing fails, is lost or stays unsent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Objective(pub Vec<Bound>);

impl Objective {
    /// Messages that a stage must have answered before it says anything.
    #[must_use]
    pub fn needs(&self) -> u64 {
        self.0.iter().map(|bound| bound.needs()).max().unwrap_or(1)
    }

    /// The longest latency of all bounds.
    #[must_use]
    pub fn longest_ns(&self) -> u64 {
        self.0.iter().map(|bound| bound.below_ns).max().unwrap_or(0)
    }

    /// The bound of the highest percentile: what a curve is drawn of.
    #[must_use]
    pub fn strictest(&self) -> Option<Bound> {
        self.0.iter().copied().max_by_key(|bound| bound.permille)
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, bound) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{bound}")?;
        }
        Ok(())
    }
}

/// What a stage is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageKind {
    /// Higher and higher, until one rate is too high.
    Bracket,
    /// Between a rate that was held and one that was not.
    Bisect,
    /// The rate that was found, longer.
    Confirm,
}

impl fmt::Display for StageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bracket => "bracket",
            Self::Bisect => "bisect",
            Self::Confirm => "confirm",
        })
    }
}

/// How a stage ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", deny_unknown_fields)]
pub enum StageVerdict {
    /// The objective was held.
    Held,
    /// It was not, and why not.
    Missed {
        /// In words, with the figures.
        reason: String,
    },
    /// It was not, but the client was at its limit while the server was not: this says
    /// nothing about the server.
    ClientBound {
        /// In words, with the figures.
        reason: String,
    },
}

impl StageVerdict {
    /// Whether the objective was held.
    #[must_use]
    pub fn is_held(&self) -> bool {
        *self == Self::Held
    }
}

/// A fresh server under one rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SloStage {
    /// What it is for.
    pub kind: StageKind,
    /// Whether the same rate was missed just before: one miss may be the machine's.
    pub is_repeat: bool,
    /// Messages a second over all connections.
    pub rate_per_s: u64,
    /// How long messages were due.
    pub duration_ms: u64,
    /// Seconds since 1970, UTC.
    pub started_unix_s: u64,
    /// How it ended.
    pub verdict: StageVerdict,
    /// As in a trial's record.
    pub metrics: BTreeMap<String, u64>,
    /// As in a trial's record.
    pub histograms: BTreeMap<String, String>,
    /// As in a trial's record.
    pub marks: BTreeMap<String, String>,
}

/// What a rate that was found is limited by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "by", deny_unknown_fields)]
pub enum Limit {
    /// The server missed the objective at this rate.
    Server {
        /// Messages a second.
        missed_per_s: u64,
    },
    /// The client could not load the server at this rate: the server can do at least what
    /// was found, and how much more is not known.
    Client {
        /// Messages a second.
        bound_per_s: u64,
    },
    /// No higher rate is asked for.
    Highest,
}

/// How a search ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", deny_unknown_fields)]
pub enum SloOutcome {
    /// It has not ended, or was interrupted.
    Unfinished,
    /// The highest rate that was held and confirmed.
    Found {
        /// Messages a second over all connections.
        rate_per_s: u64,
        /// Why it is not higher.
        limit: Limit,
    },
    /// Not even the lowest rate was held.
    NeverHeld {
        /// Messages a second.
        lowest_per_s: u64,
        /// Why not.
        reason: String,
        /// Whether it was the client who was at its limit.
        is_client_bound: bool,
    },
    /// Rates were held, and none of those that were tried again longer.
    NotConfirmed {
        /// The lowest of those, messages a second.
        lowest_per_s: u64,
        /// Why not.
        reason: String,
    },
    /// The server could not be measured, as it cannot be started.
    Failed {
        /// Where it ended.
        stage: String,
        /// What happened.
        reason: String,
    },
}

/// A search of one subject in one round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SloRecord {
    /// [`crate::SCHEMA_VERSION`].
    pub schema: u32,
    /// Identifier of the run.
    pub run: String,
    /// From 1.
    pub round: u32,
    /// Which kind of server.
    pub suite: Suite,
    /// Who was measured.
    pub subject: SubjectId,
    /// Revision of the harness.
    pub harness: String,
    /// Of every random choice in the search.
    pub seed: u64,
    /// Seconds since 1970, UTC.
    pub started_unix_s: u64,
    /// Where.
    pub machine: Machine,
    /// On which CPUs.
    pub cpus: CpuMap,
    /// As in a trial's record.
    pub settings: BTreeMap<String, String>,
    /// What is the same in all stages; its rate is the lowest that there can be.
    pub load: Load,
    /// What is to be held.
    pub objective: Objective,
    /// Neighbouring rates of the search differ by so much at most, in thousandths.
    pub resolution_permille: u64,
    /// In the order in which they were measured.
    pub stages: Vec<SloStage>,
    /// How it ended.
    pub outcome: SloOutcome,
}

impl SloRecord {
    /// In the run's folder.
    pub const FOLDER: &str = "slo";
    /// The setting of a plan whose trials are searches: the objective.
    pub const SETTING: &str = "slo";

    /// Whether the trials of a plan are searches.
    #[must_use]
    pub fn is_planned(plan: &RunPlan) -> bool {
        plan.settings.contains_key(Self::SETTING)
    }

    /// Where the search of a subject in a round is.
    #[must_use]
    pub fn path(folder: &Path, subject: &str, round: u32) -> PathBuf {
        folder
            .join(Self::FOLDER)
            .join(format!("{subject}-r{round}.json"))
    }

    /// Writes it into the run's folder, in the place of what stood there.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn save(&self, folder: &Path) -> Result<PathBuf, RecordError> {
        let path = Self::path(folder, &self.subject.name, self.round);
        let folder = folder.join(Self::FOLDER);
        std::fs::create_dir_all(&folder).map_err(|cause| RecordError::Io {
            path: folder,
            cause,
        })?;
        write_json(&path, self)?;
        Ok(path)
    }

    /// Reads one.
    ///
    /// # Errors
    /// If the file cannot be read, is of another version or has unknown fields.
    pub fn load(path: &Path) -> Result<Self, RecordError> {
        read_json(path)
    }

    /// Every search of a run, by subject and round; none if it has none.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn load_all(folder: &Path) -> Result<Loaded<Self>, RecordError> {
        let is_one = |path: &Path| path.extension().is_some_and(|kind| kind == "json");
        let loaded = Loaded::read(&folder.join(Self::FOLDER), is_one, Self::load);
        let mut loaded = match loaded {
            Err(RecordError::Io { cause, .. }) if cause.kind() == ErrorKind::NotFound => Loaded {
                files: Vec::new(),
                problems: Vec::new(),
            },
            loaded => loaded?,
        };
        loaded.files.sort_by(|a, b| {
            let by_name = a.subject.name.cmp(&b.subject.name);
            by_name.then(a.round.cmp(&b.round))
        });
        Ok(loaded)
    }

    /// Whether it need not be made again.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.outcome != SloOutcome::Unfinished
    }

    /// The rate that was found and confirmed.
    #[must_use]
    pub fn rate_per_s(&self) -> Option<u64> {
        match self.outcome {
            SloOutcome::Found { rate_per_s, .. } => Some(rate_per_s),
            _ => None,
        }
    }

    /// The stage that confirmed it.
    #[must_use]
    pub fn confirmed(&self) -> Option<&SloStage> {
        let rate = self.rate_per_s()?;
        self.stages.iter().rev().find(|stage| {
            stage.kind == StageKind::Confirm && stage.rate_per_s == rate && stage.verdict.is_held()
        })
    }

    /// The lowest rate that was missed, if a higher one was held: more than chance or noise
    /// would have to explain it.
    #[must_use]
    pub fn missed_below_held(&self) -> Option<(u64, u64)> {
        let rates = |is_held: bool| {
            let stages = self.stages.iter();
            stages
                .filter(move |stage| match stage.verdict {
                    StageVerdict::Held => is_held,
                    StageVerdict::Missed { .. } => !is_held,
                    StageVerdict::ClientBound { .. } => false,
                })
                .map(|stage| stage.rate_per_s)
        };
        let (missed, held) = (rates(false).min()?, rates(true).max()?);
        (missed <= held).then_some((missed, held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_objective_is_written_as_it_is_asked_for() {
        let of = |permille, below_ns| Bound { permille, below_ns };
        let objective = Objective(vec![
            of(990, 10_000_000),
            of(999, 1_500_000),
            of(500, 999),
            of(Bound::MAX, 2_000_000_000),
        ]);
        let text = "tp99<10ms,tp99.9<1500us,tp50<999ns,max<2s";
        assert_eq!(objective.to_string(), text);
        assert_eq!(objective.strictest(), Some(of(Bound::MAX, 2_000_000_000)));
        assert_eq!(objective.longest_ns(), 2_000_000_000);
    }

    #[test]
    fn ten_messages_are_beyond_a_percentile_that_is_judged() {
        let needs = |permille| {
            Objective(vec![Bound {
                permille,
                below_ns: 1,
            }])
            .needs()
        };
        let found = [500, 900, 990, 999, Bound::MAX].map(needs);
        assert_eq!(found, [1000, 1000, 1000, 10_000, 1000]);
    }

    #[test]
    fn a_run_without_searches_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let all = SloRecord::load_all(folder.path()).unwrap();
        assert!(all.files.is_empty() && all.problems.is_empty());
        std::fs::create_dir(folder.path().join(SloRecord::FOLDER)).unwrap();
        std::fs::write(SloRecord::path(folder.path(), "axum", 1), "{").unwrap();
        let all = SloRecord::load_all(folder.path()).unwrap();
        let problem = all.problems[0].to_string();
        assert!(problem.contains("axum-r1.json: truncated"), "{problem}");
    }
}
