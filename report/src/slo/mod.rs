//! The highest rate that each subject holds under an objective, how it was found, and how
//! latency grows with the rate.

mod curve;
mod stages;
#[cfg(test)]
mod tests;

use crate::document::Block;
use crate::latency::Latency;
use crate::row::Cell;
use crate::stats::median;
use crate::table::{Grid, Line};
use crate::units::{Unit, counted};
use std::collections::BTreeMap;
use wsbench_schema::mark::{NOISY, client_busy_permille, server_busy_permille};
use wsbench_schema::{
    Bound, Limit, Load, Objective, Phase, SloOutcome, SloRecord, SloStage, TrialRecord,
    decode_histogram, latency_histogram, metric,
};

/// The name of the table's file or sheet.
pub const FILE: &str = "slo";
/// What stands above it.
pub const TITLE: &str = "Max rate under SLO";
/// Of the picture.
pub(crate) const CHART: &str = "latency-against-rate";
/// The least that an echo can cost: no competitor.
const YARDSTICK: &str = "floor";

/// What the columns mean.
pub const DEFINITIONS: [&str; 8] = [
    "**Max rate**: messages a second over all connections (open loop) at which the objective was held in a longer stage of its own, the median over rounds. Each round searches anew.",
    "**Min - Max**: the lowest and the highest round.",
    "**Limit**: `server`, the server missed the objective above it; `client`, the client could not load the server any more, so the server can do *at least* this; `highest`, no higher rate is tried; `none`, no rate was found. Of several rounds with different limits all are named.",
    "**Found**: rounds in which a rate was found, of those that ended.",
    "**Missed at**: the lowest rate that was missed above it, the median over rounds; `client`-bound ones included.",
    "**Latencies**: of the stages that confirmed it, all rounds merged, from when a message was due to its answer.",
    "**Server CPU/msg**: the server's CPU time in those stages, for each message; median over rounds. **Server busy**, **Client busy**: share of their CPUs' time.",
    "**Stages**: all that were measured, each with a fresh server process; they stand in a table of their own.",
];

/// One subject's rounds.
struct Subject<'a> {
    name: &'a str,
    rounds: Vec<&'a SloRecord>,
}

impl<'a> Subject<'a> {
    /// The highest median first, the yardstick last.
    fn all(records: &'a [SloRecord]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for record in records {
            let name = record.subject.name.as_str();
            match all.iter_mut().find(|subject| subject.name == name) {
                Some(subject) => subject.rounds.push(record),
                None => all.push(Self {
                    name,
                    rounds: vec![record],
                }),
            }
        }
        all.sort_by(|a, b| {
            let place = |one: &Self| (one.name == YARDSTICK, one.rate().is_none());
            let rate = |one: &Self| one.rate().unwrap_or(0.0);
            place(a)
                .cmp(&place(b))
                .then(rate(b).total_cmp(&rate(a)))
                .then_with(|| a.name.cmp(b.name))
        });
        all
    }

    fn shown(&self) -> Cell {
        Cell::Text(match self.name == YARDSTICK {
            true => format!("{} (yardstick)", self.name),
            false => self.name.to_owned(),
        })
    }

    fn rates(&self) -> impl Iterator<Item = f64> {
        let rates = self.rounds.iter().filter_map(|round| round.rate_per_s());
        rates.map(number)
    }

    fn rate(&self) -> Option<f64> {
        median(self.rates())
    }

    fn span(&self) -> Cell {
        let low = self.rates().min_by(f64::total_cmp);
        let high = self.rates().max_by(f64::total_cmp);
        match low.zip(high) {
            Some((low, high)) => Cell::Span(low, high, Unit::PerSecond),
            None => Cell::Missing,
        }
    }

    fn limits(&self) -> Vec<&'static str> {
        let mut limits: Vec<&str> = self.rounds.iter().map(|round| limit(round)).collect();
        limits.sort_unstable();
        limits.dedup();
        limits
    }

    fn missed_at(&self) -> Option<f64> {
        median(self.rounds.iter().filter_map(|round| match round.outcome {
            SloOutcome::Found { limit, .. } => match limit {
                Limit::Server { missed_per_s } => Some(number(missed_per_s)),
                Limit::Client { bound_per_s } => Some(number(bound_per_s)),
                Limit::Highest => None,
            },
            _ => None,
        }))
    }

    fn confirmed(&self) -> impl Iterator<Item = &SloStage> {
        self.rounds.iter().filter_map(|round| round.confirmed())
    }

    /// The latency below which so much of all confirming stages is.
    fn latency(&self, permille: u64) -> Option<f64> {
        let mut all = latency_histogram();
        all.auto(true);
        for stage in self.confirmed() {
            all.add(latencies(stage)?).ok()?;
        }
        percentile(&all, permille)
    }

    fn of_confirmed(&self, read: fn(&SloStage) -> Option<f64>) -> Option<f64> {
        median(self.confirmed().filter_map(read))
    }
}

