//! What the tests of whole runs share: one at a time, a project of wrong servers,
//! runs of bounded time, and the figures of their records.

// Each test binary uses its own part.
#![allow(dead_code, unused_imports)]

#[path = "../lifecycle/project.rs"]
pub mod project;

pub use project::{Project, eventually, signal};

use std::fs::{self, File};
use std::io::Read as _;
use std::os::fd::{BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::ptr::{null, null_mut};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use wsbench_schema::{
    Outcome, Phase, RunPlan, TrialRecord, decode_histogram, mark, metric::failed_by,
};

/// Long enough for a run that would hang to be told from one that is slow.
pub const BOUND: Duration = Duration::from_secs(60);
/// Of a killed runner's servers.
pub const REAPED: Duration = Duration::from_secs(5);

/// Messages of this length, which no case of the examination sends, are those
/// that servers go wrong with: they are examined first.
pub const PAYLOAD: usize = 1000;

/// What is measured must not be disturbed by what another test measures. A test
/// that failed does not fail the others.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As [`alone`], on a machine that has come to rest: what was started before may
/// still be writing. It is waited for once; a machine that is never at rest
/// fails the tests that need it to be.
pub fn alone_at_rest() -> MutexGuard<'static, ()> {
    static PATIENCE_LEFT: Mutex<Duration> = Mutex::new(Duration::from_secs(60));
    const STRETCH: Duration = Duration::from_millis(300);
    let guard = alone();
    let mut left = PATIENCE_LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    while *left > Duration::ZERO {
        let before = cpu_ticks();
        thread::sleep(STRETCH);
        let after = cpu_ticks();
        if (after.0 - before.0) * 10 >= (after.1 - before.1) * 9 {
            break;
        }
        *left = left.saturating_sub(STRETCH);
    }
    guard
}

/// Idle ticks and all ticks of all CPUs since the machine started.
fn cpu_ticks() -> (u64, u64) {
    let text = fs::read_to_string("/proc/stat").unwrap();
    let line = text.lines().next().unwrap();
    let ticks: Vec<u64> = line
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    (ticks[3] + ticks[4], ticks.iter().take(8).sum())
}

/// A project with a profile for `wsbench run`: one connection, nothing to warm
/// up, the flags say the rest.
pub fn project() -> Project {
    let project = Project::new();
    let profile = format!(
        "description = \"Of a test\"\nrounds = 1\nsample-interval = \"200ms\"\n\
         [load]\nconnections = 1\npayload = {PAYLOAD}\n\
         [load.echo]\nechoes = 1000\ntimeout = \"5s\"\nwarmup = 0\n"
    );
    fs::create_dir_all(project.path("profiles")).unwrap();
    fs::write(project.path("profiles/default.toml"), profile).unwrap();
    project
}

/// Adds a server that is wrong in this way, but not while it is examined.
pub fn add_wrong(project: &Project, name: &str, switches: &str) {
    expect_current_misbehave();
    project.misbehave(name, &format!("--only-bytes {PAYLOAD} {switches}"));
}

/// Of a server, for [`Project::script`]: rightly examined; at its second start, which
/// is to be measured, it does that first, and then goes wrong in this way.
pub fn once_examined(first: &str, switches: &str) -> String {
    format!(
        "if [ -e examined ]; then {first}; exec \"$MISBEHAVE\" {switches} \"$@\"; fi\n\
         touch examined; exec \"$MISBEHAVE\" \"$@\""
    )
}

/// `cargo test` builds the wrong server, `cargo test --test NAME` does not.
#[track_caller]
fn expect_current_misbehave() {
    let modified = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples/misbehave");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/misbehave");
    let mut sources = fs::read_dir(sources).unwrap();
    let built = modified(&program);
    let is_older = |source: &Path| modified(source) < built;
    let current = sources.all(|source| is_older(&source.unwrap().path()));
    assert!(current, "run first: cargo build -p wsbench --examples");
}

/// A `wsbench` that runs in a process group of its own, as a shell starts it.
pub struct Running {
    pub child: Child,
    project: PathBuf,
}

/// How it ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

/// Whether whoever started the tests had SIGHUP ignored, as `nohup` does: a run
/// inherits that, and is then right not to end by it.
pub fn sighup_is_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .unwrap();
    let ignored = u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 1;
    if ignored {
        println!("SIGHUP is ignored here (nohup?): what it does is not tested");
    }
    ignored
}

impl Running {
    pub fn start(project: &Project, arguments: &str) -> Self {
        Self::of(project, project.wsbench(arguments).process_group(0))
    }

    /// Through a shell script, which gets the whole command as `"$@"`.
    pub fn in_shell(project: &Project, script: &str, arguments: &str) -> Self {
        let wsbench = project.wsbench(arguments);
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh"]);
        shell.arg(wsbench.get_program()).args(wsbench.get_args());
        for (name, value) in wsbench.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        Self::of(project, shell.stdin(Stdio::null()).process_group(0))
    }

