//! `wsbench serve`.

use crate::args::units::{boolean, duration};
use crate::cpus;
use crate::root::Root;
use crate::run::lock;
use crate::runfile;
use crate::serve::{self, Access, Choice, Options, detach};
use anyhow::bail;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use wsbench_sampler::MIN_INTERVAL;
use wsbench_schema::PortRange;

/// Runs servers for a client on this or another host.
///
/// Builds what is not built, starts each server through a keeper, waits until it
/// listens, and answers a control API by which the client takes the server's CPU
/// time and memory. Stays in the foreground until Ctrl-C, `wsbench kill` or a
/// request to stop.
#[derive(clap::Args)]
pub struct Args {
    /// Servers to run; `wsbench list` shows them
    #[arg(required_unless_present = "all", value_name = "NAME")]
    names: Vec<String>,
    /// Run every server; those that cannot be are named and left out
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// Address to listen on; 0.0.0.0 for clients on other hosts
    #[arg(
        long,
        default_value = "127.0.0.1",
        value_name = "ADDR",
        help_heading = "Server"
    )]
    host: String,
    /// Ports, divided among the servers [default: 10 free ones for each]
    #[arg(long, value_name = "FIRST-LAST", help_heading = "Server")]
    ports: Option<PortRange>,
    /// Whether the servers set TCP_NODELAY
    #[arg(
        long, default_value_t = true, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = boolean, action = clap::ArgAction::Set,
        value_name = "BOOL", help_heading = "Server"
    )]
    nodelay: bool,
    /// Longest message that the servers are asked to accept [default: their own]
    #[arg(long, value_name = "BYTES", help_heading = "Server")]
    max_message: Option<u64>,
    /// CPUs of the servers, as in 0-3,8 [default: the first half of the cores; all of
    /// them if the clients are on other hosts]
    #[arg(long, value_name = "LIST", help_heading = "Server")]
    cpus: Option<String>,
    /// How long a server may take until it listens
    #[arg(
        long,
        default_value = "30s",
        value_parser = duration,
        value_name = "DURATION",
        help_heading = "Server"
    )]
    start_timeout: Duration,
    /// Where the control API answers; with several servers, on ports from there on
    /// [default: a free port of --host]
    #[arg(long, value_name = "ADDR:PORT", help_heading = "Control")]
    control: Option<SocketAddr>,
    /// Token that the control API asks for [default: none on a loopback address, a
    /// random one elsewhere]. Other users of this host can read it in the list of
    /// processes: better use --token-file
    #[arg(
        long,
        value_name = "TOKEN",
        conflicts_with = "token_file",
        help_heading = "Control"
    )]
    token: Option<String>,
    /// File that holds the token
    #[arg(long, value_name = "FILE", help_heading = "Control")]
    token_file: Option<PathBuf>,
    /// Between two readings of CPU and memory, at least 200ms
    #[arg(
        long,
        alias = "interval",
        default_value = "1s",
        value_parser = interval,
        value_name = "DURATION",
        help_heading = "Control"
    )]
    sample_interval: Duration,
    /// Name of this host for the command that is shown for other hosts [default: its own name]
    #[arg(long, value_name = "HOST", help_heading = "Control")]
    url_host: Option<String>,
    /// Return as soon as the servers listen and let them run on; `wsbench kill` stops them
    #[arg(long)]
    detach: bool,
    /// This is the one that --detach started
    #[arg(long, hide = true)]
    background: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let root = Root::find()?;
    lock::refuse_while_measuring(&root.output("run"))?;
    let choice = match args.all {
        true => Choice::All,
        false => Choice::Named(args.names),
    };
    let token = match (args.token, args.token_file) {
        (Some(token), _) if token.trim().is_empty() => bail!("--token is empty"),
        (Some(token), _) => Some(token.trim().to_owned()),
        (None, Some(file)) => Some(runfile::read_token(&file)?),
        (None, None) => None,
    };
    let options = Options {
        choice,
        host: args.host,
        ports: args.ports,
        nodelay: args.nodelay,
        max_message: args.max_message,
        cpus: args.cpus.as_deref().map(cpus::parse_list).transpose()?,
        start_timeout: args.start_timeout,
        access: Access {
            control: args.control,
            token,
        },
        interval: args.sample_interval,
        url_host: args.url_host,
        background: args.background,
    };
    if args.detach && !args.background {
        return detach::run(&root, &options);
    }
    serve::run(&root, &options)
}

/// A bare number is in milliseconds, as the original's flag.
fn interval(text: &str) -> Result<Duration, String> {
    let interval = match text.parse() {
        Ok(milliseconds) => Duration::from_millis(milliseconds),
        Err(_) => duration(text)?,
    };
    match interval < MIN_INTERVAL {
        true => Err(format!(
            "{text} is too short: the least is {MIN_INTERVAL:?}"
        )),
        false => Ok(interval),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_a_duration_or_as_the_original_writes_it() {
        assert_eq!(interval("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(interval("1000"), Ok(Duration::from_secs(1)));
        assert!(interval("100").unwrap_err().contains("200ms"));
        assert!(interval("soon").is_err());
    }
}
