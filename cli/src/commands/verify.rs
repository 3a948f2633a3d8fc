//! `wsbench verify`.

use anyhow::bail;
use std::process::ExitCode;

/// Checks that servers answer rightly.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_args: Args) -> anyhow::Result<ExitCode> {
    bail!("`verify` is not written yet")
}
