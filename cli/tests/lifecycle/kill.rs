//! `wsbench kill`: what is named in output/run, if it is still that, and nothing else.

use crate::project::{PATIENCE, Project, eventually, is_running, signal};
use std::fs;
use std::process::Command;

#[test]
fn nothing_to_kill_is_no_failure_but_a_name_that_is_not_served_is() {
    let project = Project::new();
    project.misbehave("echo", "");
    assert_eq!(
        project.run("kill").expect_success(),
        "no server is running\n"
    );
    let error = project.run("kill echo").expect_failure();
    assert!(error.contains("echo is not served on this host"), "{error}");
}

#[test]
fn a_stale_file_is_removed_and_whoever_has_its_number_now_is_left_alone() {
    let project = Project::new();
    project.misbehave("echo", "");
    let mut serve = project.serve("echo");
    let mut file = project.run_file("echo").unwrap();
    serve.signal("KILL");
    serve.child.wait().unwrap();
    project.expect_nothing_left(PATIENCE);
    // The file is still there. Its numbers are now somebody else's.
    let mut other = Command::new("sleep").arg("60").spawn().unwrap();
    for process in ["server", "supervisor"] {
        file[process]["pid"] = other.id().into();
    }
    let path = project.path("output/run/echo.json");
    fs::write(&path, file.to_string()).unwrap();
    let said = project.run("kill").expect_success();
    assert_eq!(said, "echo: ran no more, its stale file is removed\n");
    assert!(!path.exists());
    assert!(is_running(other.id()));
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn a_stale_file_does_not_keep_a_server_from_being_served_again() {
    let project = Project::new();
    project.misbehave("echo", "");
    let mut serve = project.serve("echo");
    serve.signal("KILL");
    serve.child.wait().unwrap();
    project.expect_nothing_left(PATIENCE);
    let mut serve = project.serve("echo");
    serve.signal("INT");
    assert_eq!(serve.expect_exit(), Some(0));
}

#[test]
fn a_server_whose_supervisor_hangs_is_ended_by_signals() {
    let project = Project::new();
    project.misbehave("echo", "--ignore-sigterm");
    let mut serve = project.serve("echo");
    let server = project.server_pid("echo");
    serve.signal("STOP");
    let said = project.run("kill echo").expect_success();
    assert!(said.contains("`wsbench serve` did not answer"), "{said}");
    assert!(!is_running(server));
    serve.signal("CONT");
    // It finds the request to stop, the dead server, or both.
    assert!(serve.expect_exit().is_some());
    assert_eq!(project.run_file("echo"), None);
}

#[test]
fn a_server_that_ignores_sigterm_is_stopped_all_the_same() {
    let project = Project::new();
    project.misbehave("stubborn", "--ignore-sigterm");
    let mut serve = project.serve("stubborn");
    let server = project.server_pid("stubborn");
    project.run("kill stubborn").expect_success();
    assert!(!is_running(server));
    assert_eq!(serve.expect_exit(), Some(0));
    signal(server, "0");
    eventually("its file is gone", || {
        project.run_file("stubborn").is_none()
    });
}
