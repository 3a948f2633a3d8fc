//! How latency grows with the rate.

use super::{CHART, Subject, heading, latencies, number, percentile};
use crate::chart::{Axis, Chart, Figure, Line, Lines, Look};
use crate::stats::median;
use crate::units::Unit;
use std::collections::BTreeMap;
use wsbench_schema::Objective;

/// Lines of the picture, with that of the objective.
const LINES_MOST: usize = 12;

/// Latency of the strictest percentile against the rate, and the objective.
pub(super) fn chart(objective: &Objective, subjects: &[Subject<'_>]) -> Option<Chart> {
    let bound = objective.strictest()?;
    let mut lines: Vec<Line> = Vec::new();
    let mut shown: Vec<&Subject<'_>> = subjects.iter().collect();
    if shown.len() >= LINES_MOST {
        // The best ones and the yardstick, which stands last.
        let yardstick = shown.pop();
        shown.truncate(LINES_MOST - 2);
        shown.extend(yardstick);
    }
    // Whoever is better in another run looks the same.
    let mut places: Vec<&str> = subjects.iter().map(|subject| subject.name).collect();
    places.sort_unstable();
    let left_out = subjects.len() - shown.len();
    for subject in shown {
        let mut at: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for stage in subject.rounds.iter().flat_map(|round| &round.stages) {
            let latency = latencies(stage).and_then(|found| percentile(&found, bound.permille));
            at.entry(stage.rate_per_s).or_default().extend(latency);
        }
        let points = at
            .into_iter()
            .filter_map(|(rate, latencies)| Some((number(rate), median(latencies)?)));
        lines.push(Line {
            name: subject.name.to_owned(),
            points: points.collect(),
            beside: Vec::new(),
            look: Look::Subject(places.binary_search(&subject.name).unwrap_or(0)),
            tip: None,
        });
    }
    let rates = || {
        lines
            .iter()
            .flat_map(|line| line.points.iter().map(|point| point.0))
    };
    let (low, high) = (
        rates().min_by(f64::total_cmp)?,
        rates().max_by(f64::total_cmp)?,
    );
    let below = number(bound.below_ns);
    lines.push(Line {
        name: bound.to_string(),
        points: vec![(low, below), (high, below)],
        beside: Vec::new(),
        look: Look::Reference,
        tip: None,
    });
    let more = match left_out {
        0 => String::new(),
        left_out => format!(" Left out, as they hold less: {left_out}."),
    };
    let name = heading(bound.permille);
    Some(Chart {
        file: CHART.to_owned(),
        title: format!("{name} against rate"),
        about: format!(
            "Every stage of every round, from when a message was due; the level line is what must not be reached. Medians where a rate was measured more than once.{more}"
        ),
        figure: Figure::Lines(Lines {
            across: Axis::logarithmic("Messages a second", Unit::Count),
            up: Axis::logarithmic(&name, Unit::Duration),
            lines,
        }),
    })
}
