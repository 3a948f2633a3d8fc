//! The same server under two names must not be reported as different.

use super::project::{Program, Project, Run, rounds_of};
use super::{passed, risk, spread};
use crate::progress::note;
use anyhow::bail;
use serde::Serialize;
use wsbench_report::Difference;
use wsbench_report::compare::{LEVEL, Verdict, ratio};

/// Its names.
pub const NAMES: [&str; 2] = ["twin-a", "twin-b"];

/// How often, and what is a failure.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Rules {
    /// Runs to make.
    pub runs: u32,
    /// Rounds of each.
    pub rounds: u32,
    /// A run in which nothing differs alarms at most with this probability. At
    /// [`LEVEL`] the report decides, else the probabilities in it.
    pub level: f64,
    /// More runs that alarm are a failure.
    pub alarms_allowed: u32,
}

impl Rules {
    /// That a right harness fails, at most.
    pub fn wrong_failure_probability(&self) -> f64 {
        risk::more_than(self.alarms_allowed, self.runs, self.level)
    }

    /// Whether a run says that two equals differ, in one of so many figures.
    fn is_alarm(&self, difference: &Difference, figures: usize) -> bool {
        if self.level < LEVEL {
            return difference.answer.p * figures as f64 <= self.level;
        }
        matches!(difference.answer.verdict, Verdict::Different(_))
    }
}

/// What was found.
#[derive(Debug, Serialize)]
pub struct Equal {
    /// Name and version of the server.
    pub server: String,
    /// What was to be done.
    pub rules: Rules,
    /// See [`Rules::wrong_failure_probability`].
    pub wrong_failure_probability: f64,
    /// Runs in which the two were reported as different.
    pub alarms: u32,
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

/// Measures again and again, and counts the runs that say that the two differ in
/// anything.
pub fn repeat(project: &Project, server: &Program, rules: &Rules) -> anyhow::Result<Equal> {
    for name in NAMES {
        project.enter(name, server)?;
    }
    let (version, runs, rounds) = (&server.version, rules.runs, rules.rounds);
    let count = match runs {
        1 => "1 run".into(),
        _ => format!("{runs} runs"),
    };
    note(format_args!(
        "{version} under two names, {count} of {rounds} rounds: ratios, and how probable such a difference is by chance"
    ));
    let mut made = Vec::new();
    for number in 1..=runs {
        let run = project.run(&NAMES, rounds)?;
        let compared = compared(&run, rules)?;
        note(format_args!("{number:2}/{runs}  {}", line(&compared)));
        made.push((run, compared));
    }
    Ok(Equal::new(version, rules, made))
}

impl Equal {
    fn new(server: &str, rules: &Rules, made: Vec<(Run, Vec<Comparison>)>) -> Self {
        let (runs, compared): (Vec<_>, Vec<_>) = made.into_iter().unzip();
        let alarms = compared.iter().filter(|of_run| is_alarm(of_run)).count();
        Self {
            server: server.into(),
            rules: *rules,
            wrong_failure_probability: rules.wrong_failure_probability(),
            alarms: u32::try_from(alarms).unwrap_or(u32::MAX),
            comparisons: compared.into_iter().flatten().collect(),
            together: together(&runs),
        }
    }

    /// Whether the harness passed.
    pub fn passed(&self) -> bool {
        self.alarms <= self.rules.alarms_allowed
    }

