//! Which subjects differ: every two of them under the same load, in every figure
//! that is compared, decided together.
//!
//! What is compared: the server's CPU time a message, since it survives a noisy
//! machine, and TPS, since the tables are sorted by it. Not latency: in a closed
//! loop it follows from TPS, and to ask the same thing twice only costs power. Of bulk
//! transfers likewise: CPU time a GiB, and throughput.

use crate::compare::{self, Answer, Direction, LEVEL, Question, Verdict, ratio};
use crate::row::Cell;
use crate::section::{Section, Subject};
use crate::stats::{self, Stat};
use crate::table::{Grid, Line};
use crate::units::Unit;
use crate::{tables, tcp};
use std::cmp::Ordering;
use wsbench_schema::Phase;

/// A figure by which subjects are compared.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// As in the tables.
    pub name: &'static str,
    /// Of which phase.
    pub phase: Phase,
    /// Whether a lower value is the better one.
    pub less_is_better: bool,
    stat: Stat,
}

/// All of them; those of a phase that the load does not have are left out.
pub const MEASURES: [Measure; 5] = [
    Measure {
        name: "Server CPU/msg",
        phase: Phase::Echo,
        less_is_better: true,
        stat: stats::server_cpu_per_message,
    },
    Measure {
        name: "TPS",
        phase: Phase::Echo,
        less_is_better: false,
        stat: stats::tps,
    },
    Measure {
        name: "Server CPU/msg, open loop",
        phase: Phase::Rate,
        less_is_better: true,
        stat: stats::server_cpu_per_message,
    },
    Measure {
        name: "CPU/GiB",
        phase: Phase::Bulk,
        less_is_better: true,
        stat: tcp::stats::cpu_per_gib,
    },
    Measure {
        name: "Throughput",
        phase: Phase::Bulk,
        less_is_better: false,
        stat: tcp::stats::throughput,
    },
];

/// Two subjects in one figure.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Under which load; see `Load::hash`.
    pub load_hash: String,
    /// In what.
    pub measure: Measure,
    /// Of whom something is said: the one that comes first in this figure.
    pub subject: String,
    /// Compared with whom.
    pub to: String,
    /// A value a round, of either.
    pub rounds: Question,
    /// What is said.
    pub answer: Answer,
    /// Whether no other subject lies between the two.
    pub is_next: bool,
    /// Of the ratio, if no other lies between them (see [`ratio::interval`]): to
    /// compute it for all would take longer than everything else in a report.
    pub interval: Option<(f64, f64)>,
}

impl Difference {
    /// `better`, `worse`, `no difference shown` or `too few rounds (5 needed)`.
    #[must_use]
    pub fn verdict(&self) -> String {
        match self.answer.verdict {
            Verdict::Different(direction) => match self.is_better(direction) {
                true => "better".into(),
                false => "worse".into(),
            },
            Verdict::NoDifference => "no difference shown".into(),
            Verdict::TooFewRounds { needed } => format!("too few rounds ({needed} needed)"),
        }
    }

    fn is_better(&self, direction: Direction) -> bool {
        (direction == Direction::Less) == self.measure.less_is_better
    }
}

/// Two subjects about which a question is asked.
struct Pair<'a> {
    measure: Measure,
    subject: &'a Subject,
    to: &'a Subject,
    is_next: bool,
}

/// Every pair of subjects that have figures, in every measure.
#[must_use]
pub fn between(subjects: &[Subject], load_hash: &str) -> Vec<Difference> {
    let (mut pairs, mut questions) = (Vec::new(), Vec::new());
    for measure in MEASURES {
        let ranked = ranked(subjects, measure);
        for (place, (subject, of)) in ranked.iter().enumerate() {
            for (distance, (other, to)) in ranked[place + 1..].iter().enumerate() {
                pairs.push(Pair {
                    measure,
                    subject,
                    to: other,
                    is_next: distance == 0,
                });
                questions.push(Question {
                    of: of.clone(),
                    to: to.clone(),
                });
            }
        }
    }
    let answers = compare::decide(&questions);
    let asked = pairs.into_iter().zip(questions);
    asked
        .zip(answers)
        .map(|((pair, rounds), answer)| {
            let interval = || ratio::interval(&rounds.of, &rounds.to);
            Difference {
                load_hash: load_hash.to_owned(),
                measure: pair.measure,
                subject: pair.subject.name.clone(),
                to: pair.to.name.clone(),
                interval: pair.is_next.then(interval).flatten(),
                rounds,
                answer,
                is_next: pair.is_next,
            }
        })
        .collect()
}

/// The best first; with the values of each round. Who has none is left out, and so is
/// the client beside the origin, of whom nothing is asked.
fn ranked(subjects: &[Subject], measure: Measure) -> Vec<(&Subject, Vec<f64>)> {
    let values = |subject: &Subject| -> Vec<f64> {
        let trials = subject.completed.iter();
        let values = trials.filter_map(|trial| (measure.stat)(trial, measure.phase));
        values.filter(|value| value.is_finite()).collect()
    };
    let mut ranked: Vec<_> = subjects
        .iter()
        .filter(|subject| !subject.is_direct)
        .map(|subject| (subject, values(subject)))
        .filter(|(_, values)| !values.is_empty())
        .collect();
    let middle = |values: &[f64]| stats::median(values.iter().copied());
    ranked.sort_by(|(a, of), (b, to)| {
        let order = middle(of)
            .partial_cmp(&middle(to))
            .unwrap_or(Ordering::Equal);
        let order = match measure.less_is_better {
            true => order,
            false => order.reverse(),
        };
        order.then_with(|| a.name.cmp(&b.name))
    });
    ranked
}

