//! `wsbench run`.

use crate::args::load::LoadArgs;
use crate::commands::publish::PublishArgs;
use crate::commands::report;
use crate::profile::Profile;
use crate::progress::note;
use crate::root::Root;
use crate::run::options::{OptionArgs, Options};
use crate::run::ramp;
use crate::run::resume;
use crate::run::session::{self, Around};
use crate::run::setup::Request;
use crate::run::slo::SloArgs;
use crate::subject::{Catalog, Variants};
use anyhow::bail;
use std::process::ExitCode;
use wsbench_schema::{Direction, Load, Suite};

/// Compares servers: builds, verifies, measures, reports.
///
/// Each trial has a fresh server and a fresh client; trials are interleaved by
/// round and shuffled within it. Records go to results/<run>/ as they are made.
/// Exit code: 0; 1 if a server or any of its connections or messages failed, or
/// the run could not begin or go on; 2 if the command line is wrong; 130 if
/// interrupted (what was measured is kept and reported all the same).
///
/// The load is the profile's, and flags stand above it: the defaults of the load
/// that are named below hold for `wsbench client` without a profile.
#[derive(clap::Args)]
pub struct Args {
    /// Servers to compare; `all` is what the default is [default: each folder of frameworks/]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// The same, as a flag
    #[arg(short = 'f', long, value_name = "NAME", value_delimiter = ',')]
    framework: Vec<String>,
    /// Variants of the servers' folders: only those that are named, or all
    #[arg(long, value_enum, value_name = "WHICH", default_value_t)]
    variants: Variants,
    /// Named load: a file of profiles/ [default: default]
    #[arg(long, value_name = "NAME", overrides_with = "profile")]
    profile: Option<String>,
    /// Trials of each server under each load, or auto: the profile's number, and those that
    /// others disturbed are measured again, up to three times in all [default: the profile's]
    #[arg(long, value_name = "COUNT", value_parser = rounds)]
    rounds: Option<Rounds>,
    /// Seed of the trials' order and of every random choice [default: a new one]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Go on with an interrupted run: its name, or the newest that is not complete
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = resume::LATEST)]
    resume: Option<String>,
    /// Use what is built already
    #[arg(long)]
    no_build: bool,
    /// Open the connections in steps on the same server, and measure at each
    ///
    /// The steps are those of -c, as in --ramp -c 10000,50000,100000; if it names
    /// one number only, they are 1, 5, 10, 20, 50 and 100 percent of it.
    #[arg(long)]
    ramp: bool,
    /// Measure nothing: only make the report of the newest run again
    #[arg(short = 'r', long)]
    report_only: bool,
    /// Put before the names of the report's files
    #[arg(long, default_value = "", hide_default_value = true)]
    prefix: String,
    /// Put behind the names of the report's files
    #[arg(long, default_value = "", hide_default_value = true)]
    suffix: String,
    #[command(flatten)]
    publish: PublishArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    slo: SloArgs,
    #[command(flatten)]
    options: OptionArgs,
}

/// How often each trial is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rounds {
    Count(u32),
    Auto,
}

fn rounds(text: &str) -> Result<Rounds, String> {
    let most = Profile::ROUNDS_MAX;
    match (text, text.parse()) {
        ("auto", _) => Ok(Rounds::Auto),
        (_, Ok(count)) if (1..=most).contains(&count) => Ok(Rounds::Count(count)),
        _ => Err(format!("write a number from 1 to {most}, or auto")),
    }
}

/// What can be said on the command line and means nothing to servers of the suite.
fn refuse_what_the_suite_has_not(
    profile: &Profile,
    loads: &[Load],
    options: &OptionArgs,
) -> anyhow::Result<()> {
    let suite = profile.suite;
    if suite.is_websocket() && options.buffer.is_some() {
        bail!("--buffer is for relays and transfer servers, which the suite `{suite}` has none of");
    }
    let one_way = |load: &Load| {
        let bulk = load.bulk.as_ref();
        bulk.is_some_and(|bulk| bulk.direction != Direction::Both)
    };
    if suite == Suite::Transfer && loads.iter().any(one_way) {
        bail!(
            "a transfer server sends back what it gets: the direction of its bulk loads must be both"
        );
    }
    Ok(())
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.report_only {
        return report::run(report::Args::newest(args.prefix, args.suffix, args.publish));
    }
    args.publish.check()?;
    let root = Root::find()?;
    let names = [args.names, args.framework].concat();
    let name = match &args.profile {
        Some(name) => name,
        None => Profile::default_name(Catalog::discover(&root)?.suite_of(&names)?),
    };
    let profile = Profile::load(&root, name)?;
    let names = match names.is_empty() {
        true => profile.subjects.clone(),
        false => names,
    };
    let mut loads = args.load.loads(&profile)?;
    for text in args.load.notes(Some(&profile))? {
        note(format_args!("note: {text}"));
    }
    // A script names the profile each time: to go on with one it must only be the same.
    let profile_is_said = args.profile.is_some();
    let loads_are_said = args.ramp || loads != LoadArgs::default().loads(&profile)?;
    if args.ramp {
        loads = ramp::steps(loads)?;
        for load in &loads {
            load.validate().map_err(anyhow::Error::msg)?;
        }
    }
    refuse_what_the_suite_has_not(&profile, &loads, &args.options)?;
    if let Some(slo) = args.slo.over(None)? {
        if args.rounds == Some(Rounds::Auto) {
            bail!(
                "--rounds auto is for trials; a search tries again by itself what was missed (give a number)"
            );
        }
        loads = vec![slo.load(profile.suite, &loads)?];
    }
    let request = Request {
        names,
        variants: args.variants,
        suite: profile.suite,
        profile: name.to_owned(),
        loads,
        loads_are_said,
        profile_is_said,
        of_profile: Options::of_profile(&profile),
        profile_rounds: profile.rounds,
        rounds: match args.rounds {
            Some(Rounds::Count(count)) => Some(count),
            Some(Rounds::Auto) | None => None,
        },
        sample_interval: args.load.sample_interval,
        seed: args.seed,
        slo: args.slo,
        options: OptionArgs {
            noisy_again: args.rounds == Some(Rounds::Auto),
            ..args.options
        },
        resume: args.resume,
    };
    let around = Around {
        build: !args.no_build,
        prefix: &args.prefix,
        suffix: &args.suffix,
        publish: &args.publish,
    };
    session::run(&root, &request, &around)
}
