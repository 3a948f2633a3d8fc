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
use known::Known;
use project::{Program, Project};
use serde::Serialize;
use std::time::Duration;
use wsbench_report::compare::LEVEL;

/// The server of `cli/examples/` that can be told to work more.
const KNOWN_SERVER: &str = "misbehave";

/// How much is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// Twenty runs of the same server twice, decided as in every report.
    Full,
    /// One run, decided so that no more than one of a thousand fails by chance.
    Short,
}

/// Rounds in which the slower server must be found.
const KNOWN_ROUNDS: u32 = 10;

impl Extent {
    fn equal(self) -> equal::Rules {
        match self {
            Self::Full => equal::Rules {
                runs: 20,
                rounds: 5,
                level: LEVEL,
                alarms_allowed: 4,
            },
            // The fewest rounds that reach such a level in two figures.
            Self::Short => equal::Rules {
                runs: 1,
                rounds: 8,
                level: 0.0005,
                alarms_allowed: 0,
            },
        }
    }

    /// Of a trial's echo phase.
    fn echo(self) -> Duration {
        match self {
            Self::Full => Duration::from_millis(1000),
            Self::Short => Duration::from_millis(200),
        }
    }

    /// How far from 10 % the known work may be.
    fn tolerance(self) -> f64 {
        match self {
            Self::Full => 0.01,
            Self::Short => 0.02,
        }
    }
}

/// What a self-test found.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// How much was done.
    pub extent: Extent,
    /// The same server twice.
    pub equal: Equal,
    /// The server with more work; not measured if the first part failed.
    pub known: Option<Known>,
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
    compile::ensure_built(root, subject)?;
    let twice = Program {
        command: subject.command(root)?,
        version: subject.program_version(root),
        language: subject.language.clone(),
    };
    let project = Project::new(root)?;
    project.set_trial(extent.echo())?;
    let equal = equal::repeat(&project, &twice, &extent.equal())?;
    let known = match equal.passed() {
        true => Some(find_known(root, &project, extent)?),
        false => None,
    };
    let passed = known.as_ref().is_some_and(|known| known.found);
    Ok(Outcome {
        extent,
        equal,
        known,
        passed,
    })
}

fn find_known(root: &Root, project: &Project, extent: Extent) -> anyhow::Result<Known> {
    note(format_args!("building {KNOWN_SERVER}"));
    let program = compile::build_example(root, KNOWN_SERVER)?;
    let plain = Program {
        command: vec![program.into()],
        version: KNOWN_SERVER.into(),
        language: "Rust".into(),
    };
    let server = known::Server::new(project, plain);
    let known = known::find(project, &server, KNOWN_ROUNDS, extent.tolerance())?;
    if known.found || extent == Extent::Full {
        return Ok(known);
    }
    note("the slower server was not found: looked for once more");
    known::find(project, &server, KNOWN_ROUNDS, extent.tolerance())
}

impl Outcome {
    /// The last lines for people.
    pub fn told(&self) -> Vec<String> {
        let mut lines = self.equal.told();
        lines.extend(self.known.iter().flat_map(Known::told));
        lines
    }
}

fn passed(passed: bool) -> &'static str {
    if passed { "passed" } else { "FAILED" }
}

/// `1.101 (1.090-1.112)`.
fn spread(ratio: Option<f64>, interval: Option<(f64, f64)>) -> String {
    let ratio = ratio.map_or_else(|| "-".into(), |ratio| format!("{ratio:.3}"));
    let interval = interval.map(|(low, high)| format!(" (95 %: {low:.3}-{high:.3})"));
    ratio + &interval.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_of_the_short_test_can_be_reached() {
        let rules = Extent::Short.equal();
        let rounds = rules.rounds as usize;
        // CPU time a message and TPS.
        let least = 2.0 * wsbench_report::compare::rank_sum::least_p(rounds, rounds);
        assert!(least <= rules.level, "{least}");
        assert!(rules.wrong_failure_probability() < 0.001);
    }

    #[test]
    fn the_full_test_has_the_rounds_that_its_report_needs() {
        let rules = Extent::Full.equal();
        let needed = wsbench_report::compare::rounds_needed(2);
        assert_eq!(rules.rounds as usize, needed);
        assert!(rules.wrong_failure_probability() < 0.003);
    }
}
