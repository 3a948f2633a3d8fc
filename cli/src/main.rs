//! The `wsbench` command; all of it is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    wsbench::main()
}
