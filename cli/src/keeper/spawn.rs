//! Starts the server's process.

use super::Orders;
use super::log::Log;
use crate::cpus;
use crate::process;
use anyhow::{Context as _, bail};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use rustix::thread::sched_setaffinity;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

/// Returns its process id. It leads a process group of its own, so that signals
/// of the terminal do not reach it and one of ours reaches all that it forks.
pub fn spawn(orders: &Orders, log: &Log) -> anyhow::Result<u32> {
    let Some((program, arguments)) = orders.argv.split_first() else {
        bail!("no program to run");
    };
    let (log, errors) = (log.handle()?, log.handle()?);
    let affinity = match orders.cpus.as_slice() {
        [] => None,
        cpus => Some(cpus::cpu_set(cpus)?),
    };
    raise_open_files()?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(&orders.folder)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .process_group(0);
    // If even the keeper is killed, at least the server itself goes with it.
    process::end_with_us(&mut command, Signal::KILL);
    let prepare = move || {
        if let Some(set) = &affinity {
            sched_setaffinity(None, set)?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec it only makes system calls and allocates nothing.
    unsafe { command.pre_exec(prepare) };
    let child = command
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    Ok(child.id())
}

/// A server needs a file descriptor for each connection; the soft limit is often 1024.
fn raise_open_files() -> anyhow::Result<()> {
    let hard = getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit {
        current: hard,
        maximum: hard,
    };
    setrlimit(Resource::Nofile, limit).context("cannot raise the limit of open files")
}
