//! Watches a server on this host.

use super::Observer;
use super::order::PhaseOrder;
use anyhow::Context as _;
use std::time::Duration;
use wsbench_sampler::{SeriesSampler, Tree};
use wsbench_schema::{Edge, Phase, Sample};

/// Reads process trees of this host, as one. Its readings run on the CPUs of the thread
/// that calls [`Observer::begin`].
#[derive(Debug)]
pub struct LocalObserver {
    pids: Vec<u32>,
    cpus: Vec<u32>,
    interval: Duration,
    // The same for all phases: what died between two of them stays in the sum.
    tree: Tree,
    order: PhaseOrder,
    series: Option<SeriesSampler>,
}

impl LocalObserver {
    /// Watches these processes and all their descendants, a sample every `interval`.
    ///
    /// # Errors
    /// If one of the processes is not there.
    pub fn new(pids: Vec<u32>, cpus: Vec<u32>, interval: Duration) -> anyhow::Result<Self> {
        Ok(Self {
            tree: Tree::of_all(&pids)?,
            pids,
            cpus,
            interval,
            order: PhaseOrder::default(),
            series: None,
        })
    }
}

impl LocalObserver {
    /// The processes as the last edge found them.
    pub fn pids(&self) -> Vec<u32> {
        self.tree.pids()
    }
}

impl Observer for LocalObserver {
    fn begin(&mut self, phase: Phase) -> anyhow::Result<Edge> {
        self.order.begin(phase)?;
        // The edge last: its figures are those of the instant of `go`.
        self.series = Some(SeriesSampler::start_all(&self.pids, self.interval)?);
        Ok(self.tree.edge()?)
    }

    fn end(&mut self, phase: Phase) -> anyhow::Result<(Edge, Vec<Sample>)> {
        self.order.end(phase)?;
        // The edge first: the instant of `done`.
        let edge = self.tree.edge();
        let series = self.series.take().context("no series was begun")?;
        let samples = series.stop()?;
        Ok((edge?, samples))
    }

    fn server_cpus(&self) -> &[u32] {
        &self.cpus
    }
}

#[cfg(test)]
mod tests {
    use super::super::OutOfOrder;
    use super::*;
    use std::process::{Child, Command};

    /// Killed when dropped.
    struct Sh(Child);

    impl Sh {
        fn new(script: &str) -> Self {
            Self(Command::new("sh").args(["-c", script]).spawn().unwrap())
        }
    }

    impl Drop for Sh {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    #[test]
    fn a_busy_process_is_seen_between_the_edges() {
        let busy = Sh::new("while :; do :; done");
        let interval = Duration::from_millis(200);
        let mut observer = LocalObserver::new(vec![busy.0.id()], vec![0], interval).unwrap();
        let begin = observer.begin(Phase::Echo).unwrap();
        std::thread::sleep(Duration::from_millis(700));
        let (end, samples) = observer.end(Phase::Echo).unwrap();
        // Its share of a busy machine is unknown, but it used some and no more than there was.
        let cpu_ns = end.cpu_ns - begin.cpu_ns;
        let wall_ns = end.at_ns - begin.at_ns;
        assert!(wall_ns >= 700_000_000, "{wall_ns}");
        assert!(
            cpu_ns > 20_000_000 && cpu_ns <= wall_ns + 5_000_000,
            "{cpu_ns} of {wall_ns}"
        );
        assert!(end.rss_bytes > 0 && end.processes == 1);
        assert!((1..=3).contains(&samples.len()), "{samples:?}");
        let idle = observer.begin(Phase::Rate);
        assert!(idle.unwrap().cpu_ns >= end.cpu_ns);
    }

    #[test]
    fn phases_out_of_order_are_told_apart_from_a_server_that_is_gone() {
        let sleeper = Sh::new("exec sleep 60");
        let interval = Duration::from_secs(1);
        let mut observer = LocalObserver::new(vec![sleeper.0.id()], vec![0], interval).unwrap();
        let error = observer.end(Phase::Echo).unwrap_err();
        assert!(error.downcast_ref::<OutOfOrder>().is_some(), "{error:#}");
        observer.begin(Phase::Echo).unwrap();
        drop(sleeper);
        let error = observer.end(Phase::Echo).unwrap_err();
        assert!(error.downcast_ref::<OutOfOrder>().is_none(), "{error:#}");
        assert!(error.to_string().contains("is gone"), "{error:#}");
    }
}
