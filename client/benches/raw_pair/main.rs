//! The bare machine as a yardstick for the client: raw epoll programs that move
//! the same bytes and do nothing else. No framing, no histogram, no check.
//!
//! `figures` prints what the client costs, each figure beside its limit. `pair` tells
//! what an echo costs each side here. `compare` lets the raw client and `wsbench
//! client` drive the same server in turn. `bulk` tells what a GiB costs beside blocking loops.
//!
//! Nothing of the engine is used (but its routes, whose cost is measured, and the bytes
//! of a transfer), so that it is not measured by itself.

mod bulk;
mod compare;
mod connect_cost;
mod figures;
mod load;
mod machine;
mod pair;
mod process;
mod raw_client;
mod raw_dial;
mod raw_server;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(bin_name = "raw_pair")]
struct Cli {
    /// What `cargo bench` adds.
    #[arg(long, hide = true, global = true)]
    bench: bool,
    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Subcommand)]
enum Role {
    /// What the client costs, each figure beside its limit: exit code 1 if one is missed.
    Figures(figures::Args),
    /// Raw server and raw client: CPU time a message on each side.
    Pair(pair::Args),
    /// Raw client and `wsbench client` in turn on the same kind of server.
    Compare(compare::Args),
    /// What a bulk transfer costs the client beside blocking loops.
    Bulk(bulk::Args),
    /// The raw echo server alone.
    Server(raw_server::Args),
    /// The raw client alone.
    Client(raw_client::Args),
    /// The raw dialler alone.
    Dial(raw_dial::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().role {
        None => {
            // So that a bare `cargo bench` needs neither a quiet machine nor a server's path.
            eprintln!("raw_pair: nothing to do (say `-- pair`, `-- compare ...` or `-- --help`)");
            Ok(ExitCode::SUCCESS)
        }
        Some(Role::Figures(args)) => figures::run(&args),
        Some(Role::Pair(args)) => pair::run(&args),
        Some(Role::Compare(args)) => compare::run(&args),
        Some(Role::Bulk(args)) => succeed(bulk::run(&args)),
        Some(Role::Server(args)) => succeed(raw_server::run(&args)),
        Some(Role::Client(args)) => succeed(raw_client::run(&args)),
        Some(Role::Dial(args)) => succeed(raw_dial::run(&args)),
    };
    result.unwrap_or_else(|error| {
        eprintln!("raw_pair: {error:#}");
        ExitCode::FAILURE
    })
}

fn succeed(result: Result<()>) -> Result<ExitCode> {
    result.map(|()| ExitCode::SUCCESS)
}
