//! The three with the least CPU, which the original sets apart.

use super::{CPU_PER_GIB, own, relay, stats};
use crate::row::Row;
use crate::section::Section;
use crate::table::{self, Grid, Line};
use crate::tables::column;
use crate::units::Unit;
use wsbench_schema::{Phase, Suite};

/// What stands above them.
pub const TITLE: &str = "The three with the least CPU";
const COUNT: usize = 3;

/// The relays that use least CPU for what they move, least first. Where a load ends by
/// time they did not move the same, so that CPU time alone says nothing.
#[must_use]
pub fn rows(section: &Section) -> Vec<Row<'_>> {
    let phase = match section.load.bulk {
        Some(_) => Phase::Bulk,
        None => Phase::Echo,
    };
    let order = |row: &Row<'_>| own(row, stats::cpu_per_gib).map(|cost| -cost);
    let mut rows = Row::all(section, phase, order);
    rows.retain(|row| order(row).is_some());
    rows.truncate(COUNT);
    rows
}

/// A table of them; none where there are not more than three to choose from.
#[must_use]
pub fn grid(section: &Section) -> Option<Grid> {
    let compared = section.subjects.iter().filter(|subject| !subject.is_direct);
    if section.suite != Suite::Relay || compared.count() <= COUNT {
        return None;
    }
    let rows = rows(section);
    let first = rows.first()?;
    let columns = [
        relay::METHOD,
        relay::CPU,
        match first.phase {
            Phase::Bulk => super::THROUGHPUT,
            _ => relay::CPU_PER_MESSAGE,
        },
        CPU_PER_GIB,
        column("CPU s/GiB min-max", |row| {
            row.span(stats::cpu_per_gib, Unit::Seconds)
        }),
    ];
    let line = |row: &Row<'_>| {
        let cells = columns.iter().map(|column| (column.cell)(row));
        Line::of(&row.subject.name, cells.collect())
    };
    Some(Grid {
        file: "least-cpu".to_owned(),
        title: TITLE.to_owned(),
        names: 1,
        header: table::header(&columns),
        rows: rows.iter().map(line).collect(),
        notes: Vec::new(),
    })
}
