//! A server under test: started through a keeper, watched, stopped with all
//! that it started.

mod group;
mod link;
pub mod log;
mod ready;

use crate::keeper::{self, Event};
use crate::{cpus, ports, process, sockets};
use anyhow::{Context as _, bail};
pub use group::{Servers, numbered};
use link::Link;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use wsbench_schema::PortRange;

/// How long the keeper may take to start the process. It only forks and executes.
const SPAWN_MOST: Duration = Duration::from_secs(10);
/// How long sockets may take to vanish after their processes.
const SOCKETS_MOST: Duration = Duration::from_secs(5);
/// Sockets that are counted, at most, when asked how many are left.
const SOCKETS_COUNTED: usize = 1000;

/// How a server is started.
#[derive(Clone, Debug)]
pub struct ServerSpec {
    /// For messages.
    pub name: String,
    /// Program and its own arguments; those of the contract are added.
    pub argv: Vec<OsString>,
    /// Working folder.
    pub folder: PathBuf,
    /// Address to listen on.
    pub host: String,
    /// Ports to listen on.
    pub ports: PortRange,
    /// CPUs of the server; all that this thread may use, if empty.
    pub cpus: Vec<u32>,
    /// `--nodelay` of the contract.
    pub nodelay: bool,
    /// `--max-message` of the contract.
    pub max_message: Option<u64>,
    /// Further arguments.
    pub extra_args: Vec<String>,
    /// `--counters` of the contract: where a transfer server counts about itself.
    pub counters: Option<PathBuf>,
    /// File that takes its output; emptied first, and its folder is made.
    pub log: PathBuf,
    /// How long it may take until it listens.
    pub start_timeout: Duration,
    /// Connections that it will have. Closing many of them takes a while, which
    /// is allowed for when it is stopped.
    pub connections: u32,
}

impl ServerSpec {
    /// The same with `--upstream` of the contract: for a relay, where it connects to.
    pub fn with_upstream(mut self, ports: PortRange) -> Self {
        let upstream = format!("{}:{ports}", self.host);
        self.extra_args.extend(["--upstream".into(), upstream]);
        self
    }

    /// The whole command line of the contract.
    fn command_line(&self) -> Vec<OsString> {
        let mut line = self.argv.clone();
        let mut flag = |name: &str, value: String| line.extend([name.into(), value.into()]);
        flag("--host", self.host.clone());
        flag("--ports", self.ports.to_string());
        flag("--nodelay", self.nodelay.to_string());
        if let Some(bytes) = self.max_message {
            flag("--max-message", bytes.to_string());
        }
        if let Some(path) = &self.counters {
            line.extend(["--counters".into(), path.into()]);
        }
        line.extend(self.extra_args.iter().map(OsString::from));
        line
    }
}

/// A running server. Dropping it stops it, without waiting for its sockets.
#[derive(Debug)]
pub struct Server {
    spec: ServerSpec,
    pid: u32,
    link: Link,
}

/// How a server ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopReport {
    /// `exited with code 0`, `was ended by signal 15 (SIGTERM: ...)`, ...
    pub exit: String,
    /// Names of the programs of its tree that did not leave on SIGTERM within
    /// two seconds and were killed.
    pub killed: Vec<String>,
    /// Sockets of its ports that were left (TIME_WAIT apart) when waiting ended.
    pub sockets_left: usize,
}

impl Server {
    /// Starts it and waits until its own process tree listens on all its ports.
    ///
    /// # Errors
    /// If somebody else holds a port (who, is named), the program cannot be run, it
    /// ends (with its exit code and the end of its log), or the time is over.
    pub fn start(spec: ServerSpec) -> anyhow::Result<Self> {
        let mut server = Self::launch(spec)?;
        server.wait_ready()?;
        Ok(server)
    }

    /// Starts its process.
    fn launch(spec: ServerSpec) -> anyhow::Result<Self> {
        let address = ports::resolve(&spec.host)?;
        ports::check_unused(spec.ports, address)?;
        if let Some(folder) = spec.log.parent() {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        }
        let mut arguments: Vec<OsString> = vec!["--folder".into(), spec.folder.clone().into()];
        arguments.extend(["--log".into(), spec.log.clone().into()]);
        if !spec.cpus.is_empty() {
            arguments.extend(["--cpus".into(), cpus::format_list(&spec.cpus).into()]);
        }
        let leave_most = leave_most(spec.connections);
        arguments.extend(["--leave-most-ms".into(), milliseconds(leave_most).into()]);
        arguments.push("--".into());
        arguments.extend(spec.command_line());
        let mut link = Link::start(arguments, leave_most)?;
        let pid = match link.wait(SPAWN_MOST)? {
            Some(Event::Spawned { pid }) => pid,
            Some(Event::Failed { message }) => bail!("{}: {message}", spec.name),
            Some(other) => bail!("{}: unexpected from its keeper: {other:?}", spec.name),
            None => bail!(
                "{}: its keeper did not start it in {SPAWN_MOST:?}",
                spec.name
            ),
        };
        Ok(Self { spec, pid, link })
    }

