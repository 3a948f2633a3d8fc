//! What an examination of a server's answers found: one file a subject in
//! `results/<run>/examinations/`, written before the first trial of the subject.

use crate::record::{Loaded, RecordError, read_json, write_json};
use crate::{SCHEMA_VERSION, SubjectId};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What follows from a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// The server is wrong, and its figures mean nothing.
    Must,
    /// The server departs from RFC 6455 where an echo does not need it.
    Should,
    /// Worth knowing; nothing follows from it.
    Note,
}

/// How a case ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As expected.
    Pass,
    /// Not as expected.
    Fail,
    /// Not asked: the subject's metadata says that it does not implement this.
    Omitted,
}

/// A case and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Cases of one kind: `handshake`, `echo`, ...
    pub group: String,
    /// Unique within the group.
    pub name: String,
    /// What follows from a failure.
    pub level: Level,
    /// How it ended.
    pub verdict: Verdict,
    /// In words: `a binary message of 125 bytes as it was sent`.
    pub expected: String,
    /// In words, what came: [`Finding::AS_EXPECTED`], or what came instead. `None` if
    /// it was not asked.
    pub seen: Option<String>,
    /// The bytes that were sent on the last connection, in hexadecimal with their
    /// number, without the middle of many: `81 85 .. 20 (831 bytes)`. `None` if
    /// nothing was sent.
    pub sent: Option<String>,
}

/// All findings about one subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Examination {
    /// [`SCHEMA_VERSION`].
    pub schema: u32,
    /// Who was examined.
    pub subject: SubjectId,
    /// Hash of the program that was examined, as in the records' settings.
    pub binary: Option<String>,
    /// Seconds since 1970, UTC.
    pub started_unix_s: u64,
    /// How long it took, in nanoseconds.
    pub elapsed_ns: u64,
    /// In the order in which the cases ran.
    pub findings: Vec<Finding>,
}

/// Bytes that a line shows of the beginning and of the end of what was sent.
const LINE_HEAD_BYTES: usize = 24;
const LINE_TAIL_BYTES: usize = 8;

impl Finding {
    /// What is seen of a case that passed.
    pub const AS_EXPECTED: &str = "as expected";

    /// Whether it is not as expected.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        self.verdict == Verdict::Fail
    }

    /// Group and name, as a subject's metadata names a case: `refused/opcode 3`.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}/{}", self.group, self.name)
    }

    /// In one line: `echo/text of 1 bytes: expected ...; saw ...; sent 81 81 .. (7 bytes)`.
    #[must_use]
    pub fn line(&self) -> String {
        let level = match self.level {
            Level::Must => "",
            Level::Should => " (should)",
            Level::Note => " (note)",
        };
        let mut line = format!("{}{level}: expected {}", self.path(), self.expected);
        if let Some(seen) = &self.seen {
            line.push_str(&format!("; saw {seen}"));
        }
        if let Some(sent) = &self.sent {
            line.push_str(&format!("; sent {}", shortened(sent)));
        }
        line
    }
}

/// [`Finding::sent`] for a line.
fn shortened(sent: &str) -> String {
    let Some((bytes, count)) = sent.rsplit_once(" (") else {
        return sent.to_owned();
    };
    let bytes: Vec<&str> = bytes.split(' ').collect();
    if bytes.len() <= LINE_HEAD_BYTES + LINE_TAIL_BYTES {
        return sent.to_owned();
    }
    let head = bytes[..LINE_HEAD_BYTES].join(" ");
    let tail = bytes[bytes.len() - LINE_TAIL_BYTES..].join(" ");
    format!("{head} .. {tail} ({count}")
}

impl Examination {
    /// Folder of the examinations, in the run's folder.
    pub const FOLDER: &str = "examinations";

