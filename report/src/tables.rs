//! The tables: the original's columns under their names and in their order,
//! then ours.

use crate::latency::Latency;
use crate::marks;
use crate::row::{Cell, Row};
use crate::table::{Column, Table};
use crate::units::Unit;
use crate::{notes, stats, tcp};
use wsbench_schema::{Phase, Suite, metric};

/// The tables of a suite, in the order of the report.
#[must_use]
pub fn of(suite: Suite) -> Vec<Table> {
    match suite {
        Suite::Websocket => vec![compact(), connections(), echo(), rate(), memory()],
        Suite::Relay => tcp::relay::tables().into(),
        Suite::Transfer => tcp::transfer::tables().into(),
    }
}

/// What the subjects of a suite are called.
#[must_use]
pub fn subject_is_a(suite: Suite) -> &'static str {
    match suite {
        Suite::Websocket => FRAMEWORK.name,
        Suite::Relay => tcp::relay::METHOD.name,
        Suite::Transfer => tcp::transfer::STRATEGY.name,
    }
}

pub(crate) const fn column(name: &'static str, cell: fn(&Row<'_>) -> Cell) -> Column {
    Column { name, cell }
}

/// Of the phase's own latency.
fn own(row: &Row<'_>, read: fn(&Latency) -> Option<f64>) -> Cell {
    latency(row, row.latency_name(), read)
}

fn latency(row: &Row<'_>, name: &str, read: fn(&Latency) -> Option<f64>) -> Cell {
    Cell::of(row.latency(name).and_then(read), Unit::Duration)
}

pub(crate) fn sum(row: &Row<'_>, name: &str) -> Cell {
    Cell::of(row.sum(name), Unit::Count)
}

fn typical(row: &Row<'_>, name: &str) -> Cell {
    Cell::of(row.typical(name), Unit::Count)
}

/// Its name, and what it is for where it is not compared.
pub(crate) fn name(row: &Row<'_>) -> Cell {
    let name = &row.subject.name;
    Cell::Text(match (row.subject.is_direct, row.is_yardstick()) {
        (true, _) => format!("{name} (no relay)"),
        (false, true) => format!("{name} (yardstick)"),
        (false, false) => name.clone(),
    })
}

pub(crate) const FRAMEWORK: Column = column("Framework", name);
const CONNS: Column = column("Conns", |row| typical(row, metric::CONNECTIONS));
const CONCURRENCY: Column = column("Concurrency", |row| typical(row, metric::CONCURRENCY));
const PAYLOAD: Column = column("Payload", |row| {
    Cell::Number(row.load.payload_bytes.into(), Unit::Count)
});
const TOTAL: Column = column("Total", |row| sum(row, metric::PLANNED));
const SUCCESS: Column = column("Success", |row| sum(row, metric::SUCCEEDED));
pub(crate) const FAILED: Column = column("Failed", |row| sum(row, metric::FAILED));
const USED: Column = column("Used", |row| {
    Cell::of(row.sum(metric::ELAPSED), Unit::Duration)
});
pub(crate) const TPS: Column = column("TPS", |row| {
    Cell::of(row.median(stats::tps), Unit::PerSecond)
});
const AVG: Column = column("Avg", |row| own(row, |l| Some(l.mean_ns)));
pub(crate) const TP50: Column = column("TP50", |row| own(row, |l| l.percentile_ns(500)));
const TP90: Column = column("TP90", |row| own(row, |l| l.percentile_ns(900)));
pub(crate) const TP99: Column = column("TP99", |row| own(row, |l| l.percentile_ns(990)));
const TP999: Column = column("TP99.9", |row| own(row, |l| l.percentile_ns(999)));
const CPU_AVG: Column = column("CPU Avg", |row| {
    Cell::of(row.median(stats::cpu_avg), Unit::Percent)
});
const MEM_AVG: Column = column("MEM Avg", |row| {
    Cell::of(row.median(stats::mem_avg), Unit::Bytes)
});
pub(crate) const SERVER_CPU: Column = column("Server CPU/msg (us)", |row| {
    let cost = row.median(stats::server_cpu_per_message);
    Cell::of(cost, Unit::Microseconds)
});
pub(crate) const MEMORY_PER_CONNECTION: Column = column("MEM/conn", |row| {
    Cell::of(row.median(stats::memory_per_connection), Unit::Bytes)
});
const SERVER_CPU_SPAN: Column = column("Server CPU/msg min-max", |row| {
    row.span(stats::server_cpu_per_message, Unit::Microseconds)
});
pub(crate) const VERIFIED: Column = column("Verified", |row| {
    row.subject
        .verified
        .clone()
        .map_or(Cell::Missing, Cell::Text)
});
pub(crate) const MARKS: Column = column("Marks", |row| Cell::Text(marks::symbols(row)));

