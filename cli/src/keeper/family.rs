//! The server and all that it started, to their end.

use super::drain;
use super::event::Exit;
use super::log::Log;
use crate::process::{self, Process, to_pid};
use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, WaitOptions, kill_process, kill_process_group, wait};
use std::collections::BTreeSet;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long all may take to leave on SIGTERM, and as long again when killed, unless
/// more is allowed: less than five seconds in all.
pub const LEAVE_MOST: Duration = Duration::from_secs(2);
/// How often `/proc` is read meanwhile: at first, and more and more rarely up to
/// the second. A death is seen at once all the same, but for that of a grandchild.
const LOOK_FIRST: Duration = Duration::from_millis(20);
/// See [`LOOK_FIRST`].
const LOOK_LAST: Duration = Duration::from_secs(1);

/// The descendants of this process.
pub struct Family {
    server: u32,
    exit: Option<Exit>,
    leave_most: Duration,
}

impl Family {
    /// Of which `server` is the eldest. All have so long to leave.
    pub fn new(server: u32, leave_most: Duration) -> Self {
        Self {
            server,
            exit: None,
            leave_most,
        }
    }

    /// How the server ended, once it was reaped.
    pub fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// Takes the exit codes of all children that have ended, adopted ones included.
    pub fn reap(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if to_pid(self.server) == Some(pid) {
                self.exit = Some(Exit {
                    code: status.exit_status(),
                    signal: status.terminating_signal(),
                });
            }
        }
    }

    /// Ends all: SIGTERM to the server's group, SIGKILL to whoever is left after
    /// the time to leave. Returns the names of the killed and how many survived.
    pub fn end(
        &mut self,
        deaths: &UnixStream,
        log: &mut Log,
    ) -> anyhow::Result<(Vec<String>, u32)> {
        self.reap();
        match (self.exit, to_pid(self.server)) {
            // The group may be somebody else's once its leader was reaped.
            (Some(_), _) | (None, None) => {
                for process in self.living()? {
                    signal(&process, Signal::TERM);
                }
            }
            (None, Some(server)) => {
                let _ = kill_process_group(server, Signal::TERM);
            }
        }
        let mut killed = BTreeSet::new();
        let start = Instant::now();
        let mut look = LOOK_FIRST;
        loop {
            self.reap();
            let living = self.living()?;
            if living.is_empty() {
                self.reap();
                return Ok((killed.into_iter().collect(), 0));
            }
            let waited = start.elapsed();
            if waited >= self.leave_most * 2 {
                let left = u32::try_from(living.len()).unwrap_or(u32::MAX);
                return Ok((killed.into_iter().collect(), left));
            }
            if waited >= self.leave_most {
                for process in &living {
                    killed.insert(process::name(process.identity.pid));
                    signal(process, Signal::KILL);
                }
            }
            pause(deaths, look)?;
            log.bound();
            look = (look * 2).min(LOOK_LAST);
        }
    }

    /// Dead ones are their parents' to reap, or ours when those are gone.
    fn living(&self) -> anyhow::Result<Vec<Process>> {
        let mut found = process::descendants(std::process::id())?;
        found.retain(|process| !process.dead);
        Ok(found)
    }
}

/// It cannot be anybody else: as long as it is ours, its number is not used again.
fn signal(process: &Process, signal: Signal) {
    if let Some(pid) = to_pid(process.identity.pid) {
        // It may be gone, which is what is wanted.
        let _ = kill_process(pid, signal);
    }
}

/// Until a child dies, but no longer than that.
fn pause(deaths: &UnixStream, most: Duration) -> anyhow::Result<()> {
    let timeout = Timespec::try_from(most).context("the pause is too long")?;
    let mut ready = [PollFd::new(deaths, PollFlags::IN)];
    // An interrupted wait is a short one.
    let _ = poll(&mut ready, Some(&timeout));
    drain(deaths);
    Ok(())
}
