//! Which pictures a report has, and what is in them: records in, [`Chart`]s out.
//! How they are drawn is not known here; those over time are made in [`over_time`].

mod over_time;

use crate::chart::{Axis, Bar, Bars, Chart, Dot, Dots, Figure, Line, Lines, Look, percentile};
use crate::latency::Latency;
use crate::row::Row;
use crate::scaling;
use crate::section::Section;
use crate::stats::{self as formulas, Stat};
use crate::tcp::{self, least, stats};
use crate::units::{Unit, counted};
use std::collections::BTreeMap;
use wsbench_schema::{Load, Phase, Suite, metric};

/// How each subject looks, in all pictures of a report.
#[derive(Clone, Debug, Default)]
pub struct Looks(BTreeMap<String, Look>);

impl Looks {
    /// In the order of the plan, over all loads.
    #[must_use]
    pub fn of(sections: &[Section]) -> Self {
        let mut looks = BTreeMap::new();
        let mut compared = 0;
        for subject in sections.iter().flat_map(|section| &section.subjects) {
            looks.entry(subject.name.clone()).or_insert_with(|| {
                if subject.is_yardstick() {
                    return Look::Reference;
                }
                compared += 1;
                Look::Subject(compared - 1)
            });
        }
        Self(looks)
    }

    fn get(&self, row: &Row<'_>) -> Look {
        let known = self.0.get(&row.subject.name).copied();
        known.unwrap_or(Look::Reference)
    }
}

/// The pictures of one load.
#[must_use]
pub fn of_section(section: &Section, looks: &Looks) -> Vec<Chart> {
    let charts = match (section.suite, &section.load.bulk) {
        (Suite::Websocket, _) => websocket(section, looks),
        (Suite::Relay, None) => round_trips(section, looks),
        (Suite::Relay, Some(_)) => relayed_transfers(section, looks),
        (Suite::Transfer, _) => over_time::of_transfers(section, looks),
    };
    charts.into_iter().filter(has_figures).collect()
}

/// The pictures that set loads side by side.
#[must_use]
pub fn across(sections: &[Section], looks: &Looks) -> Vec<Chart> {
    let memory = against_connections(sections, looks).into_iter();
    let speeds = scaling::against_connections(sections).into_iter();
    let speeds = speeds.map(|group| speed_against(&CONNECTIONS, &group, looks));
    let payloads = scaling::against_payload(sections).into_iter();
    let payloads = payloads.map(|group| speed_against(&PAYLOAD, &group, looks));
    let charts = memory.chain(speeds).chain(payloads);
    charts.filter(has_figures).collect()
}

fn has_figures(chart: &Chart) -> bool {
    match &chart.figure {
        Figure::Bars(bars) => bars.bars.iter().any(|bar| bar.value.is_some()),
        Figure::Lines(lines) => lines.lines.iter().any(|line| !line.points.is_empty()),
        Figure::Dots(dots) => !dots.dots.is_empty(),
    }
}

/// The names of all pictures, without what tells the load that most end with.
const NAMES: [&str; 19] = [
    crate::slo::CHART,
    "ns-per-op",
    "cpu",
    "least-cpu",
    "throughput",
    "throughput-over-time",
    "memory-over-time",
    "memory-against-connections",
    "tps",
    "achieved-rate",
    "cpu-per-message",
    "memory-per-connection",
    "echo-latency",
    "rate-latency",
    "tps-over-time",
    "cpu-over-time",
    "efficiency",
    "tps-against-connections",
    "tps-against-payload",
];

