//! All that is seen of a server from outside in a phase, in the order in which it must
//! be taken: what is slow to read first and last, the edges next to what they bound.

use super::inside::{Figures, Inside};
use super::origin::Origin;
use crate::observe::{LocalObserver, Observer};
use crate::run::syscalls::Counter;
use std::path::PathBuf;
use wsbench_sampler::{Host, own_cpu_ns};
use wsbench_schema::{CpuMap, Edge, Phase, Sample, metric};

/// Watches one server through its phases.
pub struct Sight {
    observer: LocalObserver,
    inside: Inside,
    /// In the pass for it, system calls are counted: where perf may write.
    perf: Option<PathBuf>,
    pids: Vec<u32>,
    counter: Option<Counter>,
    around: Around,
}

/// What else happens on the machine.
struct Around {
    /// CPUs of server and client.
    cpus: Vec<u32>,
    /// Those of the server.
    server: Vec<u32>,
    /// Whether the runner may run on one of them.
    has_runner: bool,
    before: Option<(Host, u64)>,
}

impl Around {
    fn of(map: &CpuMap) -> Self {
        let mut cpus = [&map.server[..], &map.client].concat();
        cpus.sort_unstable();
        cpus.dedup();
        Self {
            has_runner: map.runner.iter().any(|cpu| cpus.contains(cpu)),
            cpus,
            server: map.server.clone(),
            before: None,
        }
    }

    fn begin(&mut self) -> anyhow::Result<()> {
        self.before = Some((Host::read(&self.cpus, &self.server)?, own_cpu_ns()));
        Ok(())
    }

    fn end(&mut self) -> anyhow::Result<Figures> {
        let now = Host::read(&self.cpus, &self.server)?;
        let Some((before, runner_ns)) = self.before.take() else {
            return Ok(Figures::new());
        };
        let mut figures = vec![
            (
                metric::SERVER_CPUS_BUSY,
                now.server_cpus_ns.saturating_sub(before.server_cpus_ns),
            ),
            (metric::HOST_CPUS, self.cpus.len() as u64),
            (
                metric::HOST_BUSY,
                now.busy_ns.saturating_sub(before.busy_ns),
            ),
            (
                metric::HOST_STEAL,
                now.steal_ns.saturating_sub(before.steal_ns),
            ),
        ];
        if self.has_runner {
            figures.push((metric::RUNNER_CPU, own_cpu_ns().saturating_sub(runner_ns)));
        }
        for (name, now, before) in [
            (
                metric::HOST_CPU_PRESSURE,
                now.cpu_pressure_ns,
                before.cpu_pressure_ns,
            ),
            (
                metric::HOST_MEMORY_PRESSURE,
                now.memory_pressure_ns,
                before.memory_pressure_ns,
            ),
        ] {
            let since = now
                .zip(before)
                .map(|(now, before)| now.saturating_sub(before));
            figures.extend(since.map(|value| (name, value)));
        }
        Ok(figures)
    }
}

/// Of a phase, when it is over.
pub struct Seen {
    /// The edge after `done`.
    pub end: Edge,
    /// Readings between the edges.
    pub samples: Vec<Sample>,
    /// Everything else.
    pub figures: Figures,
}

impl Sight {
    /// Counts the system calls too if `perf` is a file that it may write.
    pub fn new(
        observer: LocalObserver,
        inside: Inside,
        perf: Option<PathBuf>,
        cpus: &CpuMap,
    ) -> Self {
        Self {
            observer,
            inside,
            perf,
            pids: Vec::new(),
            counter: None,
            around: Around::of(cpus),
        }
    }

    /// Before a phase: the edge before `go`, and what is known by then.
    ///
    /// # Errors
    /// If a process is gone or cannot be read, or perf does not count.
    pub fn begin(
        &mut self,
        phase: Phase,
        origin: Option<&mut Origin>,
    ) -> anyhow::Result<(Edge, Figures)> {
        self.pids = self.observer.pids();
        let figures = self.inside.begin(phase, &self.pids)?;
        let is_measured = !matches!(phase, Phase::Connect | Phase::Warmup);
        if let Some(perf) = self.perf.as_ref().filter(|_| is_measured) {
            self.counter = Some(Counter::attach(&self.pids, perf.clone())?);
        }
        if let Some(origin) = origin {
            origin.begin()?;
        }
        self.around.begin()?;
        Ok((self.observer.begin(phase)?, figures))
    }

    /// After a phase.
    ///
    /// # Errors
    /// As [`Sight::begin`].
    pub fn end(&mut self, phase: Phase, origin: Option<&mut Origin>) -> anyhow::Result<Seen> {
        let counter = self.counter.take();
        // All of them, whatever one of them says: nothing may be left running.
        let edge = self.observer.end(phase);
        let around = self.around.end();
        let origin_cpu_ns = origin.map(Origin::end);
        let syscalls = counter.map(Counter::finish);
        let inside = self.inside.end(phase, &self.pids);
        let (end, samples) = edge?;
        let mut figures = inside?;
        figures.extend(around?);
        for (name, value) in [
            (metric::ORIGIN_CPU, origin_cpu_ns),
            (metric::SERVER_SYSCALLS, syscalls),
        ] {
            if let Some(value) = value.transpose()? {
                figures.push((name, value));
            }
        }
        Ok(Seen {
            end,
            samples,
            figures,
        })
    }
}
