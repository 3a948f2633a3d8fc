//! `wsbench client` when the other side, or this one, comes to its limits: causes
//! are counted, a result is printed, the exit code tells, and nothing hangs.

mod util;

use serde_json::Value;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::time::Duration;
use util::project::free_ports;
use util::{Ended, Project, Running, alone, eventually, project, signal};

/// Long after every timeout of these loads.
const BOUND: Duration = Duration::from_secs(40);

/// Of one phase, by name.
fn metric(result: &Value, name: &str) -> u64 {
    result["metrics"][name].as_u64().unwrap_or(0)
}

/// The causes of failure of a phase.
fn causes(result: &Value, phase: &str) -> Vec<String> {
    let metrics = result["metrics"].as_object().unwrap();
    let prefix = format!("{phase}.failed_");
    let names = metrics.keys().filter_map(|name| name.strip_prefix(&prefix));
    let causes = names.filter_map(|name| name.strip_suffix("_count"));
    causes.map(String::from).collect()
}

#[track_caller]
fn result(ended: &Ended) -> Value {
    let line = ended.stdout.lines().next().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

#[track_caller]
fn client(project: &Project, arguments: &str) -> Ended {
    Running::start(project, &format!("client {arguments} --json")).expect_end(BOUND)
}

#[test]
fn the_exit_code_of_client_tells_every_lost_connection_and_failed_message() {
    let _alone = alone();
    let project = project();
    let (first, _) = free_ports(2);
    let url = format!("--url ws://127.0.0.1:{first}/ws");
    // Wrong in one way each, and right at the end.
    for (switches, code, phase, cause) in [
        ("--corrupt-every 50", 1, "echo", "wrong_payload"),
        ("--close-every 50", 1, "echo", "closed"),
        ("--status 503", 1, "connect", "handshake_status_503"),
        ("", 0, "echo", ""),
    ] {
        project.misbehave("wrong", switches);
        let mut server = project.serve(&format!("wrong --ports {first}"));
        let ended = client(&project, &format!("{url} -c 8 -n 200 --dial-retries 0"));
        assert_eq!(ended.code, Some(code), "{switches}: {ended:?}");
        let result = result(&ended);
        assert_eq!(
            causes(&result, phase).concat(),
            cause,
            "{switches}: {result}"
        );
        server.signal("INT");
        assert_eq!(server.expect_exit(), Some(0));
    }
}

/// All but one of the ports listen.
#[test]
fn a_port_that_refuses_is_a_failed_tenth_and_the_rest_is_measured() {
    let _alone = alone();
    let project = project();
    let (first, _) = free_ports(10);
    project.misbehave("echo", "");
    let _server = project.serve(&format!("echo --ports {first}-{}", first + 8));
    let ports = format!("{first}-{}", first + 9);
    let url = format!("--url ws://127.0.0.1:{ports}/ws");
    let ended = client(&project, &format!("{url} -c 100 -n 1000 --dial-retries 1"));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let dead = format!("of the ports {ports}, these refuse: {} (", first + 9);
    assert!(ended.stderr.contains(&dead), "{}", ended.stderr);
    let result = result(&ended);
    assert_eq!(metric(&result, "connect.succeeded_count"), 90);
    assert_eq!(metric(&result, "connect.failed_refused_count"), 10);
    assert_eq!(metric(&result, "connect.retried_refused_count"), 10);
    assert_eq!(metric(&result, "echo.succeeded_count"), 1000);
    assert_eq!(causes(&result, "echo"), [""; 0]);
}

#[test]
fn a_server_that_is_killed_under_six_thousand_connections_is_a_counted_end() {
    const CONNECTIONS: u64 = 6000;
    let _alone = alone();
    let project = project();
    project.misbehave("echo", "");
    let _server = project.serve("echo");
    let load = "-c 6000 -n 100000000 -b 64 --warmup 0 --dial-concurrency 200 --echo-timeout 10s";
    let mut client = Running::start(&project, &format!("client -f echo {load} --json"));
    // It tells once a second how far it is.
    eventually("echoes are made", || {
        let said = client.said();
        said.lines()
            .filter(|line| line.contains(" of 100000000 echoes"))
            .count()
            >= 2
    });
    signal(project.server_pid("echo"), "KILL");
    let ended = client.expect_end(BOUND);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let result = result(&ended);
    let echo = |name: &str| metric(&result, &format!("echo.{name}"));
    assert_eq!(
        metric(&result, "connect.succeeded_count"),
        CONNECTIONS,
        "{result}"
    );
    assert!(echo("succeeded_count") > 1000, "{result}");
    // One was in flight on each, but for those that had their answer with the end.
    let (failed, lost) = (echo("failed_count"), echo("connections_lost_count"));
    assert_eq!(lost, CONNECTIONS, "{result}");
    assert!(
        (CONNECTIONS / 2..=CONNECTIONS).contains(&failed),
        "{result}"
    );
    let known = ["closed", "reset"];
    let mut causes = causes(&result, "echo");
    causes.retain(|cause| !cause.is_empty());
    assert!(
        causes.iter().all(|cause| known.contains(&cause.as_str())),
        "{causes:?}"
    );
    let ended = echo("succeeded_count") + failed + echo("not_sent_count");
    assert_eq!(ended, echo("planned_count"), "{result}");
}

/// Others have taken descriptors between the check of the limit and the dials.
#[test]
fn a_client_that_may_open_no_more_files_measures_what_it_has() {
    let _alone = alone();
    let project = project();
    project.misbehave("echo", "");
    let (first, _) = free_ports(1);
    let _server = project.serve(&format!("echo --ports {first}"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // These are inherited, so that they are open in the client.
    let taken: Vec<OwnedFd> = (0..70)
        .map(|_| rustix::io::dup(&listener).unwrap())
        .collect();
    let command = project.wsbench(&format!(
        "client --url ws://127.0.0.1:{first}/ws -c 96 -n 2000 --dial-retries 1 --json"
    ));
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -n 160 && exec \"$0\" \"$@\""]);
    limited.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    let output = limited.stdin(std::process::Stdio::null()).output().unwrap();
    drop(taken);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    let result: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"));
    let failed = metric(&result, "connect.failed_too_many_files_count");
    assert_eq!(metric(&result, "connect.failed_count"), failed, "{result}");
    assert_eq!(
        metric(&result, "connect.succeeded_count"),
        96 - failed,
        "{result}"
    );
    assert!((6..60).contains(&failed), "{result}");
    assert_eq!(metric(&result, "echo.succeeded_count"), 2000, "{result}");
    assert_eq!(metric(&result, "echo.failed_count"), 0, "{result}");
}
