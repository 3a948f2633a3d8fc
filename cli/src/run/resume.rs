//! Taking up an interrupted run: which one, whether it is still the same run,
//! and which of its trials are done.

use crate::run::clients;
use anyhow::{Context as _, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use wsbench_schema::record::PARTIAL_EXTENSION;
use wsbench_schema::{Load, RunPlan, SloRecord, TrialRecord};

/// Name of the setting of a plan that holds the command line which began the run.
pub const COMMAND: &str = "command";

/// Stands for the newest run that is not complete.
pub const LATEST: &str = "latest";

/// Folders of all runs, those of `wsbench client` included, the newest last.
pub fn runs(results: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(results).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut runs: Vec<(u64, PathBuf)> = paths
        .filter(|path| path.join(RunPlan::FILE_NAME).is_file())
        // One whose plan cannot be read is there all the same, as the oldest.
        .map(|path| {
            (
                RunPlan::load(&path).map_or(0, |plan| plan.started_unix_s),
                path,
            )
        })
        .collect();
    runs.sort();
    runs.into_iter().map(|(_, path)| path).collect()
}

/// Folder of the run to resume: the one that is named, or the newest that is not
/// complete.
pub fn find(results: &Path, wanted: &str) -> anyhow::Result<PathBuf> {
    let mut runs = runs(results);
    // What `wsbench client` measured has no end to go on to.
    runs.retain(|path| !clients::is_standing(path));
    let Some(newest) = runs.last() else {
        bail!(
            "no run to resume in {} (start one: wsbench run)",
            results.display()
        );
    };
    if wanted == LATEST {
        return interrupted(&runs, newest);
    }
    match named(&runs, wanted)? {
        Some(path) => Ok(path.clone()),
        None => bail!(
            "no run `{wanted}` in {} (the newest is {})",
            results.display(),
            newest.file_name().unwrap_or_default().to_string_lossy()
        ),
    }
}

/// The run of that name, or the only one whose name begins so.
///
/// # Errors
/// If the names of several begin so.
pub fn named<'a>(runs: &'a [PathBuf], wanted: &str) -> anyhow::Result<Option<&'a PathBuf>> {
    let name = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    };
    if let Some(path) = runs.iter().find(|path| name(path) == wanted) {
        return Ok(Some(path));
    }
    let is_it = |path: &&PathBuf| !wanted.is_empty() && name(path).starts_with(wanted);
    let found: Vec<&PathBuf> = runs.iter().filter(is_it).collect();
    match found[..] {
        [] => Ok(None),
        [path] => Ok(Some(path)),
        [..] => {
            let names: Vec<String> = found.iter().rev().map(|path| name(path)).collect();
            bail!(
                "the names of {} runs begin with `{wanted}`: say more of it ({})",
                names.len(),
                names.join(", ")
            )
        }
    }
}

/// The newest run with something left to do.
fn interrupted(runs: &[PathBuf], newest: &Path) -> anyhow::Result<PathBuf> {
    for folder in runs.iter().rev() {
        // One whose plan cannot be read can be no one's but that of who names it,
        // unless there is no other.
        let is_it = match RunPlan::load(folder) {
            Ok(plan) => !is_complete(folder, &plan)?,
            Err(_) => folder == newest,
        };
        if is_it {
            return Ok(folder.clone());
        }
    }
    bail!(
        "no run was interrupted (the newest, {}, is complete)",
        newest.file_name().unwrap_or_default().to_string_lossy()
    );
}

/// Whether a run's folder holds every trial of its plan. Nothing in it is changed.
fn is_complete(folder: &Path, plan: &RunPlan) -> anyhow::Result<bool> {
    let context = || format!("cannot read {}", folder.display());
    let mut finished = Finished {
        searches: SloRecord::load_all(folder)?.files,
        ..Finished::default()
    };
    for entry in fs::read_dir(folder).with_context(context)? {
        let path = entry.with_context(context)?.path();
        // One that cannot be read is to be measured again.
        finished.records.extend(
            is_record(&path)
                .then(|| TrialRecord::load(&path).ok())
                .flatten(),
        );
    }
    Ok(finished.is_all(plan))
}

