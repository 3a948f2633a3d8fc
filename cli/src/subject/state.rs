//! Whether a subject can be run now: built, stale, not built, or what it needs.

use super::{Kind, Subject, program};
use crate::patch;
use crate::root::Root;
use crate::strict;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Whether a subject can be run now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Its program is newer than its sources, or needs no building.
    Built,
    /// Its program is not there.
    NotBuilt,
    /// Its program is older than its sources.
    Stale,
    /// This program is not on PATH.
    Needs(String),
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            State::Built => f.write_str("built"),
            State::NotBuilt => f.write_str("not built"),
            State::Stale => f.write_str("stale"),
            State::Needs(program) => write!(f, "needs {program}"),
        }
    }
}

pub fn of(subject: &Subject, root: &Root) -> State {
    match &subject.kind {
        Kind::Rust(_) => {
            let Some(built) = modified(&subject.binary(root)) else {
                return match program::on_path("cargo") {
                    Some(_) => State::NotBuilt,
                    None => State::Needs("cargo".into()),
                };
            };
            let sources = rust_sources(subject, root);
            judge(built, sources.as_deref().map(newest))
        }
        Kind::Foreign(manifest) => {
            if let Some(program) = manifest.missing() {
                return State::Needs(program.to_owned());
            }
            if manifest.command(&subject.name, &subject.folder).is_err() {
                return match manifest.run.first() {
                    Some(first) if manifest.build.is_empty() => State::Needs(first.clone()),
                    _ => State::NotBuilt,
                };
            }
            if manifest.build.is_empty() {
                return State::Built;
            }
            match modified(&subject.stamp(root)) {
                Some(built) => judge(built, Some(newest(files_below(&subject.folder)))),
                None => State::NotBuilt,
            }
        }
    }
}

/// `None`: the sources are not known, so they must be looked at by building.
fn judge(built: SystemTime, newest_source: Option<Option<SystemTime>>) -> State {
    match newest_source {
        Some(Some(source)) if source <= built => State::Built,
        _ => State::Stale,
    }
}

/// All files whose change makes the binary stale. One that has vanished counts
/// as changed: the whole is `None` then.
fn rust_sources(subject: &Subject, root: &Root) -> Option<Vec<PathBuf>> {
    let text = strict::text_of(&subject.dependencies(root)).ok()?;
    let mut files = parse_dep_info(&text);
    files.push(subject.folder.join("Cargo.toml"));
    files.push(subject.folder.join("Cargo.lock"));
    files.extend(subject.patched().into_iter().flat_map(patch::sources));
    if !files.iter().all(|file| file.exists()) {
        return None;
    }
    let config = root.path().join(".cargo/config.toml");
    files.extend(config.exists().then_some(config));
    Some(files)
}

/// The prerequisites in a Makefile of one rule, where a space in a name is `\ `.
fn parse_dep_info(text: &str) -> Vec<PathBuf> {
    let line = text.lines().next().unwrap_or("");
    let Some((_, files)) = line.split_once(": ") else {
        return Vec::new();
    };
    files
        .replace("\\ ", "\0")
        .split_whitespace()
        .map(|file| PathBuf::from(file.replace('\0', " ")))
        .collect()
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().ok()?.modified().ok()
}

fn newest(files: impl AsRef<[PathBuf]>) -> Option<SystemTime> {
    files
        .as_ref()
        .iter()
        .filter_map(|file| modified(file))
        .max()
}

/// Files of a folder and those below it, without hidden ones and without
/// following links.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::super::testing::Project;
    use super::*;
    use std::time::Duration;

    fn touch(path: &Path, seconds_ago: u64) {
        let when = SystemTime::now() - Duration::from_secs(seconds_ago);
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(when).unwrap();
    }

    #[test]
    fn a_rust_subject_is_stale_when_any_file_of_it_is_newer() {
        let project = Project::new();
        let folder = project.rust("alpha");
        let catalog = project.catalog();
        let alpha = catalog.find("alpha").unwrap();
        let state = || alpha.state(&project.root);
        assert_eq!(state(), State::NotBuilt);
        let binary = project.write("output/bin/alpha", "");
        assert_eq!(state(), State::Stale, "nobody knows what is in it");
        let helper = project.write("other place/lib.rs", "");
        let main = folder.join("src/main.rs");
        let listed = helper.display().to_string().replace(' ', "\\ ");
        let text = format!("/x/alpha: {} {listed}\n", main.display());
        project.write("output/bin/alpha.d", &text);
        let lock = project.write("frameworks/alpha/Cargo.lock", "");
        for file in [&main, &helper, &lock, &folder.join("Cargo.toml")] {
            touch(file, 100);
        }
        touch(&binary, 50);
        assert_eq!(state(), State::Built);
        for file in [&main, &helper, &lock] {
            touch(file, 10);
            assert_eq!(state(), State::Stale, "{}", file.display());
            touch(file, 100);
        }
        fs::remove_file(&helper).unwrap();
        assert_eq!(state(), State::Stale, "a file of it has vanished");
    }

    #[test]
    fn a_foreign_subject_without_a_build_needs_only_its_program() {
        let project = Project::new();
        let text = "language = \"sh\"\nversion = \"1\"\nrun = [\"./serve.sh\"]\n";
        project.write("frameworks/foreign/beta/bench.toml", text);
        let catalog = project.catalog();
        let beta = catalog.find("beta").unwrap();
        assert_eq!(beta.state(&project.root), State::Needs("./serve.sh".into()));
        project.script("frameworks/foreign/beta/serve.sh", "exit 0");
        assert_eq!(beta.state(&project.root), State::Built);
    }

    #[test]
    fn a_foreign_subject_with_a_build_goes_by_its_stamp() {
        let project = Project::new();
        let text = "language = \"sh\"\nversion = \"1\"\nbuild = [[\"true\"]]\nrun = [\"sh\"]\n";
        let manifest = project.write("frameworks/foreign/beta/bench.toml", text);
        let catalog = project.catalog();
        let beta = catalog.find("beta").unwrap();
        assert_eq!(beta.state(&project.root), State::NotBuilt);
        let stamp = project.write("output/bin/beta.stamp", "");
        touch(&manifest, 100);
        touch(&stamp, 50);
        assert_eq!(beta.state(&project.root), State::Built);
        touch(&manifest, 10);
        assert_eq!(beta.state(&project.root), State::Stale);
        let needy = format!("needs = [\"no-such-program\"]\n{text}");
        project.write("frameworks/foreign/beta/bench.toml", &needy);
        let state = project.catalog().find("beta").unwrap().state(&project.root);
        assert_eq!(state, State::Needs("no-such-program".into()));
        assert_eq!(state.to_string(), "needs no-such-program");
    }
}
