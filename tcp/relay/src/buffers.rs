//! A thread's buffers. A direction has one only while it holds bytes, so they are few,
//! and the one that was used last, which is in the cache, is used next.

/// Kept for the next at most; more than these are in use only while destinations are slow.
const SPARE_BYTES: usize = 8 << 20;

pub struct Buffers {
    spare: Vec<Vec<u8>>,
    most_spare: usize,
    bytes: usize,
}

impl Buffers {
    /// Buffers of `bytes` each.
    pub fn new(bytes: usize) -> Self {
        Self {
            spare: Vec::new(),
            most_spare: (SPARE_BYTES / bytes).max(1),
            bytes,
        }
    }

    /// An empty one.
    pub fn take(&mut self) -> Vec<u8> {
        self.spare
            .pop()
            .unwrap_or_else(|| Vec::with_capacity(self.bytes))
    }

    pub fn give(&mut self, mut buffer: Vec<u8>) {
        if self.spare.len() < self.most_spare {
            buffer.clear();
            self.spare.push(buffer);
        }
    }
}
