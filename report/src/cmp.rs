//! Two results, one after the other: what became better or worse, and whether that can be
//! told from chance.

use crate::compare::{self, Answer, Question, Verdict};
use crate::machine::describe;
use crate::quantity::{self, Quantity};
use crate::row::Cell;
use crate::section;
use crate::stats::median;
use crate::table::{Grid, Line};
use crate::tables;
use crate::text;
use crate::units::{Unit, counted, ranges};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;
use wsbench_schema::{Load, Outcome, RunPlan, Suite, TrialRecord, mark};

/// One of two results.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// What it is called.
    pub name: &'a str,
    /// What was planned.
    pub plan: &'a RunPlan,
    /// What was measured, of that run only.
    pub records: &'a [TrialRecord],
}

/// Results that cannot be compared.
#[derive(Debug, Error)]
pub enum CmpError {
    /// Nothing was measured in one of them.
    #[error("{0} has no record (measure something: wsbench run)")]
    Empty(String),
    /// Servers of one kind against servers of another.
    #[error("{old} is of the suite `{of}` and {new} of `{to}`: they measure different things")]
    Suites {
        /// Name of the older.
        old: String,
        /// Its suite.
        of: Suite,
        /// Name of the newer.
        new: String,
        /// Its suite.
        to: Suite,
    },
    /// They were not loaded alike.
    #[error("the loads are not the same: {0}")]
    Loads(String),
    /// Not even one load, or nobody, is in both.
    #[error("{0}")]
    NothingInCommon(String),
}

/// What the comparison says of one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    verdict: Verdict,
    is_better: Option<bool>,
    /// Of what got worse: by no more than the threshold.
    is_within: bool,
}

/// Everything that is told.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What makes the comparison less than one, a line each.
    pub warnings: Vec<String>,
    /// Versions and everything else that is the same or should be looked at.
    pub facts: Vec<String>,
    /// A table a load.
    pub grids: Vec<Grid>,
    /// What got significantly worse, a line each.
    pub worse: Vec<String>,
    /// If there are too few rounds to show any difference: so many of each are needed.
    pub blind: Option<usize>,
    /// Of so many figures that both have.
    pub compared: usize,
    /// So many have too few rounds to show a difference.
    pub too_few: usize,
}

/// One figure of one subject under one load, on both sides.
struct Pair<'a> {
    load_hash: &'a str,
    subject: &'a str,
    quantity: Quantity,
    old: Vec<f64>,
    new: Vec<f64>,
}

