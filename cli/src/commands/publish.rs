//! Where a report goes besides its own files: the summary of a GitHub job, and a block
//! of a README.

use anyhow::{Context as _, bail};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use wsbench_report::Report;
use wsbench_report::summary::{self, SUMMARY_MOST};

/// The variable that names the file of a job's summary.
const VARIABLE: &str = "GITHUB_STEP_SUMMARY";

/// Where else the report goes.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PublishArgs {
    /// Add the report to the summary of this GitHub job: the file that
    /// GITHUB_STEP_SUMMARY names
    #[arg(long)]
    pub github_summary: bool,
    /// Write the result between `<!-- wsbench:result begin -->` and
    /// `<!-- wsbench:result end -->` in this file
    #[arg(long, value_name = "FILE")]
    pub splice: Option<PathBuf>,
    /// Name of the block, if a file has several: `<!-- wsbench:result NAME begin -->`
    #[arg(long, value_name = "NAME", requires = "splice")]
    pub block: Option<String>,
}

impl PublishArgs {
    /// Refuses what could not be done, before anything is measured.
    ///
    /// # Errors
    /// If there is no job, or the file has no place for the result.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.github_summary {
            summary_file()?;
        }
        if let Some(file) = &self.splice {
            spliced(file, self.block.as_deref(), "")?;
        }
        Ok(())
    }

    /// Does all of it, and says which files were written.
    ///
    /// # Errors
    /// As [`PublishArgs::check`], or if a file cannot be written.
    pub fn publish(&self, report: &Report) -> anyhow::Result<Vec<PathBuf>> {
        let mut written = Vec::new();
        if !self.github_summary && self.splice.is_none() {
            return Ok(written);
        }
        let document = report.document();
        if self.github_summary {
            let path = summary_file()?;
            append(&path, |room| summary::github(&document, room))?;
            written.push(path);
        }
        if let Some(file) = &self.splice {
            let text = spliced(file, self.block.as_deref(), &summary::result(&document))?;
            fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
            written.push(file.clone());
        }
        Ok(written)
    }
}

fn summary_file() -> anyhow::Result<PathBuf> {
    match std::env::var_os(VARIABLE) {
        Some(path) if !path.is_empty() => Ok(path.into()),
        _ => bail!(
            "--github-summary: {VARIABLE} names no file (it is set in the jobs of GitHub Actions)"
        ),
    }
}

/// What a step wrote before is kept, and counts.
fn append(path: &Path, text: impl Fn(usize) -> String) -> anyhow::Result<()> {
    let context = || format!("cannot write the job's summary {}", path.display());
    let open = OpenOptions::new().create(true).append(true).open(path);
    let mut file = open.with_context(context)?;
    let length = file.metadata().with_context(context)?.len();
    let room = SUMMARY_MOST.saturating_sub(usize::try_from(length).unwrap_or(usize::MAX));
    let text = text(room.saturating_sub(1));
    if text.len() >= room {
        bail!(
            "{}: the job's summary is full, 1 MiB is all that it holds",
            path.display()
        );
    }
    let text = format!("\n{text}");
    file.write_all(text.as_bytes()).with_context(context)
}

fn spliced(file: &Path, block: Option<&str>, text: &str) -> anyhow::Result<Vec<u8>> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let spliced = summary::splice(&bytes, block, text);
    spliced.with_context(|| format!("no result in {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_summary_already_is_kept_and_counts() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "before\n").unwrap();
        append(file.path(), |room| {
            assert_eq!(room, SUMMARY_MOST - 8);
            "table".into()
        })
        .unwrap();
        assert_eq!(fs::read_to_string(file.path()).unwrap(), "before\n\ntable");
        fs::write(file.path(), vec![b'x'; SUMMARY_MOST - 3]).unwrap();
        let error = append(file.path(), |_| "table".into()).unwrap_err();
        assert!(error.to_string().contains("is full"), "{error}");
        assert_eq!(
            file.path().metadata().unwrap().len(),
            SUMMARY_MOST as u64 - 3
        );
    }

    #[test]
    fn a_file_without_markers_is_named_and_left_as_it_is() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "# Mine\n").unwrap();
        let args = PublishArgs {
            splice: Some(file.path().to_owned()),
            ..PublishArgs::default()
        };
        let error = format!("{:#}", args.check().unwrap_err());
        let name = file.path().display();
        assert!(
            error.starts_with(&format!("no result in {name}: there is no `<!-- ")),
            "{error}"
        );
        assert_eq!(fs::read_to_string(file.path()).unwrap(), "# Mine\n");
    }
}
