//! `wsbench doctor`.

use crate::args::load::LoadArgs;
use crate::doctor::{self, Changed, Check, Demand, Limits, Noise, Side, Status};
use crate::profile::Profile;
use crate::progress::note;
use crate::root::Root;
use crate::run::limits;
use crate::run::options::{OptionArgs, Options};
use crate::run::processes::{self, Count};
use crate::run::ramp;
use crate::table;
use anyhow::Context as _;
use serde::Serialize;
use std::process::ExitCode;
use std::time::Duration;
use wsbench_report::units::counted;
use wsbench_schema::Load;

/// How long other programs and the hypervisor are watched.
const WATCH: Duration = Duration::from_secs(1);

/// Tells what on this machine limits a run, and the command that lifts it.
///
/// Takes the load, the processes and the ports as `run` does: a profile, and flags
/// above it. Exit code: 0, or 1 if the run would fail half-way.
///
/// The load is the profile's, and flags stand above it: the defaults of the load
/// that are named below hold for `wsbench client` without a profile. Of several
/// loads and the steps of a ramp the largest is looked at.
#[derive(clap::Args)]
pub struct Args {
    /// Named load: a file of profiles/ [default: default]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Change what root may change, until the next boot, and say what was changed
    #[arg(long)]
    fix: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// As for run: the steps are those of -c
    #[arg(long)]
    ramp: bool,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    options: OptionArgs,
}

/// What is told as JSON.
#[derive(Serialize)]
struct Told<'a> {
    connections: u64,
    client_processes: u64,
    server_processes: u64,
    checks: &'a [Check],
    changed: &'a [Changed],
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Args {
        profile,
        fix,
        json,
        ramp,
        load: flags,
        options,
    } = args;
    let root = Root::find()?;
    let name = profile.as_deref().unwrap_or(Profile::DEFAULT_NAME);
    let profile = Profile::load(&root, name)?;
    let mut loads = flags.loads(&profile)?;
    if ramp {
        loads = ramp::steps(loads)?;
    }
    let options = options.over(Options::new(flags.interval(Some(&profile))));
    // What the largest load needs is enough for the others.
    let load = loads
        .iter()
        .max_by_key(|load| (load.connections, load.payload_bytes))
        .context("the profile has no load")?;
    // As the user has it: what follows raises it, as a run does.
    let nofile_soft = Limits::read()?.nofile_soft;
    limits::raise_files(load.connections);
    let look = || {
        let found = Limits {
            nofile_soft,
            ..Limits::read()?
        };
        let demand = demand(load, &loads, &options, found.nofile_hard)?;
        anyhow::Ok((doctor::limits(&found, &demand), demand))
    };
    let (mut checks, mut demand) = look()?;
    let mut changed = Vec::new();
    if fix {
        let refused;
        (changed, refused) = doctor::fix(&checks);
        for reason in &refused {
            note(format_args!("wsbench: {reason:#}"));
        }
        limits::raise_files(load.connections);
        (checks, demand) = look()?;
    }
    let short = checks.iter().any(|check| check.status == Status::Short);
    checks.extend(doctor::noise(&Noise::watch(WATCH)));
    table::print(&match json {
        true => serde_json::to_string_pretty(&Told {
            connections: demand.connections,
            client_processes: demand.client_processes,
            server_processes: demand.server_processes,
            checks: &checks,
            changed: &changed,
        })?,
        false => text(&demand, &checks, &changed),
    })?;
    Ok(match short {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

/// What a run of these loads asks for, the largest of which is `load`.
///
/// # Errors
/// If the processes that the user asks for cannot share a load.
fn demand(
    load: &Load,
    loads: &[Load],
    options: &Options,
    nofile_hard: Option<u64>,
) -> anyhow::Result<Demand> {
    let options = Options {
        each_most: Some(processes::each_most(nofile_hard)),
        ..options.clone()
    };
    let processes = options.processes(load.connections, 1);
    for load in loads {
        if let Count::Fixed(_) = options.server_processes {
            processes.check_share(load.connections)?;
        }
        if let Count::Fixed(count) = options.client_processes {
            load.shares(count).map_err(anyhow::Error::msg)?;
        }
    }
    Ok(Demand::of(load, options.ports, processes))
}

fn text(demand: &Demand, checks: &[Check], changed: &[Changed]) -> String {
    let cells = checks.iter().map(|check| {
        let status = match check.status {
            Status::Ok => "ok",
            Status::Advice => "advice",
            Status::Short => "SHORT",
            Status::Unknown => "unknown",
        };
        let side = match check.side {
            Side::Server => "server",
            Side::Client => "client",
            Side::Both => "both",
            Side::Machine => "machine",
        };
        [
            status.to_owned(),
            side.to_owned(),
            check.name.to_string(),
            check.found.to_string(),
            check.needed.to_string(),
        ]
    });
    let header = ["State", "Side", "Limit", "Found", "Needed"];
    let mut text = format!(
        "{}, {} and {} of {}\n\n{}",
        counted(demand.connections, "connection"),
        counted(demand.client_processes, "client process"),
        counted(demand.server_processes, "server process"),
        counted(demand.ports, "port"),
        table::render(header, cells.collect())
    );
    for Changed { name, from, to } in changed {
        text.push_str(&format!(
            "\nchanged until the next boot: {name} from {from} to {to}"
        ));
    }
    let remedies = checks
        .iter()
        .filter_map(|check| Some((&check.name, check.remedy.as_ref()?)));
    for (name, remedy) in remedies {
        text.push_str(&format!("\n{name}: {remedy}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::testing;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn demand_of(line: &str, connections: u32) -> anyhow::Result<Demand> {
        let words = std::iter::once("x").chain(line.split_whitespace());
        let args = Cli::try_parse_from(words)?.args;
        let options = args.options.over(Options::new(Duration::from_secs(1)));
        let load = Load {
            connections,
            ..testing::load()
        };
        demand(&load, std::slice::from_ref(&load), &options, Some(20_000))
    }

    #[test]
    fn processes_are_asked_for_as_run_does() {
        let processes = |line, connections| {
            let demand = demand_of(line, connections).unwrap();
            (demand.client_processes, demand.server_processes)
        };
        assert_eq!(processes("", 100), (1, 1));
        let line = "--client-processes 3 --server-processes auto --ramp";
        assert_eq!(processes(line, 100_000), (3, 6));
        for line in ["--server-processes 5", "--client-processes 5"] {
            let error = demand_of(line, 2).unwrap_err().to_string();
            assert!(error.starts_with("2 connections cannot be"), "{error}");
        }
    }

    #[test]
    fn one_of_something_is_not_several() {
        let one = demand_of("--ports 1", 1).unwrap();
        let told = text(&one, &[], &[]);
        let expected = "1 connection, 1 client process and 1 server process of 1 port\n";
        assert!(told.starts_with(expected), "{told}");
        let many = demand_of("", 100_000).unwrap();
        let told = text(&many, &[], &[]);
        let expected = "100000 connections, 6 client processes and 6 server processes of 10 ports";
        assert!(told.starts_with(expected), "{told}");
    }
}
