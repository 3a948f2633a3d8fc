//! A client: its shards, and the edges of its phases.

pub mod clock;
pub mod dial;
pub mod net;
pub mod pace;
pub mod shard;
pub mod slot;
pub mod timer;

use crate::EngineError;
use crate::protocol::template::Templates;
use crate::protocol::websocket::WebSocket;
use crate::workload::Outcome;
use crate::workload::connect::Connect;
use crate::workload::echo::{Echo, EchoShare};
use crate::workload::rate::{Batching, Rate, RateShare};
use clock::{now_ns, process_cpu_ns};
use dial::Route;
use pace::Limiter;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use shard::{Counters, Shard};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use wsbench_schema::{Load, Phase, PhaseReport, Progress, Target, encode_histogram, metric};

/// A phase as a shard is told to run it: its part of everything is in it.
enum Order {
    Connect(Box<Connect>),
    Echo(Box<EchoShare>),
    Rate(Box<RateShare>),
}

struct Command {
    order: Order,
    start_ns: u64,
}

struct Report {
    outcome: io::Result<Outcome>,
    open: u32,
}

struct Worker {
    orders: Option<Sender<Command>>,
    reports: Receiver<Report>,
    thread: Option<JoinHandle<()>>,
    counters: Arc<Counters>,
    connections: u32,
    first_number: u32,
    open: u32,
}

/// One client: all its connections, on all its CPUs.
pub struct Engine {
    load: Load,
    route: Arc<Route>,
    seed: u64,
    frame_bytes: usize,
    workers: Vec<Worker>,
    stop: Arc<AtomicBool>,
    stopped: bool,
}

/// Part `index` of `total` split over `parts`; the remainder goes to the first ones.
fn share(total: u64, parts: usize, index: usize) -> u64 {
    let parts = parts as u64;
    total / parts + u64::from((index as u64) < total % parts)
}

/// The CPUs that this process may use.
fn allowed_cpus() -> Result<Vec<usize>, EngineError> {
    let failed = |error: rustix::io::Errno| {
        EngineError::System("read the CPU affinity".into(), error.into())
    };
    let set = sched_getaffinity(None).map_err(failed)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .collect())
}

