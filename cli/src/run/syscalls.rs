//! The system calls of a server, counted by `perf` from outside. Counting slows a
//! server, so that it is done in a pass of its own, in which nothing is timed.

use crate::process;
use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Every entry into the kernel, those through io_uring's one call counted once.
const EVENT: &str = "raw_syscalls:sys_enter";
/// It ends on a signal, at once.
const LEAVE_MOST: Duration = Duration::from_secs(5);

/// Counts from [`Counter::attach`] on, until [`Counter::finish`].
#[derive(Debug)]
pub struct Counter {
    perf: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    written: PathBuf,
}

/// Whether system calls can be counted here.
///
/// # Errors
/// Why not, and what would help.
pub fn check() -> anyhow::Result<()> {
    const REMEDY: &str = "install perf (Debian: linux-perf) and run as root";
    let mut command = Command::new("perf");
    command.args(["stat", "-e", EVENT, "--", "true"]);
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("perf is not there ({REMEDY})"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let why = said.lines().find(|line| !line.trim().is_empty());
        let why = why.unwrap_or("without a word").trim();
        bail!("perf refuses to count them: {why} ({REMEDY})");
    }
    Ok(())
}

impl Counter {
    /// Counts for all threads of these processes, those to come included, and for no
    /// other; `written` is a file for what perf says.
    ///
    /// # Errors
    /// If perf does not attach to them.
    pub fn attach(pids: &[u32], written: PathBuf) -> anyhow::Result<Self> {
        let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
        let mut command = Command::new("perf");
        command
            // Switched on and off over its standard input, each answered when it is done.
            .args([
                "stat",
                "-x",
                ",",
                "-e",
                EVENT,
                "--delay=-1",
                "--control=fd:0,1",
                "-p",
            ])
            .arg(pids.join(","))
            .arg("-o")
            .arg(&written)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        process::end_with_us(&mut command, Signal::KILL);
        let mut perf = command.spawn().context("cannot start perf")?;
        let commands = perf.stdin.take().context("perf has no input")?;
        let answers = perf.stdout.take().context("perf has no output")?;
        let mut counter = Self {
            perf,
            commands,
            answers: BufReader::new(answers),
            written,
        };
        counter.tell("enable")?;
        Ok(counter)
    }

    fn tell(&mut self, command: &str) -> anyhow::Result<()> {
        let mut answer = String::new();
        writeln!(self.commands, "{command}")
            .and_then(|()| self.answers.read_line(&mut answer).map(drop))
            .with_context(|| format!("perf does not listen to `{command}`"))?;
        match answer.trim_matches(['\0', '\n']) {
            "ack" => Ok(()),
            other => bail!("perf answers `{command}` with {other:?}"),
        }
    }

    /// How many system calls there were.
    ///
    /// # Errors
    /// If perf has gone, or does not say.
    pub fn finish(mut self) -> anyhow::Result<u64> {
        self.tell("disable")?;
        let pid = i32::try_from(self.perf.id()).ok().and_then(Pid::from_raw);
        let pid = pid.context("perf has no process id")?;
        kill_process(pid, Signal::INT).context("cannot end perf")?;
        let mut ended = false;
        process::wait_until(LEAVE_MOST, || {
            ended = !matches!(self.perf.try_wait(), Ok(None));
            ended
        });
        if !ended {
            bail!("perf did not end within {LEAVE_MOST:?}");
        }
        let text = fs::read_to_string(&self.written)
            .with_context(|| format!("cannot read {}", self.written.display()))?;
        parse(&text).with_context(|| format!("perf has not counted: {}", text.trim()))
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        // It may have ended, and its file may never have been made: both are well.
        let _ = self.perf.kill();
        let _ = self.perf.wait();
        let _ = fs::remove_file(&self.written);
    }
}

/// What stands in the place of the count if no thread of the process ran at all: such
/// an event waits for no counter of the hardware.
const NOBODY_RAN: &str = "<not counted>";

/// `29,,raw_syscalls:sys_enter,...`, behind comments.
fn parse(text: &str) -> Option<u64> {
    let mut counts = text.lines().filter(|line| line.contains(EVENT));
    match counts.next()?.split(',').next()? {
        NOBODY_RAN => Some(0),
        count => count.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_perf_writes_is_read_and_what_it_cannot_count_is_no_zero() {
        let text = "# started on Mon Nov 30\n\n29,,raw_syscalls:sys_enter,100,100.00,,\n";
        assert_eq!(parse(text), Some(29));
        let idle = "<not counted>,,raw_syscalls:sys_enter,0,100.00,,\n";
        assert_eq!(parse(idle), Some(0));
        let unable = "<not supported>,,raw_syscalls:sys_enter,0,100.00,,\n";
        assert_eq!(parse(unable), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn calls_between_attaching_and_finishing_are_counted() {
        if let Err(reason) = check() {
            crate::progress::note(format_args!("stands aside: {reason:#}"));
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let script =
            "read go; i=0; while [ $i -lt 50 ]; do cd /; i=$((i+1)); done; echo done; read end";
        let mut shell = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let counter = Counter::attach(&[shell.id()], folder.path().join("perf")).unwrap();
        let mut input = shell.stdin.take().unwrap();
        input.write_all(b"go\n").unwrap();
        let mut said = String::new();
        let mut output = BufReader::new(shell.stdout.take().unwrap());
        output.read_line(&mut said).unwrap();
        let count = counter.finish().unwrap();
        input.write_all(b"end\n").unwrap();
        shell.wait().unwrap();
        // A `chdir` each, and what `read` and `echo` take.
        assert!((51..400).contains(&count), "{count}");
    }
}