/// Compares `new` with `old`. What got worse by no more than `threshold_percent` is told
/// and is not held against it. Of different loads, those of both are compared if
/// `only_common`.
///
/// # Errors
/// Why they cannot be compared.
pub fn compare(
    old: Side<'_>,
    new: Side<'_>,
    threshold_percent: f64,
    only_common: bool,
) -> Result<Comparison, CmpError> {
    let (of, to) = (suite(old)?, suite(new)?);
    if of != to {
        return Err(CmpError::Suites {
            old: old.name.to_owned(),
            of,
            new: new.name.to_owned(),
            to,
        });
    }
    let loads = loads(old, new, only_common)?;
    let (before, after) = (last(old), last(new));
    let subjects = subjects(&before, &after);
    if !subjects
        .iter()
        .any(|(_, is_old, is_new)| *is_old && *is_new)
    {
        let names = |trials: &[&TrialRecord]| {
            let names: BTreeSet<&str> = trials.iter().map(|t| t.subject.name.as_str()).collect();
            names.into_iter().collect::<Vec<_>>().join(", ")
        };
        return Err(CmpError::NothingInCommon(format!(
            "nobody is in both: {} in {}, {} in {}",
            names(&before),
            old.name,
            names(&after),
            new.name
        )));
    }
    let pairs = pairs(&loads, &subjects, &before, &after);
    let mut worse = failures(&loads, &subjects, &before, &after);
    if pairs.is_empty() && worse.is_empty() {
        return Err(CmpError::NothingInCommon(format!(
            "no figure is in both: {} has {} and {} has {}",
            old.name,
            completed(&before),
            new.name,
            completed(&after)
        )));
    }
    let questions: Vec<Question> = pairs
        .iter()
        .map(|pair| Question {
            of: pair.new.clone(),
            to: pair.old.clone(),
        })
        .collect();
    let answers = compare::decide(&questions);
    let told: Vec<(&Pair<'_>, Change)> = pairs
        .iter()
        .zip(&answers)
        .map(|(pair, answer)| (pair, pair.change(answer, threshold_percent)))
        .collect();
    worse.extend(
        told.iter()
            .filter(|(_, change)| change.is_worse())
            .map(|(pair, _)| {
                let percent = pair.percent().map_or_else(String::new, signed);
                let under = under(&loads, pair.load_hash);
                format!("{}: {} {percent}{under}", pair.subject, pair.quantity.name)
            }),
    );
    let worse = worse.iter().map(|line| text::one_line(line)).collect();
    let mut warnings = warnings(old, new, &before, &after);
    warnings.extend(missing(old, new, &loads, &subjects, &before, &after));
    let needed: Vec<usize> = told
        .iter()
        .filter_map(|(_, change)| change.needed())
        .collect();
    let is_blind = needed.len() == told.len();
    Ok(Comparison {
        blind: needed.iter().copied().max().filter(|_| is_blind),
        compared: told.len(),
        too_few: needed.len(),
        warnings: warnings.iter().map(|line| text::one_line(line)).collect(),
        facts: facts(&subjects, &before, &after)
            .iter()
            .map(|line| text::one_line(line))
            .collect(),
        grids: grids(&loads, &subjects, &told, &before, &after, of),
        worse,
    })
}

fn suite(side: Side<'_>) -> Result<Suite, CmpError> {
    let first = side.records.first().map(|record| record.suite);
    first.ok_or_else(|| CmpError::Empty(side.name.to_owned()))
}

/// Of each trial the last attempt.
fn last(side: Side<'_>) -> Vec<&TrialRecord> {
    // None is of another run: the caller has seen to that.
    section::last_attempts(side.plan, side.records).unwrap_or_default()
}

fn loads<'a>(
    old: Side<'a>,
    new: Side<'a>,
    only_common: bool,
) -> Result<Vec<(String, &'a Load)>, CmpError> {
    let of = |side: Side<'a>| {
        let mut found: Vec<(String, &'a Load)> = Vec::new();
        let planned = side.plan.loads.iter().map(|load| (load.hash(), load));
        let measured = |hash: &str| side.records.iter().any(|record| record.load_hash == hash);
        found.extend(planned.filter(|(hash, _)| measured(hash)));
        for record in side.records {
            if found.iter().all(|(hash, _)| *hash != record.load_hash) {
                found.push((record.load_hash.clone(), &record.load));
            }
        }
        found
    };
    let (before, after) = (of(old), of(new));
    let lacks = |loads: &[(String, &Load)], hash: &str| loads.iter().all(|(of, _)| of != hash);
    let common: Vec<(String, &Load)> = before
        .iter()
        .filter(|(hash, _)| !lacks(&after, hash))
        .cloned()
        .collect();
    if common.len() == before.len() && common.len() == after.len() {
        return Ok(common);
    }
    let only = |loads: &[(String, &'a Load)], others: &[(String, &Load)]| -> Vec<&'a Load> {
        let alone = loads.iter().filter(|(hash, _)| lacks(others, hash));
        alone.map(|(_, load)| *load).collect()
    };
    let (gone, added) = (only(&before, &after), only(&after, &before));
    let difference = match (&gone[..], &added[..]) {
        ([one], [other]) => settings_that_differ(one, other),
        _ => [(old.name, &gone), (new.name, &added)]
            .iter()
            .filter(|(_, loads)| !loads.is_empty())
            .map(|(name, loads)| {
                let loads: Vec<String> = loads.iter().map(|load| short(load)).collect();
                format!("only in {name}: {}", loads.join("; "))
            })
            .collect::<Vec<_>>()
            .join("; "),
    };
    match (only_common, common.is_empty()) {
        (true, false) => Ok(common),
        (true, true) => Err(CmpError::NothingInCommon(format!(
            "no load is in both: {difference}"
        ))),
        (false, is_empty) => Err(CmpError::Loads(match is_empty {
            true => difference,
            false => format!(
                "{difference} (--common compares the {} that both have)",
                counted(common.len() as u64, "load")
            ),
        })),
    }
}

fn short(load: &Load) -> String {
    describe(load).into_iter().next().unwrap_or_default()
}

/// `payload_bytes 1024 against 512, echo.echoes 300000 against none`.
fn settings_that_differ(one: &Load, other: &Load) -> String {
    let flat = |load: &Load| {
        let mut found = BTreeMap::new();
        if let Ok(value) = serde_json::to_value(load) {
            flatten("", &value, &mut found);
        }
        found
    };
    let (one, other) = (flat(one), flat(other));
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let none = "none".to_owned();
    let differ = names.into_iter().filter_map(|name| {
        let (one, other) = (one.get(name), other.get(name));
        let (one, other) = (one.unwrap_or(&none), other.unwrap_or(&none));
        (one != other).then(|| format!("{name} {one} against {other}"))
    });
    differ.collect::<Vec<_>>().join(", ")
}

fn flatten(name: &str, value: &serde_json::Value, found: &mut BTreeMap<String, String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (field, value) in fields {
                let name = match name {
                    "" => field.clone(),
                    name => format!("{name}.{field}"),
                };
                flatten(&name, value, found);
            }
        }
        serde_json::Value::Null => {}
        value => _ = found.insert(name.to_owned(), value.to_string()),
    }
}

