//! `wsbench client`.

use crate::args::load::LoadArgs;
use crate::cpus;
use crate::profile::Profile;
use crate::progress::{note, say};
use crate::root::Root;
use crate::run::clients;
use crate::run::found::{Found, Wanted};
use crate::run::id;
use crate::run::interrupt::{EXIT_CODE, Interrupt};
use crate::run::lock::RunLock;
use crate::run::{figures, limits, standalone, verdict};
use crate::runfile::RunFile;
use anyhow::{Context as _, bail};
use std::path::PathBuf;
use std::process::ExitCode;
use wsbench_report::{block, terminal_width};
use wsbench_schema::{Load, TrialRecord};

const SERVER: &str = "Server";
const OUTPUT: &str = "Output";

/// Loads one server and prints what was measured.
///
/// The server is one that `wsbench serve` runs, on this host (-f NAME) or on
/// another (--ip HOST --control-port PORT), or any at all (--url). Results are
/// kept in results/clients-*/. Exit code: 0, or 1 if a connection or message
/// failed or was never sent or a connection was lost, or 130 if interrupted
/// (what was measured is printed).
#[derive(clap::Args)]
pub struct Args {
    /// The server, as `wsbench serve` knows it
    #[arg(short = 'f', long, value_name = "NAME", help_heading = SERVER)]
    framework: Option<String>,
    /// Every server that `wsbench serve` runs on this host, one by one, and their report
    #[arg(long, conflicts_with_all = ["framework", "ip", "control_port", "url"], help_heading = SERVER)]
    all: bool,
    /// Host of `wsbench serve` [default: this one]
    #[arg(long, value_name = "HOST", help_heading = SERVER)]
    ip: Option<String>,
    /// Port of its control API on that host, as it printed it
    #[arg(long, value_name = "PORT", help_heading = SERVER)]
    control_port: Option<u16>,
    /// Token of its control API
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file", help_heading = SERVER)]
    token: Option<String>,
    /// File that holds the token, which a command line would show to all users
    #[arg(long, value_name = "FILE", help_heading = SERVER)]
    token_file: Option<PathBuf>,
    /// Any WebSocket server: ws://HOST:PORT[-PORT]/PATH
    #[arg(long, value_name = "URL", conflicts_with_all = ["ip", "control_port"], help_heading = SERVER)]
    url: Option<String>,
    /// Its process on this host, for CPU and memory; with --url
    #[arg(long, value_name = "PID", requires = "url", help_heading = SERVER)]
    pid: Option<u32>,
    /// CPUs of the client [default: those that a server on this host does not use]
    #[arg(long, value_name = "LIST", help_heading = SERVER)]
    cpus: Option<String>,
    /// Seed of every random choice [default: a new one]
    #[arg(long, value_name = "NUMBER", help_heading = SERVER)]
    seed: Option<u64>,
    /// Named load: a file of profiles/ [default: the defaults below]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Percentiles in the output
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set,
          num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_parser = crate::args::units::boolean, help_heading = OUTPUT)]
    percentiles: bool,
    /// One JSON object instead of the block
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
    /// Measure nothing: show the saved result of -f NAME, or the report of all
    #[arg(short = 'r', long, help_heading = OUTPUT)]
    report_only: bool,
    /// Put before the names of the files of a report
    #[arg(long, default_value = "", hide_default_value = true, help_heading = OUTPUT)]
    prefix: String,
    /// Put behind the names of the files of a report
    #[arg(long, default_value = "", hide_default_value = true, help_heading = OUTPUT)]
    suffix: String,
    #[command(flatten)]
    load: LoadArgs,
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "every verb takes its arguments whole"
)]
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let root = Root::find()?;
    if args.report_only {
        return reprint(&root, &args);
    }
    let profile = match &args.profile {
        Some(name) => Some(Profile::load(&root, name)?),
        None => None,
    };
    let load = args.load.single(profile.as_ref())?;
    for text in args.load.notes(profile.as_ref())? {
        note(format_args!("note: {text}"));
    }
    let lock = RunLock::take(&root.output("run"))?;
    lock.tell("`wsbench client`")
        .context("cannot say in the lock who holds it")?;
    let interrupt = Interrupt::install()?;
    limits::raise_files(load.connections);
    let wanted = args.wanted(profile.as_ref());
    if !args.all {
        let good = one(&root, &wanted, load, &interrupt, &args)?;
        return Ok(exit_code(&interrupt, good));
    }
    let names = served(&root)?;
    let cpus = cpus::allowed()?;
    let mut good = true;
    for name in &names {
        if interrupt.pressed() {
            break;
        }
        // All of them again: the last client was kept to the CPUs that its server left.
        cpus::pin_self(&cpus)?;
        let framework = Some(name.as_str());
        let wanted = Wanted {
            framework,
            ..wanted
        };
        good &= one(&root, &wanted, load.clone(), &interrupt, &args).unwrap_or_else(|error| {
            note(format_args!("{name}: {error:#}"));
            false
        });
    }
    if !args.json {
        report(&root, &args)?;
    }
    Ok(exit_code(&interrupt, good))
}

