//! `wsbench kill`.

use crate::process::wait_until;
use crate::progress::{note, say};
use crate::root::Root;
use crate::runfile::RunFile;
use crate::subject::Catalog;
use anyhow::bail;
use rustix::process::Signal;
use std::process::ExitCode;
use std::time::Duration;

/// How long `wsbench serve` may take to stop a server: its keeper promises less
/// than five seconds, its sockets may take as long.
const ASKED_MOST: Duration = Duration::from_secs(12);
/// How long a server may take to leave on SIGTERM, and after SIGKILL.
const SIGNAL_MOST: Duration = Duration::from_secs(3);

/// Stops servers that `wsbench serve` runs.
///
/// Finds them in output/run, and makes sure by process id and start time that
/// they are the ones: never stops anything else.
#[derive(clap::Args)]
pub struct Args {
    /// Servers to stop [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "every verb takes its arguments whole"
)]
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let root = Root::find()?;
    let files = match args.names.is_empty() {
        true => RunFile::all(&root)?,
        false => named(&root, &args.names)?,
    };
    if files.is_empty() {
        say("no server is running");
    }
    let mut failed = false;
    for file in &files {
        if let Err(error) = stop(&root, file) {
            note(format_args!("wsbench: {}: {error:#}", file.name));
            failed = true;
        }
    }
    Ok(match failed {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

/// A name that the original uses stands for ours; one whose folder is gone may
/// still have a server.
fn named(root: &Root, names: &[String]) -> anyhow::Result<Vec<RunFile>> {
    let all = RunFile::all(root)?;
    let catalog = Catalog::discover(root)?;
    let mut chosen = Vec::new();
    for name in names {
        let found = |wanted: &str| all.iter().find(|file| file.name == wanted).cloned();
        let file = match found(name) {
            Some(file) => Some(file),
            None => found(&catalog.find(name)?.name),
        };
        match file {
            Some(file) => chosen.push(file),
            None => bail!("{name} is not served on this host"),
        }
    }
    Ok(chosen)
}

fn stop(root: &Root, file: &RunFile) -> anyhow::Result<()> {
    let name = &file.name;
    if file.is_stale() {
        file.remove(root)?;
        say(format_args!(
            "{name}: ran no more, its stale file is removed"
        ));
        return Ok(());
    }
    let pid = file.server.pid;
    // Its supervisor stops it best: it knows that this is no crash, and reaps.
    let asked = file.request_stop();
    let path = RunFile::path(root, name);
    if asked.is_ok() && wait_until(ASKED_MOST, || !file.server.is_running() && !path.exists()) {
        say(format_args!("{name}: stopped (pid {pid})"));
        return Ok(());
    }
    for signal in [Signal::TERM, Signal::KILL] {
        if !file.server.signal(signal)? || file.server.wait_gone(SIGNAL_MOST) {
            break;
        }
    }
    if file.server.is_running() {
        bail!("process {pid} survives SIGKILL (see: ps -o pid,stat,wchan {pid})");
    }
    // A supervisor that still runs sees the end of its server and removes the file.
    if !file.supervisor.is_running() {
        file.remove(root)?;
    }
    say(format_args!(
        "{name}: ended by a signal (pid {pid}), since `wsbench serve` did not answer"
    ));
    Ok(())
}
