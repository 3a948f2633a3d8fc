//! A client process of `wsbench`, driven line by line, so that it can be looked
//! at between any two phases and in the middle of one.

use crate::load::Server;
use crate::machine::{anonymous_bytes, on_cpus};
use anyhow::{Context as _, Result, bail, ensure};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use wsbench_schema::{
    ClientCommand, ClientEvent, Load, Part, Phase, PhaseReport, PortRange, Target, metric,
};

pub struct Process {
    child: Child,
    stdin: ChildStdin,
    lines: BufReader<ChildStdout>,
    /// The most that was seen at the edges and within the phases.
    pub anonymous_bytes: u64,
}

impl Process {
    /// Starts it on these CPUs with a load for a server.
    pub fn start(program: &Path, cpus: &[usize], server: &Server, load: Load) -> Result<Self> {
        let mut command = Command::new(program);
        command
            .arg("client-process")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let spawn = || {
            let spawned = command.spawn();
            spawned.with_context(|| format!("cannot start {}", program.display()))
        };
        let mut child = on_cpus(cpus, spawn)?;
        let stdin = child.stdin.take().context("no standard input")?;
        let stdout = child.stdout.take().context("no standard output")?;
        let mut process = Self {
            child,
            stdin,
            lines: BufReader::new(stdout),
            anonymous_bytes: 0,
        };
        let ports = server.port_range();
        let target = Target {
            host: "127.0.0.1".into(),
            ports: PortRange {
                first: *ports.start(),
                last: *ports.end(),
            },
            path: Target::DEFAULT_PATH.into(),
        };
        process.tell(&ClientCommand::Prepare {
            most_connections: load.connections,
            load: Box::new(load),
            target,
            seed: 1,
            part: Part::WHOLE,
        })?;
        match process.event()? {
            ClientEvent::Prepared { .. } => process.ready()?,
            other => bail!("expected that the client is prepared: {other:?}"),
        }
        Ok(process)
    }

    pub fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Runs the next phase, which must be this one, and waits until it is over.
    pub fn run(&mut self, phase: Phase) -> Result<PhaseReport> {
        self.tell(&ClientCommand::Go { phase, at_ns: None })?;
        loop {
            match self.event()? {
                ClientEvent::Progress(_) => self.look()?,
                ClientEvent::Done { report, .. } => {
                    self.ready()?;
                    let failed = report.metrics.get(metric::FAILED).copied().unwrap_or(0);
                    ensure!(failed == 0, "{phase}: {failed} failures: {report:?}");
                    return Ok(*report);
                }
                other => bail!("in {phase} the client said {other:?}"),
            }
        }
    }

    /// Waits until it is idle, or finished, and looks at its memory.
    fn ready(&mut self) -> Result<()> {
        match self.event()? {
            ClientEvent::Ready { .. } | ClientEvent::Finished => self.look(),
            other => bail!("expected that the client is ready: {other:?}"),
        }
    }

    fn look(&mut self) -> Result<()> {
        let bytes = anonymous_bytes(self.child.id())?;
        self.anonymous_bytes = self.anonymous_bytes.max(bytes);
        Ok(())
    }

    /// Lets it close its connections; returns how long that took it.
    pub fn stop(mut self) -> Result<Duration> {
        let start = Instant::now();
        self.tell(&ClientCommand::Stop)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the client process ended with {status}");
        Ok(start.elapsed())
    }

    fn tell(&mut self, command: &ClientCommand) -> Result<()> {
        let line = serde_json::to_string(command)?;
        writeln!(self.stdin, "{line}").context("the client process has gone")
    }

    fn event(&mut self) -> Result<ClientEvent> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        match serde_json::from_str(&line).with_context(|| format!("not an event: `{line}`"))? {
            ClientEvent::Failed { message } => bail!("the client process failed: {message}"),
            event => Ok(event),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It cannot fail in a way that matters: a client that is gone is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One of its figures; absent ones are a fault.
pub fn figure(report: &PhaseReport, name: &str) -> Result<f64> {
    let value = report.metrics.get(name);
    Ok(*value.with_context(|| format!("no metric `{name}`"))? as f64)
}
