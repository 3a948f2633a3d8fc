//! The buffer is an array in the frame of the connection's thread: no allocator, no sharing.

use std::io;
use std::net::{TcpListener, TcpStream};

use wsbench_server_kit::Result;

use super::{Strategy, with_array_of};
use crate::options::Options;
use crate::threads::{self, STACK_MARGIN_BYTES};

pub const STRATEGY: Strategy = Strategy {
    name: "stack",
    about: "a thread a connection, the buffer an array in its frame",
    run,
};

fn run(options: &Options, listeners: Vec<TcpListener>) -> Result<()> {
    with_array_of!(options.buffer, serve(listeners))
}

fn serve<const BYTES: usize>(listeners: Vec<TcpListener>) -> Result<()> {
    threads::serve(listeners, BYTES + STACK_MARGIN_BYTES, echo::<BYTES>)
}

fn echo<const BYTES: usize>(stream: &TcpStream) -> io::Result<()> {
    let mut buffer = [0; BYTES];
    threads::echo_through(stream, &mut buffer)
}
