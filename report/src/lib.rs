//! Records in, tables out: markdown files and a terminal's view of the same.
//!
//! This crate knows the records and nothing of how they came to be. Percentiles,
//! percent signs and "1.91G" exist only here; see [`units`].

pub mod answer;
pub mod block;
pub mod chart;
pub mod cmp;
pub mod compare;
pub mod csv;
pub mod differences;
pub mod document;
pub mod files;
pub mod history;
pub mod html;
pub mod json;
pub mod latency;
pub mod machine;
pub mod markdown;
pub mod marks;
pub mod notes;
mod parallel;
mod patched;
pub mod pictures;
pub mod quantity;
pub mod rank;
pub mod row;
pub mod scaling;
pub mod section;
pub mod slo;
pub mod stats;
pub mod steady;
pub mod summary;
pub mod table;
pub mod tables;
pub mod tcp;
pub mod terminal;
pub mod text;
pub mod units;
pub mod verification;
pub mod xlsx;

#[cfg(test)]
mod agreement;
#[cfg(test)]
mod example;
#[cfg(test)]
mod snapshots;

pub use block::block;
pub use differences::Difference;
pub use terminal::terminal_width;

use document::{Attachment, Document, Log};
use files::Names;
use machine::Heading;
use rust_xlsxwriter::XlsxError;
use section::Section;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;
use wsbench_schema::{Examination, RunPlan, SloRecord, Suite, TrialRecord};

/// A report that cannot be made or written.
#[derive(Debug, Error)]
pub enum ReportError {
    /// A record was copied in from another run.
    #[error(
        "{record} belongs to run `{found}`, not `{expected}` (move it back: runs are not mixed)"
    )]
    OtherRun {
        /// The record's file name.
        record: String,
        /// What it belongs to.
        found: String,
        /// What the report is about.
        expected: String,
    },
    /// A prefix or suffix would name another folder.
    #[error("`{0}` in a report's file name: it must not contain `/` (choose the folder instead)")]
    FileName(String),
    /// The page was refused.
    #[error("report.html: {cause}")]
    Page {
        /// Why.
        cause: String,
    },
    /// The spreadsheet was refused.
    #[error("report.xlsx: {0}")]
    Sheet(#[from] XlsxError),
    /// Nobody of that name was measured.
    #[error("`{name}` has no figures to compare the others with (measured: {subjects})")]
    Baseline {
        /// Who was asked for.
        name: String,
        /// Who there is.
        subjects: String,
    },
    /// The file system refused.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why. Part of the message, so not its source as well.
        cause: io::Error,
    },
}

/// A run, made ready to be shown.
#[derive(Clone, Debug)]
pub struct Report {
    run: String,
    heading: Heading,
    sections: Vec<Section>,
    searches: Vec<SloRecord>,
    examinations: Vec<Examination>,
    commands: Vec<String>,
    logs: Vec<Log>,
    attachments: Vec<Attachment>,
}

impl Report {
    /// Groups the records by load and subject; of a repeated trial the highest
    /// attempt counts. A run without any record still has a report.
    ///
    /// # Errors
    /// If a record belongs to another run.
    pub fn new(plan: &RunPlan, records: &[TrialRecord]) -> Result<Self, ReportError> {
        let trials = section::last_attempts(plan, records)?;
        let sections = section::sections(plan, &trials);
        let mut heading = Heading::new(plan, &trials);
        heading.warnings.extend(sections.iter().flat_map(lost));
        Ok(Self {
            run: plan.run.clone(),
            heading,
            sections,
            searches: Vec::new(),
            examinations: Vec::new(),
            commands: Vec::new(),
            logs: Vec::new(),
            attachments: Vec::new(),
        })
    }

    /// Adds what the examinations of the run found. Without them nobody was
    /// examined, and the report says so.
    #[must_use]
    pub fn with_examinations(mut self, examinations: Vec<Examination>) -> Self {
        let subjects = self.sections.iter_mut().flat_map(|s| &mut s.subjects);
        for subject in subjects {
            let of_subject = |found: &&Examination| found.subject.name == subject.name;
            let found = examinations.iter().find(of_subject);
            subject.verified = found.map(Examination::verified);
            let warnings = &mut self.heading.warnings;
            let warning = found.and_then(|found| other_program(found, subject));
            warnings.extend(warning.filter(|warning| !warnings.contains(warning)));
        }
        self.examinations = examinations;
        self
    }

