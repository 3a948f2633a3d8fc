//! The system's allocator, counted.
//!
//! The peak needs a sum over all threads, which would be one cache line for all of them. So each lane
//! settles with the common sum only when it is 16 KiB apart from it: with 16 lanes the peak is within
//! 256 KiB of the truth. All else is exact.

#![cfg_attr(feature = "uncounted", allow(dead_code))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering};

use super::layout::LANES;
use super::{Slot, lane, page, raise};

const SETTLED_BYTES: i64 = 16 << 10;

/// In use by all lanes, as far as they have settled.
static SETTLED: AtomicI64 = AtomicI64::new(0);
static UNSETTLED: [Unsettled; LANES] = [const { Unsettled(AtomicI64::new(0)) }; LANES];

/// Two cache lines: the processor fetches them in pairs.
#[repr(align(128))]
struct Unsettled(AtomicI64);

/// Counts what it passes on to the system's allocator.
pub struct Counting;

// SAFETY: all memory is the system allocator's, and counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let block = unsafe { System.alloc(layout) };
        taken(block, layout.size(), layout.size() as i64);
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let block = unsafe { System.alloc_zeroed(layout) };
        taken(block, layout.size(), layout.size() as i64);
        block
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        let block = unsafe { System.realloc(block, layout, size) };
        let change = size as i64 - layout.size() as i64;
        taken(block, size.saturating_sub(layout.size()), change);
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(block, layout) };
        in_use(lane(), -(layout.size() as i64));
    }
}

fn taken(block: *mut u8, bytes: usize, change: i64) {
    if block.is_null() {
        return;
    }
    let lane = lane();
    let slots = &page().lanes[lane];
    slots[Slot::AllocCalls as usize].fetch_add(1, Ordering::Relaxed);
    slots[Slot::AllocBytes as usize].fetch_add(bytes as u64, Ordering::Relaxed);
    in_use(lane, change);
}

fn in_use(lane: usize, change: i64) {
    // Two's complement: adding a negative number wraps to where it should.
    page().lanes[lane][Slot::HeapInUseBytes as usize].fetch_add(change as u64, Ordering::Relaxed);
    let unsettled = &UNSETTLED[lane].0;
    if (unsettled.fetch_add(change, Ordering::Relaxed) + change).abs() >= SETTLED_BYTES {
        let owed = unsettled.swap(0, Ordering::Relaxed);
        let settled = SETTLED.fetch_add(owed, Ordering::Relaxed) + owed;
        raise(Slot::HeapPeakBytes, settled.max(0) as u64);
    }
}
