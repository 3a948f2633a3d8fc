//! A project in a temporary folder with wrong servers in it, and the `wsbench`
//! that runs in it.

// Each test binary uses its own part.
#![allow(dead_code)]

use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Long enough for a machine that does other things at the same time.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What a server for tests does not implement, so that its examination is short:
/// what remains is what it must do.
const OMITS: [&str; 19] = [
    "handshake/request",
    "handshake/lower-case",
    "handshake/mixed-case",
    "handshake/lists",
    "handshake/extra",
    "handshake/cookie",
    "handshake/missing",
    "handshake/key",
    "handshake/method",
    "handshake/HTTP/1.0",
    "handshake/wrong",
    "handshake/frame",
    "handshake/pipelined",
    "handshake/unfinished",
    "echo/limit",
    "fragmentation",
    "control",
    "close",
    "refused",
];

/// Removed when dropped, after what still runs in it was killed.
pub struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("frameworks/foreign")).unwrap();
        Self { folder }
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Adds a server: `misbehave` with these switches.
    pub fn misbehave(&self, name: &str, switches: &str) {
        let mut run = vec![misbehave()];
        run.extend(switches.split_whitespace().map(String::from));
        self.server(name, &run);
    }

    /// Adds a server: a shell script, which gets the flags of the contract as
    /// `"$@"` and the path of `misbehave` as `$MISBEHAVE`.
    pub fn script(&self, name: &str, script: &str) {
        let script = format!("MISBEHAVE={}\n{script}", misbehave());
        let run = ["sh", "-c", script.as_str(), "sh"].map(String::from);
        self.server(name, &run);
    }

    /// Adds a server as cargo would have built it, a program with a hash:
    /// `misbehave` with these switches, to be run with `--no-build`.
    pub fn built(&self, name: &str, switches: &str) {
        let folder = self.path("frameworks").join(name);
        fs::create_dir_all(&folder).unwrap();
        let manifest = format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\n");
        fs::write(folder.join("Cargo.toml"), manifest).unwrap();
        let program = self.path("output/bin").join(name);
        fs::create_dir_all(self.path("output/bin")).unwrap();
        let script = format!("#!/bin/sh\nexec {} {switches} \"$@\"\n", misbehave());
        fs::write(&program, script).unwrap();
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn server(&self, name: &str, run: &[String]) {
        let folder = self.path("frameworks/foreign").join(name);
        fs::create_dir_all(&folder).unwrap();
        let run = serde_json::to_string(run).unwrap();
        let omits = serde_json::to_string(&OMITS).unwrap();
        let text = format!(
            "language = \"test\"\nversion = \"{name} 1.0\"\nrun = {run}\nomits = {omits}\n"
        );
        fs::write(folder.join("bench.toml"), text).unwrap();
    }

    /// `wsbench` with these arguments, in this project.
    pub fn wsbench(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wsbench"));
        command
            .args(arguments.split_whitespace())
            .env("WSBENCH_ROOT", self.folder.path())
            // Projects of tests that run side by side must not share what they build.
            .env_remove("CARGO_TARGET_DIR")
            .stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub fn run(&self, arguments: &str) -> Finished {
        Finished::of(self.wsbench(arguments).output().unwrap())
    }

    /// Starts `wsbench serve` and waits until it says that everything listens.
    pub fn serve(&self, arguments: &str) -> Serve {
        let mut child = self
            .wsbench(&format!("serve {arguments}"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        while !said.contains("Stop with") {
            let read = lines.read_line(&mut said).unwrap();
            assert_ne!(read, 0, "it ended: {said}");
        }
        // Or it would meet a closed pipe at its end.
        thread::spawn(move || lines.read_to_string(&mut String::new()));
        Serve { child, said }
    }

    /// `output/run/NAME.json`.
    pub fn run_file(&self, name: &str) -> Option<Value> {
        let text = fs::read(self.path(&format!("output/run/{name}.json"))).ok()?;
        Some(serde_json::from_slice(&text).unwrap())
    }

    /// Process id of a server that is served.
    pub fn server_pid(&self, name: &str) -> u32 {
        pid_of(&self.run_file(name).expect("it is served")["server"])
    }

    /// Every process whose command line names this project, and the descendants
    /// of none: what is here was left by somebody.
    pub fn processes(&self) -> Vec<(u32, String)> {
        let marker = self.folder.path().to_str().unwrap();
        all_processes()
            .into_iter()
            .filter(|(_, line)| line.contains(marker))
            .collect()
    }

    /// Waits until no process of this project runs; how long that took.
    #[track_caller]
    pub fn expect_nothing_left(&self, within: Duration) -> Duration {
        let start = Instant::now();
        loop {
            let left = self.processes();
            if left.is_empty() {
                return start.elapsed();
            }
            assert!(start.elapsed() < within, "still there: {left:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        for (pid, _) in self.processes() {
            signal(pid, "KILL");
        }
    }
}

/// A `wsbench serve` that runs.
pub struct Serve {
    pub child: Child,
    /// What it printed when everything listened.
    pub said: String,
}

impl Serve {
    pub fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    #[track_caller]
    pub fn expect_exit(&mut self) -> Option<i32> {
        expect_exit(&mut self.child)
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        // Its keepers see to the rest.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command that ended.
pub struct Finished {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    pub fn expect_success(self) -> String {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        self.stdout
    }

    /// One line on standard error, and an exit code that says so.
    #[track_caller]
    pub fn expect_failure(self) -> String {
        assert_eq!(self.code, Some(1), "{}{}", self.stdout, self.stderr);
        assert_eq!(self.stderr.lines().count(), 1, "{}", self.stderr);
        self.stderr
    }
}

#[track_caller]
pub fn expect_exit(child: &mut Child) -> Option<i32> {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        assert!(Instant::now() < end, "it does not end");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits for something that will be so.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "never: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a signal by name to one process.
pub fn signal(pid: u32, name: &str) {
    let arguments = ["-s", name, &pid.to_string()];
    let mut kill = Command::new("kill");
    kill.args(arguments).stderr(Stdio::null()).status().unwrap();
}

pub fn pid_of(identity: &Value) -> u32 {
    u32::try_from(identity["pid"].as_u64().unwrap()).unwrap()
}

pub fn is_running(pid: u32) -> bool {
    all_processes().iter().any(|(other, _)| *other == pid)
}

/// Process ids and command lines; zombies have none and are left out.
pub fn all_processes() -> Vec<(u32, String)> {
    let entries = fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| {
            let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            (!line.is_empty()).then_some((pid, line))
        })
        .collect()
}

/// Ports that nobody listens on, outside of the ephemeral range. Each test of
/// this process gets others.
pub fn free_ports(count: u16) -> (u16, String) {
    use std::sync::atomic::{AtomicU16, Ordering};
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let spread = (std::process::id() % 150) as u16 * 100;
        let first = 12_000 + spread + NEXT.fetch_add(count, Ordering::Relaxed) % 3000;
        let range = first..first + count;
        let free = |port| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok();
        if range.clone().all(free) {
            return (first, format!("{first}-{}", first + count - 1));
        }
    }
}

/// target/debug/deps/this-test and target/debug/examples/misbehave.
fn misbehave() -> String {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    folder
        .join("examples/misbehave")
        .into_os_string()
        .into_string()
        .unwrap()
}
