//! What a trial of many connections takes of the machine at its peak, from what a
//! few connections of its subject were seen to take. Arithmetic only.

use crate::doctor::{Demand, KERNEL_BYTES, Limits, MAPS_A_THREAD};
use std::fs;
use wsbench_report::units::Unit;

/// The kernel's stack, task and page tables of a thread (measured on Linux 6.18: 24 to 30 KiB).
const THREAD_KERNEL_BYTES: u64 = 32 << 10;
/// A slot of the client and its place in a queue, with room.
const CLIENT_CONNECTION_BYTES: u64 = 128;
/// The runner's process between it and each server process.
const KEEPER_BYTES: u64 = 4 << 20;
/// Memory areas of a process besides those of its threads.
const MAPS_BESIDES: u64 = 1_000;
/// Of the machine's memory, this part is left to everybody else: in the prediction,
/// and half of it when memory is watched.
const MARGIN_PARTS: u64 = 20;

/// What one subject takes, seen with a few connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// A server process without connections.
    pub server_bytes: u64,
    /// What each connection adds, once it has echoed.
    pub connection_bytes: u64,
    /// Threads of a server process without connections.
    pub server_threads: u64,
    /// Threads that a thousand connections add.
    pub threads_a_thousand: u64,
    /// A client process.
    pub client_bytes: u64,
}

/// What a trial takes at its peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// Memory, the kernel's included.
    pub bytes: u64,
    /// Threads of all server processes.
    pub threads: u64,
}

impl Footprint {
    /// Of what a load asks of the machine.
    pub fn peak(&self, demand: &Demand) -> Peak {
        let connections = demand.connections;
        let (clients, servers) = (demand.client_processes, demand.server_processes);
        let thread_count = connections.saturating_mul(self.threads_a_thousand) / 1000;
        let parts = [
            connections.saturating_mul(KERNEL_BYTES),
            connections.saturating_mul(self.connection_bytes + CLIENT_CONNECTION_BYTES),
            thread_count.saturating_mul(THREAD_KERNEL_BYTES),
            demand.buffer_bytes(),
            servers.saturating_mul(self.server_bytes + KEEPER_BYTES),
            clients.saturating_mul(self.client_bytes),
        ];
        Peak {
            bytes: parts.iter().fold(0, |sum, part| sum.saturating_add(*part)),
            threads: thread_count + servers * self.server_threads,
        }
    }

    /// Server processes that it takes for each to have memory areas enough for its
    /// threads: one, if connections have none.
    pub fn least_servers(&self, connections: u64, found: &Limits) -> u32 {
        let Some(most) = found.map_count_max else {
            return 1;
        };
        let each = (most.saturating_sub(MAPS_BESIDES) / MAPS_A_THREAD).max(1);
        let threads = connections.saturating_mul(self.threads_a_thousand) / 1000;
        u32::try_from(threads.div_ceil(each))
            .unwrap_or(u32::MAX)
            .max(1)
    }
}

/// What of the machine is not enough, in a line with the numbers and the remedy.
pub fn shortage(
    peak: &Peak,
    found: &Limits,
    memory_bytes: u64,
    threads_running: u64,
) -> Option<String> {
    let threads = peak.threads + threads_running;
    let limits = [
        ("kernel.pid_max", found.pid_max),
        ("kernel.threads-max", found.threads_max),
    ];
    let thread_limit = limits.iter().find_map(|(name, limit)| {
        let limit = limit.filter(|limit| *limit < threads)?;
        let roomy = threads + threads / 10;
        Some(format!(
            "needs {threads} threads, {name} is {limit} (run as root: sysctl -w {name}={roomy})"
        ))
    });
    thread_limit.or_else(|| {
        let available = found.available_bytes?;
        let usable = available.saturating_sub(margin_bytes(memory_bytes));
        (peak.bytes > usable).then(|| {
            format!(
                "needs {} of memory, {} available, of which {} stay free for others (fewer \
                 connections, or a machine with more memory)",
                shown(peak.bytes),
                shown(available),
                shown(margin_bytes(memory_bytes)),
            )
        })
    })
}

