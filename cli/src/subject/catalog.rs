//! Walks `frameworks/` and `tcp/` and finds every subject. A broken folder changes
//! nothing for the others.

use super::{Subject, foreign, rust};
use crate::root::Root;
use crate::strict;
use anyhow::{Context as _, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use wsbench_schema::Suite;

/// Folder of the subjects in other languages, within `frameworks/`.
const FOREIGN: &str = "foreign";

/// Stands for every subject, unless one has that name.
const ALL: &str = "all";

/// Whether the variants of a folder of `frameworks/` are meant when it is named, or when
/// nobody is. Of the folders of `tcp/` they are subjects in their own right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Variants {
    /// Only those that are named themselves.
    #[default]
    Named,
    /// All of them.
    All,
}

impl Variants {
    fn include(self, subject: &Subject) -> bool {
        self == Self::All || subject.variant.is_none() || !subject.suite.is_websocket()
    }
}

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
    /// Walks `frameworks/`, `frameworks/foreign/` and `tcp/`. Hidden folders are left
    /// out, and so are those without a manifest, unless there is source code in
    /// them: then somebody forgot the manifest and is told so.
    ///
    /// # Errors
    /// If one of these folders itself cannot be read.
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
        for (_, result) in &mut found {
            expect_suite(result, true);
        }
        if root.tcp().is_dir() {
            for (name, folder) in folders(&root.tcp())? {
                let mut subjects = tcp_folder(&name, &folder);
                if let Some(result) = &mut subjects {
                    expect_suite(result, false);
                }
                found.extend(subjects.map(|subjects| (name, subjects)));
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

    /// The named subjects of a suite, each once, in that order; all of the suite if
    /// none is named. See [`Variants`].
    ///
    /// # Errors
    /// As [`Catalog::find`], if a subject is of another suite, or if there is none at all.
    pub fn select_of(
        &self,
        suite: Suite,
        names: &[String],
        variants: Variants,
    ) -> anyhow::Result<Vec<&Subject>> {
        let selected = self.selected(Some(suite), names, variants)?;
        if let Some(other) = selected.iter().find(|subject| subject.suite != suite) {
            bail!(
                "`{}` is of the suite `{}`, not `{suite}`, and only subjects of one are measured or served together \
                 (see: wsbench list)",
                other.name,
                other.suite
            );
        }
        Ok(selected)
    }

    /// The suite of the first of the named subjects; that of WebSocket servers if none
    /// is named.
    ///
    /// # Errors
    /// As [`Catalog::find`].
    pub fn suite_of(&self, names: &[String]) -> anyhow::Result<Suite> {
        match names.first() {
            Some(name) if !self.is_all(name) => Ok(self.find(name)?.suite),
            _ => Ok(Suite::Websocket),
        }
    }

    /// The named subjects, each once, in that order; all of them if none is named. See
    /// [`Variants`].
    ///
    /// # Errors
    /// As [`Catalog::find`], or if there is no subject at all.
    pub fn select(&self, names: &[String], variants: Variants) -> anyhow::Result<Vec<&Subject>> {
        self.selected(None, names, variants)
    }

    fn selected(
        &self,
        suite: Option<Suite>,
        names: &[String],
        variants: Variants,
    ) -> anyhow::Result<Vec<&Subject>> {
        let are_all = names.is_empty() || names.iter().any(|name| self.is_all(name));
        let wanted: Vec<&Subject> = match are_all {
            true => {
                let of_suite =
                    |subject: &&Subject| suite.is_none_or(|suite| subject.suite == suite);
                let all = self.subjects.iter().filter(of_suite);
                all.filter(|subject| variants.include(subject)).collect()
            }
            false => self.named(names, variants)?,
        };
        match wanted.is_empty() {
            true => bail!(none_of(suite.unwrap_or_default())),
            false => Ok(wanted),
        }
    }

    fn is_all(&self, name: &str) -> bool {
        name == ALL && self.find(name).is_err()
    }

    fn named(&self, names: &[String], variants: Variants) -> anyhow::Result<Vec<&Subject>> {
        let mut selected: Vec<&Subject> = Vec::new();
        for name in names {
            let subject = self.find(name)?;
            let of_folder = self.subjects.iter().filter(|other| {
                variants == Variants::All
                    && subject.variant.is_none()
                    && other.folder == subject.folder
            });
            for subject in std::iter::once(subject).chain(of_folder) {
                if selected.iter().all(|chosen| chosen.name != subject.name) {
                    selected.push(subject);
                }
            }
        }
        Ok(selected)
    }
}

fn none_of(suite: Suite) -> String {
    match suite {
        Suite::Websocket => "there is no framework yet (run: wsbench new NAME)".into(),
        other => format!("there is no subject of the suite `{other}` (see: wsbench list)"),
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
    Some(check_name(name).and_then(|()| foreign::read(name, folder)))
}

/// A folder of `tcp/` holds what one of `frameworks/` or of `frameworks/foreign/` does.
fn tcp_folder(name: &str, folder: &Path) -> Option<Result<Vec<Subject>, String>> {
    match folder.join("bench.toml").exists() {
        true => foreign_folder(name, folder),
        false => rust_folder(name, folder),
    }
}

/// Where a folder is must fit what its manifest says: so that nobody looks for a
/// relay among the frameworks.
fn expect_suite(found: &mut Result<Vec<Subject>, String>, is_websocket: bool) {
    let stray = |subjects: &Vec<Subject>| {
        let of = subjects.first()?;
        (of.suite.is_websocket() != is_websocket).then(|| {
            let (folder, suite) = (of.folder.display(), of.suite);
            match is_websocket {
                true => format!("{folder} is of the suite `{suite}` (move it to tcp/)"),
                false => format!(
                    "{folder} is of the suite `{suite}` (set suite = \"relay\" or \"transfer\", or move it to frameworks/)"
                ),
            }
        })
    };
    if let Some(reason) = found.as_ref().ok().and_then(stray) {
        *found = Err(reason);
    }
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
    fn a_folder_of_tcp_is_of_its_suite_and_its_variants_stand_for_themselves() {
        let project = Project::new();
        project.rust("alpha");
        project.write(
            "tcp/relay/Cargo.toml",
            "[package]\nname = \"relay\"\n[package.metadata.wsbench]\nsuite = \"relay\"\nbase = false\n\
             descriptors = 2\nvariants = [\n{ name = \"splice\", args = [\"--method\", \"splice\"], \
             descriptors = 6, about = \"through a pipe\" },\n{ name = \"syscall\" },\n\
             { name = \"ring\", features = [\"ring\"] }]\n",
        );
        let text =
            format!("{BETA}suite = \"relay\"\nvariants = [{{ name = \"x\", args = [\"-x\"] }}]\n");
        project.write("tcp/beta/bench.toml", &text);
        let catalog = project.catalog();
        assert_eq!(catalog.broken, []);
        let of = |suite, wanted: &[&str]| {
            let wanted: Vec<String> = wanted.iter().map(|&name| name.into()).collect();
            let names = |found: Vec<&Subject>| -> Vec<String> {
                found.iter().map(|subject| subject.name.clone()).collect()
            };
            catalog
                .select_of(suite, &wanted, Variants::Named)
                .map(names)
        };
        assert_eq!(of(Suite::Websocket, &[]).unwrap(), ["alpha"]);
        let relays = ["beta", "beta-x", "ring", "splice", "syscall"];
        assert_eq!(of(Suite::Relay, &[]).unwrap(), relays);
        let error = |suite, name: &str| of(suite, &[name]).unwrap_err().to_string();
        assert_eq!(
            error(Suite::Websocket, "splice"),
            "`splice` is of the suite `relay`, not `websocket`, and only subjects of one are measured \
             or served together (see: wsbench list)"
        );
        assert!(of(Suite::Transfer, &[]).is_err());
        assert!(error(Suite::Relay, "relay").starts_with("no framework is named `relay`"));
        let splice = catalog.find("splice").unwrap();
        assert_eq!(
            (splice.descriptors, splice.about.as_deref()),
            (6, Some("through a pipe"))
        );
        assert_eq!(catalog.find("syscall").unwrap().descriptors, 2);
        let program = |name: &str| catalog.find(name).unwrap().binary(&project.root);
        let bin = project.root.output("bin");
        // What differs in arguments only is one program.
        assert_eq!(program("splice"), bin.join("relay"));
        assert_eq!(program("syscall"), bin.join("relay"));
        assert_eq!(program("ring"), bin.join("ring"));
        let command = catalog
            .find("beta-x")
            .unwrap()
            .command(&project.root)
            .unwrap();
        assert_eq!(command.last().unwrap(), "-x");
    }

    #[test]
    fn a_suite_in_the_wrong_place_is_told_where_it_belongs() {
        let project = Project::new();
        let relay = format!("{BETA}suite = \"relay\"\n");
        project.write("frameworks/foreign/beta/bench.toml", &relay);
        project.write("tcp/gamma/bench.toml", BETA);
        project.write(
            "tcp/delta/bench.toml",
            &format!("{BETA}suite = \"relais\"\n"),
        );
        let catalog = project.catalog();
        let reason = |name: &str| catalog.find(name).unwrap_err().to_string();
        assert!(
            reason("beta").ends_with("(move it to tcp/)"),
            "{}",
            reason("beta")
        );
        assert!(
            reason("gamma").contains("set suite = \"relay\""),
            "{}",
            reason("gamma")
        );
        assert!(
            reason("delta").contains("unknown variant `relais`"),
            "{}",
            reason("delta")
        );
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
            let selected = catalog.select(&names, Variants::Named)?;
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
    fn variants_are_chosen_by_name_or_all_together() {
        let project = Project::new();
        project.rust("alpha");
        project.append(
            "frameworks/alpha/Cargo.toml",
            "[package.metadata.wsbench]\nvariants = [{ name = \"b\" }, { name = \"c\" }]\n",
        );
        project.rust("beta");
        let catalog = project.catalog();
        let select = |names: &[&str], variants| -> Vec<&str> {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let found = catalog
                .select_of(Suite::Websocket, &names, variants)
                .unwrap();
            found.iter().map(|subject| subject.name.as_str()).collect()
        };
        let everyone = ["alpha", "alpha-b", "alpha-c", "beta"];
        for names in [&[][..], &["all"], &["beta", "all"]] {
            assert_eq!(select(names, Variants::Named), ["alpha", "beta"]);
            assert_eq!(select(names, Variants::All), everyone);
        }
        assert_eq!(catalog.suite_of(&["all".into()]).unwrap(), Suite::Websocket);
        assert_eq!(select(&["alpha-c"], Variants::Named), ["alpha-c"]);
        assert_eq!(select(&["alpha-c"], Variants::All), ["alpha-c"]);
        assert_eq!(
            select(&["beta", "alpha"], Variants::All),
            ["beta", "alpha", "alpha-b", "alpha-c"]
        );
    }

    #[test]
    fn names_are_plain() {
        assert!(check_name("a-b_9").is_ok());
        for bad in ["", "-a", "A", "a b", "a/b", "..", "ä"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
