//! Who is best in one quantity under each load, by the rank sum test over rounds, and over
//! several loads: geometric means of ratios to a baseline (Fleming and
//! Wallace, "How not to lie with statistics", Communications of the ACM 29, 1986).

use crate::compare::{self, Question, Verdict};
use crate::differences::{Findings, MEASURES};
use crate::machine::describe;
use crate::quantity::Quantity;
use crate::row::Cell;
use crate::section::{self, Section};
use crate::stats::median;
use crate::table::{Grid, Line};
use crate::units::{Unit, count};
use crate::{ReportError, tables};
use wsbench_schema::{Load, Outcome, RunPlan, TrialRecord};

/// What a mean over loads hides.
const CAUTION: &str = "A geometric mean of the ratios to the baseline over all loads that have both: it says who is ahead on the whole and \
hides under which load. Every load counts the same, whether anybody has it in production or not, and no interval is given, since loads \
are no sample of anything. Whoever lacks a load is left out.";

/// The mean of the ratios of a subject, and over how many loads.
struct Mean {
    subject: String,
    ratio: f64,
}

/// A table for all loads together; `None` if there are not at least two that have the
/// same baseline.
#[must_use]
pub fn summary(sections: &[Section]) -> Option<Grid> {
    let first = sections.first()?;
    let base = first.baseline.as_deref()?;
    let alike: Vec<&Section> = sections
        .iter()
        .filter(|section| section.baseline.as_deref() == Some(base))
        .collect();
    if alike.len() < 2 {
        return None;
    }
    let mut rows = Vec::new();
    for measure in MEASURES {
        let findings: Vec<&Findings> = alike.iter().map(|section| &section.findings).collect();
        let loads: Vec<&Findings> = findings
            .into_iter()
            .filter(|found| has(found, measure))
            .collect();
        if loads.len() < 2 {
            continue;
        }
        let means = means(&loads, measure, base);
        rows.extend(means.iter().map(|mean| {
            Line::of(
                &mean.subject,
                vec![
                    Cell::Text(mean.subject.clone()),
                    Cell::Text(measure.name.to_owned()),
                    Cell::Number(mean.ratio, Unit::Ratio),
                    Cell::Number(count(loads.len()), Unit::Count),
                ],
            )
        }));
    }
    (!rows.is_empty()).then(|| Grid {
        file: "summary".to_owned(),
        title: "All loads together".to_owned(),
        names: 2,
        header: [
            tables::subject_is_a(first.suite),
            "Figure",
            &format!("Geometric mean of the ratio to {base}"),
            "Loads",
        ]
        .map(str::to_owned)
        .into(),
        rows,
        notes: vec![CAUTION.to_owned()],
    })
}

fn has(found: &Findings, measure: Quantity) -> bool {
    let mut standings = found.standings.iter();
    standings.any(|standing| standing.measure.name == measure.name)
}

/// The best first.
fn means(loads: &[&Findings], measure: Quantity, base: &str) -> Vec<Mean> {
    let ratio = |found: &Findings, subject: &str| -> Option<f64> {
        let mut standings = found.standings.iter();
        let standing = standings.find(|standing| {
            standing.measure.name == measure.name && standing.subject == subject
        })?;
        match subject == base {
            true => Some(1.0),
            false => standing.to_baseline.as_ref()?.ratio,
        }
    };
    let names = loads.first().into_iter().flat_map(|found| &found.standings);
    let mut names: Vec<&str> = names
        .filter(|standing| standing.measure.name == measure.name)
        .map(|standing| standing.subject.as_str())
        .collect();
    names.sort_unstable();
    let mut means: Vec<Mean> = names
        .into_iter()
        .filter_map(|subject| {
            let ratios = loads.iter().map(|found| ratio(found, subject));
            let ratios: Vec<f64> = ratios.collect::<Option<_>>()?;
            let ratio = geometric_mean(&ratios)?;
            Some(Mean {
                subject: subject.to_owned(),
                ratio,
            })
        })
        .collect();
    means.sort_by(|a, b| match measure.less_is_better {
        true => a.ratio.total_cmp(&b.ratio),
        false => b.ratio.total_cmp(&a.ratio),
    });
    means
}

/// `None` of nothing, or where a value is not above zero.
#[must_use]
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let is_fit = !values.is_empty() && values.iter().all(|value| *value > 0.0);
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    let mean = (sum / count(values.len())).exp();
    (is_fit && mean.is_finite()).then_some(mean)
}

