//! What a reader must know before comparing a row: a symbol in the row, and a
//! line under the table that explains it and names the rows.

use crate::row::{Cell, Row};
use crate::units::{self, Unit};
use crate::{steady, tcp, text};
use std::collections::{BTreeMap, BTreeSet};
use wsbench_schema::mark::Noise;
use wsbench_schema::{Phase, TrialRecord, mark, metric};

/// One mark of one row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flag {
    /// What stands in the row.
    pub symbol: String,
    /// What it means.
    pub meaning: String,
}

impl Flag {
    fn new(symbol: &str, meaning: impl Into<String>) -> Self {
        Self {
            symbol: symbol.to_owned(),
            meaning: meaning.into(),
        }
    }
}

/// Every mark of a row, in the order in which they are shown.
#[must_use]
pub fn flags(row: &Row<'_>) -> Vec<Flag> {
    let mut flags = Vec::new();
    flags.extend(failed_rounds(row));
    flags.extend(partial(row));
    flags.extend(not_as_asked(row));
    flags.extend(client_bound(row));
    flags.extend(noisy(row));
    flags.extend(steady::meaning(row).map(|meaning| Flag::new("W", meaning)));
    flags.extend(recorded(row));
    flags.extend(lost(row));
    flags
}

/// Whether a latency of the row is not shown because its histogram cannot be read.
fn lost(row: &Row<'_>) -> impl Iterator<Item = Flag> {
    let prefix = row.phase.metric("");
    let lost = row.subject.lost.iter();
    let of_phase = lost.filter(move |(name, _)| name.starts_with(&prefix));
    of_phase
        .map(|(name, why)| Flag::new("H", format!("what is read from {name} is not shown: {why}")))
}

fn failed_rounds(row: &Row<'_>) -> Option<Flag> {
    let failed = &row.subject.failed;
    let causes: BTreeSet<String> = failed
        .iter()
        .map(|round| format!("{}: {}", round.stage, round.reason))
        .collect();
    let causes = causes.into_iter().collect::<Vec<_>>().join("; ");
    let (count, rounds) = (failed.len(), counted(row.subject.rounds()));
    let are = if count == 1 { "is" } else { "are" };
    let meaning = format!("{count} of {rounds} failed and {are} in no figure ({causes})");
    (count > 0).then(|| Flag::new("F", meaning))
}

/// Whether a round moved less than was planned. It is told of rounds that failed too,
/// since that is all that is known of them.
#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
fn partial(row: &Row<'_>) -> Option<Flag> {
    let rounds = match row.phase {
        Phase::Bulk => tcp::rounds_crossed(row),
        _ => return None,
    };
    let parts: Vec<_> = rounds
        .iter()
        .filter(|(crossed, planned)| crossed < planned)
        .collect();
    let (crossed, planned) = parts.iter().min()?;
    let part = text::cell(&Cell::Part(*crossed as f64, *planned as f64, Unit::Data));
    let meaning = format!(
        "partial: not everything was transferred, {part} where it was least ({} of {})",
        parts.len(),
        counted(rounds.len())
    );
    Some(Flag::new("P", meaning))
}

/// Whether a round of the open loop was not the load that was asked, which the
/// medians of the row would hide.
fn not_as_asked(row: &Row<'_>) -> Option<Flag> {
    let measured = |trial: &&TrialRecord| trial.metric(row.phase, metric::SHORTFALL).is_some();
    let trials: Vec<&TrialRecord> = row.subject.completed.iter().filter(measured).collect();
    let sent = trials
        .iter()
        .filter_map(|trial| mark::too_little_sent_percent(&trial.metrics));
    let mut sent: Vec<f64> = sent.collect();
    sent.sort_by(f64::total_cmp);
    let percent = match (sent.first()?, sent.last()?) {
        (least, _) if sent.len() == 1 => format!("{least:.1} %"),
        (least, most) => format!("{least:.1} to {most:.1} %"),
    };
    let meaning = format!(
        "not the load that was asked: {} of {} sent {percent} of what was due",
        sent.len(),
        counted(trials.len())
    );
    Some(Flag::new("D", meaning))
}

fn counted(rounds: usize) -> String {
    units::counted(rounds as u64, "round")
}

