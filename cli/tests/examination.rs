//! Who is examined when in a run, what is kept of it, and what follows from it.

mod util;

use std::fs;
use std::path::PathBuf;
use util::{
    PAYLOAD, Project, alone, expect_exit_code, failure, figure, project, records, runs, wsbench,
};
use wsbench_schema::metric::FAILED;
use wsbench_schema::{Examination, Outcome, Phase, TrialRecord, mark};

fn examination(project: &Project, name: &str) -> Examination {
    let run = runs(project).pop().unwrap();
    let found = Examination::load(&run, name).unwrap();
    found.unwrap_or_else(|| panic!("{name} was not examined"))
}

/// As if a run had been interrupted before its last round.
fn lose_the_last_round(project: &Project) {
    let run = runs(project).pop().unwrap();
    let is_last = |trial: &TrialRecord| trial.round == 2;
    let trial = records(project).into_iter().find(is_last).unwrap();
    fs::remove_file(run.join(trial.file_name())).unwrap();
}

#[test]
fn a_subject_is_examined_once_a_run_and_not_again_if_it_is_resumed() {
    let _alone = alone();
    let project = project();
    project.built("one", &format!("--only-bytes {PAYLOAD}"));
    let ended = expect_exit_code(0, &project, "run one --no-build -n 100 --rounds 2");
    let found = examination(&project, "one");
    let said = format!("one  verified {} in ", found.summary());
    assert_eq!(ended.stdout.matches(&said).count(), 1, "{}", ended.stdout);
    assert!(found.passed() && found.findings.len() >= 20, "{found:?}");
    let records = records(&project);
    assert_eq!(records.len(), 2);
    assert!(found.binary.is_some());
    assert_eq!(found.binary.as_ref(), records[0].settings.get("binary"));

    lose_the_last_round(&project);
    let ended = expect_exit_code(0, &project, "run --resume --no-build");
    assert!(!ended.stdout.contains("one  verified"), "{}", ended.stdout);
    assert_eq!(examination(&project, "one"), found);

    lose_the_last_round(&project);
    let file: PathBuf = Examination::path(&runs(&project)[0], "one");
    fs::write(&file, "{\"schema\": 1").unwrap();
    let ended = expect_exit_code(0, &project, "run --resume --no-build");
    assert!(ended.stdout.contains(&said), "{}", ended.stdout);
    let why = format!("one is examined again: {}: ", file.display());
    assert!(ended.stderr.contains(&why), "{}", ended.stderr);
    assert!(examination(&project, "one").passed());
}

#[test]
fn a_wrong_server_is_timed_in_no_round_and_a_dead_one_is_told_from_it() {
    let _alone = alone();
    let project = project();
    project.misbehave("wrong", "--corrupt-every 2");
    project.misbehave("mortal", "--die-after 3");
    project.misbehave("stillborn", "--exit-at-start");
    expect_exit_code(1, &project, "run -n 100 --rounds 2");
    let records = records(&project);
    assert_eq!(records.len(), 6);
    for record in &records {
        assert!(record.metrics.is_empty(), "{record:?}");
        let expected = match record.subject.name.as_str() {
            "wrong" => ("verify", " cases passed; echo/"),
            "mortal" => ("verify", "saw server exited with code 1"),
            _ => ("start", "exited with code 1 before it listened"),
        };
        let (stage, reason) = failure(record);
        assert_eq!(stage, expected.0, "{reason}");
        assert!(reason.contains(expected.1), "{reason}");
    }
    let wrong = examination(&project, "wrong");
    let reason = failure(&records[5]).1;
    assert!(reason.starts_with(&wrong.summary()), "{reason}");
    assert!(!wrong.passed() && !examination(&project, "mortal").passed());
    let run = runs(&project).pop().unwrap();
    assert_eq!(Examination::load(&run, "stillborn").unwrap(), None);
}

#[test]
fn unverified_servers_are_timed_and_each_of_their_records_says_so() {
    let _alone = alone();
    let project = project();
    project.misbehave("wrong", "--corrupt-every 50");
    project.misbehave("mortal", "--die-after 3");
    let ended = wsbench(&project, "run --unverified -c 9 -n 100 --rounds 2");
    let told = "wrong is timed although it failed verification: ";
    assert_eq!(ended.stderr.matches(told).count(), 1, "{}", ended.stderr);
    let records = records(&project);
    assert_eq!(records.len(), 4);
    for record in &records {
        let reason = &record.marks[mark::UNVERIFIED];
        assert!(reason.contains(" cases passed; "), "{reason}");
        match record.subject.name.as_str() {
            "wrong" => {
                assert_eq!(record.outcome, Outcome::Completed);
                assert_eq!(figure(record, Phase::Echo, FAILED), 2);
            }
            _ => assert_eq!(failure(record).0, "echo"),
        }
    }
}
