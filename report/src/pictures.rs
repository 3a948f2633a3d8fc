//! Which pictures a report has, and what is in them: records in, [`Chart`]s out.
//! How they are drawn is not known here.

use crate::chart::{Axis, Bar, Bars, Chart, Figure, Line, Lines};
use crate::row::Row;
use crate::section::Section;
use crate::stats::{self as formulas, Stat};
use crate::tcp::{self, least, stats};
use crate::units::Unit;
use wsbench_schema::{Load, Phase, Series, Suite, TrialRecord, metric};

/// The pictures of one load.
#[must_use]
pub fn of_section(section: &Section) -> Vec<Chart> {
    let charts = match (section.suite, &section.load.bulk) {
        (Suite::Websocket, _) => Vec::new(),
        (Suite::Relay, None) => round_trips(section),
        (Suite::Relay, Some(_)) => relayed_transfers(section),
        (Suite::Transfer, _) => over_time(section),
    };
    charts.into_iter().filter(has_figures).collect()
}

/// The pictures that set loads side by side.
#[must_use]
pub fn across(sections: &[Section]) -> Vec<Chart> {
    let chart = against_connections(sections);
    chart.into_iter().filter(has_figures).collect()
}

fn has_figures(chart: &Chart) -> bool {
    match &chart.figure {
        Figure::Bars(bars) => bars.bars.iter().any(|bar| bar.value.is_some()),
        Figure::Lines(lines) => lines.lines.iter().any(|line| !line.points.is_empty()),
    }
}

/// The names of all pictures, without the load's hash that some end with.
const NAMES: [&str; 7] = [
    "ns-per-op",
    "cpu",
    "least-cpu",
    "throughput",
    "throughput-over-time",
    "memory-over-time",
    "memory-against-connections",
];

/// Whether a text is the hash of a load.
#[must_use]
pub fn is_hash(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a picture can have this name.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let kind = match name.rsplit_once('-') {
        Some((kind, hash)) if is_hash(hash) => kind,
        _ => name,
    };
    NAMES.contains(&kind)
}

const SPREAD: &str = " Bars are medians over rounds, whiskers the lowest and the highest round.";

/// What a bar is of.
struct Measure {
    file: &'static str,
    title: &'static str,
    axis: Axis,
    stat: Stat,
    less_is_better: bool,
    /// Whether the client beside the origin has it too.
    of_direct: bool,
}

impl Measure {
    /// A bar for each subject of a load, the best first.
    fn chart(&self, section: &Section, phase: Phase) -> Chart {
        let mut rows = Row::planned(section, phase);
        rows.retain(|row| self.of_direct || !row.subject.is_direct);
        let rank = |row: &Row<'_>| match row.median(self.stat) {
            Some(value) if self.less_is_better => value,
            Some(value) => -value,
            None => f64::INFINITY,
        };
        rows.sort_by(|a, b| {
            let yardstick = a.is_yardstick().cmp(&b.is_yardstick());
            yardstick.then_with(|| rank(a).total_cmp(&rank(b)))
        });
        self.of_rows(&section.load, &section.load_hash, &rows)
    }

    fn of_rows(&self, load: &Load, hash: &str, rows: &[Row<'_>]) -> Chart {
        let bars = rows.iter().map(|row| self.bar(row)).collect();
        let better = match self.less_is_better {
            true => "Less is better.",
            false => "More is better.",
        };
        let has_rounds = rows.iter().any(|row| row.subject.completed.len() > 1);
        let spread = if has_rounds { SPREAD } else { "" };
        let has_direct = rows.iter().any(|row| row.subject.is_direct);
        let direct = match has_direct {
            true => " Grey: without a relay.",
            false => "",
        };
        Chart {
            file: format!("{}-{hash}", self.file),
            title: format!("{}: {}", self.title, tcp::short(load)),
            about: format!("{better}{spread}{direct}"),
            figure: Figure::Bars(Bars {
                axis: self.axis.clone(),
                bars,
            }),
        }
    }

    fn bar(&self, row: &Row<'_>) -> Bar {
        let ends = row.lowest(self.stat).zip(row.highest(self.stat));
        Bar {
            name: row.subject.name.clone(),
            value: row.median(self.stat),
            span: ends.filter(|_| row.subject.completed.len() > 1),
            is_reference: row.is_yardstick(),
        }
    }
}

/// As the original shows it, in the whole phase; where a load ended by time, the relays
/// did not do the same in it, and only the cost of a round trip can be compared.
fn cpu(section: &Section) -> Measure {
    let trials = section
        .subjects
        .iter()
        .flat_map(|subject| &subject.completed);
    let mut counts = trials.filter_map(|trial| trial.metric(Phase::Echo, metric::SUCCEEDED));
    let first = counts.next();
    let (axis, stat): (_, Stat) = match counts.all(|count| Some(count) == first) {
        true => ("CPU time in the whole phase", stats::cpu),
        false => (
            "CPU time for each round trip",
            formulas::server_cpu_per_message,
        ),
    };
    Measure {
        file: "cpu",
        title: "CPU time of the relay",
        axis: Axis::linear(axis, Unit::Duration),
        stat,
        less_is_better: true,
        of_direct: false,
    }
}

/// The original's three pictures.
fn round_trips(section: &Section) -> Vec<Chart> {
    let time = Measure {
        file: "ns-per-op",
        title: "Time for each round trip",
        axis: Axis::linear("Time of the whole load / round trips", Unit::Duration),
        stat: stats::ns_per_operation,
        less_is_better: true,
        of_direct: true,
    };
    let least = Measure {
        file: "least-cpu",
        title: least::TITLE,
        axis: Axis::linear("CPU time for each round trip", Unit::Duration),
        stat: formulas::server_cpu_per_message,
        less_is_better: true,
        of_direct: false,
    };
    let rows = least::rows(section);
    vec![
        time.chart(section, Phase::Echo),
        cpu(section).chart(section, Phase::Echo),
        least.of_rows(&section.load, &section.load_hash, &rows),
    ]
}