/// The subjects of a run by one quantity, a table a load, the best first.
///
/// # Errors
/// If a record belongs to another run.
pub fn by(
    plan: &RunPlan,
    records: &[TrialRecord],
    quantity: Quantity,
) -> Result<Vec<Grid>, ReportError> {
    let trials = section::last_attempts(plan, records)?;
    let mut loads: Vec<(&str, &Load)> = Vec::new();
    for trial in &trials {
        if loads.iter().all(|(hash, _)| *hash != trial.load_hash) {
            loads.push((&trial.load_hash, &trial.load));
        }
    }
    let place = |hash: &str| plan.loads.iter().position(|load| load.hash() == hash);
    loads.sort_by_key(|(hash, _)| place(hash).unwrap_or(usize::MAX));
    let grids = loads.into_iter().filter_map(|(hash, load)| {
        let of_load: Vec<&TrialRecord> = trials
            .iter()
            .copied()
            .filter(|trial| trial.load_hash == hash)
            .collect();
        ranking(&of_load, load, hash, quantity)
    });
    Ok(grids.collect())
}

/// One subject's rounds.
struct Rounds<'a> {
    subject: &'a str,
    is_yardstick: bool,
    values: Vec<f64>,
    median: f64,
}

impl<'a> Rounds<'a> {
    /// `None` without a figure.
    fn of(trials: &[&TrialRecord], subject: &'a str, quantity: Quantity) -> Option<Self> {
        let own = || trials.iter().filter(|trial| trial.subject.name == subject);
        let completed = own().filter(|trial| trial.outcome == Outcome::Completed);
        let values: Vec<f64> = completed.filter_map(|trial| quantity.of(trial)).collect();
        Some(Self {
            subject,
            is_yardstick: subject == section::FLOOR || own().any(|of| section::is_direct(of)),
            median: median(values.iter().copied())?,
            values,
        })
    }
}

fn ranking(trials: &[&TrialRecord], load: &Load, hash: &str, quantity: Quantity) -> Option<Grid> {
    let mut names: Vec<&str> = trials.iter().map(|t| t.subject.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut all: Vec<Rounds<'_>> = names
        .iter()
        .filter_map(|subject| Rounds::of(trials, subject, quantity))
        .collect();
    all.sort_by(|a, b| match quantity.less_is_better {
        true => a.median.total_cmp(&b.median),
        false => b.median.total_cmp(&a.median),
    });
    let first = all.first()?.median;
    let rivals: Vec<&Rounds<'_>> = all.iter().filter(|of| !of.is_yardstick).collect();
    let mut questions = Vec::new();
    let mut pairs = Vec::new();
    for (place, one) in rivals.iter().enumerate() {
        for other in &rivals[place + 1..] {
            pairs.push((one.subject, other.subject));
            questions.push(Question {
                of: one.values.clone(),
                to: other.values.clone(),
            });
        }
    }
    let answers = compare::decide(&questions);
    // Whoever can be told apart from nobody is not as good as the best for that.
    let is_told = |name: &str| {
        let mut of = pairs.iter().zip(&answers);
        of.any(|((one, other), answer)| {
            let is_few = matches!(answer.verdict, Verdict::TooFewRounds { .. });
            (*one == name || *other == name) && !is_few
        })
    };
    let too_few: Vec<&str> = rivals
        .iter()
        .map(|of| of.subject)
        .filter(|name| rivals.len() > 1 && !is_told(name))
        .collect();
    // The better one of every two of whom a difference is shown, and the other.
    let shown: Vec<(&str, &str)> = pairs
        .iter()
        .zip(&answers)
        .filter_map(|((one, other), answer)| {
            let is_better = answer.verdict.is_better(quantity.less_is_better)?;
            Some(if is_better {
                (*one, *other)
            } else {
                (*other, *one)
            })
        })
        .collect();
    let line = |of: &Rounds<'_>| {
        let better = shown
            .iter()
            .filter(|(_, worse)| *worse == of.subject)
            .count();
        let is_ranked = !of.is_yardstick && !too_few.contains(&of.subject);
        Line::of(
            of.subject,
            vec![
                Cell::Text(of.subject.to_owned()),
                Cell::of(is_ranked.then(|| count(1 + better)), Unit::Count),
                Cell::Number(of.median, quantity.unit),
                Cell::span_of(of.values.iter().copied(), quantity.unit),
                Cell::of(
                    Some(of.median / first).filter(|ratio| ratio.is_finite()),
                    Unit::Ratio,
                ),
                Cell::Number(count(of.values.len()), Unit::Count),
            ],
        )
    };
    Some(Grid {
        file: format!("rank-{}-{hash}", quantity.key),
        title: format!("{}: {}", quantity.name, describe(load).first()?),
        names: 1,
        header: [
            "Framework",
            "Rank",
            "Median",
            "Min-max",
            "To the first",
            "Rounds",
        ]
        .map(str::to_owned)
        .into(),
        rows: all.iter().map(line).collect(),
        notes: notes(&too_few, rivals.len(), trials, &names),
    })
}