const LATENCIES: [Column; 8] = [
    column("Min", |row| own(row, |l| Some(l.min_ns))),
    AVG,
    column("Max", |row| own(row, |l| Some(l.max_ns))),
    TP50,
    column("TP75", |row| own(row, |l| l.percentile_ns(750))),
    TP90,
    column("TP95", |row| own(row, |l| l.percentile_ns(950))),
    TP99,
];
const COUNTS: [Column; 4] = [USED, TOTAL, SUCCESS, FAILED];
const CPU_AND_MEMORY: [Column; 6] = [
    column("CPU Min", |row| {
        Cell::of(row.lowest(stats::cpu_min), Unit::Percent)
    }),
    CPU_AVG,
    column("CPU Max", |row| {
        Cell::of(row.highest(stats::cpu_max), Unit::Percent)
    }),
    column("MEM Min", |row| {
        Cell::of(row.lowest(stats::mem_min), Unit::Bytes)
    }),
    MEM_AVG,
    column("MEM Max", |row| {
        Cell::of(row.highest(stats::mem_max), Unit::Bytes)
    }),
];

const SORTED_BY_TPS: &str =
    "Sorted by TPS; the yardstick `floor`, the least an echo can cost, stands last.";
const CPU_AND_MEMORY_MEAN: &str = "CPU in percent of one CPU, memory resident (RSS), both of the server's process tree. CPU Avg is exact, \
from the CPU clocks at both edges of the phase; CPU Min and Max are of the readings between them and of the average. \
MEM Min, Avg and Max are of the readings and of both edges.";
pub(crate) const PERCENTILES: &str = "TP99 is the latency that 99 % of the samples do not exceed, to three significant digits; `-` where \
the samples are too few to have one beyond it (1,000 are needed for TP99.9).";

pub(crate) const VERIFIED_MEANS: &str = "Verified: cases of its suite's examination that it passed, of those that it was asked; the failing ones are \
named under Verification in the report. `-`: not examined.";

fn by_tps(row: &Row<'_>) -> Option<f64> {
    row.median(stats::tps)
}

fn compact() -> Table {
    let columns = [
        FRAMEWORK, CONNS, TOTAL, SUCCESS, FAILED, USED, CPU_AVG, MEM_AVG, AVG, TPS, TP50, TP90,
        TP99, VERIFIED, MARKS,
    ];
    Table {
        file: "compact",
        title: "Compact",
        phase: Phase::Echo,
        order: by_tps,
        columns: columns.to_vec(),
        definitions: &["The echo phase in short; see BenchEcho.", VERIFIED_MEANS],
        notes: notes::under,
    }
}

fn connections() -> Table {
    let ours = [
        TP999,
        column("Retried", |row| sum(row, metric::RETRIED)),
        VERIFIED,
        MARKS,
    ];
    Table {
        file: "connections",
        title: "Connections",
        phase: Phase::Connect,
        order: by_tps,
        columns: [
            &[FRAMEWORK, TPS][..],
            &LATENCIES,
            &COUNTS,
            &[CONCURRENCY],
            &ours,
        ]
        .concat(),
        definitions: &[
            SORTED_BY_TPS,
            "TPS = connections established / time from the start to the last of them (Used).",
            "Latency: each successful attempt by itself, from connect to a verified handshake.",
            "Retried: attempts that failed and were repeated. Concurrency: dials in flight at most.",
            PERCENTILES,
            VERIFIED_MEANS,
        ],
        notes: notes::under,
    }
}

