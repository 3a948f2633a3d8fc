//! One subject in one phase: what the columns of a table read from.
//!
//! Over rounds: what adds up (counts, bytes, time) is summed, what does not
//! (rates, quotients, averages) is the median, and a minimum or maximum is the
//! true one of all rounds. Failed rounds are in none of it.

use crate::latency::Latency;
use crate::section::{Section, Subject};
use crate::stats::{self, Stat};
use crate::units::Unit;
use wsbench_schema::{Load, Phase, metric};

/// What a table shows where row and column meet.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Not measured, or not supported by the samples.
    Missing,
    /// A name.
    Text(String),
    /// The subject has no figures at all.
    Failed {
        /// Where it ended.
        stage: String,
        /// What happened.
        reason: String,
    },
    /// A figure.
    Number(f64, Unit),
    /// The lowest and the highest of the rounds.
    Span(f64, f64, Unit),
    /// Before and after.
    Change(f64, f64, Unit),
    /// So much of so much.
    Part(f64, f64, Unit),
    /// A figure among others of its line, and its place among them.
    Placed(f64, Unit, Place),
}

/// A figure as other programs read it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figure {
    /// What it is of a cell with two: `before` and `after`, `part` and `whole`.
    pub part: &'static str,
    /// The figure; none of a range, and none where nothing was measured.
    pub value: Option<f64>,
    /// The lower end of a range.
    pub low: Option<f64>,
    /// The upper end of a range.
    pub high: Option<f64>,
    /// None of a text.
    pub unit: Option<Unit>,
}

/// Where a figure stands among those that it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// None is better.
    First,
    /// A difference to the first could have been shown, and was not.
    NotShown,
    /// Too few rounds to show a difference to the first.
    TooFewRounds,
    /// The first is better.
    Behind,
}

impl Cell {
    /// A figure, if there is one.
    #[must_use]
    pub fn of(value: Option<f64>, unit: Unit) -> Self {
        value.map_or(Cell::Missing, |value| Cell::Number(value, unit))
    }

    /// The lowest and the highest of several rounds; one has no spread.
    #[must_use]
    pub fn span_of(rounds: impl IntoIterator<Item = f64>, unit: Unit) -> Self {
        let rounds: Vec<f64> = rounds.into_iter().collect();
        let lowest = rounds.iter().copied().reduce(f64::min);
        let highest = rounds.iter().copied().reduce(f64::max);
        match lowest.zip(highest) {
            Some((lowest, highest)) if rounds.len() > 1 => Cell::Span(lowest, highest, unit),
            _ => Cell::Missing,
        }
    }

    /// What it holds, exactly and in base units: one line, and two if it is of two
    /// figures that are no ends of a range. What is no number is left out of it.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure> {
        let figure = |part, value: f64, unit| Figure {
            part,
            value: Some(value).filter(|value| value.is_finite()),
            unit: Some(unit),
            ..Figure::default()
        };
        match self {
            Cell::Missing | Cell::Text(_) | Cell::Failed { .. } => vec![Figure::default()],
            Cell::Number(value, unit) | Cell::Placed(value, unit, _) => {
                vec![figure("", *value, *unit)]
            }
            Cell::Span(low, high, unit) => vec![Figure {
                low: Some(*low).filter(|value| value.is_finite()),
                high: Some(*high).filter(|value| value.is_finite()),
                unit: Some(*unit),
                ..Figure::default()
            }],
            Cell::Change(before, after, unit) => {
                vec![
                    figure("before", *before, *unit),
                    figure("after", *after, *unit),
                ]
            }
            Cell::Part(part, whole, unit) => {
                vec![figure("part", *part, *unit), figure("whole", *whole, *unit)]
            }
        }
    }

    /// Of its figures; none if it has no figure.
    #[must_use]
    pub fn unit(&self) -> Option<Unit> {
        match self {
            Cell::Missing | Cell::Text(_) | Cell::Failed { .. } => None,
            Cell::Number(_, unit)
            | Cell::Span(_, _, unit)
            | Cell::Change(_, _, unit)
            | Cell::Part(_, _, unit)
            | Cell::Placed(_, unit, _) => Some(*unit),
        }
    }
}

/// One subject in one phase.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// What was done.
    pub load: &'a Load,
    /// Whose rounds.
    pub subject: &'a Subject,
    /// The phase that the columns are about.
    pub phase: Phase,
    /// What the others are measured against under the same load, if it was measured:
    /// the floor, or the client beside the origin.
    pub yardstick: Option<&'a Subject>,
}

