//! Whether the harness' test of itself can fail: a server that is slower under
//! one of its two names is entered as the same server twice.

mod util;

use std::fs;
use std::process::Command;
use std::time::Duration;
use util::{Project, Running, alone, project};

/// `wsbench report` of the only run in the project that the self-test made.
fn report_of_the_test(project: &Project) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wsbench"));
    command.arg("report");
    command.env("WSBENCH_ROOT", project.path("output/selftest"));
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[test]
fn a_server_that_differs_by_its_name_fails_the_selftest_and_three_rounds_are_too_few_to_say_so() {
    let _alone = alone();
    let project = project();
    // Its folder, which is named after it, is where a server is started.
    let script = "case $PWD in\n\
                  */twin-b) exec $MISBEHAVE --only-bytes 1000 --burn-each-ns 100000 \"$@\" ;;\n\
                  *) exec $MISBEHAVE \"$@\" ;;\nesac";
    project.script("floor", script);
    let mut test = Running::start(&project, "selftest --short");
    let ended = test.expect_end(Duration::from_secs(120));
    let (stdout, stderr) = (&ended.stdout, &ended.stderr);
    assert_eq!(ended.code, Some(1), "{stdout}{stderr}");
    assert!(stderr.contains("ALARM"), "{stderr}");
    let told = "1 of 1 runs of 8 rounds report a difference, 0 may: FAILED";
    assert!(stdout.contains(told), "{stdout}");
    assert!(stdout.contains("Do not trust"), "{stdout}");
    // What is not to be trusted is not gone on with.
    assert!(!stdout.contains("more work"), "{stdout}");

    let report = report_of_the_test(&project);
    let row = |line: &&str| line.contains("twin-a") && line.contains("Server CPU/msg");
    let row = report
        .lines()
        .filter(row)
        .find(|line| line.contains("twin-b"));
    assert!(row.is_some_and(|row| row.contains(" better ")), "{report}");

    // The same run as it was after its third round.
    let results = project.path("output/selftest/results");
    let run = fs::read_dir(results).unwrap().next().unwrap().unwrap();
    for record in fs::read_dir(run.path()).unwrap() {
        let path = record.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if (4..=8).any(|round| name.contains(&format!("-r{round}-"))) {
            fs::remove_file(path).unwrap();
        }
    }
    let report = report_of_the_test(&project);
    let few = "too few rounds to say which differences are real: 3 cannot show one among 2 comparisons, 5 can";
    assert!(report.contains(few), "{report}");
    let says_better = |line: &str| line.contains("twin-") && line.contains("better");
    assert!(!report.lines().any(says_better), "{report}");
}
