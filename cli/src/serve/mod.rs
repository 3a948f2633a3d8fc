//! `wsbench serve`: servers for clients that come by themselves, on this host or
//! another one.

mod advice;
pub mod detach;
mod prepare;
mod start;
mod token;

use crate::progress::{note, say};
use crate::root::Root;
use crate::run::interrupt::Interrupt;
use anyhow::Context as _;
use prepare::Plan;
use start::Running;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use wsbench_schema::PortRange;

/// How often it is looked whether a server has ended or Ctrl-C was pressed.
const LOOK: Duration = Duration::from_millis(100);
/// How long the control API still says why, after the last server has died.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// What the user asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which servers.
    pub choice: Choice,
    /// Address to listen on.
    pub host: String,
    /// Ports of all servers together.
    pub ports: Option<PortRange>,
    /// Whether they set TCP_NODELAY.
    pub nodelay: bool,
    /// The longest message that they are asked to accept.
    pub max_message: Option<u64>,
    /// CPUs of the servers.
    pub cpus: Option<Vec<u32>>,
    /// How long one may take until it listens.
    pub start_timeout: Duration,
    /// Of the control API.
    pub access: Access,
    /// Between two samples.
    pub interval: Duration,
    /// This host's name as other hosts know it.
    pub url_host: Option<String>,
    /// Started by `--detach`, which prints what is to be printed.
    pub background: bool,
}

/// Which servers.
#[derive(Clone, Debug)]
pub enum Choice {
    /// These, or none.
    Named(Vec<String>),
    /// Every one that can be run.
    All,
}

/// Who may use the control API, and where.
#[derive(Clone, Debug)]
pub struct Access {
    /// Where it answers.
    pub control: Option<SocketAddr>,
    /// What it asks for.
    pub token: Option<String>,
}

/// Starts the servers and stays until their end.
pub fn run(root: &Root, options: &Options) -> anyhow::Result<ExitCode> {
    if options.background {
        // It is run through /proc/self/exe, which would be called `exe` in `ps` and `top`.
        rustix::thread::set_name(c"wsbench").context("cannot name this process")?;
    }
    let interrupt = Interrupt::install()?;
    let plan = Plan::make(root, options)?;
    let (stop, stops) = mpsc::channel();
    let mut running = start::all(root, options, &plan, &stop, &interrupt)?;
    if options.background {
        detach::tell_ready()?;
    } else if !interrupt.pressed() {
        for server in &running {
            say(advice::of(&server.file, options.url_host.as_deref())?);
        }
        say("Stop with Ctrl-C, or: wsbench kill");
    }
    let mut failed = false;
    while !running.is_empty() && !interrupt.pressed() {
        match stops.recv_timeout(LOOK) {
            Ok(name) => {
                let asked = running.iter().position(|server| server.file.name == name);
                if let Some(at) = asked {
                    failed |= !stop_one(root, running.remove(at));
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        failed |= drop_dead(root, &mut running)?;
    }
    let died = failed && running.is_empty();
    for server in running {
        failed |= !stop_one(root, server);
    }
    if died {
        let end = Instant::now() + LAST_WORDS;
        while Instant::now() < end && !interrupt.pressed() {
            std::thread::sleep(LOOK);
        }
    }
    Ok(match failed {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

/// Stops a server; false if that went wrong, which is printed.
fn stop_one(root: &Root, running: Running) -> bool {
    let Running {
        file,
        server,
        served,
    } = running;
    let name = &file.name;
    served.set_exited("was stopped".into());
    let stopped = server.stop();
    let removed = file.remove(root);
    match &stopped {
        Ok(report) if report.killed.is_empty() => {
            say(format_args!("{name}: stopped; it {}", report.exit));
        }
        Ok(report) => say(format_args!(
            "{name}: killed, as it did not leave on SIGTERM: {}",
            report.killed.join(", ")
        )),
        Err(error) => note(format_args!("wsbench: {name}: {error:#}")),
    }
    if let Ok(report) = &stopped
        && report.sockets_left > 0
    {
        say(format_args!(
            "{name}: {} of its sockets are still closing",
            report.sockets_left
        ));
    }
    if let Err(error) = &removed {
        note(format_args!("wsbench: {name}: {error:#}"));
    }
    stopped.is_ok() && removed.is_ok()
}

/// Takes out the servers that ended by themselves; true if there was one.
fn drop_dead(root: &Root, running: &mut Vec<Running>) -> anyhow::Result<bool> {
    let mut found = false;
    let mut at = 0;
    while at < running.len() {
        let Some(exit) = running[at].server.has_exited()? else {
            at += 1;
            continue;
        };
        let dead = running.remove(at);
        let told = format!("{exit}; {}", dead.server.log_tail());
        note(format_args!(
            "wsbench: unexpectedly, {} {told}",
            dead.file.name
        ));
        dead.served.set_exited(told);
        dead.file.remove(root)?;
        found = true;
    }
    Ok(found)
}
