//! Processes that are killed: the runner, a client, a keeper.

use crate::util::{
    BOUND, REAPED, Running, add_wrong, clients, descendants, eventually, expect_nothing_left,
    failure, project, records, servers, signal,
};
use std::thread;
use std::time::Duration;
use wsbench_schema::{Outcome, TrialRecord};

/// Kills the runner in the midst of the echo phase.
fn expect_reaped_after_sigkill(switches: &str, processes: usize) {
    let project = project();
    add_wrong(&project, "server", switches);
    let mut run = Running::start(&project, "run server -c 8 -n 100000000");
    eventually("it is measured", || clients(&project) == 1);
    thread::sleep(Duration::from_millis(500));
    assert_eq!(servers(&project), processes);
    signal(run.child.id(), "KILL");
    run.child.wait().unwrap();
    expect_nothing_left(&project, REAPED);
}

#[test]
fn a_runner_that_is_killed_leaves_no_server_behind() {
    expect_reaped_after_sigkill("", 1);
}

#[test]
fn a_runner_that_is_killed_leaves_no_grandchild_behind_even_one_that_is_deaf_to_sigterm() {
    expect_reaped_after_sigkill("--fork --ignore-sigterm", 3);
}

#[test]
fn a_client_that_is_killed_is_a_failed_row_and_the_next_is_measured() {
    expect_only_the_first_to_fail("client-process", "exec");
}

#[test]
fn a_keeper_that_is_killed_is_a_failed_row_and_the_next_is_measured() {
    expect_only_the_first_to_fail("wsbench keeper", "exec");
}

/// In a session of its own and deaf to SIGTERM, so that nobody but the heir of its
/// keeper can find it.
#[test]
fn a_keeper_that_is_killed_leaves_no_grandchild_that_hides() {
    expect_only_the_first_to_fail("wsbench keeper", "trap '' TERM; setsid -w");
}

/// Of two trials, the first loses the process of that command line. The servers are
/// started in this way.
fn expect_only_the_first_to_fail(victim: &str, how: &str) {
    let project = project();
    for name in ["one", "two"] {
        let script = format!("{how} \"$MISBEHAVE\" --ignore-sigterm \"$@\"");
        project.script(name, &script);
    }
    let load = "-c 8 -n 100000000 --echo-duration 1s";
    let mut run = Running::start(&project, &format!("run one two {load}"));
    eventually("it is measured", || clients(&project) == 1);
    thread::sleep(Duration::from_millis(300));
    let all = descendants(&project);
    let victims: Vec<_> = all
        .iter()
        .filter(|(_, line)| line.contains(victim))
        .collect();
    assert_eq!(victims.len(), 1, "{all:?}");
    signal(victims[0].0, "KILL");
    let ended = run.expect_end(BOUND);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    expect_nothing_left(&project, Duration::ZERO);
    let records = records(&project);
    assert_eq!(records.len(), 2);
    let completed = |record: &&TrialRecord| record.outcome == Outcome::Completed;
    let outcomes: Vec<_> = records.iter().map(|record| &record.outcome).collect();
    assert_eq!(records.iter().filter(completed).count(), 1, "{outcomes:?}");
    let lost = records.iter().find(|record| !completed(record)).unwrap();
    let (stage, reason) = failure(lost);
    // On a busy machine it may not have come further.
    assert!(["connect", "echo"].contains(&stage), "{stage}");
    assert!(reason.contains("killed"), "{reason}");
}
