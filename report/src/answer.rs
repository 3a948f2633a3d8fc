//! What a reader wants to know first: who is best in what, under the first load that
//! has figures, how sure that is, and what to beware of.

use crate::compare::Verdict;
use crate::differences::Difference;
use crate::row::{Cell, Row};
use crate::section::Section;
use crate::stats::{self, Stat};
use crate::table::{Grid, Line};
use crate::units::Unit;
use crate::{marks, tables, tcp};
use wsbench_schema::{Load, Phase, Suite};

/// The title of its table.
pub const TITLE: &str = "In short";
/// The name of its file or sheet.
pub const FILE: &str = "in-short";

/// In what subjects can be best.
struct Contest {
    /// As a reader calls it.
    what: &'static str,
    phase: Phase,
    /// Its value a round; without it it is the TP99 of all rounds together.
    stat: Option<Stat>,
    unit: Unit,
    less_is_better: bool,
    /// What it is called where subjects are compared; see [`crate::differences`].
    measure: &'static str,
}

const fn contest(
    what: &'static str,
    phase: Phase,
    stat: Option<Stat>,
    unit: Unit,
    measure: &'static str,
) -> Contest {
    Contest {
        what,
        phase,
        stat,
        unit,
        less_is_better: true,
        measure,
    }
}

/// What is asked of servers of a suite under a load, what matters most first.
fn contests(suite: Suite, load: &Load) -> Vec<Contest> {
    let fastest = |what, phase, stat, unit, measure| Contest {
        less_is_better: false,
        ..contest(what, phase, Some(stat), unit, measure)
    };
    let cpu = |phase, measure| {
        contest(
            "Least server CPU time a message",
            phase,
            Some(stats::server_cpu_per_message),
            Unit::Duration,
            measure,
        )
    };
    let latency = |what, phase| contest(what, phase, None, Unit::Duration, "");
    let memory = |phase| {
        contest(
            "Least memory a connection",
            phase,
            Some(stats::memory_per_connection),
            Unit::Bytes,
            "",
        )
    };
    match (suite, &load.echo, &load.bulk) {
        (Suite::Websocket, Some(_), _) => vec![
            fastest(
                "Most echoes a second",
                Phase::Echo,
                stats::tps,
                Unit::PerSecond,
                "TPS",
            ),
            cpu(Phase::Echo, "Server CPU/msg"),
            latency("Lowest TP99", Phase::Echo),
            memory(Phase::Echo),
        ],
        (Suite::Websocket, None, _) if load.rate.is_some() => vec![
            cpu(Phase::Rate, "Server CPU/msg, open loop"),
            latency("Lowest TP99, intended", Phase::Rate),
            memory(Phase::Rate),
        ],
        (Suite::Websocket, None, _) => vec![
            fastest(
                "Most connections a second",
                Phase::Connect,
                stats::tps,
                Unit::PerSecond,
                "",
            ),
            latency("Lowest TP99 of connecting", Phase::Connect),
        ],
        (_, _, Some(_)) => vec![
            fastest(
                "Highest throughput",
                Phase::Bulk,
                tcp::stats::throughput,
                Unit::DataPerSecond,
                "Throughput",
            ),
            contest(
                "Least CPU time a GiB",
                Phase::Bulk,
                Some(tcp::stats::cpu_per_gib),
                Unit::Duration,
                "CPU/GiB",
            ),
            contest(
                "Least memory at its peak",
                Phase::Bulk,
                Some(tcp::stats::peak_memory),
                Unit::Bytes,
                "",
            ),
        ],
        (_, _, None) => vec![
            fastest(
                "Most round trips a second",
                Phase::Echo,
                stats::tps,
                Unit::PerSecond,
                "TPS",
            ),
            cpu(Phase::Echo, "Server CPU/msg"),
            latency("Lowest TP99", Phase::Echo),
        ],
    }
}

/// Who is best in what under one load.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The load; see [`Load::hash`].
    pub load_hash: String,
    /// A row for each contest; its notes are what to beware of.
    pub grid: Grid,
}

