//! `output/run/NAME.json`: what `wsbench serve` leaves while it runs.

use crate::observe::RemoteObserver;
use crate::root::Root;
use anyhow::bail;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use wsbench_schema::PortRange;

/// A server that `wsbench serve` runs on this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunFile {
    /// [`wsbench_schema::SCHEMA_VERSION`].
    pub schema: u32,
    /// Subject, variant included.
    pub name: String,
    /// Address that it listens on.
    pub host: String,
    /// Ports that it listens on.
    pub ports: PortRange,
    /// Where the control API answers.
    pub control: SocketAddr,
}

impl RunFile {
    /// The running server of that name; an error with the remedy if there is none.
    pub fn find(_root: &Root, _name: &str) -> anyhow::Result<Self> {
        bail!("`RunFile::find` is not written yet")
    }

    /// An address of this host at which a client reaches the server.
    pub fn client_host(&self) -> String {
        self.host.clone()
    }

    /// Watches it through its control API.
    pub fn observe(&self) -> anyhow::Result<RemoteObserver> {
        bail!("`RunFile::observe` is not written yet")
    }
}