fn echo() -> Table {
    let eer = column("EER", |row| Cell::of(row.median(stats::eer), Unit::Ratio));
    let ours = [
        TP999,
        SERVER_CPU,
        column("Client CPU/msg (us)", |row| {
            let cost = row.median(stats::client_cpu_per_message);
            Cell::of(cost, Unit::Microseconds)
        }),
        MEMORY_PER_CONNECTION,
        column("TPS in % of floor's", |row| {
            Cell::of(row.percent_of_yardstick(stats::tps), Unit::Percent)
        }),
        column("Server CPU/msg in % of floor's", |row| {
            let percent = row.percent_of_yardstick(stats::server_cpu_per_message);
            Cell::of(percent, Unit::Percent)
        }),
        column("TPS min-max", |row| row.span(stats::tps, Unit::PerSecond)),
        SERVER_CPU_SPAN,
        column("Not sent", |row| sum(row, metric::NOT_SENT)),
        VERIFIED,
        MARKS,
    ];
    Table {
        file: "echo",
        title: "BenchEcho",
        phase: Phase::Echo,
        order: by_tps,
        columns: [
            &[FRAMEWORK, TPS, eer][..],
            &LATENCIES,
            &COUNTS,
            &[CONNS, CONCURRENCY, PAYLOAD],
            &CPU_AND_MEMORY,
            &ours,
        ]
        .concat(),
        definitions: &[
            SORTED_BY_TPS,
            "TPS = echoes answered rightly / time from the start to the last of them (Used). EER = Success / CPU time of the server in the phase, in hundredths of a second: TPS / CPU Avg, but for time spent waiting for lost echoes.",
            "Total: echoes planned. Failed: echoes sent and not answered rightly. Not sent: echoes that no connection was left to carry.",
            CPU_AND_MEMORY_MEAN,
            "Server CPU/msg = CPU time of the server in the phase / Success: the figure that survives a noisy machine. \
             Client CPU/msg likewise. MEM/conn = what the server's memory grew by while connecting / connections established.",
            "In % of floor's: above 100 % is more TPS than floor's, which is better, or more CPU time a message, which is worse.",
            "Min-max: the lowest and the highest of the rounds.",
            PERCENTILES,
            VERIFIED_MEANS,
        ],
        notes: notes::under,
    }
}

fn rate() -> Table {
    use metric::{ACTUAL_LATENCY as ACTUAL, INTENDED_LATENCY as INTENDED};
    let original = [
        FRAMEWORK,
        column("Duration", |row| {
            Cell::of(row.sum(metric::DURATION), Unit::Duration)
        }),
        column("EchoEER", |row| {
            Cell::of(row.median(stats::eer), Unit::Ratio)
        }),
        column("Packet Sent", |row| sum(row, metric::SENT)),
        column("Bytes Sent", |row| {
            Cell::of(row.sum(metric::SENT_BYTES), Unit::Bytes)
        }),
        column("Packet Recv", |row| sum(row, metric::SUCCEEDED)),
        column("Bytes Recv", |row| {
            Cell::of(row.sum(metric::RECEIVED_BYTES), Unit::Bytes)
        }),
        CONNS,
        column("SendRate", |row| {
            let rate = row.load.rate.as_ref();
            Cell::of(
                rate.map(|rate| rate.per_connection_per_s.into()),
                Unit::Count,
            )
        }),
        PAYLOAD,
    ];
    let ours = [
        column("Intended msg/s", |row| {
            Cell::of(row.median(stats::intended_rate), Unit::PerSecond)
        }),
        column("Achieved msg/s", |row| {
            Cell::of(row.median(stats::achieved_rate), Unit::PerSecond)
        }),
        column("TP50 intended", |row| {
            latency(row, INTENDED, |l| l.percentile_ns(500))
        }),
        column("TP50 actual", |row| {
            latency(row, ACTUAL, |l| l.percentile_ns(500))
        }),
        column("TP99 intended", |row| {
            latency(row, INTENDED, |l| l.percentile_ns(990))
        }),
        column("TP99 actual", |row| {
            latency(row, ACTUAL, |l| l.percentile_ns(990))
        }),
        column("TP99.9 intended", |row| {
            latency(row, INTENDED, |l| l.percentile_ns(999))
        }),
        column("TP99.9 actual", |row| {
            latency(row, ACTUAL, |l| l.percentile_ns(999))
        }),
        column("Max intended", |row| {
            latency(row, INTENDED, |l| Some(l.max_ns))
        }),
        column("Max actual", |row| latency(row, ACTUAL, |l| Some(l.max_ns))),
        column("Late", |row| sum(row, metric::LATE)),
        column("Shortfall", |row| sum(row, metric::SHORTFALL)),
        column("Achieved min-max", |row| {
            row.span(stats::achieved_rate, Unit::PerSecond)
        }),
        FAILED,
        SERVER_CPU,
        SERVER_CPU_SPAN,
        VERIFIED,
        MARKS,
    ];
    Table {
        file: "rate",
        title: "BenchRate",
        phase: Phase::Rate,
        order: |row| row.median(stats::eer),
        columns: [&original[..], &CPU_AND_MEMORY, &ours].concat(),
        definitions: &[
            "Sorted by EchoEER = Packet Recv / CPU time of the server in the phase, in hundredths of a second; the yardstick `floor` stands last.",
            "Packet Recv: messages answered rightly. Bytes both ways include the framing. SendRate: messages a second \
             asked of each connection. Duration: how long messages were due.",
            "Intended msg/s = messages that became due / Duration. Achieved msg/s = messages answered rightly / Duration, \
             or the time from the start to the last of them if that is longer.",
            "Intended latency runs from the moment a message was due, actual latency from the moment it was sent: a \
             server that stalls hides in the second and not in the first.",
            "Late: sent more than 1 ms after it was due. Shortfall: due and never sent. Min-max: the lowest and the highest of the rounds.",
            CPU_AND_MEMORY_MEAN,
            PERCENTILES,
            VERIFIED_MEANS,
        ],
        notes: notes::under,
    }
}

