//! Loads that differ only in their connections, side by side: what more
//! connections do to each subject.

use crate::marks;
use crate::notes;
use crate::row::{Cell, Row};
use crate::section::Section;
use crate::stats;
use crate::table::{self, Column, Grid};
use crate::tables::{self, column};
use crate::units::Unit;
use wsbench_schema::{Load, Phase, Suite, metric};

/// What stands above it.
const TITLE: &str = "Against connections";

fn columns() -> [Column; 10] {
    [
        tables::FRAMEWORK,
        column("Conns", |row| {
            Cell::Number(row.load.connections.into(), Unit::Count)
        }),
        tables::TPS,
        tables::TP50,
        tables::TP99,
        tables::SERVER_CPU,
        column("MEM Max", |row| {
            Cell::of(row.highest(stats::mem_max), Unit::Bytes)
        }),
        tables::MEMORY_PER_CONNECTION,
        column("Failed", |row| {
            Cell::of(row.sum(metric::FAILED), Unit::Count)
        }),
        column("Marks", |row| Cell::Text(marks::symbols(row))),
    ]
}

/// A table for each group of loads that differ only in their connections, with
/// their echo phases; none where there is nothing to set side by side. Of WebSocket
/// servers: [`crate::tcp::overview`] does it for the others.
#[must_use]
pub fn grids(sections: &[Section]) -> Vec<Grid> {
    let groups = against_connections(sections);
    groups.iter().map(|group| grid(group)).collect()
}

/// Loads of WebSocket servers that echo and differ only in their connections.
pub(crate) fn against_connections(sections: &[Section]) -> Vec<Vec<&Section>> {
    groups(sections, plain)
}

/// Loads of WebSocket servers that echo and differ only in the size of a message.
pub(crate) fn against_payload(sections: &[Section]) -> Vec<Vec<&Section>> {
    groups(sections, |load| Load {
        payload_bytes: 0,
        ..load.clone()
    })
}

/// Those of which the rest of the load is the same, if there are several.
fn groups(sections: &[Section], rest: impl Fn(&Load) -> Load) -> Vec<Vec<&Section>> {
    let mut groups: Vec<Vec<&Section>> = Vec::new();
    let is_shown = |one: &&Section| one.suite == Suite::Websocket && one.load.echo.is_some();
    for section in sections.iter().filter(is_shown) {
        let group = groups
            .iter_mut()
            .find(|group| rest(&group[0].load) == rest(&section.load));
        match group {
            Some(group) => group.push(section),
            None => groups.push(vec![section]),
        }
    }
    groups.retain(|group| group.len() > 1);
    groups
}

/// The load without what follows from its connections.
fn plain(load: &Load) -> Load {
    let mut plain = Load {
        connections: 1,
        after_connections: 0,
        ..load.clone()
    };
    if let Some(echo) = &mut plain.echo {
        echo.warmup_echoes = 0;
    }
    plain
}

fn grid(group: &[&Section]) -> Grid {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for section in group {
        rows.extend(Row::all(section, Phase::Echo, |row| row.median(stats::tps)));
    }
    // Subjects as in the largest load's table, the yardstick last.
    let mut order: Vec<&str> = Vec::new();
    for row in rows.iter().rev() {
        if !order.contains(&row.subject.name.as_str()) {
            order.push(&row.subject.name);
        }
    }
    order.reverse();
    rows.sort_by_key(|row| {
        let place = order.iter().position(|name| *name == row.subject.name);
        (place, row.load.connections)
    });
    let columns = columns();
    let mut notes = notes::under(&rows);
    notes.insert(0, about(group));
    Grid {
        file: "against-connections".to_owned(),
        title: TITLE.to_owned(),
        names: 2,
        header: table::header(&columns),
        rows: rows
            .iter()
            .map(|row| table::line(&columns, row, 2))
            .collect(),
        notes,
    }
}

fn about(group: &[&Section]) -> String {
    let payload = group[0].load.payload_bytes;
    let how = match group
        .iter()
        .any(|section| section.load.after_connections > 0)
    {
        true => {
            "The same server process or processes for all steps of a subject. MEM/conn is what they \
             grew by while the step connected, for each connection that it opened; that may be less \
             than of a fresh server, since memory that earlier steps freed is used again. MEM Max is \
             of the echo phase, and has in it what earlier connections, echoes and rate phases left."
        }
        false => "A fresh server process for each number of connections.",
    };
    format!("Echoes of {payload} bytes. {how}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{example, section, text};
    use wsbench_schema::TrialRecord;

    fn step(name: &str, after: u32, connections: u32, pace: u64) -> TrialRecord {
        let mut trial = example::paced(name, 1, pace);
        trial.load.after_connections = after;
        trial.load.connections = connections;
        trial.load_hash = trial.load.hash();
        trial
    }

    fn grids_of(trials: &[TrialRecord]) -> Vec<Grid> {
        let plan = wsbench_schema::RunPlan {
            loads: Vec::new(),
            ..example::plan(&["axum", "floor", "ntex"], 1)
        };
        let trials: Vec<&TrialRecord> = trials.iter().collect();
        grids(&section::sections(&plan, &trials))
    }

    #[test]
    fn the_steps_of_each_subject_stand_together_and_in_order() {
        let mut broken = example::failed("ntex", 1, "connect", "no memory");
        broken.load = step("ntex", 10, 100, 1).load;
        broken.load_hash = broken.load.hash();
        let grids = grids_of(&[
            step("axum", 10, 100, 100),
            step("axum", 0, 10, 50),
            step("floor", 0, 10, 40),
            step("floor", 10, 100, 80),
            step("ntex", 0, 10, 50),
            broken,
        ]);
        let [grid] = &grids[..] else {
            panic!("{grids:?}");
        };
        let shown: Vec<Vec<String>> = grid
            .rows
            .iter()
            .map(|row| row.cells[..2].iter().map(text::cell).collect())
            .collect();
        let expected = [
            ["axum", "10"],
            ["axum", "100"],
            ["ntex", "10"],
            ["ntex", "100"],
            ["floor (yardstick)", "10"],
            ["floor (yardstick)", "100"],
        ];
        assert_eq!(shown, expected);
        assert!(
            grid.rows
                .iter()
                .all(|row| row.cells.len() == grid.header.len())
        );
        assert!(text::cell(&grid.rows[3].cells[2]).contains("no memory"));
        let note = &grid.notes[0];
        assert!(note.contains("The same server process or processes for all steps"));
        assert!(note.contains("grew by while the step connected"), "{note}");
        assert!(note.contains("less than of a fresh server"), "{note}");
        assert!(note.contains("MEM Max is of the echo phase"), "{note}");
    }

    #[test]
    fn loads_that_differ_in_more_are_not_set_side_by_side() {
        let mut other = step("axum", 0, 100, 100);
        other.load.payload_bytes = 8;
        other.load_hash = other.load.hash();
        assert!(grids_of(&[step("axum", 0, 10, 100), other]).is_empty());
        let fresh = grids_of(&[step("axum", 0, 10, 100), step("axum", 0, 100, 100)]);
        assert!(fresh[0].notes[0].contains("A fresh server process"));
    }
}
