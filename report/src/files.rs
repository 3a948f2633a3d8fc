//! Where a report is written, and how its files are called.

use crate::chart::Chart;
use crate::document::{Attachment, AttachmentKind, Document};
use crate::{Report, ReportError, csv, html, json, markdown, pictures, tables, xlsx};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};
use wsbench_schema::Suite;

/// The folder of the pictures, within that of the report.
const CHARTS: &str = "charts";

/// What stands around the name of every file of a report.
#[derive(Clone, Copy, Debug, Default)]
pub struct Names<'a> {
    prefix: &'a str,
    suffix: &'a str,
}

impl<'a> Names<'a> {
    /// # Errors
    /// If one contains a `/` and so names another folder.
    pub fn new(prefix: &'a str, suffix: &'a str) -> Result<Self, ReportError> {
        let parts = [prefix, suffix];
        match parts.iter().find(|part| part.contains(['/', '\0'])) {
            Some(part) => Err(ReportError::FileName((*part).to_owned())),
            None => Ok(Self { prefix, suffix }),
        }
    }

    pub(crate) fn file(&self, name: &str, ending: &str) -> String {
        format!("{}{name}{}.{ending}", self.prefix, self.suffix)
    }

    /// Where a picture is, as markdown beside it names it.
    #[must_use]
    pub fn link(&self, chart: &Chart) -> String {
        self.path(&format!("{CHARTS}/{}", self.file(&chart.file, "svg")))
    }

    /// Where a file that the run left is kept, from the report's folder on.
    #[must_use]
    pub fn attachment(&self, file: &Attachment) -> String {
        let stem = file.source.file_stem().unwrap_or_default();
        let mut name = stem.to_string_lossy().into_owned();
        // The hash of the load first, as it is in the name of every record.
        if let (AttachmentKind::FlameGraph, Some((subject, hash))) =
            (file.kind, name.rsplit_once('-'))
        {
            name = format!("{hash}-{subject}");
        }
        let (folder, ending) = (file.kind.folder(), file.kind.extension());
        format!("{folder}/{}", self.file(&name, ending))
    }

    /// Whether a file is one that a report with these names has kept.
    fn is_attachment(&self, file: &str, kind: AttachmentKind) -> bool {
        let ending = format!("{}.{}", self.suffix, kind.extension());
        let name = file.strip_prefix(self.prefix);
        let name = name.and_then(|rest| rest.strip_suffix(&ending));
        let hash = name.and_then(|name| name.split_once('-'));
        hash.is_some_and(|(hash, _)| pictures::is_hash(hash))
    }

    /// A file beside the report, as a link in it names it.
    #[must_use]
    pub fn path(&self, file: &str) -> String {
        let mut link = String::with_capacity(file.len());
        for byte in file.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' => {
                    link.push(byte.into());
                }
                _ => {
                    let _ = write!(link, "%{byte:02X}");
                }
            }
        }
        link
    }

    /// Whether a file is a picture of a report with these names.
    fn is_picture(&self, file: &str) -> bool {
        let name = file
            .strip_prefix(self.prefix)
            .and_then(|rest| rest.strip_suffix(&format!("{}.svg", self.suffix)));
        name.is_some_and(pictures::is_name)
    }
}

