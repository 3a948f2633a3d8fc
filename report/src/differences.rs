//! Which subjects differ: every two of them under the same load, in every figure
//! that is compared, decided together.
//!
//! What is compared: the server's CPU time a message, since it survives a noisy
//! machine, and TPS, since the tables are sorted by it. Not latency: in a closed
//! loop it follows from TPS, and to ask the same thing twice only costs power. Of bulk
//! transfers likewise: CPU time a GiB, and throughput.

use crate::compare::ratio::{self, Resampled};
use crate::compare::{self, Answer, LEVEL, Question, Verdict};
use crate::quantity::{self, Quantity};
use crate::row::Cell;
use crate::section::{Section, Subject};
use crate::stats;
use crate::table::{Grid, Line};
use crate::tables;
use crate::units::Unit;
use std::cmp::Ordering;

/// What is compared; of a phase that the load does not have nobody has a figure.
pub const MEASURES: [Quantity; 5] = [
    quantity::CPU,
    quantity::TPS,
    quantity::CPU_RATE,
    quantity::CPU_GIB,
    quantity::THROUGHPUT,
];

/// Two subjects in one figure.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Under which load; see `Load::hash`.
    pub load_hash: String,
    /// In what.
    pub measure: Quantity,
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
    /// See [`Verdict::said`].
    #[must_use]
    pub fn verdict(&self) -> String {
        self.answer.verdict.said(self.measure.less_is_better)
    }

    /// Ratio and verdict of one of its two subjects compared with the other; `None` if it
    /// is about others.
    fn seen_from(&self, subject: &str, to: &str) -> Option<(Option<f64>, Verdict)> {
        let verdict = self.answer.verdict;
        if self.subject == subject && self.to == to {
            return Some((self.answer.ratio, verdict));
        }
        let is_turned = self.subject == to && self.to == subject;
        is_turned.then(|| {
            let ratio = ratio::of_medians(&self.rounds.to, &self.rounds.of);
            (ratio, verdict.turned())
        })
    }

    /// The better one of the two and the other, if a difference is shown.
    fn better_and_worse(&self) -> Option<(&str, &str)> {
        let is_better = self.answer.verdict.is_better(self.measure.less_is_better)?;
        Some(match is_better {
            true => (&self.subject, &self.to),
            false => (&self.to, &self.subject),
        })
    }
}

/// Where a subject stands in one figure.
#[derive(Clone, Debug)]
pub struct Standing {
    /// In what.
    pub measure: Quantity,
    /// Who.
    pub subject: String,
    /// One more than the number of those that are shown to be better. "No difference shown"
    /// is not transitive, so two of different ranks need not be shown to differ. `None` for
    /// a yardstick, which is none of those compared, and with too few rounds to show any.
    pub rank: Option<usize>,
    /// Over rounds.
    pub median: f64,
    /// Compared with the baseline, if it is another and was measured.
    pub to_baseline: Option<ToBaseline>,
}

/// A subject compared with the baseline.
#[derive(Clone, Debug)]
pub struct ToBaseline {
    /// Median / median of the baseline.
    pub ratio: Option<f64>,
    /// Of the ratio.
    pub interval: Option<(f64, f64)>,
    /// As of [`Difference::verdict`], seen from the subject.
    pub verdict: String,
}

/// What every two subjects were compared for, and what follows for each of them.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Every pair in every figure.
    pub differences: Vec<Difference>,
    /// Every subject in every figure, the best first.
    pub standings: Vec<Standing>,
}

/// Two subjects about which a question is asked.
struct Pair<'a> {
    measure: Quantity,
    subject: &'a Subject,
    to: &'a Subject,
    is_next: bool,
}

/// The subjects in a figure, the best first, with the values of each round.
struct Contest<'a> {
    measure: Quantity,
    ranked: Vec<(&'a Subject, Vec<f64>)>,
    /// In the same order.
    resampled: Vec<Resampled>,
}

impl<'a> Contest<'a> {
    fn of(subjects: &'a [Subject], measure: Quantity) -> Self {
        let ranked = ranked(subjects, measure);
        let samples = (0..).zip(&ranked);
        let resampled = samples.map(|(stream, (_, rounds))| Resampled::new(rounds, stream));
        Self {
            measure,
            resampled: resampled.collect(),
            ranked,
        }
    }

