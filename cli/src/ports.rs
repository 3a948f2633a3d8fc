//! Ports for a server: free ones, and whether those that the user named can be used.

use anyhow::bail;
use wsbench_schema::PortRange;

/// Ports of a server if the user does not say.
pub const DEFAULT_PORTS: u16 = 10;

/// `count` consecutive ports that a server can listen on.
pub fn free_ports(_count: u16, _host: &str) -> anyhow::Result<PortRange> {
    bail!("`free_ports` is not written yet")
}

/// Whether a server can listen on the ports that the user named.
pub fn check_ports(_range: PortRange, _host: &str) -> anyhow::Result<()> {
    bail!("`check_ports` is not written yet")
}
