//! Trials that others disturbed, to be measured once more. Who is chosen depends on the
//! noise of the machine alone and on no figure of the subject, so that nobody gains by it.

use crate::run::plan::Planned;
use crate::run::resume::Finished;
use wsbench_schema::{Outcome, RunPlan, mark};

/// Times that a trial is measured in all, at most.
pub const ATTEMPTS_MAX: u32 = 3;

/// Whether a trial that was measured to its end is to be measured again: a step of it is
/// marked noisy, and it may be.
pub fn is_due(plan: &RunPlan, trial: &Planned, finished: &Finished) -> bool {
    let subject = &plan.subjects[trial.subject];
    let mut records = plan.loads[trial.loads.clone()]
        .iter()
        .filter_map(|load| finished.record(&load.hash(), subject, trial.round));
    records.any(|record| {
        record.outcome == Outcome::Completed
            && record.marks.contains_key(mark::NOISY)
            && record.attempt < ATTEMPTS_MAX
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::testing;

    #[test]
    fn only_what_was_disturbed_and_completed_is_due_and_not_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let plan = testing::plan("a");
        let trial = Planned {
            round: 1,
            loads: 0..1,
            subject: 0,
        };
        let is_due = |change: &dyn Fn(&mut wsbench_schema::TrialRecord)| {
            let mut record = testing::record(&plan, &plan.subjects[0], 1);
            change(&mut record);
            let path = record.save(folder.path()).unwrap();
            let finished = Finished::read(folder.path()).unwrap();
            std::fs::remove_file(path).unwrap();
            super::is_due(&plan, &trial, &finished)
        };
        let noise = |record: &mut wsbench_schema::TrialRecord| {
            let reason = "echo: 9.0 % of the CPUs used by others".to_owned();
            record.marks.insert(mark::NOISY.into(), reason);
        };
        assert!(!is_due(&|_| {}));
        assert!(is_due(&noise));
        assert!(is_due(&|record| {
            noise(record);
            record.attempt = ATTEMPTS_MAX - 1;
        }));
        assert!(!is_due(&|record| {
            noise(record);
            record.attempt = ATTEMPTS_MAX;
        }));
        assert!(!is_due(&|record| {
            noise(record);
            record.outcome = Outcome::Failed {
                stage: "echo".into(),
                reason: "died".into(),
            };
        }));
        // The last attempt counts, in whatever order the files are found.
        let quiet = |attempt| {
            let mut record = testing::record(&plan, &plan.subjects[0], 1);
            record.attempt = attempt;
            record
        };
        for quiet in [quiet(1), quiet(3)] {
            quiet.save(folder.path()).unwrap();
            let is_last = quiet.attempt == 3;
            let found = is_due(&|record| {
                noise(record);
                record.attempt = 2;
            });
            assert_eq!(found, !is_last);
        }
    }
}
