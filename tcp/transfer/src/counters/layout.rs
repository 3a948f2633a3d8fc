//! The layout of a counters file.
//!
//! All numbers are little-endian `u64`. A header of 128 bytes: the magic `WSBCNTR1` (written last: without
//! it the file is not ready), the number of lanes, the number of slots a lane, and 1 if allocations are
//! counted; then zeros. Behind it lane after lane, each of so many slots. **A slot's value is its sum over
//! all lanes, wrapping**: threads write to different lanes so as not to fight for one cache line, and what
//! one adds another may take away. All of it is one page.

pub const MAGIC: [u8; 8] = *b"WSBCNTR1";
pub const HEADER_BYTES: usize = 128;
/// Lane 0 has what is no sum; the others are dealt to threads.
pub const LANES: usize = 17;
pub const SLOTS: usize = 16;
pub const FILE_BYTES: usize = HEADER_BYTES + LANES * SLOTS * 8;

/// What is counted, in the order of the slots. Since the start, where it does not say `now`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Slot {
    /// Calls of the allocator that asked for memory: `alloc`, `alloc_zeroed`, `realloc`.
    AllocCalls = 0,
    /// Bytes asked for; of a `realloc` what it grew by.
    AllocBytes = 1,
    /// Bytes asked for and not given back, now.
    HeapInUseBytes = 2,
    /// The most that was in use since the start, within 256 KiB.
    HeapPeakBytes = 3,
    /// Connections being served, now.
    Tasks = 4,
    /// Threads of the process, now.
    Threads = 5,
    /// Buffers out of the pool, now.
    PoolInUse = 6,
    /// The most that were out of the pool since the start.
    PoolPeak = 7,
    /// Connections that were served.
    Connections = 8,
    /// Connections that were reset because no thread could be made.
    Refused = 9,
    /// Reads that brought bytes.
    Reads = 10,
    /// Bytes that they brought.
    ReadBytes = 11,
    /// Times that bytes were copied aside because the socket did not take them.
    KeptCalls = 12,
    /// Bytes aside, now.
    KeptInUseBytes = 13,
    /// Bytes that were copied aside.
    KeptBytes = 14,
}
