//! The keeper alone: what it says, what it ends, and when.

use crate::project::{PATIENCE, Project, eventually, expect_exit, is_running, signal};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

struct Keeper {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
}

impl Keeper {
    /// Of a shell script. Its log is `output/keeper.log`.
    fn start(project: &Project, script: &str) -> Self {
        Self::start_with(project, &[], &["sh", "-c", script])
    }

    fn start_with(project: &Project, flags: &[&str], argv: &[&str]) -> Self {
        fs::create_dir_all(project.path("output")).unwrap();
        let mut child = project
            .wsbench("keeper --folder /tmp --leave-most-ms 2000 --log")
            .arg(project.path("output/keeper.log"))
            .args(flags)
            .arg("--")
            .args(argv)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            stdin: child.stdin.take(),
            lines: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no line of a keeper: `{line}`"))
    }

    #[track_caller]
    fn expect_spawned(&mut self) -> u32 {
        let event = self.next();
        assert_eq!(event["event"], "spawned", "{event}");
        u32::try_from(event["pid"].as_u64().unwrap()).unwrap()
    }

    /// All that it still says.
    fn rest(&mut self) -> Vec<Value> {
        let lines = self.lines.by_ref().lines();
        lines
            .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
            .collect()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.stdin.take());
        expect_exit(&mut self.child);
    }
}

use std::io::Read as _;

fn log(project: &Project) -> String {
    fs::read_to_string(project.path("output/keeper.log")).unwrap_or_default()
}

#[test]
fn a_server_that_ends_by_itself_is_reported_with_its_exit_code() {
    let project = Project::new();
    let mut keeper = Keeper::start(&project, "echo out; echo err >&2; exit 3");
    keeper.expect_spawned();
    let expected = [
        json!({"event": "exited", "code": 3}),
        json!({"event": "gone", "killed": [], "left": 0}),
    ];
    assert_eq!(keeper.rest(), expected);
    assert_eq!(log(&project), "out\nerr\n");
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let project = Project::new();
    let mut keeper = Keeper::start_with(&project, &[], &["/nonexistent/server"]);
    let event = keeper.next();
    assert_eq!(event["event"], "failed");
    let message = event["message"].as_str().unwrap();
    assert!(message.contains("/nonexistent/server"), "{message}");
    assert!(message.contains("No such file"), "{message}");
}

#[test]
fn the_word_stop_the_end_of_its_input_and_sigterm_each_end_the_server() {
    let ends: [fn(&mut Keeper); 3] = [
        |keeper| keeper.stdin.as_mut().unwrap().write_all(b"stop\n").unwrap(),
        |keeper| drop(keeper.stdin.take()),
        |keeper| signal(keeper.child.id(), "TERM"),
    ];
    for end in ends {
        let project = Project::new();
        let mut keeper = Keeper::start(&project, "trap 'exit 7' TERM; sleep 60 & wait");
        let pid = keeper.expect_spawned();
        // Until the trap is set, SIGTERM would end it otherwise.
        eventually("the script waits", || sleeps_below(pid));
        end(&mut keeper);
        let expected = [
            json!({"event": "exited", "code": 7}),
            json!({"event": "gone", "killed": [], "left": 0}),
        ];
        assert_eq!(keeper.rest(), expected);
        assert!(!is_running(pid));
    }
}

/// Whether the script has come to its sleep.
fn sleeps_below(pid: u32) -> bool {
    let tasks = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let stat = fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
        Some(stat.contains("(sleep)") && stat.contains(&format!(" S {pid} ")))
    });
    tasks.into_iter().any(|is| is)
}

