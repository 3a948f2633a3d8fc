//! Runs of the suites for plain TCP from end to end: with relays and servers that
//! are right, and with such that go astray.

mod util;

use std::fs;
use std::path::{Path, PathBuf};
use util::{
    BOUND, Project, REAPED, Running, alone, eventually, expect_exit_code, expect_nothing_left,
    failed, failure, figure, record, records_saved,
};
use wsbench_schema::metric::{FAILED, ORIGIN_CPU, PLANNED_BYTES, SUCCEEDED, VERIFIED_BYTES};
use wsbench_schema::{Outcome, Phase, mark};

const ECHO: &str = "[[load]]\nconnections = 4\npayload = 10_240\n\
                    [load.echo]\nechoes = 2_000\nwarmup = 0\ntimeout = \"5s\"\n";
const BULK: &str = "[[load]]\nconnections = 4\npayload = 10_000\n\
                    [load.bulk]\nbytes = 2_000_000\ntimeout = \"1s\"\n";

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The example beside this test.
fn relay_astray() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap();
    let program = program.join("examples/relay_astray");
    let source = repository().join("cli/examples/relay_astray.rs");
    let modified = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
    assert!(
        modified(&source) < modified(&program),
        "run first: cargo build -p wsbench --examples"
    );
    program
}

/// With `tcp/direct` of this repository, and a profile of these loads.
fn project(suite: &str, loads: &str) -> Project {
    let project = Project::new();
    let direct = fs::read_to_string(repository().join("tcp/direct/bench.toml")).unwrap();
    put(&project, "tcp/direct/bench.toml", &direct);
    let profile = format!(
        "description = \"Of a test\"\nsuite = \"{suite}\"\nrounds = 1\n\
         sample-interval = \"200ms\"\n{loads}"
    );
    // Of a run that goes on too, which has a profile of its own.
    for name in ["default", "small"] {
        put(&project, &format!("profiles/{name}.toml"), &profile);
    }
    project
}