/// Writes all files of a report and says which; of many pictures only their folder.
///
/// # Errors
/// If the file system refuses.
pub fn write(
    report: &Report,
    folder: &Path,
    names: &Names<'_>,
) -> Result<Vec<PathBuf>, ReportError> {
    let document = report.document();
    make(folder)?;
    let mut documents = vec![("report", markdown::document(&document, names))];
    for table in tables::of(report.suite()) {
        documents.push((table.file, markdown::single(&document, &table, names)));
    }
    let others = Suite::ALL
        .into_iter()
        .filter(|suite| *suite != report.suite());
    for table in others.flat_map(tables::of) {
        remove(&folder.join(names.file(table.file, "md")))?;
    }
    let mut paths = Vec::new();
    for (name, text) in documents {
        let path = folder.join(names.file(name, "md"));
        save(&path, text.as_bytes())?;
        paths.push(path);
    }
    let path = folder.join(names.file("report", "html"));
    save(&path, html::document(&document, names)?.as_bytes())?;
    paths.push(path);
    for (ending, bytes) in [
        ("csv", csv::document(&document).into_bytes()),
        ("xlsx", xlsx::document(&document)?),
        ("json", json::document(&document, names).into_bytes()),
    ] {
        let path = folder.join(names.file("report", ending));
        save(&path, &bytes)?;
        paths.push(path);
    }
    paths.extend(charts(&document, folder, names)?);
    for kind in [AttachmentKind::IntervalLog, AttachmentKind::FlameGraph] {
        paths.extend(attachments(&document, kind, folder, names)?);
    }
    Ok(paths)
}

/// The folder of the files of a kind that the run left, if there are any.
fn attachments(
    document: &Document,
    kind: AttachmentKind,
    folder: &Path,
    names: &Names<'_>,
) -> Result<Option<PathBuf>, ReportError> {
    let kept = folder.join(kind.folder());
    for file in listed(&kept)? {
        let name = file.to_str();
        if name.is_some_and(|name| names.is_attachment(name, kind)) {
            remove(&kept.join(file))?;
        }
    }
    let mut files = document
        .files
        .iter()
        .filter(|file| file.kind == kind)
        .peekable();
    if files.peek().is_none() {
        return Ok(None);
    }
    make(&kept)?;
    for file in files {
        let path = folder.join(names.attachment(file));
        // What is there may be another name of the very file that is copied.
        remove(&path)?;
        // A second name costs nothing; between two file systems there is none.
        let copied =
            fs::hard_link(&file.source, &path).or_else(|_| fs::copy(&file.source, &path).map(drop));
        copied.map_err(|cause| refused(&path, cause))?;
    }
    Ok(Some(kept))
}

/// The folder of the pictures, if there are any.
fn charts(
    document: &Document,
    folder: &Path,
    names: &Names<'_>,
) -> Result<Option<PathBuf>, ReportError> {
    let folder = folder.join(CHARTS);
    for file in listed(&folder)? {
        if file.to_str().is_some_and(|file| names.is_picture(file)) {
            remove(&folder.join(file))?;
        }
    }
    let mut charts = document.charts().peekable();
    if charts.peek().is_none() {
        return Ok(None);
    }
    make(&folder)?;
    for (_, chart) in charts {
        let path = folder.join(names.file(&chart.file, "svg"));
        save(&path, chart.svg().as_bytes())?;
    }
    Ok(Some(folder))
}

fn refused(path: &Path, cause: io::Error) -> ReportError {
    let path = path.to_owned();
    ReportError::Io { path, cause }
}

fn make(folder: &Path) -> Result<(), ReportError> {
    fs::create_dir_all(folder).map_err(|cause| refused(folder, cause))
}

fn save(path: &Path, text: &[u8]) -> Result<(), ReportError> {
    fs::write(path, text).map_err(|cause| refused(path, cause))
}

/// What is not there need not be removed.
fn remove(path: &Path) -> Result<(), ReportError> {
    match fs::remove_file(path) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(refused(path, cause)),
        _ => Ok(()),
    }
}

