//! What is decided before the first server starts: who, on which ports and
//! CPUs, controlled where. Everything the user got wrong is found here.

use super::{Choice, Options, token};
use crate::compile;
use crate::progress::note;
use crate::root::Root;
use crate::runfile::RunFile;
use crate::subject::{Catalog, Subject, Variants};
use crate::{cpus, ports};
use anyhow::{Context as _, bail};
use std::net::{IpAddr, SocketAddr, TcpListener};
use wsbench_schema::{PortRange, Suite};

/// What will be started.
#[derive(Debug)]
pub struct Plan {
    /// Built already.
    pub seats: Vec<Seat>,
    /// Address to listen on.
    pub address: IpAddr,
    /// CPUs of every server.
    pub server_cpus: Vec<u32>,
    /// CPUs of this process.
    pub own_cpus: Vec<u32>,
    /// What the control API asks for.
    pub token: Option<String>,
    /// With `--all`, those that fail are left out.
    pub lenient: bool,
}

/// One server's part.
#[derive(Debug)]
pub struct Seat {
    /// Who.
    pub subject: Subject,
    /// Its ports; free ones if none.
    pub ports: Option<PortRange>,
    /// Where its control API answers.
    pub control: TcpListener,
}

impl Plan {
    pub fn make(root: &Root, options: &Options) -> anyhow::Result<Self> {
        let address = ports::resolve(&options.host)?;
        let subjects = choose(root, options)?;
        let control = options
            .access
            .control
            .unwrap_or(SocketAddr::new(address, 0));
        let map = cpus::plan(None, None)?;
        let (server_cpus, own_cpus) = match &options.cpus {
            Some(list) => {
                let map = cpus::plan(Some(&cpus::format_list(list)), None)?;
                (map.server, map.runner)
            }
            // The client's half would be idle if the client is elsewhere.
            None if !address.is_loopback() => (cpus::allowed()?, cpus::allowed()?),
            None => (map.server, map.runner),
        };
        let token = match &options.access.token {
            Some(token) => Some(token.clone()),
            None if control.ip().is_loopback() => None,
            None => Some(token::random()?),
        };
        let ranges = divide(options.ports, subjects.len())?;
        for range in ranges.iter().flatten() {
            ports::check_ports(*range, &options.host)?;
        }
        let mut seats = Vec::new();
        for (at, (subject, ports)) in subjects.into_iter().zip(ranges).enumerate() {
            seats.push(Seat {
                subject,
                ports,
                control: listen(control, at)?,
            });
        }
        Ok(Self {
            seats,
            address,
            server_cpus,
            own_cpus,
            token,
            lenient: matches!(options.choice, Choice::All),
        })
    }
}

/// Found and built.
fn choose(root: &Root, options: &Options) -> anyhow::Result<Vec<Subject>> {
    let catalog = Catalog::discover(root)?;
    let (names, lenient) = match &options.choice {
        Choice::Named(names) => (names.as_slice(), false),
        Choice::All => (&[][..], true),
    };
    if lenient {
        for broken in &catalog.broken {
            note(format_args!("{}: left out: {}", broken.name, broken.reason));
        }
    }
    let mut chosen = Vec::new();
    for subject in catalog.select_of(Suite::Websocket, names, Variants::Named)? {
        match ready(root, subject) {
            Ok(()) => chosen.push(subject.clone()),
            Err(error) if lenient => note(format_args!("{}: left out: {error:#}", subject.name)),
            Err(error) => return Err(error),
        }
    }
    if chosen.is_empty() {
        bail!("there is no server to run");
    }
    Ok(chosen)
}

/// Not served already, and built.
fn ready(root: &Root, subject: &Subject) -> anyhow::Result<()> {
    let name = &subject.name;
    if let Some(file) = RunFile::running(root, name)? {
        bail!(
            "{name} is served already, by process {} (stop it: wsbench kill {name})",
            file.supervisor.pid
        );
    }
    compile::ensure_built(root, subject)
}

/// Equal parts for all; none if the user named no ports.
fn divide(range: Option<PortRange>, servers: usize) -> anyhow::Result<Vec<Option<PortRange>>> {
    let Some(range) = range else {
        return Ok(vec![None; servers]);
    };
    if !range.count().is_multiple_of(servers) {
        bail!(
            "--ports {range} are {} ports, which {servers} servers cannot share equally",
            range.count()
        );
    }
    let each = u16::try_from(range.count() / servers).context("too many ports")?;
    let parts = (0..servers).map(|part| {
        let first = usize::from(range.first) + part * usize::from(each);
        PortRange::starting_at(u16::try_from(first).ok()?, each)
    });
    Ok(parts.collect())
}

/// The control socket of the server with this number.
fn listen(control: SocketAddr, number: usize) -> anyhow::Result<TcpListener> {
    let mut address = control;
    if control.port() != 0 {
        let port = usize::from(control.port()) + number;
        let port = u16::try_from(port).with_context(|| {
            format!("--control {control}: there is no port {port} for a further server")
        })?;
        address.set_port(port);
    }
    TcpListener::bind(address).with_context(|| {
        format!(
            "the control API cannot listen on {address} (choose another address with --control)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_divided_equally_or_not_at_all() {
        let range: PortRange = "10001-10006".parse().unwrap();
        let parts: Vec<String> = divide(Some(range), 3)
            .unwrap()
            .iter()
            .map(|part| part.unwrap().to_string())
            .collect();
        assert_eq!(parts, ["10001-10002", "10003-10004", "10005-10006"]);
        let error = divide(Some(range), 4).unwrap_err().to_string();
        assert!(
            error.contains("6 ports") && error.contains("4 servers"),
            "{error}"
        );
        assert_eq!(divide(None, 2).unwrap(), [None, None]);
        let top = divide(Some("65535".parse().unwrap()), 1).unwrap();
        assert_eq!(top, [PortRange::starting_at(65535, 1)]);
    }
}
