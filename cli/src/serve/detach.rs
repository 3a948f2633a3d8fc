//! `wsbench serve --detach`: another `wsbench serve` in the background, and a
//! return as soon as its servers listen. The standard input of the one in the
//! background is a socket, through which it tells that.

use super::{Choice, Options, advice};
use crate::progress::{note, say};
use crate::root::Root;
use crate::run::interrupt::{EXIT_CODE, Interrupt};
use crate::runfile::RunFile;
use crate::subject::{Catalog, Variants};
use anyhow::{Context as _, bail};
use std::env;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::time::Duration;
use wsbench_schema::Suite;

/// How often it is looked whether Ctrl-C was pressed.
const LOOK: Duration = Duration::from_millis(100);

/// Starts it with the same arguments and waits until its servers listen, or for
/// its end. What it says until then is shown.
pub fn run(root: &Root, options: &Options) -> anyhow::Result<ExitCode> {
    let folder = root.output("log");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let log = folder.join(format!("serve-{}.log", label(root, options)?));
    let interrupt = Interrupt::install()?;
    let (mut told, tell) = UnixStream::pair().context("cannot make a pair of sockets")?;
    told.set_read_timeout(Some(LOOK))
        .context("cannot limit a wait")?;
    let mut child = start(&log, tell)?;
    let mut word = [0];
    let ready = loop {
        match told.read(&mut word) {
            Ok(read) => break read > 0,
            Err(error) if is_timeout(error.kind()) => {}
            Err(error) => return Err(error).context("cannot wait for the servers"),
        }
        if interrupt.pressed() {
            end(&mut child)?;
            return Ok(ExitCode::from(EXIT_CODE));
        }
    };
    let said = fs::read_to_string(&log).unwrap_or_default();
    if !ready {
        let status = child.wait().context("cannot wait for `wsbench serve`")?;
        match said.trim() {
            "" => bail!("`wsbench serve` in the background ended: {status}"),
            said => bail!("{}", said.trim_start_matches("wsbench: ")),
        }
    }
    if !said.trim().is_empty() {
        note(said.trim_end());
    }
    for file in RunFile::all(root)? {
        if file.supervisor.pid == child.id() {
            say(advice::of(&file, options.url_host.as_deref())?);
        }
    }
    say("Stop with: wsbench kill");
    Ok(ExitCode::SUCCESS)
}

/// In the background: all servers listen.
pub fn tell_ready() -> anyhow::Result<()> {
    let stdin = std::io::stdin().as_fd().try_clone_to_owned();
    let mut tell = UnixStream::from(stdin.context("cannot copy a file descriptor")?);
    // If the one in the foreground is gone, nobody waits.
    let _ = tell.write_all(b"r");
    Ok(())
}

fn start(log: &Path, tell: UnixStream) -> anyhow::Result<Child> {
    let output = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let errors = output
        .try_clone()
        .context("cannot copy a file descriptor")?;
    Command::new("/proc/self/exe")
        .arg0("wsbench")
        .args(env::args_os().skip(1))
        .arg("--background")
        .stdin(OwnedFd::from(tell))
        .stdout(output)
        .stderr(errors)
        // Ctrl-C and the terminal's end are not for it.
        .process_group(0)
        .spawn()
        .context("cannot start `wsbench serve` in the background")
}

/// For the log's name. A wrong name of a server is told here, at once.
fn label(root: &Root, options: &Options) -> anyhow::Result<String> {
    let Choice::Named(names) = &options.choice else {
        return Ok("all".into());
    };
    let catalog = Catalog::discover(root)?;
    let subjects = catalog.select_of(Suite::Websocket, names, Variants::Named)?;
    let names: Vec<&str> = subjects
        .iter()
        .map(|subject| subject.name.as_str())
        .collect();
    Ok(names.join("+"))
}

/// It may be building or starting servers: what it started ends with it.
fn end(child: &mut Child) -> anyhow::Result<()> {
    if let Some(pid) = crate::process::to_pid(child.id()) {
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)
            .context("cannot stop `wsbench serve` in the background")?;
    }
    child.wait().context("cannot wait for `wsbench serve`")?;
    Ok(())
}

fn is_timeout(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}
