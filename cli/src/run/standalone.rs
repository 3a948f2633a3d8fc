//! One load on one server that runs already, by an engine in this process.

use crate::observe::Observer;
use crate::progress::{Meter, note};
use crate::run::interrupt::Interrupt;
use crate::run::{refusals, verdict};
use wsbench_client::Engine;
use wsbench_schema::{Load, Outcome, Phase, Target, TrialRecord, metric};

/// Loads the server through all phases and fills the record. What fails is in
/// the record's outcome, with everything that was measured until then. An
/// interrupted phase is recorded as far as it came.
pub fn measure(
    target: &Target,
    observer: &mut Option<Box<dyn Observer>>,
    interrupt: &Interrupt,
    record: &mut TrialRecord,
) -> anyhow::Result<()> {
    let load: Load = record.load.clone();
    let mut engine = Engine::prepare(load, target, record.seed)?;
    for phase in engine.phases() {
        if interrupt.pressed() {
            record.outcome = failed(phase, "interrupted");
            break;
        }
        if let Err(error) = one(&mut engine, phase, target, observer, interrupt, record) {
            record.outcome = failed(phase, &format!("{error:#}"));
            break;
        }
        if interrupt.pressed() {
            record.outcome = failed(phase, "interrupted");
            break;
        }
    }
    verdict::add_marks(record);
    Ok(())
}

fn failed(phase: Phase, reason: &str) -> Outcome {
    Outcome::Failed {
        stage: phase.to_string(),
        reason: reason.into(),
    }
}

fn one(
    engine: &mut Engine,
    phase: Phase,
    target: &Target,
    observer: &mut Option<Box<dyn Observer>>,
    interrupt: &Interrupt,
    record: &mut TrialRecord,
) -> anyhow::Result<()> {
    let begin = observer
        .as_mut()
        .map(|observer| observer.begin(phase))
        .transpose()?;
    let mut meter = Meter::new(format!("{}  {phase}", record.subject.name), 1);
    let report = engine.run(phase, None, interrupt.flag(), &mut |progress| {
        meter.update(progress);
    })?;
    let count = |name: &str| report.metrics.get(name).copied();
    meter.finish(count(metric::SUCCEEDED), count(metric::FAILED).unwrap_or(0));
    record.add_client(phase, &report);
    let refused = [metric::failed_by("refused"), metric::retried_by("refused")];
    if phase == Phase::Connect && refused.iter().any(|name| count(name).unwrap_or(0) > 0) {
        note(refusals::told(target));
    }
    if let (Some(observer), Some(begin)) = (observer, begin) {
        let (end, samples) = observer.end(phase)?;
        record.add_server(phase, &begin, &end, &samples);
        record.server_processes = record.server_processes.max(end.processes);
    }
    match verdict::nothing_succeeded(phase, &report) {
        Some(reason) => Err(anyhow::Error::msg(reason)),
        None => Ok(()),
    }
}
