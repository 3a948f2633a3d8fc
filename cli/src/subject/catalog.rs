//! Walks `frameworks/` and finds every subject. A broken folder changes nothing
//! for the others.

use super::{Subject, foreign, rust};
use crate::root::Root;
use crate::strict;
use anyhow::{Context as _, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Folder of the subjects in other languages, within `frameworks/`.
const FOREIGN: &str = "foreign";

/// Names of the original for subjects that it renamed later.
const ALIASES: [(&str, &str); 2] = [
    ("nbio_mod_nonblocking", "nbio_nonblocking"),
    ("nbio_mod_mixed", "nbio_mixed"),
];

/// A folder that is meant to be a subject and cannot be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The folder's name, or the variant's.
    pub name: String,
    /// One line: file, what is wrong, what to do.
    pub reason: String,
}

/// Every subject there is, by name.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// Those that can be built or run.
    pub subjects: Vec<Subject>,
    /// Those that cannot.
    pub broken: Vec<Broken>,
}

impl Catalog {
    /// Walks `frameworks/` and `frameworks/foreign/`. Hidden folders are left
    /// out, and so are those without a manifest, unless there is source code in
    /// them: then somebody forgot the manifest and is told so.
    ///
    /// # Errors
    /// If `frameworks/` itself cannot be read.
    pub fn discover(root: &Root) -> anyhow::Result<Self> {
        let mut found: Vec<(String, Result<Vec<Subject>, String>)> = Vec::new();
        for (name, folder) in folders(&root.frameworks())? {
            if name != FOREIGN {
                found.extend(rust_folder(&name, &folder).map(|subjects| (name, subjects)));
            }
        }
        let foreign = root.frameworks().join(FOREIGN);
        if foreign.is_dir() {
            for (name, folder) in folders(&foreign)? {
                found.extend(foreign_folder(&name, &folder).map(|subjects| (name, subjects)));
            }
        }
        Ok(Self::collect(found))
    }

    fn collect(found: Vec<(String, Result<Vec<Subject>, String>)>) -> Self {
        let mut subjects: BTreeMap<String, Subject> = BTreeMap::new();
        let mut broken = Vec::new();
        for (name, result) in found {
            match result {
                Err(reason) => broken.push(Broken { name, reason }),
                Ok(of_folder) => {
                    for subject in of_folder {
                        if let Some(first) = subjects.get(&subject.name) {
                            let reason = format!(
                                "{} and {} give the same name (rename one)",
                                first.folder.display(),
                                subject.folder.display()
                            );
                            let name = subject.name;
                            broken.push(Broken { name, reason });
                        } else {
                            subjects.insert(subject.name.clone(), subject);
                        }
                    }
                }
            }
        }
        broken.sort_by(|a, b| a.name.cmp(&b.name));
        Self {
            subjects: subjects.into_values().collect(),
            broken,
        }
    }

    /// The subject of that name, or of the name that the original calls it.
    ///
    /// # Errors
    /// If there is none: with the nearest name, or the reason if it is broken.
    pub fn find(&self, name: &str) -> anyhow::Result<&Subject> {
        let alias = ALIASES.iter().find(|(old, _)| *old == name);
        let current = alias.map_or(name, |(_, new)| new);
        if let Some(subject) = self.subjects.iter().find(|subject| subject.name == current) {
            return Ok(subject);
        }
        if let Some(broken) = self.broken.iter().find(|broken| broken.name == current) {
            bail!("`{name}` cannot be used: {}", broken.reason);
        }
        let names = self.subjects.iter().map(|subject| subject.name.as_str());
        let meant = strict::suggestion(name, names);
        bail!("no framework is named `{name}`{meant} (wsbench list shows all)");
    }

