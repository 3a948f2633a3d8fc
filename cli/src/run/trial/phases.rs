//! The phases of one trial: ready, edge, go, done, edge, recorded.

use super::inside::Figures;
use super::sight::Sight;
use super::{Bench, HOST, Job, Stand, Steps, Stop};
use crate::driver::{Clients, Halt, Rest};
use crate::machine;
use crate::progress::{Meter, note};
use crate::run::footprint;
use crate::run::verdict;
use std::ops::ControlFlow;
use std::time::{Duration, Instant, SystemTime};
use wsbench_schema::{BulkLoad, Load, Phase, PhaseReport, Target, TrialRecord, metric};

/// How long the client may take to notice that the server is gone, so that what
/// it measured until then is kept.
const GRACE: Duration = Duration::from_secs(3);
/// How often the machine's memory is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// The phases of one trial and all who take part in them.
pub struct Phases<'a> {
    pub bench: &'a Bench<'a>,
    pub job: &'a Job<'a>,
    pub stand: &'a mut Stand,
    pub sight: Sight,
    pub clients: Clients,
    pub steps: &'a mut Steps,
    pub guard: Guard,
}

impl Phases<'_> {
    /// Runs them to the last one of the last load, or to the first that fails.
    pub fn all(&mut self) -> Result<(), Stop> {
        self.prepare()?;
        self.of_one_load()?;
        for load in &self.job.loads[1..] {
            self.steps.next(load).map_err(Stop::Broken)?;
            let shares = self.shares(load)?;
            let told = self.clients.extend(&shares);
            self.settle(Phase::Connect, told)?;
            self.of_one_load()?;
        }
        Ok(())
    }

    fn shares(&self, load: &Load) -> Result<Vec<Load>, Stop> {
        let shares = load.shares(self.clients.count());
        shares.map_err(|reason| Stop::failed(Phase::Connect.name(), &reason))
    }

    fn prepare(&mut self) -> Result<(), Stop> {
        let target = Target {
            host: HOST.into(),
            ports: self.stand.ports(),
            path: Target::DEFAULT_PATH.into(),
        };
        let (shares, last) = (
            self.shares(self.job.first())?,
            self.shares(self.job.largest())?,
        );
        let seed = self.job.seed;
        let prepared = self.clients.prepare(&shares, &last, &target, seed);
        self.settle(Phase::Connect, prepared)
    }

    fn of_one_load(&mut self) -> Result<(), Stop> {
        let mut last = Phase::Connect;
        loop {
            let next = {
                let mut watch = watch(self.bench, self.stand, &mut self.guard);
                self.clients.next_phase(&mut watch)
            };
            match self.settle(last, next)? {
                Some(phase) => {
                    self.one(phase)?;
                    last = phase;
                }
                None => return Ok(()),
            }
        }
    }

    fn one(&mut self, phase: Phase) -> Result<(), Stop> {
        let begun = self.sight.begin(phase, self.stand.origin.as_mut());
        let (mut begin, figures) = begun.map_err(|error| self.unobserved(phase, &error))?;
        self.record(phase, figures);
        let title = format!("{}  {phase}", self.steps.title());
        let bulk = self.steps.current.load.bulk.as_ref();
        let mut meter = Meter::new(title, bulk.map_or(1, BulkLoad::crossings));
        let began = SystemTime::now();
        let done = {
            let mut watch = watch(self.bench, self.stand, &mut self.guard);
            self.clients
                .go(phase, &mut watch, &mut |progress| meter.update(progress))
        };
        let seen = self.sight.end(phase, self.stand.origin.as_mut());
        // Until clients in step begin, nothing moves.
        begin.at_ns = begin
            .at_ns
            .max(self.clients.began_in_step_ns().unwrap_or(0));
        let report = match done {
            Ok(reports) => self.measured(phase, began, &reports)?,
            Err(halt) => {
                drop(meter);
                return Err(self.given_up(phase, began, halt));
            }
        };
        let count_of = |name: &str| report.metrics.get(name).copied();
        let failed = count_of(metric::FAILED).unwrap_or(0);
        meter.finish(count_of(metric::SUCCEEDED), failed);
        // A dead server has no edge; that it died is the better reason.
        self.alive(phase)
            .map_err(|stop| and(stop, &counts(phase, &report)))?;
        let seen = seen.map_err(|error| self.unobserved(phase, &error))?;
        self.record(phase, seen.figures);
        let record = &mut self.steps.current;
        record.add_server(phase, &begin, &seen.end, &seen.samples);
        add_bytes_of_syscalls(record, phase);
        record.server_processes = record.server_processes.max(seen.end.processes);
        match verdict::nothing_succeeded(phase, &report) {
            Some(reason) => {
                let connections = record.load.connections;
                let few = few_left(phase, &report, connections).unwrap_or_default();
                Err(Stop::failed(phase.name(), &format!("{reason}{few}")))
            }
            None => Ok(()),
        }
    }

    fn record(&mut self, phase: Phase, figures: Figures) {
        let metrics = &mut self.steps.current.metrics;
        metrics.extend(
            figures
                .into_iter()
                .map(|(name, value)| (phase.metric(name), value)),
        );
    }

    /// Of all clients together, recorded.
    fn measured(
        &mut self,
        phase: Phase,
        began: SystemTime,
        reports: &[PhaseReport],
    ) -> Result<PhaseReport, Stop> {
        let report = PhaseReport::merge(reports)
            .map_err(|error| Stop::failed(phase.name(), &error.to_string()))?;
        (self.steps.keep_intervals(phase, began, &report))
            .map_err(|error| Stop::failed(phase.name(), &error.to_string()))?;
        self.steps.current.add_client(phase, &report);
        Ok(report)
    }

    /// Why a phase was not measured to its end. What was measured until then is
    /// recorded if it is the whole, and told in either case.
    fn given_up(&mut self, phase: Phase, began: SystemTime, halt: Halt) -> Stop {
        let is_clients_fault = matches!(halt, Halt::Client(_));
        let stop = match self.settle::<()>(phase, Err(halt)) {
            Err(stop @ Stop::Failed { .. }) => stop,
            Err(stop) => {
                // Half a trial is none, and who wants to stop is not kept waiting.
                if let Some(told) = self.last_told(phase) {
                    note(format_args!("{}: stopped in {phase}{told}", self.job.title));
                }
                return stop;
            }
            Ok(()) => Stop::failed(phase.name(), "given up"),
        };
        let rest = match is_clients_fault {
            true => Rest::Lost,
            false => {
                let interrupt = self.bench.interrupt;
                let mut watch = || match interrupt.pressed() {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                };
                self.clients.give_up(phase, &mut watch)
            }
        };
        match rest {
            Rest::Whole(reports) => match self.measured(phase, began, &reports) {
                Ok(report) => and(stop, &counts(phase, &report)),
                Err(unfit) => unfit,
            },
            Rest::Lost => match self.last_told(phase) {
                Some(told) => and(
                    stop,
                    &format!("; what was measured of {phase} is lost{told}"),
                ),
                None => stop,
            },
            Rest::Abandoned => Stop::Interrupted,
        }
    }

    /// ` (1200 right and 3 failed when last told)`, if anything had happened.
    fn last_told(&self, phase: Phase) -> Option<String> {
        let told = self.clients.last_told(phase)?;
        let (done, failed) = (told.done, told.failed);
        (done + failed > 0).then(|| format!(" ({done} right and {failed} failed when last told)"))
    }

    /// Why a wait for the client ended, seen from the trial.
    fn settle<T>(&mut self, phase: Phase, result: Result<T, Halt>) -> Result<T, Stop> {
        result.map_err(|halt| {
            if self.bench.interrupt.pressed() {
                return Stop::Interrupted;
            }
            if let Err(stop) = self.alive(phase) {
                return stop;
            }
            if let Some(reason) = self.guard.reason() {
                return Stop::failed(phase.name(), &reason);
            }
            match halt {
                Halt::Client(reason) => Stop::failed(phase.name(), &reason),
                Halt::Abandoned => Stop::failed(phase.name(), "given up"),
            }
        })
    }

    fn alive(&mut self, phase: Phase) -> Result<(), Stop> {
        match self.stand.exited() {
            Some(exit) => Err(Stop::failed(
                phase.name(),
                &format!("{exit} during {phase}"),
            )),
            None => Ok(()),
        }
    }

    fn unobserved(&mut self, phase: Phase, error: &anyhow::Error) -> Stop {
        match self.alive(phase) {
            Err(stop) => stop,
            Ok(()) => Stop::error(phase.name(), error),
        }
    }
}

