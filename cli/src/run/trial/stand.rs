//! What stands while a subject is measured: its processes and, behind a relay, the
//! origin.

use super::origin::Origin;
use super::{Bench, remove_empty};
use crate::server::{ServerSpec, Servers, StopReport, numbered};
use crate::subject::Subject;
use std::path::{Path, PathBuf};
use wsbench_schema::{PortRange, Suite};

/// A subject that listens, and all that it needs.
pub struct Stand {
    /// The subject's processes.
    pub servers: Servers,
    /// Behind a relay.
    pub origin: Option<Origin>,
    log: PathBuf,
}

/// Whether the subject is put between the client and an origin.
fn needs_origin(subject: &Subject) -> bool {
    subject.suite == Suite::Relay && !subject.is_direct()
}

fn origin_log(log: &Path) -> PathBuf {
    log.with_extension("origin.log")
}

impl Stand {
    /// Starts the subject as so many processes for so many connections, and the origin
    /// before it. `told` gets what is to be started, before it is.
    ///
    /// # Errors
    /// If anything does not start; what did is stopped.
    pub fn start(
        bench: &Bench<'_>,
        subject: &Subject,
        processes: u32,
        connections: u32,
        log: PathBuf,
        mut told: impl FnMut(&ServerSpec),
    ) -> anyhow::Result<Self> {
        let origin = match needs_origin(subject) {
            true => Some(Origin::start(bench, connections, origin_log(&log))?),
            false => None,
        };
        let mut spec = bench.server(subject, processes, connections, log.clone())?;
        if let Some(origin) = &origin {
            spec = spec.with_upstream(origin.ports());
        }
        told(&spec);
        Ok(Self {
            servers: Servers::start(&spec, processes)?,
            origin,
            log,
        })
    }

    /// Where the client connects to.
    pub fn ports(&self) -> PortRange {
        self.servers.ports()
    }

    /// How the subject ended, or the origin, if one of their processes did. Costs little
    /// while all run.
    pub fn exited(&mut self) -> Option<String> {
        let origins = |origin: &mut Origin| {
            let exit = origin.exited()?;
            Some(format!(
                "the origin behind the relay, a part of wsbench: {exit}"
            ))
        };
        self.servers
            .exited()
            .or_else(|| self.origin.as_mut().and_then(origins))
    }

    /// Ends everything, the subject first, and removes the logs in which nothing stands.
    ///
    /// # Errors
    /// If a process cannot be stopped.
    pub fn stop(self) -> anyhow::Result<Vec<StopReport>> {
        let count = self.servers.count();
        let stopped = self.servers.stop();
        let origin = self.origin.map_or(Ok(Vec::new()), Origin::stop);
        for index in 0..count {
            remove_empty(&numbered(&self.log, index, count));
        }
        remove_empty(&origin_log(&self.log));
        origin.and(stopped)
    }
}