    /// The named subjects, each once, in that order; all of them if none is named.
    ///
    /// # Errors
    /// As [`Catalog::find`], or if there is no subject at all.
    pub fn select(&self, names: &[String]) -> anyhow::Result<Vec<&Subject>> {
        if names.is_empty() {
            if self.subjects.is_empty() {
                bail!("there is no framework yet (run: wsbench new NAME)");
            }
            return Ok(self.subjects.iter().collect());
        }
        let mut selected: Vec<&Subject> = Vec::new();
        for name in names {
            let subject = self.find(name)?;
            if selected.iter().all(|chosen| chosen.name != subject.name) {
                selected.push(subject);
            }
        }
        Ok(selected)
    }
}

/// Names become files, package names and arguments.
///
/// # Errors
/// What is wrong with it.
pub fn check_name(name: &str) -> Result<(), String> {
    let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    if name.is_empty() {
        return Err("name is empty".into());
    }
    if !name.chars().all(valid) {
        return Err(format!(
            "name `{name}` has characters other than a-z, 0-9, _ and -"
        ));
    }
    if name.starts_with('-') {
        return Err(format!("name `{name}` begins with - like a flag"));
    }
    Ok(())
}

/// The folders in a folder, without hidden ones.
fn folders(parent: &Path) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let unreadable = || format!("cannot read the folder {}", parent.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(parent).with_context(unreadable)? {
        let path = entry.with_context(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // `target` appears where cargo runs without the project's settings.
        if path.is_dir() && !name.starts_with('.') && name != "target" {
            found.push((name.into_owned(), path));
        }
    }
    found.sort();
    Ok(found)
}

fn rust_folder(name: &str, folder: &Path) -> Option<Result<Vec<Subject>, String>> {
    if !folder.join("Cargo.toml").exists() {
        let place = folder.display();
        return if folder.join("bench.toml").exists() {
            Some(Err(format!(
                "{place} has a bench.toml and no Cargo.toml (move it to frameworks/{FOREIGN}/{name})"
            )))
        } else {
            has_sources(folder).then(|| Err(format!("{place} has sources but no Cargo.toml")))
        };
    }
    Some(check_name(name).and_then(|()| rust::read(name, folder)))
}

fn foreign_folder(name: &str, folder: &Path) -> Option<Result<Vec<Subject>, String>> {
    if !folder.join("bench.toml").exists() {
        let place = folder.display();
        return has_sources(folder).then(|| Err(format!("{place} has sources but no bench.toml")));
    }
    let read = || foreign::read(name, folder).map(|subject| vec![subject]);
    Some(check_name(name).and_then(|()| read()))
}

/// A `src` folder, or a file that is no text for people.
fn has_sources(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| {
        let hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let prose = path
            .extension()
            .is_some_and(|ext| ext == "md" || ext == "txt");
        path.file_name().is_some_and(|name| name == "src") || (path.is_file() && !hidden && !prose)
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Project;
    use super::*;

    const BETA: &str = "language = \"sh\"\nversion = \"beta 1\"\nrun = [\"sh\"]\n";

    fn names(catalog: &Catalog) -> Vec<&str> {
        catalog
            .subjects
            .iter()
            .map(|subject| subject.name.as_str())
            .collect()
    }

    #[test]
    fn a_folder_is_enough() {
        let project = Project::new();
        project.rust("gamma");
        project.rust("alpha");
        project.write("frameworks/foreign/beta/bench.toml", BETA);
        let catalog = project.catalog();
        assert_eq!(names(&catalog), ["alpha", "beta", "gamma"]);
        assert_eq!(catalog.broken, []);
        assert_eq!(catalog.find("beta").unwrap().language, "sh");
        assert_eq!(catalog.find("alpha").unwrap().language, "Rust");
    }

    #[test]
    fn a_broken_folder_changes_nothing_for_the_others() {
        let project = Project::new();
        project.rust("alpha");
        project.write("frameworks/bad/Cargo.toml", "[package\n");
        project.write(
            "frameworks/Upper/Cargo.toml",
            "[package]\nname = \"Upper\"\n",
        );
        project.write("frameworks/nomanifest/main.rs", "");
        project.write("frameworks/misplaced/bench.toml", BETA);
        project.write("frameworks/foreign/also/server.go", "");
        project.write("frameworks/notes/README.md", "");
        project.write("frameworks/.hidden/main.rs", "");
        let catalog = project.catalog();
        assert_eq!(names(&catalog), ["alpha"]);
        let broken: Vec<_> = catalog
            .broken
            .iter()
            .map(|broken| broken.name.as_str())
            .collect();
        assert_eq!(broken, ["Upper", "also", "bad", "misplaced", "nomanifest"]);
        let reason = |name: &str| catalog.find(name).unwrap_err().to_string();
        assert!(
            reason("bad").starts_with("`bad` cannot be used: "),
            "{}",
            reason("bad")
        );
        assert!(
            reason("bad").contains("bad/Cargo.toml: line 1: "),
            "{}",
            reason("bad")
        );
        assert!(reason("also").ends_with("also has sources but no bench.toml"));
        assert!(reason("misplaced").contains("(move it to frameworks/foreign/misplaced)"));
        assert!(
            reason("Upper").contains("other than a-z"),
            "{}",
            reason("Upper")
        );
    }

    #[test]
    fn a_name_is_given_once() {
        let project = Project::new();
        project.rust("alpha");
        project.append(
            "frameworks/alpha/Cargo.toml",
            "[package.metadata.wsbench]\nvariants = [{ name = \"b\" }]\n",
        );
        project.rust("alpha-b");
        project.write("frameworks/foreign/alpha/bench.toml", BETA);
        let catalog = project.catalog();
        assert_eq!(names(&catalog), ["alpha", "alpha-b"]);
        let broken: Vec<_> = catalog
            .broken
            .iter()
            .map(|broken| broken.name.as_str())
            .collect();
        assert_eq!(broken, ["alpha", "alpha-b"]);
        assert!(catalog.broken[0].reason.contains("give the same name"));
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let project = Project::new();
        project.rust("tokio_tungstenite");
        let catalog = project.catalog();
        assert_eq!(
            catalog.find("tokio-tungstenit").unwrap_err().to_string(),
            "no framework is named `tokio-tungstenit` (did you mean `tokio_tungstenite`?) (wsbench list shows all)"
        );
        assert_eq!(
            catalog.find("zzz").unwrap_err().to_string(),
            "no framework is named `zzz` (wsbench list shows all)"
        );
    }

    #[test]
    fn the_originals_older_names_are_accepted() {
        let project = Project::new();
        project.rust("nbio_nonblocking");
        let catalog = project.catalog();
        assert_eq!(
            catalog.find("nbio_mod_nonblocking").unwrap().name,
            "nbio_nonblocking"
        );
        assert!(catalog.find("nbio_mod_mixed").is_err());
    }

    #[test]
    fn a_selection_keeps_its_order_and_names_each_once() {
        let project = Project::new();
        let select = |project: &Project, names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let catalog = project.catalog();
            let selected = catalog.select(&names)?;
            anyhow::Ok(
                selected
                    .iter()
                    .map(|one| one.name.clone())
                    .collect::<Vec<_>>(),
            )
        };
        assert!(
            select(&project, &[])
                .unwrap_err()
                .to_string()
                .contains("wsbench new")
        );
        project.rust("alpha");
        project.rust("beta");
        assert_eq!(select(&project, &[]).unwrap(), ["alpha", "beta"]);
        assert_eq!(
            select(&project, &["beta", "alpha", "beta"]).unwrap(),
            ["beta", "alpha"]
        );
        assert!(select(&project, &["beta", "nope"]).is_err());
    }

    #[test]
    fn names_are_plain() {
        assert!(check_name("a-b_9").is_ok());
        for bad in ["", "-a", "A", "a b", "a/b", "..", "ä"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
