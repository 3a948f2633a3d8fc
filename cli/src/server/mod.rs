//! A server under test: started by a keeper, watched, stopped with all that it started.

use anyhow::bail;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use wsbench_schema::PortRange;

/// How a server is started.
#[derive(Clone, Debug)]
pub struct ServerSpec {
    /// For messages.
    pub name: String,
    /// Program and its own arguments; those of the contract are added.
    pub argv: Vec<OsString>,
    /// Address to listen on.
    pub host: String,
    /// Ports to listen on.
    pub ports: PortRange,
    /// CPUs of the server; all that this process may use, if empty.
    pub cpus: Vec<u32>,
    /// `--nodelay` of the contract.
    pub nodelay: bool,
    /// `--max-message` of the contract.
    pub max_message: Option<u64>,
    /// Further arguments.
    pub extra_args: Vec<String>,
    /// File that takes its output; emptied first.
    pub log: PathBuf,
    /// How long it may take until it listens.
    pub start_timeout: Duration,
}

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct Server {
    spec: ServerSpec,
    pid: u32,
}

/// How a server ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopReport {
    /// `exited with code 0`, `was ended by signal 15 (SIGTERM)`, ...
    pub exit: String,
    /// It, or something that it started, did not go on SIGTERM.
    pub killed: bool,
    /// Sockets of its ports that were left (TIME_WAIT apart) when waiting ended.
    pub sockets_left: usize,
}

impl Server {
    /// Starts it and waits until it listens on all its ports.
    pub fn start(_spec: ServerSpec) -> anyhow::Result<Server> {
        bail!("`Server::start` is not written yet")
    }

    /// Process that was started.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Ports that it listens on.
    pub fn ports(&self) -> PortRange {
        self.spec.ports
    }

    /// How it ended, if it did.
    pub fn has_exited(&mut self) -> anyhow::Result<Option<String>> {
        bail!("`Server::has_exited` is not written yet")
    }

    /// Ends it and all that it started, and waits until its sockets are gone.
    pub fn stop(self) -> anyhow::Result<StopReport> {
        bail!("`Server::stop` is not written yet")
    }
}
