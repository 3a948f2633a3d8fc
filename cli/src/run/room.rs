//! Whether the records of a run will fit on the disk, before it begins.

use anyhow::{Context as _, bail};
use rustix::fs::statvfs;
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

/// Refuses a run whose records do not fit where `folder` is or will be.
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
            "the records of {trials} trials may take {}, and {} has {} left (make room there, or \
             put a link to another disk in the place of {})",
            show(bytes),
            there.display(),
            show(free),
            folder.display(),
        );
    }
    // File systems that have no fixed number of files say 0.
    let files = trials + BESIDES_FILES;
    if disk.f_files > 0 && disk.f_favail < files {
        let (there, left) = (there.display(), disk.f_favail);
        bail!("a run makes {files} files, and {there} has room for {left} (see: df -i {there})");
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
        check(&results, 3, day, second).unwrap();
        let error = check(&results, 1 << 50, day, second).unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with("the records of 1125899906842624 trials"),
            "{error}"
        );
        let there = format!(", and {} has ", folder.path().display());
        assert!(error.contains(&there), "{error}");
        assert!(!results.exists());
    }
}
