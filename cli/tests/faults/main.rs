//! What goes wrong with a server, a client, the machine or the run itself is told in
//! the right place, stops nothing else and leaves nothing behind.

#[path = "../util/mod.rs"]
mod util;

mod clock;
mod disk;
mod ends;
mod processes;
mod server;
