//! `wsbench keeper`.

use anyhow::bail;
use std::process::ExitCode;

/// Starts a server and ends it, and all that it started, when the runner ends.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_args: Args) -> anyhow::Result<ExitCode> {
    bail!("`keeper` is not written yet")
}
