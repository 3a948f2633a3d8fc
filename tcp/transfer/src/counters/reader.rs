//! Reads a counters file, with nothing but `std` and the layout: for tests, and to be copied.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::layout::{FILE_BYTES, HEADER_BYTES, MAGIC, SLOTS, Slot};

/// The counters at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// Whether allocations are counted; if not, slots 0 to 3 are 0.
    pub allocations_are_counted: bool,
    values: [u64; SLOTS],
}

impl Counters {
    pub fn get(&self, slot: Slot) -> u64 {
        self.values[slot as usize]
    }
}

/// Reads a counters file.
///
/// # Errors
/// When it cannot be read; `InvalidData` when it is none, or not yet.
pub fn read(path: &Path) -> io::Result<Counters> {
    let mut bytes = Vec::with_capacity(FILE_BYTES);
    File::open(path)?.read_to_end(&mut bytes)?;
    parse(&bytes).ok_or_else(|| {
        let words = format!("{} is no counters file, or not yet", path.display());
        io::Error::new(io::ErrorKind::InvalidData, words)
    })
}

/// Of the whole of a file; `None` if it is none.
pub fn parse(bytes: &[u8]) -> Option<Counters> {
    let rest = bytes.strip_prefix(&MAGIC)?;
    let (numbers, _) = rest.as_chunks::<8>();
    let number = |index: usize| numbers.get(index).map(|&bytes| u64::from_le_bytes(bytes));
    let (lanes, slots) = (
        usize::try_from(number(0)?).ok()?,
        usize::try_from(number(1)?).ok()?,
    );
    let numbers = numbers.get(HEADER_BYTES / 8 - 1..)?;
    if slots < SLOTS || numbers.len() < lanes.checked_mul(slots)? {
        return None;
    }
    let mut values = [0_u64; SLOTS];
    for lane in numbers.chunks_exact(slots).take(lanes) {
        for (value, &bytes) in values.iter_mut().zip(lane) {
            *value = value.wrapping_add(u64::from_le_bytes(bytes));
        }
    }
    Some(Counters {
        allocations_are_counted: number(2)? == 1,
        values,
    })
}
