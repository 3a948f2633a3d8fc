//! Several processes of one server that carry a load together, each with its own
//! ports and its own keeper. One is the usual case, and takes the same way.

use super::{Server, ServerSpec, StopReport, wait_for_sockets};
use anyhow::{Context as _, bail};
use std::path::{Path, PathBuf};
use wsbench_schema::PortRange;

/// Server processes that run. Dropping them stops them, without waiting for their sockets.
#[derive(Debug)]
pub struct Servers {
    all: Vec<Server>,
    ports: PortRange,
}

impl Servers {
    /// Starts `count` processes, splits the ports of `spec` evenly over them, and waits until
    /// all listen. With more than one, each has a log of its own, numbered from 1.
    ///
    /// # Errors
    /// As [`Server::start`], if any of them does not start.
    pub fn start(spec: &ServerSpec, count: u32) -> anyhow::Result<Self> {
        let ranges = split(spec.ports, count)?;
        let mut servers = Self {
            all: Vec::new(),
            ports: spec.ports,
        };
        // All before any is waited for: they start at the same time.
        for (index, ports) in (0..).zip(ranges) {
            let server = Server::launch(ServerSpec {
                ports,
                log: numbered(&spec.log, index, count),
                counters: spec
                    .counters
                    .as_ref()
                    .map(|path| numbered(path, index, count)),
                ..spec.clone()
            });
            let server = server.map_err(|error| which(error, index as usize, count))?;
            servers.all.push(server);
        }
        for index in 0..servers.all.len() {
            let ready = servers.all[index].wait_ready();
            ready.map_err(|error| which(error, index, count))?;
        }
        Ok(servers)
    }

    /// Number of processes that were started.
    pub fn count(&self) -> u32 {
        u32::try_from(self.all.len()).unwrap_or(u32::MAX)
    }

    /// The processes that were started.
    pub fn pids(&self) -> Vec<u32> {
        self.all.iter().map(Server::pid).collect()
    }

    /// Where they count about themselves, if they do.
    pub fn counters(&self) -> Vec<PathBuf> {
        let paths = self.all.iter().filter_map(Server::counters);
        paths.map(Path::to_owned).collect()
    }

    /// Ports that they listen on together.
    pub fn ports(&self) -> PortRange {
        self.ports
    }

    /// How the first that ended did, as in `server exited with code 1` or
    /// `server process 2 of 3 exited with code 1`. Costs little while all run.
    pub fn exited(&mut self) -> Option<String> {
        let count = self.all.len();
        for (index, server) in self.all.iter_mut().enumerate() {
            let Some(exit) = server.exited() else {
                continue;
            };
            return Some(format!("{} {exit}", title(index, count)));
        }
        None
    }

    /// Ends all of them at the same time, and waits until their sockets are gone.
    ///
    /// # Errors
    /// As [`Server::stop`], if any of them cannot be stopped.
    pub fn stop(mut self) -> anyhow::Result<Vec<StopReport>> {
        self.let_go();
        let mut reports = Vec::new();
        for server in &mut self.all {
            let (exit, killed) = server.end()?;
            reports.push(StopReport {
                exit,
                killed,
                sockets_left: 0,
            });
        }
        let left = wait_for_sockets(self.ports)?;
        if let Some(report) = reports.last_mut() {
            report.sockets_left = left;
        }
        Ok(reports)
    }

    fn let_go(&mut self) {
        self.all.iter_mut().for_each(Server::let_go);
    }
}

impl Drop for Servers {
    /// Each waits for its own end when it is dropped; like this they end together.
    fn drop(&mut self) {
        self.let_go();
    }
}

fn title(index: usize, count: usize) -> String {
    match count {
        1 => "server".into(),
        _ => format!("server process {} of {count}", index + 1),
    }
}

/// Says which of several it was.
fn which(error: anyhow::Error, index: usize, count: u32) -> anyhow::Error {
    match count {
        1 => error,
        _ => error.context(title(index, count as usize)),
    }
}

/// Equal parts of a range.
fn split(ports: PortRange, count: u32) -> anyhow::Result<Vec<PortRange>> {
    let each = ports.count() / (count as usize).max(1);
    if each == 0 {
        bail!(
            "{} ports are too few for {count} server processes",
            ports.count()
        );
    }
    let part = |index: u32| {
        let first = usize::from(ports.first) + index as usize * each;
        PortRange::starting_at(u16::try_from(first).ok()?, u16::try_from(each).ok()?)
    };
    let parts: Option<Vec<_>> = (0..count).map(part).collect();
    parts.with_context(|| format!("ports {ports} cannot be split into {count} parts"))
}

/// The log of one of several processes: `axum.log`, or `axum.2.log` of more than one.
pub fn numbered(log: &Path, index: u32, count: u32) -> PathBuf {
    if count < 2 {
        return log.into();
    }
    let extension = log.extension().unwrap_or_default().to_string_lossy();
    log.with_extension(format!("{}.{extension}", index + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> PortRange {
        text.parse().unwrap()
    }

    #[test]
    fn ports_are_split_evenly() {
        let parts = split(range("10001-10030"), 3).unwrap();
        let expected = ["10001-10010", "10011-10020", "10021-10030"].map(range);
        assert_eq!(parts, expected);
        assert_eq!(split(range("9"), 1).unwrap(), [range("9")]);
        assert!(split(range("9"), 2).is_err());
    }

    #[test]
    fn each_of_several_has_its_log() {
        let log = Path::new("/logs/a-axum-r1.client.log");
        assert_eq!(numbered(log, 0, 1), log);
        let second = Path::new("/logs/a-axum-r1.client.2.log");
        assert_eq!(numbered(log, 1, 3), second);
    }
}
