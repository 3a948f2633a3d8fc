//! Processes of this host as `/proc` shows them: which ones there are, who
//! descends from whom, and whether a process is still the one that it was.

use anyhow::Context as _;
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, getppid, pidfd_open, pidfd_send_signal,
    set_parent_process_death_signal,
};
use serde::{Deserialize, Serialize};
use signal_hook::consts;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

/// A process that was there when `/proc` was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Who it is.
    pub identity: Identity,
    /// Process id of its parent.
    pub parent: u32,
    /// Nothing of it is left but its exit code.
    pub dead: bool,
}

/// A process for ever: its number is used again, number and start time are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Process id.
    pub pid: u32,
    /// When it started: clock ticks after boot, as in `/proc/PID/stat`.
    pub start_ticks: u64,
}

impl Identity {
    /// The process that has this number now, unless it is dead.
    pub fn of(pid: u32) -> Option<Self> {
        read(pid)
            .filter(|process| !process.dead)
            .map(|process| process.identity)
    }

    /// Whether it still runs.
    pub fn is_running(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Sends a signal to it and to nobody else; false if it is gone.
    pub fn signal(self, signal: Signal) -> anyhow::Result<bool> {
        let Some(pid) = to_pid(self.pid) else {
            return Ok(false);
        };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
            return Ok(false);
        };
        // The handle now names one process for ever; only then is it looked at.
        if !self.is_running() {
            return Ok(false);
        }
        match pidfd_send_signal(&handle, signal) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::SRCH) => Ok(false),
            Err(error) => {
                Err(error).with_context(|| format!("cannot send a signal to process {}", self.pid))
            }
        }
    }

    /// Waits until it no longer runs; false if it still does when the time is over.
    pub fn wait_gone(self, most: Duration) -> bool {
        wait_until(most, || !self.is_running())
    }
}

/// Looks every few milliseconds, more and more rarely, until `done` or `most` is over.
pub fn wait_until(most: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = std::time::Instant::now() + most;
    let mut pause = Duration::from_millis(5);
    loop {
        if done() {
            return true;
        }
        let left = end.saturating_duration_since(std::time::Instant::now());
        if left.is_zero() {
            return false;
        }
        std::thread::sleep(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Has what a command starts get a signal when the thread that starts it ends, and
/// not begin at all if this process is gone by then.
pub fn end_with_us(command: &mut Command, signal: Signal) {
    let us = getpid();
    let bind = move || {
        set_parent_process_death_signal(Some(signal))?;
        // This process may have died before the signal was asked for.
        match getppid() == Some(us) {
            true => Ok(()),
            false => Err(rustix::io::Errno::SRCH.into()),
        }
    };
    // SAFETY: between fork and exec there are only system calls, no allocation and no lock.
    unsafe { command.pre_exec(bind) };
}

/// `signal 9 (SIGKILL: killed by a user, or by the kernel for lack of memory)`: what
/// ended a process, and what that usually means.
pub fn describe_signal(signal: i32) -> String {
    let name = signal_hook::low_level::signal_name(signal).unwrap_or("unknown");
    let meaning = match signal {
        consts::SIGHUP => ": its terminal was closed",
        consts::SIGINT => ": interrupted, as by Ctrl-C",
        consts::SIGILL => ": an instruction that this CPU does not have",
        consts::SIGABRT => ": it gave up by itself, as after a failed assertion",
        consts::SIGBUS | consts::SIGSEGV => ": it used memory that is not its own",
        consts::SIGFPE => ": impossible arithmetic",
        consts::SIGKILL => ": killed by a user, or by the kernel for lack of memory",
        consts::SIGPIPE => ": it wrote to a closed connection and did not expect that",
        consts::SIGTERM => ": it was asked to end",
        consts::SIGXFSZ => ": a file of it grew beyond its limit",
        consts::SIGSYS => ": a system call that is forbidden here",
        _ => "",
    };
    format!("signal {signal} ({name}{meaning})")
}

/// A process id as system calls take it.
pub fn to_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// Every process that this user can see. Those that vanish meanwhile are left out.
pub fn all() -> anyhow::Result<Vec<Process>> {
    let entries = fs::read_dir("/proc").context("cannot read /proc (is it mounted?)")?;
    let pids = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(read);
    Ok(pids.collect())
}

/// All that descends from `root`, without `root` itself.
pub fn descendants(root: u32) -> anyhow::Result<Vec<Process>> {
    Ok(below(&all()?, root))
}

fn below(all: &[Process], root: u32) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for process in all.iter().filter(|process| process.parent == parent) {
            if !found.contains(process) {
                found.push(*process);
                parents.push(process.identity.pid);
            }
        }
    }
    found
}

/// Name of its program, as `ps` shows it; empty if it is gone.
pub fn name(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm"))
        .unwrap_or_default()
        .trim_end()
        .to_owned()
}

fn read(pid: u32) -> Option<Process> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The program's name, in parentheses, may hold spaces and parentheses.
fn parse(stat: &str) -> Option<Process> {
    let (head, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    // proc(5) counts from 1, and the state is its field 3.
    let field = |number: usize| fields.get(number - 3).copied();
    let threads: u32 = field(20)?.parse().ok()?;
    Some(Process {
        identity: Identity {
            pid: head.split_once(' ')?.0.parse().ok()?,
            start_ticks: field(22)?.parse().ok()?,
        },
        parent: field(4)?.parse().ok()?,
        dead: matches!(field(3)?, "Z" | "X") && threads <= 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn process(pid: u32, parent: u32) -> Process {
        Process {
            identity: Identity {
                pid,
                start_ticks: 1,
            },
            parent,
            dead: false,
        }
    }

    #[test]
    fn a_stat_line_is_read_by_its_fields() {
        let line = "17 (a) b (c)) Z 4 17 17 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 1 2\n";
        let expected = Process {
            identity: Identity {
                pid: 17,
                start_ticks: 12_345,
            },
            parent: 4,
            dead: true,
        };
        assert_eq!(parse(line), Some(expected));
        assert_eq!(parse("17 (a) S 4 17"), None);
    }

    #[test]
    fn a_signal_is_told_with_its_name_and_meaning() {
        let killed = "signal 9 (SIGKILL: killed by a user, or by the kernel for lack of memory)";
        assert_eq!(describe_signal(9), killed);
        assert_eq!(describe_signal(10), "signal 10 (SIGUSR1)");
        assert_eq!(describe_signal(77), "signal 77 (unknown)");
    }

    #[test]
    fn descendants_are_found_through_their_parents_in_any_order() {
        let all = [process(9, 7), process(7, 5), process(8, 1), process(5, 1)];
        let mut found: Vec<u32> = below(&all, 5).iter().map(|p| p.identity.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [7, 9]);
    }

    #[test]
    fn a_number_used_again_is_somebody_else_and_is_not_signalled() {
        let mut sleeper = Command::new("sleep")
            .arg("60")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let identity = Identity::of(sleeper.id()).unwrap();
        let earlier = Identity {
            start_ticks: identity.start_ticks - 1,
            ..identity
        };
        assert!(!earlier.is_running());
        assert!(!earlier.signal(Signal::KILL).unwrap());
        assert!(identity.is_running());
        assert!(identity.signal(Signal::TERM).unwrap());
        // Not waited for yet: a zombie does not run.
        assert!(identity.wait_gone(Duration::from_secs(5)));
        sleeper.wait().unwrap();
    }
}