impl Engine {
    /// Makes the frames, checks the limits, starts a shard on each allowed CPU.
    ///
    /// # Errors
    /// If the load is invalid, the host unknown, or the machine's limits too low.
    pub fn prepare(load: Load, target: &Target, seed: u64) -> Result<Self, EngineError> {
        load.validate().map_err(EngineError::Load)?;
        crate::limits::allow_connections(load.connections)?;
        let route = Arc::new(Route::plan(target, load.connections)?);
        let mut templates = Templates::new(load.message, load.payload_bytes as usize, 1, seed);
        let frame_bytes = templates.sent_len();
        if let Some(rate) = &load.rate {
            let batch = batching(&load, rate, frame_bytes).batch;
            if batch > 1 {
                templates = Templates::new(load.message, load.payload_bytes as usize, batch, seed);
            }
        }
        let templates = Arc::new(templates);
        let mut cpus = allowed_cpus()?;
        // A shard without a connection would only wait.
        cpus.truncate(load.connections as usize);
        let stop = Arc::new(AtomicBool::new(false));
        let mut workers = Vec::new();
        let mut first_number = 0;
        for (index, cpu) in cpus.iter().enumerate() {
            let connections = share(load.connections.into(), cpus.len(), index) as u32;
            let socket = WebSocket::new(
                Arc::clone(&templates),
                load.check,
                target.host.clone(),
                target.path.clone(),
            );
            let shard = Shard::new(socket, connections)
                .map_err(|error| EngineError::System("make an epoll".into(), error))?;
            workers.push(Worker::start(
                shard,
                *cpu,
                connections,
                first_number,
                Arc::clone(&stop),
            )?);
            first_number += connections;
        }
        Ok(Self {
            load,
            route,
            seed,
            frame_bytes,
            workers,
            stop,
            stopped: false,
        })
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
        if self.stopped {
            return Err(EngineError::Load(
                "the client was stopped; no phase can follow".into(),
            ));
        }
        let open_at_start = self.open();
        let start_ns = at_ns.unwrap_or_else(now_ns).max(now_ns());
        let orders = self.orders(phase, start_ns)?;
        let total = self.total(phase);
        for worker in &self.workers {
            worker.counters.done.store(0, Ordering::Relaxed);
            worker.counters.failed.store(0, Ordering::Relaxed);
        }
        sleep_until(start_ns);
        let cpu_before = process_cpu_ns();
        let window_start = now_ns();
        for (worker, order) in self.workers.iter().zip(orders) {
            let command = Command { order, start_ns };
            let sent = worker
                .orders
                .as_ref()
                .is_some_and(|orders| orders.send(command).is_ok());
            if !sent {
                return Err(EngineError::Shard("it has ended".into()));
            }
        }
        let mut outcome = Outcome::default();
        let mut next_line = window_start + 1_000_000_000;
        for index in 0..self.workers.len() {
            let report = loop {
                if stop.load(Ordering::Relaxed) {
                    self.stop.store(true, Ordering::Relaxed);
                    self.stopped = true;
                }
                match self.workers[index]
                    .reports
                    .recv_timeout(Duration::from_millis(50))
                {
                    Ok(report) => break report,
                    Err(RecvTimeoutError::Timeout) if now_ns() >= next_line => {
                        next_line += 1_000_000_000;
                        progress(self.progress(phase, total));
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(EngineError::Shard("its thread panicked".into()));
                    }
                }
            };
            self.workers[index].open = report.open;
            let part = report
                .outcome
                .map_err(|error| EngineError::System("wait for events".into(), error))?;
            outcome
                .merge(part)
                .map_err(|error| EngineError::Shard(format!("histogram: {error:?}")))?;
        }
        let window = now_ns() - window_start;
        let cpu = process_cpu_ns() - cpu_before;
        progress(self.progress(phase, total));
        if phase != Phase::Connect {
            outcome
                .counts
                .entry(metric::CONNECTIONS.into())
                .or_insert(open_at_start.into());
        }
        let end = if outcome.last_success_ns > 0 {
            outcome.last_success_ns
        } else {
            now_ns()
        };
        let mut report = PhaseReport {
            metrics: outcome.counts,
            ..PhaseReport::default()
        };
        let mut figure = |name: &str, value: u64| report.metrics.insert(name.into(), value);
        figure(metric::ELAPSED, end.saturating_sub(start_ns));
        figure(metric::CLIENT_CPU, cpu);
        figure(metric::CLIENT_WINDOW, window);
        figure(metric::CLIENT_CPUS, self.workers.len() as u64);
        match (phase, &self.load.rate) {
            (Phase::Connect, _) => {
                let concurrency = self.load.dial.concurrency.min(self.load.connections);
                figure(metric::CONCURRENCY, concurrency.into());
            }
            (Phase::Rate, Some(rate)) => {
                let duration = rate.duration_ms * 1_000_000;
                figure(metric::DURATION, duration);
                figure(metric::DRAIN, end.saturating_sub(start_ns + duration));
                figure(
                    metric::BATCH,
                    batching(&self.load, rate, self.frame_bytes).batch.into(),
                );
            }
            _ => {}
        }
        for (name, histogram) in outcome.histograms {
            report
                .histograms
                .insert(name.into(), encode_histogram(&histogram));
        }
        Ok(report)
    }

    fn progress(&self, phase: Phase, total: u64) -> Progress {
        let sum = |counter: fn(&Counters) -> u64| {
            self.workers
                .iter()
                .map(|worker| counter(&worker.counters))
                .sum()
        };
        Progress {
            phase,
            done: sum(|counters| counters.done.load(Ordering::Relaxed)),
            failed: sum(|counters| counters.failed.load(Ordering::Relaxed)),
            total,
        }
    }

    /// What the progress of a phase goes towards.
    fn total(&self, phase: Phase) -> u64 {
        match (phase, &self.load.echo, &self.load.rate) {
            (Phase::Warmup, Some(echo), _) => echo.warmup_echoes,
            (Phase::Echo, Some(echo), _) => echo.echoes,
            (Phase::Rate, _, Some(rate)) => {
                let senders = self.senders(rate.connections);
                (rate_per_s(rate, senders) * rate.duration_ms as f64 / 1000.0) as u64
            }
            _ => self.load.connections.into(),
        }
    }

