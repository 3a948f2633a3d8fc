//! Whether what is measured can be kept: is there a place to write to, and does it
//! fit there? Asked before anything is measured.

use anyhow::{Context as _, bail};
use rustix::fs::{Access, access, statvfs};
use std::path::Path;
use std::time::Duration;
use wsbench_report::units::Unit;

/// A record without its series: four histograms of the widest range, and the rest.
/// Those of 10,000 connections are between 25 and 70 KB.
const RECORD_BYTES: u64 = 256 << 10;
/// Of a reading of CPU and memory, in JSON.
const SAMPLE_BYTES: u64 = 100;
/// The plan, the report, and a part of the logs.
const BESIDES_BYTES: u64 = 4 << 20;
/// See [`BESIDES_BYTES`].
const BESIDES_FILES: u64 = 20;

/// Refuses to measure what cannot be written to `folder`, which is or will be in the
/// folder of all results, or does not fit there.
///
/// # Errors
/// What there is, and what is needed.
pub fn check(
    folder: &Path,
    trials: usize,
    total: Duration,
    interval: Duration,
) -> anyhow::Result<()> {
    let there = folder.ancestors().find(|path| path.exists());
    let there = there.unwrap_or(Path::new("/"));
    // Every run has a folder of its own; the place of all of them can be moved.
    let results = folder.parent().unwrap_or(folder).display();
    // A file system that cannot be written to says that it is full, too.
    access(there, Access::WRITE_OK).with_context(|| {
        format!(
            "cannot write to {} (allow it, or put a link to a place that can be written to in the \
             place of {results})",
            there.display()
        )
    })?;
    let disk = statvfs(there)
        .with_context(|| format!("cannot see how much room there is in {}", there.display()))?;
    let samples = total.as_millis() / interval.as_millis().max(1);
    let samples = u64::try_from(samples).unwrap_or(u64::MAX);
    let trials = trials as u64;
    let bytes = trials
        .saturating_mul(RECORD_BYTES)
        .saturating_add(samples.saturating_mul(SAMPLE_BYTES))
        .saturating_add(BESIDES_BYTES);
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free < bytes {
        #[expect(clippy::cast_precision_loss, reason = "shown with two decimals")]
        let show = |bytes: u64| Unit::Bytes.show(bytes as f64);
        bail!(
            "the records of {trials} {} may take {}, and {} has {} left (make room there, or put \
             a link to another disk in the place of {results})",
            if trials == 1 { "trial" } else { "trials" },
            show(bytes),
            there.display(),
            show(free),
        );
    }
    // File systems that have no fixed number of files say 0.
    let files = trials + BESIDES_FILES;
    if disk.f_files > 0 && disk.f_favail < files {
        let (there, left) = (there.display(), disk.f_favail);
        bail!(
            "there may be {files} files more, and {there} has room for {left} (see: df -i {there}; or \
             put a link to another disk in the place of {results})"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_fit_is_refused_before_anything_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let results = folder.path().join("results");
        let (day, second) = (Duration::from_secs(86_400), Duration::from_secs(1));
        let run = results.join("2026-11-30T15-23-30Z-3e3f");
        check(&run, 3, day, second).unwrap();
        let error = check(&run, 1 << 50, day, second).unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with("the records of 1125899906842624 trials"),
            "{error}"
        );
        let there = format!(", and {} has ", folder.path().display());
        assert!(error.contains(&there), "{error}");
        // The next run has another folder: a link in the place of this one is no help.
        let remedy = format!("in the place of {})", results.display());
        assert!(error.ends_with(&remedy), "{error}");
        assert!(!results.exists());
    }
}
