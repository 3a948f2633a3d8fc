//! One trial as the original's client prints it: a line a figure between
//! dashes. The lines of the original come first and under its names.

use crate::latency::PERMILLES;
use crate::row::{Cell, Row};
use crate::section::Subject;
use crate::stats::{self, Stat};
use crate::tcp::{self, stats as bytes};
use crate::units::{MISSING, Unit, share};
use crate::{marks, notes, text};
use std::fmt::Display;
use wsbench_schema::{Outcome, Phase, TrialRecord, metric};

const DASHES: &str = "-------------------------\n";

/// A block for each phase of a trial that was measured; `percentiles` as the
/// original's `-tpn`. A failed trial's block ends with where and why, below
/// what was measured until then.
#[must_use]
pub fn block(record: &TrialRecord, percentiles: bool) -> String {
    let name = &record.subject.name;
    let subject = Subject::new(name, vec![record.clone()], Vec::new());
    let mut blocks = Vec::new();
    for phase in [
        Phase::Connect,
        Phase::Echo,
        Phase::Rate,
        Phase::Bulk,
        Phase::Release,
    ] {
        if record.metric(phase, metric::PLANNED).is_none() {
            continue;
        }
        let mut block = Block::new(record, &subject, phase, percentiles);
        match phase {
            Phase::Connect => block.connect(),
            Phase::Rate => block.rate(),
            Phase::Warmup | Phase::Echo => block.echo(),
            Phase::Bulk => block.bulk(),
            Phase::Release => block.release(),
        }
        block.notes();
        blocks.push(block.text);
    }
    if blocks.is_empty() {
        let name = text::one_line(name);
        blocks.push(format!("{DASHES}Benchmark: {name}\n"));
    }
    if let (Some(last), Outcome::Failed { stage, reason }) = (blocks.last_mut(), &record.outcome) {
        let (stage, reason) = (text::one_line(stage), text::one_line(reason));
        last.push_str(&format!("OUTCOME : FAILED ({stage}: {reason})\n"));
    }
    let closed = blocks.into_iter().map(|block| block + DASHES);
    closed.collect()
}

struct Block<'a> {
    record: &'a TrialRecord,
    row: Row<'a>,
    percentiles: bool,
    text: String,
}

impl<'a> Block<'a> {
    fn new(record: &'a TrialRecord, subject: &'a Subject, phase: Phase, percentiles: bool) -> Self {
        Self {
            record,
            row: Row {
                load: &record.load,
                subject,
                phase,
                yardstick: None,
            },
            percentiles,
            text: DASHES.to_owned(),
        }
    }

    fn echo(&mut self) {
        self.title("Benchmark");
        self.count("Conns", metric::CONNECTIONS);
        self.line("Payload", self.record.load.payload_bytes);
        self.totals();
        self.latencies(metric::ECHO_LATENCY, " USED");
        self.percentiles(metric::ECHO_LATENCY, "", &PERMILLES[..5]);
        self.cpu_and_memory();
        self.percentiles(metric::ECHO_LATENCY, "", &PERMILLES[5..]);
        self.costs();
        self.stat("MEM/CONN", stats::memory_per_connection, Unit::Bytes);
        self.count("NOT SENT", metric::NOT_SENT);
    }

    fn connect(&mut self) {
        self.title("Connections");
        self.count("Concurrency", metric::CONCURRENCY);
        self.totals();
        self.latencies(metric::DIAL_LATENCY, " USED");
        self.percentiles(metric::DIAL_LATENCY, "", &PERMILLES);
        self.count("RETRIED", metric::RETRIED);
    }

