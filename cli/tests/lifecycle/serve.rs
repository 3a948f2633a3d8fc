//! `wsbench serve`: when a server counts as started, and how it ends.

use crate::project::{Project, eventually, free_ports, is_running, pid_of};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

#[test]
fn it_serves_until_ctrl_c_and_leaves_nothing() {
    let project = Project::new();
    project.misbehave("echo", "");
    let (first, ports) = free_ports(3);
    let mut serve = project.serve(&format!("echo --ports {ports}"));
    let file = project.run_file("echo").unwrap();
    assert_eq!(file["ports"], ports.as_str());
    assert_eq!(pid_of(&file["supervisor"]), serve.child.id());
    assert!(is_running(project.server_pid("echo")));
    let url = format!("ws://127.0.0.1:{ports}/ws");
    assert!(serve.said.contains(&url), "{}", serve.said);
    assert!(
        serve.said.contains("wsbench client -f echo\n"),
        "{}",
        serve.said
    );
    for port in first..first + 3 {
        TcpStream::connect(("127.0.0.1", port)).unwrap();
    }
    let server = project.server_pid("echo");
    serve.signal("INT");
    assert_eq!(serve.expect_exit(), Some(0));
    assert!(!is_running(server));
    assert_eq!(project.run_file("echo"), None);
    TcpListener::bind(("127.0.0.1", first)).unwrap();
}