#[test]
fn what_ignores_sigterm_is_killed_after_two_seconds_wherever_it_hides() {
    let project = Project::new();
    // A session of its own, an orphan, deaf to SIGTERM: only the subreaper still finds it.
    let marker = project.path("hidden").display().to_string();
    let script = format!(
        "trap '' TERM; (setsid sh -c 'trap \"\" TERM; touch {marker}; while :; do sleep 1; done' &) ; \
         while :; do sleep 1; done # {marker}"
    );
    let mut keeper = Keeper::start(&project, &script);
    keeper.expect_spawned();
    eventually("it hides", || project.path("hidden").exists());
    let start = Instant::now();
    drop(keeper.stdin.take());
    let rest = keeper.rest();
    let took = start.elapsed();
    assert_eq!(rest[0], json!({"event": "exited", "signal": 9}));
    assert_eq!(rest[1]["left"], 0);
    let killed = rest[1]["killed"].as_array().unwrap();
    assert!(killed.contains(&json!("sh")), "{killed:?}");
    assert!(took >= Duration::from_secs(2), "{took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    expect_exit(&mut keeper.child);
    assert_eq!(project.processes(), []);
}

#[test]
fn what_a_server_leaves_behind_is_ended_when_the_server_ends() {
    let project = Project::new();
    let marker = project.path("left").display().to_string();
    let script = format!("setsid sh -c 'touch {marker}; sleep 60; : {marker}' & sleep 0.5; exit 0");
    let mut keeper = Keeper::start(&project, &script);
    keeper.expect_spawned();
    let rest = keeper.rest();
    assert_eq!(rest[0], json!({"event": "exited", "code": 0}));
    assert_eq!(rest[1]["left"], 0);
    assert!(project.path("left").exists());
    expect_exit(&mut keeper.child);
    assert_eq!(project.processes(), []);
}

#[test]
fn a_killed_keeper_takes_the_server_with_it() {
    let project = Project::new();
    let mut keeper = Keeper::start_with(&project, &[], &["sleep", "60"]);
    let pid = keeper.expect_spawned();
    signal(keeper.child.id(), "KILL");
    eventually("the server is gone", || !is_running(pid));
}

#[test]
fn a_server_gets_its_cpus_its_group_and_all_the_files_it_may_open() {
    let project = Project::new();
    let allowed = fs::read_to_string("/proc/self/status").unwrap();
    let list = allowed
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .unwrap();
    let first = list.trim().split([',', '-']).next().unwrap();
    let script = "grep Cpus_allowed_list /proc/self/status; ulimit -Sn; ulimit -Hn; cut -d' ' -f5 /proc/$$/stat; echo $$; pwd";
    let argv = ["sh", "-c", script];
    let mut keeper = Keeper::start_with(&project, &["--cpus", first], &argv);
    let pid = keeper.expect_spawned().to_string();
    assert_eq!(keeper.rest()[0], json!({"event": "exited", "code": 0}));
    let log = log(&project);
    let lines: Vec<&str> = log.lines().collect();
    let [cpus, soft, hard, group, own, folder] = lines.as_slice() else {
        panic!("{lines:?}");
    };
    assert_eq!(cpus.split_whitespace().last(), Some(first));
    assert_eq!(soft, hard);
    assert_eq!((*group, *own), (pid.as_str(), pid.as_str()));
    assert_eq!(*folder, "/tmp");
}

#[test]
fn nothing_of_a_server_is_left_five_seconds_after_its_runner_was_killed() {
    let project = Project::new();
    let marker = project.path("marker").display().to_string();
    // It listens in a session of its own and does not leave on SIGTERM; neither does its parent.
    project.script(
        "hiding",
        &format!(
            "trap '' TERM\nsetsid \"$MISBEHAVE\" --ignore-sigterm --log {marker} \"$@\" &\n\
             while :; do sleep 1; done # {marker}"
        ),
    );
    let mut serve = project.serve("hiding");
    let server = project.server_pid("hiding");
    assert!(project.processes().len() >= 3, "{:?}", project.processes());
    serve.signal("KILL");
    serve.child.wait().unwrap();
    let took = project.expect_nothing_left(PATIENCE);
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(!is_running(server));
}
