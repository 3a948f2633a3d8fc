//! `bench.toml`: how a subject in another language is built and run.

use super::program;
use super::{Kind, Subject, check_name, check_role};
use crate::strict;
use crate::verify::Omits;
use anyhow::bail;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;
use wsbench_schema::Suite;

/// A program asked for its version must answer in this time.
const VERSION_WITHIN: Duration = Duration::from_secs(5);

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Manifest {
    /// Programming language, for the table.
    pub language: String,
    /// Name and version of what is measured.
    pub version: Option<String>,
    /// Or a program that prints them as its first line.
    pub version_command: Option<Vec<String>>,
    /// Programs that must be on PATH to build or run it.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Programs with arguments, run in the folder one after another.
    #[serde(default)]
    pub build: Vec<Vec<String>>,
    /// The server's program and first arguments. A program with a slash is
    /// relative to the folder; the flags of the contract come behind.
    pub run: Vec<String>,
    /// What it is compared with.
    #[serde(default)]
    pub suite: Suite,
    /// See [`Subject::role`].
    pub role: Option<String>,
    /// What distinguishes it, in one line.
    pub about: Option<String>,
    /// Files that its process has open for a connection, at most.
    #[serde(default = "one")]
    pub descriptors: u32,
    /// Each is a subject too, with further arguments.
    #[serde(default)]
    pub variants: Vec<Variant>,
    /// Groups and cases of the examination that it does not implement.
    #[serde(default)]
    pub omits: Vec<String>,
}

/// The same program, started otherwise.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Variant {
    /// Stands behind the folder's name.
    pub name: String,
    /// Arguments behind those of `run`.
    pub args: Vec<String>,
    /// What distinguishes it, in one line.
    pub about: Option<String>,
}

/// As the program of `run`: this program itself.
const OURSELVES: &str = "{wsbench}";

fn one() -> u32 {
    1
}

/// Reads the folder's `bench.toml`.
///
/// # Errors
/// One line that names the file, what is wrong and what to do.
pub fn read(name: &str, folder: &Path) -> Result<Vec<Subject>, String> {
    let path = folder.join("bench.toml");
    let at = |reason: String| format!("{}: {reason}", path.display());
    let text = strict::text_of(&path).map_err(|error| at(error.to_string()))?;
    parse(name, folder, &text).map_err(at)
}

/// The same from the text of the file; the error does not name it.
///
/// # Errors
/// One line: what is wrong and what to do.
pub fn parse(name: &str, folder: &Path, text: &str) -> Result<Vec<Subject>, String> {
    subjects(name, folder, text).map_err(strict::escaped)
}

fn subjects(name: &str, folder: &Path, text: &str) -> Result<Vec<Subject>, String> {
    let manifest: Manifest = strict::from_toml(text)?;
    strict::one_line("language", &manifest.language)?;
    strict::command("run", &manifest.run)?;
    for command in &manifest.build {
        strict::command("build", command)?;
    }
    let omits = Omits::read(manifest.suite, &manifest.omits)?;
    match (&manifest.version, &manifest.version_command) {
        (None, None) => Err("neither `version` nor `version-command` is there".into()),
        (Some(_), Some(_)) => Err("both `version` and `version-command` are there".into()),
        (Some(version), None) => strict::one_line("version", version),
        (None, Some(command)) => strict::command("version-command", command),
    }?;
    if let Some(role) = &manifest.role {
        check_role(role)?;
    }
    for (key, value) in [("role", &manifest.role), ("about", &manifest.about)] {
        let mut value = value.iter();
        value.try_for_each(|value| strict::one_line(key, value))?;
    }
    let base = Subject {
        name: name.to_owned(),
        variant: None,
        folder: folder.to_owned(),
        language: manifest.language.clone(),
        suite: manifest.suite,
        about: manifest.about.clone(),
        role: manifest.role.clone(),
        descriptors: strict::positive("descriptors", manifest.descriptors)?,
        kind: Kind::Foreign(manifest.clone()),
        omits,
    };
    let mut subjects = vec![base.clone()];
    let mut seen = BTreeSet::new();
    for variant in &manifest.variants {
        check_name(&variant.name).map_err(|reason| format!("variant {reason}"))?;
        strict::arguments("args", &variant.args)?;
        let mut about = variant.about.iter();
        about.try_for_each(|about| strict::one_line("about", about))?;
        if !seen.insert(&variant.name) {
            return Err(format!("two variants are named `{}`", variant.name));
        }
        let mut started = manifest.clone();
        started.run.extend_from_slice(&variant.args);
        subjects.push(Subject {
            name: format!("{name}-{}", variant.name),
            variant: Some(variant.name.clone()),
            about: variant.about.clone(),
            kind: Kind::Foreign(started),
            ..base.clone()
        });
    }
    Ok(subjects)
}

impl Manifest {
    /// The first program of `needs` that is not on PATH.
    pub fn missing(&self) -> Option<&str> {
        let mut needs = self.needs.iter().map(String::as_str);
        needs.find(|program| program::on_path(program).is_none())
    }

