//! A group of buffers of a ring: the kernel takes the next one when it has bytes for it, and is told here
//! which are free again.

use std::io;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use super::ring::Ring;
use crate::counters::{Slot, add, subtract};

/// The one group of a ring.
pub const GROUP: u16 = 0;

pub struct Buffers {
    memory: Box<[u8]>,
    buffer_bytes: usize,
    count: usize,
    out: usize,
    most_out: usize,
    /// Shared with the kernel: a free buffer each, of which it takes the first.
    slots: NonNull<BufRingEntry>,
    mask: u16,
    tail: u16,
}

impl Buffers {
    /// Gives the ring so many buffers, which must live as long as it does.
    pub fn register(ring: &Ring, count: usize, buffer_bytes: usize) -> io::Result<Self> {
        let slots = count.next_power_of_two();
        let entries = u16::try_from(slots)
            .ok()
            .filter(|&entries| entries <= 1 << 15)
            .ok_or_else(|| {
                io::Error::other(format!(
                    "a ring has no more than 32768 buffers, not {count}"
                ))
            })?;
        let (access, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        let length = slots * size_of::<BufRingEntry>();
        // SAFETY: a new mapping where the kernel has room.
        let place = unsafe { mmap_anonymous(null_mut(), length, access, private) }?;
        // SAFETY: so many slots, aligned to a page, and never unmapped.
        unsafe {
            ring.submitter()
                .register_buf_ring_with_flags(place as u64, entries, GROUP, 0)
        }?;
        let mut buffers = Self {
            memory: vec![0; count * buffer_bytes].into(),
            buffer_bytes,
            count,
            out: 0,
            most_out: 0,
            slots: NonNull::new(place.cast()).ok_or(io::ErrorKind::OutOfMemory)?,
            mask: entries - 1,
            tail: 0,
        };
        for buffer in 0..count {
            buffers.publish(buffer as u16);
        }
        Ok(buffers)
    }

    pub fn bytes(&self, buffer: u16) -> &[u8] {
        let start = usize::from(buffer) * self.buffer_bytes;
        &self.memory[start..start + self.buffer_bytes]
    }

    pub fn are_all_out(&self) -> bool {
        self.out == self.count
    }

    /// The kernel has taken one.
    pub fn picked(&mut self) {
        self.out += 1;
        add(Slot::PoolInUse, 1);
        if self.out > self.most_out {
            self.most_out = self.out;
            // Over all rings: the sum of the most that each had out.
            add(Slot::PoolPeak, 1);
        }
    }

    /// Nothing uses it any more: the kernel may take it.
    pub fn put_back(&mut self, buffer: u16) {
        self.out -= 1;
        subtract(Slot::PoolInUse, 1);
        self.publish(buffer);
    }

    fn publish(&mut self, buffer: u16) {
        let start = usize::from(buffer) * self.buffer_bytes;
        let address = self.memory[start..].as_mut_ptr() as u64;
        let index = usize::from(self.tail & self.mask);
        // SAFETY: below the number of slots; the kernel reads none before the tail is past it.
        let slot = unsafe { self.slots.add(index).as_mut() };
        slot.set_addr(address);
        slot.set_len(self.buffer_bytes as u32);
        slot.set_bid(buffer);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail lies in a spare field of the first slot, and only this thread writes it.
        let tail =
            unsafe { AtomicU16::from_ptr(BufRingEntry::tail(self.slots.as_ptr()).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }
}
