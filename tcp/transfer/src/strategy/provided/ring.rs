//! A ring: operations go in, completions come out.

use std::io;

use io_uring::{IoUring, Submitter, cqueue, squeue};
use rustix::io::Errno;

/// Operations that are submitted together at most.
const ENTRIES: u32 = 1024;
/// Completions that have a place; the kernel keeps those beyond, at a price.
const COMPLETIONS: u32 = 8 * ENTRIES;

pub struct Ring(IoUring);

impl Ring {
    pub fn new() -> io::Result<Self> {
        // What completes is dealt with when this thread asks for it: no interrupt, and one lock less.
        IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_cqsize(COMPLETIONS)
            .build(ENTRIES)
            .map(Self)
            .map_err(|error| {
                let words = format!(
                    "cannot set up an io_uring: {error} (needs Linux 6.1 and kernel.io_uring_disabled=0)"
                );
                io::Error::new(error.kind(), words)
            })
    }

    pub fn submitter(&self) -> Submitter<'_> {
        self.0.submitter()
    }

    /// Submits an operation with the next call into the kernel.
    ///
    /// # Safety
    /// What the operation points to is valid until it has completed.
    pub unsafe fn push(&mut self, operation: &squeue::Entry) -> io::Result<()> {
        // SAFETY: the caller's promise.
        while unsafe { self.0.submission().push(operation) }.is_err() {
            self.0.submit()?;
        }
        Ok(())
    }

    /// Submits what was pushed and waits until something has completed.
    pub fn submit_and_wait(&mut self, completions: &mut Vec<cqueue::Entry>) -> io::Result<()> {
        match self.0.submit_and_wait(1) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // More completions than have a place: taking them makes some.
            Err(error) if error.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => {}
            Err(error) => return Err(error),
        }
        completions.extend(self.0.completion());
        Ok(())
    }
}
