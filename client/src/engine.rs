//! A client: its shards, and the edges of its phases.

pub mod clock;
pub mod dial;
pub mod net;
pub mod orders;
pub mod pace;
pub mod shard;
pub mod slot;
pub mod start;
pub mod timer;
pub mod worker;

use crate::EngineError;
use crate::workload::Outcome;
use clock::{now_ns, process_cpu_ns};
use dial::Route;
use orders::RatePlan;
use shard::Counters;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use worker::{Order, Worker, sleep_until};
use wsbench_schema::{Load, Part, Phase, PhaseReport, Progress, Target, encode_histogram, metric};

/// How often a running phase looks whether it must stop.
const STOP_CHECK: Duration = Duration::from_millis(100);
const SECOND_NS: u64 = 1_000_000_000;

/// One client: all its connections, on all its CPUs.
pub struct Engine {
    load: Load,
    route: Arc<Route>,
    seed: u64,
    frame_bytes: usize,
    workers: Vec<Worker>,
    stop: Arc<AtomicBool>,
}

fn names<V>(figures: BTreeMap<&'static str, V>) -> BTreeMap<String, V> {
    let named = figures.into_iter();
    named
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

impl Engine {
    /// Makes the frames, checks the limits, starts a shard on each allowed CPU.
    ///
    /// # Errors
    /// If the load is invalid, the host unknown, or the machine's limits too low.
    pub fn prepare(load: Load, target: &Target, seed: u64) -> Result<Self, EngineError> {
        let most = load.connections;
        Self::prepare_part(load, most, target, seed, Part::WHOLE)
    }

    /// The same for one of several client processes, whose share `load` is,
    /// and with room for the connections of loads that will extend it.
    ///
    /// # Errors
    /// As [`Engine::prepare`].
    pub fn prepare_part(
        load: Load,
        most_connections: u32,
        target: &Target,
        seed: u64,
        part: Part,
    ) -> Result<Self, EngineError> {
        load.validate().map_err(EngineError::Load)?;
        let room = most_connections.max(load.connections);
        crate::limits::allow_connections(room)?;
        let route = Arc::new(Route::plan(target, room, part)?);
        let stop = Arc::new(AtomicBool::new(false));
        let (frame_bytes, workers) = start::start(&load, room, target, &route, seed, &stop)?;
        Ok(Self {
            load,
            route,
            seed,
            frame_bytes,
            workers,
            stop,
        })
    }

    /// Takes up the next load of a ramp: more connections to the same server,
    /// beside those that are open.
    ///
    /// # Errors
    /// If the load is invalid, does not go on where this one stops, sends other
    /// messages, or has more connections than there is room for.
    pub fn extend(&mut self, load: Load) -> Result<(), EngineError> {
        load.validate().map_err(EngineError::Load)?;
        let room: u32 = self.workers.iter().map(|worker| worker.room).sum();
        let sends = |load: &Load| {
            (
                load.transport,
                load.bulk.is_some(),
                load.message,
                load.payload_bytes,
                load.check,
                load.rate.clone(),
            )
        };
        let refusal = if self.load.release.is_some() {
            "connections were closed at the end of this load; no step can follow".into()
        } else if load.after_connections != self.load.connections {
            let (after, have) = (load.after_connections, self.load.connections);
            format!("the next step begins with {after} connections, but {have} were asked for")
        } else if load.connections > room {
            format!(
                "{} connections, but there is room for {room}",
                load.connections
            )
        } else if sends(&load) != sends(&self.load) {
            "the next step sends other messages than those that are made".into()
        } else {
            self.load = load;
            return Ok(());
        };
        Err(EngineError::Load(refusal))
    }

    /// One for each CPU that this process may use.
    #[must_use]
    pub fn shards(&self) -> u32 {
        self.workers.len() as u32
    }

    /// Connections that can carry messages now.
    #[must_use]
    pub fn open(&self) -> u32 {
        self.workers.iter().map(|worker| worker.open).sum()
    }

    /// The phases of the load in the order in which [`Engine::run`] takes them.
    #[must_use]
    pub fn phases(&self) -> Vec<Phase> {
        let warms_up = self
            .load
            .echo
            .as_ref()
            .is_some_and(|echo| echo.warmup_echoes > 0);
        let is_run = |phase: &Phase| match phase {
            Phase::Connect => true,
            Phase::Warmup => warms_up,
            Phase::Echo => self.load.echo.is_some(),
            Phase::Rate => self.load.rate.is_some(),
            Phase::Bulk => self.load.bulk.is_some(),
            Phase::Release => self.load.release.is_some(),
        };
        Phase::ALL.into_iter().filter(is_run).collect()
    }

    /// Runs a phase to its end: nothing is in flight when it returns. Begins at
    /// `at_ns` of `CLOCK_MONOTONIC`, or at once. `progress` is called about
    /// once a second. When `stop` becomes true the phase ends early; what was
    /// measured until then is returned, and no other phase can be run.
    ///
    /// # Errors
    /// If a shard cannot go on (epoll or a thread failed), if the phase is not
    /// one of [`Engine::phases`], or after a stop.
    pub fn run(
        &mut self,
        phase: Phase,
        at_ns: Option<u64>,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<PhaseReport, EngineError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(EngineError::Load(
                "the client was stopped; no phase can follow".into(),
            ));
        }
        let now = now_ns();
        // One that is late to a start in step counts from that start, like the others.
        let start_ns = at_ns.unwrap_or(now);
        let open_before = self.open();
        let orders = self.orders(phase, start_ns)?;
        for worker in &self.workers {
            worker.counters.reset();
        }
        sleep_until(start_ns);
        let (cpu_before, window_before) = (process_cpu_ns(), now_ns());
        for (worker, order) in self.workers.iter().zip(orders) {
            worker.begin(order, start_ns)?;
        }
        let outcome = self.gather(phase, stop, progress)?;
        let window_ns = now_ns() - window_before;
        let cpu_ns = process_cpu_ns() - cpu_before;
        let mut report = self.report(phase, start_ns, open_before, outcome);
        let mut figure = |name: &str, value| report.metrics.insert(name.into(), value);
        figure(metric::CLIENT_CPU, cpu_ns);
        figure(metric::CLIENT_WINDOW, window_ns);
        figure(metric::CLIENT_CPUS, self.workers.len() as u64);
        if phase != Phase::Connect {
            report
                .metrics
                .entry(metric::CONNECTIONS.into())
                .or_insert(open_before.into());
        }
        Ok(report)
    }

    /// Each shard's part of a phase.
    fn orders(&self, phase: Phase, start_ns: u64) -> Result<Vec<Order>, EngineError> {
        let (workers, load) = (&self.workers, &self.load);
        match (phase, &load.echo, &load.rate) {
            (Phase::Bulk, _, _) if let Some(bulk) = &load.bulk => {
                let first = self.route.first();
                Ok(orders::bulk(workers, load, bulk, first, start_ns))
            }
            (Phase::Release, _, _) if let Some(release) = &load.release => {
                Ok(orders::release(workers, release))
            }
            (Phase::Connect, _, _) => Ok(orders::connect(workers, &self.route, load, self.seed)),
            (Phase::Warmup | Phase::Echo, Some(echo), _) => {
                let warmup = phase == Phase::Warmup;
                Ok(orders::echo(
                    workers,
                    echo,
                    warmup,
                    load.client_burn_ns,
                    start_ns,
                ))
            }
            (Phase::Rate, _, Some(rate)) => {
                let plan = RatePlan::new(rate, self.open(), self.frame_bytes);
                Ok(orders::rate(
                    workers, &plan, load, rate, self.seed, start_ns,
                ))
            }
            _ => Err(EngineError::Load(format!("the load has no {phase} phase"))),
        }
    }

    /// Waits for every shard, telling the progress meanwhile.
    fn gather(
        &mut self,
        phase: Phase,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, EngineError> {
        let mut next_line_ns = now_ns() + SECOND_NS;
        let mut all = Outcome::default();
        for index in 0..self.workers.len() {
            let part = loop {
                if stop.load(Ordering::Relaxed) {
                    self.stop_shards();
                }
                if let Some(part) = self.workers[index].wait(STOP_CHECK)? {
                    break part;
                }
                if now_ns() >= next_line_ns {
                    next_line_ns += SECOND_NS;
                    progress(self.progress(phase));
                }
            };
            all.merge(part)
                .map_err(|error| EngineError::Shard(format!("its histogram: {error:?}")))?;
        }
        progress(self.progress(phase));
        Ok(all)
    }

    fn stop_shards(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.workers.iter().for_each(Worker::wake);
    }

    /// Names and figures that the shards cannot know alone.
    fn report(&self, phase: Phase, start_ns: u64, open: u32, outcome: Outcome) -> PhaseReport {
        let end_ns = if outcome.last_success_ns > 0 {
            outcome.last_success_ns
        } else {
            now_ns()
        };
        let mut report = PhaseReport {
            metrics: outcome.counts,
            series: names(outcome.series),
            intervals: (outcome.parts.iter())
                .map(|(name, parts)| ((*name).to_owned(), parts.encoded()))
                .collect(),
            ..PhaseReport::default()
        };
        let mut figure = |name: &str, value| report.metrics.insert(name.into(), value);
        figure(metric::ELAPSED, end_ns.saturating_sub(start_ns));
        match (phase, &self.load.rate) {
            (Phase::Connect, _) => {
                let concurrency = self.load.dial.concurrency.min(self.load.dials());
                figure(metric::CONCURRENCY, concurrency.into());
            }
            (Phase::Rate, Some(rate)) => {
                let duration_ns = rate.duration_ms.saturating_mul(1_000_000);
                let plan = RatePlan::new(rate, open, self.frame_bytes);
                figure(metric::DURATION, duration_ns);
                figure(metric::DRAIN, end_ns.saturating_sub(start_ns + duration_ns));
                figure(metric::BATCH, plan.batching.batch.into());
            }
            _ => {}
        }
        report.metrics.extend(names(outcome.largest));
        for (name, histogram) in outcome.histograms {
            report
                .histograms
                .insert(name.into(), encode_histogram(&histogram));
        }
        report
    }

    fn progress(&self, phase: Phase) -> Progress {
        let sum = |counter: fn(&Counters) -> &std::sync::atomic::AtomicU64| {
            self.workers
                .iter()
                .map(|worker| counter(&worker.counters).load(Ordering::Relaxed))
                .sum()
        };
        Progress {
            phase,
            done: sum(|counters| &counters.done),
            failed: sum(|counters| &counters.failed),
            total: sum(|counters| &counters.planned),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop_shards();
        self.workers.iter_mut().for_each(Worker::dismiss);
        self.workers.iter_mut().for_each(Worker::join);
    }
}
