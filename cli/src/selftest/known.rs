//! A server with a known 10 % more CPU work a message must be found slower.
//!
//! The work is arithmetic, so that it takes longer where everything takes longer.
//! How much is 10 % is found by a pilot run; what it really was is computed from
//! what the server itself logged, not from what the runner measured of it.

use super::project::{Program, Project, Run, rounds_of};
use super::{passed, spread};
use crate::progress::note;
use anyhow::{Context as _, bail};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use wsbench_report::Difference;
use wsbench_report::compare::{Direction, LEVEL, Verdict, ratio};
use wsbench_report::differences::MEASURES;
use wsbench_report::stats::median;

/// Names of the server as it is, and with more work.
const PLAIN: &str = "plain";
const SLOWER: &str = "slower";

/// The work that is added, of the CPU time a message of the plain server.
const SHARE: f64 = 0.10;
/// Runs until it is as near to that as it should be.
const ATTEMPTS: u32 = 3;
/// Of the pilot: about a microsecond.
const PILOT_STEPS: u64 = 1000;
const PILOT_ROUNDS: u32 = 2;

/// What was found.
#[derive(Debug, Serialize)]
pub struct Known {
    /// Name and version of the server.
    pub server: String,
    /// Rounds of the run.
    pub rounds: usize,
    /// Work added / CPU time a message of the plain server, as the server logged it.
    pub known_share: f64,
    /// CPU time a message, slower / plain.
    pub ratio: Option<f64>,
    /// Bootstrap interval of 95 %.
    pub interval: Option<(f64, f64)>,
    /// See [`wsbench_report::compare::Answer`].
    pub p: f64,
    /// See `p`.
    pub adjusted_p: f64,
    /// Whether the report says that it takes more CPU time a message.
    pub found: bool,
}

/// The server with its switches.
#[derive(Debug)]
pub struct Server {
    plain: Program,
    log: PathBuf,
}

impl Server {
    /// Of the program `misbehave`; it logs into the project's folder.
    pub fn new(project: &Project, plain: Program) -> Self {
        let log = project.path("work.log");
        Self { plain, log }
    }

    fn with_work(&self, steps: u64) -> Program {
        let payload = super::project::PAYLOAD.to_string();
        let steps = steps.to_string();
        let mut slower = self.plain.clone();
        let switches = [
            "--only-bytes",
            &payload,
            "--work-each-steps",
            &steps,
            "--log",
        ];
        slower.command.extend(switches.map(Into::into));
        slower.command.push(self.log.clone().into());
        slower
    }
}

/// Measures until the added work is known to be what it should be.
///
/// # Errors
/// If it never is, or nothing can be measured.
pub fn find(
    project: &Project,
    server: &Server,
    rounds: u32,
    tolerance: f64,
) -> anyhow::Result<Known> {
    project.enter(PLAIN, &server.plain)?;
    let (run, work_ns) = measure(project, server, PILOT_STEPS, PILOT_ROUNDS)?;
    let plain_ns = cpu_of_plain_ns(&run)?;
    note(format_args!(
        "pilot: {plain} takes {:.2} us of CPU time a message, {PILOT_STEPS} steps of work take {:.2} us",
        plain_ns / 1000.0,
        work_ns / 1000.0,
        plain = server.plain.version,
    ));
    let mut steps = steps_for(plain_ns, work_ns, PILOT_STEPS);
    let mut shares = Vec::new();
    for _ in 0..ATTEMPTS {
        let (run, work_ns) = measure(project, server, steps, rounds)?;
        let plain_ns = cpu_of_plain_ns(&run)?;
        let share = work_ns / plain_ns;
        if (share - SHARE).abs() <= tolerance {
            return judged(&run, &server.plain.version, share);
        }
        note(format_args!(
            "the work added was {:.1} % and should be {:.0} %: again with another amount",
            share * 100.0,
            SHARE * 100.0
        ));
        shares.push(format!("{:.1} %", share * 100.0));
        steps = steps_for(plain_ns, work_ns, steps);
    }
    bail!(
        "the work added was {} of the CPU time a message, and never within {:.0} % of {:.0} %: \
         this machine is not steady enough (stop what else runs here)",
        shares.join(", "),
        tolerance * 100.0,
        SHARE * 100.0
    )
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of steps"
)]
fn steps_for(plain_ns: f64, work_ns: f64, steps: u64) -> u64 {
    (plain_ns * SHARE / work_ns * steps as f64).round() as u64
}

