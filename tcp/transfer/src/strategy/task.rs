//! The buffer is an array inside the connection's future: one allocation with all else that it keeps.

use std::io;
use std::net::TcpListener;

use tokio::net::TcpStream;
use wsbench_server_kit::Result;

use super::{Strategy, with_array_of};
use crate::counters::Served;
use crate::options::Options;
use crate::tasks;

pub const STRATEGY: Strategy = Strategy {
    name: "task",
    about: "a task a connection, the buffer an array inside its future",
    run,
};

fn run(options: &Options, listeners: Vec<TcpListener>) -> Result<()> {
    with_array_of!(options.buffer, serve(options, listeners))
}

fn serve<const BYTES: usize>(options: &Options, listeners: Vec<TcpListener>) -> Result<()> {
    tasks::serve(options, listeners, echo::<BYTES>)
}

async fn echo<const BYTES: usize>(mut stream: TcpStream) -> io::Result<()> {
    let _served = Served::begin();
    let mut buffer = [0; BYTES];
    tasks::echo_through(&mut stream, &mut buffer).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length<F>(_: impl Fn(TcpStream) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn the_future_has_the_buffer_in_it_and_once_only() {
        for (future, buffer) in [
            (length(echo::<4_096>), 4_096),
            (length(echo::<1_048_576>), 1_048_576),
        ] {
            assert!(
                (buffer..buffer + 1_024).contains(&future),
                "{future} for {buffer}"
            );
        }
    }
}