    /// In a terminal, as whose session it runs.
    pub fn on_terminal(project: &Project, arguments: &str) -> (Self, Terminal) {
        let (terminal, slave) = Terminal::open();
        let copy = || slave.try_clone().unwrap();
        let mut command = project.wsbench(arguments);
        command.stdin(copy()).stdout(copy()).stderr(copy());
        let lead = || {
            rustix::process::setsid()?;
            // SAFETY: it is the slave by now, and stays open.
            let stdin = unsafe { BorrowedFd::borrow_raw(0) };
            rustix::process::ioctl_tiocsctty(stdin)?;
            Ok(())
        };
        // SAFETY: between fork and exec it only makes system calls.
        unsafe { command.pre_exec(lead) };
        for name in ["stdout", "stderr"] {
            File::create(project.path(name)).unwrap();
        }
        let child = command.spawn().unwrap();
        let project = project.path("");
        (Self { child, project }, terminal)
    }

    fn of(project: &Project, command: &mut Command) -> Self {
        let output = |name: &str| File::create(project.path(name)).unwrap();
        command.stdout(output("stdout")).stderr(output("stderr"));
        Self {
            child: command.spawn().unwrap(),
            project: project.path(""),
        }
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.project.join(name)).unwrap()
    }

    /// What it said until now.
    pub fn said(&self) -> String {
        self.read("stdout") + &self.read("stderr")
    }

    /// As the terminal does it: to the whole group.
    pub fn press_ctrl_c(&self) {
        let group = format!("-{}", self.child.id());
        let arguments = ["-s", "INT", "--", &group];
        let mut kill = Command::new("kill");
        assert!(kill.args(arguments).status().unwrap().success());
    }

    #[track_caller]
    pub fn expect_end(&mut self, within: Duration) -> Ended {
        let start = Instant::now();
        let code = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code();
            }
            assert!(start.elapsed() < within, "still runs: {}", self.said());
            thread::sleep(Duration::from_millis(5));
        };
        Ended {
            code,
            stdout: self.read("stdout"),
            stderr: self.read("stderr"),
            took: start.elapsed(),
        }
    }
}

/// The outer end of a terminal, which shows what is written to it.
pub struct Terminal {
    close: mpsc::Sender<()>,
    shown: thread::JoinHandle<String>,
}

impl Terminal {
    /// And its inner end.
    fn open() -> (Self, OwnedFd) {
        let (mut master, mut slave) = (0, 0);
        let name = null_mut();
        // SAFETY: it writes two file descriptors; the rest may be null.
        let status =
            unsafe { libc::openpty(&raw mut master, &raw mut slave, name, null(), null()) };
        assert_eq!(
            status,
            0,
            "no terminal: {}",
            std::io::Error::last_os_error()
        );
        // SAFETY: both are new, and nobody else has them.
        let (master, slave) =
            unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
        rustix::io::fcntl_setfd(&master, rustix::io::FdFlags::CLOEXEC).unwrap();
        rustix::io::fcntl_setfd(&slave, rustix::io::FdFlags::CLOEXEC).unwrap();
        rustix::io::ioctl_fionbio(&master, true).unwrap();
        let (close, closed) = mpsc::channel();
        let shown = thread::spawn(move || {
            let mut master = File::from(master);
            let mut shown = Vec::new();
            while closed.try_recv() == Err(mpsc::TryRecvError::Empty) {
                // Nothing there yet, or nobody at the inner end any more.
                let _ = master.read_to_end(&mut shown);
                thread::sleep(Duration::from_millis(5));
            }
            String::from_utf8_lossy(&shown).into_owned()
        });
        (Self { close, shown }, slave)
    }

    /// For ever. What it showed until then.
    pub fn close(self) -> String {
        self.close.send(()).unwrap();
        self.shown.join().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = self.child.kill();
            let _ = self.child.wait();
            // Its keepers end what it started; if they do not, a test has failed
            // already, and nothing may be left of it.
            let deadline = Instant::now() + Duration::from_secs(5);
            while !descendants_in(&self.project).is_empty() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(20));
            }
            for (pid, _) in descendants_in(&self.project) {
                signal(pid, "KILL");
            }
        }
    }
}

/// Runs `wsbench` to its end.
#[track_caller]
pub fn wsbench(project: &Project, arguments: &str) -> Ended {
    Running::start(project, arguments).expect_end(Duration::from_secs(60))
}

/// Measures one server without a failure; its record.
#[track_caller]
pub fn measure(project: &Project, name: &str, arguments: &str) -> TrialRecord {
    expect_exit_code(0, project, &format!("run {name} {arguments}"));
    record(project, name)
}

