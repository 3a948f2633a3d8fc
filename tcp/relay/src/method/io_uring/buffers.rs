//! A ring-mapped group of buffers: the kernel picks the next one when it has bytes to
//! put into it, and it is told here which are free again.
//!
//! There are as many as directions ever held at the same time, and a few to begin
//! with: a receiver that finds none asks again after more were added.

use std::io;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::cqueue;
use io_uring::types::BufRingEntry;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use crate::rings::Queue;

/// The one group of a ring.
pub const GROUP: u16 = 0;

/// More than a process may have sockets here, so more than it has directions. Only what
/// is used of the ring takes memory.
const SLOTS: u16 = 1 << 15;
/// Few enough to stay in a CPU's cache, as they are used in turn.
const ADDED_AT_ONCE: usize = 16;

/// Which buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferId(u16);

pub struct Buffers {
    slots: NonNull<BufRingEntry>,
    tail: u16,
    buffers: Vec<Box<[u8]>>,
    bytes: usize,
}

impl Buffers {
    /// A group of buffers of `bytes` for the ring, which must not outlive it.
    pub fn register(queue: &Queue, bytes: usize) -> io::Result<Self> {
        let length = usize::from(SLOTS) * size_of::<BufRingEntry>();
        let (readable, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: the kernel chooses a place where nothing else is.
        let slots = unsafe { mmap_anonymous(null_mut(), length, readable, private) }?;
        let submitter = queue.submitter();
        // SAFETY: it is a page-aligned array of so many slots, and it is never unmapped.
        unsafe { submitter.register_buf_ring_with_flags(slots as u64, SLOTS, GROUP, 0) }?;
        let slots = NonNull::new(slots.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut buffers = Self {
            slots,
            tail: 0,
            buffers: Vec::new(),
            bytes,
        };
        buffers.add();
        Ok(buffers)
    }

    /// Adds a few.
    pub fn add(&mut self) {
        for _ in 0..ADDED_AT_ONCE.min(usize::from(SLOTS) - self.buffers.len()) {
            let id = BufferId(self.buffers.len() as u16);
            self.buffers.push(vec![0; self.bytes].into());
            self.put_back(id);
        }
    }

    /// The buffer that a completion came with.
    pub fn picked(&self, completion: &cqueue::Entry) -> Option<BufferId> {
        cqueue::buffer_select(completion.flags()).map(BufferId)
    }

    pub fn bytes(&self, id: BufferId) -> &[u8] {
        &self.buffers[usize::from(id.0)]
    }

    /// Gives a buffer to the kernel. Nothing may use it any more.
    pub fn put_back(&mut self, id: BufferId) {
        let buffer = &mut self.buffers[usize::from(id.0)];
        let (address, length) = (buffer.as_mut_ptr() as u64, buffer.len() as u32);
        let index = usize::from(self.tail & (SLOTS - 1));
        // SAFETY: the index is below the number of slots, and the kernel does not read
        // a slot before the tail is past it.
        let slot = unsafe { self.slots.add(index).as_mut() };
        slot.set_addr(address);
        slot.set_len(length);
        slot.set_bid(id.0);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the first slot's spare field is the tail, which only this thread writes.
        let tail =
            unsafe { AtomicU16::from_ptr(BufRingEntry::tail(self.slots.as_ptr()) as *mut u16) };
        tail.store(self.tail, Ordering::Release);
    }
}
