//! Which trials belong together: one section a load, one subject a row, of
//! each repeated trial the last attempt.

use crate::ReportError;
use crate::differences::{self, Findings};
use crate::latency::Latency;
use crate::parallel;
use crate::units::counted;
use std::collections::BTreeMap;
use wsbench_schema::{Load, Outcome, Phase, RunPlan, Suite, Transport, TrialRecord, metric};

/// All trials under one load: only these are compared with each other.
#[derive(Clone, Debug)]
pub struct Section {
    /// What kind of servers.
    pub suite: Suite,
    /// What was done.
    pub load: Load,
    /// [`Load::hash`] of it.
    pub load_hash: String,
    /// Those with at least one record, in the order of the plan.
    pub subjects: Vec<Subject>,
    /// Planned subjects without any record.
    pub waiting: Vec<String>,
    /// Every two subjects compared.
    pub findings: Findings,
    /// With whom everybody is compared, if there is anybody.
    pub baseline: Option<String>,
}

/// All rounds of one subject under one load.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The folder's name, with `-<variant>` behind it for a variant.
    pub name: String,
    /// Whether it is none of those compared but the client beside the origin, with
    /// nothing between them.
    pub is_direct: bool,
    /// Cases of the examination that it passed, `58/60`, if it was examined.
    pub verified: Option<String>,
    /// The rounds that count. Their histograms are in `latencies` instead.
    pub completed: Vec<TrialRecord>,
    /// The rounds that do not.
    pub failed: Vec<FailedRound>,
    /// Of the completed rounds together, under the name of the histogram.
    pub latencies: BTreeMap<String, Latency>,
    /// Histograms that should be there and of which nothing is shown, and why: what is
    /// known of the other rounds would be taken for what is known of all.
    pub lost: BTreeMap<String, String>,
}

/// The subject that shows the least an echo can cost.
pub const FLOOR: &str = "floor";

/// A round without figures.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailedRound {
    /// Where it ended.
    pub stage: String,
    /// What happened.
    pub reason: String,
    /// Bytes that had crossed until then, and those planned, if it was a bulk transfer.
    pub crossed: Option<(u64, u64)>,
}

impl FailedRound {
    fn of(trial: &TrialRecord, stage: &str, reason: &str) -> Self {
        Self {
            stage: stage.to_owned(),
            reason: reason.to_owned(),
            crossed: crossed(trial),
        }
    }
}

/// Bytes that crossed in a bulk transfer, and those planned.
#[must_use]
pub fn crossed(trial: &TrialRecord) -> Option<(u64, u64)> {
    let crossings = trial.load.bulk.as_ref()?.crossings();
    let bytes = |name| {
        let bytes = trial.metric(Phase::Bulk, name);
        bytes.map(|bytes| bytes.saturating_mul(crossings))
    };
    Some((
        bytes(metric::VERIFIED_BYTES)?,
        bytes(metric::PLANNED_BYTES)?,
    ))
}

pub(crate) fn is_direct(trial: &TrialRecord) -> bool {
    trial
        .settings
        .get("role")
        .is_some_and(|role| role == "direct")
}

/// The histograms of a phase in which something succeeded, of those that are shown.
fn expected(suite: Suite, phase: Phase) -> &'static [&'static str] {
    match (phase, suite) {
        (Phase::Connect, Suite::Websocket) => &[metric::DIAL_LATENCY],
        (Phase::Echo, _) => &[metric::ECHO_LATENCY],
        (Phase::Rate, _) => &[metric::INTENDED_LATENCY, metric::ACTUAL_LATENCY],
        (Phase::Connect | Phase::Warmup | Phase::Bulk | Phase::Release, _) => &[],
    }
}

/// Histograms that a round should have and has not.
fn missing(completed: &[TrialRecord]) -> BTreeMap<String, String> {
    let mut missing: BTreeMap<String, u64> = BTreeMap::new();
    for trial in completed {
        let succeeded = |phase: &Phase| trial.metric(*phase, metric::SUCCEEDED) > Some(0);
        for phase in Phase::ALL.into_iter().filter(succeeded) {
            let names = expected(trial.suite, phase).iter();
            let names = names.map(|name| phase.metric(name));
            for name in names.filter(|name| !trial.histograms.contains_key(name)) {
                *missing.entry(name).or_default() += 1;
            }
        }
    }
    let rounds = counted(completed.len() as u64, "round");
    let told = |(name, count)| (name, format!("histogram is missing in {count} of {rounds}"));
    missing.into_iter().map(told).collect()
}

