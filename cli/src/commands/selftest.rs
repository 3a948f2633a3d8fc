//! `wsbench selftest`.

use crate::progress::{note, say};
use crate::root::Root;
use crate::run::estimate::spoken;
use crate::run::lock::RunLock;
use crate::selftest::{self, Extent};
use std::process::ExitCode;
use std::time::Instant;

/// Tests the harness itself: are differences that it reports real ones?
///
/// The same server is entered under two names and must not be reported as
/// different; a server that is given 10 % more CPU work a message must be found
/// worse. Everything is measured by `wsbench run` in a project of its own,
/// output/selftest/, on this machine as it is now.
///
/// Exit code: 0, or 1 if the harness cannot be trusted here.
#[derive(clap::Args)]
pub struct Args {
    /// The server that is entered twice
    #[arg(value_name = "NAME", default_value = "floor")]
    name: String,
    /// Twenty runs of the same server twice: about ten minutes [default]
    #[arg(long, conflicts_with = "short")]
    full: bool,
    /// One run of each, half a minute: for a machine that tests every change
    #[arg(long)]
    short: bool,
    /// Print JSON instead of lines
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Args {
        name, short, json, ..
    } = args;
    let root = Root::find()?;
    let _lock = RunLock::take(&root.output("run"))?;
    let begin = Instant::now();
    let extent = match short {
        true => Extent::Short,
        false => Extent::Full,
    };
    let outcome = selftest::test(&root, &name, extent)?;
    if json {
        say(serde_json::to_string_pretty(&outcome)?);
    } else {
        for line in outcome.told() {
            say(line);
        }
    }
    note(format_args!("took {}", spoken(begin.elapsed())));
    Ok(match outcome.passed {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
