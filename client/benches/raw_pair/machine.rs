//! CPUs, clocks, limits and ports.

use anyhow::{Context as _, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::ops::RangeInclusive;
use std::str::FromStr;

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
    let Some(cpu) = cpu else { return Ok(()) };
    let mut cpus = CpuSet::new();
    cpus.set(cpu);
    sched_setaffinity(None, &cpus).with_context(|| format!("cannot run on CPU {cpu}"))
}

/// Does `start` with this thread on one CPU, which a process started there inherits.
pub fn on_cpu<T>(cpu: usize, start: impl FnOnce() -> Result<T>) -> Result<T> {
    let before = sched_getaffinity(None)?;
    pin_to(Some(cpu))?;
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

/// CPU time of this process.
pub fn own_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * NS_A_SECOND + time.tv_nsec as u64
}

/// CPU time of another process.
pub fn process_cpu_ns(pid: i32) -> Result<u64> {
    let time = nix::time::clock_getcpuclockid(nix::unistd::Pid::from_raw(pid))
        .and_then(nix::time::ClockId::now)
        .with_context(|| format!("cannot read the CPU clock of process {pid}"))?;
    Ok(time.tv_sec() as u64 * NS_A_SECOND + time.tv_nsec() as u64)
}
