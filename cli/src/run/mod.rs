//! A run: every subject under every load, round by round, saved as it goes. And
//! the smaller sister: one load on one server that runs already.

pub mod again;
pub mod clients;
pub mod estimate;
pub mod examine;
pub mod figures;
pub mod footprint;
pub mod found;
pub mod id;
pub mod interrupt;
pub mod limits;
pub mod lock;
pub mod options;
pub mod pilot;
pub mod plan;
pub mod processes;
pub mod ramp;
mod refusals;
pub mod resume;
pub mod room;
pub mod saved;
pub mod session;
pub mod setup;
pub mod slo;
pub mod standalone;
pub mod syscalls;
#[cfg(test)]
pub mod testing;
pub mod trial;
pub mod verdict;
