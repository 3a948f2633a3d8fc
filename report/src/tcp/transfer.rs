//! The tables of servers that hold the buffers of bulk transfers.

use super::{
    CPU_PER_GIB, CPU_PER_GIB_SPAN, GIB_MEANS, LONGEST_STALL, MEMORY_MEANS, MEMORY_PER_CONNECTION,
    THROUGHPUT, THROUGHPUT_SPAN, TRANSFERRED, size, stats,
};
use crate::notes::{self, causes};
use crate::row::{Cell, Row};
use crate::section::Section;
use crate::stats::{Stat, median};
use crate::table::{self, Column, Grid, Table};
use crate::tables::{self, FAILED, MARKS, VERIFIED, VERIFIED_MEANS, column};
use crate::units::Unit;
use wsbench_schema::{Phase, Suite, metric};

/// Both tables, in the order of the report.
#[must_use]
pub fn tables() -> [Table; 2] {
    [transfers(), costs()]
}

/// Who was measured.
pub const STRATEGY: Column = column("Strategy", tables::name);

/// `500 conn x 2 MB`.
const SCENARIO: Column = column("Scenario", |row| {
    let bulk = row.load.bulk.as_ref();
    bulk.map_or(Cell::Missing, |bulk| {
        let (connections, size) = (row.load.connections, size(bulk.bytes_per_connection));
        Cell::Text(format!(
            "{connections} conn x {size}{}",
            super::slow(row.load)
        ))
    })
});
const DURATION: Column = column("Duration", |row| {
    Cell::of(row.median(stats::duration), Unit::Duration)
});
const PEAK_MEMORY: Column = column("Peak mem (RSS)", |row| {
    Cell::of(row.median(stats::peak_memory), Unit::Bytes)
});
const PEAK_HEAP_AND_STACKS: Column = column("Peak mem (heap + stacks)", |row| {
    Cell::of(row.median(stats::peak_heap_and_stacks), Unit::Bytes)
});
const ALLOCATIONS: Column = column("Allocations", |row| count(row, stats::allocations));

fn count(row: &Row<'_>, stat: Stat) -> Cell {
    Cell::of(row.median(stat), Unit::Count)
}

/// Medians of both sides.
fn change(row: &Row<'_>, names: [&str; 2], unit: Unit) -> Cell {
    let trials = row.subject.completed.iter();
    let changes = trials.filter_map(|trial| stats::change(trial, row.phase, names));
    let changes: Vec<[f64; 2]> = changes.collect();
    let side = |side: usize| median(changes.iter().map(|change| change[side]));
    match (side(0), side(1)) {
        (Some(before), Some(after)) => Cell::Change(before, after, unit),
        _ => Cell::Missing,
    }
}

/// `connection timed out (x9)`: dials that failed in the end, over all rounds.
fn dial_failures(row: &Row<'_>) -> Cell {
    let dials = Row {
        phase: Phase::Connect,
        ..*row
    };
    let causes = causes(&dials, "failed_");
    if causes.is_empty() {
        return Cell::of(dials.sum(metric::FAILED), Unit::Count);
    }
    let told = causes.iter().map(|(cause, count)| {
        let about = match cause.as_str() {
            "timed out" | "refused" | "reset" | "closed" => "connection ",
            _ => "",
        };
        format!("{about}{cause} (x{count})")
    });
    Cell::Text(told.collect::<Vec<_>>().join(", "))
}

fn by_throughput(row: &Row<'_>) -> Option<f64> {
    row.median(stats::throughput)
}

fn transfers() -> Table {
    let columns = [
        STRATEGY,
        DURATION,
        THROUGHPUT,
        PEAK_MEMORY,
        PEAK_HEAP_AND_STACKS,
        ALLOCATIONS,
        LONGEST_STALL,
        TRANSFERRED,
        FAILED,
        VERIFIED,
        THROUGHPUT_SPAN,
        column("Peak mem (RSS) min-max", |row| {
            row.span(stats::peak_memory, Unit::Bytes)
        }),
        MARKS,
    ];
    Table {
        file: "transfer",
        title: "Transfers",
        phase: Phase::Bulk,
        order: by_throughput,
        columns: columns.to_vec(),
        definitions: &[
            "Sorted by throughput = bytes that crossed, in either direction / Duration, which is from the start to the last of them.",
            "Peak mem (RSS): resident memory of the server at most. Peak mem (heap + stacks): what its allocator had given out at most, which it \
             counts itself, and the resident part of its stacks: the figure of the original, whose runtime counted both.",
            "Allocations: calls of the server's allocator since before the first connection. Longest stall: the longest time in which nothing came of a \
             transfer that was not over, of all connections and rounds.",
            "Transferred: of what was planned, in the round that came least far. Failed: transfers that were not whole and right.",
            "Min-max: the lowest and the highest of the rounds.",
            VERIFIED_MEANS,
        ],
        notes: notes::with_dials,
    }
}

