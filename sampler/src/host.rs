//! What the machine did meanwhile, for whomever: so that what is not the load's own can
//! be told.

use crate::procfs::{CpuStat, Ticks};
use crate::{SamplerError, clock};
use flate2::read::GzDecoder;
use std::fs::{self, File};
use std::io::Read as _;
use std::sync::OnceLock;

/// Totals since the machine started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// CPU time that the processes of these CPUs used, as their own clocks count it, in
    /// ticks of 10 ms for each CPU.
    pub busy_ns: u64,
    /// Time that the server's CPUs were not idle: user and kernel, interrupts included, and
    /// what a hypervisor took. What the kernel does for a process outside of it, such as
    /// receiving for its sockets, is in this and in no process' CPU time.
    pub server_cpus_ns: u64,
    /// What a hypervisor took of these CPUs.
    pub steal_ns: u64,
    /// Time in which some process of the machine waited for a CPU, and ...
    pub cpu_pressure_ns: Option<u64>,
    /// ... for memory. `None` where the kernel does not tell (no PSI).
    pub memory_pressure_ns: Option<u64>,
}

impl Host {
    /// Now; of these CPUs, and of those of them, or others, that are the server's.
    ///
    /// # Errors
    /// If `/proc/stat` cannot be read or lacks one of the CPUs.
    pub fn read(cpus: &[u32], server: &[u32]) -> Result<Self, SamplerError> {
        let stat = CpuStat::read()?;
        let ticks = stat.ticks(cpus)?;
        Ok(Self {
            server_cpus_ns: clock::ticks_ns(stat.ticks(server)?.all()),
            busy_ns: clock::ticks_ns(of_processes(ticks, interrupts_are_apart())),
            steal_ns: clock::ticks_ns(ticks.steal),
            cpu_pressure_ns: some_pressure_ns("cpu"),
            memory_pressure_ns: some_pressure_ns("memory"),
        })
    }
}

/// Where the kernel counts interrupts apart, they are in no process' clock. Where it does
/// not, a tick that meets one is called an interrupt's, and the process' clock ran on.
fn of_processes(ticks: Ticks, interrupts_are_apart: bool) -> u64 {
    match interrupts_are_apart {
        true => ticks.processes,
        false => ticks.processes + ticks.interrupts,
    }
}

/// Whether the kernel was built with `CONFIG_IRQ_TIME_ACCOUNTING`. Where it does not say
/// how it was built, as if: then what is foreign is found too small, never too large.
fn interrupts_are_apart() -> bool {
    static ARE: OnceLock<bool> = OnceLock::new();
    *ARE.get_or_init(|| {
        let release = rustix::system::uname();
        let release = release.release().to_string_lossy();
        let packed = || {
            let mut text = String::new();
            let file = File::open("/proc/config.gz").ok()?;
            GzDecoder::new(file).read_to_string(&mut text).ok()?;
            Some(text)
        };
        let boot = || fs::read_to_string(format!("/boot/config-{release}")).ok();
        let config = packed().or_else(boot);
        config.is_none_or(|config| is_set(&config, "CONFIG_IRQ_TIME_ACCOUNTING"))
    })
}

fn is_set(config: &str, name: &str) -> bool {
    config.lines().any(|line| line == format!("{name}=y"))
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=12345`, the total in microseconds.
fn some_pressure_ns(of: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/pressure/{of}")).ok()?;
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = some.rsplit_once("total=")?.1;
    total.trim().parse::<u64>().ok()?.checked_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_works_makes_the_machine_busy_and_a_cpu_that_is_not_there_is_named() {
        let count = std::thread::available_parallelism().unwrap().get();
        let all: Vec<u32> = (0..).take(count).collect();
        let before = Host::read(&all, &all).unwrap();
        let cpu = crate::own_cpu_ns();
        while crate::own_cpu_ns() - cpu < 300_000_000 {
            std::hint::spin_loop();
        }
        let after = Host::read(&all, &all).unwrap();
        // One tick less, for each of the CPUs that it ran on.
        let busy = after.busy_ns - before.busy_ns;
        assert!(busy > 200_000_000, "{busy} ns of 300 ms");
        assert!(after.cpu_pressure_ns >= before.cpu_pressure_ns);
        assert!(before.server_cpus_ns > 0 && after.server_cpus_ns >= before.server_cpus_ns);
        for (cpus, server) in [(&[99_999][..], &all[..]), (&all, &[99_999])] {
            let error = Host::read(cpus, server).unwrap_err().to_string();
            assert!(
                error.contains("/proc/stat") && error.contains("cpu99999"),
                "{error}"
            );
        }
    }

    #[test]
    fn interrupts_belong_to_processes_where_the_kernel_does_not_count_them_apart() {
        let ticks = Ticks {
            processes: 7,
            interrupts: 2,
            steal: 9,
        };
        assert_eq!(
            (of_processes(ticks, true), of_processes(ticks, false)),
            (7, 9)
        );
        let config = "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_IRQ_TIME=m\n";
        assert!(is_set(config, "CONFIG_A"));
        assert!(!is_set(config, "CONFIG_B") && !is_set(config, "CONFIG_IRQ"));
    }
}