/// How ranks are meant, who has none, and whose rounds failed.
fn notes(too_few: &[&str], rivals: usize, trials: &[&TrialRecord], names: &[&str]) -> Vec<String> {
    let mut notes = vec![
        "rank: one more than the number of those that are shown to be better (rank sum test over rounds, decided together at 5 %)"
            .to_owned(),
    ];
    match too_few.len() {
        0 => {}
        all if all == rivals => {
            notes = vec!["too few rounds to show any difference: nobody has a rank".to_owned()];
        }
        _ => notes.push(format!(
            "too few rounds to show any difference, and so no rank: {}",
            too_few.join(", ")
        )),
    }
    notes.extend(names.iter().filter_map(|name| {
        let of = trials.iter().filter(|trial| trial.subject.name == *name);
        let failed = of.clone().filter(|t| t.outcome != Outcome::Completed);
        let (failed, all) = (failed.count(), of.count());
        (failed > 0).then(|| format!("{name}: {failed} of {all} rounds failed"))
    }));
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::{last_attempts, sections};
    use crate::{example, text};
    use wsbench_schema::{RunPlan, TrialRecord};

    fn under(payload: u32, name: &str, pace: u64) -> TrialRecord {
        let mut trial = example::paced(name, 1, pace);
        trial.load.payload_bytes = payload;
        trial.load_hash = trial.load.hash();
        trial
    }

    fn table(trials: &[TrialRecord]) -> Option<Vec<String>> {
        let plan = RunPlan {
            loads: Vec::new(),
            ..example::plan(&["base", "a", "b"], 1)
        };
        let found = sections(&plan, &last_attempts(&plan, trials).unwrap());
        let rows = summary(&found)?.rows;
        let row = |row: &Line| {
            row.cells
                .iter()
                .map(text::cell)
                .collect::<Vec<_>>()
                .join(" ")
        };
        Some(rows.iter().map(row).collect())
    }

    #[test]
    fn who_is_twice_as_fast_once_and_half_as_fast_once_is_as_fast() {
        assert_eq!(geometric_mean(&[2.0, 0.5]), Some(1.0));
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
    }

    #[test]
    fn every_load_counts_the_same_and_whoever_lacks_one_is_left_out() {
        let trials = [
            under(8, "base", 100),
            under(64, "base", 100),
            under(8, "a", 200),
            under(64, "a", 50),
            under(8, "b", 100),
        ];
        let rows = table(&trials).unwrap();
        let cpu: Vec<&String> = rows
            .iter()
            .filter(|row| row.contains("Server CPU/msg "))
            .collect();
        assert_eq!(cpu.len(), 2, "{rows:?}");
        assert_eq!(cpu[0], "a Server CPU/msg 1.00 2");
        assert_eq!(cpu[1], "base Server CPU/msg 1.00 2");
    }

    #[test]
    fn those_who_cannot_be_told_apart_share_a_rank_and_the_yardstick_has_none() {
        let mut trials = Vec::new();
        for round in 1..=7 {
            for (name, pace) in [("floor", 50), ("a", 100), ("b", 100), ("c", 150)] {
                trials.push(example::paced(name, round, pace + u64::from(round)));
            }
        }
        let plan = example::plan(&["a", "b", "c", "floor"], 7);
        let quantity = Quantity::of_key("cpu").unwrap();
        let of = |trials: &[TrialRecord]| {
            let grids = by(&plan, trials, quantity).unwrap();
            assert_eq!(grids.len(), 1);
            let row = |row: &Line| {
                format!(
                    "{} {}",
                    text::cell(&row.cells[0]),
                    text::cell(&row.cells[1])
                )
            };
            grids[0].rows.iter().map(row).collect::<Vec<_>>()
        };
        assert_eq!(of(&trials), ["floor -", "a 1", "b 1", "c 3"]);
        assert_eq!(of(&trials[..8]), ["floor -", "a -", "b -", "c -"]);
        // One round is not the best for that nobody can be shown to be better.
        trials.push(example::paced("d", 1, 500));
        trials.push(example::failed("d", 2, "echo", "died"));
        assert_eq!(of(&trials), ["floor -", "a 1", "b 1", "c 3", "d -"]);
        let notes = &by(&plan, &trials, quantity).unwrap()[0].notes;
        assert_eq!(
            notes[1..],
            [
                "too few rounds to show any difference, and so no rank: d",
                "d: 1 of 2 rounds failed"
            ]
        );
    }

    #[test]
    fn one_load_is_no_summary() {
        assert_eq!(table(&[under(8, "base", 100), under(8, "a", 200)]), None);
        assert_eq!(table(&[]), None);
    }
}
