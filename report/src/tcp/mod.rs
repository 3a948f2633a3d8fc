//! What the two suites for plain TCP show: relays, and servers of bulk transfers.
//! Both count bytes where the suite for WebSocket counts messages.

pub mod least;
pub mod relay;
pub mod stats;
pub mod transfer;
pub mod winners;

use crate::row::{Cell, Row};
use crate::section::{Section, crossed};
use crate::table::{Column, Grid};
use crate::tables::column;
use crate::units::Unit;
use wsbench_schema::{Direction, Load};

/// What sets the loads of a run side by side: the original's summary of transfers, and
/// which relay wins at which size.
#[must_use]
pub fn overview(sections: &[Section]) -> Vec<Grid> {
    let grids = [transfer::summary(sections), winners::grid(sections)];
    grids.into_iter().flatten().collect()
}

/// What a load is called in a table over several: `echo 10 KiB x 5000`,
/// `bulk 64 MiB x 4, both ways`.
#[must_use]
pub fn short(load: &Load) -> String {
    let connections = load.connections;
    match &load.bulk {
        Some(bulk) => {
            let size = size(bulk.bytes_per_connection);
            let direction = direction(bulk.direction);
            format!("bulk {size} x {connections}, {direction}{}", slow(load))
        }
        None => format!("echo {} x {connections}", size(load.payload_bytes.into())),
    }
}

/// `, 10 % slow`, of a load of which some connections read slowly.
#[must_use]
pub fn slow(load: &Load) -> String {
    let percent = load
        .bulk
        .as_ref()
        .map_or(0, |bulk| bulk.slow_readers_percent);
    match percent {
        0 => String::new(),
        percent => format!(", {percent} % slow"),
    }
}

/// Where the bytes of a transfer go.
#[must_use]
pub fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Both => "both ways",
        Direction::Up => "up",
        Direction::Down => "down",
    }
}

/// A number of bytes in the largest unit in which it is whole: `64 KiB`, `2 MB`.
#[must_use]
pub fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 6] = [
        (1 << 30, "GiB"),
        (1_000_000_000, "GB"),
        (1 << 20, "MiB"),
        (1_000_000, "MB"),
        (1 << 10, "KiB"),
        (1_000, "kB"),
    ];
    let whole = |(unit, _): &&(u64, &str)| bytes >= *unit && bytes.is_multiple_of(*unit);
    match UNITS.iter().find(whole) {
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} B"),
    }
}

/// What crossed of what was planned, in each round, those that failed among them: a
/// server that died in the middle had got so far.
pub(crate) fn rounds_crossed(row: &Row<'_>) -> Vec<(u64, u64)> {
    let completed = row.subject.completed.iter().filter_map(crossed);
    let failed = row.subject.failed.iter().filter_map(|round| round.crossed);
    completed.chain(failed).collect()
}

/// Of the round that came least far.
#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
pub(crate) fn transferred(row: &Row<'_>) -> Cell {
    let least = rounds_crossed(row).into_iter().min();
    least.map_or(Cell::Missing, |(crossed, planned)| {
        Cell::Part(crossed as f64, planned as f64, Unit::Data)
    })
}

const TRANSFERRED: Column = column("Transferred", transferred);
const THROUGHPUT: Column = column("Throughput", |row| {
    Cell::of(row.median(stats::throughput), Unit::DataPerSecond)
});
const THROUGHPUT_SPAN: Column = column("Throughput min-max", |row| {
    row.span(stats::throughput, Unit::DataPerSecond)
});
const CPU_PER_GIB: Column = column("CPU s/GiB", |row| {
    Cell::of(own(row, stats::cpu_per_gib), Unit::Seconds)
});
/// Of the origin beside the client it says nothing: the server's CPUs were idle.
const CPUS_BUSY_PER_GIB: Column = column("CPUs s/GiB", |row| {
    Cell::of(own(row, stats::cpus_busy_per_gib), Unit::Seconds)
});
const CPU_PER_GIB_SPAN: Column = column("CPU s/GiB min-max", |row| match row.subject.is_direct {
    true => Cell::Missing,
    false => row.span(stats::cpu_per_gib, Unit::Seconds),
});
const LONGEST_STALL: Column = column("Longest stall", |row| {
    Cell::of(row.highest(stats::longest_stall), Unit::Duration)
});
const MEMORY_PER_CONNECTION: Column = column("MEM/conn", |row| {
    Cell::of(own(row, stats::memory_per_connection), Unit::Bytes)
});

/// The median, but not of the client beside the origin: what is measured there as the
/// server is the origin, and no relay.
fn own(row: &Row<'_>, stat: crate::stats::Stat) -> Option<f64> {
    match row.subject.is_direct {
        true => None,
        false => row.median(stat),
    }
}

const GIB_MEANS: &str = "A GiB is 2^30 bytes of payload that crossed and were right: of a round trip, and of a transfer there and back, each byte counts twice, once in either direction. Framing of TCP and what was sent again are in none of it.";
const CPUS_BUSY_MEANS: &str = "CPUs s/GiB: what the relay's CPUs did, for whomever, in ticks of 10 ms: its own CPU time, what the kernel did for its sockets outside of its process, and whatever else ran there.";
const MEMORY_MEANS: &str = "MEM/conn = (resident memory at its peak in the phase - before the first connection) / connections established. It is the server's own: buffers of sockets and pipes are the kernel's and in none of it.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn a_load_is_called_by_what_is_moved_and_over_how_many_connections() {
        let echo = example::relayed("splice", 1, 100).load;
        assert_eq!(short(&echo), "echo 10 KiB x 1000");
        let bulk = example::transferred("pool", 1, 100).load;
        assert_eq!(short(&bulk), "bulk 2 MB x 500, both ways");
    }

    #[test]
    fn a_size_is_told_whole_or_in_bytes() {
        for (bytes, text) in [
            (64, "64 B"),
            (1024, "1 KiB"),
            (10_240, "10 KiB"),
            (2_000_000, "2 MB"),
            (1 << 26, "64 MiB"),
            (1 << 30, "1 GiB"),
            (1_000_001, "1000001 B"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
