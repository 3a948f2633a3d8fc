//! The server that `wsbench client` is to load: where it is, who watches it, and
//! on which CPUs that leaves the client.

use crate::cpus;
use crate::machine;
use crate::observe::{LocalObserver, Observer, RemoteObserver};
use crate::root::Root;
use crate::run::clients;
use crate::run::id::Utc;
use crate::runfile::{RunFile, read_token};
use crate::subject::Catalog;
use anyhow::{Context as _, bail};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;
use wsbench_schema::{
    CpuMap, Load, Machine, Outcome, SCHEMA_VERSION, SubjectId, Suite, Target, TrialRecord,
};

/// What the user said about the server.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// As `wsbench serve` knows it.
    pub framework: Option<&'a str>,
    /// Where `wsbench serve` runs, if not here.
    pub host: Option<&'a str>,
    /// Port of its control API.
    pub control_port: Option<u16>,
    /// Token of it.
    pub token: Option<&'a str>,
    /// File that holds the token.
    pub token_file: Option<&'a Path>,
    /// Any server.
    pub url: Option<&'a str>,
    /// Process of that.
    pub pid: Option<u32>,
    /// CPUs of the client.
    pub cpus: Option<&'a str>,
    /// Between samples of a server that is watched by this process.
    pub interval: Duration,
}

/// A server that can be loaded.
pub struct Found {
    /// Where it is.
    pub target: Target,
    /// Who it is.
    pub subject: SubjectId,
    /// Who watches it; nobody, if its process is unknown.
    pub observer: Option<Box<dyn Observer>>,
    /// Its CPUs, as far as known, and the client's.
    pub cpus: CpuMap,
    machine: Machine,
    harness: String,
    settings: BTreeMap<String, String>,
}

/// What is not known about a server that is none of ours.
const UNKNOWN: &str = "unknown";

impl Found {
    /// Finds it and decides the client's CPUs.
    pub fn find(root: &Root, wanted: &Wanted<'_>) -> anyhow::Result<Self> {
        let mut found = match (wanted.url, wanted.framework) {
            (Some(url), _) => Self::any(root, url, wanted)?,
            (None, Some(name)) => Self::served(root, name, wanted)?,
            (None, None) if wanted.control_port.is_some() => Self::served(root, "", wanted)?,
            (None, None) => bail!(
                "which server? give -f NAME, as it was given to `wsbench serve`, or --url ws://HOST:PORT/PATH"
            ),
        };
        let here = is_here(&found.target.host);
        let server = found
            .observer
            .as_ref()
            .map_or(&[][..], |observer| observer.server_cpus());
        found.cpus = client_cpus(server.to_vec(), here, wanted.cpus)?;
        Ok(found)
    }

    /// Any server; its process, if known, is of this host.
    fn any(root: &Root, url: &str, wanted: &Wanted<'_>) -> anyhow::Result<Self> {
        let target: Target = url.parse()?;
        let mut observer: Option<Box<dyn Observer>> = None;
        if let Some(pid) = wanted.pid {
            let local = LocalObserver::new(vec![pid], cpus_of(pid)?, wanted.interval)?;
            observer = Some(Box::new(local));
        }
        let name = wanted.framework.map_or_else(
            || format!("{}:{}", target.host, target.ports),
            str::to_owned,
        );
        if name.contains('/') || name.starts_with('.') {
            bail!(
                "`{name}` cannot be the name of a result: it must be a file's name (give another with -f)"
            );
        }
        let url = target.to_string();
        Ok(Self {
            subject: SubjectId {
                name,
                variant: None,
                version: UNKNOWN.into(),
                language: UNKNOWN.into(),
            },
            target,
            observer,
            cpus: undecided(),
            machine: machine::describe(),
            harness: machine::harness_revision(root),
            settings: [("url".to_owned(), url)].into(),
        })
    }