fn is_record(path: &Path) -> bool {
    let is_plan = path
        .file_name()
        .is_some_and(|name| name == RunPlan::FILE_NAME);
    path.extension()
        .is_some_and(|extension| extension == "json")
        && !is_plan
}

/// What makes `now` another run than `saved`, in words; nothing if it may go on.
pub fn differences(saved: &RunPlan, now: &RunPlan) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |name: &str, saved: String, now: String| {
        if saved != now {
            found.push(format!("{name} was {saved}, is {now}"));
        }
    };
    let list = |cpus: &[u32]| {
        let texts: Vec<_> = cpus.iter().map(u32::to_string).collect();
        texts.join(",")
    };
    compare("subjects", saved.subjects.join(" "), now.subjects.join(" "));
    compare("rounds", saved.rounds.to_string(), now.rounds.to_string());
    compare("seed", saved.seed.to_string(), now.seed.to_string());
    compare(
        "server CPUs",
        list(&saved.cpus.server),
        list(&now.cpus.server),
    );
    compare(
        "client CPUs",
        list(&saved.cpus.client),
        list(&now.cpus.client),
    );
    compare(
        "runner CPUs",
        list(&saved.cpus.runner),
        list(&now.cpus.runner),
    );
    let names: BTreeSet<&String> = saved.settings.keys().chain(now.settings.keys()).collect();
    for name in names {
        let value = |plan: &RunPlan| plan.settings.get(name).map_or("absent", |v| v).to_owned();
        compare(name, value(saved), value(now));
    }
    let count = |plan: &RunPlan| plan.loads.len().to_string();
    compare("number of loads", count(saved), count(now));
    for (index, (saved, now)) in saved.loads.iter().zip(&now.loads).enumerate() {
        let (saved, now) = (fields(saved), fields(now));
        let names: BTreeSet<&String> = saved.keys().chain(now.keys()).collect();
        for name in names {
            let value = |load: &BTreeMap<String, String>| {
                load.get(name)
                    .map_or_else(|| "absent".into(), String::clone)
            };
            let name = format!("load {}: {name}", index + 1);
            compare(&name, value(&saved), value(&now));
        }
    }
    found
}

/// Every setting of a load, as in `echo.timeout_ms`.
fn fields(load: &Load) -> BTreeMap<String, String> {
    fn flatten(prefix: &str, value: &Value, into: &mut BTreeMap<String, String>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let dot = if prefix.is_empty() { "" } else { "." };
                    flatten(&format!("{prefix}{dot}{name}"), value, into);
                }
            }
            Value::Null => {}
            value => {
                into.insert(prefix.to_owned(), value.to_string());
            }
        }
    }
    let mut found = BTreeMap::new();
    flatten(
        "",
        &serde_json::to_value(load).unwrap_or_default(),
        &mut found,
    );
    found
}

/// The trials of a run that need not be measured again.
#[derive(Debug, Default)]
pub struct Finished {
    records: Vec<TrialRecord>,
    searches: Vec<SloRecord>,
    names: Vec<String>,
    /// Files that could not be read and were put aside, with the reason.
    pub put_aside: Vec<String>,
}

