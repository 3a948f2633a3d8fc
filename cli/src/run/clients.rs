//! What `wsbench client` measured, kept as one standing run in
//! `results/clients`, so that servers measured one by one are reported together.

use crate::progress::note;
use crate::root::Root;
use crate::run::resume::Finished;
use anyhow::{Context as _, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use wsbench_schema::{RunPlan, SCHEMA_VERSION, TrialRecord};

/// Name of the standing run and of its folder.
pub const RUN: &str = "clients";

/// Where they are kept.
pub fn folder(root: &Root) -> PathBuf {
    root.results().join(RUN)
}

/// Makes the folder, so that one that cannot be written is known before anything is measured.
pub fn prepare(root: &Root) -> anyhow::Result<()> {
    let folder = folder(root);
    fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make the results folder {}", folder.display()))?;
    let probe = folder.join(".writable");
    fs::write(&probe, "")
        .and_then(|()| fs::remove_file(&probe))
        .with_context(|| format!("cannot write to the results folder {}", folder.display()))
}

/// Saves a record as the newest attempt at its load and subject.
pub fn save(root: &Root, record: &mut TrialRecord) -> anyhow::Result<PathBuf> {
    let folder = folder(root);
    let done = Finished::read(&folder)?;
    for reason in &done.put_aside {
        note(format_args!(
            "put aside, because it cannot be read: {reason}"
        ));
    }
    let subject = &record.subject.name;
    record.attempt = done.next_attempt(&record.load_hash, subject, record.round);
    let path = record.save(&folder)?;
    extended(root, record).save(&folder)?;
    Ok(path)
}

/// The standing plan, with this record's subject and load in it.
fn extended(root: &Root, record: &TrialRecord) -> RunPlan {
    // One that is missing or unreadable is made anew from what is measured from here on.
    let mut plan = RunPlan::load(&folder(root)).unwrap_or_else(|_| RunPlan {
        schema: SCHEMA_VERSION,
        run: RUN.into(),
        started_unix_s: record.started_unix_s,
        seed: record.seed,
        rounds: 1,
        subjects: Vec::new(),
        loads: Vec::new(),
        profile: RUN.into(),
        cpus: record.cpus.clone(),
        settings: BTreeMap::new(),
    });
    if !plan.subjects.contains(&record.subject.name) {
        plan.subjects.push(record.subject.name.clone());
        plan.subjects.sort();
    }
    if !plan.loads.contains(&record.load) {
        plan.loads.push(record.load.clone());
    }
    plan.cpus = record.cpus.clone();
    plan
}

/// All that was saved; an error with the remedy if there is nothing.
pub fn all(root: &Root) -> anyhow::Result<(RunPlan, Vec<TrialRecord>)> {
    let folder = folder(root);
    if !folder.join(RunPlan::FILE_NAME).is_file() {
        bail!(
            "no saved result in {} (measure a server first: wsbench client -f NAME)",
            folder.display()
        );
    }
    Ok((RunPlan::load(&folder)?, TrialRecord::load_all(&folder)?))
}

/// The newest record of a subject.
pub fn newest(root: &Root, subject: &str) -> anyhow::Result<TrialRecord> {
    let (plan, records) = all(root)?;
    let of_subject = records.into_iter().filter(|r| r.subject.name == subject);
    match of_subject.max_by_key(|record| (record.started_unix_s, record.attempt)) {
        Some(record) => Ok(record),
        None => bail!(
            "no saved result of `{subject}` in {} (there are: {}; measure it first: wsbench client -f {subject})",
            folder(root).display(),
            plan.subjects.join(" ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::testing;
    use crate::subject::testing::Project;

    fn measured(subject: &str, started_unix_s: u64) -> TrialRecord {
        let mut record = testing::record(&testing::plan(RUN), subject, 1);
        record.started_unix_s = started_unix_s;
        record
    }

    #[test]
    fn servers_measured_one_by_one_stand_in_one_run() {
        let project = Project::new();
        let root = &project.root;
        let error = newest(root, "axum").unwrap_err().to_string();
        assert!(error.starts_with("no saved result in"), "{error}");
        prepare(root).unwrap();
        save(root, &mut measured("floor", 1)).unwrap();
        save(root, &mut measured("axum", 2)).unwrap();
        let mut again = measured("axum", 3);
        save(root, &mut again).unwrap();
        assert_eq!(again.attempt, 2);
        let (plan, records) = all(root).unwrap();
        assert_eq!(plan.subjects, ["axum", "floor"]);
        assert_eq!((plan.loads.len(), records.len()), (1, 3));
        assert_eq!(newest(root, "axum").unwrap().started_unix_s, 3);
        let error = newest(root, "gws").unwrap_err().to_string();
        assert!(error.contains("(there are: axum floor;"), "{error}");
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named_before_the_measurement() {
        let project = Project::new();
        project.write("results", "a file in the folder's place");
        let error = prepare(&project.root).unwrap_err().to_string();
        assert!(
            error.starts_with("cannot make the results folder"),
            "{error}"
        );
    }
}
