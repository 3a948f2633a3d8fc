//! One of each thing that is written to disk or sent between processes.

use std::collections::BTreeMap;
use wsbench_schema::{
    ClientCommand, ClientEvent, CpuMap, DialLoad, EchoLoad, Examination, Finding, Intervals, Level,
    Load, Machine, MessageKind, Outcome, Phase, PhaseReport, Progress, RateLoad, RunPlan,
    SCHEMA_VERSION, Series, SubjectId, Suite, TrialRecord, Verdict, encode_histogram,
    latency_histogram,
};

fn load() -> Load {
    Load {
        connections: 10,
        payload_bytes: 1024,
        message: MessageKind::Binary,
        check: true,
        dial: DialLoad::default(),
        echo: Some(EchoLoad {
            echoes: 1000,
            duration_ms: Some(5000),
            concurrency: 0,
            limit_per_s: 0,
            timeout_ms: 5000,
            warmup_echoes: 50,
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
        bulk: None,
        release: None,
        transport: wsbench_schema::Transport::Websocket,
        client_burn_ns: 0,
        after_connections: 3,
    }
}

fn cpus() -> CpuMap {
    CpuMap {
        server: vec![0],
        client: vec![1],
        runner: vec![0, 1],
        shared: false,
    }
}

fn subject() -> SubjectId {
    SubjectId {
        name: "axum".into(),
        variant: None,
        version: "axum 0.8.9".into(),
        language: "Rust".into(),
    }
}

/// In base64, with two samples.
pub fn histogram() -> String {
    let mut histogram = latency_histogram();
    histogram.saturating_record(20_000);
    histogram.saturating_record(1_500_000_000);
    encode_histogram(&histogram)
}

pub fn record() -> TrialRecord {
    let load = load();
    TrialRecord {
        schema: SCHEMA_VERSION,
        run: "2026-11-30T12-00-27Z-5f1a".into(),
        round: 1,
        attempt: 1,
        suite: Suite::Websocket,
        subject: subject(),
        server_processes: 1,
        client_processes: 1,
        harness: "0.1.0".into(),
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
        settings: BTreeMap::from([("nodelay".into(), "true".into())]),
        load_hash: load.hash(),
        load,
        outcome: Outcome::Failed {
            stage: "echo".into(),
            reason: "it died".into(),
        },
        metrics: BTreeMap::from([("echo.succeeded_count".into(), 1000)]),
        histograms: BTreeMap::from([("echo.latency_ns".into(), histogram())]),
        series: BTreeMap::from([(
            "echo.server_rss_bytes".into(),
            Series {
                offsets_ns: vec![0, 200_000_000],
                values: vec![4096, 8192],
            },
        )]),
        marks: BTreeMap::from([("shared_cpus".into(), "one CPU".into())]),
    }
}

pub fn plan() -> RunPlan {
    RunPlan {
        schema: SCHEMA_VERSION,
        run: "2026-11-30T12-00-27Z-5f1a".into(),
        started_unix_s: 1_796_047_227,
        seed: 42,
        rounds: 3,
        subjects: vec!["axum".into(), "floor".into()],
        loads: vec![load()],
        profile: "default".into(),
        cpus: cpus(),
        settings: BTreeMap::from([("nodelay".into(), "true".into())]),
    }
}

pub fn examination() -> Examination {
    Examination {
        findings: vec![Finding {
            group: "echo".into(),
            name: "text of 0 bytes".into(),
            level: Level::Must,
            verdict: Verdict::Fail,
            expected: "a right answer".into(),
            seen: Some("a wrong one".into()),
            sent: Some("81 80 00 00 00 00 (6 bytes)".into()),
        }],
        ..Examination::blank(subject(), None, 1_796_047_230)
    }
}

pub fn commands() -> Vec<ClientCommand> {
    let prepare = format!(
        r#"{{"op":"prepare","load":{},"target":{{"host":"h","ports":"1-2","path":"/ws"}},"seed":1}}"#,
        serde_json::to_string(&load()).unwrap()
    );
    let mut commands = vec![
        ClientCommand::Go {
            phase: Phase::Echo,
            at_ns: Some(7),
        },
        ClientCommand::Stop,
    ];
    // As an older driver writes it, whatever has been added since.
    commands.extend(serde_json::from_str(&prepare).ok());
    commands
}

pub fn events() -> Vec<ClientEvent> {
    vec![
        ClientEvent::Prepared { shards: 2 },
        ClientEvent::Ready {
            phase: Phase::Connect,
        },
        ClientEvent::Progress(Progress {
            phase: Phase::Rate,
            done: 1,
            failed: 2,
            total: 3,
        }),
        ClientEvent::Done {
            phase: Phase::Echo,
            report: Box::new(PhaseReport {
                metrics: BTreeMap::from([("succeeded_count".into(), 1)]),
                histograms: BTreeMap::from([("latency_ns".into(), histogram())]),
                series: BTreeMap::new(),
                intervals: BTreeMap::from([(
                    "latency_ns".into(),
                    Intervals {
                        interval_ns: 1_000_000_000,
                        histograms: vec![histogram()],
                    },
                )]),
            }),
        },
        ClientEvent::Failed {
            message: "no".into(),
        },
    ]
}
