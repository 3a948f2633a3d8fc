//! `wsbench client-process`.

use anyhow::bail;
use std::process::ExitCode;

/// A client that is driven by lines on its standard input.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_args: Args) -> anyhow::Result<ExitCode> {
    bail!("`client-process` is not written yet")
}
