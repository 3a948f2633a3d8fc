//! What every Rust server under test needs and none should write again: the
//! flags of the contract, its version, listening sockets, the CPU count, the
//! open-files limit.
//!
//! It must not know the harness, a runtime or a WebSocket crate, and it touches
//! no connection after it was accepted: what is measured is the subject's own.
//!
//! ```no_run
//! use std::process::ExitCode;
//! use wsbench_server_kit::{Options, Result, run, subject};
//!
//! fn main() -> ExitCode {
//!     run(subject!(), serve) // subject!("axum") where a crate is measured
//! }
//!
//! fn serve(options: &Options) -> Result<()> {
//!     for listener in options.listen()? {
//!         drop(listener); // echo on it, for ever
//!     }
//!     Ok(())
//! }
//! ```

mod accept;
mod limits;
mod listen;
mod options;
mod version;

use std::process::ExitCode;

pub use accept::{accept_forever, complain, pause_after_accept_error};
pub use limits::{allowed_cpus, raise_open_files};
pub use listen::{ListenError, listen_on};
pub use options::{Options, parse_ports, print_command_line_error};
pub use version::{Subject, locked_version};

/// What a server's `serve` ends with. A server under test serves until it is
/// killed, so in practice it returns only an error.
pub type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

/// Reads the command line, raises the open-files limit and serves.
///
/// SIGTERM keeps its default action: an echo server has nothing to save, and
/// nothing ends a process sooner.
pub fn run(subject: Subject, serve: impl FnOnce(&Options) -> Result<()>) -> ExitCode {
    let options = match Options::parse(subject, std::env::args_os()) {
        Ok(options) => options,
        Err(error) => return print_command_line_error(&error),
    };
    if let Err(error) = raise_open_files() {
        eprintln!("{}: {error}", subject.name);
        return ExitCode::FAILURE;
    }
    match serve(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", subject.name);
            ExitCode::FAILURE
        }
    }
}