/// Everybody, in the order of the older result, and on which sides they are.
fn subjects<'a>(
    before: &[&'a TrialRecord],
    after: &[&'a TrialRecord],
) -> Vec<(&'a str, bool, bool)> {
    let mut names: Vec<&str> = Vec::new();
    for trial in before.iter().chain(after) {
        if !names.contains(&trial.subject.name.as_str()) {
            names.push(&trial.subject.name);
        }
    }
    let is_in = |trials: &[&TrialRecord], name: &str| {
        let mut trials = trials.iter();
        trials.any(|trial| trial.subject.name == name)
    };
    let sides = |name| (name, is_in(before, name), is_in(after, name));
    names.into_iter().map(sides).collect()
}

fn of_trial<'a, 'b>(
    trials: &'b [&'a TrialRecord],
    load_hash: &'b str,
    subject: &'b str,
) -> impl Iterator<Item = &'a TrialRecord> + 'b {
    let is_meant =
        move |trial: &&TrialRecord| trial.load_hash == load_hash && trial.subject.name == subject;
    trials.iter().copied().filter(is_meant)
}

fn pairs<'a>(
    loads: &'a [(String, &Load)],
    subjects: &[(&'a str, bool, bool)],
    before: &[&TrialRecord],
    after: &[&TrialRecord],
) -> Vec<Pair<'a>> {
    let mut pairs = Vec::new();
    for (load_hash, _) in loads {
        for (subject, _, _) in subjects.iter().filter(|(_, old, new)| *old && *new) {
            // More that fail than did is tested too; the first that fail need no test.
            let fails = |trials| Failed::of(of_trial(trials, load_hash, subject)).messages > 0;
            let failed = (fails(before) && fails(after)).then_some(quantity::FAILED);
            for quantity in quantity::ALL.into_iter().chain(failed) {
                let values = |trials: &[&TrialRecord]| -> Vec<f64> {
                    let trials = of_trial(trials, load_hash, subject);
                    let completed = trials.filter(|trial| trial.outcome == Outcome::Completed);
                    completed.filter_map(|trial| quantity.of(trial)).collect()
                };
                let (old, new) = (values(before), values(after));
                if !old.is_empty() && !new.is_empty() {
                    pairs.push(Pair {
                        load_hash,
                        subject,
                        quantity,
                        old,
                        new,
                    });
                }
            }
        }
    }
    pairs
}