impl Finished {
    /// Reads the run's folder. A record that cannot be read is renamed, so that
    /// it is kept but neither counted nor reported; half ones are removed.
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let mut finished = Self::default();
        let context = || format!("cannot read {}", folder.display());
        for entry in fs::read_dir(folder).with_context(context)? {
            let path = entry.with_context(context)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.ends_with(&format!(".{PARTIAL_EXTENSION}")) {
                // Whoever wrote it was killed: it holds the lock no more.
                fs::remove_file(&path)
                    .with_context(|| format!("cannot remove {}", path.display()))?;
                continue;
            }
            if is_record(&path) {
                match TrialRecord::load(&path) {
                    Ok(record) => finished.records.push(record),
                    Err(error) => {
                        let aside = path.with_extension("json.unreadable");
                        fs::rename(&path, &aside)
                            .with_context(|| format!("cannot put aside {}", path.display()))?;
                        finished.put_aside.push(error.to_string());
                    }
                }
            }
            finished.names.push(name.into_owned());
        }
        // One that cannot be read is made again, in the same place.
        let searches = SloRecord::load_all(folder)?;
        finished.searches = searches.files;
        let again = searches.problems.iter().map(ToString::to_string);
        finished.put_aside.extend(again);
        Ok(finished)
    }

    /// The record of a trial, of its last attempt, if it is there.
    pub fn record(&self, load_hash: &str, subject: &str, round: u32) -> Option<&TrialRecord> {
        let is_of_trial = |record: &&TrialRecord| {
            record.load_hash == load_hash && record.subject.name == subject && record.round == round
        };
        let attempts = self.records.iter().filter(is_of_trial);
        attempts.max_by_key(|record| record.attempt)
    }

    /// Whether the search of a subject in a round need not be made again.
    pub fn is_searched(&self, subject: &str, round: u32) -> bool {
        self.searches.iter().any(|search| {
            search.is_finished() && search.subject.name == subject && search.round == round
        })
    }

    /// Whether nothing of the plan is left to measure.
    pub fn is_all(&self, plan: &RunPlan) -> bool {
        if SloRecord::is_planned(plan) {
            return plan
                .subjects
                .iter()
                .all(|subject| (1..=plan.rounds).all(|round| self.is_searched(subject, round)));
        }
        plan.loads.iter().all(|load| {
            let hash = load.hash();
            plan.subjects.iter().all(|subject| {
                (1..=plan.rounds).all(|round| self.record(&hash, subject, round).is_some())
            })
        })
    }

    /// The number of the next attempt at a trial, from 1.
    pub fn next_attempt(&self, load_hash: &str, subject: &str, round: u32) -> u32 {
        let prefix = format!("{load_hash}-{subject}-r{round}-a");
        let attempts = self.names.iter().filter_map(|name| {
            let number = name.strip_prefix(&prefix)?.split('.').next()?;
            number.parse::<u32>().ok()
        });
        attempts.max().unwrap_or(0) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::testing::{plan, record};

    #[test]
    fn the_newest_run_is_found_and_folders_that_are_no_runs_are_not() {
        let results = tempfile::tempdir().unwrap();
        let error = find(results.path(), LATEST).unwrap_err().to_string();
        assert!(error.starts_with("no run to resume"), "{error}");
        for name in ["2026-01-01", "2026-01-02", "2026-01-03", "clients-7f"] {
            fs::create_dir(results.path().join(name)).unwrap();
        }
        for name in ["2026-01-01", "2026-01-02", "clients-7f"] {
            plan(name).save(&results.path().join(name)).unwrap();
        }
        // Newer than its name says, and newer than all others.
        let mut late = plan("2026-01-01");
        late.started_unix_s += 1;
        late.save(&results.path().join("2026-01-01")).unwrap();
        let newest = find(results.path(), LATEST).unwrap();
        assert_eq!(newest, results.path().join("2026-01-01"));
        let begun = find(results.path(), "2026-01-02").unwrap();
        assert_eq!(begun, results.path().join("2026-01-02"));
        let error = find(results.path(), "2026-01").unwrap_err().to_string();
        assert_eq!(
            error,
            "the names of 2 runs begin with `2026-01`: say more of it (2026-01-01, 2026-01-02)"
        );
        let other = find(results.path(), "2026-01-02").unwrap();
        assert_eq!(other, results.path().join("2026-01-02"));
        let error = find(results.path(), "axum").unwrap_err().to_string();
        assert!(error.contains("the newest is 2026-01-01"), "{error}");
    }

    #[test]
    fn the_newest_run_that_is_not_complete_is_taken_up() {
        let results = tempfile::tempdir().unwrap();
        let folder = |name: &str| results.path().join(name);
        let mut last = PathBuf::new();
        for (name, started_unix_s) in [("first", 1), ("second", 2), ("third", 3)] {
            let mut plan = plan(name);
            plan.started_unix_s = started_unix_s;
            fs::create_dir(folder(name)).unwrap();
            plan.save(&folder(name)).unwrap();
            for (subject, round) in [("axum", 1), ("floor", 1), ("axum", 2), ("floor", 2)] {
                last = record(&plan, subject, round).save(&folder(name)).unwrap();
            }
            let first_missing = folder("first").join(last.file_name().unwrap());
            if name == "first" {
                fs::remove_file(&first_missing).unwrap();
            }
        }
        // The newest are complete, whatever else lies there.
        fs::write(folder("third").join("x.json.partial"), "{").unwrap();
        assert_eq!(find(results.path(), LATEST).unwrap(), folder("first"));
        assert!(folder("third").join("x.json.partial").exists());
        // One that cannot be read is left to do.
        fs::write(&last, "{").unwrap();
        assert_eq!(find(results.path(), LATEST).unwrap(), folder("third"));
        record(&plan("third"), "floor", 2)
            .save(&folder("third"))
            .unwrap();
        fs::remove_dir_all(folder("first")).unwrap();
        let error = find(results.path(), LATEST).unwrap_err().to_string();
        let expected = "no run was interrupted (the newest, third, is complete)";
        assert_eq!(error, expected);
        // By its name it is found all the same.
        assert_eq!(find(results.path(), "third").unwrap(), folder("third"));
    }

    #[test]
    fn a_run_that_changed_says_what() {
        let saved = plan("a");
        assert!(differences(&saved, &saved).is_empty());
        let mut now = saved.clone();
        now.subjects.push("mine".into());
        now.cpus.server = vec![0, 1];
        now.settings
            .insert("version.axum".into(), "axum 0.9.0".into());
        now.settings.remove("nodelay");
        now.loads[0].connections += 1;
        now.loads[0].echo.as_mut().unwrap().duration_ms = Some(5);
        let found = differences(&saved, &now);
        for expected in [
            "subjects was axum floor, is axum floor mine",
            "server CPUs was 0, is 0,1",
            "version.axum was axum 0.8.9, is axum 0.9.0",
            "nodelay was true, is absent",
            "load 1: connections was 100, is 101",
            "load 1: echo.duration_ms was absent, is 5",
        ] {
            assert!(found.iter().any(|text| text == expected), "{found:?}");
        }
        assert_eq!(found.len(), 6, "{found:?}");
    }

    #[test]
    fn readable_records_are_done_and_others_are_measured_again() {
        let folder = tempfile::tempdir().unwrap();
        let plan = plan("a");
        plan.save(folder.path()).unwrap();
        let hash = plan.loads[0].hash();
        record(&plan, "axum", 1).save(folder.path()).unwrap();
        let broken = record(&plan, "floor", 1).save(folder.path()).unwrap();
        fs::write(&broken, "{\"schema\": 1, ").unwrap();
        let half = broken.with_extension("json.partial");
        fs::write(&half, "{\"sch").unwrap();
        let finished = Finished::read(folder.path()).unwrap();
        assert!(finished.record(&hash, "axum", 1).is_some());
        assert!(finished.record(&hash, "axum", 2).is_none());
        assert!(finished.record(&hash, "floor", 1).is_none());
        assert_eq!(finished.put_aside.len(), 1);
        assert!(!broken.exists() && !half.exists());
        let next = |subject, round| finished.next_attempt(&hash, subject, round);
        assert_eq!((next("axum", 2), next("floor", 1)), (1, 2));
        // The report can be made although a record was broken.
        assert_eq!(TrialRecord::load_all(folder.path()).unwrap().files.len(), 1);
    }
}
