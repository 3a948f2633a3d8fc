//! Clocks: of the machine, of this process, of another process.

use crate::SamplerError;
use nix::errno::Errno;
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use rustix::time::{ClockId, Timespec, clock_gettime};

const NS_A_SECOND: u64 = 1_000_000_000;

/// CPU time that this process has used so far, all its threads together.
#[must_use]
pub fn own_cpu_ns() -> u64 {
    since_zero_ns(clock_gettime(ClockId::ProcessCPUTime))
}

/// CPU time that this thread has used so far.
pub(crate) fn own_thread_cpu_ns() -> u64 {
    since_zero_ns(clock_gettime(ClockId::ThreadCPUTime))
}

/// `CLOCK_MONOTONIC`.
pub(crate) fn monotonic_ns() -> u64 {
    since_zero_ns(clock_gettime(ClockId::Monotonic))
}

/// CPU time that a process has used so far, its ended threads included, its
/// children not. None if it is gone.
///
/// rustix has no clock of another process; nix is here for this one call.
pub(crate) fn process_cpu_ns(pid: u32) -> Result<Option<u64>, SamplerError> {
    let Ok(raw) = i32::try_from(pid) else {
        return Ok(None);
    };
    match clock_getcpuclockid(Pid::from_raw(raw)).and_then(nix::time::ClockId::now) {
        Ok(time) => Ok(Some(parts_ns(time.tv_sec(), time.tv_nsec()))),
        // The kernel says EINVAL where the C library says ESRCH.
        Err(Errno::ESRCH | Errno::EINVAL) => Ok(None),
        Err(errno) => Err(SamplerError::Clock {
            pid,
            cause: errno.into(),
        }),
    }
}

/// Clock ticks of `/proc/PID/stat`, which Linux fixes at 100 a second.
pub(crate) fn ticks_ns(ticks: u64) -> u64 {
    ticks * (NS_A_SECOND / rustix::param::clock_ticks_per_second())
}

fn since_zero_ns(time: Timespec) -> u64 {
    parts_ns(time.tv_sec, time.tv_nsec)
}

/// These clocks start at zero, so neither part is ever negative.
fn parts_ns(seconds: i64, nanoseconds: i64) -> u64 {
    seconds.unsigned_abs() * NS_A_SECOND + nanoseconds.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_a_process_is_the_one_it_reads_itself() {
        let before = own_cpu_ns();
        let outside = process_cpu_ns(std::process::id()).unwrap().unwrap();
        let after = own_cpu_ns();
        assert!(
            before <= outside && outside <= after,
            "{before} {outside} {after}"
        );
        assert!(before > 0);
    }

    #[test]
    fn a_process_that_is_not_there_has_no_clock() {
        assert_eq!(process_cpu_ns(0x3fff_fffe).unwrap(), None);
        assert_eq!(process_cpu_ns(u32::MAX).unwrap(), None);
    }
}
