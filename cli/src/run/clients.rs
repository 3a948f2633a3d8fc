//! What `wsbench client` measured, kept as one standing run for each load in
//! `results/clients-<hash of the load>`, so that servers measured one by one
//! under an equal load are reported together.

use crate::progress::note;
use crate::root::Root;
use crate::run::estimate::History;
use crate::run::resume::{self, Finished};
use crate::run::room;
use crate::run::saved::Saved;
use anyhow::Context as _;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wsbench_schema::{Load, RunPlan, SCHEMA_VERSION, TrialRecord};

/// What the names of the standing runs begin with.
const PREFIX: &str = "clients-";
/// Stands in the place of a profile.
const PROFILE: &str = "client";

/// Name of the standing run of a load, and of its folder.
pub fn run_name(load: &Load) -> String {
    format!("{PREFIX}{}", load.hash())
}

/// Whether a run's folder is that of a standing run.
pub fn is_standing(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(PREFIX))
}

fn folder(root: &Root, load: &Load) -> PathBuf {
    root.results().join(run_name(load))
}

/// Makes the folder, so that one that cannot be written, or has no room for what is
/// sampled at this interval, is known before anything is measured.
pub fn prepare(root: &Root, load: &Load, interval: Duration) -> anyhow::Result<()> {
    let folder = folder(root, load);
    let estimate = History::default().estimate([("", load)].into_iter());
    room::check(&folder, 1, estimate.total, interval)?;
    fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make the results folder {}", folder.display()))?;
    let probe = folder.join(".writable");
    fs::write(&probe, "")
        .and_then(|()| fs::remove_file(&probe))
        .with_context(|| format!("cannot write to the results folder {}", folder.display()))
}

/// Saves a record as the newest attempt at its load and subject.
pub fn save(root: &Root, record: &mut TrialRecord) -> anyhow::Result<PathBuf> {
    let folder = folder(root, &record.load);
    let done = Finished::read(&folder)?;
    for reason in &done.put_aside {
        note(format_args!(
            "put aside, because it cannot be read: {reason}"
        ));
    }
    let subject = &record.subject.name;
    record.attempt = done.next_attempt(&record.load_hash, subject, record.round);
    let path = record.save(&folder)?;
    extended(&folder, record).save(&folder)?;
    Ok(path)
}

/// The standing plan, with this record's subject in it.
fn extended(folder: &Path, record: &TrialRecord) -> RunPlan {
    // One that is missing or unreadable is made anew from what is measured from here on.
    let mut plan = RunPlan::load(folder).unwrap_or_else(|_| RunPlan {
        schema: SCHEMA_VERSION,
        run: record.run.clone(),
        started_unix_s: record.started_unix_s,
        seed: record.seed,
        rounds: 1,
        subjects: Vec::new(),
        loads: vec![record.load.clone()],
        profile: PROFILE.into(),
        cpus: record.cpus.clone(),
        settings: BTreeMap::new(),
    });
    if !plan.subjects.contains(&record.subject.name) {
        plan.subjects.push(record.subject.name.clone());
        plan.subjects.sort();
    }
    // The newest measurement decides which run is the newest.
    plan.started_unix_s = record.started_unix_s;
    plan.cpus = record.cpus.clone();
    plan
}

/// The standing runs, the newest last.
fn standing(root: &Root) -> Vec<PathBuf> {
    let mut runs = resume::runs(&root.results());
    runs.retain(|path| is_standing(path));
    runs
}

fn nothing(root: &Root, what: &str, name: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "no saved result{what} in {} (measure it first: wsbench client -f {name})",
        root.results().display()
    )
}

/// The standing run that was added to last; an error with the remedy if there is none.
pub fn newest_run(root: &Root) -> anyhow::Result<Saved> {
    let newest = standing(root).pop();
    let folder = newest.ok_or_else(|| nothing(root, " of `wsbench client`", "NAME"))?;
    Saved::read(&folder)
}

/// The newest record of a subject under any load.
pub fn newest(root: &Root, subject: &str) -> anyhow::Result<TrialRecord> {
    let mut found: Option<TrialRecord> = None;
    for folder in standing(root) {
        let loaded = TrialRecord::load_all(&folder)?;
        for problem in &loaded.problems {
            note(format_args!("passed over: {problem}"));
        }
        for record in loaded.files {
            let order = |record: &TrialRecord| (record.started_unix_s, record.attempt);
            let newer = found
                .as_ref()
                .is_none_or(|found| order(found) < order(&record));
            if record.subject.name == subject && newer {
                found = Some(record);
            }
        }
    }
    found.ok_or_else(|| nothing(root, &format!(" of `{subject}`"), subject))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::testing;
    use crate::subject::testing::Project;

    const SECOND: Duration = Duration::from_secs(1);

    fn measured(subject: &str, started_unix_s: u64) -> TrialRecord {
        let name = run_name(&testing::load());
        let mut record = testing::record(&testing::plan(&name), subject, 1);
        record.started_unix_s = started_unix_s;
        record
    }

    #[test]
    fn servers_measured_one_by_one_stand_in_one_run() {
        let project = Project::new();
        let root = &project.root;
        let error = newest(root, "axum").unwrap_err().to_string();
        assert!(error.starts_with("no saved result of `axum` in"), "{error}");
        assert!(newest_run(root).is_err());
        prepare(root, &testing::load(), SECOND).unwrap();
        save(root, &mut measured("floor", 1)).unwrap();
        save(root, &mut measured("axum", 2)).unwrap();
        let mut again = measured("axum", 3);
        save(root, &mut again).unwrap();
        assert_eq!(again.attempt, 2);
        let Saved { plan, records, .. } = newest_run(root).unwrap();
        assert_eq!(plan.subjects, ["axum", "floor"]);
        assert_eq!((plan.loads.len(), records.len()), (1, 3));
        assert_eq!(newest(root, "axum").unwrap().started_unix_s, 3);
        let error = newest(root, "gws").unwrap_err().to_string();
        assert!(error.ends_with("(measure it first: wsbench client -f gws)"));
    }

    #[test]
    fn another_load_is_another_run_and_the_last_one_is_the_newest() {
        let project = Project::new();
        let root = &project.root;
        let mut other = measured("axum", 5);
        other.load.connections += 1;
        other.load_hash = other.load.hash();
        other.run = run_name(&other.load);
        prepare(root, &other.load, SECOND).unwrap();
        prepare(root, &testing::load(), SECOND).unwrap();
        save(root, &mut other).unwrap();
        save(root, &mut measured("floor", 6)).unwrap();
        let Saved { plan, records, .. } = newest_run(root).unwrap();
        assert_eq!((plan.run, records.len()), (run_name(&testing::load()), 1));
        assert_eq!(newest(root, "axum").unwrap(), other);
    }

    #[test]
    fn a_disk_without_room_for_the_result_is_told_before_the_measurement() {
        let project = Project::new();
        let mut load = testing::load();
        let echo = load.echo.as_mut().unwrap();
        (echo.echoes, echo.limit_per_s) = (u64::MAX / 2, 1);
        let error = prepare(&project.root, &load, Duration::from_millis(10)).unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with("the records of 1 trial may take"),
            "{error}"
        );
        assert!(!project.root.results().exists());
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named_before_the_measurement() {
        let project = Project::new();
        project.write("results", "a file in the folder's place");
        let error = prepare(&project.root, &testing::load(), SECOND).unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with("cannot make the results folder"),
            "{error}"
        );
    }
}
