//! A TCP relay with as many ways to copy bytes between two sockets as there are
//! methods: each connection to one of its ports goes to the upstream and back.
//!
//! One file a method in `method/`. What the methods share (sockets, limits, the
//! loops that drive them) lies beside; how bytes move is in the method's file.

mod accept;
mod buffers;
mod epoll;
mod inbox;
mod method;
mod options;
mod relay;
mod rings;
mod tasks;
mod watch;

use std::process::ExitCode;

use wsbench_server_kit::{Result, print_command_line_error, raise_open_files};

use crate::options::Options;
use crate::relay::Relay;

fn main() -> ExitCode {
    let options = match Options::read() {
        Ok(options) => options,
        Err(error) => return print_command_line_error(&error),
    };
    match serve(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("relay: {error}");
            ExitCode::FAILURE
        }
    }
}

/// SIGTERM keeps its default action: a relay has nothing to save, and nothing ends
/// a process sooner.
fn serve(options: &Options) -> Result<()> {
    let open_files = raise_open_files()?;
    // Lives as long as the process: threads and tasks share it without counting.
    let relay: &'static Relay = Box::leak(Box::new(Relay::listen(options, open_files)?));
    Ok((options.method.run)(relay)?)
}