fn memory() -> Table {
    let columns = [
        FRAMEWORK,
        column("Idle", |row| {
            Cell::of(row.median(stats::memory_idle), Unit::Bytes)
        }),
        column("After traffic", |row| {
            Cell::of(row.median(stats::memory_after_traffic), Unit::Bytes)
        }),
        column("After close", |row| {
            Cell::of(row.median(stats::memory_after_release), Unit::Bytes)
        }),
        column("Idle/conn", |row| {
            Cell::of(row.median(stats::memory_per_connection), Unit::Bytes)
        }),
        column("After traffic/conn", |row| {
            let each = row.median(stats::memory_per_connection_after_traffic);
            Cell::of(each, Unit::Bytes)
        }),
        column("Given back", |row| {
            Cell::of(row.median(stats::memory_given_back), Unit::Percent)
        }),
        CONNS,
        column("Closed", |row| sum(row, metric::SUCCEEDED)),
        column("Not closed", |row| sum(row, metric::FAILED)),
        VERIFIED,
        MARKS,
    ];
    Table {
        file: "memory",
        title: "Memory",
        phase: Phase::Release,
        order: |row| row.median(stats::memory_per_connection).map(|bytes| -bytes),
        columns: columns.to_vec(),
        definitions: &[
            "Sorted by Idle/conn, the least first; the yardstick `floor` stands last.",
            "Resident memory (RSS) of the server's process tree. Idle: all connections are open and no message was sent. \
             After traffic: all messages are answered, the same connections are open. After close: a part of them was closed, \
             with a close frame each, and the server had a moment to free what it holds of them.",
            "Idle/conn and After traffic/conn: what memory has grown by since the server had no connection / connections.",
            "Given back = (After traffic - After close) / what memory has grown by until then: the share of connections that were \
             closed, if nothing of them is kept; less where the server or its allocator keeps it for later.",
            "Closed: the server completed the close. Not closed: it did not within the timeout, or failed otherwise.",
            VERIFIED_MEANS,
        ],
        notes: notes::under,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(table: &Table) -> String {
        let names: Vec<_> = table.columns.iter().map(|column| column.name).collect();
        names.join(" ")
    }

    #[test]
    fn the_originals_columns_come_first_and_in_its_order() {
        for (table, original) in [
            (
                compact(),
                "Framework Conns Total Success Failed Used CPU Avg MEM Avg Avg TPS TP50 TP90 TP99",
            ),
            (
                connections(),
                "Framework TPS Min Avg Max TP50 TP75 TP90 TP95 TP99 Used Total Success Failed Concurrency",
            ),
            (
                echo(),
                "Framework TPS EER Min Avg Max TP50 TP75 TP90 TP95 TP99 Used Total Success Failed Conns \
                 Concurrency Payload CPU Min CPU Avg CPU Max MEM Min MEM Avg MEM Max",
            ),
            (
                rate(),
                "Framework Duration EchoEER Packet Sent Bytes Sent Packet Recv Bytes Recv Conns SendRate Payload \
                 CPU Min CPU Avg CPU Max MEM Min MEM Avg MEM Max",
            ),
        ] {
            let names = names(&table);
            assert!(names.starts_with(original), "{}: {names}", table.title);
            assert!(names.ends_with(" Marks"), "{}: {names}", table.title);
        }
    }
}
