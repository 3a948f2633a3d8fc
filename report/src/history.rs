//! One subject over all results that were kept: what became of a figure from run to run,
//! under the same load on the same machine.

use crate::chart::{Axis, Chart, Figure, Line, Lines, Look};
use crate::compare::{self, Question};
use crate::machine::describe;
use crate::quantity::Quantity;
use crate::row::Cell;
use crate::section;
use crate::stats::median;
use crate::table::{self, Grid};
use crate::text;
use crate::units::{Unit, count, date, ranges};
use std::collections::BTreeMap;
use wsbench_schema::{Outcome, TrialRecord, mark};

/// What makes figures comparable: the load and the machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    load_hash: String,
    machine: String,
}

/// A run's rounds of the subject.
struct Point<'a> {
    run: &'a str,
    started_unix_s: u64,
    version: &'a str,
    values: Vec<f64>,
    failed: usize,
    noisy: usize,
    circumstances: [(&'static str, String); 3],
}

/// Figures in the order of time, of one load and one machine.
#[derive(Clone, Debug)]
pub struct Course {
    /// What was done where, in one line.
    pub title: String,
    /// The median of each run; `None` where every round failed.
    pub medians: Vec<Option<f64>>,
    /// A row a run.
    pub grid: Grid,
}

/// The courses of the records of one subject, the longest first. Of each trial the last
/// attempt counts.
#[must_use]
pub fn of(records: &[TrialRecord], quantity: Quantity) -> Vec<Course> {
    let mut kinds: BTreeMap<Kind, Vec<&TrialRecord>> = BTreeMap::new();
    for record in section::newest_attempts(records) {
        kinds.entry(kind(record)).or_default().push(record);
    }
    let mut courses: Vec<Course> = kinds
        .values()
        .filter_map(|trials| course(trials, quantity))
        .collect();
    courses.sort_by_key(|course| std::cmp::Reverse(course.medians.len()));
    courses
}

fn kind(record: &TrialRecord) -> Kind {
    let machine = &record.machine;
    Kind {
        load_hash: record.load_hash.clone(),
        machine: format!(
            "{}, {}, {} CPUs",
            machine.host, machine.cpu_model, machine.cpus_count
        ),
    }
}

/// `None` if the quantity was never measured.
fn course(trials: &[&TrialRecord], quantity: Quantity) -> Option<Course> {
    let mut points: Vec<Point<'_>> = Vec::new();
    for trial in trials {
        let index = points.iter().position(|point| point.run == trial.run);
        let index = index.unwrap_or_else(|| {
            points.push(Point {
                run: &trial.run,
                started_unix_s: trial.started_unix_s,
                version: &trial.subject.version,
                values: Vec::new(),
                failed: 0,
                noisy: 0,
                circumstances: circumstances(trial),
            });
            points.len() - 1
        });
        let point = &mut points[index];
        point.started_unix_s = point.started_unix_s.min(trial.started_unix_s);
        point.noisy += usize::from(trial.marks.contains_key(mark::NOISY));
        match trial.outcome {
            Outcome::Completed => point.values.extend(quantity.of(trial)),
            Outcome::Failed { .. } => point.failed += 1,
        }
    }
    points.sort_by(|a, b| (a.started_unix_s, a.run).cmp(&(b.started_unix_s, b.run)));
    let first = trials.first()?;
    let medians: Vec<Option<f64>> = points
        .iter()
        .map(|point| median(point.values.iter().copied()))
        .collect();
    if medians.iter().all(Option::is_none) {
        return None;
    }
    let load = describe(&first.load).into_iter().next().unwrap_or_default();
    Some(Course {
        title: text::one_line(&format!("{load}; {}", kind(first).machine)),
        grid: grid(&points, quantity, &first.load_hash),
        medians,
    })
}

fn grid(points: &[Point<'_>], quantity: Quantity, load_hash: &str) -> Grid {
    // Each run against the last one before it that has figures.
    let mut questions = Vec::new();
    let mut asked: Vec<Option<usize>> = Vec::new();
    let mut before: Option<&Point<'_>> = None;
    for point in points {
        let question = before.filter(|_| !point.values.is_empty()).map(|before| {
            questions.push(Question {
                of: point.values.clone(),
                to: before.values.clone(),
            });
            questions.len() - 1
        });
        asked.push(question);
        if !point.values.is_empty() {
            before = Some(point);
        }
    }
    let answers = compare::decide(&questions);
    let mut version: Option<&str> = None;
    let mut last: Option<&Point<'_>> = None;
    let rows = points.iter().zip(asked).map(|(point, asked)| {
        let answer = asked.and_then(|index| answers.get(index));
        let is_new = version.is_some_and(|version| version != point.version);
        version = Some(point.version);
        let cells = vec![
            Cell::Text(point.run.to_owned()),
            Cell::Text(date(point.started_unix_s)),
            Cell::Text(match is_new {
                true => format!("{} (new)", point.version),
                false => point.version.to_owned(),
            }),
            Cell::Number(count(point.values.len()), Unit::Count),
            Cell::of(median(point.values.iter().copied()), quantity.unit),
            Cell::span_of(point.values.iter().copied(), quantity.unit),
            Cell::of(answer.and_then(|answer| answer.ratio), Unit::Ratio),
            answer.map_or(Cell::Missing, |answer| {
                Cell::Text(answer.verdict.said(quantity.less_is_better))
            }),
            Cell::Text(remarks(point, last.replace(point))),
        ];
        table::Line {
            subject: None,
            cells,
        }
    });
    Grid {
        file: format!("history-{}-{load_hash}", quantity.key),
        title: quantity.name.to_owned(),
        names: 3,
        header: [
            "Run",
            "Started",
            "Version",
            "Rounds",
            "Median",
            "Min-max",
            "To the run before",
            "Verdict",
            "Remarks",
        ]
        .map(str::to_owned)
        .into(),
        rows: rows.collect(),
        notes: Vec::new(),
    }
}

/// What may change figures and is no reason not to set them one below the other.
fn circumstances(trial: &TrialRecord) -> [(&'static str, String); 3] {
    let (server, client) = (ranges(&trial.cpus.server), ranges(&trial.cpus.client));
    [
        ("CPU map", format!("server {server}, client {client}")),
        ("kernel", trial.machine.kernel.clone()),
        ("harness", trial.harness.clone()),
    ]
}

fn remarks(point: &Point<'_>, before: Option<&Point<'_>>) -> String {
    let mut remarks = Vec::new();
    for (index, (what, now)) in point.circumstances.iter().enumerate() {
        if before.is_some_and(|before| before.circumstances[index].1 != *now) {
            remarks.push(format!("other {what}"));
        }
    }
    if point.failed > 0 {
        remarks.push(format!("{} failed", point.failed));
    }
    if point.noisy > 0 {
        remarks.push(format!("{} noisy", point.noisy));
    }
    remarks.join(", ")
}

/// The courses of one quantity in a picture: a line each, over the runs from the oldest on.
#[must_use]
pub fn chart(subject: &str, quantity: Quantity, courses: &[Course]) -> Chart {
    let lines = courses.iter().enumerate().map(|(index, course)| Line {
        name: course.title.clone(),
        points: (1..)
            .map(count)
            .zip(&course.medians)
            .filter_map(|(run, median)| Some((run, (*median)?)))
            .collect(),
        beside: Vec::new(),
        look: Look::Subject(index),
        tip: None,
    });
    Chart {
        file: format!("history-{}", quantity.key),
        title: format!("{subject}: {}", quantity.name),
        about: "The median of each run that was kept, from the oldest on: a line for each load and machine.".to_owned(),
        figure: Figure::Lines(Lines {
            across: Axis::linear("Run", Unit::Count),
            up: Axis::linear(quantity.name, quantity.unit),
            lines: lines.collect(),
        }),
    }
}

/// Eight heights, from the least of the values to the most; a gap where there is none.
#[must_use]
pub fn sparkline(values: &[Option<f64>]) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let known = || values.iter().flatten().copied();
    let (Some(least), Some(most)) = (known().reduce(f64::min), known().reduce(f64::max)) else {
        return String::new();
    };
    let height = |value: f64| {
        let part = (value - least) / (most - least);
        // All the same: neither high nor low.
        let part = if part.is_finite() { part } else { 0.5 };
        HEIGHTS[((part * 7.0).round() as usize).min(7)]
    };
    values
        .iter()
        .map(|value| value.map_or(' ', height))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    fn run(name: &str, day: u64, version: &str, paces: &[u64]) -> Vec<TrialRecord> {
        (1..)
            .zip(paces)
            .map(|(round, pace)| {
                let mut trial = example::paced("axum", round, *pace);
                trial.run = name.to_owned();
                trial.started_unix_s += day * 86_400;
                trial.subject.version = version.to_owned();
                trial
            })
            .collect()
    }

    fn column(course: &Course, index: usize) -> Vec<String> {
        let rows = course.grid.rows.iter();
        rows.map(|row| text::cell(&row.cells[index])).collect()
    }

    #[test]
    fn runs_stand_in_the_order_of_time_each_against_the_one_before() {
        let usual = [100, 101, 99, 102, 98, 100];
        let slower = [120, 121, 119, 122, 118, 120];
        let records = [
            run("c", 3, "axum 2", &slower),
            run("a", 1, "axum 1", &usual),
            run("b", 2, "axum 1", &usual),
        ]
        .concat();
        let courses = of(&records, Quantity::of_key("cpu").unwrap());
        assert_eq!(courses.len(), 1);
        let course = &courses[0];
        assert_eq!(column(course, 0), ["a", "b", "c"]);
        assert_eq!(column(course, 2), ["axum 1", "axum 1", "axum 2 (new)"]);
        assert_eq!(column(course, 7), ["-", "~", "worse"]);
        assert_eq!(sparkline(&course.medians), "▁▁█");
        let svg = chart("axum", Quantity::of_key("cpu").unwrap(), &courses).svg();
        assert!(svg.contains("axum: Server CPU/msg"), "{svg}");
    }

    #[test]
    fn other_loads_and_machines_are_courses_of_their_own_and_failures_are_told() {
        let mut other = run("b", 2, "axum 1", &[100]);
        other[0].machine.host = "other".into();
        let mut failed = run("c", 3, "axum 1", &[100, 100]);
        failed[1].outcome = Outcome::Failed {
            stage: "echo".into(),
            reason: "died".into(),
        };
        failed[0].marks.insert(mark::NOISY.into(), "echo".into());
        for trial in &mut failed {
            trial.cpus.server = vec![2];
        }
        let records = [run("a", 1, "axum 1", &[100]), other, failed].concat();
        let courses = of(&records, Quantity::of_key("tps").unwrap());
        assert_eq!(courses.len(), 2);
        assert_eq!(
            column(&courses[0], 8),
            ["", "other CPU map, 1 failed, 1 noisy"]
        );
        assert!(
            courses[1].title.contains("other, Example CPU"),
            "{}",
            courses[1].title
        );
        assert!(of(&records, Quantity::of_key("throughput").unwrap()).is_empty());
    }

    #[test]
    fn a_sparkline_has_a_gap_where_nothing_was_measured() {
        assert_eq!(sparkline(&[Some(1.0), None, Some(8.0)]), "▁ █");
        assert_eq!(sparkline(&[Some(3.0), Some(3.0)]), "▅▅");
        assert_eq!(sparkline(&[None]), "");
    }
}
