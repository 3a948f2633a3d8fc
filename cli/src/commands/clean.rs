//! `wsbench clean`.

use crate::progress::note;
use crate::root::Root;
use crate::run::lock::RunLock;
use crate::runfile::RunFile;
use crate::table;
use anyhow::{Context as _, bail};
use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::ExitCode;
use wsbench_report::units::Unit;

/// Removes what was built and written: output/, and what the flags say.
///
/// Sources and profiles are never touched. Of a symbolic link only the link is removed.
#[derive(clap::Args)]
pub struct Args {
    /// Remove results/ too: the records of every run
    #[arg(long)]
    results: bool,
    /// Remove target/ too: everything has to be compiled again
    #[arg(long)]
    builds: bool,
}

pub fn run(Args { results, builds }: Args) -> anyhow::Result<ExitCode> {
    let root = Root::find()?;
    let _lock = refuse_while_in_use(&root)?;
    let mut folders = vec!["output"];
    folders.extend(results.then_some("results"));
    folders.extend(builds.then_some("target"));
    for name in folders {
        let line = match remove(&root.path().join(name))? {
            Some(Removed::Link) => format!("{name}: link removed; what it points to is left"),
            Some(Removed::Bytes(bytes)) => {
                #[expect(clippy::cast_precision_loss, reason = "shown with two decimals")]
                let size = Unit::Bytes.show(bytes as f64);
                format!("{name}: removed, {size}")
            }
            None => format!("{name}: nothing there"),
        };
        table::print(&line)?;
    }
    if let (true, Some(elsewhere)) = (builds, std::env::var_os("CARGO_TARGET_DIR")) {
        let elsewhere = elsewhere.display();
        note(format_args!(
            "wsbench: CARGO_TARGET_DIR is {elsewhere}, which is left as it is"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Neither a run nor a server that `serve` started may lose its files.
fn refuse_while_in_use(root: &Root) -> anyhow::Result<Option<RunLock>> {
    let folder = root.output("run");
    if !folder.is_dir() {
        return Ok(None);
    }
    let running: Vec<String> = RunFile::all(root)?
        .into_iter()
        .filter(|file| !file.is_stale())
        .map(|file| file.name)
        .collect();
    if !running.is_empty() {
        let names = running.join(" ");
        bail!("{names}: still served (stop first: wsbench kill {names})");
    }
    RunLock::take(&folder).context("cannot clean now").map(Some)
}

#[derive(Debug, PartialEq, Eq)]
enum Removed {
    Link,
    /// On the disk.
    Bytes(u64),
}

/// Removes a folder and all below it; `None` if it is not there.
fn remove(path: &Path) -> anyhow::Result<Option<Removed>> {
    let cannot = || format!("cannot remove {}", path.display());
    let kind = match path.symlink_metadata() {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(cannot),
    };
    if kind.is_symlink() {
        fs::remove_file(path).with_context(cannot)?;
        return Ok(Some(Removed::Link));
    }
    if !kind.is_dir() {
        bail!("{} is no folder (remove it by hand)", path.display());
    }
    let bytes = bytes_below(path);
    // The library's function does not follow links either.
    fs::remove_dir_all(path).with_context(cannot)?;
    Ok(Some(Removed::Bytes(bytes)))
}

/// Bytes on the disk of all files below a folder. A file with several names
/// counts once; what cannot be read does not count.
fn bytes_below(folder: &Path) -> u64 {
    let mut seen = HashSet::new();
    let mut folders = vec![folder.to_owned()];
    let mut bytes = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.path().symlink_metadata() else {
                continue;
            };
            if metadata.is_dir() {
                folders.push(entry.path());
            } else if seen.insert((metadata.dev(), metadata.ino())) {
                bytes += metadata.blocks() * 512;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::testing::Project;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_folder_goes_and_what_its_links_point_to_stays() {
        let project = Project::new();
        let kept = project.write("elsewhere/kept", "important");
        let file = project.write("output/bin/axum", &"x".repeat(100_000));
        let output = project.root.path().join("output");
        symlink(kept.parent().unwrap(), output.join("link")).unwrap();
        fs::hard_link(&file, output.join("again")).unwrap();
        let Some(Removed::Bytes(bytes)) = remove(&output).unwrap() else {
            panic!("nothing removed");
        };
        assert!((100_000..200_000).contains(&bytes), "{bytes}");
        assert!(!output.exists());
        assert_eq!(fs::read_to_string(&kept).unwrap(), "important");
        assert_eq!(remove(&output).unwrap(), None);
        symlink(kept.parent().unwrap(), &output).unwrap();
        assert_eq!(remove(&output).unwrap(), Some(Removed::Link));
        assert!(kept.exists());
        project.write("output", "a file");
        assert!(
            remove(&output)
                .unwrap_err()
                .to_string()
                .contains("is no folder")
        );
    }

    #[test]
    fn a_run_that_is_under_way_keeps_its_files() {
        let project = Project::new();
        assert!(refuse_while_in_use(&project.root).unwrap().is_none());
        let held = RunLock::take(&project.root.output("run")).unwrap();
        let error = format!("{:#}", refuse_while_in_use(&project.root).unwrap_err());
        assert!(
            error.contains("cannot clean now: a run is under way here"),
            "{error}"
        );
        drop(held);
        assert!(refuse_while_in_use(&project.root).unwrap().is_some());
    }
}