/// Over how many bytes system calls were counted, if they were.
fn add_bytes_of_syscalls(record: &mut TrialRecord, phase: Phase) {
    if record.metric(phase, metric::SERVER_SYSCALLS).is_some() {
        let moved = [metric::SENT_BYTES, metric::RECEIVED_BYTES];
        let bytes = moved.iter().filter_map(|name| record.metric(phase, name));
        let bytes = bytes.sum();
        let name = phase.metric(metric::SERVER_SYSCALLS_BYTES);
        record.metrics.insert(name, bytes);
    }
}

/// The reason of a failure, with more behind it.
fn and(stop: Stop, more: &str) -> Stop {
    match stop {
        Stop::Failed { stage, reason } => Stop::Failed {
            stage,
            reason: format!("{reason}{more}"),
        },
        other => other,
    }
}

/// `; until then 1200 echoes right, 3 failed (reset 3)`, of a phase that a
/// dying server or lack of memory ended.
fn counts(phase: Phase, report: &PhaseReport) -> String {
    let count = |name: &str| report.metrics.get(name).copied().unwrap_or(0);
    let what = match phase {
        Phase::Connect => "connections opened",
        Phase::Warmup | Phase::Echo => "echoes right",
        Phase::Rate => "messages right",
        Phase::Bulk => "transfers right",
        Phase::Release => "connections closed",
    };
    let (succeeded, failed) = (count(metric::SUCCEEDED), count(metric::FAILED));
    let causes = verdict::failures(report);
    format!("; until then {succeeded} {what}, {failed} failed{causes}")
}

