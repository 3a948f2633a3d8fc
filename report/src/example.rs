//! Records for tests: whole, empty and failed ones, with figures that are easy
//! to compute with.

use std::collections::BTreeMap;
use wsbench_schema::{
    BulkLoad, CpuMap, DialLoad, Direction, EchoLoad, Examination, Finding, Level, Load, Machine,
    MessageKind, Outcome, Phase, RateLoad, RunPlan, SCHEMA_VERSION, Series, SubjectId, Suite,
    Transport, TrialRecord, Verdict, encode_histogram, latency_histogram, metric,
};

/// The identifier of every example's run.
pub const RUN: &str = "example";

pub fn load() -> Load {
    Load {
        connections: 1000,
        payload_bytes: 1024,
        message: MessageKind::Binary,
        check: true,
        dial: DialLoad::default(),
        echo: Some(EchoLoad {
            echoes: 100_000,
            duration_ms: None,
            concurrency: 0,
            limit_per_s: 0,
            timeout_ms: 5000,
            warmup_echoes: 5000,
        }),
        rate: Some(RateLoad {
            connections: 0,
            duration_ms: 10_000,
            per_connection_per_s: 5,
            batch_bytes: 16_384,
            window: 0,
            limit_per_s: 0,
            timeout_ms: 5000,
        }),
        after_connections: 0,
        bulk: None,
        release: None,
        transport: Transport::Websocket,
        client_burn_ns: 0,
    }
}

pub fn cpus() -> CpuMap {
    CpuMap {
        server: vec![0],
        client: vec![1],
        runner: vec![0, 1],
        shared: false,
    }
}

pub fn plan(subjects: &[&str], rounds: u32) -> RunPlan {
    RunPlan {
        schema: SCHEMA_VERSION,
        run: RUN.into(),
        started_unix_s: 1_796_047_227,
        seed: 42,
        rounds,
        subjects: subjects.iter().map(ToString::to_string).collect(),
        loads: vec![load()],
        profile: "default".into(),
        cpus: cpus(),
        settings: BTreeMap::from([("nodelay".into(), "true".into())]),
    }
}

/// A completed trial without a single figure.
pub fn empty(name: &str, round: u32) -> TrialRecord {
    let load = load();
    TrialRecord {
        schema: SCHEMA_VERSION,
        run: RUN.into(),
        round,
        attempt: 1,
        suite: Suite::Websocket,
        subject: SubjectId {
            name: name.into(),
            variant: None,
            version: format!("{name} 1.2.3"),
            language: "Rust".into(),
        },
        server_processes: 1,
        client_processes: 1,
        harness: "0.1.0 (1fe8eb5)".into(),
        seed: 42,
        started_unix_s: 1_796_047_300,
        machine: Machine {
            host: "bench".into(),
            kernel: "Linux 6.18.0".into(),
            cpu_model: "Example CPU".into(),
            cpus_count: 2,
            memory_bytes: 8 << 30,
            governor: "none".into(),
            congestion_control: "cubic".into(),
            ephemeral_ports: "32768 60999".into(),
            nofile_hard_count: 1_048_576,
            rustc: "rustc 1.95.0".into(),
        },
        cpus: cpus(),
        settings: BTreeMap::new(),
        load_hash: load.hash(),
        load,
        outcome: Outcome::Completed,
        metrics: BTreeMap::new(),
        histograms: BTreeMap::new(),
        series: BTreeMap::new(),
        marks: BTreeMap::new(),
    }
}

/// Of a subject that passed two cases.
pub fn examination(name: &str) -> Examination {
    let findings = ["text of 0 bytes", "text of 1 byte"];
    Examination {
        elapsed_ns: 1_200_000_000,
        findings: findings
            .map(|name| finding("echo", name, Level::Must, Verdict::Pass))
            .into(),
        ..Examination::blank(empty(name, 1).subject, None, 1_796_047_230)
    }
}

pub fn finding(group: &str, name: &str, level: Level, verdict: Verdict) -> Finding {
    let seen = match verdict {
        Verdict::Pass => Some(Finding::AS_EXPECTED.to_owned()),
        Verdict::Fail => Some("a wrong one".to_owned()),
        Verdict::Omitted => None,
    };
    let sent = seen.is_some().then(|| "81 80 (2 bytes)".to_owned());
    Finding {
        group: group.into(),
        name: name.into(),
        level,
        verdict,
        expected: "a right answer".into(),
        seen,
        sent,
    }
}

pub fn failed(name: &str, round: u32, stage: &str, reason: &str) -> TrialRecord {
    TrialRecord {
        outcome: Outcome::Failed {
            stage: stage.into(),
            reason: reason.into(),
        },
        ..empty(name, round)
    }
}

