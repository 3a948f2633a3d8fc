//! `wsbench keeper`: what the runner and `serve` start instead of a server.

use crate::cpus;
use crate::keeper::{self, Orders};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Starts a server and ends it, and all that it started, when the runner ends.
#[derive(clap::Args)]
pub struct Args {
    /// Working folder of the server
    #[arg(long)]
    folder: PathBuf,
    /// CPUs of the server [default: those of this process]
    #[arg(long)]
    cpus: Option<String>,
    /// File that takes the server's output; emptied first
    #[arg(long)]
    log: PathBuf,
    /// Milliseconds that all may take to leave on SIGTERM
    #[arg(long, default_value_t = 2000)]
    leave_most_ms: u64,
    /// Program and arguments of the server
    #[arg(last = true, required = true)]
    argv: Vec<OsString>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let cpus = args.cpus.as_deref().map(cpus::parse_list).transpose()?;
    keeper::keep(&Orders {
        argv: args.argv,
        folder: args.folder,
        cpus: cpus.unwrap_or_default(),
        log: args.log,
        leave_most: Duration::from_millis(args.leave_most_ms),
    })?;
    Ok(ExitCode::SUCCESS)
}
