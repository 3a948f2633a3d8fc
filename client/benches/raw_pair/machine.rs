//! CPUs, clocks, limits and ports.

use anyhow::{Context as _, Result, anyhow};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

const NS_A_SECOND: u64 = 1_000_000_000;

/// FIRST-LAST or one port.
#[derive(Clone, Debug)]
pub struct Ports(RangeInclusive<u16>);

impl FromStr for Ports {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Ok(Self(first.parse()?..=last.parse()?))
    }
}

impl IntoIterator for Ports {
    type Item = u16;
    type IntoIter = RangeInclusive<u16>;

    fn into_iter(self) -> Self::IntoIter {
        self.0
    }
}

/// Leaves this thread, and what it starts, one CPU.
pub fn pin_to(cpu: Option<usize>) -> Result<()> {
    cpu.map_or(Ok(()), |cpu| pin_to_any(&[cpu]))
}

fn pin_to_any(of: &[usize]) -> Result<()> {
    let mut cpus = CpuSet::new();
    of.iter().for_each(|cpu| cpus.set(*cpu));
    sched_setaffinity(None, &cpus).with_context(|| format!("cannot run on CPUs {of:?}"))
}

/// Does `start` with this thread on these CPUs, which a process started there inherits.
pub fn on_cpus<T>(cpus: &[usize], start: impl FnOnce() -> Result<T>) -> Result<T> {
    let before = sched_getaffinity(None)?;
    pin_to_any(cpus)?;
    let result = start();
    sched_setaffinity(None, &before)?;
    result
}

/// Open files: the soft limit becomes the hard one.
pub fn raise_open_files() -> Result<()> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, limit).context("cannot raise the limit of open files")
}

/// Alone in its cache line, and in the one that is fetched with it.
#[repr(align(128))]
struct Line(AtomicU32);

/// How long a cache line takes from one CPU to another: the least of many turns.
///
/// What an echo costs depends on it as much as on any program: a virtual
/// machine's CPUs may be moved apart on the host, and each line of a socket that both sides
/// touch makes this way.
pub fn cache_line_ns(from: usize, to: usize) -> Result<f64> {
    const TURNS: u32 = 200;
    const BATCHES: usize = 200;
    let Line(line) = &Line(AtomicU32::new(0));
    let turns = || 0..TURNS * BATCHES as u32;
    let answer = || -> Result<()> {
        pin_to(Some(to))?;
        for turn in turns() {
            spin_until(line, 2 * turn + 1);
            line.store(2 * turn + 2, Ordering::Release);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let answering = scope.spawn(answer);
        let least = on_cpus(&[from], || {
            let mut least = f64::INFINITY;
            let mut turns = turns();
            for _ in 0..BATCHES {
                let start = Instant::now();
                for turn in turns.by_ref().take(TURNS as usize) {
                    line.store(2 * turn + 1, Ordering::Release);
                    spin_until(line, 2 * turn + 2);
                }
                let one_way = start.elapsed().as_nanos() as f64 / f64::from(2 * TURNS);
                least = least.min(one_way);
            }
            Ok(least)
        });
        answering
            .join()
            .map_err(|_| anyhow!("the other thread panicked"))??;
        least
    })
}

/// Spins, as waking would cost more than what is measured; yields now and then, in case the
/// other thread needs this CPU.
fn spin_until(line: &AtomicU32, value: u32) {
    for spins in 0_u32.. {
        if line.load(Ordering::Acquire) == value {
            return;
        }
        if spins.is_multiple_of(100_000) {
            thread::yield_now();
        }
    }
}

/// CPU time of this process.
pub fn own_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * NS_A_SECOND + time.tv_nsec as u64
}

/// CPU time of this thread.
pub fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * NS_A_SECOND + time.tv_nsec as u64
}

/// CPU time of another process.
pub fn process_cpu_ns(pid: i32) -> Result<u64> {
    let time = nix::time::clock_getcpuclockid(nix::unistd::Pid::from_raw(pid))
        .and_then(nix::time::ClockId::now)
        .with_context(|| format!("cannot read the CPU clock of process {pid}"))?;
    Ok(time.tv_sec() as u64 * NS_A_SECOND + time.tv_nsec() as u64)
}

/// Memory of a process that is its own and no file's.
pub fn anonymous_bytes(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:")?.split_whitespace().next())
        .with_context(|| format!("no RssAnon in {path}"))?;
    Ok(kib.parse::<u64>()? << 10)
}

/// TCP sockets in TIME_WAIT whose local or remote port is one of these.
pub fn in_time_wait(ports: &RangeInclusive<u16>) -> Result<usize> {
    let table = fs::read_to_string("/proc/net/tcp").context("cannot read /proc/net/tcp")?;
    let port = |address: &str| {
        let (_, port) = address.split_once(':')?;
        u16::from_str_radix(port, 16).ok()
    };
    let waits = |line: &&str| {
        let fields: Vec<&str> = line.split_whitespace().take(4).collect();
        let [_, local, remote, "06"] = fields[..] else {
            return false;
        };
        [local, remote]
            .into_iter()
            .filter_map(port)
            .any(|port| ports.contains(&port))
    };
    Ok(table.lines().filter(waits).count())
}
