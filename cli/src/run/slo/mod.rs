//! The search for the highest rate at which a server holds an objective. Every stage is a
//! trial of its own, with a fresh server and fresh connections: what a stage that was too
//! much left behind (a backlog, lost connections, grown buffers) is no part of the next.

pub mod ask;
mod judge;
mod search;

use crate::progress::say;
use crate::run::examine::Admission;
use crate::run::id::Utc;
use crate::run::trial::{self, Bench, Job};
use anyhow::Context as _;
pub use ask::{CONFIRM_TIMES, Slo, SloArgs};
use judge::judge;
use search::{Bounds, End, Found, Search, Step, Try};
use std::time::Duration;
use wsbench_report::units::counted;
use wsbench_schema::{
    Limit, Load, Outcome, Phase, SCHEMA_VERSION, SloOutcome, SloRecord, SloStage, StageKind,
    StageVerdict, TrialRecord,
};

/// Stages of a trial that come before any message: who fails there is not slow.
const BEFORE_MESSAGES: [&str; 2] = ["start", "connect"];
/// Stages of a search, as a rule.
const STAGES_USUAL: u32 = 14;
/// Of a stage beside the time in which messages are due.
const BESIDE: Duration = Duration::from_millis(2500);

/// Makes a search and saves what it has after every stage; false if the user interrupted it.
pub fn run(bench: &Bench<'_>, job: &Job<'_>, slo: &Slo) -> anyhow::Result<bool> {
    let mut record = blank(bench, job, slo);
    if let Admission::Refused { stage, reason } = &job.admission {
        let (stage, reason) = ((*stage).to_owned(), reason.clone());
        record.outcome = SloOutcome::Failed { stage, reason };
        save(bench, &record)?;
        say(format_args!("{}  {}", job.title, told(&record)));
        return Ok(true);
    }
    let mut search = Search::new(bounds(bench, job, slo));
    loop {
        let tried = match search.step() {
            Step::Measure(tried) => tried,
            Step::Ended(end) => {
                record.outcome = outcome(end, &record);
                save(bench, &record)?;
                say(format_args!("{}  {}", job.title, told(&record)));
                return Ok(true);
            }
        };
        let Some(trial) = measure(bench, job, slo, tried, record.stages.len())? else {
            return Ok(false);
        };
        let cannot = || format!("cannot read the latencies of {}", job.subject.name);
        let verdict = judge(&slo.objective, &trial).with_context(cannot)?;
        say(format_args!("{}", line(job, tried, &verdict)));
        search.tell(match verdict {
            StageVerdict::Held => Found::Held,
            StageVerdict::Missed { .. } => Found::Missed,
            StageVerdict::ClientBound { .. } => Found::ClientBound,
        });
        if let Outcome::Failed { stage, reason } = &trial.outcome
            && BEFORE_MESSAGES.contains(&stage.as_str())
        {
            let (stage, reason) = (stage.clone(), reason.clone());
            record.outcome = SloOutcome::Failed { stage, reason };
        }
        record.stages.push(stage(tried, verdict, trial));
        save(bench, &record)?;
        if record.is_finished() {
            say(format_args!("{}  {}", job.title, told(&record)));
            return Ok(true);
        }
    }
}

fn bounds(bench: &Bench<'_>, job: &Job<'_>, slo: &Slo) -> Bounds {
    let connections = job.loads.first().map_or(1, |load| load.connections);
    let processes = bench
        .options
        .processes(connections, job.subject.descriptors);
    Bounds {
        // Each client has a part of it.
        least_per_s: slo.least_per_s().max(processes.client.into()),
        first_per_s: slo.first_per_s(),
        most_per_s: Slo::most_per_s(connections),
        resolution_permille: slo.resolution_permille,
    }
}

/// Makes one stage; `None` if the user interrupted it.
fn measure(
    bench: &Bench<'_>,
    job: &Job<'_>,
    slo: &Slo,
    tried: Try,
    before: usize,
) -> anyhow::Result<Option<TrialRecord>> {
    let is_confirming = tried.kind == StageKind::Confirm;
    let loads = job.loads.iter();
    let loads: Vec<Load> = loads
        .map(|load| slo.stage(load, tried.rate_per_s, is_confirming))
        .collect();
    let title = format!("{}  {} {}/s", job.title, tried.kind, tried.rate_per_s);
    let job = Job {
        loads: &loads,
        // So that the logs of a rate that is tried again have a name of their own.
        attempt: u32::try_from(before + 1).unwrap_or(u32::MAX),
        titles: vec![title],
        ..job.clone()
    };
    trial::observe(bench, &job)
}

fn stage(tried: Try, verdict: StageVerdict, trial: TrialRecord) -> SloStage {
    let duration_ms = trial.load.rate.as_ref().map_or(0, |rate| rate.duration_ms);
    let is_kept = |name: &String| name.starts_with(&Phase::Rate.metric(""));
    let mut histograms = trial.histograms;
    histograms.retain(|name, _| is_kept(name));
    SloStage {
        kind: tried.kind,
        is_repeat: tried.is_repeat,
        rate_per_s: tried.rate_per_s,
        duration_ms,
        started_unix_s: trial.started_unix_s,
        verdict,
        metrics: trial.metrics,
        histograms,
        marks: trial.marks,
    }
}