    /// One of `wsbench serve`, on this host or another; whatever is served
    /// there, if `name` is empty.
    fn served(root: &Root, name: &str, wanted: &Wanted<'_>) -> anyhow::Result<Self> {
        let elsewhere = wanted.host.filter(|host| !is_here(host));
        let (host, observer) = match (elsewhere, wanted.control_port) {
            (None, None) => served_here(root, name)?,
            (Some(host), None) => bail!(
                "which port has the control API on {host}? (give --control-port PORT, as `wsbench serve` printed it)"
            ),
            (_, Some(port)) => {
                let host = wanted.host.unwrap_or("127.0.0.1");
                let from_file = wanted.token_file.map(read_token).transpose()?;
                let token = from_file.as_deref().or(wanted.token);
                (host.to_owned(), RemoteObserver::connect(host, port, token)?)
            }
        };
        let status = observer.status().clone();
        if !name.is_empty() && status.name != name {
            bail!(
                "{host} serves {}, not {name} (give -f {})",
                status.name,
                status.name
            );
        }
        let mut settings: BTreeMap<String, String> = [
            ("ports".to_owned(), status.ports.to_string()),
            ("nodelay".to_owned(), status.nodelay.to_string()),
        ]
        .into();
        let own = machine::describe();
        if status.machine.kernel != own.kernel || status.machine.cpu_model != own.cpu_model {
            let client = format!("{}, {}", own.kernel, own.cpu_model);
            settings.insert("client_machine".into(), client);
        }
        Ok(Self {
            target: Target {
                host,
                ports: status.ports,
                path: Target::DEFAULT_PATH.into(),
            },
            subject: SubjectId {
                name: status.name,
                variant: status.variant,
                version: status.version,
                language: status.language,
            },
            observer: Some(Box::new(observer)),
            cpus: undecided(),
            machine: status.machine,
            harness: status.harness,
            settings,
        })
    }

    /// A record to be filled.
    pub fn blank(&self, load: Load, seed: u64) -> TrialRecord {
        TrialRecord {
            schema: SCHEMA_VERSION,
            run: clients::run_name(&load),
            round: 1,
            attempt: 1,
            suite: Suite::Websocket,
            subject: self.subject.clone(),
            server_processes: 0,
            client_processes: 1,
            harness: self.harness.clone(),
            seed,
            started_unix_s: Utc::now().unix_s,
            machine: self.machine.clone(),
            cpus: self.cpus.clone(),
            settings: self.settings.clone(),
            load_hash: load.hash(),
            load,
            outcome: Outcome::Completed,
            metrics: BTreeMap::new(),
            histograms: BTreeMap::new(),
            series: BTreeMap::new(),
            marks: BTreeMap::new(),
        }
    }
}

fn served_here(root: &Root, name: &str) -> anyhow::Result<(String, RemoteObserver)> {
    // One that is served is found even if its folder is gone since.
    let file = match RunFile::running(root, name)? {
        Some(file) => file,
        None => {
            let name = &Catalog::discover(root)?.find(name)?.name.clone();
            RunFile::find(root, name)?
        }
    };
    Ok((file.client_host(), file.observe()?))
}

/// Whether this host is meant.
fn is_here(host: &str) -> bool {
    host == "localhost"
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

fn cpus_of(pid: u32) -> anyhow::Result<Vec<u32>> {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let raw = raw.with_context(|| format!("{pid} is no process id"))?;
    let set = sched_getaffinity(Some(raw))
        .with_context(|| format!("no process {pid} on this host, or it may not be looked at"))?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .filter_map(|cpu| u32::try_from(cpu).ok())
        .collect())
}

/// Until it is known who watches the server.
fn undecided() -> CpuMap {
    CpuMap {
        server: Vec::new(),
        client: Vec::new(),
        runner: Vec::new(),
        shared: false,
    }
}