fn relayed_transfers(section: &Section) -> Vec<Chart> {
    let throughput = Measure {
        file: "throughput",
        title: "Throughput",
        axis: Axis::linear("Bytes relayed", Unit::DataPerSecond),
        stat: stats::throughput,
        less_is_better: false,
        of_direct: true,
    };
    let per_gib = |file, title| Measure {
        file,
        title,
        axis: Axis::linear("CPU time for each GiB", Unit::Duration),
        stat: stats::cpu_per_gib,
        less_is_better: true,
        of_direct: false,
    };
    let least = per_gib("least-cpu", least::TITLE);
    let rows = least::rows(section);
    vec![
        throughput.chart(section, Phase::Bulk),
        per_gib("cpu", "CPU time of the relay").chart(section, Phase::Bulk),
        least.of_rows(&section.load, &section.load_hash, &rows),
    ]
}

const ROUND: &str = "Of each strategy the round whose duration is the middle one.";

/// Throughput and memory of the strategies, overlaid.
fn over_time(section: &Section) -> Vec<Chart> {
    // In the order of the plan, so that a strategy has one colour in all pictures.
    let rows = Row::planned(section, Phase::Bulk);
    let chart = |file: &str, title: &str, up: Axis, points: fn(&TrialRecord) -> Vec<(f64, f64)>| {
        let lines = rows.iter().filter_map(|row| {
            let trial = middle_round(row)?;
            Some(Line {
                name: row.subject.name.clone(),
                points: points(trial),
            })
        });
        Chart {
            file: format!("{file}-{}", section.load_hash),
            title: format!("{title}: {}", tcp::short(&section.load)),
            about: ROUND.to_owned(),
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

fn middle_round<'a>(row: &Row<'a>) -> Option<&'a TrialRecord> {
    let trials = row.subject.completed.iter();
    let mut timed: Vec<(f64, &TrialRecord)> = trials
        .filter_map(|trial| Some((stats::duration(trial, row.phase)?, trial)))
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
    let (Some(series), Some(bulk)) = (series, &trial.load.bulk) else {
        return Vec::new();
    };
    let end = series
        .offsets_ns
        .last()
        .map_or(0.0, |offset| *offset as f64);
    let interval = (end / INTERVALS).max(LEAST_INTERVAL_NS);
    let mut before = (0.0, 0.0);
    let mut rates = Vec::new();
    for (offset, bytes) in points(series) {
        let time = offset - before.0;
        // The last one may be shorter, but not so short that it says nothing.
        if time >= interval || (offset >= end && time >= interval / 2.0) {
            let crossed = (bytes - before.1) * bulk.crossings() as f64;
            rates.push((before.0 + time / 2.0, crossed * 1e9 / time));
            before = (offset, bytes);
        }
    }
    rates
}

/// Peak memory of the strategies over the loads, if they differ in their connections.
fn against_connections(sections: &[Section]) -> Option<Chart> {
    let of_transfers =
        |section: &&Section| section.suite == Suite::Transfer && section.load.bulk.is_some();
    let mut sections: Vec<&Section> = sections.iter().filter(of_transfers).collect();
    sections.sort_by_key(|section| section.load.connections);
    let mut levels: Vec<u32> = sections.iter().map(|s| s.load.connections).collect();
    levels.dedup();
    if levels.len() < 2 {
        return None;
    }
    let mut lines: Vec<Line> = Vec::new();
    for section in &sections {
        for row in Row::planned(section, Phase::Bulk) {
            let Some(peak) = row.median(stats::peak_memory) else {
                continue;
            };
            let point = (f64::from(section.load.connections), peak);
            let name = &row.subject.name;
            match lines.iter_mut().find(|line| line.name == *name) {
                Some(line) => line.points.push(point),
                None => lines.push(Line {
                    name: name.clone(),
                    points: vec![point],
                }),
            }
        }
    }
    Some(Chart {
        file: "memory-against-connections".to_owned(),
        title: "Peak memory against connections".to_owned(),
        about: "Medians over rounds of resident memory at most, a fresh server for each number of connections.".to_owned(),
        figure: Figure::Lines(Lines {
            across: Axis::logarithmic("Connections", Unit::Count),
            up: Axis::linear("Peak memory (RSS)", Unit::Bytes),
            lines,
        }),
    })
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
    fn relays_that_did_not_do_the_same_are_compared_by_the_cost_of_a_round_trip() {
        let mut slow = example::relayed("bufio", 1, 130);
        let axis = |slow: &TrialRecord| {
            let plan = example::plan(&["splice", "bufio"], 1);
            let trials = [example::relayed("splice", 1, 100), slow.clone()];
            let report = crate::Report::new(&plan, &trials).unwrap();
            let sections = report.sections.iter().flat_map(of_section);
            let cpu = sections
                .into_iter()
                .find(|chart| chart.file.starts_with("cpu-"));
            match cpu.unwrap().figure {
                Figure::Bars(bars) => bars.axis.name,
                Figure::Lines(_) => panic!("bars"),
            }
        };
        assert_eq!(axis(&slow), "CPU time in the whole phase");
        slow.metrics
            .insert(Phase::Echo.metric(metric::SUCCEEDED), 70_000);
        assert_eq!(axis(&slow), "CPU time for each round trip");
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
        let middle = middle_round(&row).unwrap();
        assert_eq!(stats::duration(middle, Phase::Bulk), Some(1e10));
    }
}