fn outcome(end: End, record: &SloRecord) -> SloOutcome {
    let last = record.stages.last().map(|stage| &stage.verdict);
    let (reason, is_client_bound) = match last {
        Some(StageVerdict::Missed { reason }) => (reason.clone(), false),
        Some(StageVerdict::ClientBound { reason }) => (reason.clone(), true),
        Some(StageVerdict::Held) | None => (String::new(), false),
    };
    match end {
        End::Found(rate_per_s, limit) => SloOutcome::Found { rate_per_s, limit },
        End::NeverHeld(lowest_per_s) => SloOutcome::NeverHeld {
            lowest_per_s,
            reason,
            is_client_bound,
        },
        End::NotConfirmed(lowest_per_s) => SloOutcome::NotConfirmed {
            lowest_per_s,
            reason,
        },
    }
}

/// What was found, for whoever watches.
fn told(record: &SloRecord) -> String {
    match &record.outcome {
        SloOutcome::Found { rate_per_s, limit } => match limit {
            Limit::Server { missed_per_s } => {
                format!("HOLDS {rate_per_s}/s (missed at {missed_per_s}/s)")
            }
            Limit::Client { bound_per_s } => {
                format!("HOLDS at least {rate_per_s}/s (client-bound at {bound_per_s}/s)")
            }
            Limit::Highest => format!("HOLDS at least {rate_per_s}/s, the highest that is tried"),
        },
        SloOutcome::NeverHeld {
            lowest_per_s,
            reason,
            ..
        } => format!("does not even hold {lowest_per_s}/s: {reason}"),
        SloOutcome::NotConfirmed {
            lowest_per_s,
            reason,
        } => format!("held nothing for longer, down to {lowest_per_s}/s: {reason}"),
        SloOutcome::Failed { stage, reason } => format!("FAILED at {stage}: {reason}"),
        SloOutcome::Unfinished => "not finished".to_owned(),
    }
}

/// `axum  round 1/3  bracket 1600/s: held`.
fn line(job: &Job<'_>, tried: Try, verdict: &StageVerdict) -> String {
    let Try {
        kind,
        rate_per_s,
        is_repeat,
    } = tried;
    let again = if is_repeat { " again" } else { "" };
    let how = match verdict {
        StageVerdict::Held => "held".to_owned(),
        StageVerdict::Missed { reason } => format!("missed: {reason}"),
        StageVerdict::ClientBound { reason } => format!("client-bound: {reason}"),
    };
    format!("{}  {kind} {rate_per_s}/s{again}: {how}", job.title)
}

fn save(bench: &Bench<'_>, record: &SloRecord) -> anyhow::Result<()> {
    let (name, round) = (&record.subject.name, record.round);
    record
        .save(bench.folder)
        .with_context(|| format!("cannot save the search of {name}, round {round}"))?;
    Ok(())
}

fn blank(bench: &Bench<'_>, job: &Job<'_>, slo: &Slo) -> SloRecord {
    let trial = trial::blank(bench, job);
    SloRecord {
        schema: SCHEMA_VERSION,
        run: trial.run,
        round: trial.round,
        suite: trial.suite,
        subject: trial.subject,
        harness: trial.harness,
        seed: trial.seed,
        started_unix_s: Utc::now().unix_s,
        machine: trial.machine,
        cpus: trial.cpus,
        settings: trial.settings,
        load: trial.load,
        objective: slo.objective.clone(),
        resolution_permille: slo.resolution_permille,
        stages: Vec::new(),
        outcome: SloOutcome::Unfinished,
    }
}

/// What a run with searches says of itself, and how long it takes, as a rule.
pub fn announced(slo: &Slo, searches: usize) -> (String, Duration) {
    let times = STAGES_USUAL + CONFIRM_TIMES as u32 - 1;
    let each = Duration::from_millis(slo.stage_ms) * times + BESIDE * STAGES_USUAL;
    let total = each * u32::try_from(searches).unwrap_or(u32::MAX);
    let text = format!(
        "{} for the highest rate with {}, to {}.{} %: about {STAGES_USUAL} stages each, every one with a fresh server",
        counted(searches as u64, "search").replace("searchs", "searches"),
        slo.objective,
        slo.resolution_permille / 10,
        slo.resolution_permille % 10,
    );
    (text, total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::testing;

    #[test]
    fn what_was_found_is_told_with_what_limits_it() {
        let record = |outcome| SloRecord {
            outcome,
            ..sample()
        };
        let found = |limit| SloOutcome::Found {
            rate_per_s: 900,
            limit,
        };
        for (outcome, expected) in [
            (
                found(Limit::Server { missed_per_s: 940 }),
                "HOLDS 900/s (missed at 940/s)",
            ),
            (
                found(Limit::Client { bound_per_s: 940 }),
                "HOLDS at least 900/s (client-bound at 940/s)",
            ),
            (
                found(Limit::Highest),
                "HOLDS at least 900/s, the highest that is tried",
            ),
        ] {
            assert_eq!(told(&record(outcome)), expected);
        }
    }

    fn sample() -> SloRecord {
        let trial = testing::record(&testing::plan("a"), "axum", 1);
        SloRecord {
            schema: SCHEMA_VERSION,
            run: trial.run,
            round: 1,
            suite: trial.suite,
            subject: trial.subject,
            harness: trial.harness,
            seed: 1,
            started_unix_s: 1,
            machine: trial.machine,
            cpus: trial.cpus,
            settings: trial.settings,
            load: trial.load,
            objective: ask::objective("tp99<10ms").unwrap(),
            resolution_permille: 50,
            stages: Vec::new(),
            outcome: SloOutcome::Unfinished,
        }
    }
}