#[expect(clippy::cast_precision_loss, reason = "four digits are shown")]
fn number(count: u64) -> f64 {
    count as f64
}

fn limit(record: &SloRecord) -> &'static str {
    match record.outcome {
        SloOutcome::Found { limit, .. } => match limit {
            Limit::Server { .. } => "server",
            Limit::Client { .. } => "client",
            Limit::Highest => "highest",
        },
        SloOutcome::Unfinished => "unfinished",
        SloOutcome::NeverHeld { .. }
        | SloOutcome::NotConfirmed { .. }
        | SloOutcome::Failed { .. } => "none",
    }
}

fn latencies(stage: &SloStage) -> Option<hdrhistogram::Histogram<u64>> {
    let name = Phase::Rate.metric(metric::INTENDED_LATENCY);
    decode_histogram(stage.histograms.get(&name)?).ok()
}

/// Of enough latencies; see [`Latency`] for what is enough.
fn percentile(latencies: &hdrhistogram::Histogram<u64>, permille: u64) -> Option<f64> {
    match permille {
        _ if latencies.is_empty() => None,
        Bound::MAX.. => Some(number(latencies.max())),
        permille => {
            let supported = Latency::supports(latencies.len(), permille);
            supported.then(|| number(latencies.value_at_quantile(number(permille) / 1000.0)))
        }
    }
}

fn figure(stage: &SloStage, name: &str) -> Option<f64> {
    stage
        .metrics
        .get(&Phase::Rate.metric(name))
        .copied()
        .map(number)
}

fn cpu_a_message(stage: &SloStage) -> Option<f64> {
    let answered = figure(stage, metric::SUCCEEDED).filter(|count| *count > 0.0)?;
    Some(figure(stage, metric::SERVER_CPU)? / answered)
}

fn server_busy(stage: &SloStage) -> Option<f64> {
    server_busy_permille(&stage.metrics, Phase::Rate).map(|permille| number(permille) / 10.0)
}

fn client_busy(stage: &SloStage) -> Option<f64> {
    client_busy_permille(&stage.metrics, Phase::Rate).map(|permille| number(permille) / 10.0)
}

/// The percentiles that are shown: the middle, and those that are asked for.
fn permilles(objective: &Objective) -> Vec<u64> {
    let mut all: Vec<u64> = objective.0.iter().map(|bound| bound.permille).collect();
    all.extend([500, 990]);
    all.sort_unstable();
    all.dedup();
    all
}

fn heading(permille: u64) -> String {
    let bound = Bound {
        permille,
        below_ns: 0,
    };
    match permille {
        Bound::MAX.. => "Max latency".to_owned(),
        _ => bound.name().to_uppercase(),
    }
}

