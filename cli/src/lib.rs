//! `wsbench`: one verb, one file. Parses, runs, prints the error, exits.
//!
//! A library only so that fuzzing reaches its parsers: nothing builds on it.

#![deny(clippy::print_stdout, clippy::print_stderr)] // they panic when the terminal is closed

mod args;
mod commands;
mod compile;
mod control;
mod cpus;
mod doctor;
mod driver;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod git;
mod keeper;
mod lines;
mod machine;
mod observe;
mod orphans;
mod patch;
mod ports;
mod process;
mod profile;
mod progress;
mod root;
mod run;
mod runfile;
mod selftest;
mod serve;
mod server;
mod sockets;
mod strict;
mod subject;
mod table;
mod verify;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Compares WebSocket servers by measurement a sceptic would accept.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Doctor(commands::doctor::Args),
    List(commands::list::Args),
    New(commands::new::Args),
    Build(commands::build::Args),
    Verify(commands::verify::Args),
    Serve(commands::serve::Args),
    Client(commands::client::Args),
    Run(commands::run::Args),
    Report(commands::report::Args),
    Cmp(commands::cmp::Args),
    Rank(commands::rank::Args),
    History(commands::history::Args),
    Selftest(commands::selftest::Args),
    Clean(commands::clean::Args),
    Kill(commands::kill::Args),
    #[command(hide = true)]
    Keeper(commands::keeper::Args),
    #[command(hide = true)]
    Origin(commands::origin::Args),
    #[command(hide = true)]
    ClientProcess(commands::client_process::Args),
}

/// The whole program.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse_from(args::legacy::translate(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => return args::refusal::tell(&error),
    };
    let result = match cli.verb {
        Verb::Doctor(args) => commands::doctor::run(args),
        Verb::List(args) => commands::list::run(args),
        Verb::New(args) => commands::new::run(args),
        Verb::Build(args) => commands::build::run(args),
        Verb::Verify(args) => commands::verify::run(args),
        Verb::Serve(args) => commands::serve::run(args),
        Verb::Client(args) => commands::client::run(args),
        Verb::Run(args) => commands::run::run(args),
        Verb::Report(args) => commands::report::run(args),
        Verb::Cmp(args) => commands::cmp::run(args),
        Verb::Rank(args) => commands::rank::run(args),
        Verb::History(args) => commands::history::run(args),
        Verb::Selftest(args) => commands::selftest::run(args),
        Verb::Clean(args) => commands::clean::run(args),
        Verb::Kill(args) => commands::kill::run(args),
        Verb::Keeper(args) => commands::keeper::run(args),
        Verb::Origin(args) => commands::origin::run(args),
        Verb::ClientProcess(args) => commands::client_process::run(args),
    };
    result.unwrap_or_else(|error| {
        progress::note(format_args!("wsbench: {error:#}"));
        ExitCode::FAILURE
    })
}
