//! What a run left in its folder, and the report of it: the same for a run that has
//! just ended, for one of last year, and for what `wsbench client` measured.

use crate::root::Root;
use crate::run::resume::COMMAND;
use crate::server::log;
use anyhow::Context as _;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use wsbench_report::document::{Attachment, AttachmentKind, Log};
use wsbench_report::{Report, ReportError};
use wsbench_schema::{Examination, Outcome, RecordError, RunPlan, SloRecord, TrialRecord};

/// Lines of a log that a report shows.
const LOG_LINES: usize = 20;
/// Logs that a report shows: who fails always fails alike.
const LOGS: usize = 40;

/// A run's folder, read.
#[derive(Debug)]
pub struct Saved {
    /// Where it is.
    pub folder: PathBuf,
    /// What was planned.
    pub plan: RunPlan,
    /// Every record that can be read.
    pub records: Vec<TrialRecord>,
    /// Every search that can be read.
    pub searches: Vec<SloRecord>,
    /// Every examination that can be read.
    pub examinations: Vec<Examination>,
    /// What cannot be read or does not belong here, a line each.
    pub problems: Vec<String>,
}

impl Saved {
    /// Reads a run's folder. A record or an examination that cannot be read is a problem
    /// and costs none of the others; a plan that cannot be read leaves nothing to report.
    ///
    /// # Errors
    /// If the folder or its plan cannot be read.
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let plan = RunPlan::load(folder)?;
        let records = TrialRecord::load_all(folder)?;
        let examinations = Examination::load_all(folder)?;
        let mut searches = SloRecord::load_all(folder)?;
        searches.files.retain(|search| search.run == plan.run);
        let mut problems: Vec<String> = records
            .problems
            .iter()
            .chain(&examinations.problems)
            .chain(&searches.problems)
            .map(|problem| problem_of(folder, problem))
            .collect();
        let (records, foreign): (Vec<_>, Vec<_>) =
            (records.files.into_iter()).partition(|record| record.run == plan.run);
        problems.extend(foreign.iter().map(|record| {
            let of_another = ReportError::OtherRun {
                record: record.file_name(),
                found: record.run.clone(),
                expected: plan.run.clone(),
            };
            format!("Not in this report: {of_another}")
        }));
        Ok(Self {
            folder: folder.to_owned(),
            plan,
            records,
            searches: searches.files,
            examinations: examinations.files,
            problems,
        })
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.searches.is_empty()
    }

    /// The report of it, with everything that belongs to it.
    ///
    /// # Errors
    /// If the folder cannot be read any more.
    pub fn report(&self, root: &Root) -> anyhow::Result<Report> {
        let report = Report::new(&self.plan, &self.records);
        let report = report.with_context(|| format!("no report of {}", self.folder.display()))?;
        let files = self.attachments();
        let files = files.with_context(|| format!("cannot read {}", self.folder.display()))?;
        Ok(report
            .with_searches(&self.plan, self.searches.clone())
            .with_warnings(self.problems.clone())
            .with_examinations(self.examinations.clone())
            .with_commands(self.commands())
            .with_logs(self.logs(&root.output("log")))
            .with_attachments(files))
    }

    /// What makes the same run again, as far as it is known, and its report.
    fn commands(&self) -> Vec<String> {
        let seed = self.plan.seed;
        let run = self
            .plan
            .settings
            .get(COMMAND)
            .map(|command| match command.contains("--seed") {
                true => command.clone(),
                false => format!("{command} --seed {seed}"),
            });
        let report = format!("wsbench report {}", quoted(&self.plan.run));
        run.into_iter().chain([report]).collect()
    }

    /// The ends of the logs of rounds that failed, if they are still there.
    fn logs(&self, logs: &Path) -> Vec<Log> {
        let is_failed = |record: &&TrialRecord| record.outcome != Outcome::Completed;
        let failed = self.records.iter().filter(is_failed);
        let told = failed.filter_map(|record| {
            let name = Path::new(&record.file_name()).with_extension("log");
            let (lines, is_cut) = log::last_lines(&logs.join(&record.run).join(name), LOG_LINES)?;
            Some(Log {
                subject: record.subject.name.clone(),
                load_hash: record.load_hash.clone(),
                round: record.round,
                lines,
                is_cut,
            })
        });
        told.take(LOGS).collect()
    }

    /// Interval logs and flame graphs that the run left.
    fn attachments(&self) -> std::io::Result<Vec<Attachment>> {
        let stems: BTreeMap<String, &TrialRecord> = (self.records.iter())
            .map(|record| (record.file_name().replace(".json", ""), record))
            .collect();
        let mut found = Vec::new();
        for (kind, folder) in [
            (AttachmentKind::IntervalLog, self.folder.clone()),
            (AttachmentKind::FlameGraph, self.folder.join("flames")),
        ] {
            for source in with_extension(&folder, kind.extension())? {
                let stem = source.file_stem().unwrap_or_default();
                let stem = stem.to_string_lossy().into_owned();
                // `<hash>-<subject>-r1-a1-<phase>` and `<subject>-<hash>`.
                let (subject, load_hash) = match (kind, stem.rsplit_once('-')) {
                    (AttachmentKind::IntervalLog, Some((trial, _))) => {
                        let record = stems.get(trial);
                        let subject = record.map(|record| record.subject.name.clone());
                        (subject, record.map(|record| record.load_hash.clone()))
                    }
                    (AttachmentKind::FlameGraph, Some((subject, hash))) => {
                        (Some(subject.to_owned()), Some(hash.to_owned()))
                    }
                    (_, None) => (None, None),
                };
                found.push(Attachment {
                    kind,
                    title: match kind {
                        AttachmentKind::IntervalLog => format!("Latency by interval: {stem}"),
                        AttachmentKind::FlameGraph => format!("Flame graph: {stem}"),
                    },
                    subject,
                    load_hash,
                    source,
                });
            }
        }
        Ok(found)
    }
}

