//! The one clock of the engine.

use rustix::time::{ClockId, Timespec, clock_gettime};

fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// `CLOCK_MONOTONIC`.
#[inline]
#[must_use]
pub fn now_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// CPU time of this process, all threads.
#[must_use]
pub fn process_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ProcessCPUTime))
}

/// Keeps this thread busy for so long; see `Load::client_burn_ns`.
#[inline]
pub fn burn(for_ns: u64) {
    if for_ns > 0 {
        let from = now_ns();
        while now_ns() - from < for_ns {
            std::hint::spin_loop();
        }
    }
}
