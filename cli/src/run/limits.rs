//! What the machine must allow before a run starts: open files and ports. Each
//! refusal names the limit, its value and the command that lifts it.

use anyhow::bail;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::str::FromStr;

/// Files that a server or a client holds besides its connections: listeners,
/// epoll, logs, libraries.
const FILES_BESIDES: u64 = 200;
/// Headroom in the remedies, so that they need not be run twice.
const HEADROOM_PERCENT: u64 = 10;

/// The limits that decide how many connections fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open files a process, as far as it can raise them by itself; `None` is no limit.
    pub nofile_hard: Option<u64>,
    /// Open files a process beyond which not even root can raise that.
    pub nr_open: u64,
    /// Open files of the whole machine.
    pub file_max: u64,
    /// Ports that one source address has for each port of the server.
    pub ephemeral_ports: u64,
}

impl Limits {
    /// Of this machine and process.
    pub fn read() -> Self {
        let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
        Self {
            nofile_hard: getrlimit(Resource::Nofile).maximum,
            nr_open: number("/proc/sys/fs/nr_open").unwrap_or(1 << 20),
            file_max: number("/proc/sys/fs/file-max").unwrap_or(u64::MAX),
            ephemeral_ports: range
                .ok()
                .and_then(|text| range_size(&text))
                .unwrap_or(28_232),
        }
    }

    /// Refuses connections that server or client cannot hold. `ports` are the
    /// server's, `sources` the client's addresses.
    pub fn check(&self, connections: u32, ports: u16, sources: u64) -> anyhow::Result<()> {
        let wanted = u64::from(connections);
        let files = wanted + FILES_BESIDES;
        let roomy = files + files * HEADROOM_PERCENT / 100;
        if let Some(hard) = self.nofile_hard.filter(|hard| *hard < files) {
            let first = if roomy > self.nr_open {
                format!("sysctl -w fs.nr_open={roomy} && ")
            } else {
                String::new()
            };
            bail!(
                "cannot hold {wanted} connections: nofile hard limit is {hard} \
                 (run as root: {first}ulimit -n {roomy})"
            );
        }
        if self.file_max < 2 * files {
            let (have, roomy) = (self.file_max, 2 * roomy);
            bail!(
                "cannot hold {wanted} connections at both ends: fs.file-max is {have} \
                 (run as root: sysctl -w fs.file-max={roomy})"
            );
        }
        let each = self.ephemeral_ports * sources;
        let fit = each * u64::from(ports);
        if fit < wanted {
            // Above half of the range, connect() becomes slow: see `crowded`.
            let better = wanted.div_ceil((each / 2).max(1));
            bail!(
                "cannot open {wanted} connections: {ports} server ports with {} ephemeral ports \
                 each allow {fit} (add --ports {better}, or run as root: \
                 sysctl -w net.ipv4.ip_local_port_range='1024 65535')",
                self.ephemeral_ports
            );
        }
        Ok(())
    }

    /// A warning, if connections fit but take more than half of the ephemeral
    /// range, where the kernel's search for a free port becomes slow.
    pub fn crowded(&self, connections: u32, ports: u16, sources: u64) -> Option<String> {
        let half = self.ephemeral_ports * sources / 2;
        let wanted = u64::from(connections);
        (half * u64::from(ports) < wanted).then(|| {
            format!(
                "{wanted} connections take more than half of the ephemeral ports of {ports} server \
                 ports: dialling will be slow (add --ports {})",
                wanted.div_ceil(half.max(1))
            )
        })
    }
}

/// Lifts this process's limit, which servers and clients inherit, as far as
/// `connections` need and the system lets it; [`Limits::check`] then says what
/// is missing.
pub fn raise_files(connections: u32) {
    let files = u64::from(connections) + FILES_BESIDES;
    let have = getrlimit(Resource::Nofile);
    let enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= files);
    if !enough(have.maximum) {
        let raised = Rlimit {
            current: Some(files),
            maximum: Some(files),
        };
        // Only root may; that it did not work is seen by reading the limit.
        let _ = setrlimit(Resource::Nofile, raised);
    }
}

fn number<T: FromStr>(path: &str) -> Option<T> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// `32768	60999` is 28,232 ports.
fn range_size(text: &str) -> Option<u64> {
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    let (first, last) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (first <= last).then(|| last - first + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits {
            nofile_hard: Some(20_000),
            nr_open: 1 << 20,
            file_max: u64::MAX,
            ephemeral_ports: 28_232,
        }
    }

    fn refusal(limits: &Limits, connections: u32, ports: u16) -> String {
        let checked = limits.check(connections, ports, 1);
        checked.unwrap_err().to_string()
    }

    #[test]
    fn what_fits_is_not_refused() {
        limits().check(10_000, 10, 1).unwrap();
        limits().check(19_800, 1, 1).unwrap();
        let unlimited = Limits {
            nofile_hard: None,
            ..limits()
        };
        unlimited.check(282_320, 10, 1).unwrap();
    }

    #[test]
    fn each_refusal_names_its_limit_and_its_remedy() {
        assert_eq!(
            refusal(&limits(), 19_801, 10),
            "cannot hold 19801 connections: nofile hard limit is 20000 (run as root: ulimit -n 22001)"
        );
        assert_eq!(
            refusal(&limits(), 1_000_000, 80),
            "cannot hold 1000000 connections: nofile hard limit is 20000 \
             (run as root: sysctl -w fs.nr_open=1100220 && ulimit -n 1100220)"
        );
        let roomy = Limits {
            nofile_hard: Some(2_000_000),
            ..limits()
        };
        let error = refusal(&roomy, 1_000_000, 10);
        assert!(error.contains("allow 282320 (add --ports 71,"), "{error}");
        let few_files = Limits {
            file_max: 1_000_000,
            ..roomy
        };
        let error = refusal(&few_files, 1_000_000, 80);
        assert!(error.contains("fs.file-max is 1000000"), "{error}");
        assert!(error.contains("sysctl -w fs.file-max="), "{error}");
    }

    #[test]
    fn crowded_ports_are_warned_of() {
        assert_eq!(limits().crowded(141_160, 10, 1), None);
        let warning = limits().crowded(141_161, 10, 1).unwrap();
        assert!(warning.contains("--ports 11"), "{warning}");
        assert_eq!(limits().crowded(141_161, 10, 2), None);
    }

    #[test]
    fn the_ephemeral_range_counts_both_ends() {
        assert_eq!(range_size("32768\t60999\n"), Some(28_232));
        assert_eq!(range_size("5"), None);
        assert_eq!(range_size("9 5"), None);
    }
}