fn costs() -> Table {
    let columns = [
        STRATEGY,
        CPU_PER_GIB,
        CPU_PER_GIB_SPAN,
        MEMORY_PER_CONNECTION,
        ALLOCATIONS,
        column("Allocated", |row| {
            Cell::of(row.median(stats::allocated), Unit::Bytes)
        }),
        column("Peak heap", |row| {
            Cell::of(row.typical(metric::SERVER_HEAP_PEAK), Unit::Bytes)
        }),
        column("Heap", |row| change(row, stats::HEAP, Unit::Bytes)),
        column("Stacks", |row| change(row, stats::STACKS, Unit::Bytes)),
        column("Threads", |row| change(row, stats::THREADS, Unit::Count)),
        column("Tasks", |row| change(row, stats::TASKS, Unit::Count)),
        column("Minor faults", |row| count(row, stats::minor_faults)),
        column("Major faults", |row| count(row, stats::major_faults)),
        column("Voluntary switches", |row| {
            count(row, stats::voluntary_switches)
        }),
        column("Involuntary switches", |row| {
            count(row, stats::involuntary_switches)
        }),
        column("Dial failures", dial_failures),
        MARKS,
    ];
    Table {
        file: "transfer_costs",
        title: "Costs of transfers",
        phase: Phase::Bulk,
        order: by_throughput,
        columns: columns.to_vec(),
        definitions: &[
            "In the order of the table above.",
            GIB_MEANS,
            MEMORY_MEANS,
            "Heap, Stacks, Threads, Tasks: before the first connection -> after the last transfer, when connections may be over. \
             Heap is that in use, counted by the server; stacks are the resident part of those of its threads; tasks are those of its runtime. \
             Allocations, faults and switches are of the same time.",
            "Faults: pages mapped in (minor), and read from a disk (major). Switches: a thread went to sleep (voluntary), or was made to wait.",
            "Dial failures: connections that were not established in the end, by cause.",
        ],
        notes: |rows| crate::marks::explanations(rows),
    }
}

/// The original's summary over all loads; none where nothing was transferred.
#[must_use]
pub fn summary(sections: &[Section]) -> Option<Grid> {
    let sections: Vec<&Section> = sections
        .iter()
        .filter(|section| section.suite == Suite::Transfer && section.load.bulk.is_some())
        .collect();
    if sections.iter().all(|section| section.subjects.is_empty()) {
        return None;
    }
    let columns = [
        SCENARIO,
        STRATEGY,
        DURATION,
        THROUGHPUT,
        PEAK_MEMORY,
        PEAK_HEAP_AND_STACKS,
        ALLOCATIONS,
        LONGEST_STALL,
        TRANSFERRED,
        THROUGHPUT_SPAN,
        MARKS,
    ];
    let rows = sections
        .iter()
        .flat_map(|section| Row::all(section, Phase::Bulk, by_throughput));
    let rows: Vec<Row<'_>> = rows.collect();
    Some(Grid {
        file: "summary".to_owned(),
        title: "Summary".to_owned(),
        names: 2,
        header: table::header(&columns),
        rows: rows
            .iter()
            .map(|row| table::line(&columns, row, 2))
            .collect(),
        notes: vec!["Marks and losses are explained under the tables of each load.".to_owned()],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_originals_columns_come_first() {
        let names: Vec<_> = transfers()
            .columns
            .iter()
            .map(|column| column.name)
            .collect();
        let original = "Strategy Duration Throughput Peak mem (RSS) Peak mem (heap + stacks) Allocations Longest stall";
        assert!(names.join(" ").starts_with(original));
    }
}