impl Pair<'_> {
    fn medians(&self) -> (Option<f64>, Option<f64>) {
        let of = |values: &[f64]| median(values.iter().copied());
        (of(&self.old), of(&self.new))
    }

    /// From the old median to the new one; `None` from zero.
    fn percent(&self) -> Option<f64> {
        let (old, new) = self.medians();
        let percent = (new? - old?) * 100.0 / old?.abs();
        percent.is_finite().then_some(percent)
    }

    fn change(&self, answer: &Answer, threshold_percent: f64) -> Change {
        let less_is_better = self.quantity.less_is_better;
        let sign = if less_is_better { 1.0 } else { -1.0 };
        Change {
            verdict: answer.verdict,
            is_better: answer.verdict.is_better(less_is_better),
            // From zero any change is beyond every threshold.
            is_within: self
                .percent()
                .is_some_and(|percent| percent * sign <= threshold_percent),
        }
    }

    fn said(&self, change: &Change) -> String {
        let verdict = change.verdict.said(self.quantity.less_is_better);
        match change.is_better == Some(false) && change.is_within {
            true => format!("{verdict}, within the threshold"),
            false => verdict,
        }
    }
}

impl Change {
    /// Whether it is held against the newer.
    fn is_worse(&self) -> bool {
        self.is_better == Some(false) && !self.is_within
    }

    /// Rounds that it would take to show a difference, if there are too few.
    fn needed(&self) -> Option<usize> {
        match self.verdict {
            Verdict::TooFewRounds { needed } => Some(needed),
            _ => None,
        }
    }
}

/// `+3.42%`.
fn signed(percent: f64) -> String {
    format!("{percent:+.2}%")
}

/// What no test is needed for: messages that fail now and did not, and rounds.
fn failures(
    loads: &[(String, &Load)],
    subjects: &[(&str, bool, bool)],
    before: &[&TrialRecord],
    after: &[&TrialRecord],
) -> Vec<String> {
    let mut found = Vec::new();
    for (load_hash, _) in loads {
        for (subject, _, _) in subjects.iter().filter(|(_, old, new)| *old && *new) {
            let of = |trials| Failed::of(of_trial(trials, load_hash, subject));
            let (old, new) = (of(before), of(after));
            let under = under(loads, load_hash);
            if new.has_new_rounds(&old) {
                let rounds = counted(new.rounds, "round");
                let before = match old.rounds {
                    0 => "none did before".to_owned(),
                    some => format!("which is every one, {some} of {} did before", old.of_rounds),
                };
                found.push(format!("{subject}: {rounds} failed, {before}{under}"));
            }
            if new.has_new_messages(&old) {
                let messages = new.messages;
                found.push(format!(
                    "{subject}: {messages} connections or messages failed, none did before{under}"
                ));
            }
        }
    }
    found
}

/// What failed of a subject under a load.
struct Failed {
    rounds: u64,
    of_rounds: u64,
    messages: u64,
}

/// The load, where there are several.
fn under(loads: &[(String, &Load)], load_hash: &str) -> String {
    let load = loads.iter().find(|(hash, _)| hash == load_hash);
    match load.filter(|_| loads.len() > 1) {
        Some((_, load)) => format!(" ({})", short(load)),
        None => String::new(),
    }
}

/// `2 completed trials of 3`.
fn completed(trials: &[&TrialRecord]) -> String {
    let mut completed = trials.to_vec();
    completed.retain(|trial| trial.outcome == Outcome::Completed);
    let (count, all) = (completed.len(), trials.len());
    format!("{} of {all}", counted(count as u64, "completed trial"))
}

/// Who was measured on one side only, under all loads or under some: of them nothing is
/// compared, and whoever reads no more than the exit code should not be at ease.
fn missing(
    old: Side<'_>,
    new: Side<'_>,
    loads: &[(String, &Load)],
    subjects: &[(&str, bool, bool)],
    before: &[&TrialRecord],
    after: &[&TrialRecord],
) -> Vec<String> {
    let mut found = Vec::new();
    for (subject, is_old, is_new) in subjects {
        if *is_old && !*is_new {
            let (old, new) = (old.name, new.name);
            found.push(format!(
                "{subject} is not compared: in {old}, and not in {new}"
            ));
        }
        for (load_hash, load) in loads.iter().filter(|_| *is_old && *is_new) {
            let is_in = |trials| of_trial(trials, load_hash, subject).next().is_some();
            let lacks = match (is_in(before), is_in(after)) {
                (true, false) => new.name,
                (false, true) => old.name,
                _ => continue,
            };
            let load = short(load);
            found.push(format!(
                "{subject} is not compared under {load}: {lacks} has no trial of it"
            ));
        }
    }
    found
}

