//! The runner's end of a keeper: its process, its lines.

use crate::keeper::Event;
use crate::lines::{self, shown};
use crate::orphans;
use anyhow::{Context as _, bail};
use std::ffi::OsString;
use std::io::{BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How much longer than it gives the server to leave, and to be killed, a keeper
/// may take to end the server and itself.
const STOP_BESIDES: Duration = Duration::from_secs(4);

/// A keeper that runs. Dropping it has it end the server.
#[derive(Debug)]
pub struct Link {
    keeper: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Result<Event, String>>,
    exit: Option<String>,
    /// How long ending may take.
    stop_most: Duration,
    /// By [`Link::stop`], which leaves nothing to be done.
    stopped: bool,
}

impl Link {
    /// Starts one with these arguments, which say that the server has so long to leave.
    pub fn start(arguments: Vec<OsString>, leave_most: Duration) -> anyhow::Result<Self> {
        // Before the keeper has children: it may be killed at any time.
        orphans::adopt()?;
        // Not by its path: the program may be built anew while it runs.
        let mut keeper = Command::new("/proc/self/exe")
            .arg0("wsbench")
            .arg("keeper")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C is the runner's to handle: the keeper hears of it from there.
            .process_group(0)
            .spawn()
            .context("cannot start a keeper")?;
        let stdin = keeper.stdin.take();
        let stdout = keeper.stdout.take().context("a keeper without output")?;
        let (sender, lines) = channel();
        thread::Builder::new()
            .name("keeper-lines".into())
            .spawn(move || {
                for line in lines::lines(BufReader::new(stdout)) {
                    let event = line
                        .map_err(|error| error.to_string())
                        .and_then(|line| serde_json::from_str(&line).map_err(|_| line));
                    if sender.send(event).is_err() {
                        return;
                    }
                }
            })
            .context("cannot start a thread")?;
        Ok(Self {
            keeper,
            stdin,
            lines,
            exit: None,
            stop_most: leave_most * 2 + STOP_BESIDES,
            stopped: false,
        })
    }

    /// The server and all that it started descend from it.
    pub fn keeper_pid(&self) -> u32 {
        self.keeper.id()
    }

    /// The next line; none if the time is over.
    pub fn wait(&mut self, most: Duration) -> anyhow::Result<Option<Event>> {
        match self.lines.recv_timeout(most) {
            Ok(event) => Ok(Some(checked(event)?)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => bail!("the server's keeper ended unexpectedly"),
        }
    }

    /// How the server ended, if it did.
    pub fn exit(&mut self) -> anyhow::Result<Option<String>> {
        while self.exit.is_none() {
            match self.lines.try_recv() {
                Ok(event) => {
                    if let Event::Exited(exit) = checked(event)? {
                        self.exit = Some(exit.to_string());
                    }
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.exit = Some("is gone: its keeper was killed".into());
                }
            }
        }
        Ok(self.exit.clone())
    }

    /// Has the keeper end everything. Returns how the server ended and who had to be killed.
    pub fn stop(&mut self) -> anyhow::Result<(String, Vec<String>)> {
        self.let_go();
        let end = Instant::now() + self.stop_most;
        let mut gone = None;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(event) => match checked(event)? {
                    Event::Exited(exit) => self.exit = Some(exit.to_string()),
                    Event::Gone { killed, left } => gone = Some((killed, left)),
                    Event::Spawned { .. } | Event::Failed { .. } => {}
                },
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    self.keeper.kill().context("cannot kill the keeper")?;
                    let hung = format!(
                        "is gone: its keeper hung for {:?} and was killed",
                        self.stop_most
                    );
                    self.exit.get_or_insert(hung);
                    break;
                }
            }
        }
        self.keeper.wait().context("cannot wait for the keeper")?;
        self.stopped = true;
        let exit = self
            .exit
            .clone()
            .unwrap_or_else(|| "is gone: its keeper was killed".into());
        match gone {
            Some((killed, 0)) => Ok((exit, killed)),
            Some((_, left)) => {
                bail!("{left} of its processes survive SIGKILL (see: ps -o pid,stat,wchan)")
            }
            // What it did not end is ours to end.
            None => Ok((exit, orphans::end(Duration::ZERO)?)),
        }
    }

    /// Says `stop`, twice over: the end of the input says it too.
    pub fn let_go(&mut self) {
        if let Some(mut stdin) = self.stdin.take() {
            // A keeper that is gone needs no telling.
            let _ = stdin.write_all(b"stop\n");
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.let_go();
        // The thread's end of the channel closes when the keeper is gone.
        let end = Instant::now() + self.stop_most;
        let mut in_order = false;
        while let Ok(event) = self
            .lines
            .recv_timeout(end.saturating_duration_since(Instant::now()))
        {
            in_order |= matches!(event, Ok(Event::Gone { .. } | Event::Failed { .. }));
        }
        if !matches!(self.keeper.try_wait(), Ok(Some(_))) {
            let _ = self.keeper.kill();
            let _ = self.keeper.wait();
        }
        if !in_order && !self.stopped {
            // Nobody is left to be told.
            let _ = orphans::end(Duration::ZERO);
        }
    }
}

fn checked(event: Result<Event, String>) -> anyhow::Result<Event> {
    event.map_err(|line| anyhow::anyhow!("not a line of a keeper: {}", shown(&line)))
}
