//! Client processes driven in step: each phase begins on all of them together
//! and is over when the last is done. Speaks the protocol of
//! `wsbench_schema::wire`; knows nothing of servers, records or terminals.

mod halted;
mod process;
mod silence;

use crate::lines::shown;
pub use halted::Rest;
use process::{Line, Process};
use rustix::time::{ClockId, clock_gettime};
use silence::Silence;
use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use wsbench_schema::{
    ClientCommand, ClientEvent, Load, Part, Phase, PhaseReport, Progress, Target,
};

/// How often the caller is asked whether to go on.
const TICK: Duration = Duration::from_millis(100);
/// Clients in step begin this long after the last of them was told so: time for
/// each to wake up and read it, one after the other on a CPU that they share.
const STEP_LEAD_NS: u64 = 50_000_000;
/// How often the progress of several clients together is told.
const TELL: Duration = Duration::from_millis(900);
/// See [`STEP_LEAD_NS`].
const STEP_LEAD_EACH_NS: u64 = 4_000_000;

/// How long a client may say nothing.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Between phases, while it makes its frames and checks its limits.
    pub between: Duration,
    /// Within a phase, in which it reports about once a second.
    pub within: Duration,
    /// From `stop` to its exit: a million connections take seconds to close.
    pub stop: Duration,
    /// From `stop` in the midst of a phase to what was measured of it.
    pub give_up: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            between: Duration::from_secs(60),
            within: Duration::from_secs(30),
            stop: Duration::from_secs(30),
            give_up: Duration::from_secs(10),
        }
    }
}

impl Patience {
    /// For clients that have so many connections to close when they stop.
    pub fn for_connections(connections: u32) -> Self {
        let usual = Self::default();
        Self {
            stop: usual.stop + Duration::from_millis(u64::from(connections) / 20),
            ..usual
        }
    }
}

/// Why a phase was not measured to its end.
#[derive(Debug)]
pub enum Halt {
    /// A client is at fault: what happened, in one line.
    Client(String),
    /// The caller's watch said so.
    Abandoned,
}

/// Asked about every tenth of a second while clients are waited for.
pub type Watch<'a> = &'a mut dyn FnMut() -> ControlFlow<()>;

/// Clients that do the same phases at the same time.
pub struct Clients {
    processes: Vec<Process>,
    events: Receiver<(usize, Line)>,
    patience: Patience,
    began_ns: Option<u64>,
    /// Of the last phase, one for each process that has told its own.
    reports: Vec<Option<PhaseReport>>,
    /// How far each has come in it.
    shares: Vec<Option<Progress>>,
}

/// This program as a client process, even if it was built anew meanwhile.
pub fn client_command() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("wsbench").arg("client-process");
    command
}

impl Clients {
    /// Starts the processes, each on `cpus`, each with the file that takes its standard error.
    /// They die with the calling *thread*, so that thread must outlive them.
    pub fn start(
        commands: Vec<(Command, PathBuf)>,
        cpus: &[u32],
        patience: Patience,
    ) -> anyhow::Result<Self> {
        let (sender, events) = mpsc::channel();
        let mut clients = Self {
            processes: Vec::new(),
            events,
            patience,
            began_ns: None,
            reports: Vec::new(),
            shares: Vec::new(),
        };
        let count = commands.len();
        for (index, (command, log)) in commands.into_iter().enumerate() {
            let process = Process::start(command, cpus, &log, (index, count), &sender)?;
            clients.processes.push(process);
        }
        Ok(clients)
    }

    /// Number of processes.
    pub fn count(&self) -> u32 {
        u32::try_from(self.processes.len()).unwrap_or(u32::MAX)
    }

    /// Their process ids.
    pub fn pids(&self) -> Vec<u32> {
        self.processes.iter().map(Process::pid).collect()
    }

    /// When the last phase began, if that was a start in step, for which nobody
    /// moved before: `CLOCK_MONOTONIC`.
    pub fn began_in_step_ns(&self) -> Option<u64> {
        self.began_ns
    }

