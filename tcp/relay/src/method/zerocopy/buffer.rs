//! Buffers of their own pages, so that the kernel can keep one that is given up.

use std::io;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Kept for the next at most.
const SPARE_BYTES: usize = 8 << 20;

/// Unmapped when dropped.
pub struct Buffer {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it owns its pages, and hands out references by the usual rules.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    fn map(bytes: usize) -> io::Result<Self> {
        let (access, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: the kernel chooses a place where nothing else is.
        let start = unsafe { mmap_anonymous(null_mut(), bytes, access, private) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: so many bytes are mapped there, zero to begin with.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and nobody else has a reference.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: it was mapped so, and no reference is left.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

/// A thread's buffers that nothing uses; the one that was used last is used next.
pub struct Pool {
    spare: Vec<Arc<Buffer>>,
    bytes: usize,
}

impl Pool {
    /// Buffers of `bytes` each.
    pub fn new(bytes: usize) -> Self {
        Self {
            spare: Vec::new(),
            bytes,
        }
    }

    /// One that nobody else has.
    pub fn take(&mut self) -> io::Result<Arc<Buffer>> {
        match self.spare.pop() {
            Some(buffer) => Ok(buffer),
            None => Buffer::map(self.bytes).map(Arc::new),
        }
    }

    /// Gives up a share of one. It is spare when this was the last.
    pub fn give(&mut self, mut buffer: Arc<Buffer>) {
        let room = self.spare.len() < (SPARE_BYTES / self.bytes).max(1);
        if room && Arc::get_mut(&mut buffer).is_some() {
            self.spare.push(buffer);
        }
    }
}
