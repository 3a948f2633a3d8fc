//! Bytes that the socket did not take and that must leave the buffer they are in.

use std::ops::Deref;

use crate::counters::{Slot, add, subtract};

/// A copy of exactly those bytes, counted.
pub struct Kept(Box<[u8]>);

impl Kept {
    pub fn copy(bytes: &[u8]) -> Self {
        add(Slot::KeptCalls, 1);
        add(Slot::KeptBytes, bytes.len() as u64);
        add(Slot::KeptInUseBytes, bytes.len() as u64);
        Self(bytes.into())
    }
}

impl Deref for Kept {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        subtract(Slot::KeptInUseBytes, self.0.len() as u64);
    }
}