    /// Tells every client its share of the load, one for each, in order; and of
    /// the last load of a ramp, which is the same if there is no ramp.
    pub fn prepare(
        &mut self,
        loads: &[Load],
        last: &[Load],
        target: &Target,
        seed: u64,
    ) -> Result<(), Halt> {
        let of = self.count();
        for (index, (load, last)) in (0..).zip(loads.iter().zip(last)) {
            self.send(
                index as usize,
                &ClientCommand::Prepare {
                    load: Box::new(load.clone()),
                    target: target.clone(),
                    // Clients in step must not send the same bytes in the same rhythm.
                    seed: seed.wrapping_add(index.into()),
                    part: Part { index, of },
                    most_connections: last.connections,
                },
            )?;
        }
        Ok(())
    }

    /// Tells every client its share of the next load of a ramp, once all phases
    /// of the one before are over.
    pub fn extend(&mut self, loads: &[Load]) -> Result<(), Halt> {
        for (index, load) in loads.iter().enumerate() {
            let load = Box::new(load.clone());
            self.send(index, &ClientCommand::Extend { load })?;
        }
        Ok(())
    }

    /// Waits until all clients are ready for their next phase, and names it;
    /// `None` after the last one.
    pub fn next_phase(&mut self, watch: Watch<'_>) -> Result<Option<Phase>, Halt> {
        let mut agreed: Option<Option<Phase>> = None;
        self.expect_all();
        while self.any_pending() {
            let (index, event) = self.event(self.patience.between, watch)?;
            let next = match event {
                ClientEvent::Prepared { .. } => continue,
                ClientEvent::Ready { phase } => Some(phase),
                ClientEvent::Finished => None,
                other => return Err(self.fault(index, &other)),
            };
            if *agreed.get_or_insert(next) != next {
                let message = format!("clients are out of step: {agreed:?}, {next:?}");
                return Err(Halt::Client(message));
            }
            self.processes[index].pending = false;
        }
        Ok(agreed.flatten())
    }

    /// Begins a phase on all clients and waits for its end: a report for each.
    pub fn go(
        &mut self,
        phase: Phase,
        watch: Watch<'_>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<PhaseReport>, Halt> {
        let in_step = self.processes.len() > 1;
        let lead_ns = STEP_LEAD_NS + STEP_LEAD_EACH_NS * self.processes.len() as u64;
        let at_ns = in_step.then(|| monotonic_ns() + lead_ns);
        self.began_ns = at_ns;
        self.reports = vec![None; self.processes.len()];
        self.shares = vec![None; self.processes.len()];
        for index in 0..self.processes.len() {
            self.send(index, &ClientCommand::Go { phase, at_ns })?;
        }
        let mut told: Option<Instant> = None;
        self.expect_all();
        while self.any_pending() {
            let (index, event) = self.event(self.patience.within, watch)?;
            match event {
                ClientEvent::Progress(share) if share.phase == phase => {
                    self.shares[index] = Some(share);
                    // Each tells its own about once a second.
                    let is_due = told.is_none_or(|told| told.elapsed() >= TELL);
                    if !in_step || (is_due && self.shares.iter().all(Option::is_some)) {
                        told = Some(Instant::now());
                        progress(sum(phase, &self.shares));
                    }
                }
                ClientEvent::Done {
                    phase: ended,
                    report,
                } if ended == phase => {
                    self.reports[index] = Some(*report);
                    self.processes[index].pending = false;
                }
                other => return Err(self.fault(index, &other)),
            }
        }
        if in_step {
            progress(sum(phase, &self.shares));
        }
        Ok(self.reports.drain(..).flatten().collect())
    }

    /// Lets the clients close their connections and exit; ends those that do not.
    pub fn stop(mut self) {
        for index in 0..self.processes.len() {
            // One that is gone already needs no telling.
            let _ = self.send(index, &ClientCommand::Stop);
            self.processes[index].stdin = None;
        }
        let deadline = Instant::now() + self.patience.stop;
        for process in &mut self.processes {
            process.exit_by(deadline);
        }
        // Whoever is left is killed and reaped when dropped.
    }

    fn expect_all(&mut self) {
        for process in &mut self.processes {
            process.pending = true;
            process.silence = Silence::broken();
        }
    }

    fn any_pending(&self) -> bool {
        self.processes.iter().any(|process| process.pending)
    }