/// Of the first load under which there is anything to tell.
#[must_use]
pub fn of(sections: &[Section]) -> Option<Answer> {
    sections.iter().find_map(|section| {
        let contests = contests(section.suite, &section.load);
        let rows: Vec<Line> = contests.iter().filter_map(|c| c.row(section)).collect();
        let first = contests.first()?;
        (!rows.is_empty()).then(|| Answer {
            load_hash: section.load_hash.clone(),
            grid: Grid {
                file: FILE.to_owned(),
                title: TITLE.to_owned(),
                names: 1,
                header: [
                    "In what",
                    tables::subject_is_a(section.suite),
                    "Figure",
                    "Figure min-max",
                    "Next",
                    "Its figure",
                    "How sure",
                ]
                .map(str::to_owned)
                .into(),
                rows,
                notes: cautions(section, first.phase),
            },
        })
    })
}

/// What it means, a sentence each.
pub const DEFINITIONS: [&str; 3] = [
    "Of the subjects compared, without the yardstick: the best median over rounds, with the lowest and the highest round, \
     and the next one's; a percentile is of the samples of all rounds together.",
    "How sure: what is said of the best and every other subject, see Differences. `-`: that figure is not compared over rounds, \
     or there is nobody to compare with.",
    "Under it what to beware of; the tables of the load have all marks.",
];

/// More than these are a list that nobody reads.
const MOST_CAUTIONS: usize = 6;

/// The marks of those rows, in their words.
fn cautions(section: &Section, phase: Phase) -> Vec<String> {
    let mut found = marks::explanations(&Row::planned(section, phase));
    let more = found.len().saturating_sub(MOST_CAUTIONS);
    if more > 0 {
        found.truncate(MOST_CAUTIONS);
        found.push(format!("and {more} more, under the tables of the load"));
    }
    found
}

impl Contest {
    fn figure(&self, row: &Row<'_>) -> Option<f64> {
        match self.stat {
            Some(stat) => row.median(stat),
            None => row.latency(row.latency_name())?.percentile_ns(990),
        }
    }