    fn rate(&mut self) {
        self.title("BenchRate");
        self.count("Conns", metric::CONNECTIONS);
        self.line("Payload", self.record.load.payload_bytes);
        self.figure("DURATION", metric::DURATION, Unit::Duration);
        self.stat("INTENDED", stats::intended_rate, Unit::PerSecond);
        self.stat("ACHIEVED", stats::achieved_rate, Unit::PerSecond);
        self.stat("EchoEER", stats::eer, Unit::Ratio);
        self.count("PACKET SENT", metric::SENT);
        self.figure("BYTES SENT", metric::SENT_BYTES, Unit::Bytes);
        self.count("PACKET RECV", metric::SUCCEEDED);
        self.figure("BYTES RECV", metric::RECEIVED_BYTES, Unit::Bytes);
        self.count("FAILED", metric::FAILED);
        self.count("LATE", metric::LATE);
        self.count("SHORTFALL", metric::SHORTFALL);
        for (name, kind) in [
            (metric::INTENDED_LATENCY, " INTENDED"),
            (metric::ACTUAL_LATENCY, " ACTUAL"),
        ] {
            self.latencies(name, kind);
            self.percentiles(name, kind, &PERMILLES);
        }
        self.cpu_and_memory();
        self.costs();
    }

    /// How the server's memory went from full of traffic to partly closed.
    fn release(&mut self) {
        self.title("BenchRelease");
        self.count("CONNS", metric::CONNECTIONS);
        self.count("CLOSED", metric::SUCCEEDED);
        self.count("NOT CLOSED", metric::FAILED);
        self.stat("MEM IDLE", stats::memory_idle, Unit::Bytes);
        let after_traffic = stats::memory_after_traffic;
        self.stat("MEM AFTER TRAFFIC", after_traffic, Unit::Bytes);
        self.stat("MEM AFTER CLOSE", stats::memory_after_release, Unit::Bytes);
        self.stat("GIVEN BACK", stats::memory_given_back, Unit::Percent);
    }

    /// As the original's server of transfers tells it, in its order and words.
    fn bulk(&mut self) {
        self.title("Benchmark");
        self.count("Conns", metric::CONNECTIONS);
        let size = self.record.load.bulk.as_ref();
        let size = size.map(|bulk| tcp::size(bulk.bytes_per_connection));
        self.line("Bytes/conn", size.as_deref().unwrap_or(MISSING));
        self.stat("Duration", bytes::duration, Unit::Duration);
        let data = text::cell(&tcp::transferred(&self.row));
        self.line("Total data", data);
        self.stat("Throughput", bytes::throughput, Unit::DataPerSecond);
        let of = |stat: Stat| stat(self.record, self.row.phase);
        let (peak, before) = (of(bytes::peak_memory), of(bytes::memory_before));
        let shown =
            |value: Option<f64>| value.map_or(MISSING.to_owned(), |value| Unit::Bytes.show(value));
        let delta = peak.zip(before).map(|(peak, before)| peak - before);
        let (before, delta) = (shown(before), shown(delta));
        let peak = shown(peak);
        self.line(
            "Peak memory",
            format!("{peak} (baseline {before}, delta {delta})"),
        );
        let both = bytes::peak_heap_and_stacks;
        self.stat("Peak heap + stacks", both, Unit::Bytes);
        for (name, names, unit) in [
            ("Stack", bytes::STACKS, Unit::Bytes),
            ("Heap", bytes::HEAP, Unit::Bytes),
            ("Threads", bytes::THREADS, Unit::Count),
            ("Tasks", bytes::TASKS, Unit::Count),
        ] {
            let change = bytes::change(self.record, self.row.phase, names);
            let change = change.map_or(MISSING.to_owned(), |[before, after]| {
                text::cell(&Cell::Change(before, after, unit))
            });
            self.line(name, change);
        }
        self.stat("Allocations", bytes::allocations, Unit::Count);
        self.stat("Allocated", bytes::allocated, Unit::Bytes);
        self.stat("Longest stall", bytes::longest_stall, Unit::Duration);
        self.stat("Minor faults", bytes::minor_faults, Unit::Count);
        self.stat("Major faults", bytes::major_faults, Unit::Count);
        self.stat("Voluntary switches", bytes::voluntary_switches, Unit::Count);
        let made_to_wait = bytes::involuntary_switches;
        self.stat("Involuntary switches", made_to_wait, Unit::Count);
        self.stat("CPU s/GiB", bytes::cpu_per_gib, Unit::Seconds);
        self.stat("CPU AVG", stats::cpu_avg, Unit::Percent);
        self.stat("CLIENT CPU AVG", stats::client_cpu_avg, Unit::Percent);
        self.stat("MEM/CONN", bytes::memory_per_connection, Unit::Bytes);
        self.count("Failed", metric::FAILED);
    }