/// What cannot be read, for whoever reads the report: from the run's folder on.
fn problem_of(folder: &Path, problem: &RecordError) -> String {
    let whole = problem.to_string();
    let inside = whole.strip_prefix(&format!("{}/", folder.display()));
    format!("Not in this report: {}", inside.unwrap_or(&whole))
}

/// The files of a folder with such an ending, by name; none if there is no such folder.
fn with_extension(folder: &Path, extension: &str) -> std::io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths.collect::<std::io::Result<Vec<_>>>()?;
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths.sort();
    Ok(paths)
}

/// This process' command line, as a shell takes it.
pub fn command_line() -> String {
    let arguments = std::env::args_os().skip(1);
    let arguments = arguments.map(|argument| quoted(&argument.to_string_lossy()));
    let words = std::iter::once("wsbench".to_owned()).chain(arguments);
    words.collect::<Vec<_>>().join(" ")
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,@%+".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::testing::{plan, record};
    use crate::subject::testing::Project;

    #[test]
    fn a_word_is_quoted_where_a_shell_would_read_it_otherwise() {
        for (word, expected) in [
            ("--slo=tp99", "--slo=tp99"),
            ("tp99<10ms", "'tp99<10ms'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }

    #[test]
    fn what_cannot_be_read_is_told_in_the_report_and_the_rest_is_reported() {
        let project = Project::new();
        let folder = project.root.results().join("a");
        fs::create_dir_all(folder.join("examinations")).unwrap();
        let mut plan = plan("a");
        plan.settings
            .insert(COMMAND.into(), "wsbench run axum".into());
        plan.save(&folder).unwrap();
        record(&plan, "axum", 1).save(&folder).unwrap();
        let mut other = record(&plan, "floor", 1);
        other.run = "b".into();
        other.save(&folder).unwrap();
        fs::write(folder.join("x.json"), "{").unwrap();
        fs::write(folder.join("examinations/axum.json"), "{\"schema\": 3}").unwrap();
        let mut failed = record(&plan, "axum", 2);
        failed.outcome = Outcome::Failed {
            stage: "start".into(),
            reason: "no listener".into(),
        };
        let stem = failed.file_name().replace(".json", "");
        failed.save(&folder).unwrap();
        let logs = project.root.output("log").join("a");
        fs::create_dir_all(&logs).unwrap();
        fs::write(logs.join(format!("{stem}.log")), "one\n<b>two</b>\n").unwrap();
        fs::write(folder.join(format!("{stem}-echo.hlog")), "#\n").unwrap();
        let saved = Saved::read(&folder).unwrap();
        assert_eq!((saved.records.len(), saved.problems.len()), (2, 3));
        let document = saved.report(&project.root).unwrap().document();
        for expected in [
            "Not in this report: x.json: truncated: ",
            "Not in this report: examinations/axum.json: schema version 3, ",
            "belongs to run `b`, not `a`",
        ] {
            let is_told = |warning: &String| warning.contains(expected);
            assert!(document.warnings.iter().any(is_told), "{expected}");
        }
        let commands = ["wsbench run axum --seed 7", "wsbench report a"];
        assert_eq!(document.commands, commands);
        let files = document.files;
        assert_eq!(files[0].subject.as_deref(), Some("axum"));
        assert!(files[0].source.ends_with(format!("{stem}-echo.hlog")));
        let log = &saved.logs(&project.root.output("log"))[0];
        assert_eq!(log.lines, ["one", "<b>two</b>"]);
        assert!(!log.is_cut);
    }
}
