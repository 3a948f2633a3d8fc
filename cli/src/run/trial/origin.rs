//! The other end behind a relay: processes of this program on the client's CPUs.
//! Their CPU time is the client side's, and is kept apart from it.

use super::{Bench, HOST, START_TIMEOUT};
use crate::ports;
use crate::server::{ServerSpec, Servers, StopReport};
use anyhow::Context as _;
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use wsbench_sampler::Tree;
use wsbench_schema::PortRange;

/// Ports of each process: enough for all local ports of the relay's connections.
const PORTS: u16 = 10;
/// The hidden verb.
pub const VERB: &str = "origin";

/// An origin that runs.
pub struct Origin {
    servers: Servers,
    tree: Tree,
    /// Of all its processes, when the phase began.
    began_ns: u64,
}

impl Origin {
    /// Starts as many processes as so many connections need, and waits until they listen.
    ///
    /// # Errors
    /// If there are too few free ports, or a process does not start.
    pub fn start(bench: &Bench<'_>, connections: u32, log: PathBuf) -> anyhow::Result<Self> {
        let processes = bench.options.origins(connections);
        let program = env::current_exe().context("cannot find this program's file")?;
        let count = u16::try_from(u32::from(PORTS) * processes)
            .with_context(|| format!("{processes} origins need more ports than there are"))?;
        let spec = ServerSpec {
            name: VERB.into(),
            argv: vec![program.into(), OsString::from(VERB)],
            folder: bench.root.path().to_owned(),
            host: HOST.into(),
            ports: ports::free_ports(count, HOST)?,
            cpus: bench.cpus.client.clone(),
            nodelay: true,
            max_message: None,
            extra_args: Vec::new(),
            counters: None,
            log,
            start_timeout: START_TIMEOUT,
            connections,
        };
        let servers = Servers::start(&spec, processes)?;
        let tree = Tree::of_all(&servers.pids())?;
        Ok(Self {
            servers,
            tree,
            began_ns: 0,
        })
    }

    /// Where a relay connects to.
    pub fn ports(&self) -> PortRange {
        self.servers.ports()
    }

    /// How one of its processes ended, if one did: a fault of the harness.
    pub fn exited(&mut self) -> Option<String> {
        self.servers.exited()
    }

    /// A phase begins.
    ///
    /// # Errors
    /// If a process is gone.
    pub fn begin(&mut self) -> anyhow::Result<()> {
        self.began_ns = self.tree.edge()?.cpu_ns;
        Ok(())
    }

    /// CPU time since the phase began.
    ///
    /// # Errors
    /// If a process is gone.
    pub fn end(&mut self) -> anyhow::Result<u64> {
        Ok(self.tree.edge()?.cpu_ns.saturating_sub(self.began_ns))
    }

    /// Ends it, and waits until its sockets are gone.
    ///
    /// # Errors
    /// If a process cannot be stopped.
    pub fn stop(self) -> anyhow::Result<Vec<StopReport>> {
        self.servers.stop()
    }
}
