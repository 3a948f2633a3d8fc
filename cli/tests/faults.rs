//! What goes wrong: with a server, with the user's input, with the run itself.
//! It is told in the right place and stops nothing else.

mod util;

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::thread;
use std::time::Duration;
use util::project::{free_ports, is_running};
use util::{
    PAYLOAD, Project, Running, add_wrong, alone, clients, descendants, eventually,
    expect_nothing_left, failed, failure, figure, project, record, records, runs, servers, signal,
    wsbench,
};
use wsbench_schema::metric::{CONNECTIONS_LOST, FAILED, NOT_SENT, SUCCEEDED};
use wsbench_schema::{Outcome, Phase, TrialRecord};

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
    let ended = wsbench(&project, "run mortal good -c 4 -n 5000 --seed 1");
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
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
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
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

    let ended = wsbench(&project, "run --resume");
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
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
    let of = |run: &std::path::PathBuf| {
        let files = fs::read_dir(run).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let is_record = |name: &String| name.ends_with(".json") && name != "run.json";
        names.filter(is_record).count()
    };
    runs(project).iter().map(of).sum()
}

/// One line on standard error that says all of `words`, nothing on standard
/// output, and an exit code that says no.
#[track_caller]
fn expect_refused(project: &Project, arguments: &str, words: &[&str]) {
    let ended = Running::start(project, arguments).expect_end(BOUND);
    let said = format!("`wsbench {arguments}` said: {}", ended.stderr);
    assert!(ended.code.is_some_and(|code| code != 0), "{said}");
    assert_eq!(ended.stderr.lines().count(), 1, "{said}");
    assert!(ended.stderr.starts_with("wsbench: "), "{said}");
    assert_eq!(ended.stdout, "", "{said}");
    for word in words {
        assert!(ended.stderr.contains(word), "no `{word}`: {said}");
    }
}

#[test]
fn every_wrong_input_is_refused_in_one_line_that_says_what_is_right() {
    let _alone = alone();
    let project = project();
    add_wrong(&project, "echo", "");
    let refused = |arguments: &str, words: &[&str]| expect_refused(&project, arguments, words);
    // Flags.
    refused("run --ruonds 3", &["--ruonds", "--rounds"]);
    refused("client -f=echo -cc=3", &["-cc"]);
    refused("run -c=0", &["connections is 0", "at least 1"]);
    refused("client -f echo -c=0", &["connections is 0", "at least 1"]);
    refused("run -c=many", &["many", "--connections"]);
    refused("run --rounds=0", &["0", "--rounds"]);
    refused("run --echo-timeout 5", &["5", "--echo-timeout"]);
    refused("run --server-cpus 0-x", &["0-x", "0-3,8"]);
    refused("run --server-cpus 1023", &["1023"]);
    refused("rum", &["rum", "run"]);
    // Names.
    for verb in ["run", "build", "verify", "serve", "client -f"] {
        refused(
            &format!("{verb} ecko"),
            &["ecko", "did you mean `echo`?", "wsbench list"],
        );
    }
    refused("run --profile defualt", &["defualt", "`default`"]);
    refused("run --resume", &["no run to resume", "wsbench run"]);
    refused("kill echo", &["echo is not served"]);
    refused("client -f echo -c 1", &["wsbench serve echo"]);
    // Results.
    refused("report", &["results"]);
    refused(
        "report 2026-01-01T00-00-00Z-0000",
        &["2026-01-01T00-00-00Z-0000"],
    );
    refused("report no/such/folder", &["no/such/folder"]);
    refused(
        "client -f echo --report-only",
        &["no saved result", "wsbench client"],
    );
    // Servers of others.
    for url in ["wss://127.0.0.1:1/ws", "http://127.0.0.1:1/ws"] {
        refused(&format!("client --url {url} -c 1"), &[url, "ws://"]);
    }
    refused("client --url ws://127.0.0.1:0/ws -c 1", &["`0`"]);
    refused("client", &["-f NAME", "--url"]);
}

