//! Counters that another process can read while this one serves: one page, a file if `--counters` names one.
//!
//! Nothing waits for anything: a counter is one relaxed addition in the lane of the thread.

pub mod allocator;
pub mod layout;
#[cfg(test)]
mod reader;

use std::cell::Cell;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap};

pub use self::layout::Slot;
use self::layout::{FILE_BYTES, HEADER_BYTES, LANES, MAGIC, SLOTS};

#[repr(C, align(128))]
struct Page {
    header: [AtomicU64; HEADER_BYTES / 8],
    lanes: [[AtomicU64; SLOTS]; LANES],
}

const _: () = assert!(size_of::<Page>() == FILE_BYTES);
const _: () = assert!(cfg!(target_endian = "little"), "the file is little-endian");

/// Counts until there is a file, and for ever if there is none.
static UNPUBLISHED: Page = Page {
    header: [const { AtomicU64::new(0) }; HEADER_BYTES / 8],
    lanes: [const { [const { AtomicU64::new(0) }; SLOTS] }; LANES],
};

static PAGE: AtomicPtr<Page> = AtomicPtr::new((&raw const UNPUBLISHED).cast_mut());

fn page() -> &'static Page {
    // SAFETY: it points to the static or to a mapping that is never undone, and all fields are atomic.
    unsafe { &*PAGE.load(Ordering::Acquire) }
}

/// The lane of this thread: they are dealt round.
fn lane() -> usize {
    static DEALT: AtomicUsize = AtomicUsize::new(0);
    // Without a destructor and constant at first: the allocator itself asks for it.
    thread_local! { static LANE: Cell<usize> = const { Cell::new(0) } }
    LANE.with(|lane| {
        if lane.get() == 0 {
            lane.set(1 + DEALT.fetch_add(1, Ordering::Relaxed) % (LANES - 1));
        }
        lane.get()
    })
}

/// Adds to a counter.
pub fn add(slot: Slot, amount: u64) {
    page().lanes[lane()][slot as usize].fetch_add(amount, Ordering::Relaxed);
}

/// Takes from a counter of what is there now.
pub fn subtract(slot: Slot, amount: u64) {
    page().lanes[lane()][slot as usize].fetch_sub(amount, Ordering::Relaxed);
}

/// Sets a counter that is no sum, under a lock of the caller's.
pub fn set(slot: Slot, value: u64) {
    page().lanes[0][slot as usize].store(value, Ordering::Relaxed);
}

/// Raises a counter of the most there was.
fn raise(slot: Slot, value: u64) {
    let most = &page().lanes[0][slot as usize];
    if most.load(Ordering::Relaxed) < value {
        most.fetch_max(value, Ordering::Relaxed);
    }
}

/// Counts a read that brought bytes.
pub fn count_read(bytes: usize) {
    add(Slot::Reads, 1);
    add(Slot::ReadBytes, bytes as u64);
}

/// A connection is being served while this lives.
pub struct Served(());

impl Served {
    pub fn begin() -> Self {
        add(Slot::Tasks, 1);
        add(Slot::Connections, 1);
        Self(())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        subtract(Slot::Tasks, 1);
    }
}

/// Makes the file and counts in it from now on, with what was counted so far.
///
/// To be called while there is one thread only: what another counts meanwhile would be lost.
pub fn publish(path: &Path) -> io::Result<()> {
    let page = map(path).map_err(|error| {
        let words = format!("cannot make the counters file {}: {error}", path.display());
        io::Error::new(error.kind(), words)
    })?;
    // SAFETY: as long as a page, aligned to one, shared with readers only, and never unmapped.
    let published = unsafe { &*page };
    let [magic, lanes, slots, counted, ..] = &published.header;
    lanes.store(LANES as u64, Ordering::Relaxed);
    slots.store(SLOTS as u64, Ordering::Relaxed);
    counted.store(
        u64::from(cfg!(not(feature = "uncounted"))),
        Ordering::Relaxed,
    );
    let all = |page: &'static Page| page.lanes.iter().flatten();
    for (to, from) in all(published).zip(all(&UNPUBLISHED)) {
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    PAGE.store(page, Ordering::Release);
    magic.store(u64::from_ne_bytes(MAGIC), Ordering::Release);
    Ok(())
}

/// A new file: whoever still reads an older one of this name keeps that.
fn map(path: &Path) -> io::Result<*mut Page> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)?;
    file.set_len(FILE_BYTES as u64)?;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping where the kernel has room, of a file that is long enough.
    let page = unsafe {
        mmap(
            ptr::null_mut(),
            FILE_BYTES,
            access,
            MapFlags::SHARED,
            &file,
            0,
        )
    }?;
    Ok(page.cast())
}

#[cfg(test)]
mod tests {
    use super::reader::parse;
    use super::*;

    fn file(lanes: u64, slots: u64) -> Vec<u8> {
        let mut file = [
            &MAGIC[..],
            &lanes.to_le_bytes(),
            &slots.to_le_bytes(),
            &1_u64.to_le_bytes(),
        ]
        .concat();
        file.resize(HEADER_BYTES, 0);
        file.resize(HEADER_BYTES + lanes as usize * slots as usize * 8, 0);
        file
    }

    #[test]
    fn a_value_is_the_sum_of_its_lanes() {
        let mut bytes = file(LANES as u64, SLOTS as u64);
        let mut put = |lane: usize, slot: Slot, value: i64| {
            let at = HEADER_BYTES + (lane * SLOTS + slot as usize) * 8;
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        };
        put(1, Slot::Tasks, 5);
        put(16, Slot::Tasks, -3);
        put(0, Slot::PoolPeak, 64);
        put(3, Slot::KeptBytes, i64::MAX);
        let counters = parse(&bytes).unwrap();
        assert!(counters.allocations_are_counted);
        assert_eq!(counters.get(Slot::Tasks), 2);
        assert_eq!(counters.get(Slot::PoolPeak), 64);
        assert_eq!(counters.get(Slot::KeptBytes), i64::MAX as u64);
        assert_eq!(counters.get(Slot::AllocCalls), 0);
    }

    #[test]
    fn a_file_that_is_none_is_refused() {
        let whole = file(LANES as u64, SLOTS as u64);
        assert_eq!(whole.len(), FILE_BYTES);
        assert_eq!(parse(&whole[..whole.len() - 1]), None);
        assert_eq!(parse(&whole[..20]), None);
        assert_eq!(parse(&[&[0; 8][..], &whole[8..]].concat()), None);
        assert_eq!(parse(&file(1, SLOTS as u64 - 1)), None);
        assert!(parse(&file(3, SLOTS as u64 + 4)).is_some());
        let error = super::reader::read(Path::new("/dev/null")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "/dev/null is no counters file, or not yet"
        );
    }
}
