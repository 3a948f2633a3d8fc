//! A results folder as large as a report should be fast for: by default 40 subjects under
//! 10 loads over 10 rounds, with histograms and series of realistic length.
//!
//! `cargo run -p wsbench-report --example many_records -- TRIAL.json FOLDER [SUBJECTS LOADS ROUNDS]`
//! makes it from a record of an earlier run, whose figures it varies.

use std::error::Error;
use std::fs;
use std::path::Path;
use wsbench_schema::{
    Load, RunPlan, SCHEMA_VERSION, Series, SplitMix64, TrialRecord, encode_histogram,
    latency_histogram,
};

/// Samples of each histogram, over three powers of ten as latencies are.
const SAMPLES: u64 = 4000;
/// Readings of each series: 20 s at 100 ms.
const READINGS: u64 = 200;

fn histogram(pace: u64) -> String {
    let mut histogram = latency_histogram();
    for sample in 0..SAMPLES {
        let spread = 1 + sample * sample * sample / 2_000_000;
        // Bounds hold: the longest is a few seconds.
        let _ = histogram.record(pace * 400 * spread / 10 + 5000);
    }
    encode_histogram(&histogram)
}

fn varied(trial: &TrialRecord, load: &Load, subject: usize, round: u32) -> TrialRecord {
    let mut trial = trial.clone();
    trial.load = load.clone();
    trial.load_hash = load.hash();
    trial.subject.name = format!("subject_{subject:02}");
    trial.round = round;
    let own = [
        u64::from(load.connections),
        subject as u64,
        u64::from(round),
    ];
    let seed = own.iter().fold(1, |seed, part| seed * 1009 + part);
    let mut random = SplitMix64::new(seed);
    let pace = 60 + 3 * subject as u64 + u64::from(round) % 3 + u64::from(load.connections) % 7;
    for (name, value) in &mut trial.metrics {
        if name.ends_with("cpu_ns") || name.ends_with("elapsed_ns") {
            // No two alike, as nothing that is measured is.
            *value = *value / 100 * pace + random.below(*value / 20 + 1);
        }
    }
    for text in trial.histograms.values_mut() {
        *text = histogram(pace);
    }
    for series in trial.series.values_mut() {
        *series = Series {
            offsets_ns: (0..READINGS).map(|at| at * 100_000_000).collect(),
            values: (0..READINGS).map(|at| 50_000 + at * pace % 977).collect(),
        };
    }
    trial
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [record, folder, counts @ ..] = &arguments[..] else {
        return Err("which record, and which folder? (see the first lines of this file)".into());
    };
    let count = |index: usize, usual: u32| counts.get(index).map_or(Ok(usual), |text| text.parse());
    let (subjects, loads, rounds) = (count(0, 40)?, count(1, 10)?, count(2, 10)?);
    let folder = Path::new(folder);
    let mut trial = TrialRecord::load(Path::new(record))?;
    trial.run = folder
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    fs::create_dir_all(folder)?;
    let loads: Vec<Load> = (0..loads)
        .map(|step| Load {
            connections: 100 * (step + 1),
            ..trial.load.clone()
        })
        .collect();
    let names = (0..subjects).map(|subject| format!("subject_{subject:02}"));
    let plan = RunPlan {
        schema: SCHEMA_VERSION,
        run: trial.run.clone(),
        started_unix_s: trial.started_unix_s,
        seed: 1,
        rounds,
        subjects: names.collect(),
        loads: loads.clone(),
        profile: "many".into(),
        cpus: trial.cpus.clone(),
        settings: trial.settings.clone(),
    };
    plan.save(folder)?;
    for load in &loads {
        for subject in 0..subjects as usize {
            for round in 1..=rounds {
                let record = varied(&trial, load, subject, round);
                // Not synced, as `save` does: these are thousands, and worth nothing.
                let text = serde_json::to_vec_pretty(&record)?;
                fs::write(folder.join(record.file_name()), text)?;
            }
        }
    }
    Ok(())
}
