//! All that is seen of a server from outside in a phase, in the order in which it must
//! be taken: what is slow to read first and last, the edges next to what they bound.

use super::inside::{Figures, Inside};
use super::origin::Origin;
use crate::observe::{LocalObserver, Observer};
use crate::run::syscalls::Counter;
use std::path::PathBuf;
use wsbench_sampler::busy_ns;
use wsbench_schema::{Edge, Phase, Sample, metric};

/// Watches one server through its phases.
pub struct Sight {
    observer: LocalObserver,
    inside: Inside,
    /// In the pass for it, system calls are counted: where perf may write.
    perf: Option<PathBuf>,
    pids: Vec<u32>,
    counter: Option<Counter>,
    /// Of the server's CPUs, when the phase began.
    busy_ns: u64,
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
    pub fn new(observer: LocalObserver, inside: Inside, perf: Option<PathBuf>) -> Self {
        Self {
            observer,
            inside,
            perf,
            pids: Vec::new(),
            counter: None,
            busy_ns: 0,
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
        self.busy_ns = busy_ns(self.observer.server_cpus())?;
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
        let busy = busy_ns(self.observer.server_cpus());
        let origin_cpu_ns = origin.map(Origin::end);
        let syscalls = counter.map(Counter::finish);
        let inside = self.inside.end(phase, &self.pids);
        let (end, samples) = edge?;
        let mut figures = inside?;
        let busy_ns = busy?.saturating_sub(self.busy_ns);
        figures.push((metric::SERVER_CPUS_BUSY, busy_ns));
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
