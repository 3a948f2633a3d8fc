//! A bulk TCP echo server: what came is sent back, and what differs is where the bytes are meanwhile.
//!
//! Each strategy is a file of `strategy/`. All read a connection only when everything read before was
//! written: a peer that does not read is not read from, and TCP tells it so.

mod counters;
mod kept;
mod options;
mod pool;
mod strategy;
mod tasks;
mod threads;

use std::net::TcpListener;
use std::process::ExitCode;

use rustix::net::sockopt::set_tcp_nodelay;
use wsbench_server_kit::{Result, listen_on, print_command_line_error, raise_open_files, subject};

use crate::options::Options;

#[cfg(not(feature = "uncounted"))]
#[global_allocator]
static ALLOCATOR: counters::allocator::Counting = counters::allocator::Counting;

fn main() -> ExitCode {
    let subject = subject!();
    let options = match Options::parse(subject, std::env::args_os()) {
        Ok(options) => options,
        Err(error) => return print_command_line_error(&error),
    };
    match serve(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", subject.name);
            ExitCode::FAILURE
        }
    }
}

/// SIGTERM keeps its default action: an echo server has nothing to save.
fn serve(options: &Options) -> Result<()> {
    raise_open_files()?;
    if let Some(path) = &options.counters {
        // Before there is a second thread, as it asks.
        counters::publish(path)?;
    }
    counters::add(counters::Slot::Threads, 1);
    let mut listeners = Vec::new();
    for address in options.addresses() {
        listeners.push(listen(address, options.nodelay)?);
    }
    (options.strategy.run)(options, listeners)
}

/// Linux hands `TCP_NODELAY` down to every connection accepted here: no system call each.
fn listen(address: std::net::SocketAddr, nodelay: bool) -> Result<TcpListener> {
    let listener = listen_on(address)?;
    set_tcp_nodelay(&listener, nodelay)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_accepted_connection_has_the_nodelay_of_its_listener() {
        for nodelay in [true, false] {
            let listener = listen("127.0.0.1:0".parse().unwrap(), nodelay).unwrap();
            let _peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            assert_eq!(listener.accept().unwrap().0.nodelay().unwrap(), nodelay);
        }
    }
}