impl Failed {
    fn of<'a>(trials: impl Iterator<Item = &'a TrialRecord>) -> Self {
        let mut found = Self {
            rounds: 0,
            of_rounds: 0,
            messages: 0,
        };
        for trial in trials {
            found.of_rounds += 1;
            found.rounds += u64::from(trial.outcome != Outcome::Completed);
            found.messages += quantity::failed_messages(trial);
        }
        found
    }

    /// Rounds that need no test: the first that fail, and if none is left that does not.
    fn has_new_rounds(&self, before: &Self) -> bool {
        let is_first = before.of_rounds > 0 && before.rounds == 0 && self.rounds > 0;
        let (all, were_all) = (
            self.rounds == self.of_rounds,
            before.rounds == before.of_rounds,
        );
        is_first || (self.of_rounds > 0 && all && before.of_rounds > 0 && !were_all)
    }

    fn has_new_messages(&self, before: &Self) -> bool {
        before.messages == 0 && before.of_rounds > 0 && self.messages > 0
    }
}

/// What of the circumstances is not the same.
fn warnings(
    old: Side<'_>,
    new: Side<'_>,
    before: &[&TrialRecord],
    after: &[&TrialRecord],
) -> Vec<String> {
    let mut found = Vec::new();
    let mut differ = |what: &str, read: &dyn Fn(&TrialRecord) -> String| {
        let all = |trials: &[&TrialRecord]| -> BTreeSet<String> {
            trials.iter().map(|trial| read(trial)).collect()
        };
        let (one, other) = (all(before), all(after));
        if one != other {
            let said = |all: BTreeSet<String>| all.into_iter().collect::<Vec<_>>().join("; ");
            found.push(format!(
                "{what} differs: {} against {}",
                said(one),
                said(other)
            ));
        }
    };
    differ("the machine", &|trial| {
        let machine = &trial.machine;
        format!(
            "{}, {}, {} CPUs, {}",
            machine.host,
            machine.cpu_model,
            machine.cpus_count,
            Unit::Bytes.show(bytes(machine.memory_bytes))
        )
    });
    differ("the kernel", &|trial| trial.machine.kernel.clone());
    differ("the governor", &|trial| trial.machine.governor.clone());
    differ("congestion control", &|trial| {
        trial.machine.congestion_control.clone()
    });
    differ("the CPU map", &|trial| {
        format!(
            "server {}, client {}",
            ranges(&trial.cpus.server),
            ranges(&trial.cpus.client)
        )
    });
    differ("the harness", &|trial| trial.harness.clone());
    differ("the number of processes", &|trial| {
        let (server, client) = (trial.server_processes, trial.client_processes);
        format!("{client} client x {server} server")
    });
    for name in ["nodelay", "buffer_bytes", "unverified", "allocator"] {
        let of = |side: Side<'_>| side.plan.settings.get(name).cloned();
        let (one, other) = (of(old), of(new));
        if one != other {
            let said = |value: Option<String>| value.unwrap_or_else(|| "none".into());
            found.push(format!(
                "the setting {name} differs: {} against {}",
                said(one),
                said(other)
            ));
        }
    }
    for (name, trials) in [(old.name, before), (new.name, after)] {
        for (mark, what) in [
            (mark::NOISY, "disturbed by others"),
            (mark::SHARED_CPUS, "with server and client on shared CPUs"),
        ] {
            let marked = trials.iter().filter(|t| t.marks.contains_key(mark)).count();
            if marked > 0 {
                let all = counted(trials.len() as u64, "trial");
                found.push(format!("{name}: {marked} of {all} {what}"));
            }
        }
    }
    found
}

#[expect(clippy::cast_precision_loss, reason = "two decimals are shown")]
fn bytes(bytes: u64) -> f64 {
    bytes as f64
}

