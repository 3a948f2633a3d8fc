//! `wsbench new`.

use anyhow::bail;
use std::process::ExitCode;

/// Writes the folder of a new server.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_args: Args) -> anyhow::Result<ExitCode> {
    bail!("`new` is not written yet")
}
