//! What this machine must have for a run, what it has, and the command that
//! lifts each limit. Looks and advises; knows no subject and starts nothing.

mod facts;
mod fix;
mod limits;
mod noise;

pub use facts::{Limits, Noise};
pub use fix::{Changed, fix};
pub use limits::{FILES_BESIDES, KERNEL_BYTES, MAPS_A_THREAD, files_remedy};

use crate::run::processes::Processes;
use anyhow::bail;
use serde::Serialize;
use std::borrow::Cow;
use wsbench_report::units::{Unit, counted};
use wsbench_schema::Load;

/// What a run asks of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Connections in all.
    pub connections: u64,
    /// Client processes that share them.
    pub client_processes: u64,
    /// Server processes that share them.
    pub server_processes: u64,
    /// Files that a connection takes in a server process, at most.
    pub descriptors: u64,
    /// Ports of each server process.
    pub ports: u64,
    /// Dials in flight at once.
    pub dials: u64,
    /// Messages in flight at once.
    pub in_flight: u64,
    /// Bytes of a message.
    pub payload_bytes: u64,
}

impl Demand {
    /// Of a load that so many processes share; of servers that have one file for a connection.
    pub fn of(load: &Load, ports: u16, processes: Processes) -> Self {
        let connections = u64::from(load.connections);
        let in_echo = load.echo.as_ref().map_or(0, |echo| match echo.concurrency {
            0 => connections,
            some => some.into(),
        });
        let in_rate = load.rate.as_ref().map_or(0, |rate| {
            let senders = match rate.connections {
                0 => connections,
                some => some.into(),
            };
            let batch = u64::from(rate.batch_bytes / load.payload_bytes.max(1)).max(1);
            let most = rate
                .duration_ms
                .saturating_mul(rate.per_connection_per_s.into())
                / 1000;
            let window = match rate.window {
                0 => 16 * batch,
                some => some.into(),
            };
            senders * window.min(most.max(1))
        });
        Self {
            connections,
            client_processes: processes.client.into(),
            server_processes: processes.server.into(),
            descriptors: 1,
            ports: ports.into(),
            dials: load.dial.concurrency.into(),
            in_flight: in_echo.max(in_rate),
            payload_bytes: load.payload_bytes.into(),
        }
    }

    /// The same of servers that have so many.
    pub fn with_descriptors(self, descriptors: u32) -> Self {
        let descriptors = descriptors.into();
        Self {
            descriptors,
            ..self
        }
    }

    /// Of all messages in flight, in the buffers of their sockets.
    pub fn buffer_bytes(&self) -> u64 {
        let message = (self.payload_bytes + MESSAGE_OVERHEAD_BYTES).next_multiple_of(PAGE_BYTES);
        self.in_flight.saturating_mul(message)
    }
}

/// Unread data is charged by the page, with this much for the kernel's own.
const MESSAGE_OVERHEAD_BYTES: u64 = 1 << 10;
const PAGE_BYTES: u64 = 4 << 10;

/// Which processes a limit holds for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Each process of the server.
    Server,
    /// Each process of the client.
    Client,
    /// Each process of either.
    Both,
    /// All of the machine.
    Machine,
}

/// What follows from a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Enough.
    Ok,
    /// The run works, but slower, or its figures are less certain.
    Advice,
    /// The run would fail half-way.
    Short,
    /// This kernel does not say.
    Unknown,
}

/// What is there, or what is needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Amount {
    /// A number of things.
    Count(u64),
    /// Bytes, shown with a unit.
    Bytes(#[serde(serialize_with = "plain")] Bytes),
    /// Words.
    Text(String),
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub u64);

fn plain<S: serde::Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(bytes.0)
}

impl std::fmt::Display for Amount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Amount::Count(count) => count.fmt(f),
            #[expect(clippy::cast_precision_loss, reason = "shown with two decimals")]
            Amount::Bytes(Bytes(bytes)) => Unit::Bytes.show(*bytes as f64).fmt(f),
            Amount::Text(text) => text.fmt(f),
        }
    }
}

/// A setting of the kernel, and what it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sysctl {
    /// As `sysctl` names it: `fs.nr_open`.
    pub name: &'static str,
    /// As it is written.
    pub value: String,
}

/// One thing that limits a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// In words: `open files a process`.
    pub name: Cow<'static, str>,
    /// Whom it limits.
    pub side: Side,
    /// What is there.
    pub found: Amount,
    /// What the run needs.
    pub needed: Amount,
    /// What follows.
    pub status: Status,
    /// The command that lifts it, or what else to do.
    pub remedy: Option<String>,
    /// What [`fix`] would write.
    pub fix: Vec<Sysctl>,
}

impl Check {
    /// Enough, unless something is said against it.
    fn new(name: impl Into<Cow<'static, str>>, side: Side, found: Amount, needed: Amount) -> Self {
        Self {
            name: name.into(),
            side,
            found,
            needed,
            status: Status::Ok,
            remedy: None,
            fix: Vec::new(),
        }
    }

    /// Of what this kernel does not say.
    fn unknown(name: impl Into<Cow<'static, str>>, side: Side, needed: Amount) -> Self {
        Self {
            status: Status::Unknown,
            ..Self::new(name, side, Amount::Text("not visible".into()), needed)
        }
    }

    fn with(self, status: Status, remedy: impl Into<String>) -> Self {
        Self {
            status,
            remedy: Some(remedy.into()),
            ..self
        }
    }

    /// Lifted by settings of the kernel.
    fn with_sysctls(self, status: Status, fix: Vec<Sysctl>) -> Self {
        let commands = fix.iter().map(Sysctl::command).collect::<Vec<_>>();
        Self {
            fix,
            ..self.with(status, commands.join(" && "))
        }
    }

    /// In one line, for a refusal.
    fn line(&self) -> String {
        let Self {
            name,
            found,
            needed,
            ..
        } = self;
        let line = format!("{name}: {found}, {needed} needed");
        match &self.remedy {
            Some(remedy) => format!("{line} ({remedy})"),
            None => line,
        }
    }
}

impl Sysctl {
    fn new(name: &'static str, value: impl Into<String>) -> Self {
        Self {
            name,
            value: value.into(),
        }
    }

    fn command(&self) -> String {
        let Self { name, value } = self;
        match value.contains(' ') {
            true => format!("sysctl -w {name}=\"{value}\""),
            false => format!("sysctl -w {name}={value}"),
        }
    }
}

/// Everything that could stop the run.
pub fn limits(found: &Limits, demand: &Demand) -> Vec<Check> {
    limits::checks(found, demand)
}

/// Everything that makes its figures less certain.
pub fn noise(found: &Noise) -> Vec<Check> {
    noise::checks(found)
}

/// Refuses a run that would fail half-way, with a line for each reason.
///
/// # Errors
/// If a check is [`Status::Short`].
pub fn refuse(checks: &[Check], demand: &Demand) -> anyhow::Result<()> {
    let short: Vec<String> = checks
        .iter()
        .filter(|check| check.status == Status::Short)
        .map(Check::line)
        .collect();
    if !short.is_empty() {
        bail!(
            "cannot hold {}: {}",
            counted(demand.connections, "connection"),
            short.join("; ")
        );
    }
    Ok(())
}
