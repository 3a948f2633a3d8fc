//! What goes wrong with a server, a client or the run itself is told in the right
//! place, stops nothing else and leaves nothing behind.

mod util;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;
use util::{
    Project, Running, add_wrong, alone, clients, descendants, eventually, expect_exit_code,
    expect_nothing_left, failed, failure, figure, project, record, records, runs, servers, signal,
};
use wsbench_schema::metric::{CONNECTIONS_LOST, FAILED, NOT_SENT, SUCCEEDED};
use wsbench_schema::{Outcome, Phase, TrialRecord, mark};

/// Long enough for a run that would hang to be told from one that is slow.
const BOUND: Duration = Duration::from_secs(20);
/// Of a killed runner's servers.
const REAPED: Duration = Duration::from_secs(5);

#[test]
fn a_server_that_dies_is_a_failed_row_and_the_next_is_measured() {
    let _alone = alone();
    let project = project();
    add_wrong(&project, "good", "");
    add_wrong(&project, "mortal", "--die-after 1000");
    // With this seed the mortal one is first.
    let ended = expect_exit_code(1, &project, "run mortal good -c 4 -n 5000 --seed 1");
    let place = |text: &str| ended.stdout.find(text).expect(&ended.stdout);
    assert!(
        place("mortal  round 1/1") < place("good    round 1/1"),
        "{}",
        ended.stdout
    );
    let mortal = record(&project, "mortal");
    let (stage, reason) = failure(&mortal);
    assert_eq!(stage, "echo");
    assert!(
        reason.contains("exited with code 1 during echo"),
        "{reason}"
    );
    // Three others were read before the last one was written.
    let answered = figure(&mortal, Phase::Echo, SUCCEEDED);
    assert!((997..=1000).contains(&answered), "{answered}");
    let good = record(&project, "good");
    assert_eq!(good.outcome, Outcome::Completed);
    assert_eq!(figure(&good, Phase::Echo, SUCCEEDED), 5000);
    // The failure is in the report's table, beside the other's figures.
    let report = fs::read_to_string(project.path("output/report/report.md")).unwrap();
    let row = |name: &str| {
        let begins = format!("| {name} ");
        let mut rows = report.lines().filter(|line| line.starts_with(&begins));
        rows.next().expect(&report)
    };
    assert!(row("mortal").to_lowercase().contains("failed"), "{report}");
    assert!(!row("good").to_lowercase().contains("failed"), "{report}");
    expect_nothing_left(&project, REAPED);
}

#[test]
fn a_server_that_never_answers_ends_by_the_timeout_as_a_failed_row() {
    let _alone = alone();
    let project = project();
    add_wrong(&project, "mute", "--mute-after 0");
    let mut run = Running::start(&project, "run mute -c 8 --echo-timeout 1s");
    let ended = run.expect_end(BOUND);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    let mute = record(&project, "mute");
    let (stage, reason) = failure(&mute);
    assert_eq!(stage, "echo");
    assert!(reason.contains("no echo succeeded"), "{reason}");
    assert!(reason.contains("lost 8"), "{reason}");
    assert_eq!(failed(&mute, Phase::Echo, "lost"), 8);
    assert_eq!(figure(&mute, Phase::Echo, NOT_SENT), 992);
}

#[test]
fn a_server_that_falls_silent_loses_what_was_in_flight_and_hangs_nobody() {
    let _alone = alone();
    let project = project();
    add_wrong(&project, "silent", "--mute-after 500");
    let mut run = Running::start(&project, "run silent -c 8 -n 1000 --echo-timeout 1s");
    let ended = run.expect_end(BOUND);
    let silent = record(&project, "silent");
    let count = |name| figure(&silent, Phase::Echo, name);
    assert_eq!((count(SUCCEEDED), count(FAILED)), (500, 8));
    assert_eq!(failed(&silent, Phase::Echo, "lost"), 8);
    assert_eq!((count(NOT_SENT), count(CONNECTIONS_LOST)), (492, 8));
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
}