    fn write(&mut self, index: usize, command: &ClientCommand) -> io::Result<()> {
        let mut line = serde_json::to_vec(command)?;
        line.push(b'\n');
        match &mut self.processes[index].stdin {
            Some(stdin) => stdin.write_all(&line),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn send(&mut self, index: usize, command: &ClientCommand) -> Result<(), Halt> {
        match self.write(index, command) {
            Ok(()) => Ok(()),
            // What it said before it left is a better reason than a broken pipe.
            Err(error) => Err(Halt::Client(self.last_words(index).unwrap_or_else(|| {
                let name = &self.processes[index].name;
                format!("cannot write to {name}: {error}")
            }))),
        }
    }

    /// A client said that it cannot go on, or what nobody asked for.
    fn fault(&self, index: usize, event: &ClientEvent) -> Halt {
        let process = &self.processes[index];
        Halt::Client(match event {
            ClientEvent::Failed { message } => process.said(message),
            other => {
                let text = serde_json::to_string(other).unwrap_or_default();
                format!("{} said `{text}` out of turn", process.name)
            }
        })
    }

    /// The reason a client that has left gave, or how it left.
    fn last_words(&mut self, index: usize) -> Option<String> {
        while let Ok((from, line)) = self.events.recv_timeout(Duration::from_secs(1)) {
            match line {
                Line::Event(event) => self.processes[from].unheard.push_back(event),
                Line::Closed if from == index => return Some(self.processes[index].farewell()),
                Line::Closed | Line::Other(_) => {}
            }
        }
        None
    }

    /// What a client that is waited for has said. One that is done waits for the
    /// others, and so does what it says about its next phase.
    fn unheard(&mut self) -> Option<(usize, ClientEvent)> {
        let pending = self.processes.iter_mut().enumerate();
        pending
            .filter(|(_, process)| process.pending)
            .find_map(|(index, process)| Some((index, process.unheard.pop_front()?)))
    }

    /// The next event of any client that is waited for. Fails if one leaves,
    /// breaks the protocol or is silent for too long, or if the watch says so.
    fn event(&mut self, silence: Duration, watch: Watch<'_>) -> Result<(usize, ClientEvent), Halt> {
        loop {
            if watch().is_break() {
                return Err(Halt::Abandoned);
            }
            if let Some(found) = self.unheard() {
                return Ok(found);
            }
            let asked = Instant::now();
            let heard = self.events.recv_timeout(TICK);
            let turn = asked.elapsed();
            for process in &mut self.processes {
                process.silence.go_on(turn);
            }
            match heard {
                Ok((index, Line::Event(event))) => {
                    let process = &mut self.processes[index];
                    process.silence = Silence::broken();
                    process.unheard.push_back(event);
                    continue;
                }
                Ok((index, Line::Other(line))) => {
                    let name = &self.processes[index].name;
                    let line = shown(&line);
                    let message = format!("{name} wrote `{line}`, which is no event");
                    return Err(Halt::Client(message));
                }
                Ok((index, Line::Closed)) => {
                    return Err(Halt::Client(self.processes[index].farewell()));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Halt::Client("no client process is left".into()));
                }
            }
            let hung = |process: &&Process| process.pending && process.silence.exceeds(silence);
            if let Some(process) = self.processes.iter().find(hung) {
                return Err(Halt::Client(format!(
                    "{} said nothing for {} s{}{}",
                    process.name,
                    silence.as_secs_f32(),
                    process.log_line(),
                    process.silence.excuse(),
                )));
            }
        }
    }
}

impl Drop for Clients {
    /// Each is waited for when it is dropped; like this they end together.
    fn drop(&mut self) {
        self.processes.iter_mut().for_each(Process::kill);
    }
}

fn sum(phase: Phase, shares: &[Option<Progress>]) -> Progress {
    let mut all = Progress {
        phase,
        done: 0,
        failed: 0,
        total: 0,
    };
    for share in shares.iter().flatten() {
        all.done += share.done;
        all.failed += share.failed;
        all.total += share.total;
    }
    all
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Neither is negative on a clock that starts at boot.
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

#[cfg(test)]
mod tests;
