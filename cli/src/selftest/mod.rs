//! Does the harness tell the truth about differences? It is made to measure
//! servers of which the truth is known: the same one twice, and one with 10 % more
//! work. The servers are entered in a project of their own and measured by
//! `wsbench run`, as users do it; nothing here measures anything by itself.

mod equal;
mod known;
mod project;
mod risk;

use crate::compile;
use crate::progress::note;
use crate::root::Root;
use crate::subject::Catalog;
use equal::Equal;
use known::{Known, SHARE};
use project::{Program, Project};
use serde::Serialize;
use std::time::Duration;
use wsbench_report::compare::LEVEL;

/// The server of `cli/examples/` that can be told to work more.
const KNOWN_SERVER: &str = "misbehave";

/// How long it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// Twenty runs of the same server twice, one of the slower one.
    Full,
    /// One run for both, and no wrong failure in a thousand.
    Short,
}

/// Rounds in which the slower server must be found.
const KNOWN_ROUNDS: u32 = 10;
/// Of the full test: runs of the same server twice, rounds of each, and the runs
/// that may report a difference.
const EQUAL_RUNS: u32 = 20;
const EQUAL_ROUNDS: u32 = 5;
const EQUAL_ALARMS: u32 = 4;
const FULL_ECHO: Duration = Duration::from_millis(1000);

/// In the short test the same server twice is one comparison, and an alarm only
/// if it is this improbable, all figures together: it must not fail by chance.
const SHORT_LEVEL: f64 = 0.0005;
const SHORT_ECHO: Duration = Duration::from_millis(200);
/// Runs of the short test in which the slower server may be found: once it was
/// not, by chance, it is looked for again.
const SHORT_TRIES: u32 = 2;

/// What a self-test found.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// How much was done.
    pub extent: Extent,
    /// The same server twice.
    pub equal: Equal,
    /// The server with more work.
    pub known: Known,
    /// Whether both are as they should be.
    pub passed: bool,
}

/// Tests the harness; `server` is the subject that is entered twice.
///
/// # Errors
/// If something cannot be built or measured. That it is measured wrongly is no
/// error but the outcome.
pub fn test(root: &Root, server: &str, extent: Extent) -> anyhow::Result<Outcome> {
    let catalog = Catalog::discover(root)?;
    let subject = catalog.find(server)?;
    if extent == Extent::Full {
        compile::ensure_built(root, subject)?;
    }
    note(format_args!("building {KNOWN_SERVER}"));
    let program = compile::build_example(root, KNOWN_SERVER)?;
    let known_server = Program {
        command: vec![program.into()],
        version: KNOWN_SERVER.into(),
        language: "Rust".into(),
    };
    let project = Project::new(root)?;
    let known_server = known::Server::new(&project, known_server);
    let (equal, known) = match extent {
        Extent::Full => {
            let twice = Program {
                command: subject.command(root)?,
                version: subject.program_version(root),
                language: subject.language.clone(),
            };
            full(&project, &twice, &known_server)?
        }
        Extent::Short => short(&project, &known_server)?,
    };
    let passed = equal.passed() && known.found;
    Ok(Outcome {
        extent,
        equal,
        known,
        passed,
    })
}

fn full(
    project: &Project,
    twice: &Program,
    slower: &known::Server,
) -> anyhow::Result<(Equal, Known)> {
    project.set_trial(FULL_ECHO)?;
    note(format_args!(
        "{} under two names, {EQUAL_RUNS} runs of {EQUAL_ROUNDS} rounds: ratios, and how probable such a difference is by chance",
        twice.version
    ));
    let equal = equal::repeat(project, twice, EQUAL_RUNS, EQUAL_ROUNDS, EQUAL_ALARMS)?;
    let (known, _) = known::find(project, slower, &[], KNOWN_ROUNDS)?;
    Ok((equal, known))
}

fn short(project: &Project, server: &known::Server) -> anyhow::Result<(Equal, Known)> {
    project.set_trial(SHORT_ECHO)?;
    let names = [known::PLAIN, known::TWIN];
    let mut tries = 1;
    loop {
        let (known, run) = known::find(project, server, &[known::TWIN], KNOWN_ROUNDS)?;
        if !known.found && tries < SHORT_TRIES {
            note("the slower server was not found: looked for again");
            tries += 1;
            continue;
        }
        let figures = run.pair(names[0], names[1]).len().max(1);
        let level = SHORT_LEVEL / figures as f64;
        let comparisons = equal::compared(&run, names, |pair| pair.answer.p <= level)?;
        let alarm = comparisons.iter().any(|comparison| comparison.is_alarm);
        note(format_args!("{}", equal::told(&comparisons, alarm)));
        let equal = Equal {
            server: known.server.clone(),
            runs: 1,
            rounds: KNOWN_ROUNDS,
            level: SHORT_LEVEL,
            alarms: u32::from(alarm),
            alarms_allowed: 0,
            wrong_failure_probability: SHORT_LEVEL,
            comparisons,
            together: equal::together(std::slice::from_ref(&run), names),
        };
        return Ok((equal, known));
    }
}

impl Outcome {
    /// The last lines for people.
    pub fn told(&self) -> Vec<String> {
        let (equal, known) = (&self.equal, &self.known);
        let passed = |passed: bool| if passed { "passed" } else { "FAILED" };
        let plural = |count: u32, what: &str| match count {
            1 => format!("1 {what}"),
            _ => format!("{count} {what}s"),
        };
        let mut lines = vec![format!(
            "the same server twice ({}): {} in {} of {} rounds, at most {} allowed: {}",
            equal.server,
            plural(equal.alarms, "alarm"),
            plural(equal.runs, "run"),
            equal.rounds,
            equal.alarms_allowed,
            passed(equal.passed()),
        )];
        for figure in &equal.together {
            lines.push(format!(
                "  {} of one / of the other, all rounds together: {}",
                figure.figure,
                spread(figure.ratio, figure.interval)
            ));
        }
        lines.push(format!(
            "{:.1} % more work a message ({}): CPU time a message {} times as much over {} rounds, {}: {}",
            known.known_share * 100.0,
            known.server,
            spread(known.ratio, known.interval),
            known.rounds,
            match known.found {
                true => "found to be worse",
                false => "not found to be worse",
            },
            passed(known.found),
        ));
        lines.extend(self.explained());
        lines
    }

    /// What a failure means.
    fn explained(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.equal.passed() {
            lines.push(format!(
                "Something besides the server decides what is reported: at a level of {} % a right harness has more than \
                 {} alarms in {} with a probability of at most {:.2} %. Do not trust differences measured here; \
                 look for what else runs on these CPUs, and run it again.",
                self.equal.level * 100.0,
                self.equal.alarms_allowed,
                self.equal.runs,
                self.equal.wrong_failure_probability * 100.0,
            ));
        }
        if !self.known.found {
            lines.push(format!(
                "A difference of {:.0} % is not seen here at a level of {} % (p {:.3}, adjusted {:.3}): this machine is \
                 noisier than the rounds can bear. Stop what else runs here, or use more rounds.",
                SHARE * 100.0,
                LEVEL * 100.0,
                self.known.p,
                self.known.adjusted_p,
            ));
        }
        lines
    }
}

/// `1.101 (1.090-1.112)`.
fn spread(ratio: Option<f64>, interval: Option<(f64, f64)>) -> String {
    let ratio = ratio.map_or_else(|| "-".into(), |ratio| format!("{ratio:.3}"));
    let interval = interval.map(|(low, high)| format!(" (95 %: {low:.3}-{high:.3})"));
    ratio + &interval.unwrap_or_default()
}
