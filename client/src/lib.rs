//! The load engine: mio, one shard (thread, epoll, slots, histogram) for each
//! CPU, no async runtime, no lock and no allocation a message.
//!
//! Drivers (`wsbench client`, the runner, a control API) decide *when* a phase
//! begins; the engine does everything else. It knows nothing of the server's
//! process.

pub mod cause;
pub mod engine;
pub mod limits;
pub mod origin;
pub mod protocol;
pub mod workload;

pub use cause::Cause;
pub use engine::Engine;
pub use origin::Origin;
use std::io;
use thiserror::Error;
use wsbench_schema::PortRange;

/// Why a load cannot be run at all. What goes wrong during a phase is counted
/// in its report instead.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The load contradicts itself.
    #[error("{0}")]
    Load(String),
    /// The host has no address.
    #[error("cannot find the host `{host}`: {reason}")]
    Host {
        /// As it was given.
        host: String,
        /// As the resolver says.
        reason: String,
    },
    /// The limit of open files is too low.
    #[error(
        "cannot hold {connections} connections: nofile hard limit is {hard}, {needed} are needed \
         (run as root with CAP_SYS_RESOURCE: ulimit -Hn {needed} && ulimit -Sn {needed})"
    )]
    OpenFiles {
        /// Asked for.
        connections: u32,
        /// The limit.
        hard: u64,
        /// What the limit should be.
        needed: u64,
    },
    /// One source address has too few ports.
    #[error(
        "cannot open {connections} connections to ports {ports} of another host: each port takes at \
         most {ephemeral} from this address (use more server ports, or run as root: \
         sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\")"
    )]
    Ports {
        /// Asked for.
        connections: u32,
        /// Of the server.
        ports: PortRange,
        /// Local ports in the range.
        ephemeral: u32,
    },
    /// The operating system refused something.
    #[error("cannot {0}: {1}")]
    System(String, io::Error),
    /// A shard ended when it should not.
    #[error("a shard of the client failed: {0}")]
    Shard(String),
}