    /// The best first; without the yardstick, which is none of those compared.
    fn ranked<'a>(&self, section: &'a Section) -> Vec<(Row<'a>, f64)> {
        let rows = Row::planned(section, self.phase).into_iter();
        let mut ranked: Vec<(Row<'a>, f64)> = rows
            .filter(|row| !row.is_yardstick())
            .filter_map(|row| Some((row, self.figure(&row)?)))
            .filter(|(_, value)| value.is_finite())
            .collect();
        ranked.sort_by(|(a, of), (b, to)| {
            let order = match self.less_is_better {
                true => of.total_cmp(to),
                false => to.total_cmp(of),
            };
            order.then_with(|| a.subject.name.cmp(&b.subject.name))
        });
        ranked
    }

    fn row(&self, section: &Section) -> Option<Line> {
        let ranked = self.ranked(section);
        let (best, value) = ranked.first()?;
        let next = ranked.get(1);
        let name = |row: &Row<'_>| Cell::Text(row.subject.name.clone());
        let are_alike = next.is_some_and(|(_, its)| its.total_cmp(value).is_eq());
        let cells = vec![
            Cell::Text(self.what.to_owned()),
            name(best),
            Cell::Number(*value, self.unit),
            self.stat
                .map_or(Cell::Missing, |stat| best.span(stat, self.unit)),
            next.map_or(Cell::Missing, |(row, _)| name(row)),
            Cell::of(next.map(|(_, value)| *value), self.unit),
            match are_alike {
                true => Cell::Text("the two are the same".to_owned()),
                false => self.sureness(section, &best.subject.name, ranked.len()),
            },
        ];
        Some(Line::of(&best.subject.name, cells))
    }

    /// What the comparison with every other says of the best.
    fn sureness(&self, section: &Section, best: &str, of: usize) -> Cell {
        let is_asked = |found: &&Difference| {
            found.measure.name == self.measure
                && found.subject == best
                && !section
                    .subjects
                    .iter()
                    .any(|s| s.name == found.to && s.is_yardstick())
        };
        let asked: Vec<&Difference> = section
            .findings
            .differences
            .iter()
            .filter(is_asked)
            .collect();
        if asked.is_empty() || of < 2 {
            return Cell::Missing;
        }
        let mut alike: Vec<&str> = Vec::new();
        for found in &asked {
            match found.answer.verdict {
                Verdict::Different(_) => {}
                Verdict::NoDifference => alike.push(&found.to),
                Verdict::TooFewRounds { .. } => return Cell::Text(found.verdict()),
            }
        }
        Cell::Text(match alike.as_slice() {
            [] => "better than every other".to_owned(),
            few if few.len() <= 3 => format!("no difference shown to {}", few.join(", ")),
            few => format!(
                "no difference shown to {} and {} more",
                few[..2].join(", "),
                few.len() - 2
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Report, example, text};
    use wsbench_schema::TrialRecord;

    fn answer(trials: &[TrialRecord]) -> Option<Answer> {
        let plan = example::plan(&[], 3);
        of(&Report::new(&plan, trials).unwrap().sections)
    }

    fn shown(answer: &Answer) -> Vec<String> {
        let rows = answer.grid.rows.iter();
        rows.map(|row| {
            row.cells
                .iter()
                .map(text::cell)
                .collect::<Vec<_>>()
                .join(" | ")
        })
        .collect()
    }

    fn rounds(name: &str, pace: u64, count: u32) -> Vec<TrialRecord> {
        let rounds = 1..=count;
        rounds
            .map(|round| example::paced(name, round, pace + u64::from(round)))
            .collect()
    }

    #[test]
    fn the_best_is_told_with_its_spread_the_next_one_and_how_sure_that_is() {
        let three = [
            rounds("axum", 100, 3),
            rounds("quick", 80, 3),
            rounds("floor", 60, 3),
        ];
        let found = answer(&three.concat()).unwrap();
        let lines = shown(&found);
        assert!(
            lines[0].starts_with("Most echoes a second | quick | 121951 | 120482-123457 | axum | 98039 | too few rounds ("),
            "{lines:?}"
        );
        assert!(lines[2].starts_with("Lowest TP99 | quick | "), "{lines:?}");
        let ten = [rounds("axum", 100, 10), rounds("quick", 80, 10)];
        let lines = shown(&answer(&ten.concat()).unwrap());
        assert!(
            lines[0].ends_with(" | better than every other"),
            "{lines:?}"
        );
        let mut alike = [rounds("axum", 100, 10), rounds("quick", 100, 10)];
        let lines = shown(&answer(&alike.concat()).unwrap());
        assert!(lines[0].ends_with(" | the two are the same"), "{lines:?}");
        alike[1][0] = example::paced("quick", 1, 109);
        let lines = shown(&answer(&alike.concat()).unwrap());
        assert!(
            lines[0].ends_with(" | no difference shown to quick"),
            "{lines:?}"
        );
    }

    #[test]
    fn a_load_without_figures_is_passed_over_and_marks_are_told() {
        let mut trials = vec![example::failed("axum", 1, "start", "no listener")];
        assert!(answer(&trials).is_none());
        let mut other = example::trial("quick", 1);
        other.load.payload_bytes = 4096;
        other.load_hash = other.load.hash();
        let mark = wsbench_schema::mark::SHARED_CPUS;
        other.marks.insert(mark.into(), "CPU 1 for both".into());
        trials.push(other.clone());
        let found = answer(&trials).unwrap();
        assert_eq!(found.load_hash, other.load_hash);
        let notes = &found.grid.notes;
        assert!(notes[0].starts_with("S (quick): "), "{notes:?}");
    }

    #[test]
    fn many_cautions_are_cut_short() {
        let mut trials = Vec::new();
        for index in 0..9 {
            let mut trial = example::trial(&format!("server{index}"), 1);
            let mark = wsbench_schema::mark::SHARED_CPUS;
            trial
                .marks
                .insert(mark.into(), format!("CPU {index} for both"));
            trials.push(trial);
        }
        let notes = answer(&trials).unwrap().grid.notes;
        assert_eq!(notes.len(), MOST_CAUTIONS + 1);
        assert_eq!(
            notes.last().unwrap(),
            "and 3 more, under the tables of the load"
        );
    }

    #[test]
    fn every_suite_has_an_answer() {
        for (trial, first) in [
            (
                example::relayed("splice", 1, 100),
                "Most round trips a second",
            ),
            (example::transferred("pool", 1, 100), "Highest throughput"),
        ] {
            let lines = shown(&answer(&[trial]).unwrap());
            assert!(lines[0].starts_with(first), "{lines:?}");
        }
    }
}
