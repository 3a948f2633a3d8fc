//! What stands beside the figures: under a table the marks and the causes of
//! failures, above all of them how rounds were put together and who is missing.

use crate::differences;
use crate::marks;
use crate::row::Row;
use crate::section::Section;
use crate::steady;
use std::collections::BTreeMap;
use wsbench_schema::{Phase, Suite, metric};

/// How rounds become one row, if there are several.
const ROUNDS: &str = "over rounds: counts (Total, Success, Failed, Retried, Not sent, Late, Shortfall, Packet, Bytes) \
and time (Used, Duration) are sums; TPS, EER, averages and costs are medians; latencies are read \
from the merged histograms; Min and Max are the lowest and highest of all rounds";

/// The same where bytes are counted.
const ROUNDS_OF_BYTES: &str = "over rounds: counts (Round trips, Failed, Dial failures) are sums; Transferred is of the round that came least \
far, Longest stall the longest of all; latencies are read from the merged histograms; every other figure is a median, with the lowest \
and the highest of the rounds beside it where that is shown";

/// The lines under a table, those that matter most first.
#[must_use]
pub fn under(rows: &[Row<'_>]) -> Vec<String> {
    let mut notes = marks::explanations(rows);
    notes.extend(too_short(rows));
    notes.extend(rows.iter().flat_map(losses));
    notes
}

/// Of whom it cannot be said whether they ran at one speed.
fn too_short(rows: &[Row<'_>]) -> Option<String> {
    let short: Vec<&str> = rows
        .iter()
        .filter(|row| steady::is_too_short(row))
        .map(|row| row.subject.name.as_str())
        .collect();
    let whose = match short.len() {
        0 => return None,
        count if count == rows.len() => "every row".to_owned(),
        _ => short.join(", "),
    };
    Some(format!(
        "too short to tell whether the speed was steady: {whose}"
    ))
}

/// The same, and what went wrong when connections were opened, where no table of its
/// own tells that.
#[must_use]
pub fn with_dials(rows: &[Row<'_>]) -> Vec<String> {
    let mut notes = under(rows);
    notes.extend(rows.iter().flat_map(|row| {
        let phase = Phase::Connect;
        losses(&Row { phase, ..*row }).map(|told| format!("dials: {told}"))
    }));
    notes
}

/// What holds for all tables of a section.
#[must_use]
pub fn of_section(section: &Section) -> Vec<String> {
    let mut notes = Vec::new();
    if section.subjects.iter().any(|s| s.completed.len() > 1) {
        let rounds = match section.suite {
            Suite::Websocket => ROUNDS,
            Suite::Relay | Suite::Transfer => ROUNDS_OF_BYTES,
        };
        notes.push(rounds.to_owned());
    }
    notes.extend(differences::too_few(section));
    if !section.waiting.is_empty() {
        notes.push(format!("not measured: {}", section.waiting.join(", ")));
    }
    notes
}

/// What went wrong in the rounds that count.
pub fn losses(row: &Row<'_>) -> impl Iterator<Item = String> + use<> {
    let told = [
        failures(row),
        retries(row),
        listen_queue(row),
        lost_connections(row),
    ];
    told.into_iter().flatten()
}

/// The metrics `<before><cause>_count` of a phase over all rounds, largest first.
pub(crate) fn causes(row: &Row<'_>, before: &str) -> Vec<(String, u64)> {
    let mut causes: BTreeMap<&str, u64> = BTreeMap::new();
    let prefix = row.phase.metric(before);
    for trial in &row.subject.completed {
        for (name, count) in &trial.metrics {
            let cause = name
                .strip_prefix(&prefix)
                .and_then(|rest| rest.strip_suffix("_count"));
            if let Some(cause) = cause {
                let sum = causes.entry(cause).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
    }
    let mut causes: Vec<(String, u64)> = causes
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(cause, count)| (cause.replace('_', " "), count))
        .collect();
    causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    causes
}

fn counted(row: &Row<'_>, name: &str) -> u64 {
    let trials = &row.subject.completed;
    trials
        .iter()
        .filter_map(|trial| trial.metric(row.phase, name))
        .fold(0, u64::saturating_add)
}

fn list(causes: &[(String, u64)]) -> String {
    if causes.is_empty() {
        return "cause not recorded".to_owned();
    }
    let texts: Vec<String> = causes
        .iter()
        .map(|(cause, count)| format!("{cause} {count}"))
        .collect();
    texts.join(", ")
}

fn failures(row: &Row<'_>) -> Option<String> {
    let failed = counted(row, metric::FAILED);
    let causes = list(&causes(row, "failed_"));
    let name = &row.subject.name;
    (failed > 0).then(|| format!("{name}: {failed} failed ({causes})."))
}

fn retries(row: &Row<'_>) -> Option<String> {
    let retried = counted(row, metric::RETRIED);
    let causes = list(&causes(row, "retried_"));
    let name = &row.subject.name;
    (retried > 0).then(|| format!("{name}: {retried} attempts repeated ({causes})."))
}

/// What the kernel did to dials, which neither side sees but in the latencies.
fn listen_queue(row: &Row<'_>) -> Option<String> {
    let overflows = counted(row, metric::LISTEN_OVERFLOWS);
    let others = counted(row, metric::LISTEN_DROPS).saturating_sub(overflows);
    let name = &row.subject.name;
    let times = |count: u64| match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    };
    let what = match (overflows, others) {
        (0, 0) => return None,
        (0, others) => format!("the kernel dropped a connection request {}", times(others)),
        (overflows, 0) => format!("the listen queue overflowed {}", times(overflows)),
        (overflows, others) => format!(
            "the listen queue overflowed {}, and the kernel dropped a connection request {} for another reason",
            times(overflows),
            times(others)
        ),
    };
    Some(format!(
        "{name}: {what}: dials were retried by the kernel after 1 s and 3 s."
    ))
}

fn lost_connections(row: &Row<'_>) -> Option<String> {
    let lost = counted(row, metric::CONNECTIONS_LOST);
    let name = &row.subject.name;
    let when = match row.phase {
        Phase::Connect => "after they were established",
        Phase::Warmup | Phase::Echo | Phase::Rate | Phase::Bulk => "on the way",
        Phase::Release => "while others were closed",
    };
    let causes = list(&causes(row, "connections_lost_"));
    (lost > 0).then(|| format!("{name}: {lost} connections lost {when} ({causes})."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use crate::section::{last_attempts, sections};
    use wsbench_schema::TrialRecord;

    fn notes(subjects: &[&str], records: &[TrialRecord], phase: Phase) -> Vec<String> {
        let plan = example::plan(subjects, 3);
        let trials = last_attempts(&plan, records).unwrap();
        let section = sections(&plan, &trials).remove(0);
        let rows = Row::all(&section, phase, |_| None);
        let mut notes = under(&rows);
        notes.extend(of_section(&section));
        notes
    }

    fn with(mut trial: TrialRecord, phase: Phase, figures: &[(&str, u64)]) -> TrialRecord {
        for (name, value) in figures {
            trial.metrics.insert(phase.metric(name), *value);
        }
        trial
    }

    #[test]
    fn a_clean_row_needs_no_note() {
        let trial = example::trial("axum", 1);
        assert_eq!(notes(&["axum"], &[trial], Phase::Echo), [""; 0]);
    }

    #[test]
    fn failures_are_told_by_cause_over_all_rounds() {
        let one = [
            ("failed_count", 5),
            ("failed_lost_count", 1),
            ("failed_wrong_payload_count", 4),
        ];
        let two = [
            ("failed_count", 4),
            ("failed_lost_count", 4),
            ("connections_lost_count", 2),
            ("connections_lost_bad_frame_count", 2),
        ];
        let records = [
            with(example::trial("axum", 1), Phase::Echo, &one),
            with(example::trial("axum", 2), Phase::Echo, &two),
        ];
        let notes = notes(&["axum"], &records, Phase::Echo);
        assert_eq!(notes[0], "axum: 9 failed (lost 5, wrong payload 4).");
        assert_eq!(
            notes[1],
            "axum: 2 connections lost on the way (bad frame 2)."
        );
        assert_eq!(notes[2..], [ROUNDS]);
    }

    #[test]
    fn connections_lost_after_the_dial_are_told() {
        let figures = [
            ("connections_lost_count", 50),
            ("connections_lost_reset_count", 9),
            ("connections_lost_closed_count", 41),
        ];
        let trial = with(example::trial("axum", 1), Phase::Connect, &figures);
        let told = notes(&["axum"], &[trial], Phase::Connect);
        assert_eq!(
            told,
            ["axum: 50 connections lost after they were established (closed 41, reset 9)."]
        );
    }

    #[test]
    fn a_failure_in_another_phase_is_not_told_here() {
        let figures = [("failed_count", 5)];
        let trial = with(example::trial("axum", 1), Phase::Echo, &figures);
        let records = [trial];
        assert_eq!(notes(&["axum"], &records, Phase::Rate), [""; 0]);
        let told = notes(&["axum"], &records, Phase::Echo);
        assert_eq!(told, ["axum: 5 failed (cause not recorded)."]);
    }

    #[test]
    fn a_failed_round_and_a_missing_subject_are_told() {
        let records = [
            example::trial("axum", 1),
            example::failed("axum", 2, "echo", "the server exited with status 1"),
        ];
        let notes = notes(&["axum", "floor"], &records, Phase::Echo);
        assert_eq!(
            notes,
            [
                "F (axum): 1 of 2 rounds failed and is in no figure (echo: the server exited with status 1)",
                "not measured: floor",
            ]
        );
    }

    #[test]
    fn an_overflowing_listen_queue_is_told_where_dials_are() {
        let tell = |overflows, drops, phase| {
            let figures = [
                ("listen_overflows_count", overflows),
                ("listen_drops_count", drops),
            ];
            let trial = with(example::trial("axum", 1), Phase::Connect, &figures);
            notes(&["axum"], &[trial], phase).join(" ")
        };
        assert_eq!(
            tell(12, 12, Phase::Connect),
            "axum: the listen queue overflowed 12 times: dials were retried by the kernel after 1 s and 3 s."
        );
        assert!(tell(1, 3, Phase::Connect).contains("overflowed once, and the kernel dropped"));
        assert!(
            tell(0, 1, Phase::Connect)
                .starts_with("axum: the kernel dropped a connection request once")
        );
        assert_eq!(tell(0, 0, Phase::Connect), "");
        assert_eq!(tell(5, 5, Phase::Echo), "");
    }

    #[test]
    fn repeated_dials_are_told_by_cause() {
        let figures = [("retried_count", 3), ("retried_timed_out_count", 3)];
        let trial = with(example::trial("axum", 1), Phase::Connect, &figures);
        let told = notes(&["axum"], &[trial], Phase::Connect);
        assert_eq!(told, ["axum: 3 attempts repeated (timed out 3)."]);
    }
}
