//! The same server under two names must not be reported as different.

use super::project::{Program, Project, Run, rounds_of};
use super::risk;
use crate::progress::note;
use anyhow::bail;
use serde::Serialize;
use wsbench_report::Difference;
use wsbench_report::compare::{LEVEL, Verdict, ratio};

/// Its names.
pub const NAMES: [&str; 2] = ["twin-a", "twin-b"];

/// What was found.
#[derive(Debug, Serialize)]
pub struct Equal {
    /// Name and version of the server.
    pub server: String,
    /// Runs that were made.
    pub runs: u32,
    /// Rounds of each.
    pub rounds: u32,
    /// Probability of an alarm of a run in which nothing differs, at most.
    pub level: f64,
    /// Runs in which the two were reported as different.
    pub alarms: u32,
    /// More of them are a failure.
    pub alarms_allowed: u32,
    /// Probability that a right harness has more of them, at most.
    pub wrong_failure_probability: f64,
    /// Every comparison.
    pub comparisons: Vec<Comparison>,
    /// All rounds of all runs together, in each figure.
    pub together: Vec<Together>,
}

/// The two in one figure of one run.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// The run's name.
    pub run: String,
    /// The figure.
    pub figure: &'static str,
    /// First name / second name.
    pub ratio: Option<f64>,
    /// See [`wsbench_report::compare::Answer`].
    pub p: f64,
    /// See `p`.
    pub adjusted_p: f64,
    /// In the words of the report.
    pub verdict: String,
    /// Whether that is an alarm.
    pub is_alarm: bool,
}

/// A figure over all runs: what a bias too small for one run would show in.
#[derive(Debug, Serialize)]
pub struct Together {
    /// The figure.
    pub figure: &'static str,
    /// First name / second name.
    pub ratio: Option<f64>,
    /// Bootstrap interval of 95 %.
    pub interval: Option<(f64, f64)>,
}

impl Equal {
    /// Whether the harness passed.
    pub fn passed(&self) -> bool {
        self.alarms <= self.alarms_allowed
    }
}

/// Measures again and again, and counts the runs whose report says, at the level
/// at which every report says it, that the two differ in anything.
pub fn repeat(
    project: &Project,
    server: &Program,
    runs: u32,
    rounds: u32,
    alarms_allowed: u32,
) -> anyhow::Result<Equal> {
    for name in NAMES {
        project.enter(name, server)?;
    }
    let mut made = Vec::new();
    let mut equal = Equal {
        server: server.version.clone(),
        runs,
        rounds,
        level: LEVEL,
        alarms: 0,
        alarms_allowed,
        wrong_failure_probability: risk::more_than(alarms_allowed, runs, LEVEL),
        comparisons: Vec::new(),
        together: Vec::new(),
    };
    for number in 1..=runs {
        let run = project.run(&NAMES, rounds)?;
        let is_alarm =
            |difference: &Difference| matches!(difference.answer.verdict, Verdict::Different(_));
        let compared = compared(&run, NAMES, is_alarm)?;
        let alarm = compared.iter().any(|comparison| comparison.is_alarm);
        equal.alarms += u32::from(alarm);
        note(format_args!(
            "{number:2}/{runs}  {}",
            told(&compared, alarm)
        ));
        equal.comparisons.extend(compared);
        made.push(run);
    }
    equal.together = together(&made, NAMES);
    Ok(equal)
}

/// Every figure of the two in a run.
pub fn compared(
    run: &Run,
    names: [&str; 2],
    is_alarm: impl Fn(&Difference) -> bool,
) -> anyhow::Result<Vec<Comparison>> {
    let pair = run.pair(names[0], names[1]);
    if pair.is_empty() {
        bail!("the report of run {} compares nothing", run.name);
    }
    let mut comparisons = Vec::new();
    for difference in pair {
        if let Verdict::TooFewRounds { needed } = difference.answer.verdict {
            bail!(
                "run {} has too few rounds with figures ({needed} needed): this says nothing",
                run.name
            );
        }
        let [one, other] = names.map(|name| rounds_of(difference, name));
        comparisons.push(Comparison {
            run: run.name.clone(),
            figure: difference.measure.name,
            ratio: ratio::of_medians(one, other),
            p: difference.answer.p,
            adjusted_p: difference.answer.adjusted_p,
            verdict: difference.verdict(),
            is_alarm: is_alarm(difference),
        });
    }
    Ok(comparisons)
}

/// One line: `Server CPU/msg 1.003 (p 0.42)  TPS 0.998 (p 0.69)`.
pub fn told(comparisons: &[Comparison], alarm: bool) -> String {
    let mut words: Vec<String> = comparisons
        .iter()
        .map(|found| {
            let ratio = found
                .ratio
                .map_or_else(|| "-".into(), |ratio| format!("{ratio:.3}"));
            format!("{} {ratio} (p {:.3})", found.figure, found.p)
        })
        .collect();
    if alarm {
        words.push("ALARM".into());
    }
    words.join("  ")
}

/// The rounds of all runs in one sample.
pub fn together(runs: &[Run], names: [&str; 2]) -> Vec<Together> {
    let pairs: Vec<Vec<&Difference>> = runs
        .iter()
        .map(|run| run.pair(names[0], names[1]))
        .collect();
    let Some(first) = pairs.first() else {
        return Vec::new();
    };
    let figures = first.iter().map(|difference| difference.measure.name);
    figures
        .map(|figure| {
            let [one, other] = names.map(|name| -> Vec<f64> {
                let of_figure = pairs.iter().flatten();
                let of_figure = of_figure.filter(|difference| difference.measure.name == figure);
                of_figure
                    .flat_map(|difference| rounds_of(difference, name))
                    .copied()
                    .collect()
            });
            Together {
                figure,
                ratio: ratio::of_medians(&one, &other),
                interval: ratio::interval(&one, &other),
            }
        })
        .collect()
}