/// Whether the row shows the client's limit. Where that cannot be told, the row
/// says so: silence would read as "no".
fn client_bound(row: &Row<'_>) -> Vec<Flag> {
    // While connections are closed nobody is measured by speed.
    let measured = |trial: &&TrialRecord| {
        row.phase != Phase::Release && trial.metric(row.phase, metric::SUCCEEDED).is_some()
    };
    let trials: Vec<&TrialRecord> = row.subject.completed.iter().filter(measured).collect();
    let judged = |verdict: Option<bool>| {
        let verdicts = trials
            .iter()
            .map(|trial| mark::client_bound(&trial.metrics, row.phase));
        verdicts.filter(|found| *found == verdict).count()
    };
    let (bound, unknown) = (judged(Some(true)), judged(None));
    let rounds = counted(trials.len());
    let mut flags = Vec::new();
    if bound > 0 {
        let has_origin =
            |trial: &&TrialRecord| trial.metric(row.phase, metric::ORIGIN_CPU).is_some();
        let client = match trials.iter().any(has_origin) {
            true => "CPUs of client and origin",
            false => "client's CPUs",
        };
        let meaning = format!(
            "client-bound: the {client} were at least {} % busy while the server's were under {} %; \
             the row shows the client's limit ({bound} of {rounds})",
            mark::CLIENT_BUSY_PERMILLE / 10,
            mark::SERVER_BUSY_PERMILLE / 10,
        );
        flags.push(Flag::new("C", meaning));
    }
    if unknown > 0 {
        let meaning = format!(
            "not known whether the client was the limit: CPU of server or client was not measured \
             ({unknown} of {rounds})"
        );
        flags.push(Flag::new("?", meaning));
    }
    flags
}

/// Whether others disturbed a round, and how much at most.
fn noisy(row: &Row<'_>) -> Option<Flag> {
    if matches!(row.phase, Phase::Connect | Phase::Release) {
        return None;
    }
    let trials = row.subject.completed.iter();
    let noise = trials.filter_map(|trial| Noise::of(&trial.metrics, row.phase));
    let noise: Vec<Noise> = noise.collect();
    let loud: Vec<Noise> = noise
        .iter()
        .copied()
        .filter(|of| of.is_too_much())
        .collect();
    let worst = loud.iter().copied().reduce(Noise::worse)?;
    let meaning = format!(
        "noisy: at worst {worst} ({} of {})",
        loud.len(),
        counted(noise.len())
    );
    Some(Flag::new("N", meaning))
}

/// The marks that stand in the records. `client_bound` is not read from there,
/// because it differs from phase to phase, nor `not_as_asked`, of which the
/// figures of all rounds make one line; Little's law is about the echo phase.
fn recorded(row: &Row<'_>) -> BTreeSet<Flag> {
    let trials = row.subject.completed.iter();
    trials
        .flat_map(|trial| &trial.marks)
        .filter(|(name, _)| match name.as_str() {
            mark::CLIENT_BOUND | mark::NOT_AS_ASKED | mark::NOISY => false,
            mark::LITTLES_LAW => row.phase == Phase::Echo,
            _ => true,
        })
        .map(|(name, reason)| match name.as_str() {
            mark::SHARED_CPUS => Flag::new("S", format!("server and client shared CPUs: {reason}")),
            mark::UNVERIFIED => Flag::new("U", format!("timed although unverified: {reason}")),
            mark::LITTLES_LAW => {
                let meaning =
                    "TPS and latency do not fit each other (Little's law): compare neither";
                Flag::new("I", format!("{meaning}: {reason}"))
            }
            mark::CONNECTIONS_LOST => Flag::new("L", format!("connections were lost: {reason}")),
            other => Flag::new(other, reason.as_str()),
        })
        .collect()
}

/// The symbols of a row.
#[must_use]
pub fn symbols(row: &Row<'_>) -> String {
    let mut symbols: Vec<String> = flags(row).into_iter().map(|flag| flag.symbol).collect();
    symbols.dedup();
    symbols.join(" ")
}

