//! `wsbench doctor`.

use crate::args::load::LoadArgs;
use crate::doctor::{self, Changed, Check, Demand, Limits, Noise, Side, Status};
use crate::ports;
use crate::profile::Profile;
use crate::progress::note;
use crate::root::Root;
use crate::run::limits;
use crate::table;
use anyhow::Context as _;
use serde::Serialize;
use std::process::ExitCode;
use std::time::Duration;

/// How long other programs and the hypervisor are watched.
const WATCH: Duration = Duration::from_secs(1);

/// Tells what on this machine limits a run, and the command that lifts it.
///
/// Takes the load as `run` does: a profile, and flags above it. Exit code: 0, or
/// 1 if the run would fail half-way.
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
    /// Ports of each server process
    #[arg(long, value_name = "COUNT", default_value_t = ports::DEFAULT_PORTS,
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    ports: u16,
    #[command(flatten)]
    load: LoadArgs,
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
        ports,
        load,
    } = args;
    let root = Root::find()?;
    let name = profile.as_deref().unwrap_or(Profile::DEFAULT_NAME);
    let loads = load.loads(&Profile::load(&root, name)?)?;
    // What the largest load needs is enough for the others.
    let load = loads
        .iter()
        .max_by_key(|load| load.connections)
        .context("the profile has no load")?;
    limits::raise_files(load.connections);
    let look = || {
        let found = Limits::read()?;
        let demand = Demand::of(load, ports, found.nofile_hard);
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
            check.name.to_owned(),
            check.found.to_string(),
            check.needed.to_string(),
        ]
    });
    let header = ["State", "Side", "Limit", "Found", "Needed"];
    let mut text = format!(
        "{} connections, {} client and {} server processes of {} ports\n\n{}",
        demand.connections,
        demand.client_processes,
        demand.server_processes,
        demand.ports,
        table::render(header, cells.collect())
    );
    for Changed { name, from, to } in changed {
        text.push_str(&format!(
            "\nchanged until the next boot: {name} from {from} to {to}"
        ));
    }
    let remedies = checks
        .iter()
        .filter_map(|check| Some((check.name, check.remedy.as_ref()?)));
    for (name, remedy) in remedies {
        text.push_str(&format!("\n{name}: {remedy}"));
    }
    text
}