/// A run, and what the work took at the median.
fn measure(
    project: &Project,
    server: &Server,
    steps: u64,
    rounds: u32,
) -> anyhow::Result<(Run, f64)> {
    project.enter(SLOWER, &server.with_work(steps))?;
    if server.log.exists() {
        fs::remove_file(&server.log)
            .with_context(|| format!("cannot remove {}", server.log.display()))?;
    }
    let run = project.run(&[PLAIN, SLOWER], rounds)?;
    let work_ns = median_of_lines(&server.log)?;
    Ok((run, work_ns))
}

fn median_of_lines(log: &Path) -> anyhow::Result<f64> {
    let text = fs::read_to_string(log).with_context(|| format!("cannot read {}", log.display()))?;
    let lines: Result<Vec<f64>, _> = text.lines().map(str::parse).collect();
    let lines = lines.with_context(|| format!("{} is not all numbers", log.display()))?;
    let middle = median(lines).filter(|median| *median > 0.0);
    middle.with_context(|| format!("no work stands in {}", log.display()))
}

/// CPU time a message in the closed loop.
fn cpu(run: &Run) -> anyhow::Result<&Difference> {
    let figure = MEASURES[0].name;
    let mut pair = run.pair(PLAIN, SLOWER).into_iter();
    pair.find(|difference| difference.measure.name == figure)
        .with_context(|| format!("run {} has no {figure} of both", run.name))
}

fn cpu_of_plain_ns(run: &Run) -> anyhow::Result<f64> {
    let rounds = rounds_of(cpu(run)?, PLAIN);
    median(rounds.iter().copied()).context("no round of the plain server has figures")
}

fn judged(run: &Run, server: &str, known_share: f64) -> anyhow::Result<Known> {
    let difference = cpu(run)?;
    let [slower, plain] = [SLOWER, PLAIN].map(|name| rounds_of(difference, name));
    let more = match difference.subject == SLOWER {
        true => Direction::More,
        false => Direction::Less,
    };
    Ok(Known {
        server: server.into(),
        rounds: slower.len().min(plain.len()),
        known_share,
        ratio: ratio::of_medians(slower, plain),
        interval: ratio::interval(slower, plain),
        p: difference.answer.p,
        adjusted_p: difference.answer.adjusted_p,
        found: difference.answer.verdict == Verdict::Different(more),
    })
}

impl Known {
    /// For people.
    pub fn told(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{:.1} % more work a message ({}), {} rounds: CPU time a message {} times as much, {}: {}",
            self.known_share * 100.0,
            self.server,
            self.rounds,
            spread(self.ratio, self.interval),
            match self.found {
                true => "reported as worse",
                false => "not reported as worse",
            },
            passed(self.found),
        )];
        if !self.found {
            lines.push(format!(
                "  Such a difference is not seen here (p {:.3}, adjusted {:.3}, level {LEVEL}): this machine is noisier \
                 than the rounds can bear. Stop what else runs here, or measure more rounds.",
                self.p, self.adjusted_p,
            ));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::super::project::testing;
    use super::*;

    const PLAIN_NS: [u64; 10] = [2000, 2010, 2020, 2030, 2040, 2050, 2060, 2070, 2080, 2090];

    fn known(slower: [u64; 10]) -> Known {
        let run = testing::run([(PLAIN, &PLAIN_NS), (SLOWER, &slower)]);
        judged(&run, "misbehave", 0.099).unwrap()
    }

    #[test]
    fn only_more_cpu_time_counts_as_found() {
        let more = known(PLAIN_NS.map(|cpu| cpu * 11 / 10));
        assert!(more.found, "{more:?}");
        let ratio = more.ratio.unwrap();
        assert!((1.09..1.11).contains(&ratio), "{ratio}");
        let told = more.told().remove(0);
        let begin = "9.9 % more work a message (misbehave), 10 rounds: CPU time a message 1.100 (";
        assert!(told.starts_with(begin), "{told}");
        assert!(told.ends_with("reported as worse: passed"), "{told}");
        for other in [PLAIN_NS, PLAIN_NS.map(|cpu| cpu * 9 / 10)] {
            let other = known(other);
            assert!(!other.found, "{other:?}");
            assert_eq!(other.told().len(), 2);
        }
    }

    #[test]
    fn the_amount_of_work_follows_from_the_pilot() {
        // 1,000 steps took 1 us, a message takes 20 us.
        assert_eq!(steps_for(20_000.0, 1000.0, 1000), 2000);
    }

    #[test]
    fn a_log_without_work_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("work.log");
        let read = |text: &str| {
            fs::write(&log, text).unwrap();
            median_of_lines(&log)
        };
        assert_eq!(read("3\n1\n2\n").unwrap(), 2.0);
        assert!(read("").unwrap_err().to_string().starts_with("no work"));
        assert!(
            read("1\nx\n")
                .unwrap_err()
                .to_string()
                .ends_with("all numbers")
        );
    }
}