impl Subject {
    /// Takes the figures of the completed rounds together.
    #[must_use]
    pub fn new(name: &str, mut completed: Vec<TrialRecord>, failed: Vec<FailedRound>) -> Self {
        let mut lost = missing(&completed);
        let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for trial in &mut completed {
            for (name, text) in std::mem::take(&mut trial.histograms) {
                texts.entry(name).or_default().push(text);
            }
        }
        let mut latencies = BTreeMap::new();
        for (histogram, texts) in texts {
            match Latency::merged(texts.iter().map(String::as_str)) {
                Ok(Some(latency)) if !lost.contains_key(&histogram) => {
                    latencies.insert(histogram, latency);
                }
                Ok(_) => {}
                Err(cause) => _ = lost.insert(histogram, cause.to_string()),
            }
        }
        Self {
            name: name.to_owned(),
            is_direct: completed.iter().any(is_direct),
            verified: None,
            completed,
            failed,
            latencies,
            lost,
        }
    }

    /// Whether the others are measured against it.
    #[must_use]
    pub fn is_yardstick(&self) -> bool {
        self.is_direct || self.name == FLOOR
    }

    /// Rounds that were tried.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.completed.len() + self.failed.len()
    }
}

/// `floor`, since everybody's distance to the least that an echo can cost means something;
/// without it whoever was named first.
fn default_baseline(subjects: &[Subject]) -> Option<String> {
    let mut measured = subjects
        .iter()
        .filter(|subject| !subject.completed.is_empty() && !subject.is_direct);
    let first = measured.clone().next();
    let floor = measured.find(|subject| subject.name == FLOOR);
    floor.or(first).map(|subject| subject.name.clone())
}

impl Section {
    /// Compares everybody with this subject instead. False if it has no figures here.
    pub fn set_baseline(&mut self, name: &str) -> bool {
        let is_meant = |subject: &Subject| subject.name == name && !subject.completed.is_empty();
        let is_there = self.subjects.iter().any(is_meant);
        if is_there && self.baseline.as_deref() != Some(name) {
            self.baseline = Some(name.to_owned());
            self.findings = differences::between(&self.subjects, &self.load_hash, Some(name));
        }
        is_there
    }
}

/// Of each trial the highest attempt, in order of load, subject and round.
///
/// # Errors
/// If a record belongs to another run.
pub fn last_attempts<'a>(
    plan: &RunPlan,
    records: &'a [TrialRecord],
) -> Result<Vec<&'a TrialRecord>, ReportError> {
    match records.iter().find(|record| record.run != plan.run) {
        Some(record) => Err(ReportError::OtherRun {
            record: record.file_name(),
            found: record.run.clone(),
            expected: plan.run.clone(),
        }),
        None => Ok(newest_attempts(records)),
    }
}

/// The same of the trials of any runs.
#[must_use]
pub fn newest_attempts(records: &[TrialRecord]) -> Vec<&TrialRecord> {
    let mut last: BTreeMap<_, &TrialRecord> = BTreeMap::new();
    for record in records {
        let TrialRecord {
            run,
            load_hash,
            subject,
            ..
        } = record;
        let trial = (run, load_hash, &subject.name, record.round);
        let kept = last.entry(trial).or_insert(record);
        if record.attempt > kept.attempt {
            *kept = record;
        }
    }
    last.into_values().collect()
}

/// The loads of the plan in its order, then those that are not in it.
#[must_use]
pub fn sections(plan: &RunPlan, trials: &[&TrialRecord]) -> Vec<Section> {
    let mut loads: Vec<(String, &Load)> = Vec::new();
    let planned = plan.loads.iter().map(|load| (load.hash(), load));
    let measured = trials.iter().map(|t| (t.load_hash.clone(), &t.load));
    for (hash, load) in planned.chain(measured) {
        if loads.iter().all(|(known, _)| *known != hash) {
            loads.push((hash, load));
        }
    }
    let mut of_load: BTreeMap<&str, Vec<&TrialRecord>> = BTreeMap::new();
    for trial in trials {
        of_load.entry(&trial.load_hash).or_default().push(trial);
    }
    parallel::map(&loads, |(hash, load)| {
        let of_load = of_load.get(hash.as_str()).map_or(&[][..], Vec::as_slice);
        section(plan, of_load, suite(trials, load), hash, load)
    })
}

/// What was measured; without any record what can be measured by such a load.
fn suite(trials: &[&TrialRecord], load: &Load) -> Suite {
    match (trials.first(), load.transport) {
        (Some(trial), _) => trial.suite,
        (None, Transport::Websocket) => Suite::Websocket,
        (None, Transport::Stream) => Suite::Relay,
    }
}