/// What is shown under the tables of a section: each subject against the next in
/// order. `None` if nothing can be shown; [`too_few`] may say why.
#[must_use]
pub fn grid(section: &Section) -> Option<Grid> {
    let differences = &section.differences;
    if differences.iter().all(is_too_few) {
        return None;
    }
    Some(Grid {
        file: "differences".to_owned(),
        title: "Differences".to_owned(),
        names: 1,
        header: [
            tables::subject_is_a(section.suite),
            "Figure",
            "Against",
            "Ratio",
            "95 % interval",
            "Verdict",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: differences.iter().filter(|d| d.is_next).map(line).collect(),
        notes: vec![format!(
            "Every two subjects are compared in every figure by the rank sum test over rounds, {} comparisons in all, \
             and decided together at {} % (Benjamini-Hochberg). Each subject is shown against the next. \
             That no difference is shown does not prove that there is none.",
            differences.len(),
            LEVEL * 100.0,
        )],
    })
}

/// Why a run of several rounds says nothing about differences.
#[must_use]
pub fn too_few(section: &Section) -> Option<String> {
    let differences = &section.differences;
    let rounds = section.subjects.iter().map(|s| s.completed.len()).max()?;
    if rounds < 2 || differences.is_empty() || !differences.iter().all(is_too_few) {
        return None;
    }
    let needed = compare::rounds_needed(differences.len());
    let among = match differences.len() {
        1 => String::new(),
        count => format!(" among {count} comparisons"),
    };
    Some(format!(
        "too few rounds to say which differences are real: {rounds} cannot show one{among}, {needed} can (--rounds {needed})"
    ))
}

fn is_too_few(difference: &Difference) -> bool {
    matches!(difference.answer.verdict, Verdict::TooFewRounds { .. })
}

fn line(difference: &Difference) -> Line {
    let cells = vec![
        Cell::Text(difference.subject.clone()),
        Cell::Text(difference.measure.name.to_owned()),
        Cell::Text(difference.to.clone()),
        Cell::of(difference.answer.ratio, Unit::Ratio),
        difference.interval.map_or(Cell::Missing, |(low, high)| {
            Cell::Span(low, high, Unit::Ratio)
        }),
        Cell::Text(difference.verdict()),
    ];
    Line::of(&difference.subject, cells)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use crate::section::{last_attempts, sections};
    use wsbench_schema::TrialRecord;

    fn section(records: &[TrialRecord]) -> Section {
        let plan = example::plan(&[], 3);
        let trials = last_attempts(&plan, records).unwrap();
        sections(&plan, &trials).remove(0)
    }

    /// Rounds in which everything took these percentages of the usual time.
    fn rounds(name: &str, paces: &[u64]) -> Vec<TrialRecord> {
        let paces = (1..).zip(paces);
        paces
            .map(|(round, pace)| example::paced(name, round, *pace))
            .collect()
    }

    #[test]
    fn whoever_is_slower_in_every_round_is_told_to_be_once_there_are_enough() {
        let slow = [110, 112, 111, 113, 114];
        let quick = [100, 102, 101, 99, 103];
        for (count, told) in [(3, false), (5, true)] {
            let records = [
                rounds("slow", &slow[..count]),
                rounds("quick", &quick[..count]),
            ]
            .concat();
            let section = section(&records);
            // CPU time in both loops, and TPS.
            assert_eq!(section.differences.len(), 3);
            for difference in &section.differences {
                assert_eq!(
                    (difference.subject.as_str(), difference.to.as_str()),
                    ("quick", "slow")
                );
                let expected = match told {
                    true => "better",
                    false => "too few rounds (5 needed)",
                };
                assert_eq!(difference.verdict(), expected);
            }
            assert_eq!(grid(&section).is_some(), told);
            assert_eq!(too_few(&section).is_none(), told);
        }
    }

    #[test]
    fn a_pair_is_shown_against_the_next_and_decided_with_all() {
        let records = [
            rounds("b", &[100, 101, 102, 103, 104, 105, 106]),
            rounds("c", &[120, 121, 122, 123, 124, 125, 126]),
            rounds("a", &[100, 101, 102, 103, 104, 105, 106]),
        ]
        .concat();
        let section = section(&records);
        assert_eq!(section.differences.len(), 9);
        let grid = grid(&section).unwrap();
        let rows: Vec<String> = grid
            .rows
            .iter()
            .map(|row| {
                row.cells
                    .iter()
                    .map(crate::text::cell)
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect();
        assert_eq!(
            rows[0],
            "a Server CPU/msg b 1.00 0.97-1.03 no difference shown"
        );
        assert_eq!(rows[1], "b Server CPU/msg c 0.84 0.81-0.86 better");
        assert!(rows[3].starts_with("b TPS c 1.19 "), "{}", rows[3]);
        assert_eq!(rows.len(), 6);
        assert!(grid.notes[0].contains("9 comparisons in all"));
    }

    #[test]
    fn one_round_or_one_subject_has_nothing_to_tell() {
        for records in [
            [rounds("a", &[100]), rounds("b", &[100])].concat(),
            rounds("a", &[100, 101, 102, 103]),
        ] {
            let section = section(&records);
            assert!(grid(&section).is_none() && too_few(&section).is_none());
        }
    }

    #[test]
    fn a_subject_without_figures_is_no_comparison() {
        let failed = example::failed("broken", 1, "start", "no listener");
        let records = [
            rounds("a", &[100, 101, 102, 103]),
            vec![failed, example::empty("mute", 1)],
        ]
        .concat();
        assert!(section(&records).differences.is_empty());
    }
}