    /// Of the ratio of two of them.
    fn interval(&self, of: &str, to: &str) -> Option<(f64, f64)> {
        let sample = |name: &str| {
            let mut names = self.ranked.iter().map(|(subject, _)| subject.name.as_str());
            self.resampled.get(names.position(|of| of == name)?)
        };
        sample(of)?.interval(sample(to)?)
    }
}

/// Every pair of subjects that have figures, in every measure, and each of them compared
/// with the baseline.
#[must_use]
pub fn between(subjects: &[Subject], load_hash: &str, baseline: Option<&str>) -> Findings {
    let contests = MEASURES.map(|measure| Contest::of(subjects, measure));
    let (mut pairs, mut questions) = (Vec::new(), Vec::new());
    for Contest {
        measure, ranked, ..
    } in &contests
    {
        let measure = *measure;
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
    let differences: Vec<Difference> = asked
        .zip(answers)
        .map(|((pair, rounds), answer)| {
            let next = || {
                let contest = contests
                    .iter()
                    .find(|of| of.measure.name == pair.measure.name)?;
                contest.interval(&pair.subject.name, &pair.to.name)
            };
            Difference {
                load_hash: load_hash.to_owned(),
                measure: pair.measure,
                subject: pair.subject.name.clone(),
                to: pair.to.name.clone(),
                interval: pair.is_next.then(next).flatten(),
                rounds,
                answer,
                is_next: pair.is_next,
            }
        })
        .collect();
    let standings = contests
        .iter()
        .flat_map(|contest| standings(contest, &differences, baseline))
        .collect();
    Findings {
        differences,
        standings,
    }
}

fn standings(
    contest: &Contest<'_>,
    differences: &[Difference],
    baseline: Option<&str>,
) -> Vec<Standing> {
    let of_measure = differences
        .iter()
        .filter(|found| found.measure.name == contest.measure.name);
    let shown: Vec<(&str, &str)> = of_measure
        .clone()
        .filter_map(Difference::better_and_worse)
        .collect();
    let is_rival = |name: &str| {
        let mut rivals = contest
            .ranked
            .iter()
            .filter(|(rival, _)| !rival.is_yardstick());
        rivals.any(|(rival, _)| rival.name == name)
    };
    // Whoever can be told apart from nobody is not as good as the best for that.
    let has_too_few = |name: &str| {
        let mut own = of_measure
            .clone()
            .filter(|found| found.subject == name || found.to == name);
        own.all(is_too_few)
    };
    let standing = |(subject, rounds): &(&Subject, Vec<f64>)| {
        let name = subject.name.as_str();
        let better = shown
            .iter()
            .filter(|(better, worse)| *worse == name && is_rival(better));
        let is_ranked = !subject.is_yardstick() && !has_too_few(name);
        let rank = is_ranked.then(|| 1 + better.count());
        let to_baseline = baseline.and_then(|base| {
            let (ratio, verdict) = of_measure
                .clone()
                .find_map(|found| found.seen_from(name, base))?;
            Some(ToBaseline {
                ratio,
                interval: contest.interval(name, base),
                verdict: verdict.said(contest.measure.less_is_better),
            })
        });
        Standing {
            measure: contest.measure,
            subject: name.to_owned(),
            rank,
            median: stats::median(rounds.iter().copied()).unwrap_or(f64::NAN),
            to_baseline,
        }
    };
    contest.ranked.iter().map(standing).collect()
}

/// The best first; with the values of each round. Who has none is left out, and so is
/// the client beside the origin, of whom nothing is asked.
pub(crate) fn ranked(subjects: &[Subject], measure: Quantity) -> Vec<(&Subject, Vec<f64>)> {
    let values = |subject: &Subject| -> Vec<f64> {
        let trials = subject.completed.iter();
        trials.filter_map(|trial| measure.of(trial)).collect()
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

/// What is shown under the tables of a section: each subject's rank, against the next in
/// order and against the baseline. `None` if there is nothing to compare.
#[must_use]
pub fn grid(section: &Section) -> Option<Grid> {
    let Findings {
        differences,
        standings,
    } = &section.findings;
    let rounds = section.subjects.iter().map(|s| s.completed.len()).max()?;
    if differences.is_empty() || rounds < 2 {
        return None;
    }
    let next_of = |standing: &Standing| {
        let mut nexts = differences.iter().filter(|difference| difference.is_next);
        nexts.find(|next| {
            next.subject == standing.subject && next.measure.name == standing.measure.name
        })
    };
    let base = section.baseline.as_deref();
    let name = base.unwrap_or("the baseline");
    Some(Grid {
        file: "differences".to_owned(),
        title: "Differences".to_owned(),
        names: 2,
        header: [
            tables::subject_is_a(section.suite),
            "Figure",
            "Rank",
            "Median",
            "Next",
            "Next: ratio",
            "Next: 95 % interval",
            "Next: verdict",
            &format!("{name}: ratio"),
            &format!("{name}: 95 % interval"),
            &format!("{name}: verdict"),
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: standings
            .iter()
            .map(|standing| Line::of(&standing.subject, cells(standing, next_of(standing))))
            .collect(),
        notes: vec![
            format!(
                "Every two subjects are compared in every figure by the rank sum test over rounds, {} comparisons in all, \
                 and decided together at {} % (Benjamini-Hochberg). Ratios are of medians, with a bootstrap interval. \
                 ~ means that no difference is shown, which does not prove that there is none.",
                differences.len(),
                LEVEL * 100.0,
            ),
            "Rank: one more than the number of those that are shown to be better; so that those of whom no difference is shown share one, \
             unless somebody is better than one of them only. The yardstick has none, nor has anybody with too few rounds to show any."
                .to_owned(),
        ],
    })
}

/// Why a run of several rounds says nothing about differences.
#[must_use]
pub fn too_few(section: &Section) -> Option<String> {
    let differences = &section.findings.differences;
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

#[expect(clippy::cast_precision_loss, reason = "ranks are small")]
fn cells(standing: &Standing, next: Option<&Difference>) -> Vec<Cell> {
    let rank = standing.rank.map(|rank| rank as f64);
    let interval = |interval: Option<(f64, f64)>| {
        interval.map_or(Cell::Missing, |(low, high)| {
            Cell::Span(low, high, Unit::Ratio)
        })
    };
    let base = standing.to_baseline.as_ref();
    vec![
        Cell::Text(standing.subject.clone()),
        Cell::Text(standing.measure.name.to_owned()),
        Cell::of(rank, Unit::Count),
        Cell::Number(standing.median, standing.measure.unit),
        next.map_or(Cell::Missing, |next| Cell::Text(next.to.clone())),
        Cell::of(next.and_then(|next| next.answer.ratio), Unit::Ratio),
        interval(next.and_then(|next| next.interval)),
        next.map_or(Cell::Missing, |next| Cell::Text(next.verdict())),
        Cell::of(base.and_then(|base| base.ratio), Unit::Ratio),
        interval(base.and_then(|base| base.interval)),
        base.map_or(Cell::Missing, |base| Cell::Text(base.verdict.clone())),
    ]
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
            assert_eq!(section.findings.differences.len(), 3);
            for difference in &section.findings.differences {
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
            // Ratios and intervals are told however few rounds there are.
            assert!(grid(&section).is_some());
            let ranks = section.findings.standings.iter().map(|of| of.rank);
            let ranks: Vec<_> = ranks.flatten().collect();
            assert_eq!(ranks, if told { vec![1, 2, 1, 2, 1, 2] } else { vec![] });
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
        assert_eq!(section.findings.differences.len(), 9);
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
        // Of the two that are alike neither is ahead of the other, and both are of the third.
        assert_eq!(
            rows[..3],
            [
                "a Server CPU/msg 1 9.27us b 1.00 0.97-1.03 ~ - - -",
                "b Server CPU/msg 1 9.27us c 0.84 0.81-0.86 better 1.00 0.97-1.03 ~",
                "c Server CPU/msg 3 11.07us - - - - 1.19 1.16-1.23 worse",
            ]
        );
        assert_eq!(rows.len(), 9);
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
        assert!(section(&records).findings.differences.is_empty());
    }
}
