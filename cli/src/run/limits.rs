//! What the machine must allow before a run starts: open files at both ends. Each
//! refusal names the limit, its value and the command that lifts it. (Local ports
//! are no limit on loopback: the client takes as many source addresses as it needs.)

use anyhow::bail;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::str::FromStr;

/// Files that a server or a client holds besides its connections: listeners,
/// epolls, timers, logs.
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
}

impl Limits {
    /// Of this machine and process.
    pub fn read() -> Self {
        Self {
            nofile_hard: getrlimit(Resource::Nofile).maximum,
            nr_open: number("/proc/sys/fs/nr_open").unwrap_or(1 << 20),
            file_max: number("/proc/sys/fs/file-max").unwrap_or(u64::MAX),
        }
    }

    /// Refuses connections that server or client cannot hold.
    pub fn check(&self, connections: u32) -> anyhow::Result<()> {
        let wanted = u64::from(connections);
        let files = wanted + FILES_BESIDES;
        let roomy = files + files * HEADROOM_PERCENT / 100;
        if let Some(hard) = self.nofile_hard.filter(|hard| *hard < files) {
            let (first, lifted) = if files > self.nr_open {
                (format!("sysctl -w fs.nr_open={roomy} && "), roomy)
            } else {
                (String::new(), roomy.min(self.nr_open))
            };
            bail!(
                "cannot hold {wanted} connections: nofile hard limit is {hard} \
                 (run as root: {first}ulimit -n {lifted})"
            );
        }
        if self.file_max < 2 * files {
            let (have, roomy) = (self.file_max, 2 * roomy);
            bail!(
                "cannot hold {wanted} connections at both ends: fs.file-max is {have} \
                 (run as root: sysctl -w fs.file-max={roomy})"
            );
        }
        Ok(())
    }
}

/// Lifts this process's limits, which servers and clients inherit, as far as
/// `connections` need and the system lets it; [`Limits::check`] then says what
/// is missing.
pub fn raise_files(connections: u32) {
    let files = u64::from(connections) + FILES_BESIDES;
    let have = getrlimit(Resource::Nofile);
    let at_least = |limit: Option<u64>| limit.map(|limit| limit.max(files));
    let wanted = Rlimit {
        current: at_least(have.current),
        maximum: at_least(have.maximum),
    };
    // Only root may lift the hard limit; whether it worked is seen by reading it.
    if setrlimit(Resource::Nofile, wanted).is_err() {
        let soft = Rlimit {
            current: have.maximum,
            maximum: have.maximum,
        };
        let _ = setrlimit(Resource::Nofile, soft);
    }
}

fn number<T: FromStr>(path: &str) -> Option<T> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits {
            nofile_hard: Some(20_000),
            nr_open: 1 << 20,
            file_max: u64::MAX,
        }
    }

    fn refusal(limits: &Limits, connections: u32) -> String {
        limits.check(connections).unwrap_err().to_string()
    }

    #[test]
    fn what_fits_is_not_refused() {
        limits().check(10_000).unwrap();
        limits().check(19_800).unwrap();
        let unlimited = Limits {
            nofile_hard: None,
            ..limits()
        };
        unlimited.check(1_000_000).unwrap();
    }

    #[test]
    fn the_soft_limit_follows_what_is_needed() {
        let before = getrlimit(Resource::Nofile);
        raise_files(100);
        let soft = getrlimit(Resource::Nofile).current;
        assert!(soft.is_none_or(|soft| soft >= 100 + FILES_BESIDES));
        assert!(soft >= before.current || soft.is_none());
    }

    #[test]
    fn each_refusal_names_its_limit_and_its_remedy() {
        assert_eq!(
            refusal(&limits(), 19_801),
            "cannot hold 19801 connections: nofile hard limit is 20000 (run as root: ulimit -n 22001)"
        );
        assert_eq!(
            refusal(&limits(), 1_000_000),
            "cannot hold 1000000 connections: nofile hard limit is 20000 \
             (run as root: ulimit -n 1048576)"
        );
        assert_eq!(
            refusal(&limits(), 2_000_000),
            "cannot hold 2000000 connections: nofile hard limit is 20000 \
             (run as root: sysctl -w fs.nr_open=2200220 && ulimit -n 2200220)"
        );
        let few_files = Limits {
            nofile_hard: Some(2_000_000),
            file_max: 1_000_000,
            ..limits()
        };
        assert_eq!(
            refusal(&few_files, 1_000_000),
            "cannot hold 1000000 connections at both ends: fs.file-max is 1000000 \
             (run as root: sysctl -w fs.file-max=2200440)"
        );
    }
}
