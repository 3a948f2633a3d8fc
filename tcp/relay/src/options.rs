//! The command line of a relay.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;

use clap::Parser;
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use wsbench_server_kit::{allowed_cpus, parse_ports};

use crate::method::{self, Method};

/// TCP relay under test: copies between its clients and the upstream until SIGTERM
#[derive(Debug, Parser)]
#[command(name = "relay", version)]
pub struct Options {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub host: IpAddr,

    /// Ports to listen on, e.g. 10001-10010 or 10001
    #[arg(long, value_name = "FIRST-LAST", value_parser = parse_ports)]
    pub ports: RangeInclusive<u16>,

    /// Where connections go: the first port's to the first of these ports, and so on round
    #[arg(long, value_name = "HOST:FIRST-LAST", value_parser = upstream)]
    pub upstream: Upstream,

    /// How bytes are copied
    #[arg(long, value_name = "NAME", value_parser = method_parser())]
    pub method: Method,

    /// Set TCP_NODELAY on both sides: true or false
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub nodelay: bool,

    /// Threads that serve connections [default: the CPUs this process may use]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,

    /// Bytes a direction of a connection holds at most, for the methods that copy through a buffer
    #[arg(long, value_name = "BYTES", default_value_t = 32 << 10,
          value_parser = clap::value_parser!(u32).range(1..=64 << 20))]
    buffer: u32,
}

/// Addresses of the upstream, one a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream(pub Vec<SocketAddr>);

impl Options {
    /// Reads the command line of this process.
    pub fn read() -> Result<Self, clap::Error> {
        Self::try_parse()
    }

    pub fn threads(&self) -> std::io::Result<usize> {
        self.threads
            .map_or_else(allowed_cpus, |threads| Ok(threads.into()))
    }

    pub fn buffer_bytes(&self) -> usize {
        self.buffer as usize
    }
}

fn upstream(text: &str) -> Result<Upstream, String> {
    let (host, ports) = text
        .rsplit_once(':')
        .ok_or("it is HOST:PORT or HOST:FIRST-LAST")?;
    let ports = parse_ports(ports)?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let address = (host, 0)
        .to_socket_addrs()
        .map_err(|error| format!("cannot look up `{host}`: {error}"))?
        .next()
        .ok_or_else(|| format!("`{host}` has no address"))?;
    let addresses = ports.map(|port| SocketAddr::new(address.ip(), port));
    Ok(Upstream(addresses.collect()))
}

/// A method by its name; the help lists them all.
fn method_parser() -> impl TypedValueParser<Value = Method> {
    let names = method::METHODS
        .iter()
        .map(|method| clap::builder::PossibleValue::new(method.name).help(method.about));
    clap::builder::PossibleValuesParser::new(names).try_map(|name| {
        method::find(&name).ok_or_else(|| clap::Error::new(ErrorKind::InvalidValue))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(flags: &[&str]) -> Result<Options, String> {
        let arguments = std::iter::once("relay").chain(flags.iter().copied());
        Options::try_parse_from(arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn every_flag_of_the_contract_is_read() {
        let options = parse(&[
            "--host",
            "127.0.0.2",
            "--ports",
            "10001-10010",
            "--upstream",
            "127.0.0.3:9000-9002",
            "--nodelay",
            "false",
            "--threads",
            "3",
            "--buffer",
            "1000",
            "--method",
            "io_copy",
        ])
        .unwrap();
        assert_eq!(options.host.to_string(), "127.0.0.2");
        assert_eq!(options.ports, 10001..=10010);
        assert_eq!(
            options
                .upstream
                .0
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>(),
            ["127.0.0.3:9000", "127.0.0.3:9001", "127.0.0.3:9002"]
        );
        assert!(!options.nodelay);
        assert_eq!(options.threads().unwrap(), 3);
        assert_eq!(options.buffer_bytes(), 1000);
        assert_eq!(options.method.name, "io_copy");
    }

    #[test]
    fn what_is_not_given_has_a_default() {
        let options = parse(&["--ports=1", "--upstream=[::1]:9000", "--method=io_copy"]).unwrap();
        assert_eq!(options.host.to_string(), "127.0.0.1");
        assert_eq!(options.upstream.0[0].to_string(), "[::1]:9000");
        assert!(options.nodelay);
        assert_eq!(options.threads().unwrap(), allowed_cpus().unwrap());
        assert_eq!(options.buffer_bytes(), 32_768);
    }

    #[test]
    fn a_wrong_value_names_the_flag() {
        for (flags, words) in [
            (
                ["--ports=2-1", "--upstream=127.0.0.1:1", "--method=io_copy"],
                "--ports",
            ),
            (
                ["--ports=1", "--upstream=127.0.0.1", "--method=io_copy"],
                "HOST:FIRST-LAST",
            ),
            (
                ["--ports=1", "--upstream=127.0.0.1:0", "--method=io_copy"],
                "`0` is not a port",
            ),
            (
                ["--ports=1", "--upstream=127.0.0.1:1", "--method=io_kopy"],
                "io_copy",
            ),
        ] {
            let error = parse(&flags).unwrap_err();
            assert!(error.contains(words), "{flags:?}: {error}");
        }
    }
}
