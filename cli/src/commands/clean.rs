//! `wsbench clean`.

use anyhow::bail;
use std::process::ExitCode;

/// Removes what was built and written.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_args: Args) -> anyhow::Result<ExitCode> {
    bail!("`clean` is not written yet")
}
