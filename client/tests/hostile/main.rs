//! Servers that are wrong, slow, silent or gone, against the engine: what fails
//! is counted under its cause and no other, what is right counts as right, and
//! the phase ends.

mod answers;
mod crowd;
mod ends;
mod handshake;
mod limits;
mod peer;
mod pings;
mod right;
mod stalls;
mod streams;
#[path = "../util/mod.rs"]
mod util;
