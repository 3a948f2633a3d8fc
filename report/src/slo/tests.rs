//! What is said of searches that ended in different ways.

use super::*;
use crate::document::Document;
use crate::{Report, example, text};
use wsbench_schema::mark::NOISY;
use wsbench_schema::{StageKind, StageVerdict, encode_histogram};

/// Of so many a second, of which all but one in a hundred took so long.
fn stage(kind: StageKind, rate_per_s: u64, latency_ns: u64, verdict: StageVerdict) -> SloStage {
    let count = rate_per_s * 3;
    let figures = [
        (metric::PLANNED, count),
        (metric::SUCCEEDED, count),
        (metric::FAILED, 0),
        (metric::ELAPSED, 3_000_000_000),
        (metric::DURATION, 3_000_000_000),
        (metric::SERVER_CPU, count * 5_000),
        (metric::SERVER_WINDOW, 3_000_000_000),
        (metric::SERVER_CPUS, 1),
    ];
    let mut latencies = latency_histogram();
    latencies.record_n(latency_ns, count).unwrap();
    let name = Phase::Rate.metric(metric::INTENDED_LATENCY);
    SloStage {
        kind,
        is_repeat: false,
        rate_per_s,
        duration_ms: 3000,
        started_unix_s: 1,
        verdict,
        metrics: figures
            .map(|(name, value)| (Phase::Rate.metric(name), value))
            .into(),
        histograms: [(name, encode_histogram(&latencies))].into(),
        marks: BTreeMap::new(),
    }
}

fn missed(reason: &str) -> StageVerdict {
    StageVerdict::Missed {
        reason: reason.to_owned(),
    }
}

/// A search that held up to this rate and took 2 ms there.
fn search(name: &str, round: u32, rate_per_s: u64) -> SloRecord {
    let trial = example::empty(name, round);
    let at = |kind| stage(kind, rate_per_s, 2_000_000, StageVerdict::Held);
    let above = rate_per_s * 105 / 100;
    let late = missed("tp99 was 90.00ms");
    SloRecord {
        schema: trial.schema,
        run: trial.run,
        round,
        suite: trial.suite,
        subject: trial.subject,
        harness: trial.harness,
        seed: 1,
        started_unix_s: 1,
        machine: trial.machine,
        cpus: trial.cpus,
        settings: BTreeMap::new(),
        load: trial.load,
        objective: Objective(vec![Bound {
            permille: 990,
            below_ns: 10_000_000,
        }]),
        resolution_permille: 50,
        stages: vec![
            at(StageKind::Bisect),
            stage(StageKind::Bisect, above, 90_000_000, late),
            at(StageKind::Confirm),
        ],
        outcome: SloOutcome::Found {
            rate_per_s,
            limit: Limit::Server {
                missed_per_s: above,
            },
        },
    }
}

fn document(searches: Vec<SloRecord>) -> Document {
    let mut plan = example::plan(&["axum", "floor", "ntex"], 3);
    plan.settings
        .insert(SloRecord::SETTING.into(), "tp99<10ms".into());
    let report = Report::new(&plan, &[]).unwrap();
    report.with_searches(&plan, searches).document()
}

fn table(document: &Document) -> &Grid {
    let mut grids = document.grids().map(|(_, grid)| grid);
    grids.find(|grid| grid.file == FILE).unwrap()
}

/// A row as it is shown.
fn shown(grid: &Grid, subject: &str) -> String {
    let is_its = |row: &&Line| row.subject.as_deref() == Some(subject);
    let row = grid.rows.iter().find(is_its).unwrap();
    let cells: Vec<String> = row.cells.iter().map(text::cell).collect();
    cells.join(" | ")
}