    /// Whether the subject may be measured: no `must` failed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failures().all(|finding| finding.level != Level::Must)
    }

    /// What was not as expected, of any level.
    pub fn failures(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.is_failure())
    }

    /// What the subject says it does not implement.
    pub fn omitted(&self) -> impl Iterator<Item = &Finding> {
        self.findings
            .iter()
            .filter(|finding| finding.verdict == Verdict::Omitted)
    }

    /// Cases passed of those that were asked: `58/60`.
    #[must_use]
    pub fn summary(&self) -> String {
        Self::summary_of(self.findings.iter())
    }

    /// The same of a group: `12/13`, or `-` if none of it was asked.
    #[must_use]
    pub fn group_summary(&self, group: &str) -> String {
        Self::summary_of(
            self.findings
                .iter()
                .filter(|finding| finding.group == group),
        )
    }

    fn summary_of<'a>(findings: impl Iterator<Item = &'a Finding>) -> String {
        let (mut asked, mut passed) = (0, 0);
        for finding in findings {
            asked += usize::from(finding.verdict != Verdict::Omitted);
            passed += usize::from(finding.verdict == Verdict::Pass);
        }
        match asked {
            0 => "-".into(),
            asked => format!("{passed}/{asked}"),
        }
    }

    /// The failure to name if there is room for one: the first of the highest level.
    #[must_use]
    pub fn first_failure(&self) -> Option<&Finding> {
        self.failures().min_by_key(|finding| finding.level)
    }

    /// [`Examination::summary`], with what was not asked: `37/37 (23 omitted)`.
    #[must_use]
    pub fn verified(&self) -> String {
        let summary = self.summary();
        match self.omitted().count() {
            0 => summary,
            count => format!("{summary} ({count} omitted)"),
        }
    }

    /// Where it stands in a run's folder.
    #[must_use]
    pub fn path(run_folder: &Path, subject: &str) -> PathBuf {
        run_folder
            .join(Self::FOLDER)
            .join(format!("{subject}.json"))
    }

    /// Writes it into the run's folder: never half of it.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn save(&self, run_folder: &Path) -> Result<PathBuf, RecordError> {
        let path = Self::path(run_folder, &self.subject.name);
        std::fs::create_dir_all(run_folder.join(Self::FOLDER)).map_err(|cause| {
            RecordError::Io {
                path: run_folder.join(Self::FOLDER),
                cause,
            }
        })?;
        write_json(&path, self)?;
        Ok(path)
    }

    /// Reads that of a subject from a run's folder; `None` if it was not examined.
    ///
    /// # Errors
    /// If the file cannot be read, is of another version or has unknown fields.
    pub fn load(run_folder: &Path, subject: &str) -> Result<Option<Self>, RecordError> {
        let path = Self::path(run_folder, subject);
        match path.try_exists() {
            Ok(false) => Ok(None),
            Ok(true) => read_json(&path).map(Some),
            Err(cause) => Err(RecordError::Io { path, cause }),
        }
    }

    /// Reads all of a run's folder, in order of the subjects' names; none if nobody
    /// was examined. One that cannot be read is a problem, and costs none of the others.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn load_all(run_folder: &Path) -> Result<Loaded<Self>, RecordError> {
        let is_one = |path: &Path| path.extension().is_some_and(|kind| kind == "json");
        let read = |path: &Path| read_json::<Self>(path);
        match Loaded::read(&run_folder.join(Self::FOLDER), is_one, read) {
            Err(RecordError::Io { cause, .. }) if cause.kind() == ErrorKind::NotFound => {
                let (files, problems) = (Vec::new(), Vec::new());
                Ok(Loaded { files, problems })
            }
            loaded => {
                let mut loaded = loaded?;
                loaded.files.sort_by(|a, b| a.subject.cmp(&b.subject));
                Ok(loaded)
            }
        }
    }

    /// An examination with nothing found yet.
    #[must_use]
    pub fn blank(subject: SubjectId, binary: Option<String>, started_unix_s: u64) -> Self {
        Self {
            schema: SCHEMA_VERSION,
            subject,
            binary,
            started_unix_s,
            elapsed_ns: 0,
            findings: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examination(verdicts: &[(Level, Verdict)]) -> Examination {
        let subject = SubjectId {
            name: "axum".into(),
            variant: None,
            version: "axum 0.8.9".into(),
            language: "rust".into(),
        };
        let finding = |(level, verdict): &(Level, Verdict)| Finding {
            group: "echo".into(),
            name: "one".into(),
            level: *level,
            verdict: *verdict,
            expected: "yes".into(),
            seen: None,
            sent: None,
        };
        Examination {
            findings: verdicts.iter().map(finding).collect(),
            ..Examination::blank(subject, None, 0)
        }
    }

    #[test]
    fn only_a_failed_must_fails_a_subject_and_what_is_omitted_is_not_counted() {
        use {Level::*, Verdict::*};
        let of = |verdicts: &[(Level, Verdict)]| {
            let examination = examination(verdicts);
            (examination.passed(), examination.summary())
        };
        assert_eq!(of(&[(Must, Pass)]), (true, "1/1".into()));
        assert_eq!(
            of(&[
                (Must, Pass),
                (Should, Fail),
                (Note, Fail),
                (Should, Omitted)
            ]),
            (true, "1/3".into())
        );
        assert_eq!(of(&[(Must, Fail), (Should, Pass)]), (false, "1/2".into()));
        let some = examination(&[(Must, Pass), (Note, Omitted)]);
        assert_eq!(some.verified(), "1/1 (1 omitted)");
    }

    #[test]
    fn a_failure_is_a_line_and_the_first_of_the_highest_level_is_named() {
        use {Level::*, Verdict::*};
        let mut found = examination(&[(Note, Fail), (Should, Pass), (Should, Fail)]);
        let first = found.first_failure().unwrap();
        assert_eq!(first.line(), "echo/one (should): expected yes");
        let must = &mut found.findings[0];
        must.level = Must;
        must.seen = Some("no".into());
        must.sent = Some("81 80 (2 bytes)".into());
        let first = found.first_failure().unwrap();
        let line = "echo/one: expected yes; saw no; sent 81 80 (2 bytes)";
        assert_eq!(first.line(), line);
        assert_eq!(examination(&[(Must, Pass)]).first_failure(), None);
    }

    #[test]
    fn a_line_shows_the_ends_of_what_was_sent() {
        let hex = |bytes: std::ops::Range<u32>| {
            let bytes: Vec<String> = bytes.map(|byte| format!("{byte:02x}")).collect();
            bytes.join(" ")
        };
        let whole = format!("{} (32 bytes)", hex(0..32));
        assert_eq!(shortened(&whole), whole);
        let cut = format!("{} .. {} (100 bytes)", hex(0..24), hex(92..100));
        assert_eq!(shortened(&format!("{} (100 bytes)", hex(0..100))), cut);
        let kept = format!("{} .. {} (100 bytes)", hex(0..60), hex(70..100));
        assert_eq!(shortened(&kept), cut);
        assert_eq!(shortened(&cut), cut);
        assert_eq!(shortened("other words"), "other words");
    }

    #[test]
    fn a_group_that_was_not_asked_has_no_sum() {
        use {Level::*, Verdict::*};
        let mut found = examination(&[(Must, Pass), (Should, Fail), (Should, Omitted)]);
        found.findings[2].group = "close".into();
        let sums = ["echo", "close"].map(|group| found.group_summary(group));
        assert_eq!(sums, ["1/2", "-"]);
        assert_eq!(found.summary(), "1/2");
    }

    #[test]
    fn it_is_saved_beside_the_trials_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let examination = examination(&[(Level::Should, Verdict::Fail)]);
        assert_eq!(Examination::load(folder.path(), "axum").unwrap(), None);
        assert_eq!(Examination::load_all(folder.path()).unwrap().files, []);
        examination.save(folder.path()).unwrap();
        let read = Examination::load(folder.path(), "axum").unwrap();
        assert_eq!(read.as_ref(), Some(&examination));
        let all = Examination::load_all(folder.path()).unwrap();
        assert_eq!(all.files, [examination]);
        let path = Examination::path(folder.path(), "axum");
        std::fs::write(&path, "{\"schema\": 1, \"subject\"").unwrap();
        let error = Examination::load(folder.path(), "axum").unwrap_err();
        assert!(error.to_string().contains("axum.json"), "{error}");
        let all = Examination::load_all(folder.path()).unwrap();
        assert!(all.files.is_empty());
        let problem = all.problems[0].to_string();
        assert!(problem.contains("axum.json: truncated: "), "{problem}");
    }
}