#[test]
fn a_server_that_answers_not_even_the_examination_is_a_failed_row_of_that_stage() {
    let _alone = alone();
    let project = project();
    project.misbehave("mute", "--mute-after 0");
    let mut run = Running::start(&project, "run mute");
    let ended = run.expect_end(BOUND);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    let mute = record(&project, "mute");
    assert_eq!(failure(&mute).0, "verify");
}

#[test]
fn connections_that_the_server_closes_are_marked_and_fail_the_run() {
    let _alone = alone();
    let project = project();
    add_wrong(&project, "closer", "--close-every 100");
    expect_exit_code(1, &project, "run closer -c 8 -n 200");
    let closer = record(&project, "closer");
    let lost = figure(&closer, Phase::Echo, CONNECTIONS_LOST);
    let reason = &closer.marks[mark::CONNECTIONS_LOST];
    assert!(lost >= 1, "{lost}");
    let expected = format!("echo: {lost} of 8 connections closed");
    assert!(reason.starts_with(&expected), "{reason}");
}

#[test]
fn without_building_a_stale_program_is_measured_as_it_is_and_that_is_said() {
    let _alone = alone();
    let project = project();
    let write = |path: &str, text: &str| {
        let path = project.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    };
    write(
        "frameworks/old/Cargo.toml",
        "[package]\nname = \"old\"\nversion = \"0.1.0\"\n",
    );
    let program = write("output/bin/old", "#!/bin/sh\necho old 0.0.9\n");
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    let ended = expect_exit_code(1, &project, "run old --no-build");
    let notice = "old is older than its sources and measured as it is (run: wsbench build old)";
    assert!(ended.stderr.contains(notice), "{}", ended.stderr);
    let old = record(&project, "old");
    assert_eq!(failure(&old).0, "start");
    assert_eq!(old.subject.version, "old 0.0.9");
    assert_eq!(old.settings["binary"].len(), 16);
}

/// Its answers to the examiner would be in the log if it had been examined.
#[test]
fn the_server_that_is_measured_has_seen_no_message_but_those_of_the_load() {
    let _alone = alone();
    let project = project();
    let script = "exec \"$MISBEHAVE\" --sleep-us 1 --log \"$PWD/$$.log\" \"$@\"";
    project.script("fresh", script);
    expect_exit_code(0, &project, "run fresh -n 300 --rounds 2");
    let folder = fs::read_dir(project.path("frameworks/foreign/fresh")).unwrap();
    let files = folder.map(|file| file.unwrap().path());
    let logs = files.filter(|path| path.extension().is_some_and(|name| name == "log"));
    let mut answered: Vec<usize> = logs
        .map(|log| fs::read_to_string(log).unwrap().lines().count())
        .collect();
    answered.sort_unstable();
    let [examined, 300, 300] = answered[..] else {
        panic!("not one that was examined and two that were measured: {answered:?}");
    };
    assert!((20..300).contains(&examined), "{examined}");
}

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
    let _alone = alone();
    expect_reaped_after_sigkill("", 1);
}

#[test]
fn a_runner_that_is_killed_leaves_no_grandchild_behind_even_one_that_is_deaf_to_sigterm() {
    let _alone = alone();
    expect_reaped_after_sigkill("--fork --ignore-sigterm", 3);
}