/// What is left to everybody else, of a machine with so much memory.
fn margin_bytes(memory_bytes: u64) -> u64 {
    memory_bytes / MARGIN_PARTS
}

/// Less than this must not be available while a trial runs.
pub fn floor_bytes(memory_bytes: u64) -> u64 {
    margin_bytes(memory_bytes) / 2
}

/// Threads of all processes that run now.
pub fn threads_running() -> u64 {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let running = load.split_whitespace().nth(3);
    let all = running.and_then(|text| text.split_once('/')?.1.parse().ok());
    all.unwrap_or(0)
}

/// `24.10G`.
#[expect(clippy::cast_precision_loss, reason = "shown with two decimals")]
pub fn shown(bytes: u64) -> String {
    Unit::Bytes.show(bytes as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn demand() -> Demand {
        Demand {
            connections: 1_000_000,
            client_processes: 51,
            server_processes: 51,
            descriptors: 1,
            ports: 10,
            dials: 2_000,
            in_flight: 10_000,
            payload_bytes: 1024,
        }
    }

    /// Of an event loop.
    fn lean() -> Footprint {
        Footprint {
            server_bytes: 3 << 20,
            connection_bytes: 5_000,
            server_threads: 2,
            threads_a_thousand: 0,
            client_bytes: 10 << 20,
        }
    }

    fn found() -> Limits {
        Limits {
            pid_max: Some(32_768),
            threads_max: Some(190_000),
            map_count_max: Some(65_530),
            available_bytes: Some(21 * GIB),
            ..Limits::default()
        }
    }

    #[test]
    fn the_peak_is_the_sum_of_all_that_holds_memory() {
        let peak = lean().peak(&demand());
        let kernel = 8_300 * 1_000_000 + 10_000 * 4096;
        let user = (5_000 + 128) * 1_000_000 + 51 * ((3 + 4 + 10) << 20);
        assert_eq!(peak.bytes, kernel + user);
        assert_eq!(peak.threads, 102);
        assert_eq!(shortage(&peak, &found(), 24 * GIB, 300), None);
    }

    #[test]
    fn too_little_memory_is_told_with_what_is_needed_and_what_is_there() {
        let mut fat = lean();
        fat.connection_bytes = 16 << 10;
        let peak = fat.peak(&demand());
        let reason = shortage(&peak, &found(), 24 * GIB, 300).unwrap();
        assert_eq!(
            reason,
            "needs 23.99G of memory, 21.00G available, of which 1.20G stay free for others \
             (fewer connections, or a machine with more memory)"
        );
    }

    #[test]
    fn a_thread_a_connection_is_refused_by_the_limit_with_its_remedy() {
        let mut threads = lean();
        threads.threads_a_thousand = 1_000;
        let mut demand = demand();
        demand.connections = 100_000;
        let peak = threads.peak(&demand);
        assert_eq!(peak.threads, 100_102);
        let reason = shortage(&peak, &found(), 24 * GIB, 300).unwrap();
        assert_eq!(
            reason,
            "needs 100402 threads, kernel.pid_max is 32768 \
             (run as root: sysctl -w kernel.pid_max=110442)"
        );
        let roomy = Limits {
            pid_max: Some(4_194_304),
            ..found()
        };
        assert_eq!(shortage(&peak, &roomy, 24 * GIB, 300), None);
        // 65,530 areas are enough for 32,265 of its threads.
        assert_eq!(threads.least_servers(100_000, &found()), 4);
        assert_eq!(lean().least_servers(100_000, &found()), 1);
    }

    #[test]
    fn what_the_machine_has_now_is_read() {
        assert!(crate::machine::available_bytes().unwrap() > 1 << 20);
        assert!(threads_running() > 1);
    }
}