/// What a table is sorted by, the highest first.
pub type Order = fn(&Row<'_>) -> Option<f64>;

impl<'a> Row<'a> {
    /// The rows of a section in the order of a table: by `order`, then those
    /// without figures, and the yardstick last.
    #[must_use]
    pub fn all(section: &'a Section, phase: Phase, order: Order) -> Vec<Self> {
        let mut rows = Self::planned(section, phase);
        rows.sort_by(|a, b| {
            let descending = |a: Option<f64>, b: Option<f64>| match (a, b) {
                (Some(a), Some(b)) => b.total_cmp(&a),
                (a, b) => b.is_some().cmp(&a.is_some()),
            };
            a.is_yardstick()
                .cmp(&b.is_yardstick())
                .then_with(|| descending(order(a), order(b)))
                .then_with(|| a.has_failed().cmp(&b.has_failed()))
                .then_with(|| a.subject.name.cmp(&b.subject.name))
        });
        rows
    }

    /// The rows of a section in the order of the plan.
    #[must_use]
    pub fn planned(section: &'a Section, phase: Phase) -> Vec<Self> {
        let yardstick = section.subjects.iter().find(|s| s.is_yardstick());
        let row = |subject| Self {
            load: &section.load,
            subject,
            phase,
            yardstick,
        };
        section.subjects.iter().map(row).collect()
    }

    /// Whether this row is what the others are measured against.
    #[must_use]
    pub fn is_yardstick(&self) -> bool {
        self.subject.is_yardstick()
    }

    /// Whether no round has figures.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.subject.completed.is_empty()
    }

    fn values(&self, stat: Stat) -> impl Iterator<Item = f64> {
        let trials = self.subject.completed.iter();
        trials.filter_map(move |trial| stat(trial, self.phase))
    }

    /// The median over rounds.
    #[must_use]
    pub fn median(&self, stat: Stat) -> Option<f64> {
        stats::median(self.values(stat))
    }

    /// The lowest of all rounds.
    #[must_use]
    pub fn lowest(&self, stat: Stat) -> Option<f64> {
        self.values(stat).reduce(f64::min)
    }

    /// The highest of all rounds.
    #[must_use]
    pub fn highest(&self, stat: Stat) -> Option<f64> {
        self.values(stat).reduce(f64::max)
    }

    /// Lowest and highest, if there are at least two rounds to differ.
    #[must_use]
    pub fn span(&self, stat: Stat, unit: Unit) -> Cell {
        Cell::span_of(self.values(stat), unit)
    }

    /// The sum over rounds of a metric; missing if any round lacks it.
    #[must_use]
    pub fn sum(&self, name: &str) -> Option<f64> {
        let trials = &self.subject.completed;
        if trials.is_empty() {
            return None;
        }
        trials
            .iter()
            .map(|trial| stats::metric(trial, self.phase, name))
            .sum()
    }

    /// The median over rounds of a metric as it stands in the record.
    #[must_use]
    pub fn typical(&self, name: &str) -> Option<f64> {
        let trials = self.subject.completed.iter();
        stats::median(trials.filter_map(|trial| stats::metric(trial, self.phase, name)))
    }

    /// A latency of all rounds together.
    #[must_use]
    pub fn latency(&self, name: &str) -> Option<&'a Latency> {
        self.subject.latencies.get(&self.phase.metric(name))
    }

    /// What a phase's own latency is called in the records.
    #[must_use]
    pub fn latency_name(&self) -> &'static str {
        match self.phase {
            Phase::Connect => metric::DIAL_LATENCY,
            Phase::Warmup | Phase::Echo => metric::ECHO_LATENCY,
            Phase::Rate => metric::INTENDED_LATENCY,
            Phase::Bulk => metric::TRANSFER_LATENCY,
            // It has none of its own: how long a close takes is not measured.
            Phase::Release => metric::DIAL_LATENCY,
        }
    }

    /// The median in percent of the yardstick's.
    #[must_use]
    pub fn percent_of_yardstick(&self, stat: Stat) -> Option<f64> {
        let subject = self.yardstick?;
        let yardstick = Self { subject, ..*self }.median(stat)?;
        let percent = self.median(stat)? * 100.0 / yardstick;
        percent.is_finite().then_some(percent)
    }

    /// Where and why the rounds failed, if all did.
    #[must_use]
    pub fn failure(&self) -> Option<Cell> {
        let first = self.subject.failed.first().filter(|_| self.has_failed())?;
        Some(Cell::Failed {
            stage: first.stage.clone(),
            reason: first.reason.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use crate::section::{last_attempts, sections};
    use wsbench_schema::{RunPlan, TrialRecord};

    fn section(records: &[TrialRecord]) -> Section {
        let plan: RunPlan = example::plan(&[], 3);
        let trials = last_attempts(&plan, records).unwrap();
        sections(&plan, &trials).remove(0)
    }

    /// A trial with so many successes in a second.
    fn fast(name: &str, round: u32, succeeded: u64, failed: u64) -> TrialRecord {
        let mut trial = example::trial(name, round);
        for (metric, value) in [
            (metric::SUCCEEDED, succeeded),
            (metric::FAILED, failed),
            (metric::ELAPSED, 1_000_000_000),
        ] {
            trial.metrics.insert(Phase::Echo.metric(metric), value);
        }
        trial
    }

    fn rows(section: &Section) -> Vec<Row<'_>> {
        Row::all(section, Phase::Echo, |row| row.median(stats::tps))
    }

    #[test]
    fn counts_are_summed_rates_are_medians_and_spans_are_true() {
        let section = section(&[
            fast("axum", 1, 100, 0),
            fast("axum", 2, 300, 1),
            fast("axum", 3, 120, 0),
        ]);
        let row = rows(&section)[0];
        assert_eq!(row.sum(metric::SUCCEEDED), Some(520.0));
        assert_eq!(row.sum(metric::FAILED), Some(1.0));
        assert_eq!(row.median(stats::tps), Some(120.0));
        assert_eq!(
            row.span(stats::tps, Unit::PerSecond),
            Cell::Span(100.0, 300.0, Unit::PerSecond)
        );
    }

    #[test]
    fn one_round_has_no_spread() {
        let section = section(&[fast("axum", 1, 100, 0)]);
        let span = rows(&section)[0].span(stats::tps, Unit::PerSecond);
        assert_eq!(span, Cell::Missing);
    }

    #[test]
    fn a_sum_with_a_round_unmeasured_is_missing_and_not_too_small() {
        let mut half = fast("axum", 2, 100, 0);
        half.metrics.remove(&Phase::Echo.metric(metric::FAILED));
        let section = section(&[fast("axum", 1, 100, 5), half]);
        assert_eq!(rows(&section)[0].sum(metric::FAILED), None);
    }

    #[test]
    fn the_fastest_is_first_and_the_yardstick_last() {
        let section = section(&[
            example::failed("broken", 1, "build", "no such crate"),
            fast("floor", 1, 900, 0),
            fast("slow", 1, 100, 0),
            example::empty("mute", 1),
            fast("quick", 1, 800, 0),
        ]);
        let names: Vec<_> = rows(&section)
            .iter()
            .map(|r| r.subject.name.as_str())
            .collect();
        assert_eq!(names, ["quick", "slow", "mute", "broken", "floor"]);
    }

    #[test]
    fn percent_of_the_yardstick_is_a_quotient_of_medians() {
        let section = section(&[fast("floor", 1, 800, 0), fast("axum", 1, 600, 0)]);
        let rows = rows(&section);
        assert_eq!(rows[0].percent_of_yardstick(stats::tps), Some(75.0));
        assert_eq!(rows[1].percent_of_yardstick(stats::tps), Some(100.0));
    }

    #[test]
    fn without_a_yardstick_or_with_an_idle_one_there_is_no_percent() {
        let alone = section(&[fast("axum", 1, 600, 0)]);
        assert_eq!(rows(&alone)[0].percent_of_yardstick(stats::tps), None);
        let idle = section(&[fast("axum", 1, 600, 0), fast("floor", 1, 0, 0)]);
        assert_eq!(rows(&idle)[0].percent_of_yardstick(stats::tps), None);
    }

    #[test]
    fn a_subject_fails_only_if_no_round_completed() {
        let some = section(&[
            fast("axum", 1, 1, 0),
            example::failed("axum", 2, "echo", "died"),
        ]);
        assert_eq!(rows(&some)[0].failure(), None);
        let all = section(&[example::failed("axum", 1, "echo", "died")]);
        let failed = Cell::Failed {
            stage: "echo".into(),
            reason: "died".into(),
        };
        assert_eq!(rows(&all)[0].failure(), Some(failed));
    }
}