fn section(
    plan: &RunPlan,
    trials: &[&TrialRecord],
    suite: Suite,
    load_hash: &str,
    load: &Load,
) -> Section {
    let mut names: Vec<&str> = Vec::new();
    let mut of_name: BTreeMap<&str, Vec<&TrialRecord>> = BTreeMap::new();
    for trial in trials {
        of_name.entry(&trial.subject.name).or_default().push(trial);
    }
    let planned = plan.subjects.iter().map(String::as_str);
    for name in planned.chain(of_name.keys().copied()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let (mut subjects, mut waiting) = (Vec::new(), Vec::new());
    for name in names {
        let (mut completed, mut failed) = (Vec::new(), Vec::new());
        let trials = of_name.get(name).map_or(&[][..], Vec::as_slice);
        for trial in trials {
            match &trial.outcome {
                Outcome::Completed => completed.push((*trial).clone()),
                Outcome::Failed { stage, reason } => {
                    failed.push(FailedRound::of(trial, stage, reason));
                }
            }
        }
        if completed.is_empty() && failed.is_empty() {
            waiting.push(name.to_owned());
        } else {
            let mut subject = Subject::new(name, completed, failed);
            subject.is_direct = trials.iter().any(|trial| is_direct(trial));
            subjects.push(subject);
        }
    }
    let baseline = default_baseline(&subjects);
    let findings = differences::between(&subjects, load_hash, baseline.as_deref());
    Section {
        suite,
        load: load.clone(),
        findings,
        baseline,
        load_hash: load_hash.to_owned(),
        subjects,
        waiting,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use wsbench_schema::Phase;
    use wsbench_schema::metric::{ECHO_LATENCY, SUCCEEDED};

    fn build(plan: &RunPlan, records: &[TrialRecord]) -> Vec<Section> {
        sections(plan, &last_attempts(plan, records).unwrap())
    }

    #[test]
    fn the_last_attempt_of_a_trial_counts() {
        let mut again = example::trial("axum", 1);
        again.attempt = 2;
        let name = Phase::Echo.metric(SUCCEEDED);
        again.metrics.insert(name, 7);
        let failed = example::failed("axum", 1, "start", "port in use");
        for records in [[again.clone(), failed.clone()], [failed, again]] {
            let sections = build(&example::plan(&["axum"], 1), &records);
            let subject = &sections[0].subjects[0];
            assert!(subject.failed.is_empty());
            let succeeded = subject.completed[0].metric(Phase::Echo, SUCCEEDED);
            assert_eq!(succeeded, Some(7));
        }
    }

    #[test]
    fn only_equal_loads_share_a_section() {
        let mut other = example::trial("axum", 1);
        other.load.payload_bytes = 4096;
        other.load_hash = other.load.hash();
        let records = [example::trial("axum", 1), other.clone()];
        let mut plan = example::plan(&["axum"], 1);
        let found = build(&plan, &records);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].load_hash, other.load_hash);
        // The plan's order is the report's.
        plan.loads.insert(0, other.load.clone());
        assert_eq!(build(&plan, &records)[0].load_hash, other.load_hash);
        assert!(found.iter().all(|section| section.subjects.len() == 1));
    }

    #[test]
    fn failed_rounds_are_kept_apart_and_unmeasured_subjects_named() {
        let records = [
            example::trial("axum", 1),
            example::failed("axum", 2, "echo", "the server died"),
            example::trial("late", 1),
        ];
        let found = build(&example::plan(&["floor", "axum"], 2), &records);
        let names: Vec<_> = found[0].subjects.iter().map(|s| &s.name).collect();
        assert_eq!(names, ["axum", "late"]);
        assert_eq!(found[0].waiting, ["floor"]);
        let axum = &found[0].subjects[0];
        assert_eq!((axum.completed.len(), axum.failed.len()), (1, 1));
        assert_eq!(axum.failed[0].stage, "echo");
    }

    #[test]
    fn a_histogram_that_one_round_has_not_is_shown_of_none() {
        let name = Phase::Echo.metric(ECHO_LATENCY);
        let mut broken = example::trial("axum", 1);
        let mut lost = |text: Option<&str>| {
            match text {
                Some(text) => broken.histograms.insert(name.clone(), text.into()),
                None => broken.histograms.remove(&name),
            };
            let rounds = [broken.clone(), example::trial("axum", 2)];
            let sections = build(&example::plan(&["axum"], 2), &rounds);
            let subject = &sections[0].subjects[0];
            assert!(!subject.latencies.contains_key(&name));
            assert_eq!(subject.latencies.len(), 3, "the others are there");
            subject.lost[&name].clone()
        };
        assert!(lost(Some("damaged")).starts_with("histogram is not "));
        let told = "histogram is missing in 1 of 2 rounds";
        assert_eq!(lost(None), told);
        // Of a phase in which nothing succeeded none is missing.
        assert!(missing(&[example::empty("axum", 1)]).is_empty());
    }

    #[test]
    fn a_foreign_record_is_named() {
        let plan = example::plan(&["axum"], 1);
        let mut foreign = example::trial("axum", 1);
        foreign.run = "other".into();
        let error = last_attempts(&plan, &[foreign]).unwrap_err().to_string();
        assert!(error.contains("run `other`, not `example`"), "{error}");
    }
}
