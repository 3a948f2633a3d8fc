//! Plans and records for the tests of this module.

use std::collections::BTreeMap;
use wsbench_schema::{
    CpuMap, DialLoad, EchoLoad, Load, Machine, MessageKind, Outcome, Phase, RunPlan,
    SCHEMA_VERSION, SubjectId, Suite, TrialRecord, metric,
};

/// 100 connections, 1,000 echoes.
pub fn load() -> Load {
    Load {
        connections: 100,
        payload_bytes: 1024,
        message: MessageKind::Binary,
        check: true,
        dial: DialLoad::default(),
        echo: Some(EchoLoad {
            echoes: 1000,
            duration_ms: None,
            concurrency: 0,
            limit_per_s: 0,
            timeout_ms: 5000,
            warmup_echoes: 500,
        }),
        rate: None,
        after_connections: 0,
        bulk: None,
        release: None,
        transport: wsbench_schema::Transport::Websocket,
        client_burn_ns: 0,
    }
}

/// Two subjects, two rounds, one load.
pub fn plan(run: &str) -> RunPlan {
    let settings = [("nodelay", "true"), ("version.axum", "axum 0.8.9")];
    RunPlan {
        schema: SCHEMA_VERSION,
        run: run.into(),
        started_unix_s: 1,
        seed: 7,
        rounds: 2,
        subjects: vec!["axum".into(), "floor".into()],
        loads: vec![load()],
        profile: "default".into(),
        cpus: CpuMap {
            server: vec![0],
            client: vec![1],
            runner: vec![1],
            shared: false,
        },
        settings: settings
            .map(|(name, value)| (name.into(), value.into()))
            .into(),
    }
}

/// A trial that took 20 s of the client's time and answered 1,000 echoes in 10 s.
pub fn record(plan: &RunPlan, subject: &str, round: u32) -> TrialRecord {
    let load = plan.loads[0].clone();
    let metrics: BTreeMap<String, u64> = [
        (Phase::Connect.metric(metric::CLIENT_WINDOW), 10_000_000_000),
        (Phase::Echo.metric(metric::CLIENT_WINDOW), 10_000_000_000),
        (Phase::Echo.metric(metric::ELAPSED), 10_000_000_000),
        (Phase::Echo.metric(metric::SUCCEEDED), 1000),
        (Phase::Echo.metric(metric::FAILED), 0),
    ]
    .into();
    TrialRecord {
        schema: SCHEMA_VERSION,
        run: plan.run.clone(),
        round,
        attempt: 1,
        suite: Suite::Websocket,
        subject: SubjectId {
            name: subject.into(),
            variant: None,
            version: format!("{subject} 1.0"),
            language: "rust".into(),
        },
        server_processes: 1,
        client_processes: 1,
        harness: "abc".into(),
        seed: 1,
        started_unix_s: 2,
        machine: Machine {
            host: "bench".into(),
            kernel: "Linux 6".into(),
            cpu_model: "cpu".into(),
            cpus_count: 2,
            memory_bytes: 1,
            governor: "none".into(),
            congestion_control: "cubic".into(),
            ephemeral_ports: "32768 60999".into(),
            nofile_hard_count: 20_000,
            rustc: "rustc 1".into(),
        },
        cpus: plan.cpus.clone(),
        settings: BTreeMap::new(),
        load_hash: load.hash(),
        load,
        outcome: Outcome::Completed,
        metrics,
        histograms: BTreeMap::new(),
        series: BTreeMap::new(),
        marks: BTreeMap::new(),
    }
}