/// The chapter about the searches: what was found, the picture, and every stage.
#[must_use]
pub fn blocks(records: &[SloRecord]) -> Vec<Block> {
    let Some(first) = records.first() else {
        return Vec::new();
    };
    let subjects = Subject::all(records);
    let mut blocks = vec![
        Block::Paragraph(about(first)),
        Block::Grid(grid(&first.objective, &subjects)),
    ];
    blocks.extend(curve::chart(&first.objective, &subjects).map(Block::Chart));
    blocks.push(Block::Grid(stages::grid(&first.objective, &subjects)));
    blocks
}

/// What was found, alone.
#[must_use]
pub fn found(records: &[SloRecord]) -> Option<Grid> {
    let first = records.first()?;
    Some(grid(&first.objective, &Subject::all(records)))
}

fn about(record: &SloRecord) -> String {
    let Load {
        connections,
        payload_bytes,
        ..
    } = record.load;
    format!(
        "The highest rate at which `{}` holds, no message fails or stays unsent (at most 1 %) and no \
         connection is lost: {}, messages of {payload_bytes} bytes, each due on its own, all in the open \
         loop. Latency is from when a message was due. A rate that is found was held in a separate, \
         longer stage; it and the lowest rate that was missed differ by {}.{} % as a rule.",
        record.objective,
        counted(connections.into(), "connection"),
        record.resolution_permille / 10,
        record.resolution_permille % 10,
    )
}

