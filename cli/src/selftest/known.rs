//! A server with a known 10 % more CPU work a message must be found slower.
//!
//! The work is arithmetic, so that it takes longer where everything takes longer.
//! How much is 10 % is found by a pilot run; what it really was is computed from
//! what the server itself logged, not from what the runner measured of it.

use super::project::{Program, Project, Run, rounds_of};
use crate::progress::note;
use anyhow::{Context as _, bail};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use wsbench_report::Difference;
use wsbench_report::compare::{Direction, Verdict, ratio};
use wsbench_report::differences::MEASURES;
use wsbench_report::stats::median;

/// The server as it is, and the same under another name.
pub const PLAIN: &str = "plain";
/// See [`PLAIN`].
pub const TWIN: &str = "plain-twin";
const SLOWER: &str = "slower";

/// The work that is added, of the CPU time a message of the plain server.
pub const SHARE: f64 = 0.10;
/// How far from that it may be.
const SHARE_TOLERANCE: f64 = 0.01;
/// Runs until it is as near as that.
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
    pub rounds: u32,
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
    others: &[&str],
    rounds: u32,
) -> anyhow::Result<(Known, Run)> {
    for name in [&[PLAIN], others].concat() {
        project.enter(name, &server.plain)?;
    }
    let (run, work_ns) = measure(project, server, &[PLAIN, SLOWER], PILOT_STEPS, PILOT_ROUNDS)?;
    let plain_ns = cpu_of_plain_ns(&run)?;
    note(format_args!(
        "pilot: {plain} takes {:.2} us of CPU time a message, {PILOT_STEPS} steps of work take {:.2} us",
        plain_ns / 1000.0,
        work_ns / 1000.0,
        plain = server.plain.version,
    ));
    let mut steps = steps_for(plain_ns, work_ns, PILOT_STEPS);
    let servers = [&[PLAIN, SLOWER], others].concat();
    let mut shares = Vec::new();
    for _ in 0..ATTEMPTS {
        let (run, work_ns) = measure(project, server, &servers, steps, rounds)?;
        let plain_ns = cpu_of_plain_ns(&run)?;
        let share = work_ns / plain_ns;
        if (share - SHARE).abs() <= SHARE_TOLERANCE {
            return Ok((judged(&run, server, rounds, share)?, run));
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
        SHARE_TOLERANCE * 100.0,
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
    servers: &[&str],
    steps: u64,
    rounds: u32,
) -> anyhow::Result<(Run, f64)> {
    project.enter(SLOWER, &server.with_work(steps))?;
    if server.log.exists() {
        fs::remove_file(&server.log)
            .with_context(|| format!("cannot remove {}", server.log.display()))?;
    }
    let run = project.run(servers, rounds)?;
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

fn judged(run: &Run, server: &Server, rounds: u32, known_share: f64) -> anyhow::Result<Known> {
    let difference = cpu(run)?;
    let [slower, plain] = [SLOWER, PLAIN].map(|name| rounds_of(difference, name));
    let more = match difference.subject == SLOWER {
        true => Direction::More,
        false => Direction::Less,
    };
    Ok(Known {
        server: server.plain.version.clone(),
        rounds,
        known_share,
        ratio: ratio::of_medians(slower, plain),
        interval: ratio::interval(slower, plain),
        p: difference.answer.p,
        adjusted_p: difference.answer.adjusted_p,
        found: difference.answer.verdict == Verdict::Different(more),
    })
}
