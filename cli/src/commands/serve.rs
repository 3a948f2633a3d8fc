//! `wsbench serve`.

use anyhow::bail;
use std::process::ExitCode;

/// Runs one server for a client on this or another host.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_args: Args) -> anyhow::Result<ExitCode> {
    bail!("`serve` is not written yet")
}
