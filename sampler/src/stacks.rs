//! How much memory the stacks of processes hold.

use crate::SamplerError;
use crate::procfs;

/// Resident bytes of the stacks of all threads of these processes.
///
/// A stack is the mapping that a thread's stack pointer is in, which the kernel tells
/// (`/proc/PID/task/TID/syscall`) of every thread that waits in a system call; a
/// thread that runs at this moment is left out, so take it while nothing moves. The
/// bytes are those of `/proc/PID/smaps`. Needs the rights to trace the processes.
///
/// # Errors
/// If `/proc` cannot be read, or does not tell.
pub fn stack_bytes(pids: &[u32]) -> Result<u64, SamplerError> {
    let mut bytes = 0;
    let mut buffer = Vec::new();
    for pid in pids {
        let mut pointers = Vec::new();
        for thread in procfs::threads(*pid)? {
            pointers.extend(procfs::stack_pointer(*pid, thread, &mut buffer)?);
        }
        pointers.sort_unstable();
        bytes += procfs::mappings(*pid, &mut buffer)?
            .iter()
            .filter(|mapping| mapping.holds_any(&pointers))
            .map(|mapping| mapping.resident_bytes)
            .sum::<u64>();
    }
    Ok(bytes)
}
