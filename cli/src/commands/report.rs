//! `wsbench report`.

use anyhow::bail;
use std::process::ExitCode;

/// Makes the report of a run from its saved records.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_args: Args) -> anyhow::Result<ExitCode> {
    bail!("`report` is not written yet")
}
