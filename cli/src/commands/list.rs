//! `wsbench list`.

use anyhow::bail;
use std::process::ExitCode;

/// Lists the servers: name, version, language, state.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_args: Args) -> anyhow::Result<ExitCode> {
    bail!("`list` is not written yet")
}
