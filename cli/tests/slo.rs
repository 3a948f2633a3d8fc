//! The highest rate under an objective: searches of whole runs, of servers whose capacity
//! is known, and what is left of a search that is interrupted.

mod util;

use std::fs;
use std::time::Duration;
use util::*;
use wsbench_schema::{Limit, SloOutcome, SloRecord, StageKind};

/// Each connection is served by a thread of its own, one message each so many
/// microseconds: together this many a second, and never more.
const SLEEP_US: u64 = 20_000;
const CONNECTIONS: u64 = 64;
const CAPACITY_PER_S: u64 = CONNECTIONS * 1_000_000 / SLEEP_US;
/// In 800 ms above the capacity a backlog is longer than this.
const ASKED: &str = "--slo tp95<40ms --slo-duration 800ms --slo-resolution 20%";

fn searches(project: &Project) -> Vec<SloRecord> {
    let runs = runs(project);
    let of_run = |run| SloRecord::load_all(run).unwrap().files;
    runs.iter()
        .map(std::path::PathBuf::as_path)
        .flat_map(of_run)
        .collect()
}

#[test]
fn a_known_capacity_is_found_confirmed_saved_and_reported() {
    let _alone = alone();
    let project = project();
    add_wrong(&project, "slow", &format!("--sleep-us {SLEEP_US}"));
    add_wrong(&project, "quitter", "--exit-at-start");
    let asked = format!("run slow quitter -c {CONNECTIONS} {ASKED}");
    // One subject that cannot be started is a failure of the run and of nobody else.
    let ended = expect_exit_code(1, &project, &asked);
    let searches = searches(&project);
    let [quitter, slow] = &searches[..] else {
        panic!("{searches:?}");
    };
    assert!(matches!(quitter.outcome, SloOutcome::Failed { .. }));
    let SloOutcome::Found { rate_per_s, limit } = slow.outcome else {
        panic!("{:?}\n{}", slow.outcome, ended.stdout);
    };
    // Sleeping takes longer where others work, never shorter.
    assert!(rate_per_s <= CAPACITY_PER_S, "{}", ended.stdout);
    assert!(rate_per_s >= CAPACITY_PER_S * 6 / 10, "{}", ended.stdout);
    let Limit::Server { missed_per_s } = limit else {
        panic!("{limit:?}");
    };
    assert!(missed_per_s > rate_per_s && missed_per_s <= CAPACITY_PER_S * 13 / 10);
    let last = slow.stages.last().unwrap();
    assert_eq!(
        (last.kind, last.rate_per_s),
        (StageKind::Confirm, rate_per_s)
    );
    assert_eq!(last.duration_ms, 2400);
    assert!(records(&project).is_empty(), "a search is no trial");
    let held = format!("HOLDS {rate_per_s}/s (missed at {missed_per_s}/s)");
    assert!(ended.stdout.contains(&held), "{}", ended.stdout);
    let report = fs::read_to_string(project.path("output/report/report.md")).unwrap();
    assert!(report.contains("## Max rate under SLO"), "{report}");
    // Without the spaces that make columns.
    let plain = report.split_whitespace().collect::<Vec<_>>().join(" ");
    let row = format!("| slow | {rate_per_s} | {rate_per_s}-{rate_per_s} | server | 1 |");
    assert!(plain.contains(&row), "{report}");
    assert!(!report.contains("incomplete"), "{report}");
    let chart = "output/report/charts/latency-against-rate.svg";
    let chart = fs::read_to_string(project.path(chart)).unwrap();
    assert!(chart.contains("tp95&lt;40ms"), "{chart}");
    let run = &slow.run;
    let other = wsbench(&project, &format!("run --resume={run} --slo tp95<41ms"));
    assert!(
        other.stderr.contains("slo was tp95<40ms"),
        "{}",
        other.stderr
    );
    let again = wsbench(&project, &format!("run --resume={run}"));
    assert!(
        again.stderr.contains("nothing was left to do"),
        "{}",
        again.stderr
    );
}

#[test]
fn a_search_that_is_interrupted_keeps_its_stages_and_is_made_again() {
    let _alone = alone();
    let project = project();
    add_wrong(&project, "slow", &format!("--sleep-us {SLEEP_US}"));
    let asked = format!("run slow -c {CONNECTIONS} {ASKED}");
    let mut run = Running::start(&project, &asked);
    let stages = || {
        searches(&project)
            .first()
            .map_or(0, |found| found.stages.len())
    };
    eventually("a stage is saved", || stages() > 0);
    run.press_ctrl_c();
    let ended = run.expect_end(BOUND);
    assert_eq!(ended.code, Some(130), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("--resume="), "{}", ended.stderr);
    assert!(ended.took < Duration::from_secs(30));
    let kept = searches(&project);
    assert_eq!(kept[0].outcome, SloOutcome::Unfinished);
    let report = fs::read_to_string(project.path("output/report/report.md")).unwrap();
    assert!(
        report.contains("slow, round 1 was interrupted: "),
        "{report}"
    );
    assert!(report.contains("incomplete: 0 of 1"), "{report}");
    expect_nothing_left(&project, REAPED);
}