fn grid(objective: &Objective, subjects: &[Subject<'_>]) -> Grid {
    let permilles = permilles(objective);
    let mut header = [
        "Framework",
        "Max rate",
        "Min - Max",
        "Limit",
        "Found",
        "Missed at",
    ]
    .map(str::to_owned)
    .to_vec();
    header.extend(permilles.iter().map(|permille| heading(*permille)));
    header.extend(
        [
            "Server CPU/msg (us)",
            "Server busy",
            "Client busy",
            "Stages",
        ]
        .map(str::to_owned),
    );
    let rows = subjects.iter().map(|subject| {
        let ended = subject.rounds.iter().filter(|round| round.is_finished());
        let (found, ended) = (subject.rates().count(), ended.count());
        let count = |count: usize| number(count as u64);
        let mut cells = vec![
            subject.shown(),
            rate(subject),
            subject.span(),
            Cell::Text(subject.limits().join(", ")),
            Cell::Part(count(found), count(ended), Unit::Count),
            Cell::of(subject.missed_at(), Unit::PerSecond),
        ];
        let latencies = permilles.iter().map(|permille| subject.latency(*permille));
        cells.extend(latencies.map(|latency| Cell::of(latency, Unit::Duration)));
        cells.extend([
            Cell::of(subject.of_confirmed(cpu_a_message), Unit::Microseconds),
            Cell::of(subject.of_confirmed(server_busy), Unit::Percent),
            Cell::of(subject.of_confirmed(client_busy), Unit::Percent),
            Cell::Number(
                count(subject.rounds.iter().map(|round| round.stages.len()).sum()),
                Unit::Count,
            ),
        ]);
        Line::of(subject.name, cells)
    });
    Grid {
        file: FILE.to_owned(),
        title: TITLE.to_owned(),
        names: 1,
        header,
        rows: rows.collect(),
        notes: notes(subjects),
    }
}

/// The rate, or why there is none in any round.
fn rate(subject: &Subject<'_>) -> Cell {
    if let Some(rate) = subject.rate() {
        return Cell::Number(rate, Unit::PerSecond);
    }
    let mut reasons = subject.rounds.iter().filter_map(|round| why_not(round));
    match reasons.next_back() {
        Some((stage, reason)) => Cell::Failed { stage, reason },
        None => Cell::Missing,
    }
}

/// Where a search ended that found nothing, and why.
fn why_not(record: &SloRecord) -> Option<(String, String)> {
    match &record.outcome {
        SloOutcome::Found { .. } | SloOutcome::Unfinished => None,
        SloOutcome::NeverHeld {
            lowest_per_s,
            reason,
            is_client_bound,
        } => {
            let whose = match is_client_bound {
                true => ", which says nothing about the server",
                false => "",
            };
            Some((
                "bracket".to_owned(),
                format!("not even {lowest_per_s}/s was held{whose}: {reason}"),
            ))
        }
        SloOutcome::NotConfirmed {
            lowest_per_s,
            reason,
        } => Some((
            "confirm".to_owned(),
            format!("no rate was confirmed, down to {lowest_per_s}/s: {reason}"),
        )),
        SloOutcome::Failed { stage, reason } => Some((stage.clone(), reason.clone())),
    }
}

fn notes(subjects: &[Subject<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    for subject in subjects {
        let name = subject.name;
        if subject.limits().contains(&"client") {
            notes.push(format!(
                "{name}: at least this rate: the client was at its limit above it, so how much more the server can do is not known (give the client more CPUs)."
            ));
        }
        let all = || subject.rounds.iter().flat_map(|round| &round.stages);
        let missed = all().filter(|stage| !stage.verdict.is_held()).count();
        let is_disturbed = |stage: &&SloStage| stage.marks.contains_key(NOISY);
        let disturbed = (all().filter(|stage| !stage.verdict.is_held())).filter(is_disturbed);
        let disturbed = disturbed.count();
        if disturbed > 0 {
            notes.push(format!(
                "{name}: others disturbed {disturbed} of the {missed} stages that were missed, so the rate may be too low (measure again on a machine that is at rest)."
            ));
        }
        for round in &subject.rounds {
            let number = round.round;
            // The only reason stands in the table.
            if let Some((_, reason)) = why_not(round).filter(|_| subject.rate().is_some()) {
                notes.push(format!("{name}, round {number}: {reason}."));
            }
            if !round.is_finished() {
                let held = round.stages.iter().filter(|stage| stage.verdict.is_held());
                let held = match held.map(|stage| stage.rate_per_s).max() {
                    Some(rate) => format!("{rate}/s was held, and nothing is confirmed"),
                    None => "nothing was held yet".to_owned(),
                };
                notes.push(format!("{name}, round {number} was interrupted: {held}."));
            }
            if let Some((missed, held)) = round.missed_below_held() {
                notes.push(format!(
                    "{name}, round {number}: {missed}/s was missed although {held}/s was held in another stage: near its limit, or disturbed."
                ));
            }
        }
    }
    if subjects
        .iter()
        .any(|one| one.rounds.iter().any(|round| round.cpus.shared))
    {
        notes.push(
            "Server and client share CPUs: which of them is the limit cannot be told.".to_owned(),
        );
    }
    notes
}

/// A search as a trial without figures, for what a report says of all trials: where, on
/// which CPUs, in which version. One that was interrupted is not done.
pub(crate) fn as_trials(records: &[SloRecord]) -> Vec<TrialRecord> {
    let finished = records.iter().filter(|record| record.is_finished());
    let trial = |record: &SloRecord| TrialRecord {
        schema: record.schema,
        run: record.run.clone(),
        round: record.round,
        attempt: 1,
        suite: record.suite,
        subject: record.subject.clone(),
        server_processes: 0,
        client_processes: 1,
        harness: record.harness.clone(),
        seed: record.seed,
        started_unix_s: record.started_unix_s,
        machine: record.machine.clone(),
        cpus: record.cpus.clone(),
        settings: record.settings.clone(),
        load_hash: record.load.hash(),
        load: record.load.clone(),
        outcome: match &record.outcome {
            SloOutcome::Failed { stage, reason } => wsbench_schema::Outcome::Failed {
                stage: stage.clone(),
                reason: reason.clone(),
            },
            _ => wsbench_schema::Outcome::Completed,
        },
        metrics: BTreeMap::new(),
        histograms: BTreeMap::new(),
        series: BTreeMap::new(),
        marks: BTreeMap::new(),
    };
    finished.map(trial).collect()
}