#[test]
fn nobody_listens_is_told_in_the_block_and_by_the_exit_code() {
    let _alone = alone();
    let project = project();
    let (port, _) = free_ports(1);
    let url = format!("ws://127.0.0.1:{port}/ws");
    let arguments = format!("client --url {url} -c 3 --dial-retries 0");
    let ended = wsbench(&project, &arguments);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    assert!(
        ended.stdout.contains("FAILED : 3, 100.00%"),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.contains("refused"), "{}", ended.stdout);
}

#[test]
fn a_typo_in_a_manifest_is_told_and_changes_nothing_for_the_others() {
    let _alone = alone();
    let project = project();
    add_wrong(&project, "good", "");
    add_wrong(&project, "typo", "");
    let manifest = project.path("frameworks/foreign/typo/bench.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("run =", "rum =")).unwrap();
    let words = ["bench.toml: line 3", "`rum`", "`run`"];
    expect_refused(&project, "run typo", &words);
    expect_refused(&project, "run good typo", &words);
    let listed = wsbench(&project, "list");
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    let row = |name: &str| {
        let rows = listed.stdout.lines();
        rows.into_iter()
            .find(|row| row.contains(name))
            .unwrap_or("")
    };
    assert!(row("typo").contains("broken"), "{}", listed.stdout);
    assert!(!row("good").contains("broken"), "{}", listed.stdout);
    // Nobody is named: the broken one is left out and said so.
    let ended = wsbench(&project, "run");
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(
        ended.stderr.contains("typo is left out"),
        "{}",
        ended.stderr
    );
    assert_eq!(record(&project, "good").outcome, Outcome::Completed);
}

#[test]
fn a_typo_in_a_profile_is_told_with_its_line_and_the_right_key() {
    let _alone = alone();
    let project = project();
    add_wrong(&project, "good", "");
    let profile = project.path("profiles/default.toml");
    let text = fs::read_to_string(&profile).unwrap();
    fs::write(&profile, text.replace("payload", "paylaod")).unwrap();
    let words = ["default.toml: line 6", "`paylaod`", "`payload`"];
    expect_refused(&project, "run", &words);
}

#[test]
fn a_port_in_use_is_told_with_its_holder() {
    let _alone = alone();
    let project = project();
    add_wrong(&project, "good", "");
    let (port, _) = free_ports(1);
    let _listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let port_in_use = format!("port {port} is in use");
    let holder = format!("pid {}", std::process::id());
    let arguments = format!("serve good --ports {port}");
    expect_refused(&project, &arguments, &[&port_in_use, &holder]);
}

#[test]
fn a_second_run_is_refused_while_one_is_under_way_and_does_not_disturb_it() {
    let _alone = alone();
    let project = project();
    add_wrong(&project, "good", "");
    let load = "run good -n 100000000 --echo-duration 2s";
    let mut first = Running::start(&project, load);
    eventually("it is under way", || !runs(&project).is_empty());
    // Its output goes elsewhere than the first one's.
    let second = project.wsbench("run good").output().unwrap();
    let said = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let holder = format!("another run is under way here (pid {})", first.child.id());
    assert!(said.contains(&holder), "{said}");
    let ended = first.expect_end(BOUND);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(records(&project).len(), 1);
}

#[test]
fn results_that_cannot_be_read_are_named() {
    let _alone = alone();
    let project = project();
    add_wrong(&project, "good", "");
    let ended = wsbench(&project, "run good");
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let folder = runs(&project).remove(0);
    let is_record = |path: &Path| !path.ends_with("run.json");
    let files = fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let file = files.into_iter().find(|path| is_record(path)).unwrap();
    let text = fs::read_to_string(&file).unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    // Unknown fields, other versions, altered loads, half files: each is refused.
    let payload = format!("\"payload_bytes\": {PAYLOAD}");
    for (from, to) in [
        ("\"round\": 1", "\"round\": 1, \"extra\": 1"),
        ("\"schema\": 1", "\"schema\": 99"),
        (payload.as_str(), "\"payload_bytes\": 1001"),
    ] {
        assert!(text.contains(from), "{text}");
        fs::write(&file, text.replace(from, to)).unwrap();
        expect_refused(&project, "report", &[name]);
    }
    fs::write(&file, &text[..text.len() / 2]).unwrap();
    expect_refused(&project, "report", &[name]);
    fs::remove_file(folder.join("run.json")).unwrap();
    let arguments = format!("report {}", folder.display());
    expect_refused(&project, &arguments, &["run.json"]);
}

#[test]
fn client_prints_the_block_of_the_original_for_a_server_that_is_served_until_killed() {
    let _alone = alone();
    let project = project();
    add_wrong(&project, "echo_server", "");
    let served = wsbench(&project, "serve --detach echo_server");
    assert_eq!(served.code, Some(0), "{}", served.stderr);
    let server = project.server_pid("echo_server");
    let client = "client -f=echo_server -c=100 -n=5000 -b=1024";
    let ended = wsbench(&project, client);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    expect_block_of_the_original(&ended.stdout);
    let stopped = wsbench(&project, "kill");
    assert_eq!(stopped.code, Some(0), "{}", stopped.stderr);
    assert!(!is_running(server));
    expect_nothing_left(&project, Duration::ZERO);
}

/// What ORIGINAL prints stands first, under its names and in its order.
fn expect_block_of_the_original(stdout: &str) {
    let start = stdout.find("Benchmark: echo_server").expect(stdout);
    let block = &stdout[start..];
    let lines: Vec<(&str, &str)> = block
        .lines()
        .take_while(|line| !line.starts_with("---"))
        .map(|line| line.split_once(':').expect(line))
        .map(|(name, value)| (name.trim(), value.trim()))
        .collect();
    let names: Vec<&str> = lines.iter().map(|(name, _)| *name).collect();
    let expected = [
        "Benchmark",
        "Conns",
        "Payload",
        "TOTAL",
        "SUCCESS",
        "FAILED",
        "TPS",
        "TIME USED",
        "MIN USED",
        "AVG USED",
        "MAX USED",
        "TP50",
        "TP75",
        "TP90",
        "TP95",
        "TP99",
        "CPU MIN",
        "CPU AVG",
        "CPU MAX",
        "MEM MIN",
        "MEM AVG",
        "MEM MAX",
    ];
    assert_eq!(names[..expected.len()], expected, "{block}");
    let value = |name: &str| lines[names.iter().position(|other| *other == name).unwrap()].1;
    for (name, expected) in [
        ("Conns", "100"),
        ("Payload", "1024"),
        ("TOTAL", "5000 times"),
        ("SUCCESS", "5000, 100.00%"),
        ("FAILED", "0, 0.00%"),
    ] {
        assert_eq!(value(name), expected, "{block}");
    }
    assert!(value("TPS").parse::<u64>().unwrap() > 0, "{block}");
    for name in [
        "TIME USED",
        "MIN USED",
        "AVG USED",
        "MAX USED",
        "TP50",
        "TP99",
    ] {
        expect_number(value(name), &["ns", "us", "ms", "s"]);
    }
    expect_number(value("CPU AVG"), &["%"]);
    expect_number(value("MEM AVG"), &["K", "M", "G"]);
    assert!(
        stdout.contains(&format!("\n{}\n", "-".repeat(25))),
        "{stdout}"
    );
}

/// `1.91G`: a number with two decimals and one of the units.
#[track_caller]
fn expect_number(text: &str, units: &[&str]) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let decimals = number.split_once('.').map(|(_, decimals)| decimals.len());
    assert_eq!(decimals, Some(2), "{text}");
    assert!(units.contains(&unit), "{text}");
    assert!(number.parse::<f64>().unwrap() > 0.0, "{text}");
}
