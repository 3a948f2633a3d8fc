//! One client process: started on its CPUs, bound to the life of its parent,
//! its lines turned into events, its leaving described.

use super::silence::Silence;
use crate::lines::lines;
use crate::{cpus, process};
use anyhow::Context as _;
use rustix::process::Signal;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};
use wsbench_schema::ClientEvent;

/// One client process.
pub struct Process {
    /// For messages: `the client process`, or which one of several.
    pub name: String,
    child: Child,
    /// Closed when it is told to stop.
    pub stdin: Option<ChildStdin>,
    log: PathBuf,
    log_start: u64,
    /// Since it last said something, or was last told something.
    pub silence: Silence,
    /// What it said and nobody took note of yet.
    pub unheard: VecDeque<ClientEvent>,
    /// Whether something is expected of it.
    pub pending: bool,
}

/// What comes out of a client's standard output.
pub enum Line {
    /// As the protocol wants it.
    Event(ClientEvent),
    /// Anything else.
    Other(String),
    /// The end.
    Closed,
}

impl Process {
    /// Starts number `index` of `count`; its lines go to `events` under its index.
    pub fn start(
        mut command: Command,
        cpus: &[u32],
        log: &Path,
        (index, count): (usize, usize),
        events: &Sender<(usize, Line)>,
    ) -> anyhow::Result<Self> {
        let name = match count {
            1 => "the client process".into(),
            _ => format!("client process {} of {count}", index + 1),
        };
        let mut stderr = OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)
            .with_context(|| format!("cannot write the client's log {}", log.display()))?;
        let log_start = stderr.seek(SeekFrom::End(0)).unwrap_or(0);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            // Its own group: Ctrl-C reaches the runner alone, which ends it in order.
            .process_group(0);
        bind_to_parent(&mut command, cpus::cpu_set(cpus)?);
        let mut child = command.spawn().with_context(|| {
            let cpus = cpus::format_list(cpus);
            format!("cannot start {name} on CPUs {cpus}")
        })?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().context("the client has no output")?;
        let events = events.clone();
        thread::Builder::new()
            .name("client-events".into())
            .spawn(move || {
                for line in lines(BufReader::new(stdout)).map_while(Result::ok) {
                    let line = match serde_json::from_str(&line) {
                        Ok(event) => Line::Event(event),
                        Err(_) => Line::Other(line),
                    };
                    if events.send((index, line)).is_err() {
                        return;
                    }
                }
                let _ = events.send((index, Line::Closed));
            })
            .context("cannot start a thread")?;
        Ok(Self {
            name,
            child,
            stdin,
            log: log.into(),
            log_start,
            silence: Silence::broken(),
            unheard: VecDeque::new(),
            pending: false,
        })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it, without waiting for its end.
    pub fn kill(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = self.child.kill();
        }
    }

    /// Whether it has exited, waiting until `deadline` if need be.
    pub fn exit_by(&mut self, deadline: Instant) -> Option<ExitStatus> {
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Why a client that closed its output left: as it said, or as it looks.
    pub fn farewell(&mut self) -> String {
        for event in std::mem::take(&mut self.unheard) {
            if let ClientEvent::Failed { message } = event {
                return self.said(&message);
            }
        }
        let how = match self.exit_by(Instant::now() + Duration::from_secs(1)) {
            Some(status) => describe(status),
            None => "closed its output".into(),
        };
        format!("{} {how}{}", self.name, self.log_line())
    }

    /// What it gave as its reason. Of several, it is named.
    pub fn said(&self, message: &str) -> String {
        match self.name.starts_with("the ") {
            true => message.into(),
            false => format!("{}: {message}", self.name),
        }
    }

    /// The last line that it wrote to its log, if any, to stand behind a reason.
    pub fn log_line(&self) -> String {
        let mut text = Vec::new();
        let read = File::open(&self.log).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.log_start))?;
            file.take(1 << 20).read_to_end(&mut text)
        });
        let text = String::from_utf8_lossy(&text);
        match (read, text.lines().rfind(|line| !line.trim().is_empty())) {
            (Ok(_), Some(line)) => format!(": {}", line.trim()),
            _ => String::new(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// `exited with code 1`, `was ended by signal 9 (SIGKILL: ...)`.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("was ended by {}", process::describe_signal(signal)),
        (None, None) => "ended".into(),
    }
}

/// The process runs on these CPUs and dies when the thread that starts it does.
fn bind_to_parent(command: &mut Command, cpus: CpuSet) {
    // SAFETY: between fork and exec it makes one system call and allocates nothing.
    unsafe { command.pre_exec(move || Ok(sched_setaffinity(None, &cpus)?)) };
    process::end_with_us(command, Signal::KILL);
}