    fn title(&mut self, kind: &str) {
        let name = text::one_line(&self.record.subject.name);
        self.text.push_str(&format!("{kind}: {name}\n"));
    }

    fn line(&mut self, name: &str, value: impl Display) {
        self.text.push_str(&format!("{name} : {value}\n"));
    }

    fn value(&mut self, name: &str, value: Option<f64>, unit: Unit) {
        let text = value.map_or(MISSING.to_owned(), |value| unit.show(value));
        self.line(name, text);
    }

    fn figure(&mut self, name: &str, metric: &str, unit: Unit) {
        self.value(name, self.row.sum(metric), unit);
    }

    fn count(&mut self, name: &str, metric: &str) {
        self.figure(name, metric, Unit::Count);
    }

    fn stat(&mut self, name: &str, stat: Stat, unit: Unit) {
        self.value(name, stat(self.record, self.row.phase), unit);
    }

    /// Total, success, failed, the rate, and the time that it took.
    fn totals(&mut self) {
        let measured = |name| self.record.metric(self.row.phase, name);
        let total = measured(metric::PLANNED);
        let of_total = |part: Option<u64>| match (part, total) {
            (Some(part), Some(total)) => format!("{part}, {}", share(part, total)),
            _ => MISSING.to_owned(),
        };
        let success = of_total(measured(metric::SUCCEEDED));
        let failed = of_total(measured(metric::FAILED));
        let total = total.map_or(MISSING.to_owned(), |total| format!("{total} times"));
        self.line("TOTAL", total);
        self.line("SUCCESS", success);
        self.line("FAILED", failed);
        self.stat("TPS", stats::tps, Unit::PerSecond);
        let used = self.row.sum(metric::ELAPSED);
        let used = used.map_or(MISSING.to_owned(), |ns| Unit::Duration.show(ns));
        // Without a space before the colon, as the original prints it.
        self.text.push_str(&format!("TIME USED: {used}\n"));
    }

    fn latencies(&mut self, name: &str, kind: &str) {
        let latency = self.row.latency(name);
        for (word, ns) in [
            ("MIN", latency.map(|latency| latency.min_ns)),
            ("AVG", latency.map(|latency| latency.mean_ns)),
            ("MAX", latency.map(|latency| latency.max_ns)),
        ] {
            self.value(&format!("{word}{kind}"), ns, Unit::Duration);
        }
    }

    fn percentiles(&mut self, name: &str, kind: &str, permilles: &[u64]) {
        if !self.percentiles {
            return;
        }
        let latency = self.row.latency(name);
        for &permille in permilles {
            let ns = latency.and_then(|latency| latency.percentile_ns(permille));
            let (whole, tenth) = (permille / 10, permille % 10);
            let percent = match tenth {
                0 => whole.to_string(),
                _ => format!("{whole}.{tenth}"),
            };
            self.value(&format!("TP{percent}{kind}"), ns, Unit::Duration);
        }
    }

    fn cpu_and_memory(&mut self) {
        self.stat("CPU MIN", stats::cpu_min, Unit::Percent);
        self.stat("CPU AVG", stats::cpu_avg, Unit::Percent);
        self.stat("CPU MAX", stats::cpu_max, Unit::Percent);
        self.stat("MEM MIN", stats::mem_min, Unit::Bytes);
        self.stat("MEM AVG", stats::mem_avg, Unit::Bytes);
        self.stat("MEM MAX", stats::mem_max, Unit::Bytes);
    }

    fn costs(&mut self) {
        self.stat("CPU/MSG", stats::server_cpu_per_message, Unit::Duration);
        let client = stats::client_cpu_per_message;
        self.stat("CLIENT CPU/MSG", client, Unit::Duration);
        self.stat("CLIENT CPU AVG", stats::client_cpu_avg, Unit::Percent);
    }

    fn notes(&mut self) {
        let marks = marks::explanations(&[self.row]);
        for note in marks.into_iter().chain(notes::losses(&self.row)) {
            self.line("NOTE", text::one_line(&note));
        }
    }
}