/// Pairs of CPU in millipercent and resident memory, a second apart.
pub fn series(trial: &mut TrialRecord, phase: Phase, readings: &[(u64, u64)]) {
    let offsets_ns: Vec<u64> = (1..=readings.len() as u64)
        .map(|s| s * 1_000_000_000)
        .collect();
    let mut keep = |name: &str, values: Vec<u64>| {
        let series = Series {
            offsets_ns: offsets_ns.clone(),
            values,
        };
        trial.series.insert(phase.metric(name), series);
    };
    keep(
        metric::SERVER_CPU_SERIES,
        readings.iter().map(|r| r.0).collect(),
    );
    keep(
        metric::SERVER_RSS_SERIES,
        readings.iter().map(|r| r.1).collect(),
    );
}

/// `count` latencies, spread evenly from `from_ns` to `to_ns`.
pub fn latencies(trial: &mut TrialRecord, name: &str, count: u64, from_ns: u64, to_ns: u64) {
    let mut histogram = latency_histogram();
    for index in 0..count {
        let latency = from_ns + (to_ns - from_ns) * index / (count - 1);
        histogram.record(latency).unwrap();
    }
    let text = encode_histogram(&histogram);
    trial.histograms.insert(name.into(), text);
}

/// A completed trial of all phases at full speed.
pub fn trial(name: &str, round: u32) -> TrialRecord {
    paced(name, round, 100)
}

/// A completed trial of all phases in which everything took `percent` of the
/// usual time and CPU.
pub fn paced(name: &str, round: u32, percent: u64) -> TrialRecord {
    let mut trial = empty(name, round);
    let mib = 1 << 20;
    // Phase, planned, elapsed, concurrency, CPU of server and client, memory before and after.
    let phases = [
        (
            Phase::Connect,
            1000,
            20_000_000,
            1000,
            [15_000_000, 10_000_000],
            [4 * mib, 10 * mib],
        ),
        (
            Phase::Echo,
            100_000,
            1_000_000_000,
            1000,
            [900_000_000, 600_000_000],
            [10 * mib, 12 * mib],
        ),
        (
            Phase::Rate,
            50_000,
            10_005_000_000,
            1000,
            [500_000_000, 400_000_000],
            [12 * mib, 12 * mib],
        ),
    ];
    for (phase, planned, elapsed, concurrency, [server, client], [before, after]) in phases {
        let slower = |ns: u64| {
            if phase == Phase::Rate {
                ns
            } else {
                ns * percent / 100
            }
        };
        for (name, value) in [
            (metric::PLANNED, planned),
            (metric::SUCCEEDED, planned),
            (metric::FAILED, 0),
            (metric::ELAPSED, slower(elapsed)),
            (metric::CLIENT_CPU, client * percent / 100),
            (metric::CLIENT_WINDOW, slower(elapsed)),
            (metric::CLIENT_CPUS, 1),
            (metric::CONNECTIONS, 1000),
            (metric::CONNECTIONS_LOST, 0),
            (metric::CONCURRENCY, concurrency),
            (metric::SENT, planned),
            (metric::SENT_BYTES, planned * 1032),
            (metric::RECEIVED_BYTES, planned * 1028),
            (metric::SERVER_CPU, server * percent / 100),
            (metric::SERVER_WINDOW, slower(elapsed)),
            (metric::SERVER_RSS_START, before),
            (metric::SERVER_RSS_END, after),
            (metric::SERVER_PROCESSES, 1),
            (metric::SERVER_THREADS, 1),
            (metric::SERVER_CPUS, 1),
        ] {
            trial.metrics.insert(phase.metric(name), value);
        }
    }
    for (phase, name, value) in [
        (Phase::Connect, metric::RETRIED, 0),
        (Phase::Echo, metric::NOT_SENT, 0),
        (Phase::Rate, metric::SHORTFALL, 0),
        (Phase::Rate, metric::LATE, 3),
        (Phase::Rate, metric::DURATION, 10_000_000_000),
        (Phase::Rate, metric::DRAIN, 5_000_000),
        (Phase::Rate, metric::BATCH, 5),
    ] {
        trial.metrics.insert(phase.metric(name), value);
    }
    series(
        &mut trial,
        Phase::Echo,
        &[(80_000, 11 * mib), (95_000, 13 * mib)],
    );
    series(
        &mut trial,
        Phase::Rate,
        &[(4_000, 12 * mib), (6_000, 12 * mib)],
    );
    for (phase, name, count, from_ns, to_ns) in [
        (
            Phase::Connect,
            metric::DIAL_LATENCY,
            1000,
            50_000,
            5_000_000,
        ),
        (
            Phase::Echo,
            metric::ECHO_LATENCY,
            10_000,
            100_000,
            20_000_000,
        ),
        (
            Phase::Rate,
            metric::INTENDED_LATENCY,
            5000,
            30_000,
            9_000_000,
        ),
        (Phase::Rate, metric::ACTUAL_LATENCY, 5000, 30_000, 3_000_000),
    ] {
        let (from_ns, to_ns) = (from_ns * percent / 100, to_ns * percent / 100);
        latencies(&mut trial, &phase.metric(name), count, from_ns, to_ns);
    }
    trial
}

