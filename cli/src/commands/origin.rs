//! `wsbench origin`: what is behind a relay under test (see `wsbench_client::origin`).

use crate::args::units::boolean;
use crate::run::interrupt::Interrupt;
use anyhow::Context as _;
use clap::ArgAction;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use wsbench_client::Origin;
use wsbench_schema::PortRange;

/// Ends the connections of a relay: sends back, takes or sends bytes as the client says.
#[derive(clap::Args)]
pub struct Args {
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// Ports to listen on, as `10001-10010`
    #[arg(long)]
    ports: PortRange,
    /// Set TCP_NODELAY on connections
    #[arg(long, value_name = "BOOL", default_value = "true", action = ArgAction::Set, value_parser = boolean)]
    nodelay: bool,
    /// Threads that share the connections [default: one for each CPU of this process]
    #[arg(long)]
    threads: Option<NonZeroUsize>,
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "every verb takes its arguments whole"
)]
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    // It is run through /proc/self/exe, which would be called `exe` in `ps` and `top`.
    rustix::thread::set_name(c"wsbench-origin").context("cannot name this process")?;
    let interrupt = Interrupt::install()?;
    let threads = args.threads.map(NonZeroUsize::get);
    let origin = Origin::bind(&args.host, args.ports, threads)?;
    origin.with_nodelay(args.nodelay).run(interrupt.flag())?;
    Ok(ExitCode::SUCCESS)
}