/// The names of the files in a folder; none if there is no such folder.
fn listed(folder: &Path) -> Result<Vec<std::ffi::OsString>, ReportError> {
    let entries = match fs::read_dir(folder) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|cause| refused(folder, cause))?,
    };
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
    names
        .collect::<io::Result<_>>()
        .map_err(|cause| refused(folder, cause))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use wsbench_schema::{RunPlan, TrialRecord};

    fn report(trials: &[TrialRecord]) -> Report {
        let plan = RunPlan {
            loads: vec![trials[0].load.clone()],
            ..example::plan(&["pool"], 1)
        };
        Report::new(&plan, trials).unwrap()
    }

    fn files(folder: &Path) -> Vec<String> {
        let files = listed(folder).unwrap().into_iter();
        let mut files: Vec<String> = files.map(|file| file.into_string().unwrap()).collect();
        files.sort();
        files
    }

    #[test]
    fn every_picture_that_is_shown_is_written_and_nothing_of_an_earlier_run_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let (folder, charts) = (folder.path(), folder.path().join(CHARTS));
        let write = |trial: TrialRecord, prefix, suffix| {
            report(&[trial]).write(folder, prefix, suffix).unwrap()
        };
        write(example::transferred("pool", 1, 100), "a (1) ", "_b");
        let first = files(&charts);
        assert_eq!(first.len(), 2, "{first:?}");
        let text = fs::read_to_string(folder.join("a (1) report_b.md")).unwrap();
        let links: Vec<&str> = text.split("](charts/").skip(1).collect();
        assert_eq!(links.len(), 2);
        for link in links {
            let link = link.split(')').next().unwrap();
            let file = link
                .replace("%20", " ")
                .replace("%28", "(")
                .replace("%29", ")");
            assert!(first.contains(&file), "{file} is none of {first:?}");
        }
        // Another report beside it, and then one of the same names and another suite.
        write(example::relayed("splice", 1, 100), "", "");
        assert_eq!(files(&charts).len(), 5);
        fs::write(charts.join("mine.svg"), "").unwrap();
        let paths = write(example::trial("axum", 1), "", "");
        assert_eq!(paths.len(), 11);
        let left = files(&charts);
        let of_relays = |name: &&String| name.starts_with("ns-per-op");
        assert_eq!(left.iter().find(of_relays), None, "{left:?}");
        assert!(first.iter().all(|name| left.contains(name)), "{left:?}");
        assert!(left.contains(&"mine.svg".to_owned()));
        let tables = files(folder);
        assert!(tables.contains(&"echo.md".to_owned()));
        assert!(!tables.contains(&"relay.md".to_owned()), "{tables:?}");
        assert!(tables.contains(&"a (1) transfer_b.md".to_owned()));
    }

    #[test]
    fn what_the_run_left_is_kept_beside_the_report_under_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let trial = example::trial("axum", 1);
        let hash = trial.load_hash.clone();
        let left = |kind, name: String| {
            let source = folder.path().join(name);
            fs::write(&source, "kept").unwrap();
            Attachment {
                kind,
                subject: None,
                load_hash: None,
                title: "t".into(),
                source,
            }
        };
        let log = left(
            AttachmentKind::IntervalLog,
            format!("{hash}-axum-r1-a1-echo.hlog"),
        );
        let flames = left(AttachmentKind::FlameGraph, format!("axum-b-{hash}.svg"));
        let output = folder.path().join("report");
        let write = |prefix: &str, kept: &[Attachment]| {
            let report = report(std::slice::from_ref(&trial));
            let report = report.with_attachments(kept.to_vec());
            report.write(&output, prefix, "").unwrap();
            [files(&output.join("hlog")), files(&output.join("flames"))].concat()
        };
        let (log_name, svg_name) = (
            format!("{hash}-axum-r1-a1-echo.hlog"),
            format!("{hash}-axum-b.svg"),
        );
        let both = [log.clone(), flames];
        assert_eq!(write("", &both), [&*log_name, &*svg_name]);
        // Twice in the same place, beside another report, and then without them.
        write("", &both);
        write("b_", &[log]);
        let text = fs::read(folder.path().join(&log_name)).unwrap();
        assert_eq!(text, b"kept", "what was copied is as it was");
        assert_eq!(write("", &[]), [format!("b_{log_name}")]);
        assert!(folder.path().join(&log_name).exists());
    }
}