/// Measures one server that fails in part, which the exit code says; its record.
#[track_caller]
pub fn measure_faulty(project: &Project, name: &str, arguments: &str) -> TrialRecord {
    expect_exit_code(1, project, &format!("run {name} {arguments}"));
    record(project, name)
}

/// Runs `wsbench` to its end, which must be this one.
#[track_caller]
pub fn expect_exit_code(code: i32, project: &Project, arguments: &str) -> Ended {
    let ended = wsbench(project, arguments);
    let (stdout, stderr) = (&ended.stdout, &ended.stderr);
    assert_eq!(ended.code, Some(code), "{arguments}: {stdout}{stderr}");
    ended
}

/// Folders of the project's runs, the oldest first.
pub fn runs(project: &Project) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(project.path("results")) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut runs: Vec<PathBuf> = paths
        .filter(|path| path.join(RunPlan::FILE_NAME).exists())
        .collect();
    runs.sort();
    runs
}

/// Number of all records, whether they can be read or not.
pub fn records_saved(project: &Project) -> usize {
    let of = |run: &PathBuf| {
        let files = fs::read_dir(run).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let is_record = |name: &String| name.ends_with(".json") && name != "run.json";
        names.filter(is_record).count()
    };
    runs(project).iter().map(of).sum()
}

/// Of all runs.
pub fn records(project: &Project) -> Vec<TrialRecord> {
    let runs = runs(project);
    let of_run = |run: &PathBuf| TrialRecord::load_all(run).unwrap().files;
    runs.iter().flat_map(of_run).collect()
}

/// The record of a server in the only run.
#[track_caller]
pub fn record(project: &Project, name: &str) -> TrialRecord {
    let records = records(project);
    let of_name = records
        .into_iter()
        .find(|record| record.subject.name == name);
    of_name.unwrap_or_else(|| panic!("no record of {name}"))
}

/// A metric that must be there.
#[track_caller]
pub fn figure(record: &TrialRecord, phase: Phase, name: &str) -> u64 {
    let figure = record.metric(phase, name);
    figure.unwrap_or_else(|| panic!("{phase}.{name} was not measured: {:?}", record.metrics))
}

/// Messages that failed by this cause.
pub fn failed(record: &TrialRecord, phase: Phase, cause: &str) -> u64 {
    record.metric(phase, &failed_by(cause)).unwrap_or(0)
}

/// A quantile of one of the record's histograms.
#[track_caller]
pub fn quantile_ns(record: &TrialRecord, phase: Phase, name: &str, quantile: f64) -> u64 {
    let text = &record.histograms[&phase.metric(name)];
    decode_histogram(text).unwrap().value_at_quantile(quantile)
}

/// Stage and reason of a failed trial.
#[track_caller]
pub fn failure(record: &TrialRecord) -> (&str, &str) {
    match &record.outcome {
        Outcome::Failed { stage, reason } => (stage, reason),
        Outcome::Completed => panic!("it did not fail: {:?}", record.metrics),
    }
}

pub fn is_client_bound(record: &TrialRecord) -> bool {
    record.marks.contains_key(mark::CLIENT_BOUND)
}

/// One integer a line: what a server says it really did.
pub fn log(project: &Project, name: &str) -> Vec<u64> {
    let text = fs::read_to_string(project.path(name)).unwrap();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

/// Process ids and command lines of all that was started in this project,
/// directly or not: they inherit its folder in their environment.
pub fn descendants(project: &Project) -> Vec<(u32, String)> {
    descendants_in(&project.path(""))
}

fn descendants_in(folder: &Path) -> Vec<(u32, String)> {
    let marker = format!("WSBENCH_ROOT={}", folder.display());
    let marker = marker.trim_end_matches('/');
    let mut all = project::all_processes();
    all.retain(|(pid, _)| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|variable| variable == marker.as_bytes())
    });
    all
}

/// How many of them load a server.
pub fn clients(project: &Project) -> usize {
    let all = descendants(project);
    let lines = all.iter().map(|(_, line)| line);
    lines.filter(|line| line.contains("client-process")).count()
}

/// How many of them are processes of servers.
pub fn servers(project: &Project) -> usize {
    let all = descendants(project);
    let programs = all.iter().filter_map(|(_, line)| line.split(' ').next());
    programs
        .filter(|program| program.ends_with("/misbehave"))
        .count()
}

/// Waits until nothing of this project runs any more.
#[track_caller]
pub fn expect_nothing_left(project: &Project, within: Duration) {
    let start = Instant::now();
    loop {
        let left = descendants(project);
        if left.is_empty() {
            return;
        }
        assert!(start.elapsed() < within, "still there: {left:?}");
        thread::sleep(Duration::from_millis(20));
    }
}