    fn senders(&self, asked: u32) -> u32 {
        if asked == 0 {
            self.open()
        } else {
            asked.min(self.open())
        }
    }

    /// Each shard's part of a phase.
    fn orders(&self, phase: Phase, start_ns: u64) -> Result<Vec<Order>, EngineError> {
        let not_in_load = || EngineError::Load(format!("the load has no {phase} phase"));
        match phase {
            Phase::Connect => Ok(self.connect_orders()),
            Phase::Warmup | Phase::Echo => {
                let echo = self.load.echo.as_ref().ok_or_else(not_in_load)?;
                Ok(self.echo_orders(echo, phase == Phase::Warmup, start_ns))
            }
            Phase::Rate => {
                let rate = self.load.rate.as_ref().ok_or_else(not_in_load)?;
                Ok(self.rate_orders(rate, start_ns))
            }
        }
    }

    fn connect_orders(&self) -> Vec<Order> {
        let shards = self.workers.len();
        let order = |(index, worker): (usize, &Worker)| {
            let concurrency = share(self.load.dial.concurrency.into(), shards, index).max(1) as u32;
            let connect = Connect::new(
                Arc::clone(&self.route),
                &self.load.dial,
                worker.connections,
                worker.first_number,
                concurrency,
                self.seed,
            );
            Order::Connect(Box::new(connect))
        };
        self.workers.iter().enumerate().map(order).collect()
    }

    /// Echoes go to the shards in proportion to what they may have in flight.
    fn echo_orders(
        &self,
        echo: &wsbench_schema::EchoLoad,
        warmup: bool,
        start_ns: u64,
    ) -> Vec<Order> {
        let open: Vec<u64> = self
            .workers
            .iter()
            .map(|worker| worker.open.into())
            .collect();
        let all: u64 = open.iter().sum();
        let concurrency = match u64::from(echo.concurrency) {
            0 => all,
            asked => asked.min(all),
        };
        let in_flight = apportion(concurrency, &open);
        let total = if warmup {
            echo.warmup_echoes
        } else {
            echo.echoes
        };
        // With no connection left the first shard reports all of them as not sent.
        let echoes = if concurrency == 0 {
            apportion_to_first(total, open.len())
        } else {
            apportion(total, &in_flight)
        };
        let until_ns = match echo.duration_ms {
            Some(ms) if !warmup => Some(start_ns.saturating_add(ms.saturating_mul(1_000_000))),
            _ => None,
        };
        let order = |(echoes, in_flight): (u64, u64)| {
            let part = if total == 0 {
                0.0
            } else {
                echoes as f64 / total as f64
            };
            let per_s = echo.limit_per_s as f64 * part;
            Order::Echo(Box::new(EchoShare {
                echoes,
                concurrency: in_flight as u32,
                until_ns,
                timeout_ns: echo.timeout_ms.saturating_mul(1_000_000),
                limit: (per_s > 0.0 && !warmup).then(|| Limiter::new(per_s, start_ns)),
                burn_ns: self.load.client_burn_ns,
            }))
        };
        echoes.into_iter().zip(in_flight).map(order).collect()
    }

    fn rate_orders(&self, rate: &wsbench_schema::RateLoad, start_ns: u64) -> Vec<Order> {
        let senders = self.senders(rate.connections);
        let open: Vec<u64> = self
            .workers
            .iter()
            .map(|worker| worker.open.into())
            .collect();
        let batching = batching(&self.load, rate, self.frame_bytes);
        let per_s = rate_per_s(rate, senders);
        let interval_ns =
            f64::from(batching.batch) * f64::from(senders.max(1)) * 1e9 / per_s.max(1e-9);
        let order = |(index, senders): (usize, u64)| {
            Order::Rate(Box::new(RateShare {
                senders: senders as u32,
                batching,
                interval_ns,
                start_ns,
                duration_ns: rate.duration_ms.saturating_mul(1_000_000),
                timeout_ns: rate.timeout_ms.saturating_mul(1_000_000),
                seed: self.seed.wrapping_add(index as u64),
                burn_ns: self.load.client_burn_ns,
            }))
        };
        apportion(senders.into(), &open)
            .into_iter()
            .enumerate()
            .map(order)
            .collect()
    }
}