#[test]
fn ctrl_c_keeps_and_reports_what_there_is_and_resume_measures_the_rest() {
    let _alone = alone();
    let project = project();
    for name in ["one", "two"] {
        add_wrong(&project, name, "");
    }
    let load = "-c 8 -n 100000000 --echo-duration 1s --rounds 2";
    let mut run = Running::start(&project, &format!("run one two {load}"));
    eventually("the first is measured", || records_saved(&project) == 1);
    eventually("the second is under way", || clients(&project) == 1);
    thread::sleep(Duration::from_millis(300));
    run.press_ctrl_c();
    let ended = run.expect_end(BOUND);
    assert_eq!(ended.code, Some(130), "{}{}", ended.stdout, ended.stderr);
    expect_nothing_left(&project, Duration::ZERO);

    let first = records(&project);
    assert_eq!(first.len(), 1, "half a trial is none");
    let report = project.path("output/report/report.md");
    let text = fs::read_to_string(&report).unwrap();
    let first_name = &first[0].subject.name;
    assert!(text.contains(first_name), "{text}");
    assert!(ended.stdout.contains("Framework"), "{}", ended.stdout);
    let folder = runs(&project).remove(0);
    let plan = fs::read(folder.join("run.json")).unwrap();

    expect_exit_code(0, &project, "run --resume");
    assert_eq!(
        runs(&project),
        std::slice::from_ref(&folder),
        "it is the same run"
    );
    assert_eq!(fs::read(folder.join("run.json")).unwrap(), plan);
    let all = records(&project);
    assert!(all.contains(&first[0]), "what was measured stays as it was");
    let mut trials: Vec<_> = all
        .iter()
        .map(|record| (record.subject.name.as_str(), record.round, record.attempt))
        .collect();
    trials.sort_unstable();
    let expected = [("one", 1, 1), ("one", 2, 1), ("two", 1, 1), ("two", 2, 1)];
    assert_eq!(trials, expected);
    assert!(all.iter().all(|trial| trial.outcome == Outcome::Completed));
    assert_ne!(fs::read_to_string(&report).unwrap(), text);
}

#[test]
fn sigterm_ends_a_run_as_ctrl_c_does() {
    let _alone = alone();
    let project = project();
    add_wrong(&project, "server", "--fork --ignore-sigterm");
    let mut run = Running::start(&project, "run server -c 8 -n 100000000");
    eventually("it is measured", || clients(&project) == 1);
    signal(run.child.id(), "TERM");
    let ended = run.expect_end(BOUND);
    assert_eq!(ended.code, Some(130), "{}{}", ended.stdout, ended.stderr);
    expect_nothing_left(&project, Duration::ZERO);
    assert_eq!(records_saved(&project), 0);
}

#[test]
fn ctrl_c_twice_ends_at_once_and_leaves_nothing() {
    let _alone = alone();
    let project = project();
    add_wrong(&project, "server", "--fork --ignore-sigterm");
    let mut run = Running::start(&project, "run server -c 8 -n 100000000");
    eventually("it is measured", || clients(&project) == 1);
    run.press_ctrl_c();
    thread::sleep(Duration::from_millis(100));
    run.press_ctrl_c();
    let ended = run.expect_end(Duration::from_secs(1));
    assert_eq!(ended.code, Some(130), "{}{}", ended.stdout, ended.stderr);
    expect_nothing_left(&project, REAPED);
}

#[test]
fn a_client_that_is_killed_is_a_failed_row_and_the_next_is_measured() {
    expect_only_the_first_to_fail("client-process");
}

#[test]
fn a_keeper_that_is_killed_is_a_failed_row_and_the_next_is_measured() {
    expect_only_the_first_to_fail("wsbench keeper");
}

/// Of two trials, the first loses the process of that command line.
fn expect_only_the_first_to_fail(victim: &str) {
    let _alone = alone();
    let project = project();
    for name in ["one", "two"] {
        add_wrong(&project, name, "");
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
    assert_eq!(records.iter().filter(completed).count(), 1);
    let lost = records.iter().find(|record| !completed(record)).unwrap();
    let (stage, reason) = failure(lost);
    assert_eq!(stage, "echo");
    assert!(reason.contains("killed"), "{reason}");
}

fn records_saved(project: &Project) -> usize {
    let of = |run: &PathBuf| {
        let files = fs::read_dir(run).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let is_record = |name: &String| name.ends_with(".json") && name != "run.json";
        names.filter(is_record).count()
    };
    runs(project).iter().map(of).sum()
}
