//! A client on another host: two network namespaces that a cable joins. Server
//! and control API are in one, the client in the other. The same figures must
//! come out as on one host, CPU time and memory included.

#[path = "lifecycle/project.rs"]
mod project;

use project::{Project, Serve};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, Stdio};

// Of TEST-NET-2, which is nobody's.
const SERVER: &str = "198.51.100.1";
const CLIENT: &str = "198.51.100.2";
const ECHOES: u64 = 4000;
/// What the server burns for each echo, and what it holds.
const BURN_NS: u64 = 100_000;
const HOLD_BYTES: u64 = 60_000_000;
const LOAD: &str = "-c 20 -n 4000 -b 256 --warmup 100 --rate --rate-duration 1s --rate-per-connection 50 --json --seed 7";

/// Two namespaces and a cable; removed when dropped.
struct Cable {
    server: String,
    client: String,
}

impl Cable {
    /// None, with the reason, where namespaces cannot be made.
    fn lay() -> Result<Self, String> {
        // Safe: who this process is.
        if fs::metadata("/proc/self")
            .map_err(|error| error.to_string())?
            .uid()
            != 0
        {
            return Err("only root can make network namespaces".into());
        }
        let own = std::process::id();
        let cable = Self {
            server: format!("wsbench-{own}-s"),
            client: format!("wsbench-{own}-c"),
        };
        let (server, client) = (&cable.server, &cable.client);
        ip(&format!("netns add {server}"))?;
        ip(&format!("netns add {client}"))?;
        ip(&format!(
            "link add wsb{own}s netns {server} type veth peer name wsb{own}c netns {client}"
        ))?;
        for (space, side, address) in [(server, "s", SERVER), (client, "c", CLIENT)] {
            ip(&format!(
                "-n {space} address add {address}/24 dev wsb{own}{side}"
            ))?;
            ip(&format!("-n {space} link set wsb{own}{side} up"))?;
            ip(&format!("-n {space} link set lo up"))?;
        }
        Ok(cable)
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for space in [&self.server, &self.client] {
            let _ = ip(&format!("netns delete {space}"));
        }
    }
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip")
        .args(arguments.split_whitespace())
        .output()
        .map_err(|error| format!("`ip` cannot be run: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "ip {arguments}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

/// `wsbench` of a project, in a namespace.
fn within(space: &str, project: &Project, arguments: &str) -> Command {
    let inner = project.wsbench(arguments);
    let mut command = Command::new("ip");
    command
        .args(["netns", "exec", space])
        .arg(inner.get_program())
        .args(inner.get_args());
    for (name, value) in inner.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    command.stdin(Stdio::null());
    command
}

fn add_server(project: &Project) {
    let switches = format!("--burn-each-ns {BURN_NS} --hold-bytes {HOLD_BYTES}");
    project.misbehave("echo", &switches);
}

/// Its first line is the record, or all of it.
#[track_caller]
fn measured(mut client: Command) -> Value {
    let output = client.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"))
}

/// The whole object, flattened to `a.b` and what is a number in it.
fn numbers(value: &Value, name: &str, found: &mut Vec<(String, f64)>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                numbers(value, &format!("{name}.{field}"), found);
            }
        }
        Value::Number(number) => found.push((name.to_owned(), number.as_f64().unwrap())),
        _ => {}
    }
}

#[test]
fn a_client_on_another_host_gets_the_same_figures() {
    let cable = match Cable::lay() {
        Ok(cable) => cable,
        Err(reason) => {
            eprintln!("skipped: {reason}");
            return;
        }
    };
    // Each host has its own project: no file tells the client where the server is.
    let (there, here) = (Project::new(), Project::new());
    add_server(&there);
    let mut child = within(
        &cable.server,
        &there,
        &format!("serve echo --host {SERVER}"),
    )
    .stdout(Stdio::piped())
    .spawn()
    .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut said = String::new();
    while !said.contains("Stop with") {
        assert_ne!(lines.read_line(&mut said).unwrap(), 0, "it ended: {said}");
    }
    std::thread::spawn(move || lines.read_to_string(&mut String::new()));
    // `ip` becomes what it runs: this is `wsbench serve` itself.
    let mut serve = Serve { child, said };
    // What it printed is what is typed on the other host.
    let advice = serve
        .said
        .lines()
        .find_map(|line| line.split_once("on another host: wsbench "));
    let command = advice.unwrap_or_else(|| panic!("{}", serve.said)).1;
    assert!(command.contains(&format!("--ip {SERVER} ")), "{command}");
    let remote = measured(within(&cable.client, &here, &format!("{command} {LOAD}")));

    // Without the token, or with another one: nothing.
    let tokenless = command.split(" --token").next().unwrap();
    for attempt in [
        tokenless.to_owned(),
        format!("{tokenless} --token 0123456789abcdef"),
    ] {
        let output = within(&cable.client, &here, &format!("{attempt} {LOAD}"))
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && errors.contains("token is missing or wrong"),
            "{errors}"
        );
    }
    serve.signal("INT");
    assert_eq!(serve.expect_exit(), Some(0));

    // The same on one host.
    let one = Project::new();
    add_server(&one);
    let mut serve = one.serve("echo");
    let local = measured(one.wsbench(&format!("client -f echo {LOAD}")));
    serve.signal("INT");
    assert_eq!(serve.expect_exit(), Some(0));

    let flat = |record: &Value| {
        let mut found = Vec::new();
        numbers(record, "", &mut found);
        found
    };
    let (remote, local) = (flat(&remote), flat(&local));
    let names = |figures: &[(String, f64)]| -> BTreeSet<String> {
        figures.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&remote), names(&local));
    for figures in [&remote, &local] {
        check(figures);
    }
}

/// Nothing failed, and the server's side was seen.
fn check(figures: &[(String, f64)]) {
    let figure = |name: &str| {
        let found = figures.iter().find(|(full, _)| full.ends_with(name));
        found
            .unwrap_or_else(|| panic!("no {name} in {figures:?}"))
            .1
    };
    assert_eq!(figure("connect.succeeded_count"), 20.0);
    assert_eq!(figure("echo.succeeded_count"), ECHOES as f64);
    assert_eq!(figure("echo.failed_count"), 0.0);
    assert_eq!(figure("rate.failed_count"), 0.0);
    let (burnt, held) = ((ECHOES * BURN_NS) as f64, HOLD_BYTES as f64);
    let cpu = figure("echo.server_cpu_ns");
    assert!(cpu > burnt && cpu < burnt * 5.0, "{cpu}");
    for memory in [
        "connect.server_rss_start_bytes",
        "rate.server_rss_end_bytes",
    ] {
        let memory = figure(memory);
        assert!(memory > held && memory < held * 3.0, "{memory}");
    }
}
