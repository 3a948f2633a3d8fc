//! What is left of a server whose keeper was killed, or of a build that is to end.
//!
//! The kernel gives orphans to the nearest ancestor that asked for them. Of a
//! server that is its keeper, and this process once there is none.

use crate::process::{self, Process, to_pid};
use anyhow::Context as _;
use rustix::process::{Signal, WaitOptions, getpid, set_child_subreaper, waitpid};
use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

/// How long killing may take.
const KILLING: Duration = Duration::from_secs(3);

/// From now on, what this process' children leave behind becomes its own.
pub fn adopt() -> anyhow::Result<()> {
    set_child_subreaper(Some(getpid())).context("cannot become the keeper of orphans")
}

/// Ends and reaps all that was adopted, and children of other programs than this
/// one: by SIGKILL if they have not left on SIGTERM within `grace`. Returns the names
/// of those programs.
///
/// # Errors
/// If one survives that, or `/proc` cannot be read.
pub fn end(grace: Duration) -> anyhow::Result<Vec<String>> {
    let mut ended = BTreeSet::new();
    let mut reaped = BTreeSet::new();
    let mut failure = None;
    let begin = Instant::now();
    let gone = process::wait_until(grace + KILLING, || match adopted() {
        Ok(orphans) => {
            for orphan in &orphans {
                let name = process::name(orphan.identity.pid);
                let signal = match begin.elapsed() < grace {
                    true => Signal::TERM,
                    false => Signal::KILL,
                };
                if orphan.identity.signal(signal).unwrap_or(false) {
                    ended.insert(name);
                    reaped.insert(orphan.identity.pid);
                }
            }
            orphans.is_empty()
        }
        Err(error) => {
            failure = Some(error);
            true
        }
    });
    // By number: the other children of this process are others' to wait for.
    for pid in reaped.into_iter().filter_map(to_pid) {
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
    match failure {
        Some(error) => Err(error),
        None if gone => Ok(ended.into_iter().collect()),
        None => anyhow::bail!("some of its processes survive SIGKILL (see: ps -o pid,stat,wchan)"),
    }
}

/// Whatever this program starts while a server runs is this program again, so
/// other children are adopted ones, with all that descends from them.
fn adopted() -> anyhow::Result<Vec<Process>> {
    let program = |pid: u32| fs::read_link(format!("/proc/{pid}/exe")).ok();
    let own = std::process::id();
    let own_program = program(own);
    let mut found = Vec::new();
    for process in process::all()? {
        // The dead have no program any more: ours are waited for elsewhere.
        if process.parent == own && !process.dead && program(process.identity.pid) != own_program {
            found.push(process);
            found.extend(process::descendants(process.identity.pid)?);
        }
    }
    found.retain(|process| !process.dead);
    Ok(found)
}
