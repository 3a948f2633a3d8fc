//! What CPUs did, for whomever.

use crate::SamplerError;
use crate::{clock, procfs};

/// Time that these CPUs were not idle since the machine started: user and kernel,
/// interrupts included, and what a hypervisor took. In ticks of 10 ms for each CPU. What
/// the kernel does for a process outside of it, such as receiving for its sockets, is in
/// this and in no process' CPU time.
///
/// # Errors
/// If `/proc/stat` cannot be read or lacks one of them.
pub fn busy_ns(cpus: &[u32]) -> Result<u64, SamplerError> {
    Ok(clock::ticks_ns(procfs::ticks(cpus)?.all()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cpus_together_were_busy_for_some_time_and_one_that_is_not_there_is_named() {
        let count = std::thread::available_parallelism().unwrap().get();
        let all: Vec<u32> = (0..).take(count).collect();
        let first = busy_ns(&all).unwrap();
        assert!(first > 0 && busy_ns(&all).unwrap() >= first);
        let error = busy_ns(&[99_999]).unwrap_err().to_string();
        assert!(
            error.contains("/proc/stat") && error.contains("cpu99999"),
            "{error}"
        );
    }
}