#[test]
fn a_server_that_listens_in_a_grandchild_has_started() {
    let project = Project::new();
    project.misbehave("forking", "--fork");
    let mut serve = project.serve("forking");
    let port = project.run_file("forking").unwrap()["ports"].to_string();
    let port: u16 = port
        .trim_matches('"')
        .split('-')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    TcpStream::connect(("127.0.0.1", port)).unwrap();
    serve.signal("TERM");
    assert_eq!(serve.expect_exit(), Some(0));
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn a_server_that_ends_at_once_is_told_with_its_exit_code_and_log() {
    let project = Project::new();
    project.misbehave("quitter", "--exit-at-start");
    let error = project.run("serve quitter").expect_failure();
    assert!(
        error.contains("quitter exited with code 1 before it listened"),
        "{error}"
    );
    assert!(error.contains("told to exit at the start"), "{error}");
    assert_eq!(project.run_file("quitter"), None);
}

#[test]
fn a_server_that_never_listens_is_told_and_stopped_when_the_time_is_over() {
    let project = Project::new();
    project.misbehave("deaf", "--no-listen");
    let (_, ports) = free_ports(2);
    let start = Instant::now();
    let arguments = format!("serve deaf --start-timeout 1s --ports {ports}");
    let error = project.run(&arguments).expect_failure();
    assert!(start.elapsed() >= Duration::from_secs(1));
    assert!(error.contains("deaf did not listen in 1s"), "{error}");
    assert!(
        error.contains("nobody listens on 2 of its ports"),
        "{error}"
    );
    let own = |line: &str| line.contains("--no-listen") && line.contains(&ports);
    let left: Vec<_> = crate::project::all_processes();
    assert!(!left.iter().any(|(_, line)| own(line)), "{left:?}");
}

#[test]
fn somebody_elses_listener_does_not_count_and_is_named() {
    let project = Project::new();
    let marker = project.path("started");
    project.script(
        "usurped",
        &format!(
            "touch {}; exec \"$MISBEHAVE\" --no-listen \"$@\"",
            marker.display()
        ),
    );
    let (port, _) = free_ports(1);
    let serve = project
        .wsbench(&format!("serve usurped --start-timeout 3s --ports {port}"))
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    eventually("the server has started", || marker.exists());
    let _listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let output = serve.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let who = format!("pid {} (", std::process::id());
    assert!(error.contains(&who), "{error}");
    assert!(
        error.contains(&format!("listens on 127.0.0.1:{port}, not the server")),
        "{error}"
    );
}

#[test]
fn a_port_in_use_is_told_with_its_holder_before_anything_starts() {
    let project = Project::new();
    project.misbehave("echo", "");
    let (port, ports) = free_ports(3);
    let _listener = TcpListener::bind(("127.0.0.1", port + 1)).unwrap();
    let error = project
        .run(&format!("serve echo --ports {ports}"))
        .expect_failure();
    let expected = format!("port {} is in use: pid {}", port + 1, std::process::id());
    assert!(error.contains(&expected), "{error}");
}

#[test]
fn an_unknown_server_is_told_with_the_nearest_name() {
    let project = Project::new();
    project.misbehave("echo", "");
    for detach in ["", "--detach"] {
        let error = project
            .run(&format!("serve ecko {detach}"))
            .expect_failure();
        assert!(error.contains("ecko") && error.contains("echo"), "{error}");
    }
}

#[test]
fn a_server_that_dies_later_ends_serve_with_a_failure() {
    let project = Project::new();
    project.misbehave("mortal", "");
    let mut serve = project.serve("mortal");
    crate::project::signal(project.server_pid("mortal"), "KILL");
    eventually("its file is gone", || project.run_file("mortal").is_none());
    assert_eq!(serve.expect_exit(), Some(1));
}

#[test]
fn detached_it_returns_while_the_server_runs_on_and_runs_once() {
    let project = Project::new();
    project.misbehave("echo", "");
    let said = project.run("serve echo --detach").expect_success();
    assert!(said.contains("wsbench client -f echo"), "{said}");
    let server = project.server_pid("echo");
    assert!(is_running(server));
    let error = project.run("serve echo --detach").expect_failure();
    assert!(error.contains("is served already"), "{error}");
    assert!(error.contains("wsbench kill echo"), "{error}");
    let said = project.run("kill").expect_success();
    assert_eq!(said, format!("echo: stopped (pid {server})\n"));
    assert!(!is_running(server));
    project.expect_nothing_left(Duration::from_secs(5));
}

#[test]
fn detached_it_tells_why_it_could_not_start() {
    let project = Project::new();
    project.misbehave("quitter", "--exit-at-start");
    let error = project.run("serve quitter --detach").expect_failure();
    assert!(
        error.starts_with("wsbench: quitter exited with code 1"),
        "{error}"
    );
}

#[test]
fn several_servers_share_the_ports_and_are_stopped_one_by_one() {
    let project = Project::new();
    project.misbehave("one", "");
    project.misbehave("two", "");
    let (first, ports) = free_ports(4);
    let mut serve = project.serve(&format!("one two --ports {ports}"));
    let range = |name: &str| project.run_file(name).unwrap()["ports"].clone();
    assert_eq!(range("one"), format!("{first}-{}", first + 1));
    assert_eq!(range("two"), format!("{}-{}", first + 2, first + 3));
    project.run("kill one").expect_success();
    assert_eq!(project.run_file("one"), None);
    assert!(is_running(project.server_pid("two")));
    project.run("kill two").expect_success();
    assert_eq!(serve.expect_exit(), Some(0));
}

#[test]
fn with_all_those_that_cannot_run_are_left_out() {
    let project = Project::new();
    project.misbehave("good", "");
    project.misbehave("quitter", "--exit-at-start");
    let mut serve = project.serve("--all");
    assert!(project.run_file("good").is_some());
    assert_eq!(project.run_file("quitter"), None);
    serve.signal("INT");
    assert_eq!(serve.expect_exit(), Some(0));
}

#[test]
fn with_all_a_broken_folder_is_named_and_left_out() {
    let project = Project::new();
    project.misbehave("good", "");
    let broken = project.path("frameworks/broken");
    fs::create_dir_all(&broken).unwrap();
    fs::write(broken.join("Cargo.toml"), "[package\n").unwrap();
    let said = project.run("serve --all --detach");
    assert!(
        said.stderr.contains("broken: left out: "),
        "{}",
        said.stderr
    );
    said.expect_success();
    project.run("kill").expect_success();
}
