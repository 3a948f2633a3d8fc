//! A run: every subject under every load, round by round, saved as it goes.

pub mod estimate;
pub mod id;
pub mod interrupt;
pub mod limits;
pub mod lock;
pub mod plan;
pub mod resume;
#[cfg(test)]
pub mod testing;
pub mod verdict;
