//! A command of a build: its output taken, ended with all that it started when the
//! user wants the build to end.

use crate::orphans;
use crate::process;
use crate::run::interrupt;
use anyhow::{Context as _, bail};
use rustix::process::Signal;
use std::process::{ChildStdout, Command, ExitStatus};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// How often it is looked whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(50);
/// How long a compiler or package manager may take to leave on SIGTERM.
const GRACE: Duration = Duration::from_secs(1);

/// Runs it to its end. `read` gets its standard output, if that is piped.
///
/// # Errors
/// If it cannot be run, or the user interrupts.
pub fn run<T>(
    command: &mut Command,
    read: impl FnOnce(Option<ChildStdout>) -> T,
) -> anyhow::Result<(ExitStatus, T)> {
    let name = command.get_program().display().to_string();
    orphans::adopt()?;
    // What only a killed runner leaves behind: then at least no further compiler starts.
    process::end_with_us(command, Signal::TERM);
    let child = command.spawn();
    let mut child = child.with_context(|| format!("cannot run `{name}`"))?;
    let (over, watched) = channel::<()>();
    let watch = move || {
        while watched.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            if interrupt::pressed() {
                // What survives is told when it is waited for below.
                let _ = orphans::end(GRACE);
                return;
            }
        }
    };
    let watcher = thread::Builder::new()
        .name("build-watch".into())
        .spawn(watch);
    let watcher = watcher.context("cannot start a thread")?;
    let output = read(child.stdout.take());
    let status = child.wait();
    drop(over);
    let _ = watcher.join();
    if interrupt::pressed() {
        bail!("interrupted");
    }
    let status = status.with_context(|| format!("cannot wait for `{name}`"))?;
    Ok((status, output))
}
