//! The flags of the contract of a transfer server.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Arg, Command, value_parser};
use wsbench_server_kit::{Subject, allowed_cpus, parse_ports};

use crate::strategy::{STRATEGIES, Strategy};

const DEFAULT_BUFFER_BYTES: usize = 32 << 10;
const LEAST_BUFFER_BYTES: usize = 4 << 10;
const MOST_BUFFER_BYTES: usize = 1 << 20;

/// What the command line asks for.
#[derive(Debug)]
pub struct Options {
    pub host: IpAddr,
    pub ports: RangeInclusive<u16>,
    pub nodelay: bool,
    /// Threads that serve connections, where a connection does not have its own.
    pub threads: usize,
    /// Length of a buffer: a power of two from 4 KiB to 1 MiB.
    pub buffer: usize,
    pub strategy: Strategy,
    /// Where the counters are published.
    pub counters: Option<PathBuf>,
}

impl Options {
    /// Parses a command line, its first word being the program; `--help` and `--version` are errors as
    /// clap has them.
    pub fn parse(
        subject: Subject,
        arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        let mut command = command(subject);
        let mut matches = command.try_get_matches_from_mut(arguments)?;
        let mut missing = |flag: &str| {
            let words = format!("--{flag} has no value");
            command.error(ErrorKind::MissingRequiredArgument, words)
        };
        let ports = matches
            .remove_one("ports")
            .ok_or_else(|| missing("ports"))?;
        let name: Option<String> = matches.remove_one("strategy");
        let strategy = name
            .and_then(|name| STRATEGIES.iter().find(|strategy| strategy.name == name))
            .ok_or_else(|| missing("strategy"))?;
        let threads = match matches.remove_one::<u16>("threads") {
            Some(threads) => usize::from(threads),
            None => allowed_cpus().map_err(|error| {
                let words =
                    format!("cannot read the CPUs of this process: {error} (give --threads)");
                command.error(ErrorKind::Io, words)
            })?,
        };
        Ok(Self {
            host: matches
                .remove_one("host")
                .unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            ports,
            nodelay: matches.remove_one("nodelay").unwrap_or(true),
            threads,
            buffer: matches.remove_one("buffer").unwrap_or(DEFAULT_BUFFER_BYTES),
            strategy: *strategy,
            counters: matches.remove_one("counters"),
        })
    }

    /// The addresses to listen on, one a port.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> + use<> {
        let host = self.host;
        self.ports
            .clone()
            .map(move |port| SocketAddr::new(host, port))
    }
}

fn command(subject: Subject) -> Command {
    let flag = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    Command::new(subject.name)
        .version(subject.version)
        .about("Bulk TCP echo server under test: echoes every byte until SIGTERM")
        .after_help(strategies())
        .arg(
            flag("host", "ADDRESS", "Address to listen on")
                .default_value("127.0.0.1")
                .value_parser(value_parser!(IpAddr)),
        )
        .arg(
            flag(
                "ports",
                "FIRST-LAST",
                "Ports to listen on, e.g. 10001-10010 or 10001",
            )
            .required(true)
            .value_parser(parse_ports),
        )
        .arg(
            flag(
                "nodelay",
                "BOOL",
                "Set TCP_NODELAY on connections: true or false",
            )
            .default_value("true")
            .value_parser(value_parser!(bool)),
        )
        .arg(
            flag(
                "threads",
                "N",
                "Threads that serve connections [default: the CPUs this process may use]",
            )
            .value_parser(value_parser!(u16).range(1..)),
        )
        .arg(
            flag(
                "buffer",
                "BYTES",
                "Length of a buffer, a power of two from 4096 to 1048576 [default: 32768]",
            )
            .value_parser(buffer),
        )
        .arg(
            flag("strategy", "NAME", "Where the buffers are")
                .required(true)
                .hide_possible_values(true)
                .value_parser(PossibleValuesParser::new(
                    STRATEGIES.iter().map(|strategy| strategy.name),
                )),
        )
        .arg(
            flag(
                "counters",
                "FILE",
                "Make FILE and keep counters in it, for another process to read",
            )
            .value_parser(value_parser!(PathBuf)),
        )
}

fn strategies() -> String {
    STRATEGIES
        .iter()
        .fold("Strategies:".to_owned(), |text, strategy| {
            format!("{text}\n  {:<13} {}", strategy.name, strategy.about)
        })
}

fn buffer(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(bytes)
            if bytes.is_power_of_two()
                && (LEAST_BUFFER_BYTES..=MOST_BUFFER_BYTES).contains(&bytes) =>
        {
            Ok(bytes)
        }
        _ => Err(format!(
            "`{text}` is not a power of two from {LEAST_BUFFER_BYTES} to {MOST_BUFFER_BYTES}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(flags: &[&str]) -> Result<Options, String> {
        let subject = wsbench_server_kit::subject!();
        let arguments = std::iter::once("transfer").chain(flags.iter().copied());
        Options::parse(subject, arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn every_flag_of_the_contract_is_read() {
        let options = parse(&[
            "--host",
            "127.0.0.2",
            "--ports",
            "10001-10010",
            "--nodelay",
            "false",
            "--threads",
            "3",
            "--buffer",
            "65536",
            "--strategy",
            "pool",
            "--counters",
            "/tmp/counters",
        ])
        .unwrap();
        assert_eq!(options.host, IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)));
        assert_eq!(options.ports, 10001..=10010);
        assert!(!options.nodelay);
        assert_eq!(options.threads, 3);
        assert_eq!(options.buffer, 65536);
        assert_eq!(options.strategy.name, "pool");
        assert_eq!(options.counters, Some(PathBuf::from("/tmp/counters")));
    }

    #[test]
    fn ports_and_strategy_are_enough() {
        let options = parse(&["--ports=10001", "--strategy=stack"]).unwrap();
        assert_eq!(
            options.addresses().collect::<Vec<_>>(),
            ["127.0.0.1:10001".parse().unwrap()]
        );
        assert!(options.nodelay);
        assert_eq!(options.threads, allowed_cpus().unwrap());
        assert_eq!(options.buffer, 32_768);
        assert_eq!(options.counters, None);
    }

    #[test]
    fn a_wrong_value_names_its_flag() {
        let both = ["--ports", "1", "--strategy", "heap"];
        for (flags, words) in [
            (&["--ports", "1"][..], "--strategy"),
            (&["--strategy", "heap"], "--ports"),
            (&["--ports", "1", "--strategy", "heaps"], "'heap'"),
            (&[&both[..], &["--threads", "0"]].concat(), "--threads"),
            (
                &[&both[..], &["--max-message", "1"]].concat(),
                "--max-message",
            ),
            (
                &[&both[..], &["--buffer", "5000"]].concat(),
                "`5000` is not a power of two from 4096 to 1048576",
            ),
            (
                &[&both[..], &["--buffer", "2048"]].concat(),
                "`2048` is not",
            ),
            (
                &[&both[..], &["--buffer", "2097152"]].concat(),
                "`2097152` is not",
            ),
        ] {
            let error = parse(flags).unwrap_err();
            assert!(error.contains(words), "{flags:?}: {error}");
        }
    }
}