/// The client has the CPUs that the user says; else, beside a server on this
/// host that has a part of the CPUs, the others; else all.
fn client_cpus(server: Vec<u32>, here: bool, said: Option<&str>) -> anyhow::Result<CpuMap> {
    let allowed = cpus::allowed()?;
    let free: Vec<u32> = allowed
        .iter()
        .copied()
        .filter(|cpu| !server.contains(cpu))
        .collect();
    let client = match said {
        Some(list) => {
            let list = cpus::parse_list(list)?;
            if let Some(cpu) = list.iter().find(|cpu| !allowed.contains(cpu)) {
                let allowed = cpus::format_list(&allowed);
                bail!("the client cannot have CPU {cpu}: this process may use {allowed}");
            }
            list
        }
        None if here && !free.is_empty() => free,
        None => allowed,
    };
    let shared = here && server.iter().any(|cpu| client.contains(cpu));
    Ok(CpuMap {
        server,
        runner: client.clone(),
        client,
        shared,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::testing::Project;

    fn wanted() -> Wanted<'static> {
        Wanted {
            framework: None,
            host: None,
            control_port: None,
            token: None,
            token_file: None,
            url: None,
            pid: None,
            cpus: None,
            interval: Duration::from_secs(1),
        }
    }

    fn refusal(wanted: &Wanted<'_>) -> String {
        let project = Project::new();
        project.rust("alpha");
        match Found::find(&project.root, wanted) {
            Ok(found) => panic!("found {}", found.target),
            Err(error) => format!("{error:#}"),
        }
    }

    #[test]
    fn what_is_missing_or_unknown_is_named_with_its_remedy() {
        assert!(refusal(&wanted()).starts_with("which server?"));
        let unknown = Wanted {
            framework: Some("alpa"),
            ..wanted()
        };
        assert!(refusal(&unknown).contains("alpha"), "{}", refusal(&unknown));
        let idle = Wanted {
            framework: Some("alpha"),
            ..wanted()
        };
        assert!(refusal(&idle).contains("(run: wsbench serve alpha)"));
        let elsewhere = Wanted {
            framework: Some("alpha"),
            host: Some("192.0.2.1"),
            ..wanted()
        };
        assert!(refusal(&elsewhere).contains("give --control-port PORT"));
        let secure = Wanted {
            url: Some("wss://127.0.0.1:1/"),
            ..wanted()
        };
        assert!(refusal(&secure).contains("only ws:// is supported"));
        let gone = Wanted {
            url: Some("ws://127.0.0.1:1/"),
            pid: Some(i32::MAX as u32),
            ..wanted()
        };
        assert!(refusal(&gone).starts_with("no process 2147483647"));
        let path = Wanted {
            framework: Some("../x"),
            url: Some("ws://127.0.0.1:1/"),
            ..wanted()
        };
        assert!(refusal(&path).contains("must be a file's name"));
    }

    #[test]
    fn any_server_is_named_by_where_it_is() {
        let project = Project::new();
        let url = Wanted {
            url: Some("ws://127.0.0.1:9001-9002/chat"),
            pid: Some(std::process::id()),
            ..wanted()
        };
        let found = Found::find(&project.root, &url).unwrap();
        assert_eq!(found.subject.name, "127.0.0.1:9001-9002");
        assert_eq!(found.cpus.server, cpus::allowed().unwrap());
        assert!(found.cpus.shared);
        assert!(found.observer.is_some());
        let load = crate::run::testing::load();
        let record = found.blank(load, 5);
        assert_eq!(record.settings["url"], "ws://127.0.0.1:9001-9002/chat");
    }

    #[test]
    fn the_client_gets_what_the_server_has_not() {
        let all = cpus::allowed().unwrap();
        let first = vec![all[0]];
        let map = client_cpus(first.clone(), true, None).unwrap();
        if all.len() > 1 {
            assert_eq!(map.client, all[1..]);
            assert!(!map.shared);
        }
        let map = client_cpus(first.clone(), false, None).unwrap();
        assert_eq!((map.client, map.shared), (all.clone(), false));
        let own = all[0].to_string();
        let map = client_cpus(first, true, Some(&own)).unwrap();
        assert!(map.shared);
        assert!(client_cpus(Vec::new(), true, Some("1023")).is_err());
    }
}