/// A line for each mark and meaning, with the rows that it holds for.
#[must_use]
pub fn explanations(rows: &[Row<'_>]) -> Vec<String> {
    let mut holders: BTreeMap<Flag, Vec<&str>> = BTreeMap::new();
    for row in rows {
        for flag in flags(row) {
            holders.entry(flag).or_default().push(&row.subject.name);
        }
    }
    holders
        .into_iter()
        .map(|(Flag { symbol, meaning }, names)| {
            let names = if names.len() == rows.len() && names.len() > 1 {
                "all rows".to_owned()
            } else {
                names.join(", ")
            };
            format!("{symbol} ({names}): {meaning}")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use crate::section::Subject;

    fn row<'a>(subject: &'a Subject, trial: &'a TrialRecord, phase: Phase) -> Row<'a> {
        Row {
            load: &trial.load,
            subject,
            phase,
            yardstick: None,
        }
    }

    fn symbols_of(trials: &[TrialRecord], phase: Phase) -> String {
        let subject = Subject::new("axum", trials.to_vec(), Vec::new());
        symbols(&row(&subject, &trials[0], phase))
    }

    /// The client's one CPU fully used, the server's half.
    fn bound(phase: Phase) -> TrialRecord {
        let mut trial = example::trial("axum", 1);
        for (name, value) in [
            (metric::ELAPSED, 1_000_000_000),
            (metric::CLIENT_CPU, 1_000_000_000),
            (metric::CLIENT_WINDOW, 1_000_000_000),
            (metric::CLIENT_CPUS, 1),
            (metric::SERVER_CPU, 500_000_000),
            (metric::SERVER_WINDOW, 1_000_000_000),
            (metric::SERVER_CPUS, 1),
        ] {
            trial.metrics.insert(phase.metric(name), value);
        }
        trial
    }

    #[test]
    fn client_bound_is_judged_for_each_phase_by_itself() {
        assert_eq!(symbols_of(&[bound(Phase::Echo)], Phase::Echo), "C");
        assert_eq!(symbols_of(&[bound(Phase::Echo)], Phase::Connect), "");
        assert_eq!(symbols_of(&[bound(Phase::Connect)], Phase::Connect), "C");
    }

    #[test]
    fn a_recorded_client_bound_mark_is_not_believed() {
        let mut trial = example::trial("axum", 1);
        trial
            .marks
            .insert(mark::CLIENT_BOUND.into(), "echo only".into());
        assert_eq!(symbols_of(&[trial], Phase::Rate), "");
    }

    #[test]
    fn littles_law_is_about_the_echo_phase_alone() {
        let mut trial = example::trial("axum", 1);
        let reason = "5.0 in flight, where 9.0 to 10.0 should be";
        trial.marks.insert(mark::LITTLES_LAW.into(), reason.into());
        assert_eq!(symbols_of(&[trial.clone()], Phase::Echo), "I");
        assert_eq!(symbols_of(&[trial], Phase::Rate), "");
    }

    #[test]
    fn a_round_that_did_not_send_what_was_due_is_told_behind_the_medians() {
        let rounds = |unsent: [u64; 3]| -> Vec<TrialRecord> {
            let trial = |(round, unsent)| {
                let mut trial = example::trial("axum", round);
                for (name, n) in [(metric::PLANNED, 250_013), (metric::SHORTFALL, unsent)] {
                    trial.metrics.insert(Phase::Rate.metric(name), n);
                }
                trial
            };
            (1..).zip(unsent).map(trial).collect()
        };
        let stalled = rounds([0, 171_079, 100]);
        assert_eq!(symbols_of(&stalled, Phase::Rate), "D");
        assert_eq!(symbols_of(&stalled, Phase::Echo), "");
        assert_eq!(symbols_of(&rounds([0, 2500, 100]), Phase::Rate), "");
        let lines = |trials: Vec<TrialRecord>| {
            let subject = Subject::new("axum", trials.clone(), Vec::new());
            explanations(&[row(&subject, &trials[0], Phase::Rate)])
        };
        let says = "D (axum): not the load that was asked:";
        let one = format!("{says} 1 of 3 rounds sent 31.6 % of what was due");
        assert_eq!(lines(stalled), [one]);
        let two = format!("{says} 2 of 3 rounds sent 31.6 to 90.0 % of what was due");
        assert_eq!(lines(rounds([25_000, 171_079, 100])), [two]);
    }

    #[test]
    fn lost_connections_are_marked_and_explained_by_the_record() {
        let mut trial = example::trial("axum", 1);
        let reason = "connect: 50 of 1000";
        trial
            .marks
            .insert(mark::CONNECTIONS_LOST.into(), reason.into());
        assert_eq!(symbols_of(&[trial.clone()], Phase::Echo), "L");
        let subject = Subject::new("axum", vec![trial.clone()], Vec::new());
        assert_eq!(
            explanations(&[row(&subject, &trial, Phase::Echo)]),
            ["L (axum): connections were lost: connect: 50 of 1000"]
        );
    }

    #[test]
    fn what_cannot_be_judged_says_so() {
        let mut trial = example::trial("axum", 1);
        let name = Phase::Echo.metric(metric::SERVER_CPU);
        trial.metrics.remove(&name);
        assert_eq!(symbols_of(&[trial], Phase::Echo), "?");
    }

    #[test]
    fn a_phase_that_did_not_run_is_not_judged() {
        assert_eq!(
            symbols_of(&[example::empty("axum", 1)], Phase::Echo),
            "",
            "no figures, no verdict"
        );
    }

    #[test]
    fn equal_marks_share_a_line_that_names_their_rows() {
        let mut one = bound(Phase::Echo);
        let reason = "CPU 0 for both";
        one.marks.insert(mark::SHARED_CPUS.into(), reason.into());
        let mut two = example::trial("axum", 1);
        two.marks.insert(mark::SHARED_CPUS.into(), reason.into());
        two.marks
            .insert("turbo".into(), "the clock was not fixed".into());
        let subjects = [("a", &one), ("b", &two)]
            .map(|(name, trial)| Subject::new(name, vec![trial.clone()], Vec::new()));
        let rows = [
            row(&subjects[0], &one, Phase::Echo),
            row(&subjects[1], &two, Phase::Echo),
        ];
        let lines = explanations(&rows);
        assert!(
            lines[0].starts_with("C (a): client-bound: the client's CPUs were at least 95 % busy")
        );
        assert!(lines[0].ends_with("(1 of 1 round)"));
        assert_eq!(
            lines[1],
            "S (all rows): server and client shared CPUs: CPU 0 for both"
        );
        assert_eq!(lines[2], "turbo (b): the clock was not fixed");
        assert_eq!(symbols(&rows[1]), "S turbo");
    }
}