/// Everything that `wsbench serve` runs on this host.
fn served(root: &Root) -> anyhow::Result<Vec<String>> {
    let files = RunFile::all(root)?.into_iter();
    let names: Vec<String> = files
        .filter(|file| !file.is_stale())
        .map(|file| file.name)
        .collect();
    if names.is_empty() {
        bail!("no server is served on this host (run: wsbench serve --all --detach)");
    }
    Ok(names)
}

/// Measures one server and shows it; whether all was well.
fn one(
    root: &Root,
    wanted: &Wanted<'_>,
    load: Load,
    interrupt: &Interrupt,
    args: &Args,
) -> anyhow::Result<bool> {
    let mut found = Found::find(root, wanted)?;
    clients::prepare(root, &load, wanted.interval)?;
    note(format_args!(
        "{} at {}, client on CPUs {}",
        found.subject.name,
        found.target,
        cpus::format_list(&found.cpus.client)
    ));
    // Before the engine and the observer start their threads.
    cpus::pin_self(&found.cpus.client)?;
    let seed = args.seed.unwrap_or_else(id::new_seed);
    let mut record = found.blank(load, seed);
    standalone::measure(&found.target, &mut found.observer, interrupt, &mut record)?;
    let saved = match interrupt.pressed() {
        true => Ok(()),
        false => clients::save(root, &mut record).map(drop),
    };
    // Whatever became of the file, what was measured is shown.
    show(&record, args)?;
    saved.context("what was measured is shown, but not kept")?;
    Ok(!verdict::is_at_fault(&record))
}

fn exit_code(interrupt: &Interrupt, good: bool) -> ExitCode {
    match good {
        _ if interrupt.pressed() => ExitCode::from(EXIT_CODE),
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn show(record: &TrialRecord, args: &Args) -> anyhow::Result<()> {
    if args.json {
        say(format_args!("{}", figures::json(record, args.percentiles)?));
    } else {
        say(block(record, args.percentiles).trim_end());
    }
    Ok(())
}

/// `-r`: what was saved, shown again.
fn reprint(root: &Root, args: &Args) -> anyhow::Result<ExitCode> {
    match &args.framework {
        Some(name) => show(&clients::newest(root, name)?, args)?,
        None => report(root, args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// All servers that were measured under the load that was measured last.
fn report(root: &Root, args: &Args) -> anyhow::Result<()> {
    let report = clients::newest_run(root)?.report(root)?;
    say(report.terminal(terminal_width()).trim_end());
    say("");
    for file in report.write(&root.output("report"), &args.prefix, &args.suffix)? {
        say(file.display());
    }
    Ok(())
}

impl Args {
    fn wanted(&self, profile: Option<&Profile>) -> Wanted<'_> {
        Wanted {
            framework: self.framework.as_deref(),
            host: self.ip.as_deref(),
            control_port: self.control_port,
            token: self.token.as_deref(),
            token_file: self.token_file.as_deref(),
            url: self.url.as_deref(),
            pid: self.pid,
            cpus: self.cpus.as_deref(),
            interval: self.load.interval(profile),
        }
    }
}
