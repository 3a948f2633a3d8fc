//! A WebSocket echo server that does wrong what it is told to do wrong, so that
//! tests can check what the harness says about it. Never shipped: an example is
//! built by `cargo test`, by `wsbench selftest`, and by nothing else.
//!
//! A thread a connection, blocking reads, nothing of the harness in it, so that
//! no mistake is shared with what it tests.

mod connection;
mod faults;
mod frame;
mod log;
mod switches;

use clap::Parser as _;
use faults::Faults;
use log::Log;
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;
use std::hint::black_box;
use std::io;
use std::net::TcpListener;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;
use std::{env, process, thread};
use switches::Switches;

/// The real server of `--fork` is this many processes below the first.
const GENERATIONS: u32 = 2;

fn main() -> ExitCode {
    let switches = Switches::parse();
    match run(&switches) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("misbehave: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(switches: &Switches) -> io::Result<ExitCode> {
    if switches.exit_at_start {
        eprintln!("misbehave: told to exit at the start");
        return Ok(ExitCode::FAILURE);
    }
    if switches.fork && switches.generation < GENERATIONS {
        return beget(switches.generation + 1);
    }
    let log = Arc::new(Log::new(switches.log.clone()));
    leave_on_sigterm(switches.ignore_sigterm, Arc::clone(&log))?;
    let held = vec![1_u8; switches.hold_bytes];
    black_box(&held);
    let faults = Arc::new(Faults::new(switches.clone(), log));
    if !switches.no_listen {
        for port in switches.ports.clone() {
            let listener = TcpListener::bind((switches.host, port)).map_err(|error| {
                let address = format!("{}:{port}", switches.host);
                io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
            })?;
            if let Some(backlog) = switches.backlog {
                rustix::net::listen(&listener, backlog)?;
            }
            let faults = Arc::clone(&faults);
            thread::spawn(move || accept(&listener, &faults));
        }
    }
    faults.burn_if_due(0);
    loop {
        thread::park();
    }
}

/// Starts this program again with the same arguments and ends as it ends.
fn beget(generation: u32) -> io::Result<ExitCode> {
    let status = Command::new(env::current_exe()?)
        .args(env::args_os().skip(1))
        .args(["--generation", &generation.to_string()])
        .status()?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn leave_on_sigterm(ignore: bool, log: Arc<Log>) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM])?;
    thread::spawn(move || {
        for _ in signals.forever() {
            log.flush();
            if !ignore {
                process::exit(0);
            }
        }
    });
    Ok(())
}

fn accept(listener: &TcpListener, faults: &Arc<Faults>) {
    let mut stall = Some(Duration::from_millis(faults.switches.accept_stall_ms));
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // Out of files: the connection waits in the kernel.
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        let faults = Arc::clone(faults);
        thread::spawn(move || {
            // A connection that ends in an error ends; that is all a peer can see of it.
            let _ = connection::serve(&stream, &faults);
        });
        thread::sleep(stall.take().unwrap_or_default());
    }
}