    /// Compares everybody with this subject, where it was measured.
    ///
    /// # Errors
    /// If it was measured under no load.
    pub fn with_baseline(mut self, name: &str) -> Result<Self, ReportError> {
        let sections = self.sections.iter_mut();
        // All of them: who is missing under one load is the baseline of the others.
        let found = sections.filter_map(|section| section.set_baseline(name).then_some(()));
        match found.count() {
            0 => Err(ReportError::Baseline {
                name: name.to_owned(),
                subjects: self.subjects().join(", "),
            }),
            _ => Ok(self),
        }
    }

    /// Names of everybody who was measured, each once.
    fn subjects(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for subject in self.sections.iter().flat_map(|section| &section.subjects) {
            if !names.contains(&subject.name.as_str()) {
                names.push(&subject.name);
            }
        }
        names
    }

    /// Adds the searches of a run whose trials are searches: it has no loads that subjects
    /// were measured under.
    #[must_use]
    pub fn with_searches(mut self, plan: &RunPlan, searches: Vec<SloRecord>) -> Self {
        if SloRecord::is_planned(plan) {
            let trials = slo::as_trials(&searches);
            let trials: Vec<&TrialRecord> = trials.iter().collect();
            self.heading = Heading::new(plan, &trials);
            self.sections.clear();
        }
        self.searches = searches;
        self
    }

    /// Adds the command lines that make the same run and the same report.
    #[must_use]
    pub fn with_commands(mut self, commands: Vec<String>) -> Self {
        self.commands = commands;
        self
    }

    /// Adds what the servers wrote last in rounds that failed.
    #[must_use]
    pub fn with_logs(mut self, logs: Vec<Log>) -> Self {
        self.logs = logs;
        self
    }

    /// Adds files that the run left, to those that were added already.
    #[must_use]
    pub fn with_attachments(mut self, files: impl IntoIterator<Item = Attachment>) -> Self {
        self.attachments.extend(files);
        self
    }

    /// Adds what a reader must know first, a sentence each.
    #[must_use]
    pub fn with_warnings(mut self, warnings: impl IntoIterator<Item = String>) -> Self {
        self.heading.warnings.extend(warnings);
        self
    }

    /// What the report says, without any format.
    #[must_use]
    pub fn document(&self) -> Document {
        Document::of(self)
    }

    /// What kind of servers were measured.
    #[must_use]
    pub fn suite(&self) -> Suite {
        let of_searches = self.searches.iter().map(|search| search.suite);
        let mut suites = self.sections.iter().map(|s| s.suite).chain(of_searches);
        suites.next().unwrap_or_default()
    }

    /// The run's identifier.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// What was compared with what, under each load, and what may be said of it.
    pub fn differences(&self) -> impl Iterator<Item = &Difference> {
        let sections = self.sections.iter();
        sections.flat_map(|section| &section.findings.differences)
    }

    /// All tables in one document.
    #[must_use]
    pub fn markdown(&self) -> String {
        markdown::document(&self.document(), &Names::default())
    }

    /// All tables for a terminal of `width` columns (see [`terminal_width`]), or
    /// in a fixed layout.
    #[must_use]
    pub fn terminal(&self, width: Option<u16>) -> String {
        terminal::document(self, &tables::of(self.suite()), width)
    }

    /// Writes `<prefix>report<suffix>.md`, one file a table (`compact`,
    /// `connections`, `echo`, `rate` of WebSocket servers) and the pictures, in the
    /// folder `charts`, and says which. Of an earlier run under the same names nothing
    /// is left beside them.
    ///
    /// # Errors
    /// If the file system refuses, or prefix or suffix contains a `/`.
    pub fn write(
        &self,
        folder: &Path,
        prefix: &str,
        suffix: &str,
    ) -> Result<Vec<PathBuf>, ReportError> {
        files::write(self, folder, &Names::new(prefix, suffix)?)
    }
}

/// Which columns of whom show nothing because a histogram cannot be read.
fn lost(section: &Section) -> impl Iterator<Item = String> {
    let hash = &section.load_hash;
    section.subjects.iter().flat_map(move |subject| {
        let name = &subject.name;
        subject.lost.iter().map(move |(histogram, why)| {
            format!(
                "{name}: {histogram} under load {hash}: {why}: what is read from it is not shown (measure this subject again)."
            )
        })
    })
}

/// Whether what was examined is not what was measured, and how that is said.
fn other_program(found: &Examination, subject: &section::Subject) -> Option<String> {
    let mut measured = subject
        .completed
        .iter()
        .filter_map(|t| t.settings.get("binary"));
    let name = &subject.name;
    let differs = measured.any(|binary| found.binary.as_ref() != Some(binary));
    differs.then(|| format!("{name} was examined as another program than was measured."))
}
