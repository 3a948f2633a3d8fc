//! `wsbench kill`.

use anyhow::bail;
use std::process::ExitCode;

/// Stops servers that `serve` left running.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_args: Args) -> anyhow::Result<ExitCode> {
    bail!("`kill` is not written yet")
}
