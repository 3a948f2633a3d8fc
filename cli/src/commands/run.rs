//! `wsbench run`.

use anyhow::bail;
use std::process::ExitCode;

/// Compares servers: builds, verifies, measures, reports.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_args: Args) -> anyhow::Result<ExitCode> {
    bail!("`run` is not written yet")
}
