//! Between the runner and a server: starts the server, and ends it with all that
//! it started when the runner says so or is no more, SIGKILL included.
//!
//! It is a process of its own because nothing inside the runner survives a
//! SIGKILL. Its standard input is its tie to the runner: when that ends, the
//! runner is gone. As the subreaper of its descendants it inherits whatever the
//! server leaves behind, in whatever group or session that hides.

pub mod event;
mod family;
mod log;
mod spawn;

pub use event::Event;
pub use family::LEAVE_MOST;

use anyhow::Context as _;
use family::Family;
use log::Log;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use std::ffi::OsString;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// What a keeper is told.
#[derive(Clone, Debug)]
pub struct Orders {
    /// Program and arguments.
    pub argv: Vec<OsString>,
    /// Working folder.
    pub folder: PathBuf,
    /// CPUs of the server; those of the keeper, if empty.
    pub cpus: Vec<u32>,
    /// File that takes its output; emptied first.
    pub log: PathBuf,
    /// How long all may take to leave on SIGTERM, and again when killed.
    pub leave_most: Duration,
}

/// Keeps one server until its end. Says on standard output what happens.
pub fn keep(orders: &Orders) -> anyhow::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .context("cannot become the keeper of what the server starts")?;
    // It is run through /proc/self/exe, which would be called `exe` in `ps` and `top`.
    rustix::thread::set_name(c"wsbench-keeper").context("cannot name this process")?;
    // Before the server exists, so that no signal is missed.
    let orders_to_stop = pipe_of(&[SIGTERM, SIGINT, SIGHUP])?;
    let deaths = pipe_of(&[SIGCHLD])?;
    let spawned = Log::create(&orders.log).and_then(|log| {
        let server = spawn::spawn(orders, &log)?;
        Ok((server, log))
    });
    let (server, mut log) = match spawned {
        Ok(spawned) => spawned,
        Err(error) => {
            say(&Event::Failed {
                message: format!("{error:#}"),
            });
            return Ok(());
        }
    };
    say(&Event::Spawned { pid: server });
    let mut family = Family::new(server, orders.leave_most);
    watch(&mut family, &mut log, &orders_to_stop, &deaths)?;
    // At once if it ended by itself: ending what it left behind may take a while.
    let by_itself = family.exit();
    by_itself.map(Event::Exited).iter().for_each(say);
    let (killed, left) = family.end(&deaths, &mut log)?;
    if by_itself.is_none() {
        family.exit().map(Event::Exited).iter().for_each(say);
    }
    say(&Event::Gone { killed, left });
    Ok(())
}

/// Returns when the server has ended or has to.
fn watch(
    family: &mut Family,
    log: &mut Log,
    stop: &UnixStream,
    deaths: &UnixStream,
) -> anyhow::Result<()> {
    let stdin = std::io::stdin();
    let mut input_open = true;
    loop {
        family.reap();
        if family.exit().is_some() {
            return Ok(());
        }
        let mut ready = [
            PollFd::new(stop, PollFlags::IN),
            PollFd::new(deaths, PollFlags::IN),
            PollFd::new(&stdin, PollFlags::IN),
        ];
        let used = if input_open { 3 } else { 2 };
        let look = Timespec::try_from(log::LOOK).context("the pause is too long")?;
        match poll(&mut ready[..used], Some(&look)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot wait for the server's end"),
        }
        log.bound();
        let [stop_ready, deaths_ready, input_ready] =
            ready.each_ref().map(|fd| !fd.revents().is_empty());
        if stop_ready {
            return Ok(());
        }
        if deaths_ready {
            drain(deaths);
        }
        if input_open && input_ready {
            let mut word = [0; 64];
            match stdin.lock().read(&mut word) {
                // The runner is gone, or says `stop`: it never says anything else.
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => input_open = false,
            }
        }
    }
}

/// A socket that becomes readable at each of these signals.
fn pipe_of(signals: &[i32]) -> anyhow::Result<UnixStream> {
    let (read, write) = UnixStream::pair().context("cannot make a pair of sockets")?;
    read.set_nonblocking(true)
        .context("cannot make a socket non-blocking")?;
    for &signal in signals {
        let write = write.try_clone().context("cannot copy a socket")?;
        signal_hook::low_level::pipe::register(signal, write)
            .with_context(|| format!("cannot handle signal {signal}"))?;
    }
    Ok(read)
}

fn drain(mut pipe: &UnixStream) {
    let mut bytes = [0; 64];
    while pipe.read(&mut bytes).is_ok_and(|read| read > 0) {}
}

/// A runner that is gone hears nothing, which must not keep the server alive.
fn say(event: &Event) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{}", event.to_line());
    let _ = stdout.flush();
}