/// `; only 1 of 2000 connections was left`, of a phase that began with fewer
/// connections than the load has.
fn few_left(phase: Phase, report: &PhaseReport, connections: u32) -> Option<String> {
    let left = *report.metrics.get(metric::CONNECTIONS)?;
    let is_few = phase != Phase::Connect && (1..u64::from(connections)).contains(&left);
    is_few.then(|| {
        let were = if left == 1 { "was" } else { "were" };
        format!("; only {left} of {connections} connections {were} left")
    })
}

/// Goes on while the user wants to, memory is left, and all server processes live, or one
/// died so recently that the client may still tell what it saw.
fn watch<'a>(
    bench: &'a Bench<'_>,
    stand: &'a mut Stand,
    guard: &'a mut Guard,
) -> impl FnMut() -> ControlFlow<()> {
    let mut died: Option<Instant> = None;
    move || {
        if died.is_none() && stand.exited().is_some() {
            died = Some(Instant::now());
        }
        let give_up = died.is_some_and(|died| died.elapsed() > GRACE);
        match bench.interrupt.pressed() || give_up || guard.is_low() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Ends a trial that would use up the machine's memory.
pub struct Guard {
    /// Less must not be available; zero watches nothing.
    floor_bytes: u64,
    available_bytes: u64,
    looked: Instant,
}

impl Guard {
    /// For a load of many connections; fewer need none.
    pub fn of(bench: &Bench<'_>, load: &Load) -> Self {
        let is_needed = load.connections > bench.options.pilot_above;
        let floor_bytes = match is_needed {
            true => footprint::floor_bytes(bench.machine.memory_bytes),
            false => 0,
        };
        Self::new(floor_bytes)
    }

    fn new(floor_bytes: u64) -> Self {
        Self {
            floor_bytes,
            available_bytes: u64::MAX,
            looked: Instant::now(),
        }
    }

    fn is_low(&mut self) -> bool {
        if self.floor_bytes > 0 && self.looked.elapsed() >= LOOK {
            self.looked = Instant::now();
            // Where it cannot be seen, the prediction has to do.
            self.available_bytes = machine::available_bytes().unwrap_or(u64::MAX);
        }
        self.available_bytes < self.floor_bytes
    }

    fn reason(&self) -> Option<String> {
        let (available, floor) = (self.available_bytes, self.floor_bytes);
        (available < floor).then(|| {
            format!(
                "stopped with {} of memory available, which is below the {} that must stay free",
                footprint::shown(available),
                footprint::shown(floor),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn report(metrics: &[(String, u64)]) -> PhaseReport {
        PhaseReport {
            metrics: metrics.iter().cloned().collect(),
            ..PhaseReport::default()
        }
    }

    #[test]
    fn what_was_counted_until_a_phase_was_given_up_stands_in_the_reason() {
        let counted = report(&[
            (metric::SUCCEEDED.into(), 1_234_567),
            (metric::FAILED.into(), 703),
            (metric::failed_by("reset"), 700),
            (metric::failed_by("closed"), 3),
        ]);
        let died = Stop::failed("echo", "server process 2 of 3 died during echo");
        let Stop::Failed { stage, reason } = and(died, &counts(Phase::Echo, &counted)) else {
            panic!("it failed");
        };
        assert_eq!(stage, "echo");
        assert_eq!(
            reason,
            "server process 2 of 3 died during echo; \
             until then 1234567 echoes right, 703 failed (reset 700, closed 3)"
        );
        let nothing = counts(Phase::Connect, &report(&[]));
        assert_eq!(nothing, "; until then 0 connections opened, 0 failed");
    }

    #[test]
    fn a_phase_that_few_connections_were_left_for_says_how_many() {
        let left = |left| report(&[(metric::CONNECTIONS.into(), left)]);
        for (phase, connections, expected) in [
            (
                Phase::Rate,
                1,
                Some("; only 1 of 2000 connections was left"),
            ),
            (
                Phase::Echo,
                1999,
                Some("; only 1999 of 2000 connections were left"),
            ),
            (Phase::Rate, 2000, None),
            // Has its own reason.
            (Phase::Rate, 0, None),
            (Phase::Connect, 1, None),
        ] {
            let few = few_left(phase, &left(connections), 2000);
            assert_eq!(few.as_deref(), expected, "{phase} {connections}");
        }
    }

    #[test]
    fn a_trial_ends_before_the_memory_does_and_says_why() {
        let mut low = Guard::new(u64::MAX);
        assert_eq!((low.is_low(), low.reason()), (false, None));
        thread::sleep(LOOK);
        assert!(low.is_low());
        let reason = low.reason().unwrap();
        assert!(reason.starts_with("stopped with "), "{reason}");
        let mut plenty = Guard::new(1);
        thread::sleep(LOOK);
        assert_eq!((plenty.is_low(), plenty.reason()), (false, None));
    }
}
