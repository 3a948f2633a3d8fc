//! What this machine has: read once, so that what follows from it is a function.

use crate::machine;
use crate::ports;
use rustix::process::{Resource, getrlimit};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::str::FromStr;
use std::time::Duration;

/// Connections that are opened to see whether the kernel tracks them.
const PROBES: u64 = 16;

/// Everything that limits a run; `None` where this kernel does not have it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Open files a process; `None` is no limit.
    pub nofile_soft: Option<u64>,
    /// As far as a process may raise them by itself; `None` is no limit.
    pub nofile_hard: Option<u64>,
    /// As far as anybody may raise that.
    pub nr_open: Option<u64>,
    /// Open files of the machine.
    pub file_max: Option<u64>,
    /// Of these, already open.
    pub files_open: Option<u64>,
    /// Local ports that the kernel gives out for a source address.
    pub ephemeral_ports: u64,
    /// Free ports outside of these, from 1024 on.
    pub listening_ports: u64,
    /// Connections that wait to be accepted, a listening port.
    pub somaxconn: Option<u64>,
    /// Connections half open, a listening port.
    pub syn_backlog: Option<u64>,
    /// Entries and room of the connection tracking table, if it tracks loopback.
    pub conntrack: Option<(u64, u64)>,
    /// Memory of all socket buffers, in bytes.
    pub tcp_memory_bytes: Option<u64>,
    /// Process and thread numbers.
    pub pid_max: Option<u64>,
    /// Threads of the machine.
    pub threads_max: Option<u64>,
    /// Memory areas of a process; a thread's stack takes two.
    pub map_count_max: Option<u64>,
    /// Memory that can be had without swapping, in bytes.
    pub available_bytes: Option<u64>,
}

impl Limits {
    /// Of this machine and process. Opens a few loopback connections to see
    /// whether they are tracked.
    pub fn read() -> anyhow::Result<Self> {
        let nofile = getrlimit(Resource::Nofile);
        let page_bytes = rustix::param::page_size() as u64;
        Ok(Self {
            nofile_soft: nofile.current,
            nofile_hard: nofile.maximum,
            nr_open: number("/proc/sys/fs/nr_open", 0),
            file_max: number("/proc/sys/fs/file-max", 0),
            files_open: number("/proc/sys/fs/file-nr", 0),
            ephemeral_ports: ports::ephemeral_count()?,
            listening_ports: ports::usable_count()?,
            somaxconn: number("/proc/sys/net/core/somaxconn", 0),
            syn_backlog: number("/proc/sys/net/ipv4/tcp_max_syn_backlog", 0),
            conntrack: conntrack(),
            tcp_memory_bytes: number::<u64>("/proc/sys/net/ipv4/tcp_mem", 2)
                .map(|pages| pages.saturating_mul(page_bytes)),
            pid_max: number("/proc/sys/kernel/pid_max", 0),
            threads_max: number("/proc/sys/kernel/threads-max", 0),
            map_count_max: number("/proc/sys/vm/max_map_count", 0),
            available_bytes: machine::available_bytes(),
        })
    }
}

/// What makes figures vary from one run to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Noise {
    /// CPU frequency governor; `None` where the kernel leaves the clock alone.
    pub governor: Option<String>,
    /// Whether the clock may rise above its base.
    pub turbo: Option<bool>,
    /// Share of CPU time that the hypervisor gave to others, in thousandths.
    pub steal_permille: u64,
    /// Share of CPU time that programs used while this one slept, in thousandths.
    pub busy_permille: u64,
}

impl Noise {
    /// Looks for that long.
    pub fn watch(time: Duration) -> Self {
        let before = CpuTicks::read();
        std::thread::sleep(time);
        let ticks = CpuTicks::read().since(&before);
        let line = |path: &str| Some(fs::read_to_string(path).ok()?.trim().to_owned());
        let cpu = "/sys/devices/system/cpu";
        let no_turbo = line(&format!("{cpu}/intel_pstate/no_turbo")).map(|off| off == "0");
        let boost = line(&format!("{cpu}/cpufreq/boost")).map(|on| on == "1");
        Self {
            governor: line(&format!("{cpu}/cpu0/cpufreq/scaling_governor")),
            turbo: no_turbo.or(boost),
            steal_permille: ticks.permille(ticks.steal),
            busy_permille: ticks.permille(ticks.busy),
        }
    }
}

/// CPU time of all CPUs since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuTicks {
    busy: u64,
    steal: u64,
    all: u64,
}

impl CpuTicks {
    fn read() -> Self {
        Self::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// user nice system idle iowait irq softirq steal; guests are part of user.
    fn parse(stat: &str) -> Self {
        let line = stat.lines().next().unwrap_or_default();
        let ticks: Vec<u64> = line
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .take(8)
            .collect();
        let [user, nice, system, idle, iowait, irq, softirq, steal] = ticks[..] else {
            return Self::default();
        };
        let busy = user + nice + system + irq + softirq;
        Self {
            busy,
            steal,
            all: busy + idle + iowait + steal,
        }
    }

    fn since(self, before: &Self) -> Self {
        Self {
            busy: self.busy.saturating_sub(before.busy),
            steal: self.steal.saturating_sub(before.steal),
            all: self.all.saturating_sub(before.all),
        }
    }

    fn permille(self, part: u64) -> u64 {
        (part * 1000).checked_div(self.all).unwrap_or(0)
    }
}

/// The word at that place of a file.
fn number<T: FromStr>(path: &str, word: usize) -> Option<T> {
    let text = fs::read_to_string(path).ok()?;
    text.split_whitespace().nth(word)?.parse().ok()
}

/// The module may be there and no rule use it: whether it tracks is tried.
fn conntrack() -> Option<(u64, u64)> {
    let count = || number("/proc/sys/net/netfilter/nf_conntrack_count", 0);
    let room = number("/proc/sys/net/netfilter/nf_conntrack_max", 0)?;
    let before: u64 = count()?;
    let listener = TcpListener::bind("127.0.0.1:0").ok()?;
    let addr = listener.local_addr().ok()?;
    let probes: Vec<TcpStream> = (0..PROBES)
        .filter_map(|_| TcpStream::connect(addr).ok())
        .collect();
    let after: u64 = count()?;
    (after >= before + probes.len() as u64 && !probes.is_empty()).then_some((before, room))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_linux_has_is_read() {
        let limits = Limits::read().unwrap();
        assert!(limits.nr_open.unwrap() >= 1024);
        assert!(limits.files_open.unwrap() > 0);
        assert!(limits.ephemeral_ports > 0);
        assert!(limits.somaxconn.unwrap() > 0);
        assert!(limits.tcp_memory_bytes.unwrap() > 1 << 20);
        assert!(limits.available_bytes.unwrap() > 1 << 20);
        assert!(limits.nofile_soft <= limits.nofile_hard || limits.nofile_hard.is_none());
    }

    #[test]
    fn shares_of_cpu_time_are_of_all_cpus() {
        let before = CpuTicks::parse("cpu  100 0 100 800 0 0 0 0 7 0\ncpu0 1 2 3\n");
        let after = CpuTicks::parse("cpu  130 10 150 1000 10 5 5 40 99 0\n");
        let ticks = after.since(&before);
        let expected = CpuTicks {
            busy: 100,
            steal: 40,
            all: 350,
        };
        assert_eq!(ticks, expected);
        assert_eq!(ticks.permille(ticks.steal), 114);
        assert_eq!(CpuTicks::parse("").permille(0), 0);
    }
}
