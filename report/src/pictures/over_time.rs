//! What happened while it was measured: of each subject one round, over time.

use super::{Looks, best, line, named, stats, tcp};
use crate::chart::{Axis, Band, Chart, Figure, Line, Lines};
use crate::row::Row;
use crate::section::Section;
use crate::stats::{self as formulas, Stat};
use crate::units::Unit;
use wsbench_schema::{Phase, Series, TrialRecord, metric};

const ROUND: &str = "Of each strategy the round whose duration is the middle one.";

/// Throughput and memory of the strategies, overlaid.
pub fn of_transfers(section: &Section, looks: &Looks) -> Vec<Chart> {
    let rows = Row::planned(section, Phase::Bulk);
    let (rows, left) = best(rows, "the shortest duration", |row| {
        row.median(stats::duration)
    });
    let chart = |file: &str, title: &str, up: Axis, points: fn(&TrialRecord) -> Vec<(f64, f64)>| {
        let lines = rows.iter().filter_map(|row| {
            let trial = middle_round(row, stats::duration)?;
            Some(line(row, points(trial), looks))
        });
        Chart {
            file: named(file, &section.load, &section.load_hash),
            title: format!("{title}: {}", tcp::short(&section.load)),
            about: format!("{ROUND}{left}"),
            figure: Figure::Lines(Lines {
                across: Axis::linear("Time", Unit::Duration),
                up,
                lines: lines.collect(),
            }),
        }
    };
    vec![
        chart(
            "throughput-over-time",
            "Throughput over time",
            Axis::linear("Bytes, in either direction", Unit::DataPerSecond),
            throughput_over_time,
        ),
        chart(
            "memory-over-time",
            "Memory over time",
            Axis::linear("Resident memory (RSS)", Unit::Bytes),
            memory_over_time,
        ),
    ]
}

