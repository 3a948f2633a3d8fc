//! Buffers for long frames, kept for the next one: new memory costs a page fault
//! every 4 KiB, which is more than copying into it.
//!
//! They belong to the thread: a connection has one only while its frame is cut or
//! its peer does not take the answer.

use rustix::io::Errno;

/// Kept by a thread at most.
const SPARE_BYTES: usize = 64 << 20;
/// A shorter one is cheap to allocate.
pub const SHORTEST_SPARE: usize = 256 << 10;

#[derive(Default)]
pub struct Spares {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl Spares {
    /// An empty buffer with room for `bytes`. What is not written to takes no memory: a peer that only
    /// says how long its frame will be costs address space.
    pub fn take(&mut self, bytes: usize) -> Result<Vec<u8>, Errno> {
        if bytes >= SHORTEST_SPARE {
            let fit = self
                .buffers
                .iter()
                .rposition(|buffer| buffer.capacity() >= bytes);
            if let Some(index) = fit {
                let buffer = self.buffers.swap_remove(index);
                self.bytes -= buffer.capacity();
                return Ok(buffer);
            }
            // Frames have become longer: those of before make way.
            self.bytes -= self.buffers.pop().map_or(0, |short| short.capacity());
        }
        let mut buffer = Vec::new();
        buffer.try_reserve_exact(bytes).map_err(|_| Errno::NOMEM)?;
        Ok(buffer)
    }

    pub fn give(&mut self, mut buffer: Vec<u8>) {
        let bytes = buffer.capacity();
        if bytes >= SHORTEST_SPARE && self.bytes + bytes <= SPARE_BYTES {
            buffer.clear();
            self.bytes += bytes;
            self.buffers.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_buffer_comes_back_and_a_short_one_does_not() {
        let mut spares = Spares::default();
        let mut long = spares.take(1 << 20).unwrap();
        long.push(1);
        let (at, capacity) = (long.as_ptr(), long.capacity());
        spares.give(long);
        spares.give(spares_of(100));
        assert_eq!((spares.buffers.len(), spares.bytes), (1, capacity));
        let again = spares.take(300_000).unwrap();
        assert_eq!(
            (again.as_ptr(), again.len(), spares.bytes),
            (at, 0, 0),
            "the same one, empty"
        );
    }

    #[test]
    fn no_more_than_the_limit_is_kept_and_short_ones_make_way() {
        let mut spares = Spares::default();
        let short = SPARE_BYTES / (1 << 20);
        for _ in 0..short + 5 {
            spares.give(spares_of(1 << 20));
        }
        assert_eq!((spares.buffers.len(), spares.bytes), (short, SPARE_BYTES));
        for _ in 0..2 {
            assert!(spares.take(2 << 20).unwrap().capacity() >= 2 << 20);
        }
        assert_eq!(spares.bytes, SPARE_BYTES - (2 << 20));
        assert!(spares.take(usize::MAX / 2 + 2).is_err());
    }

    fn spares_of(bytes: usize) -> Vec<u8> {
        Vec::with_capacity(bytes)
    }
}