/// Messages a second in all: what the senders ask for, or the limit if lower.
fn rate_per_s(rate: &wsbench_schema::RateLoad, senders: u32) -> f64 {
    let asked = f64::from(rate.per_connection_per_s) * f64::from(senders);
    match rate.limit_per_s {
        0 => asked,
        limit => asked.min(limit as f64),
    }
}

fn batching(_load: &Load, rate: &wsbench_schema::RateLoad, frame_bytes: usize) -> Batching {
    Batching::of(
        frame_bytes,
        rate.batch_bytes,
        rate.per_connection_per_s,
        rate.window,
    )
}

fn apportion_to_first(total: u64, parts: usize) -> Vec<u64> {
    (0..parts)
        .map(|index| if index == 0 { total } else { 0 })
        .collect()
}

/// Splits `total` in proportion to `weights`, without losing a remainder and
/// without giving to a weight of zero.
fn apportion(total: u64, weights: &[u64]) -> Vec<u64> {
    let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    if sum == 0 {
        return vec![0; weights.len()];
    }
    let (mut seen, mut given) = (0u128, 0u64);
    let part = |weight: &u64| {
        seen += u128::from(*weight);
        let until = (u128::from(total) * seen / sum) as u64;
        let part = until - given;
        given = until;
        part
    };
    weights.iter().map(part).collect()
}

fn sleep_until(at_ns: u64) {
    let now = now_ns();
    if at_ns > now {
        std::thread::sleep(Duration::from_nanos(at_ns - now));
    }
}

impl Worker {
    fn start(
        shard: Shard<WebSocket>,
        cpu: usize,
        connections: u32,
        first_number: u32,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, EngineError> {
        let (orders, inbox) = channel::<Command>();
        let (outbox, reports) = channel();
        let counters = Arc::new(Counters::default());
        let theirs = Arc::clone(&counters);
        let body = move || serve(shard, cpu, &inbox, &outbox, &theirs, &stop);
        let thread = std::thread::Builder::new()
            .name(format!("shard-{cpu}"))
            .spawn(body)
            .map_err(|error| EngineError::System("start a thread".into(), error))?;
        Ok(Self {
            orders: Some(orders),
            reports,
            thread: Some(thread),
            counters,
            connections,
            first_number,
            open: 0,
        })
    }
}

/// A shard's thread: runs phases until nobody orders any more.
fn serve(
    mut shard: Shard<WebSocket>,
    cpu: usize,
    orders: &Receiver<Command>,
    reports: &Sender<Report>,
    counters: &Counters,
    stop: &AtomicBool,
) {
    let mut set = CpuSet::new();
    set.set(cpu);
    // Pinning is a courtesy to the caches: where it is refused, the scheduler places the thread.
    let _ = sched_setaffinity(None, &set);
    while let Ok(Command { order, start_ns }) = orders.recv() {
        sleep_until(start_ns);
        let outcome = match order {
            Order::Connect(connect) => shard.run(*connect, counters, stop),
            Order::Echo(share) => shard.run(Echo::new(*share), counters, stop),
            Order::Rate(share) => shard.run(Rate::new(*share), counters, stop),
        };
        let open = shard.open();
        if reports.send(Report { outcome, open }).is_err() {
            break;
        }
    }
    shard.close();
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for worker in &mut self.workers {
            worker.orders = None;
        }
        for worker in &mut self.workers {
            if let Some(thread) = worker.thread.take() {
                // A panic was reported by the phase in which it happened.
                let _ = thread.join();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_in_a_split() {
        for (total, weights) in [
            (10, vec![3, 3, 3]),
            (7, vec![0, 5, 1]),
            (1, vec![9, 9]),
            (0, vec![1]),
        ] {
            let parts = apportion(total, &weights);
            assert_eq!(parts.iter().sum::<u64>(), total);
            assert!(
                parts
                    .iter()
                    .zip(&weights)
                    .all(|(part, weight)| *weight > 0 || *part == 0)
            );
        }
        assert_eq!(apportion(5, &[0, 0]), [0, 0]);
        assert_eq!(
            (0..3).map(|index| share(10, 3, index)).collect::<Vec<_>>(),
            [4, 3, 3]
        );
    }
}