    /// Polls more and more rarely, so that a slow start is not made slower.
    fn wait_ready(&mut self) -> anyhow::Result<()> {
        let address = ports::resolve(&self.spec.host)?;
        let end = Instant::now() + self.spec.start_timeout;
        let mut pause = Duration::from_millis(5);
        loop {
            let readiness = ready::look(self.link.keeper_pid(), self.spec.ports, address)?;
            if readiness.is_ready() {
                return Ok(());
            }
            if let Some(exit) = self.has_exited()? {
                let (name, ports) = (&self.spec.name, self.spec.ports);
                // The port it wanted may be somebody else's, which explains it best: maybe
                // since the last look only.
                let readiness = ready::look(self.link.keeper_pid(), ports, address)?;
                let foreign = readiness.foreign().map(|who| format!(" ({who})"));
                bail!(
                    "{name} {exit} before it listened on ports {ports}{}; {}",
                    foreign.unwrap_or_default(),
                    log::tail(&self.spec.log)
                );
            }
            if Instant::now() >= end {
                bail!(
                    "{} did not listen in {:?}: {readiness}; {}",
                    self.spec.name,
                    self.spec.start_timeout,
                    log::tail(&self.spec.log)
                );
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// Where it counts about itself, if it does.
    pub fn counters(&self) -> Option<&Path> {
        self.spec.counters.as_deref()
    }

    /// Process that was started.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Process that adopts all that the server starts.
    pub fn keeper_pid(&self) -> u32 {
        self.link.keeper_pid()
    }

    /// Ports that it listens on.
    pub fn ports(&self) -> PortRange {
        self.spec.ports
    }

    /// How it ended, if it did. Costs nothing while it runs.
    ///
    /// # Errors
    /// If its keeper breaks the protocol.
    pub fn has_exited(&mut self) -> anyhow::Result<Option<String>> {
        self.link.exit()
    }

    /// The same for a reason: that it cannot be watched is one too.
    pub fn exited(&mut self) -> Option<String> {
        self.has_exited()
            .unwrap_or_else(|error| Some(format!("cannot be watched ({error:#})")))
    }

    /// The end of its log, for messages.
    pub fn log_tail(&self) -> String {
        log::tail(&self.spec.log)
    }

    /// Ends it and all that it started, and waits until its sockets are gone.
    ///
    /// # Errors
    /// If a process survives SIGKILL, or its sockets cannot be seen.
    pub fn stop(mut self) -> anyhow::Result<StopReport> {
        let (exit, killed) = self.end()?;
        let sockets_left = wait_for_sockets(self.spec.ports)?;
        Ok(StopReport {
            exit,
            killed,
            sockets_left,
        })
    }

    /// Has it end without waiting for that.
    fn let_go(&mut self) {
        self.link.let_go();
    }

    /// Ends it and all that it started. Returns how it ended and who had to be killed.
    fn end(&mut self) -> anyhow::Result<(String, Vec<String>)> {
        if let Some(path) = self.counters() {
            // It was never made, or somebody took it who reads it.
            let _ = fs::remove_file(path);
        }
        let name = &self.spec.name;
        self.link.stop().with_context(|| format!("stopping {name}"))
    }
}

/// How long a server of so many connections may take to leave on SIGTERM.
fn leave_most(connections: u32) -> Duration {
    // A process that ends closes its sockets one by one, while others do on the same CPUs.
    keeper::LEAVE_MOST + Duration::from_millis(u64::from(connections) / 20)
}

fn milliseconds(duration: Duration) -> String {
    duration.as_millis().to_string()
}

/// Waits until no socket uses these ports; how many are left, up to a thousand.
fn wait_for_sockets(ports: PortRange) -> anyhow::Result<usize> {
    let mut left = Ok(0);
    process::wait_until(SOCKETS_MOST, || {
        left = sockets::count_alive(ports, SOCKETS_COUNTED);
        left.as_ref().map_or(true, |left| *left == 0)
    });
    left
}
