//! The tables of relays: what a way of copying costs, beside the client talking to
//! the origin without any relay.

use super::{
    CPU_PER_GIB, CPU_PER_GIB_SPAN, CPUS_BUSY_MEANS, CPUS_BUSY_PER_GIB, GIB_MEANS, LONGEST_STALL,
    MEMORY_MEANS, MEMORY_PER_CONNECTION, THROUGHPUT, THROUGHPUT_SPAN, TRANSFERRED, own, stats,
};
use crate::row::{Cell, Row};
use crate::table::{Column, Table};
use crate::tables::{self, FAILED, MARKS, PERCENTILES, TP50, TP99, TPS, VERIFIED, VERIFIED_MEANS};
use crate::tables::{column, sum};
use crate::units::Unit;
use crate::{notes, stats as formulas};
use wsbench_schema::{Phase, metric};

/// Both tables, in the order of the report.
#[must_use]
pub fn tables() -> [Table; 2] {
    [round_trips(), transfers()]
}

/// Who was measured.
pub const METHOD: Column = column("Method", tables::name);
/// CPU time in the whole phase, as the original reports it.
pub const CPU: Column = column("CPU (ms)", |row| {
    Cell::of(own(row, stats::cpu), Unit::Milliseconds)
});
/// CPU time of a round trip.
pub const CPU_PER_MESSAGE: Column = column("CPU/msg (us)", |row| {
    Cell::of(
        own(row, formulas::server_cpu_per_message),
        Unit::Microseconds,
    )
});
const SYSCALLS: Column = column("Syscalls/MiB", |row| {
    Cell::of(own(row, stats::syscalls_per_mib), Unit::Ratio)
});

/// How much longer half of the round trips take than those without a relay, of all
/// rounds together.
fn median_over_direct(row: &Row<'_>) -> Option<f64> {
    let direct = row.yardstick.filter(|direct| direct.is_direct)?;
    let median = |row: &Row<'_>| row.latency(row.latency_name())?.percentile_ns(500);
    let without = Row {
        subject: direct,
        ..*row
    };
    (!row.subject.is_direct).then_some(())?;
    Some(median(row)? - median(&without)?)
}

fn round_trips() -> Table {
    let columns = [
        METHOD,
        column("ns/op", |row| {
            Cell::of(row.median(stats::ns_per_operation), Unit::Count)
        }),
        CPU,
        CPU_PER_MESSAGE,
        TPS,
        TP50,
        TP99,
        column("TP50 over direct", |row| {
            Cell::of(median_over_direct(row), Unit::Duration)
        }),
        column("TPS in % of direct's", |row| match row.subject.is_direct {
            true => Cell::Missing,
            false => Cell::of(row.percent_of_yardstick(formulas::tps), Unit::Percent),
        }),
        MEMORY_PER_CONNECTION,
        SYSCALLS,
        FAILED,
        VERIFIED,
        column("Round trips", |row| sum(row, metric::SUCCEEDED)),
        column("ns/op min-max", |row| {
            row.span(stats::ns_per_operation, Unit::Count)
        }),
        column("CPU/msg min-max", |row| match row.subject.is_direct {
            true => Cell::Missing,
            false => row.span(formulas::server_cpu_per_message, Unit::Microseconds),
        }),
        CPU_PER_GIB,
        CPUS_BUSY_PER_GIB,
        MARKS,
    ];
    Table {
        file: "relay",
        title: "Relayed round trips",
        phase: Phase::Echo,
        order: |row| row.median(stats::ns_per_operation).map(|ns| -ns),
        columns: columns.to_vec(),
        definitions: &[
            "Sorted by ns/op = Used / round trips, of the whole load and so with all that were in flight together: not the latency of one. \
             A round trip is one message there and back. `direct`, the client at the origin without a relay between them, stands last.",
            "CPU (ms): of the relay's process tree in the whole phase, as the original reports it. CPU/msg: the same for each round trip. \
             What `direct` used is the origin's and is not shown.",
            "TP50 over direct = TP50 - TP50 of `direct`. TPS in % of direct's: what is left of the speed without a relay.",
            GIB_MEANS,
            MEMORY_MEANS,
            "Syscalls/MiB: of the relay, counted in a pass of its own that is in no other figure.",
            CPUS_BUSY_MEANS,
            "Min-max: the lowest and the highest of the rounds.",
            PERCENTILES,
            VERIFIED_MEANS,
        ],
        notes: |rows| {
            let mut notes: Vec<String> = round_trips_told(rows).into_iter().collect();
            notes.extend(below(rows));
            notes
        },
    }
}

fn transfers() -> Table {
    let columns = [
        METHOD,
        THROUGHPUT,
        CPU_PER_GIB,
        CPU,
        MEMORY_PER_CONNECTION,
        LONGEST_STALL,
        SYSCALLS,
        FAILED,
        VERIFIED,
        TRANSFERRED,
        THROUGHPUT_SPAN,
        CPU_PER_GIB_SPAN,
        CPUS_BUSY_PER_GIB,
        MARKS,
    ];
    Table {
        file: "relay_bulk",
        title: "Relayed transfers",
        phase: Phase::Bulk,
        order: |row| row.median(stats::throughput),
        columns: columns.to_vec(),
        definitions: &[
            "Sorted by throughput = bytes that crossed / time from the start to the last of them; `direct` stands last.",
            GIB_MEANS,
            "CPU (ms): of the relay's process tree in the whole phase. What `direct` used is the origin's and is not shown.",
            "Transferred: of what was planned, in the round that came least far. Longest stall: the longest time in which nothing came of a \
             transfer that was not over.",
            MEMORY_MEANS,
            "Syscalls/MiB: of the relay, counted in a pass of its own that is in no other figure.",
            CPUS_BUSY_MEANS,
            "Min-max: the lowest and the highest of the rounds.",
            VERIFIED_MEANS,
        ],
        notes: below,
    }
}

/// What CPU (ms) is of.
fn round_trips_told(rows: &[Row<'_>]) -> Option<String> {
    let rounds = rows.iter().flat_map(|row| &row.subject.completed);
    let counts = rounds.filter_map(|trial| trial.metric(Phase::Echo, metric::SUCCEEDED));
    let counts: Vec<u64> = counts.collect();
    let (least, most) = (*counts.iter().min()?, *counts.iter().max()?);
    Some(match least == most {
        true => format!("CPU (ms) is of {most} round trips."),
        false => {
            format!("CPU (ms) is of {least} to {most} round trips: compare CPU/msg, not CPU (ms).")
        }
    })
}

/// A table's own notes, what a GiB is, and what went wrong when connections were opened.
fn below(rows: &[Row<'_>]) -> Vec<String> {
    let mut notes = vec![
        "A GiB is 2^30 bytes of payload relayed, in either direction: those of a round trip count twice.".to_owned(),
    ];
    notes.extend(notes::with_dials(rows));
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_that_were_asked_for_come_first() {
        let expected = [
            "Method ns/op CPU (ms) CPU/msg (us) TPS TP50 TP99 TP50 over direct TPS in % of direct's \
             MEM/conn Syscalls/MiB Failed Verified",
            "Method Throughput CPU s/GiB CPU (ms) MEM/conn Longest stall Syscalls/MiB Failed Verified",
        ];
        for (table, expected) in tables().iter().zip(expected) {
            let names: Vec<_> = table.columns.iter().map(|column| column.name).collect();
            let names = names.join(" ");
            assert!(
                names.starts_with(expected) && names.ends_with(" Marks"),
                "{names}"
            );
        }
    }
}
