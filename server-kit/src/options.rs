//! The flags of the contract, the same for every server under test.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Arg, Command, value_parser};

use crate::limits::allowed_cpus;
use crate::version::Subject;

const DEFAULT_MAX_MESSAGE_BYTES: usize = 64 << 20;

/// What the command line asks of an echo server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The address to listen on.
    pub host: IpAddr,
    /// The ports to listen on, all of them.
    pub ports: RangeInclusive<u16>,
    /// Whether accepted connections get `TCP_NODELAY`.
    pub nodelay: bool,
    /// The longest message that is echoed, in bytes; also the longest frame.
    pub max_message: usize,
    /// How many threads work on connections: by default the CPUs this process may use.
    pub threads: usize,
}

impl Options {
    /// Parses a command line, its first word being the program.
    ///
    /// # Errors
    /// What is wrong with it; `--help` and `--version` are such errors too, as clap has them.
    pub fn parse(
        subject: Subject,
        arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        let mut command = command(subject);
        let mut matches = command.try_get_matches_from_mut(arguments)?;
        if matches.contains_id("upstream") {
            return Err(command.error(
                ErrorKind::ArgumentConflict,
                "--upstream is for relays, and this server echoes: leave it out",
            ));
        }
        let threads = match matches.remove_one::<u16>("threads") {
            Some(threads) => usize::from(threads),
            None => allowed_cpus().map_err(|error| {
                command.error(
                    ErrorKind::Io,
                    format!("cannot read the CPUs of this process: {error} (give --threads)"),
                )
            })?,
        };
        let required = |flag: &str| format!("--{flag} has no value");
        Ok(Self {
            host: matches
                .remove_one("host")
                .unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            ports: matches.remove_one("ports").ok_or_else(|| {
                command.error(ErrorKind::MissingRequiredArgument, required("ports"))
            })?,
            nodelay: matches.remove_one("nodelay").unwrap_or(true),
            max_message: matches
                .remove_one::<u64>("max-message")
                .and_then(|bytes| usize::try_from(bytes).ok())
                .unwrap_or(DEFAULT_MAX_MESSAGE_BYTES),
            threads,
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
    Command::new(subject.name)
        .version(subject.version)
        .about("WebSocket echo server under test: echoes every message at /ws until SIGTERM")
        .arg(
            Arg::new("host")
                .long("host")
                .value_name("ADDRESS")
                .help("Address to listen on")
                .default_value("127.0.0.1")
                .value_parser(value_parser!(IpAddr)),
        )
        .arg(
            Arg::new("ports")
                .long("ports")
                .value_name("FIRST-LAST")
                .help("Ports to listen on, e.g. 10001-10010 or 10001")
                .required(true)
                .value_parser(parse_ports),
        )
        .arg(
            Arg::new("nodelay")
                .long("nodelay")
                .value_name("BOOL")
                .help("Set TCP_NODELAY on connections: true or false")
                .default_value("true")
                .value_parser(value_parser!(bool)),
        )
        .arg(
            Arg::new("max-message")
                .long("max-message")
                .value_name("BYTES")
                .help("Longest message to echo [default: 67108864]")
                .value_parser(value_parser!(u64).range(1..)),
        )
        .arg(
            Arg::new("threads")
                .long("threads")
                .value_name("N")
                .help("Threads that serve connections [default: the CPUs this process may use]")
                .value_parser(value_parser!(u16).range(1..)),
        )
        .arg(
            Arg::new("upstream")
                .long("upstream")
                .value_name("HOST:PORTS")
                .hide(true),
        )
}

/// Reads `FIRST-LAST`, or one port.
///
/// # Errors
/// What is wrong with it, as clap shows it behind the flag's name.
pub fn parse_ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let port = |text: &str| match text.parse::<u16>() {
        Ok(0) | Err(_) => Err(format!("`{text}` is not a port (1 to 65535)")),
        Ok(port) => Ok(port),
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (port(first)?, port(last)?);
    if first > last {
        return Err(format!(
            "the range ends before it starts (write {last}-{first})"
        ));
    }
    Ok(first..=last)
}

/// Prints help and version as asked for, and anything else as one line.
pub fn print_command_line_error(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        eprintln!("{}", one_line(error));
        ExitCode::from(2)
    } else {
        print!("{error}");
        ExitCode::SUCCESS
    }
}

/// clap spreads an error over paragraphs; its first says all but the usage and,
/// after a misspelt flag, the tip with the nearest one.
fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let mut line = String::new();
    for paragraph in text.split("\n\n") {
        let words = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        if line.is_empty() {
            line = words;
        } else if let Some(tip) = words.strip_prefix("tip: ") {
            line = format!("{line} ({tip})");
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(flags: &[&str]) -> Result<Options, String> {
        let subject = Subject {
            name: "axum",
            version: "0.8.9",
        };
        let arguments = std::iter::once("axum").chain(flags.iter().copied());
        Options::parse(subject, arguments).map_err(|error| one_line(&error))
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
            "--max-message",
            "1048576",
            "--threads",
            "3",
        ]);
        assert_eq!(
            options,
            Ok(Options {
                host: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)),
                ports: 10001..=10010,
                nodelay: false,
                max_message: 1 << 20,
                threads: 3,
            })
        );
    }

    #[test]
    fn ports_alone_are_enough() {
        let options = parse(&["--ports=10001"]).unwrap();
        assert_eq!(options.ports, 10001..=10001);
        assert_eq!(options.host, IpAddr::V4(Ipv4Addr::LOCALHOST));
        assert!(options.nodelay);
        assert_eq!(options.max_message, 67_108_864);
        assert_eq!(options.threads, allowed_cpus().unwrap());
    }

    #[test]
    fn addresses_are_one_a_port() {
        let options = parse(&["--ports", "10001-10003"]).unwrap();
        let addresses: Vec<String> = options
            .addresses()
            .map(|address| address.to_string())
            .collect();
        assert_eq!(
            addresses,
            ["127.0.0.1:10001", "127.0.0.1:10002", "127.0.0.1:10003"]
        );
    }

    #[test]
    fn a_wrong_value_is_one_line_that_names_the_flag() {
        for (flags, words) in [
            (&["--ports", "10010-10001"][..], "write 10001-10010"),
            (&["--ports", "0"], "--ports"),
            (&["--ports", "70000"], "`70000` is not a port"),
            (&["--ports", "1-2-3"], "`2-3` is not a port"),
            (&["--ports", "1", "--threads", "0"], "--threads"),
            (&["--ports", "1", "--max-message", "0"], "--max-message"),
            (&["--ports", "1", "--nodelay", "maybe"], "--nodelay"),
            (&["--ports", "1", "--host", "localhost"], "--host"),
            (
                &["--ports", "1", "--thread", "2"],
                "found (a similar argument exists: '--threads')",
            ),
            (&[], "--ports"),
        ] {
            let error = parse(flags).unwrap_err();
            assert!(error.starts_with("error: "), "{error}");
            assert!(error.contains(words), "{flags:?}: {error}");
            assert!(!error.contains('\n'), "{flags:?}: {error}");
        }
    }

    #[test]
    fn an_echo_server_refuses_an_upstream() {
        let error = parse(&["--ports", "10001", "--upstream", "127.0.0.1:9000"]).unwrap_err();
        assert_eq!(
            error,
            "error: --upstream is for relays, and this server echoes: leave it out"
        );
    }

    #[test]
    fn version_is_one_line_of_name_and_version() {
        assert_eq!(parse_error(&["--version"]).to_string(), "axum 0.8.9\n");
    }

    fn parse_error(flags: &[&str]) -> clap::Error {
        let subject = Subject {
            name: "axum",
            version: "0.8.9",
        };
        Options::parse(
            subject,
            std::iter::once("axum").chain(flags.iter().copied()),
        )
        .unwrap_err()
    }
}
