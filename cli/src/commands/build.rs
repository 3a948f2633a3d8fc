//! `wsbench build`.

use anyhow::bail;
use std::process::ExitCode;

/// Builds servers.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_args: Args) -> anyhow::Result<ExitCode> {
    bail!("`build` is not written yet")
}