/// Whether a text is the hash of a load.
#[must_use]
pub fn is_hash(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What a picture of a load is called: `tps-1000x1024-<hash>`, of 1,000 connections and
/// messages of 1,024 bytes; the hash makes it that load's alone.
fn named(kind: &str, load: &Load, hash: &str) -> String {
    let bytes = match &load.bulk {
        Some(bulk) => bulk.bytes_per_connection,
        None => load.payload_bytes.into(),
    };
    format!("{kind}-{}x{bytes}-{hash}", load.connections)
}

/// Whether a picture can have this name, or could in an earlier version.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_size = |text: &str| {
        text.split_once('x')
            .is_some_and(|(a, b)| is_number(a) && is_number(b))
    };
    let without = |name, is: &dyn Fn(&str) -> bool| match str::rsplit_once(name, '-') {
        Some((rest, last)) if is(last) => rest,
        _ => name,
    };
    let kind = without(without(name, &is_hash), &is_size);
    NAMES.contains(&kind)
}

/// More lines than these cannot be followed.
const MOST_LINES: usize = 12;

/// The rows that become lines, in the order of the plan: the best, and the yardstick
/// beside them. `rank` is less for who is better. With it what is left out, and why.
fn best<'a>(
    rows: Vec<Row<'a>>,
    what: &str,
    rank: impl Fn(&Row<'a>) -> Option<f64>,
) -> (Vec<Row<'a>>, String) {
    let mut ranks: Vec<f64> = rows
        .iter()
        .filter(|row| !row.is_yardstick())
        .filter_map(&rank)
        .collect();
    ranks.sort_by(f64::total_cmp);
    let count = ranks.len();
    if count <= MOST_LINES {
        return (rows, String::new());
    }
    let last = ranks[MOST_LINES - 1];
    let kept = rows
        .into_iter()
        .filter(|row| row.is_yardstick() || rank(row).is_some_and(|rank| rank <= last));
    let mut kept: Vec<Row<'a>> = kept.collect();
    // Equals of the last are no more lines.
    let mut compared = 0;
    kept.retain(|row| {
        compared += usize::from(!row.is_yardstick());
        row.is_yardstick() || compared <= MOST_LINES
    });
    let left = counted((count - MOST_LINES) as u64, "subject");
    let told = format!(
        " {left} left out, so that lines can be followed: these {MOST_LINES} of {count} have {what}."
    );
    (kept, told)
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
    fn chart(&self, section: &Section, phase: Phase, looks: &Looks) -> Chart {
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
        self.of_rows(section, &rows, looks)
    }

    fn of_rows(&self, section: &Section, rows: &[Row<'_>], looks: &Looks) -> Chart {
        let bars = rows.iter().map(|row| self.bar(row, looks)).collect();
        let better = match self.less_is_better {
            true => "Less is better.",
            false => "More is better.",
        };
        let has_rounds = rows.iter().any(|row| row.subject.completed.len() > 1);
        let spread = if has_rounds { SPREAD } else { "" };
        let has_direct = rows.iter().any(|row| row.subject.is_direct);
        let direct = match (has_direct, rows.iter().any(Row::is_yardstick)) {
            (true, _) => " Grey: without a relay.",
            (_, true) => " Grey: the yardstick.",
            _ => "",
        };
        Chart {
            file: named(self.file, &section.load, &section.load_hash),
            title: format!("{}: {}", self.title, tcp::short(&section.load)),
            about: format!("{better}{spread}{direct}"),
            figure: Figure::Bars(Bars {
                axis: self.axis.clone(),
                bars,
            }),
        }
    }

    fn bar(&self, row: &Row<'_>, looks: &Looks) -> Bar {
        let ends = row.lowest(self.stat).zip(row.highest(self.stat));
        Bar {
            name: row.subject.name.clone(),
            value: row.median(self.stat),
            span: ends.filter(|_| row.subject.completed.len() > 1),
            look: looks.get(row),
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
fn round_trips(section: &Section, looks: &Looks) -> Vec<Chart> {
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
        time.chart(section, Phase::Echo, looks),
        cpu(section).chart(section, Phase::Echo, looks),
        least.of_rows(section, &rows, looks),
    ]
}

fn relayed_transfers(section: &Section, looks: &Looks) -> Vec<Chart> {
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
        throughput.chart(section, Phase::Bulk, looks),
        per_gib("cpu", "CPU time of the relay").chart(section, Phase::Bulk, looks),
        least.of_rows(section, &rows, looks),
    ]
}

/// What a WebSocket server is compared by.
fn websocket(section: &Section, looks: &Looks) -> Vec<Chart> {
    let (phase, speed) = match section.load.echo {
        Some(_) => (
            Phase::Echo,
            Measure {
                file: "tps",
                title: "Echoes a second (TPS)",
                axis: Axis::linear("Echoes", Unit::PerSecond),
                stat: formulas::tps,
                less_is_better: false,
                of_direct: false,
            },
        ),
        None => (
            Phase::Rate,
            Measure {
                file: "achieved-rate",
                title: "Answers a second",
                axis: Axis::linear("Answers", Unit::PerSecond),
                stat: formulas::achieved_rate,
                less_is_better: false,
                of_direct: false,
            },
        ),
    };
    let cpu = Measure {
        file: "cpu-per-message",
        title: "CPU time of the server for each message",
        axis: Axis::linear(CPU, Unit::Duration),
        stat: formulas::server_cpu_per_message,
        less_is_better: true,
        of_direct: false,
    };
    let memory = Measure {
        file: "memory-per-connection",
        title: "Memory of the server for each connection",
        axis: Axis::linear(MEMORY, Unit::Bytes),
        stat: formulas::memory_per_connection,
        less_is_better: true,
        of_direct: false,
    };
    let mut charts = vec![
        speed.chart(section, phase, looks),
        cpu.chart(section, phase, looks),
        memory.chart(section, phase, looks),
        efficiency(section, phase, looks),
    ];
    charts.extend(latencies(section, Phase::Echo, looks));
    charts.extend(latencies(section, Phase::Rate, looks));
    charts.extend(over_time::of_trials(section, phase, speed.stat, looks));
    charts
}

const CPU: &str = "CPU time for each message";
const MEMORY: &str = "Memory for each connection";

/// CPU time against memory, of those that have both.
fn efficiency(section: &Section, phase: Phase, looks: &Looks) -> Chart {
    let rows = Row::planned(section, phase);
    let dot = |row: &Row<'_>| {
        let memory = row.median(formulas::memory_per_connection)?;
        let cpu = row.median(formulas::server_cpu_per_message)?;
        Some(Dot {
            name: row.subject.name.clone(),
            at: (memory, cpu),
            look: looks.get(row),
        })
    };
    let dots: Vec<Dot> = rows.iter().filter_map(dot).collect();
    // The yardstick is next to nothing, and must not decide how others are laid out.
    let compared = || dots.iter().filter(|dot| dot.look != Look::Reference);
    Chart {
        file: named("efficiency", &section.load, &section.load_hash),
        title: format!("Efficiency: {}", tcp::short(&section.load)),
        about: "Less is better in both: the best are at the lower left. Medians over rounds."
            .to_owned(),
        figure: Figure::Dots(Dots {
            across: spread(MEMORY, Unit::Bytes, compared().map(|dot| dot.at.0)),
            up: spread(CPU, Unit::Duration, compared().map(|dot| dot.at.1)),
            dots,
        }),
    }
}

/// In equal differences, and where these would heap up most figures, in equal factors.
fn spread(name: &str, unit: Unit, values: impl Iterator<Item = f64>) -> Axis {
    const MANY: f64 = 20.0;
    let (least, most) = values.fold((f64::INFINITY, 0.0), |(least, most), value: f64| {
        (value.min(least), value.max(most))
    });
    match least > 0.0 && most > least * MANY {
        true => Axis::logarithmic(name, unit),
        false => Axis::linear(name, unit),
    }
}

/// Percentiles of the latencies of a phase, up to those that the samples support.
fn latencies(section: &Section, phase: Phase, looks: &Looks) -> Option<Chart> {
    let (file, title, name, beside, about) = match phase {
        Phase::Rate => (
            "rate-latency",
            "Latency at a fixed rate by percentile",
            metric::INTENDED_LATENCY,
            Some(metric::ACTUAL_LATENCY),
            " Thick: from when a message was due; thin: from when it was sent.",
        ),
        _ => (
            "echo-latency",
            "Latency of echoes by percentile",
            metric::ECHO_LATENCY,
            None,
            "",
        ),
    };
    let rows = Row::planned(section, phase);
    let high = |row: &Row<'_>| {
        let latency = row.latency(name)?;
        latency.percentile_ns(990).or(latency.percentile_ns(500))
    };
    let (rows, left) = best(rows, "the lowest TP99", high);
    let lines = rows.iter().filter_map(|row| {
        let latency = row.latency(name)?;
        let beside = beside.and_then(|name| row.latency(name));
        Some(Line {
            name: row.subject.name.clone(),
            points: latency.curve().to_vec(),
            beside: beside.map_or(Vec::new(), |latency| latency.curve().to_vec()),
            look: looks.get(row),
            tip: Some(percentiles(latency)),
        })
    });
    let lines: Vec<Line> = lines.collect();
    let of_lines = |line: &Line| {
        line.points
            .iter()
            .chain(&line.beside)
            .map(|point| point.1)
            .collect::<Vec<_>>()
    };
    let up = spread("Latency", Unit::Duration, lines.iter().flat_map(of_lines));
    (!lines.is_empty()).then(|| Chart {
        file: named(file, &section.load, &section.load_hash),
        title: format!("{title}: {}", tcp::short(&section.load)),
        about: format!(
            "Less is better. All rounds of a subject together, as far as at least one sample is beyond.{about}{left}"
        ),
        figure: Figure::Lines(Lines {
            across: Axis::percentiles(),
            up,
            lines,
        }),
    })
}