#[test]
fn the_median_of_the_rounds_stands_with_its_span_and_what_it_cost() {
    let searches = [(1, 1000), (2, 1200), (3, 1100)].map(|(n, rate)| search("axum", n, rate));
    let floor = [1, 2, 3].map(|round| search("floor", round, 9000));
    let ntex = [1, 2, 3].map(|round| search("ntex", round, 2000));
    let document = document([searches, floor, ntex].concat());
    let grid = table(&document);
    let expected = "axum | 1100 | 1000-1200 | server | 3 | 1155 | 2.00ms | 2.00ms | 5.00 | ";
    let row = shown(grid, "axum");
    assert!(row.starts_with(expected), "{row}");
    let names: Vec<&str> = grid
        .rows
        .iter()
        .filter_map(|row| row.subject.as_deref())
        .collect();
    assert_eq!(names, ["ntex", "axum", "floor"], "the yardstick last");
    assert!(grid.notes.is_empty(), "{:?}", grid.notes);
    assert!(document.warnings.is_empty(), "{:?}", document.warnings);
    let (_, chart) = document.charts().next().unwrap();
    let svg = chart.svg();
    for expected in ["tp99&lt;10ms", "ntex", "TP99 against rate"] {
        assert!(svg.contains(expected), "{expected}: {svg}");
    }
    let mut grids = document.grids().map(|(_, grid)| grid);
    let stages = grids.find(|grid| grid.file == "slo-stages").unwrap();
    assert_eq!(stages.rows.len(), 27, "none is hidden");
}

#[test]
fn what_is_not_the_servers_limit_or_not_sure_is_said() {
    let mut bound = search("axum", 1, 1000);
    bound.outcome = SloOutcome::Found {
        rate_per_s: 1000,
        limit: Limit::Client { bound_per_s: 1050 },
    };
    bound.cpus.shared = true;
    let mut lost = search("axum", 2, 1000);
    let late = missed("tp99 was 12.00ms");
    let noise = "rate: 9.0 % of the CPUs used by others";
    lost.stages[1].marks.insert(NOISY.into(), noise.into());
    lost.stages
        .push(stage(StageKind::Confirm, 900, 12_000_000, late));
    lost.outcome = SloOutcome::NotConfirmed {
        lowest_per_s: 900,
        reason: "tp99 was 12.00ms".into(),
    };
    let mut half = search("axum", 3, 1000);
    half.outcome = SloOutcome::Unfinished;
    let mut dead = search("ntex", 1, 1);
    dead.stages.clear();
    dead.outcome = SloOutcome::Failed {
        stage: "start".into(),
        reason: "no listener".into(),
    };
    let document = document(vec![bound, lost, half, dead]);
    let grid = table(&document);
    let row = shown(grid, "axum");
    let expected = "axum | 1000 | 1000-1000 | client, none, unfinished | 1 of 2 | 1050 | ";
    assert!(row.starts_with(expected), "{row}");
    assert!(shown(grid, "ntex").contains("no listener"));
    let notes = grid.notes.join("\n");
    for expected in [
        "axum: at least this rate: the client was at its limit",
        "axum, round 2: no rate was confirmed, down to 900/s: tp99 was 12.00ms.",
        "axum, round 2: 900/s was missed although 1000/s was held",
        "axum, round 3 was interrupted: 1000/s was held, and nothing is confirmed.",
        "axum: others disturbed 1 of the 4 stages that were missed, so the rate may be too low",
        "Server and client share CPUs",
    ] {
        assert!(notes.contains(expected), "{expected}: {notes}");
    }
    let mut grids = document.grids().map(|(_, grid)| grid);
    let stages = grids.find(|grid| grid.file == "slo-stages").unwrap();
    let told = "missed: tp99 was 90.00ms (disturbed: rate: 9.0 % of the CPUs used by others)";
    let is_told = |row: &Line| row.cells.last() == Some(&Cell::Text(told.to_owned()));
    assert!(stages.rows.iter().any(is_told));
    let incomplete = "This run is incomplete: 3 of 9 trials.";
    assert_eq!(
        document.warnings.first().map(String::as_str),
        Some(incomplete)
    );
}

#[test]
fn of_many_subjects_the_best_and_the_yardstick_are_drawn() {
    let names: Vec<String> = (10..40).map(|n| format!("s{n}")).collect();
    let mut searches: Vec<SloRecord> = (names.iter().zip(1..))
        .map(|(name, n)| search(name, 1, 1000 * n))
        .collect();
    searches.push(search(YARDSTICK, 1, 90_000));
    let Some(Block::Chart(chart)) = blocks(&searches)
        .into_iter()
        .find(|block| matches!(block, Block::Chart(_)))
    else {
        panic!("no picture");
    };
    let svg = chart.svg();
    assert!(svg.contains(">s39<") && svg.contains(">floor<"), "{svg}");
    assert!(!svg.contains(">s10<"));
    assert!(
        chart.about.ends_with("Left out, as they hold less: 20."),
        "{}",
        chart.about
    );
}