fn put(project: &Project, path: &str, text: &str) {
    let path = project.path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Adds a relay or server: `relay_astray` with these switches.
fn add(project: &Project, suite: &str, name: &str, switches: &str) {
    add_script(
        project,
        suite,
        name,
        &format!("exec \"$0\" {switches} \"$@\""),
    );
}

/// The same, but the first time, when it is examined, it is gone with the first
/// bytes: nothing is waited for then, and the run has to be told to measure it.
fn add_unexamined(project: &Project, suite: &str, name: &str, switches: &str) {
    let script = format!(
        "[ -e {name} ] || {{ touch {name}; exec \"$0\" --die-after 1 \"$@\"; }}\n\
         exec \"$0\" {switches} \"$@\""
    );
    add_script(project, suite, name, &script);
}

fn add_script(project: &Project, suite: &str, name: &str, script: &str) {
    let program = relay_astray().into_os_string().into_string().unwrap();
    let run = serde_json::to_string(&["sh", "-c", script, &program]).unwrap();
    let manifest = format!(
        "suite = \"{suite}\"\nlanguage = \"test\"\nversion = \"{name} 1.0\"\n\
         descriptors = 2\nrun = {run}\n"
    );
    put(project, &format!("tcp/{name}/bench.toml"), &manifest);
}

fn report(project: &Project, name: &str) -> String {
    fs::read_to_string(project.path(&format!("output/report/{name}"))).unwrap()
}

#[test]
fn a_right_relay_is_measured_beside_the_client_without_one() {
    let _alone = alone();
    let project = project("relay", &format!("{ECHO}{BULK}"));
    add(&project, "relay", "good", "");
    let ended = expect_exit_code(0, &project, "run good direct --profile small");
    let verified = ended.stdout.lines().any(|line| {
        let verified = line.strip_prefix("good  verified ");
        verified.is_some_and(|rest| rest.contains('/'))
    });
    assert!(verified, "{}", ended.stdout);
    for record in util::records(&project) {
        let name = &record.subject.name;
        let phase = match &record.load.bulk {
            Some(_) => Phase::Bulk,
            None => Phase::Echo,
        };
        assert_eq!(record.outcome, Outcome::Completed, "{name}");
        assert_eq!(figure(&record, phase, FAILED), 0, "{name}");
        // The client without a relay talks to the origin as its server.
        let origin_cpu = record.metric(phase, ORIGIN_CPU);
        assert_eq!(origin_cpu.is_some(), name == "good", "{name} {phase}");
        if phase == Phase::Bulk {
            let bytes = [PLANNED_BYTES, VERIFIED_BYTES].map(|name| figure(&record, phase, name));
            assert_eq!(bytes[0], bytes[1], "{name}");
        }
    }
    assert_eq!(util::records(&project).len(), 4);
    let report = report(&project, "report.md");
    assert!(report.contains("over direct"), "{report}");
    assert!(
        report.contains("whole and in order, ends behind"),
        "{report}"
    );
    let charts = fs::read_dir(project.path("output/report/charts")).unwrap();
    assert!(charts.count() > 0, "no chart");
    expect_nothing_left(&project, REAPED);
}

#[test]
fn what_goes_astray_in_a_relay_is_a_failed_transfer_by_its_cause_and_the_run_goes_on() {
    let _alone = alone();
    let project = project("relay", BULK);
    let total = 4 * 2_000_000;
    for (name, switches) in [
        ("loses", "--lose-at 1000000"),
        ("swaps", "--swap-at 1000001"),
        ("stops", "--stop-after 3000000"),
        ("dies", "--die-after 3000000"),
        ("deaf", "--never-connect"),
        ("whole", ""),
    ] {
        add_unexamined(&project, "relay", name, switches);
    }
    let arguments = "run loses swaps stops dies deaf whole --profile small --unverified --seed 1 \
                     --dial-timeout 300ms --dial-retries 0";
    let mut run = Running::start(&project, arguments);
    let ended = run.expect_end(BOUND);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    for (name, cause) in [
        ("loses", "wrong_payload"),
        ("swaps", "wrong_payload"),
        ("stops", "lost"),
    ] {
        let record = record(&project, name);
        let metrics = &record.metrics;
        assert_eq!(
            failed(&record, Phase::Bulk, cause),
            4,
            "{name}: {metrics:?}"
        );
        let right = figure(&record, Phase::Bulk, VERIFIED_BYTES);
        assert!(right < total, "{name}: {right}");
    }
    let dies = record(&project, "dies");
    let (stage, reason) = failure(&dies);
    assert_eq!(stage, "bulk", "{reason}");
    assert!(reason.contains("exited with code 1"), "{reason}");
    assert_eq!(figure(&dies, Phase::Bulk, PLANNED_BYTES), total);
    let deaf = record(&project, "deaf");
    assert_eq!(failure(&deaf).0, "connect", "{:?}", deaf.outcome);
    let whole = record(&project, "whole");
    assert_eq!(figure(&whole, Phase::Bulk, VERIFIED_BYTES), total);
    assert_eq!(figure(&whole, Phase::Bulk, SUCCEEDED), 4);
    assert!(whole.marks.contains_key(mark::UNVERIFIED));
    let report = report(&project, "report.md");
    for name in ["stops", "dies"] {
        let marked = format!("P ({name}): partial: not everything was transferred, ");
        let line = report.lines().find(|line| line.contains(&marked));
        let line = line.unwrap_or_else(|| panic!("{name}: {report}"));
        assert!(line.contains(" of 16.0 MB where it was least"), "{line}");
    }
    expect_nothing_left(&project, REAPED);
}

#[test]
fn an_interrupted_run_of_relays_goes_on_where_it_ended() {
    let _alone = alone();
    let project = project("relay", BULK);
    add_unexamined(&project, "relay", "whole", "");
    let arguments = "run whole direct --profile small --unverified --rounds 2";
    let mut run = Running::start(&project, arguments);
    eventually("a record is saved", || records_saved(&project) > 0);
    run.press_ctrl_c();
    run.expect_end(BOUND);
    let saved = records_saved(&project);
    assert!((1..4).contains(&saved), "{saved}");
    expect_nothing_left(&project, REAPED);
    expect_exit_code(0, &project, "run --resume");
    assert_eq!(
        (records_saved(&project), util::runs(&project).len()),
        (4, 1)
    );
    expect_nothing_left(&project, REAPED);
}

/// `[2.0s] 140.9 MB transferred, 70.4 MB/s`: its three figures.
fn progress(line: &str) -> Option<[f64; 3]> {
    let (seconds, rest) = line.strip_prefix('[')?.split_once("s] ")?;
    let (megabytes, rest) = rest.split_once(" MB transferred, ")?;
    let figures = [seconds, megabytes, rest.strip_suffix(" MB/s")?];
    let is_figure = |text: &&str| {
        text.split_once('.')
            .is_some_and(|(_, tenths)| tenths.len() == 1)
    };
    if !figures.iter().all(is_figure) {
        return None;
    }
    let [seconds, megabytes, speed] = figures.map(|text| text.parse().ok());
    Some([seconds?, megabytes?, speed?])
}

#[test]
fn a_transfer_tells_every_two_seconds_how_far_it_is() {
    let _alone = alone();
    let project = project("transfer", BULK);
    add_unexamined(&project, "transfer", "echo", "");
    let slow = "--slow-readers 100 --slow-bytes-per-s 800000";
    let arguments = format!("run echo --profile small --unverified -c 1 {slow}");
    let ended = expect_exit_code(0, &project, &arguments);
    let said = ended.stdout + &ended.stderr;
    let lines: Vec<_> = said.lines().filter_map(progress).collect();
    let [seconds, megabytes, speed] = *lines.first().unwrap_or_else(|| panic!("{said}"));
    assert!((1.5..3.5).contains(&seconds), "{said}");
    // There and back, of 2 MB.
    assert!((0.1..4.0).contains(&megabytes), "{said}");
    assert!((speed - megabytes / seconds).abs() <= 0.11, "{said}");
    expect_nothing_left(&project, REAPED);
}