/// Speed, CPU and memory through all phases. Everybody's phases begin at the same
/// place, though who was faster was done with one before.
pub fn of_trials(section: &Section, phase: Phase, speed: Stat, looks: &Looks) -> Vec<Chart> {
    let rows = Row::planned(section, phase);
    let (rows, left) = best(rows, "the highest speed", |row| {
        row.median(speed).map(|speed| -speed)
    });
    let trials = rows
        .iter()
        .filter_map(|row| Some((*row, middle_round(row, speed)?)));
    let trials: Vec<(Row<'_>, &TrialRecord)> = trials.collect();
    let chart = |file: &str, title: &str, up: Axis, name: &str, figures: Figures| {
        let bands = Bands::of(&trials, name);
        let lines = trials
            .iter()
            .map(|(row, trial)| line(row, bands.points(trial, name, figures), looks));
        let lines: Vec<Line> = lines.collect();
        Chart {
            file: named(file, &section.load, &section.load_hash),
            title: format!("{title}: {}", tcp::short(&section.load)),
            about: format!(
                "Of each subject the round whose speed is the middle one. Phases follow each other; below each is how long the longest took.{left}"
            ),
            figure: Figure::Lines(Lines {
                across: Axis::phases(bands.along()),
                up,
                lines,
            }),
        }
    };
    vec![
        chart(
            "tps-over-time",
            "Answers a second over time",
            Axis::linear("Answers", Unit::PerSecond),
            metric::SUCCEEDED_SERIES,
            |series, _| rates(series, 1.0),
        ),
        chart(
            "cpu-over-time",
            "CPU of the server over time",
            Axis::linear("CPU, 100 % is one CPU", Unit::Percent),
            metric::SERVER_CPU_SERIES,
            |series, _| {
                points(series)
                    .map(|(at, value)| (at, value / 1000.0))
                    .collect()
            },
        ),
        chart(
            "memory-over-time",
            "Memory of the server over time",
            Axis::linear("Resident memory (RSS)", Unit::Bytes),
            metric::SERVER_RSS_SERIES,
            |series, edges| {
                let (first, last) = edges;
                let inner = points(series);
                first.into_iter().chain(inner).chain(last).collect()
            },
        ),
    ]
}

/// What a phase begins and ends with, if it was read.
type Edges = (Option<(f64, f64)>, Option<(f64, f64)>);
/// From what was read to what is drawn.
type Figures = fn(&Series, Edges) -> Vec<(f64, f64)>;

/// The phases of a picture: which, how long, and where each ends of a whole of 1.
struct Bands(Vec<(Phase, f64, f64)>);

/// A band has at least so much of the picture: its name stands in it.
const LEAST_BAND: f64 = 0.14;

impl Bands {
    /// Those in which something was read.
    fn of(trials: &[(Row<'_>, &TrialRecord)], name: &str) -> Self {
        let longest = |phase: &Phase| {
            let lengths = trials.iter().filter_map(|(_, trial)| {
                let series = trial.series.get(&phase.metric(name))?;
                let (last, _) = points(series).last()?;
                let window = formulas::metric(trial, *phase, metric::SERVER_WINDOW);
                Some(window.map_or(last, |window| window.max(last)))
            });
            let longest = lengths.reduce(f64::max)?;
            (longest > 0.0).then_some((*phase, longest))
        };
        let phases: Vec<(Phase, f64)> = Phase::ALL.iter().filter_map(longest).collect();
        let whole: f64 = phases.iter().map(|(_, length)| length).sum();
        let shares = phases
            .iter()
            .map(|(_, length)| (length / whole).max(LEAST_BAND));
        let shares: Vec<f64> = shares.collect();
        let all: f64 = shares.iter().sum();
        let mut end = 0.0;
        let bands = phases.iter().zip(shares).map(|((phase, length), share)| {
            end += share / all;
            (*phase, *length, end)
        });
        Self(bands.collect())
    }

    fn along(&self) -> Vec<Band> {
        let band = |(phase, length, end): &(Phase, f64, f64)| Band {
            name: phase.name().to_owned(),
            about: Unit::Duration.show(*length),
            end: *end,
        };
        self.0.iter().map(band).collect()
    }

    /// The figures of all phases, with a gap between two.
    fn points(&self, trial: &TrialRecord, name: &str, figures: Figures) -> Vec<(f64, f64)> {
        let mut all = Vec::new();
        let mut begin = 0.0;
        for (phase, length, end) in &self.0 {
            if let Some(series) = trial.series.get(&phase.metric(name)) {
                let of = figures(series, edges(trial, *phase));
                if !all.is_empty() && !of.is_empty() {
                    all.push((f64::NAN, f64::NAN));
                }
                let placed = of.into_iter().filter(|(at, _)| at <= length);
                all.extend(placed.map(|(at, value)| (begin + at / length * (end - begin), value)));
            }
            begin = *end;
        }
        all
    }
}

fn edges(trial: &TrialRecord, phase: Phase) -> Edges {
    let figure = |name| formulas::metric(trial, phase, name);
    let window = figure(metric::SERVER_WINDOW);
    (
        figure(metric::SERVER_RSS_START).map(|bytes| (0.0, bytes)),
        window.zip(figure(metric::SERVER_RSS_END)),
    )
}

fn middle_round<'a>(row: &Row<'a>, by: Stat) -> Option<&'a TrialRecord> {
    let trials = row.subject.completed.iter();
    let mut timed: Vec<(f64, &TrialRecord)> = trials
        .filter_map(|trial| Some((by(trial, row.phase)?, trial)))
        .collect();
    timed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let middle = timed.len().checked_sub(1)? / 2;
    timed.get(middle).map(|(_, trial)| *trial)
}

#[expect(clippy::cast_precision_loss, reason = "a picture")]
fn points(series: &Series) -> impl Iterator<Item = (f64, f64)> {
    let readings = series.offsets_ns.iter().zip(&series.values);
    readings.map(|(offset, value)| (*offset as f64, *value as f64))
}

fn memory_over_time(trial: &TrialRecord) -> Vec<(f64, f64)> {
    let series = trial
        .series
        .get(&Phase::Bulk.metric(metric::SERVER_RSS_SERIES));
    series.map_or(Vec::new(), |series| points(series).collect())
}

/// A running total is read at intervals of this part of its time, ...
const INTERVALS: f64 = 60.0;
/// ... but not shorter ones: they would show how the client was scheduled.
const LEAST_INTERVAL_NS: f64 = 1e8;

/// What crossed in each interval, at its middle.
#[expect(clippy::cast_precision_loss, reason = "a picture")]
fn throughput_over_time(trial: &TrialRecord) -> Vec<(f64, f64)> {
    let series = trial
        .series
        .get(&Phase::Bulk.metric(metric::CLIENT_BYTES_SERIES));
    match (series, &trial.load.bulk) {
        (Some(series), Some(bulk)) => rates(series, bulk.crossings() as f64),
        _ => Vec::new(),
    }
}

/// Of a running total how much a second came to it, at the middle of each interval.
#[expect(clippy::cast_precision_loss, reason = "a picture")]
fn rates(series: &Series, times: f64) -> Vec<(f64, f64)> {
    let last = series.offsets_ns.last();
    let end = last.map_or(0.0, |offset| *offset as f64);
    let interval = (end / INTERVALS).max(LEAST_INTERVAL_NS);
    let mut before = (0.0, 0.0);
    let mut rates = Vec::new();
    for (offset, total) in points(series) {
        let time = offset - before.0;
        // The last one may be shorter, but not so short that it says nothing.
        if time >= interval || (offset >= end && time >= interval / 2.0) {
            let more = (total - before.1) * times;
            rates.push((before.0 + time / 2.0, more * 1e9 / time));
            before = (offset, total);
        }
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn throughput_is_what_crossed_in_each_interval() {
        let trial = example::transferred("pool", 1, 100);
        let rates = throughput_over_time(&trial);
        // 100 MB a second each way, read once a second.
        assert_eq!(rates.len(), 10);
        assert_eq!(rates[0], (0.5e9, 2e8));
        assert!(
            rates.iter().all(|(_, rate)| (rate - 2e8).abs() < 1.0),
            "{rates:?}"
        );
    }

    #[test]
    fn the_middle_round_is_no_average_of_others() {
        let rounds = [130, 90, 100].map(|pace| example::transferred("pool", 1, pace));
        let subject = crate::section::Subject::new("pool", rounds.to_vec(), Vec::new());
        let row = Row {
            load: &rounds[0].load,
            subject: &subject,
            phase: Phase::Bulk,
            yardstick: None,
        };
        let middle = middle_round(&row, stats::duration).unwrap();
        assert_eq!(stats::duration(middle, Phase::Bulk), Some(1e10));
    }

    #[test]
    fn phases_stand_side_by_side_and_begin_at_the_same_place_for_all() {
        let trial = |name: &str, pace: u64| {
            let mut trial = example::paced(name, 1, pace);
            for (phase, length_ns) in [
                (Phase::Echo, 10_000_000 * pace),
                (Phase::Rate, 3_000_000_000),
            ] {
                let offsets_ns: Vec<u64> = (1..=5).map(|step| step * length_ns / 5).collect();
                let values = (1..=5).map(|step| step * 1000).collect();
                let series = Series { offsets_ns, values };
                let name = phase.metric(metric::SUCCEEDED_SERIES);
                trial.series.insert(name, series);
                let window = phase.metric(metric::SERVER_WINDOW);
                trial.metrics.insert(window, length_ns);
            }
            trial
        };
        let plan = example::plan(&["axum", "ntex"], 1);
        let trials = [trial("axum", 100), trial("ntex", 50)];
        let report = crate::Report::new(&plan, &trials).unwrap();
        let section = &report.sections[0];
        let looks = Looks::of(&report.sections);
        let charts = of_trials(section, Phase::Echo, formulas::tps, &looks);
        assert!(charts[0].file.starts_with("tps-over-time-1000x1024-"));
        let Figure::Lines(lines) = &charts[0].figure else {
            panic!("lines");
        };
        let bands: Vec<(&str, f64)> = lines
            .across
            .bands
            .iter()
            .map(|band| (&*band.name, band.end))
            .collect();
        assert_eq!(bands, [("echo", 0.25), ("rate", 1.0)]);
        let points = |line: usize| lines.lines[line].points.clone();
        // 1,000 in each fifth of a second, and of half a second.
        assert_eq!(points(0)[0], (0.025, 5000.0));
        assert_eq!(points(1)[0], (0.0125, 10_000.0));
        // What follows the gap is of the next phase, at the same place for both.
        let rate = |line: usize| *points(line).iter().rev().nth(4).unwrap();
        assert_eq!(rate(0), rate(1));
        assert!(points(0)[5].1.is_nan());
        assert!(lines.lines[0].look != lines.lines[1].look);
    }
}
