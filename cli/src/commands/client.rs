//! `wsbench client`.

use anyhow::bail;
use std::process::ExitCode;

/// Loads one server and prints what was measured.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_args: Args) -> anyhow::Result<ExitCode> {
    bail!("`client` is not written yet")
}