    /// For people.
    pub fn told(&self) -> Vec<String> {
        let rules = &self.rules;
        let mut lines = vec![format!(
            "the same server twice ({}): {} of {} runs of {} rounds report a difference, {} may: {}",
            self.server,
            self.alarms,
            rules.runs,
            rules.rounds,
            rules.alarms_allowed,
            passed(self.passed()),
        )];
        for figure in &self.together {
            let spread = spread(figure.ratio, figure.interval);
            let figure = figure.figure;
            lines.push(format!(
                "  {figure}, one / the other, over all rounds: {spread}"
            ));
        }
        if !self.passed() {
            lines.push(format!(
                "  Something besides the server decides what is reported: with equal servers, {} alarms in {} runs have a \
                 probability of less than {:.2} %. Do not trust differences measured here; look for what else runs on \
                 these CPUs, and try again.",
                self.alarms,
                rules.runs,
                self.wrong_failure_probability * 100.0,
            ));
        }
        lines
    }
}

fn is_alarm(of_run: &[Comparison]) -> bool {
    of_run.iter().any(|comparison| comparison.is_alarm)
}

/// Every figure of the two in a run.
fn compared(run: &Run, rules: &Rules) -> anyhow::Result<Vec<Comparison>> {
    let pair = run.pair(NAMES[0], NAMES[1]);
    if pair.is_empty() {
        bail!("the report of run {} compares nothing", run.name);
    }
    let mut comparisons = Vec::new();
    for difference in &pair {
        if let Verdict::TooFewRounds { needed } = difference.answer.verdict {
            bail!(
                "run {} has too few rounds with figures to say anything ({needed} needed)",
                run.name
            );
        }
        let [one, other] = NAMES.map(|name| rounds_of(difference, name));
        comparisons.push(Comparison {
            run: run.name.clone(),
            figure: difference.measure.name,
            ratio: ratio::of_medians(one, other),
            p: difference.answer.p,
            adjusted_p: difference.answer.adjusted_p,
            verdict: difference.verdict(),
            is_alarm: rules.is_alarm(difference, pair.len()),
        });
    }
    Ok(comparisons)
}

/// One line: `Server CPU/msg 1.003 (p 0.42)  TPS 0.998 (p 0.69)`.
fn line(comparisons: &[Comparison]) -> String {
    let mut words: Vec<String> = comparisons
        .iter()
        .map(|found| {
            let ratio = found
                .ratio
                .map_or_else(|| "-".into(), |ratio| format!("{ratio:.3}"));
            format!("{} {ratio} (p {:.3})", found.figure, found.p)
        })
        .collect();
    if is_alarm(comparisons) {
        words.push("ALARM".into());
    }
    words.join("  ")
}

/// The rounds of all runs in one sample.
fn together(runs: &[Run]) -> Vec<Together> {
    let pairs: Vec<Vec<&Difference>> = runs
        .iter()
        .map(|run| run.pair(NAMES[0], NAMES[1]))
        .collect();
    let Some(first) = pairs.first() else {
        return Vec::new();
    };
    let figures = first.iter().map(|difference| difference.measure.name);
    figures
        .map(|figure| {
            let [one, other] = NAMES.map(|name| -> Vec<f64> {
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

#[cfg(test)]
mod tests {
    use super::super::project::testing;
    use super::*;

    const RULES: Rules = Rules {
        runs: 20,
        rounds: 5,
        level: LEVEL,
        alarms_allowed: 4,
    };

    fn run(one: &[u64], other: &[u64]) -> Run {
        testing::run([(NAMES[0], one), (NAMES[1], other)])
    }

    fn judged(runs: Vec<Run>, rules: &Rules) -> anyhow::Result<Equal> {
        let made = runs.into_iter().map(|run| {
            let compared = compared(&run, rules)?;
            Ok((run, compared))
        });
        let made: anyhow::Result<Vec<_>> = made.collect();
        Ok(Equal::new("floor 0.1.0", rules, made?))
    }

    #[test]
    fn five_runs_of_twenty_that_tell_the_twins_apart_are_a_failure_and_four_are_not() {
        for (alarms, failed) in [(4, false), (5, true)] {
            let runs = (0..20).map(|number| match number < alarms {
                true => run(&[80, 81, 82, 83, 84], &[90, 91, 92, 93, 94]),
                false => run(&[80, 82, 84, 86, 88], &[81, 83, 85, 87, 89]),
            });
            let equal = judged(runs.collect(), &RULES).unwrap();
            assert_eq!((equal.alarms, equal.passed()), (alarms, !failed));
            // Two figures in each; TPS is the same in all of them.
            assert_eq!((equal.comparisons.len(), equal.together.len()), (40, 2));
            let told = equal.told();
            let end = match failed {
                true => "5 of 20 runs of 5 rounds report a difference, 4 may: FAILED",
                false => "4 of 20 runs of 5 rounds report a difference, 4 may: passed",
            };
            assert!(told[0].ends_with(end), "{told:?}");
            assert_eq!(
                told.iter().any(|line| line.contains("Do not trust")),
                failed
            );
        }
    }

    #[test]
    fn a_stricter_level_than_the_reports_is_that_of_the_probabilities() {
        let strict = Rules {
            runs: 1,
            rounds: 8,
            level: 0.0005,
            alarms_allowed: 0,
        };
        let low = [80, 81, 82, 83, 84, 85, 86, 87];
        let apart = judged(vec![run(&low, &low.map(|cpu| cpu + 8))], &strict).unwrap();
        assert!(!apart.passed());
        // One pair the other way round: 2 x 2 / 12870 x 2 figures.
        let mut nearly = low.map(|cpu| cpu + 8);
        nearly[0] = 86;
        nearly[1] = 86;
        let nearly = judged(vec![run(&low, &nearly)], &strict).unwrap();
        assert!(nearly.passed(), "{:?}", nearly.comparisons);
        assert_eq!(nearly.comparisons[0].verdict, "better");
    }

    #[test]
    fn too_few_rounds_are_no_pass() {
        let few = run(&[80, 81, 82], &[80, 81, 82]);
        let error = judged(vec![few], &RULES).unwrap_err().to_string();
        assert_eq!(
            error,
            "run a has too few rounds with figures to say anything (5 needed)"
        );
    }
}
