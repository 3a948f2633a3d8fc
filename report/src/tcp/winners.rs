//! Which method wins at which size: a line a load, a column a method.

use super::{short, stats};
use crate::compare::Verdict;
use crate::differences::Difference;
use crate::row::{Cell, Place};
use crate::section::{Section, Subject};
use crate::stats::{Stat, median, server_cpu_per_message};
use crate::table::{Grid, Line};
use crate::units::Unit;
use wsbench_schema::{Phase, Suite};

const TITLE: &str = "Which method wins at which size";

/// The table; none where there is but one load, or nobody to win.
#[must_use]
pub fn grid(sections: &[Section]) -> Option<Grid> {
    let sections: Vec<&Section> = sections
        .iter()
        .filter(|section| section.suite == Suite::Relay)
        .collect();
    let mut names: Vec<&str> = Vec::new();
    for subject in sections.iter().flat_map(|section| &section.subjects) {
        if !subject.is_direct && !names.contains(&subject.name.as_str()) {
            names.push(&subject.name);
        }
    }
    if sections.len() < 2 || names.len() < 2 {
        return None;
    }
    let mut header = vec!["CPU s/GiB".to_owned()];
    header.extend(names.iter().map(|name| (*name).to_owned()));
    let rows: Vec<Line> = sections
        .iter()
        .map(|section| line(section, &names))
        .collect();
    let cells = || rows.iter().flat_map(|row| &row.cells);
    let is_placed = |cell: &Cell| matches!(cell, Cell::Placed(..));
    if !cells().any(is_placed) {
        return None;
    }
    let is_open = |cell: &Cell| matches!(cell, Cell::Placed(_, _, Place::TooFewRounds));
    let is_open = cells().any(is_open);
    let needed = sections.iter().filter_map(|section| needed(section)).max();
    Some(Grid {
        file: "winners".to_owned(),
        title: TITLE.to_owned(),
        names: 1,
        header,
        rows,
        notes: notes(needed.filter(|_| is_open)),
    })
}

fn notes(needed: Option<usize>) -> Vec<String> {
    let mut notes = vec![
        "CPU seconds of the relay for each GiB relayed: the least of a line is in bold (*). \
         ~: a difference to it could have been shown and was not; that does not prove that there is none."
            .to_owned(),
    ];
    notes.extend(needed.map(|needed| {
        format!("?: too few rounds to show a difference to the least ({needed} are needed).")
    }));
    notes
}

/// Rounds that would have been enough, if there were too few.
fn needed(section: &Section) -> Option<usize> {
    let verdicts = section
        .findings
        .differences
        .iter()
        .map(|found| found.answer.verdict);
    let needed = verdicts.filter_map(|verdict| match verdict {
        Verdict::TooFewRounds { needed } => Some(needed),
        Verdict::NoDifference | Verdict::Different(_) => None,
    });
    needed.max()
}

/// By what relays were compared, which for one size is the same as CPU time a GiB.
fn compared(section: &Section) -> (Phase, Stat) {
    match section.load.bulk {
        Some(_) => (Phase::Bulk, stats::cpu_per_gib),
        None => (Phase::Echo, server_cpu_per_message),
    }
}

fn middle(subject: &Subject, phase: Phase, stat: Stat) -> Option<f64> {
    let trials = subject.completed.iter();
    median(trials.filter_map(|trial| stat(trial, phase)))
}

fn line(section: &Section, names: &[&str]) -> Line {
    let (phase, stat) = compared(section);
    let with_figures = section.subjects.iter().filter_map(|subject| {
        let cost = middle(subject, phase, stat).filter(|_| !subject.is_direct)?;
        Some((cost, subject.name.as_str()))
    });
    let first = with_figures.min_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)));
    let mut cells = vec![Cell::Text(short(&section.load))];
    cells.extend(names.iter().map(|name| {
        let subject = section.subjects.iter().find(|found| found.name == *name);
        let cost = subject.and_then(|subject| middle(subject, phase, stats::cpu_per_gib));
        match (cost, first) {
            (Some(cost), Some((_, first))) => {
                let place = place(&section.findings.differences, phase, first, name);
                Cell::Placed(cost, Unit::Seconds, place)
            }
            _ => Cell::Missing,
        }
    }));
    Line {
        subject: None,
        cells,
    }
}

fn place(differences: &[Difference], phase: Phase, first: &str, name: &str) -> Place {
    if name == first {
        return Place::First;
    }
    let asked = differences.iter().find(|found| {
        let is_cost = found.measure.phase == phase && found.measure.less_is_better;
        is_cost && found.subject == first && found.to == name
    });
    match asked.map(|found| found.answer.verdict) {
        Some(Verdict::Different(_)) => Place::Behind,
        Some(Verdict::NoDifference) => Place::NotShown,
        Some(Verdict::TooFewRounds { .. }) | None => Place::TooFewRounds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{example, section, text};
    use wsbench_schema::{RunPlan, TrialRecord};

    /// Rounds of two loads in which everything took these percentages of the usual time.
    fn rounds(name: &str, paces: &[u64]) -> Vec<TrialRecord> {
        let paces = (1..).zip(paces);
        let trials = paces.flat_map(|(round, pace)| {
            let mut large = example::relayed(name, round, *pace);
            large.load.payload_bytes = 65_536;
            large.load_hash = large.load.hash();
            [example::relayed(name, round, *pace), large]
        });
        trials.collect()
    }

    fn shown(records: &[TrialRecord]) -> Vec<String> {
        let plan = RunPlan {
            loads: Vec::new(),
            ..example::plan(&["splice", "io_copy", "bufio", "direct"], 9)
        };
        let trials = section::last_attempts(&plan, records).unwrap();
        let grid = grid(&section::sections(&plan, &trials)).unwrap();
        let lines = grid.rows.iter().map(|row| {
            let cells: Vec<String> = row.cells.iter().map(text::cell).collect();
            cells.join(" | ")
        });
        [grid.header.join(" | ")]
            .into_iter()
            .chain(lines)
            .chain(grid.notes)
            .collect()
    }

    #[test]
    fn the_winner_and_those_not_shown_to_be_worse_are_marked() {
        let paces: Vec<u64> = (100..109).collect();
        let near: Vec<u64> = (101..110).collect();
        let far: Vec<u64> = (150..159).collect();
        let mut records = [
            rounds("splice", &paces),
            rounds("io_copy", &near),
            rounds("bufio", &far),
        ]
        .concat();
        let direct = rounds("direct", &paces);
        records.extend(direct.into_iter().map(example::as_direct));
        let lines = shown(&records);
        assert_eq!(lines[0], "CPU s/GiB | splice | io_copy | bufio");
        let small = lines
            .iter()
            .find(|line| line.starts_with("echo 10 KiB x 1000 "))
            .unwrap();
        assert_eq!(small, "echo 10 KiB x 1000 | 0.491 * | 0.495 ~ | 0.727");
        assert_eq!(lines.len(), 4, "{lines:?}");
    }

    #[test]
    fn too_few_rounds_are_said_to_be_too_few() {
        let records = [rounds("splice", &[100]), rounds("io_copy", &[150])].concat();
        let lines = shown(&records);
        assert!(lines[1].ends_with(" ?"), "{lines:?}");
        assert!(
            lines
                .last()
                .unwrap()
                .starts_with("?: too few rounds to show"),
            "{lines:?}"
        );
    }
}
