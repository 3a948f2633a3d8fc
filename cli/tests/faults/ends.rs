//! The user or the terminal ends a run; two want to measure at once.

use crate::util::{
    BOUND, Ended, Project, REAPED, Running, add_wrong, clients, descendants, eventually,
    expect_exit_code, expect_nothing_left, project, records, records_saved, runs,
    sighup_is_ignored, signal,
};
use std::fs;
use std::thread;
use std::time::Duration;
use wsbench_schema::Outcome;

#[test]
fn ctrl_c_keeps_and_reports_what_there_is_and_resume_measures_the_rest() {
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

/// Shell and kernel both send SIGHUP when a terminal is closed: the second is no haste.
#[test]
fn sigterm_and_sighup_end_a_run_as_ctrl_c_does() {
    for signals in [["TERM"].as_slice(), &["HUP", "HUP"]] {
        if signals.contains(&"HUP") && sighup_is_ignored() {
            continue;
        }
        let project = project();
        add_wrong(&project, "server", "--fork --ignore-sigterm");
        let mut run = Running::start(&project, "run server -c 8 -n 100000000");
        eventually("it is measured", || clients(&project) == 1);
        for name in signals {
            signal(run.child.id(), name);
            thread::sleep(Duration::from_millis(50));
        }
        let ended = run.expect_end(BOUND);
        assert_eq!(ended.code, Some(130), "{}{}", ended.stdout, ended.stderr);
        expect_nothing_left(&project, Duration::ZERO);
        expect_nothing_kept(&project, &ended);
    }
}

/// An empty run would be the newest, in the place of the last good one.
#[track_caller]
fn expect_nothing_kept(project: &Project, ended: &Ended) {
    let nothing = "interrupted before anything was measured";
    assert!(ended.stderr.contains(nothing), "{}", ended.stderr);
    assert!(runs(project).is_empty(), "{:?}", runs(project));
    assert!(!project.path("output/report").exists());
}

#[test]
fn under_nohup_a_run_outlives_its_terminal() {
    let project = project();
    add_wrong(&project, "server", "");
    let arguments = "run server -c 8 -n 100000000 --echo-duration 1s";
    let mut run = Running::in_shell(&project, "trap '' HUP; exec \"$@\"", arguments);
    eventually("it is measured", || clients(&project) == 1);
    signal(run.child.id(), "HUP");
    let ended = run.expect_end(BOUND);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(records(&project).len(), 1);
}

#[test]
fn a_run_whose_terminal_is_closed_ends_in_order_and_is_reported() {
    if sighup_is_ignored() {
        return;
    }
    let project = project();
    for name in ["one", "two"] {
        add_wrong(&project, name, "");
    }
    let load = "run one two -c 8 -n 100000000 --echo-duration 1s --rounds 2";
    let (mut run, terminal) = Running::on_terminal(&project, load);
    eventually("the first is measured", || records_saved(&project) == 1);
    eventually("the second is under way", || clients(&project) == 1);
    let shown = terminal.close();
    assert!(shown.contains("4 trials"), "{shown}");
    let ended = run.expect_end(BOUND);
    assert_eq!(ended.code, Some(130));
    expect_nothing_left(&project, Duration::ZERO);
    let saved = records(&project);
    assert_eq!(saved.len(), 1);
    let report = fs::read_to_string(project.path("output/report/report.md")).unwrap();
    assert!(report.contains(&saved[0].subject.name), "{report}");
}

/// A compiler and one that it started, which a signal to the runner alone does not
/// reach, and Ctrl-C in the terminal only if nothing hides from it.
#[test]
fn an_interrupted_build_ends_with_all_that_it_started_and_keeps_no_empty_run() {
    for hasty in [false, true] {
        let project = project();
        add_wrong(&project, "server", "");
        let manifest = project.path("frameworks/foreign/server/bench.toml");
        let text = fs::read_to_string(&manifest).unwrap();
        let build = "build = [[\"sh\", \"-c\", \"setsid -w sleep 61; sleep 62\"]]\n";
        fs::write(&manifest, format!("{text}{build}")).unwrap();
        let mut run = Running::start(&project, "run server");
        let builds = || {
            descendants(&project)
                .iter()
                .any(|(_, line)| line == "sleep 61 ")
        };
        eventually("it is built", builds);
        match hasty {
            false => signal(run.child.id(), "TERM"),
            true => {
                run.press_ctrl_c();
                thread::sleep(Duration::from_millis(200));
                run.press_ctrl_c();
            }
        }
        let ended = run.expect_end(BOUND);
        assert_eq!(ended.code, Some(130), "{}{}", ended.stdout, ended.stderr);
        expect_nothing_left(&project, Duration::ZERO);
        assert!(records(&project).is_empty());
        if !hasty {
            expect_nothing_kept(&project, &ended);
        }
    }
}

#[test]
fn what_would_disturb_a_measurement_is_refused_and_told_what_is_under_way() {
    let project = project();
    add_wrong(&project, "good", "");
    let serve = project.serve("good");
    // Longer than all that is refused meanwhile takes.
    let load = "run good -n 100000000 --echo-duration 8s";
    let mut run = Running::start(&project, load);
    eventually("it is under way", || clients(&project) == 1);
    let name = runs(&project).remove(0);
    let name = name.file_name().unwrap().to_str().unwrap().to_owned();
    let pid = run.child.id();
    let expected = format!("wsbench: run {name} is under way here (pid {pid}, since 2");
    for second in [
        "run good",
        "client -f good",
        "build good",
        "verify good",
        "serve good",
        "clean",
    ] {
        let refused = project.run(second);
        if second == "clean" {
            assert!(
                refused.stderr.contains("still served"),
                "{}",
                refused.stderr
            );
            continue;
        }
        assert_eq!(refused.code, Some(1), "{second}: {}", refused.stderr);
        assert!(
            refused.stderr.starts_with(&expected),
            "{second}: {}",
            refused.stderr
        );
        assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
    }
    let ended = run.expect_end(BOUND);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    // What is served could be loaded from elsewhere: the record says so.
    let beside = "good: served here meanwhile";
    assert!(ended.stderr.contains(beside), "{}", ended.stderr);
    assert_eq!(records(&project)[0].settings["served_beside"], "good");
    drop(serve);
}

#[test]
fn ctrl_c_twice_ends_at_once_and_leaves_nothing() {
    let project = project();
    add_wrong(&project, "server", "--fork --ignore-sigterm");
    let mut run = Running::start(&project, "run server -c 8 -n 100000000");
    eventually("it is measured", || clients(&project) == 1);
    run.press_ctrl_c();
    thread::sleep(Duration::from_millis(100));
    run.press_ctrl_c();
    let ended = run.expect_end(BOUND);
    assert_eq!(ended.code, Some(130), "{}{}", ended.stdout, ended.stderr);
    // In order, it would have waited for the deaf server and said so.
    assert!(!ended.stderr.contains("interrupted"), "{}", ended.stderr);
    expect_nothing_left(&project, REAPED);
}
