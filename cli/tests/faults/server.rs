//! What is wrong with a server is its result, in its row.

use crate::util::{
    BOUND, REAPED, Running, add_wrong, expect_exit_code, expect_nothing_left, failed, failure,
    figure, once_examined, project, record,
};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;
use wsbench_schema::metric::{CONNECTIONS_LOST, FAILED, NOT_SENT, SUCCEEDED};
use wsbench_schema::{Outcome, Phase, mark};

#[test]
fn a_server_that_dies_is_a_failed_row_and_the_next_is_measured() {
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
    let counted = format!("; until then {answered} echoes right, ");
    assert!(reason.contains(&counted), "{reason}");
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
    // The examiner asks for one more than 10,000 times.
    let [300, 300, examined] = answered[..] else {
        panic!("not one that was examined and two that were measured: {answered:?}");
    };
    assert!(examined > 300, "{examined}");
}

#[test]
fn a_server_that_ends_before_it_listens_is_a_failed_row_with_its_last_words() {
    let project = project();
    add_wrong(&project, "good", "");
    add_wrong(&project, "quitter", "--exit-at-start");
    let ended = expect_exit_code(1, &project, "run quitter good -n 100 --seed 1");
    let quitter = record(&project, "quitter");
    let (stage, reason) = failure(&quitter);
    assert_eq!(stage, "start");
    assert!(
        reason.contains("exited with code 1 before it listened"),
        "{reason}"
    );
    assert!(reason.contains("told to exit at the start"), "{reason}");
    assert!(ended.stdout.contains(reason), "{}", ended.stdout);
    assert_eq!(record(&project, "good").outcome, Outcome::Completed);
    expect_nothing_left(&project, Duration::ZERO);
}

/// The test itself is the other program.
#[test]
fn a_port_that_another_program_took_meanwhile_is_told_with_its_holder() {
    let project = project();
    let wait =
        "echo \"$@\" > told.part; mv told.part told; while ! [ -e taken ]; do sleep 0.01; done";
    project.script("late", &once_examined(wait, ""));
    let folder = project.path("frameworks/foreign/late");
    let mut run = Running::start(&project, "run late");
    crate::util::eventually("it knows its ports", || folder.join("told").exists());
    let told = fs::read_to_string(folder.join("told")).unwrap();
    let (_, ports) = told.split_once("--ports ").unwrap();
    let first = ports.split(['-', ' ']).next().unwrap();
    let _holder = TcpListener::bind(format!("127.0.0.1:{first}")).unwrap();
    fs::write(folder.join("taken"), "").unwrap();
    let ended = run.expect_end(BOUND);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    let late = record(&project, "late");
    let (stage, reason) = failure(&late);
    assert_eq!(stage, "start");
    let holder = format!("pid {}", std::process::id());
    assert!(reason.contains(&holder), "{reason}");
    assert!(reason.contains("listens on"), "{reason}");
}

/// Megabytes a second to its log, all the time.
#[test]
fn a_server_that_never_stops_talking_is_measured_and_does_not_fill_the_disk() {
    let project = project();
    project.script("chatty", "echo begin; yes & exec \"$MISBEHAVE\" \"$@\"");
    add_wrong(&project, "good", "");
    let load = "run chatty good -c 4 -n 100000000 --echo-duration 1s --seed 1";
    expect_exit_code(0, &project, load);
    expect_nothing_left(&project, Duration::ZERO);
    let chatty = record(&project, "chatty");
    assert!(figure(&chatty, Phase::Echo, SUCCEEDED) > 100);
    let run = fs::read_dir(project.path("output/log")).unwrap().next();
    let log = run.unwrap().unwrap().path().join(chatty.file_name());
    let text = fs::read(log.with_extension("log")).unwrap();
    assert!(text.starts_with(b"begin\ny\n"));
    assert!((1 << 20..200 << 20).contains(&text.len()), "{}", text.len());
    let text = String::from_utf8(text).unwrap();
    let is_note = |line: &&str| line.starts_with("[wsbench: too much output; about ");
    assert_eq!(text.lines().filter(is_note).count(), 1);
}

#[test]
fn a_server_that_closes_nothing_and_opens_ever_more_leaves_nothing() {
    let project = project();
    let server = |files: u32| once_examined(&format!("ulimit -n {files}"), "--leak");
    project.script("leaking", &server(300));
    // Not all of its connections find a file: the kernel takes them, nobody answers.
    project.script("full", &server(100));
    let load = "-c 200 -n 2000 --dial-timeout 1s --dial-retries 0";
    expect_exit_code(1, &project, &format!("run leaking full {load}"));
    let leaking = record(&project, "leaking");
    assert_eq!(leaking.outcome, Outcome::Completed);
    assert_eq!(figure(&leaking, Phase::Echo, SUCCEEDED), 2000);
    let full = record(&project, "full");
    let dials = |name| figure(&full, Phase::Connect, name);
    assert_eq!(dials(SUCCEEDED) + dials(FAILED), 200);
    assert!(dials(FAILED) >= 100, "{}", dials(FAILED));
    expect_nothing_left(&project, Duration::ZERO);
    for record in [leaking, full] {
        let ports = record.settings["ports"].split_once('-').unwrap();
        let ports = ports.0.parse::<u16>().unwrap()..=ports.1.parse().unwrap();
        assert_eq!(sockets_of(ports), [""; 0]);
    }
}

/// Rows of `/proc/net/tcp` with these local ports, TIME_WAIT apart.
fn sockets_of(ports: std::ops::RangeInclusive<u16>) -> Vec<String> {
    let text = fs::read_to_string("/proc/net/tcp").unwrap();
    let rows = text.lines().skip(1).map(str::to_owned);
    rows.filter(|row| {
        let fields: Vec<&str> = row.split_whitespace().collect();
        let port = fields[1].split_once(':').unwrap().1;
        ports.contains(&u16::from_str_radix(port, 16).unwrap()) && fields[3] != "06"
    })
    .collect()
}