/// A few of them, for who points at a line.
fn percentiles(latency: &Latency) -> String {
    let curve = latency.curve();
    let told = [2.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6, 1e7]
        .into_iter()
        .filter_map(|beyond| {
            let near = |point: &&(f64, f64)| (point.0 / beyond - 1.0).abs() < 1e-6;
            let (_, ns) = curve.iter().find(near)?;
            Some(format!(
                "{} {}",
                percentile(beyond),
                Unit::Duration.show(*ns)
            ))
        });
    told.collect::<Vec<_>>().join(", ")
}

/// What grows from load to load.
struct Against {
    file: &'static str,
    title: &'static str,
    name: &'static str,
    unit: Unit,
    of: fn(&Load) -> u32,
}

const CONNECTIONS: Against = Against {
    file: "tps-against-connections",
    title: "TPS against connections",
    name: "Connections",
    unit: Unit::Count,
    of: |load| load.connections,
};
const PAYLOAD: Against = Against {
    file: "tps-against-payload",
    title: "TPS against payload",
    name: "Payload of a message",
    unit: Unit::Bytes,
    of: |load| load.payload_bytes,
};

/// Echoes a second over loads that differ in one thing.
fn speed_against(what: &Against, group: &[&Section], looks: &Looks) -> Chart {
    let mut group = group.to_vec();
    group.sort_by_key(|section| (what.of)(&section.load));
    let mut lines: Vec<Line> = Vec::new();
    let mut told = String::new();
    // Whoever is drawn is chosen once, under the largest load.
    let mut drawn: Option<Vec<String>> = None;
    for section in group.iter().rev() {
        let mut rows = Row::planned(section, Phase::Echo);
        match &drawn {
            Some(drawn) => rows.retain(|row| drawn.contains(&row.subject.name)),
            None => {
                (rows, told) = best(rows, "the most under the largest load", |row| {
                    row.median(formulas::tps).map(|tps| -tps)
                });
                if !told.is_empty() {
                    drawn = Some(rows.iter().map(|row| row.subject.name.clone()).collect());
                }
            }
        }
        for row in rows {
            let Some(tps) = row.median(formulas::tps) else {
                continue;
            };
            let point = (f64::from((what.of)(&section.load)), tps);
            let name = &row.subject.name;
            match lines.iter_mut().find(|line| line.name == *name) {
                Some(line) => line.points.insert(0, point),
                None => lines.push(line(&row, vec![point], looks)),
            }
        }
    }
    let load = group
        .first()
        .map(|section| (&section.load, &section.load_hash));
    let (rest, hash) = load.map_or((String::new(), ""), |(load, hash)| {
        let rest = match what.unit {
            Unit::Bytes => counted(load.connections.into(), "connection"),
            _ => format!("messages of {}", tcp::size(load.payload_bytes.into())),
        };
        (rest, hash)
    });
    Chart {
        file: format!("{}-{hash}", what.file),
        title: format!("{}: {rest}", what.title),
        about: format!("More is better. Medians over rounds of the echo phase.{told}"),
        figure: Figure::Lines(Lines {
            across: Axis::logarithmic(what.name, what.unit),
            up: Axis::linear("Echoes", Unit::PerSecond),
            lines,
        }),
    }
}

