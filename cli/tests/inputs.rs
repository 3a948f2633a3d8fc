//! What the user gets wrong: each mistake is told in one line that says what is
//! right, and changes nothing for the rest.

mod util;

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;
use util::project::free_ports;
use util::{
    PAYLOAD, Project, Running, add_wrong, alone, eventually, expect_exit_code, project, record,
    records, runs, wsbench,
};
use wsbench_schema::Outcome;

/// Long enough for a run that would hang to be told from one that is slow.
const BOUND: Duration = Duration::from_secs(20);

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
    let ended = expect_exit_code(1, &project, &arguments);
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
    let ended = expect_exit_code(0, &project, "run");
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
    let holder = format!("is under way here (pid {},", first.child.id());
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
    expect_exit_code(0, &project, "run good");
    let folder = runs(&project).remove(0);
    let is_record = |path: &Path| {
        !path.ends_with("run.json") && path.extension().is_some_and(|kind| kind == "json")
    };
    let files = fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let file = files.into_iter().find(|path| is_record(path)).unwrap();
    let text = fs::read_to_string(&file).unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    // Unknown fields, other versions, altered loads, half files: each is left out of the
    // report, which says so.
    let payload = format!("\"payload_bytes\": {PAYLOAD}");
    let left_out = |damaged: &str| {
        fs::write(&file, damaged).unwrap();
        let told = expect_exit_code(0, &project, "report").stdout;
        let warning = format!("WARNING: Not in this report: {name}: ");
        assert!(told.contains(&warning), "no `{warning}`: {told}");
    };
    for (from, to) in [
        ("\"round\": 1", "\"round\": 1, \"extra\": 1"),
        ("\"schema\": 2", "\"schema\": 99"),
        (payload.as_str(), "\"payload_bytes\": 1001"),
    ] {
        assert!(text.contains(from), "{text}");
        left_out(&text.replace(from, to));
    }
    left_out(&text[..text.len() / 2]);
    fs::remove_file(folder.join("run.json")).unwrap();
    let arguments = format!("report {}", folder.display());
    expect_refused(&project, &arguments, &["run.json"]);
}

#[test]
fn what_the_machine_cannot_hold_is_told_by_the_doctor_and_refused_before_anything_starts() {
    let project = project();
    add_wrong(&project, "good", "");
    let doctor = |arguments: &str| {
        let output = project.wsbench(arguments).output().unwrap();
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), told)
    };
    let (code, told) = doctor("doctor -c 100 --json");
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(told["client_processes"], 1);
    let flags = "--client-processes 3 --server-processes auto --ramp --ports 2";
    let (code, told) = doctor(&format!("doctor -c 10,100 {flags} --json"));
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(told["client_processes"], 3);
    assert_eq!(told["server_processes"], 1);
    // Thirty terabytes of the kernel's memory.
    let (code, told) = doctor("doctor -c 4000000000 --json");
    assert_eq!(code, Some(1), "{told}");
    let checks = told["checks"].as_array().unwrap();
    let memory = checks
        .iter()
        .find(|check| check["name"].as_str().unwrap().starts_with("memory: "))
        .unwrap();
    assert_eq!(memory["status"], "short", "{memory}");
    assert!(memory["needed"].as_u64() > memory["found"].as_u64());
    let words = ["cannot hold 4000000000 connections: ", "memory: "];
    expect_refused(&project, "run good -c 4000000000", &words);
    // Processes without a connection would be measured idle.
    let words = ["2 connections cannot be shared by 3 server processes"];
    for verb in ["run good --no-build", "doctor"] {
        let arguments = format!("{verb} -c 2 --server-processes 3");
        expect_refused(&project, &arguments, &words);
    }
    assert_eq!(runs(&project).len(), 0);
}