    /// See [`Subject::command`].
    pub fn command(&self, name: &str, folder: &Path) -> anyhow::Result<Vec<OsString>> {
        if let Some(program) = self.missing() {
            bail!("{name} needs `{program}`, which is not on PATH (install it)");
        }
        let Some((first, args)) = self.run.split_first() else {
            bail!("`run` of {name} is empty");
        };
        let program = match first.as_str() {
            OURSELVES => env::current_exe().ok(),
            _ => program::resolve(first, folder),
        };
        let Some(program) = program else {
            if self.build.is_empty() {
                bail!("{name}: {first} is not there or not executable");
            }
            bail!("{name}: {first} is not there (run: wsbench build {name})");
        };
        let args = args.iter().map(OsString::from);
        Ok(std::iter::once(program.into()).chain(args).collect())
    }

    /// See [`Subject::version`].
    pub fn version(&self, name: &str, folder: &Path) -> String {
        if let Some(version) = &self.version {
            return version.clone();
        }
        let Some([program, args @ ..]) = self.version_command.as_deref() else {
            return format!("{name} (no version-command)");
        };
        if let Some(missing) = self.missing() {
            return format!("{name} (no `{missing}`)");
        }
        let Some(path) = program::resolve(program, folder) else {
            return format!("{name} (no `{program}`)");
        };
        program::first_line(&path, args, folder, VERSION_WITHIN)
            .unwrap_or_else(|reason| format!("{name} ({reason})"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Project;
    use super::*;

    fn read_manifest(text: &str) -> Result<Vec<Subject>, String> {
        let project = Project::new();
        project.write("frameworks/foreign/beta/bench.toml", text);
        let folder = project.root.frameworks().join("foreign/beta");
        let stem = format!("{}/", folder.display());
        read("beta", &folder).map_err(|error| error.replace(&stem, ""))
    }

    #[test]
    fn mistakes_name_the_remedy() {
        for (text, expected) in [
            (
                "language = \"go\"\nversion = \"1\"\nrum = []\nrun = [\"x\"]\n",
                "bench.toml: line 3: unknown key `rum` (did you mean `run`?)",
            ),
            (
                "language = \"go\"\nversion = \"1\"\nrun = []\n",
                "bench.toml: `run` is empty (write the program first)",
            ),
            (
                "language = \"go\"\nrun = [\"x\"]\n",
                "bench.toml: neither `version` nor `version-command` is there",
            ),
            (
                "language = \"go\"\nversion = \"1\"\nversion-command = [\"x\"]\nrun = [\"x\"]\n",
                "bench.toml: both `version` and `version-command` are there",
            ),
            (
                "language = \"go\"\nversion = \"1\"\nbuild = [[]]\nrun = [\"x\"]\n",
                "bench.toml: `build` is empty (write the program first)",
            ),
            (
                "language = \"go\"\nversion = \"1\"\nrun = [\"\"]\n",
                "bench.toml: the program of `run` is empty (write its name)",
            ),
            (
                "language = \"go\"\nversion = \"1\"\nrun = [\"x\", \"a\\u0000\"]\n",
                "bench.toml: `run` has a zero byte (take it out)",
            ),
            (
                "language = \"go\"\nversion = \"1\\n2\"\nrun = [\"x\"]\n",
                "bench.toml: `version` is \"1\\n2\" (write one line of text without control characters)",
            ),
            (
                "language = \"\"\nversion = \"1\"\nrun = [\"x\"]\n",
                "bench.toml: `language` is \"\" (write one line of text without control characters)",
            ),
            (
                "language = \"go\"\nversion = \"1\"\nrun = [\"x\"]\nomits = [\"echo\"]\n",
                "bench.toml: `omits` has `echo`, and `text of 0 bytes` of it is a must (only should and note can be left out)",
            ),
        ] {
            assert_eq!(read_manifest(text).unwrap_err(), expected);
        }
        let missing = read_manifest("version = \"1\"\nrun = [\"x\"]\n").unwrap_err();
        assert!(missing.ends_with("missing field `language`"), "{missing}");
    }

    #[test]
    fn the_version_is_asked_for_and_a_failure_is_told() {
        let with = |command: &str| {
            let text = format!("language = \"sh\"\nversion-command = {command}\nrun = [\"sh\"]\n");
            let mut subject = read_manifest(&text).unwrap().remove(0);
            // The project of `subject` is gone, and a command runs in the folder.
            subject.folder = std::env::temp_dir();
            subject.version()
        };
        assert_eq!(with("[\"sh\", \"-c\", \"echo beta 2\"]"), "beta 2");
        assert_eq!(with("[\"no-such-program\"]"), "beta (no `no-such-program`)");
        assert_eq!(with("[\"false\"]"), "beta (`false`: exit status: 1)");
    }

    #[test]
    fn a_missing_program_is_named() {
        let text = "language = \"x\"\nversion = \"1\"\nneeds = [\"sh\", \"no-such-program\"]\nrun = [\"sh\"]\n";
        let subject = read_manifest(text).unwrap().remove(0);
        let Kind::Foreign(manifest) = &subject.kind else {
            panic!("not foreign")
        };
        assert_eq!(manifest.missing(), Some("no-such-program"));
        let error = manifest
            .command("beta", &subject.folder)
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "beta needs `no-such-program`, which is not on PATH (install it)"
        );
    }
}