/// A completed trial of a relay: 100,000 round trips of 10 KiB, in which everything
/// took `percent` of the usual time and CPU.
pub fn relayed(name: &str, round: u32, percent: u64) -> TrialRecord {
    let mut trial = paced(name, round, percent);
    trial.suite = Suite::Relay;
    trial.load.transport = Transport::Stream;
    trial.load.payload_bytes = 10_240;
    trial.load.rate = None;
    trial.load_hash = trial.load.hash();
    trial.metrics.retain(|name, _| !name.starts_with("rate."));
    trial
        .histograms
        .retain(|name, _| !name.starts_with("rate."));
    trial.series.retain(|name, _| !name.starts_with("rate."));
    for (name, value) in [
        (metric::ORIGIN_CPU, 200_000_000 * percent / 100),
        (metric::SERVER_SYSCALLS, 420_000),
        (metric::SERVER_SYSCALLS_BYTES, 204_800_000),
    ] {
        trial.metrics.insert(Phase::Echo.metric(name), value);
    }
    trial
}

/// The same, of the client at the origin without a relay.
pub fn as_direct(mut trial: TrialRecord) -> TrialRecord {
    trial.settings.insert("role".into(), "direct".into());
    trial
}

/// A completed trial of transfers: 2 MB there and back on 500 connections in 10 s.
pub fn transferred(name: &str, round: u32, percent: u64) -> TrialRecord {
    const CONNECTIONS: u64 = 500;
    let mib = 1 << 20;
    let mut trial = paced(name, round, percent);
    trial.suite = Suite::Transfer;
    trial.load = Load {
        connections: 500,
        payload_bytes: 20_000,
        transport: Transport::Stream,
        echo: None,
        rate: None,
        bulk: Some(BulkLoad {
            bytes_per_connection: 2_000_000,
            direction: Direction::Both,
            window_bytes: 0,
            slow_readers_percent: 0,
            slow_bytes_per_s: 0,
            duration_ms: None,
            timeout_ms: 5000,
        }),
        ..load()
    };
    trial.load_hash = trial.load.hash();
    trial.metrics.retain(|name, _| name.starts_with("connect."));
    trial.histograms.clear();
    trial.series.clear();
    let slower = |ns: u64| ns * percent / 100;
    for (name, value) in [
        (metric::SUCCEEDED, CONNECTIONS),
        (metric::PLANNED, CONNECTIONS),
        (metric::SERVER_THREADS_START, 1),
        (metric::SERVER_ALLOC_CALLS, 750),
        (metric::SERVER_STACK_START, mib / 4),
    ] {
        trial.metrics.insert(Phase::Connect.metric(name), value);
    }
    for (name, value) in [
        (metric::PLANNED, CONNECTIONS),
        (metric::SUCCEEDED, CONNECTIONS),
        (metric::FAILED, 0),
        (metric::CONNECTIONS, CONNECTIONS),
        (metric::ELAPSED, slower(10_000_000_000)),
        (metric::CLIENT_CPU, slower(5_000_000_000)),
        (metric::CLIENT_WINDOW, slower(10_000_000_000)),
        (metric::CLIENT_CPUS, 1),
        (metric::PLANNED_BYTES, 1_000_000_000),
        (metric::VERIFIED_BYTES, 1_000_000_000),
        (metric::LONGEST_STALL, slower(80_000_000)),
        (metric::SERVER_CPU, slower(4_000_000_000)),
        (metric::SERVER_WINDOW, slower(10_000_000_000)),
        (metric::SERVER_CPUS, 1),
        (metric::SERVER_RSS_START, 10 * mib),
        (metric::SERVER_RSS_END, 34 * mib),
        (metric::SERVER_RSS_PEAK, 36 * mib),
        (metric::SERVER_THREADS, 3),
        (metric::SERVER_MINOR_FAULTS, 9000),
        (metric::SERVER_MAJOR_FAULTS, 0),
        (metric::SERVER_VOLUNTARY_SWITCHES, 40_000),
        (metric::SERVER_INVOLUNTARY_SWITCHES, 700),
        (metric::SERVER_ALLOC_CALLS, 750),
        (metric::SERVER_ALLOC_BYTES, 17 * mib),
        (metric::SERVER_HEAP_START, mib / 2),
        (metric::SERVER_HEAP_END, 16 * mib),
        (metric::SERVER_HEAP_PEAK, 18 * mib),
        (metric::SERVER_STACK_START, mib),
        (metric::SERVER_STACK_END, mib / 2),
        (metric::SERVER_TASKS_START, 1),
        (metric::SERVER_TASKS_END, 501),
    ] {
        trial.metrics.insert(Phase::Bulk.metric(name), value);
    }
    let offsets_ns: Vec<u64> = (1..=10).map(|s| slower(s * 1_000_000_000)).collect();
    for (name, step) in [
        (metric::CLIENT_BYTES_SERIES, 100_000_000),
        (metric::SERVER_RSS_SERIES, 3 * mib),
    ] {
        let series = Series {
            offsets_ns: offsets_ns.clone(),
            values: (1..=10).map(|s| s * step).collect(),
        };
        trial.series.insert(Phase::Bulk.metric(name), series);
    }
    trial
}