fn line(row: &Row<'_>, points: Vec<(f64, f64)>, looks: &Looks) -> Line {
    Line {
        name: row.subject.name.clone(),
        points,
        beside: Vec::new(),
        look: looks.get(row),
        tip: None,
    }
}

/// Peak memory of the strategies over the loads, if they differ in their connections.
fn against_connections(sections: &[Section], looks: &Looks) -> Option<Chart> {
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
                None => lines.push(line(&row, vec![point], looks)),
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
    use wsbench_schema::TrialRecord;

    #[test]
    fn relays_that_did_not_do_the_same_are_compared_by_the_cost_of_a_round_trip() {
        let mut slow = example::relayed("bufio", 1, 130);
        let axis = |slow: &TrialRecord| {
            let plan = example::plan(&["splice", "bufio"], 1);
            let trials = [example::relayed("splice", 1, 100), slow.clone()];
            let report = crate::Report::new(&plan, &trials).unwrap();
            let sections = report
                .sections
                .iter()
                .flat_map(|section| of_section(section, &Looks::default()));
            let cpu = sections
                .into_iter()
                .find(|chart| chart.file.starts_with("cpu-"));
            match cpu.unwrap().figure {
                Figure::Bars(bars) => bars.axis.name,
                _ => panic!("bars"),
            }
        };
        assert_eq!(axis(&slow), "CPU time in the whole phase");
        slow.metrics
            .insert(Phase::Echo.metric(metric::SUCCEEDED), 70_000);
        assert_eq!(axis(&slow), "CPU time for each round trip");
    }

    #[test]
    fn a_picture_is_known_by_its_name_with_its_load_or_without() {
        for name in [
            "tps-1000x1024-ca4f5d9c808c4d06",
            "memory-over-time-500x2000000-cbc25740329c2da7",
            "memory-against-connections",
            "ns-per-op-02f9ff1efa36de08",
        ] {
            assert!(is_name(name), "{name}");
        }
        for name in ["mine", "tps-mine", "tps-1000x1024-mine", "1000x1024"] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn of_many_subjects_the_best_become_lines_and_it_is_told() {
        let names: Vec<String> = (0..15).map(|index| format!("s{index}")).collect();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.push("floor");
        let pace = (100..).step_by(10);
        let trials = names.iter().zip(pace);
        let trials: Vec<TrialRecord> = trials
            .map(|(name, pace)| example::paced(name, 1, pace))
            .collect();
        let report = crate::Report::new(&example::plan(&names, 1), &trials).unwrap();
        let looks = Looks::of(&report.sections);
        let charts = of_section(&report.sections[0], &looks);
        let curve = charts
            .iter()
            .find(|chart| chart.file.starts_with("echo-latency"));
        let curve = curve.unwrap();
        let Figure::Lines(lines) = &curve.figure else {
            panic!("lines");
        };
        let drawn: Vec<&str> = lines.lines.iter().map(|line| &*line.name).collect();
        let expected: Vec<&str> = names[..12].iter().copied().chain(["floor"]).collect();
        assert_eq!(drawn, expected);
        assert!(
            curve.about.contains("3 subjects left out"),
            "{}",
            curve.about
        );
    }
}