/// Versions: what is compared, as a rule.
fn facts(
    subjects: &[(&str, bool, bool)],
    before: &[&TrialRecord],
    after: &[&TrialRecord],
) -> Vec<String> {
    let version = |trials: &[&TrialRecord], name: &str| {
        let mut of = trials.iter().filter(|trial| trial.subject.name == name);
        let first = of.next().map(|trial| trial.subject.version.clone());
        first.unwrap_or_default()
    };
    let program = |trials: &[&TrialRecord], name: &str| {
        let mut of = trials.iter().filter(|trial| trial.subject.name == name);
        of.find_map(|trial| trial.settings.get("binary").cloned())
    };
    let said = |(name, is_old, is_new): &(&str, bool, bool)| match (is_old, is_new) {
        (true, false) => format!("{name}: only in the older"),
        (false, true) => format!("{name}: only in the newer"),
        _ => {
            let (one, other) = (version(before, name), version(after, name));
            let is_same = program(before, name) == program(after, name);
            match (one == other, is_same) {
                (true, true) => format!("{name}: {one}, the same program"),
                (true, false) => format!("{name}: {one}, another program"),
                (false, _) => format!("{name}: {one} -> {other}"),
            }
        }
    };
    subjects.iter().map(said).collect()
}

fn grids(
    loads: &[(String, &Load)],
    subjects: &[(&str, bool, bool)],
    told: &[(&Pair<'_>, Change)],
    before: &[&TrialRecord],
    after: &[&TrialRecord],
    suite: Suite,
) -> Vec<Grid> {
    let grid = |(load_hash, load): &(String, &Load)| {
        let mut rows = Vec::new();
        for (subject, is_old, is_new) in subjects {
            let is_meant = |(pair, _): &&(&Pair<'_>, Change)| {
                pair.load_hash == load_hash && pair.subject == *subject
            };
            rows.extend(told.iter().filter(is_meant).map(|(pair, change)| {
                let (old, new) = pair.medians();
                let unit = pair.quantity.unit;
                Line::of(
                    subject,
                    vec![
                        Cell::Text((*subject).to_owned()),
                        Cell::Text(pair.quantity.name.to_owned()),
                        Cell::of(old, unit),
                        Cell::of(new, unit),
                        Cell::Text(pair.percent().map_or_else(|| "-".to_owned(), signed)),
                        Cell::Text(pair.said(change)),
                    ],
                )
            }));
            if *is_old && *is_new {
                rows.extend(failed_row(load_hash, subject, before, after));
            }
        }
        Grid {
            file: format!("cmp-{load_hash}"),
            title: short(load),
            names: 2,
            header: [
                tables::subject_is_a(suite),
                "Figure",
                "Old",
                "New",
                "Change",
                "Verdict",
            ]
            .map(str::to_owned)
            .into(),
            rows,
            notes: Vec::new(),
        }
    };
    loads.iter().map(grid).collect()
}

/// What failed, where anything did on either side.
fn failed_row(
    load_hash: &str,
    subject: &str,
    before: &[&TrialRecord],
    after: &[&TrialRecord],
) -> Option<Line> {
    let of = |trials| Failed::of(of_trial(trials, load_hash, subject));
    let (old, new) = (of(before), of(after));
    let cell = |failed: &Failed| {
        let rounds = counted(failed.rounds, "round");
        Cell::Text(match failed.rounds {
            0 => failed.messages.to_string(),
            _ => format!("{} and {rounds}", failed.messages),
        })
    };
    let got_worse = new.has_new_rounds(&old) || new.has_new_messages(&old);
    let any = old.rounds + old.messages + new.rounds + new.messages > 0;
    any.then(|| {
        Line::of(
            subject,
            vec![
                Cell::Text(subject.to_owned()),
                Cell::Text("Failed".to_owned()),
                cell(&old),
                cell(&new),
                Cell::Missing,
                Cell::Text(if got_worse { "worse" } else { "~" }.to_owned()),
            ],
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use wsbench_schema::{Phase, metric};

    fn rounds(name: &str, paces: &[u64]) -> Vec<TrialRecord> {
        let paces = (1..).zip(paces);
        paces
            .map(|(round, pace)| example::paced(name, round, *pace))
            .collect()
    }

    fn cmp(old: &[TrialRecord], new: &[TrialRecord]) -> Result<Comparison, CmpError> {
        let plan = example::plan(&["a"], 10);
        let side = |name, records| Side {
            name,
            plan: &plan,
            records,
        };
        compare(side("old", old), side("new", new), 5.0, false)
    }

    const USUAL: [u64; 10] = [100, 102, 98, 101, 99, 103, 97, 100, 102, 98];

    fn slower(percent: u64) -> Vec<u64> {
        USUAL.iter().map(|pace| pace * percent / 100).collect()
    }

    fn verdicts(found: &Comparison) -> Vec<String> {
        let rows = found.grids.iter().flat_map(|grid| &grid.rows);
        rows.map(|row| {
            format!(
                "{}: {}",
                text::cell(&row.cells[1]),
                text::cell(&row.cells[5])
            )
        })
        .collect()
    }

    #[test]
    fn a_slower_version_is_worse_in_what_it_costs_and_not_in_what_it_does_not() {
        let found = cmp(&rounds("a", &USUAL), &rounds("a", &slower(120))).unwrap();
        let told = verdicts(&found);
        assert!(
            told.contains(&"Server CPU/msg: worse".to_owned()),
            "{told:?}"
        );
        assert!(told.contains(&"TPS: worse".to_owned()), "{told:?}");
        assert!(told.contains(&"MEM/conn: ~".to_owned()), "{told:?}");
        assert!(found.worse.iter().any(|line| line.starts_with("a: TPS -1")));
        let turned = cmp(&rounds("a", &slower(120)), &rounds("a", &USUAL)).unwrap();
        assert!(verdicts(&turned).contains(&"TPS: better".to_owned()));
        assert_eq!(turned.worse, [""; 0]);
    }

    #[test]
    fn what_is_within_the_threshold_is_told_and_not_held_against_it() {
        let few_percent: Vec<u64> = USUAL.iter().map(|pace| pace + 4).collect();
        let steady = [100; 10];
        let found = cmp(&rounds("a", &steady), &rounds("a", &[104; 10])).unwrap();
        let told = verdicts(&found);
        let expected = "Server CPU/msg: worse, within the threshold".to_owned();
        assert!(told.contains(&expected), "{told:?}");
        assert_eq!(found.worse, [""; 0], "{few_percent:?}");
    }

    #[test]
    fn the_same_is_no_difference_and_few_rounds_can_show_none() {
        let same = cmp(&rounds("a", &USUAL), &rounds("a", &USUAL)).unwrap();
        assert!(verdicts(&same).iter().all(|told| told.ends_with(": ~")));
        assert_eq!((same.worse.len(), same.warnings.len()), (0, 0));
        assert!(
            same.facts[0].contains("the same program"),
            "{:?}",
            same.facts
        );
        let few = cmp(&rounds("a", &USUAL[..3]), &rounds("a", &slower(200)[..3])).unwrap();
        let told = verdicts(&few);
        assert!(
            told.iter().any(|told| told.contains("too few rounds (")),
            "{told:?}"
        );
        assert_eq!((few.blind, same.blind), (Some(5), None));
        assert_eq!(few.worse, [""; 0]);
    }

    #[test]
    fn rounds_and_messages_that_fail_now_need_no_test() {
        let mut new = rounds("a", &USUAL);
        new[3] = example::failed("a", 4, "echo", "the server died");
        let name = Phase::Echo.metric(metric::FAILED);
        new[5].metrics.insert(name, 7);
        let found = cmp(&rounds("a", &USUAL), &new).unwrap();
        assert_eq!(
            found.worse,
            [
                "a: 1 round failed, none did before",
                "a: 7 connections or messages failed, none did before"
            ]
        );
        assert!(verdicts(&found).contains(&"Failed: worse".to_owned()));
        let some = new;
        let all: Vec<_> = (1..=3)
            .map(|round| example::failed("a", round, "start", "no listener"))
            .collect();
        let found = cmp(&rounds("a", &USUAL), &all).unwrap();
        assert_eq!(found.worse, ["a: 3 rounds failed, none did before"]);
        // That some failed before excuses nobody of whom none is left.
        let found = cmp(&some, &all).unwrap();
        let expected = "a: 3 rounds failed, which is every one, 1 of 10 did before";
        assert_eq!(found.worse, [expected]);
        let error = cmp(&all, &all).unwrap_err().to_string();
        assert_eq!(
            error,
            "no figure is in both: old has 0 completed trials of 3 and new has 0 completed trials of 3"
        );
    }

    #[test]
    fn more_messages_that_fail_than_did_are_worse_and_as_many_are_not() {
        let failing = |share: u64| {
            let mut trials = rounds("a", &USUAL);
            for (trial, pace) in trials.iter_mut().zip(USUAL) {
                let name = Phase::Echo.metric(metric::FAILED);
                trial.metrics.insert(name, share * pace);
            }
            trials
        };
        let found = cmp(&failing(1), &failing(1000)).unwrap();
        assert_eq!(found.worse, ["a: Failed a round +99900.00%"]);
        assert_eq!(cmp(&failing(1), &failing(1)).unwrap().worse, [""; 0]);
    }

    #[test]
    fn who_is_gone_is_a_warning_and_what_is_hostile_stays_in_its_line() {
        let old = [rounds("a", &USUAL), rounds("b\u{1b}[2J\nx", &USUAL)].concat();
        let found = cmp(&old, &rounds("a", &USUAL)).unwrap();
        assert_eq!(
            found.warnings,
            ["b [2J x is not compared: in old, and not in new"]
        );
        assert!(found.facts.iter().all(|fact| !fact.contains('\u{1b}')));
        assert_eq!((found.too_few, found.compared > 3), (0, true));
    }

    #[test]
    fn other_loads_other_suites_and_nobody_in_common_are_refused_with_the_reason() {
        let old = rounds("a", &USUAL);
        let mut other = rounds("a", &USUAL);
        for trial in &mut other {
            trial.load.payload_bytes = 512;
            trial.load_hash = trial.load.hash();
        }
        let error = |new: &[TrialRecord]| cmp(&old, new).unwrap_err().to_string();
        assert_eq!(
            error(&other),
            "the loads are not the same: payload_bytes 1024 against 512"
        );
        let both = [old.clone(), other].concat();
        let told = error(&both);
        assert!(told.contains("only in new: 1000 connections, "), "{told}");
        assert!(
            told.ends_with("(--common compares the 1 load that both have)"),
            "{told}"
        );
        let mut relay = rounds("a", &USUAL);
        relay
            .iter_mut()
            .for_each(|trial| trial.suite = Suite::Relay);
        assert!(error(&relay).contains("of the suite `websocket`"));
        assert!(error(&rounds("b", &USUAL)).starts_with("nobody is in both: a in old, b in new"));
        assert!(error(&[]).starts_with("new has no record"));
    }

    #[test]
    fn another_machine_or_another_map_is_a_warning_and_versions_are_told() {
        let mut new = rounds("a", &USUAL);
        for trial in &mut new {
            trial.machine.host = "other".into();
            trial.cpus.server = vec![0, 1];
            trial.subject.version = "a 2.0.0".into();
            trial.marks.insert(mark::NOISY.into(), "echo: 9 %".into());
        }
        let found = cmp(&rounds("a", &USUAL), &new).unwrap();
        let all = found.warnings.join("\n");
        for part in [
            "the machine differs: ",
            "the CPU map differs: server 0, client 1 against server 0-1",
            "new: 10 of 10 trials disturbed",
        ] {
            assert!(all.contains(part), "{part}: {all}");
        }
        assert_eq!(found.facts, ["a: a 1.2.3 -> a 2.0.0"]);
    }

    /// Runs of the same kind, as often as the level allows and no more often.
    #[test]
    fn two_runs_of_the_same_raise_no_more_alarms_than_the_level_and_a_tenth_is_found() {
        let mut random = wsbench_schema::SplitMix64::new(11);
        let mut run = |percent: u64| -> Vec<TrialRecord> {
            let paces: Vec<u64> = (0..10)
                .map(|_| (9_700 + random.below(600)) * percent / 10_000)
                .collect();
            rounds("a", &paces)
        };
        let alarms = (0..100)
            .filter(|_| {
                let (old, new) = (run(1000), run(1000));
                let told = verdicts(&cmp(&old, &new).unwrap());
                told.iter()
                    .any(|told| told.ends_with("worse") || told.ends_with("better"))
            })
            .count();
        assert!(alarms <= 10, "{alarms} of 100");
        let found = (0..20)
            .filter(|_| !cmp(&run(1000), &run(1100)).unwrap().worse.is_empty())
            .count();
        assert_eq!(found, 20);
    }
}
