//! Servers under test. No list of them exists: a folder of `frameworks/` with a
//! `Cargo.toml`, of `frameworks/foreign/` with a `bench.toml`, or of `tcp/` with
//! either, is one.

mod catalog;
pub mod foreign;
mod lock;
mod program;
pub mod rust;
mod state;
#[cfg(test)]
pub mod testing;

pub use catalog::{Catalog, Variants, check_name};
pub use lock::Lock;
pub use state::State;

use crate::patch::Patched;
use crate::root::Root;
use crate::strict;
use crate::verify::Omits;
use anyhow::bail;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use wsbench_schema::{SubjectId, Suite, setting};

/// A program asked for its version must answer in this time.
const VERSION_WITHIN: Duration = Duration::from_secs(5);

/// One server under test.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The folder's name, with `-<variant>` behind it for a variant. Where the
    /// folder itself is no subject, the variant's name alone.
    pub name: String,
    /// The variant's name, if the subject is one.
    pub variant: Option<String>,
    /// Where its sources are, and the working folder of its process.
    pub folder: PathBuf,
    /// Programming language.
    pub language: String,
    /// How it is built and run.
    pub kind: Kind,
    /// What it is compared with.
    pub suite: Suite,
    /// What distinguishes it, in one line.
    pub about: Option<String>,
    /// What it is for, if it is not one among equals: `floor`, or [`Self::DIRECT`].
    pub role: Option<String>,
    /// Files that its process has open for a connection, at most.
    pub descriptors: u32,
    /// Cases of the examination that it does not implement.
    pub omits: Omits,
}

/// How a subject is built and run.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A Cargo package of its own.
    Rust(RustBuild),
    /// Whatever its `bench.toml` says.
    Foreign(foreign::Manifest),
}

/// What distinguishes the binary of one Rust subject from that of another.
#[derive(Clone, Debug, Default)]
pub struct RustBuild {
    /// The package's name, which is its folder's.
    pub package: String,
    /// Name of the built program, which variants that differ only in arguments share.
    pub binary: String,
    /// Crate whose version in the lock file is the subject's version; by
    /// default the one that the folder is named after.
    pub crate_name: Option<String>,
    /// Features on top of the default ones.
    pub features: Vec<String>,
    /// False if the default features are off.
    pub default_features: bool,
    /// Arguments in front of those of the contract.
    pub args: Vec<String>,
    /// What of it is not the registry's.
    pub patched: Option<Patched>,
}

impl Subject {
    /// Role of the subject of the relay suite that is no relay but the upstream
    /// itself: what the client measures of it is the distance that a relay adds to.
    pub const DIRECT: &str = "direct";

    /// Roles that a manifest may give.
    pub const ROLES: [&str; 2] = [Self::DIRECT, Self::REFERENCE];

    /// Whether the client talks to the upstream itself.
    pub fn is_direct(&self) -> bool {
        self.role.as_deref() == Some(Self::DIRECT)
    }

    /// Role of a subject that is there to be compared with, whatever the examination
    /// finds: it is measured, and its rows say what it does otherwise.
    pub const REFERENCE: &str = "reference";

    /// Whether it is measured although it fails the examination.
    pub fn is_reference(&self) -> bool {
        self.role.as_deref() == Some(Self::REFERENCE)
    }

    /// Whether it has the flag `--buffer` of the TCP suites. Servers in other languages,
    /// HAProxy among them, have settings of their own.
    pub fn takes_buffer(&self) -> bool {
        !self.suite.is_websocket() && matches!(self.kind, Kind::Rust(_))
    }

    /// Whether it has the flag `--counters` of the transfer suite.
    pub fn counts(&self) -> bool {
        self.suite == Suite::Transfer && matches!(self.kind, Kind::Rust(_))
    }

    /// The program and its first arguments; the flags of the contract come
    /// behind. To be run in [`Subject::folder`]. Nothing is built here.
    ///
    /// # Errors
    /// If the program is not there: not built, or a needed program is missing.
    pub fn command(&self, root: &Root) -> anyhow::Result<Vec<OsString>> {
        match &self.kind {
            Kind::Rust(build) => {
                let binary = self.binary(root);
                if !binary.is_file() {
                    bail!("{} is not built ({})", self.name, self.how_to_build());
                }
                let args = build.args.iter().map(OsString::from);
                Ok(std::iter::once(binary.into()).chain(args).collect())
            }
            Kind::Foreign(manifest) => manifest.command(&self.name, &self.folder),
        }
    }

    /// What makes its program.
    pub fn how_to_build(&self) -> String {
        match self.patched() {
            Some(patched) => format!("run: wsbench build {} --patch CRATE=PLACE", patched.of),
            None => format!("run: wsbench build {}", self.name),
        }
    }

    /// As it stands in what is written about it.
    pub fn id(&self, version: String) -> SubjectId {
        SubjectId {
            name: self.name.clone(),
            variant: self.variant.clone(),
            version,
            language: self.language.clone(),
        }
    }

    fn program_name(&self) -> &str {
        match &self.kind {
            Kind::Rust(build) => &build.binary,
            Kind::Foreign(_) => &self.name,
        }
    }

    /// Where the built program of a Rust subject is.
    pub fn binary(&self, root: &Root) -> PathBuf {
        root.output("bin").join(self.program_name())
    }

    /// Cargo's list of the files that went into the binary, kept beside it.
    pub fn dependencies(&self, root: &Root) -> PathBuf {
        root.output("bin")
            .join(format!("{}.d", self.program_name()))
    }

    /// Written when a foreign subject was built, since its program may be anything.
    pub fn stamp(&self, root: &Root) -> PathBuf {
        root.output("bin").join(format!("{}.stamp", self.name))
    }

    /// Name and version of what is measured, as in `axum 0.8.9`, found without
    /// building: in the lock file, or as `bench.toml` says. Where it cannot be
    /// found, the reason stands in parentheses in the version's place.
    pub fn version(&self) -> String {
        match &self.kind {
            Kind::Rust(build) => self.as_patched(lock::version(&self.folder, build)),
            Kind::Foreign(manifest) => manifest.version(&self.name, &self.folder),
        }
    }

    /// Name and version of what the built program says it is (`--version`). The
    /// lock file may have changed since it was built, and stands in only if there
    /// is no program or it does not say. Of a foreign subject, as [`Self::version`].
    pub fn program_version(&self, root: &Root) -> String {
        let binary = self.binary(root);
        if matches!(self.kind, Kind::Foreign(_)) || !binary.is_file() {
            return self.version();
        }
        let args = ["--version".to_owned()];
        program::first_line(&binary, &args, &self.folder, VERSION_WITHIN)
            .map_or_else(|_| self.version(), |version| self.as_patched(version))
    }

    /// What of it is patched, if anything is.
    pub fn patched(&self) -> Option<&Patched> {
        match &self.kind {
            Kind::Rust(build) => build.patched.as_ref(),
            Kind::Foreign(_) => None,
        }
    }

    fn as_patched(&self, version: String) -> String {
        match self.patched() {
            Some(patched) => patched.version(&version),
            None => version,
        }
    }

    /// What tells the built program of a Rust subject from any other: 16 hex
    /// digits of its SHA-256. `None` if there is none that can be read.
    pub fn program_hash(&self, root: &Root) -> Option<String> {
        if matches!(self.kind, Kind::Foreign(_)) {
            return None;
        }
        let bytes = fs::read(self.binary(root)).ok()?;
        let digest = Sha256::digest(bytes);
        Some(digest.iter().take(8).map(|b| format!("{b:02x}")).collect())
    }

    /// Whether it can be run now.
    pub fn state(&self, root: &Root) -> State {
        state::of(self, root)
    }

    /// What a record must say about the build besides the version.
    pub fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = BTreeMap::new();
        if let Kind::Rust(build) = &self.kind {
            let mut set = |name: &str, values: &[String]| {
                if !values.is_empty() {
                    settings.insert(name.to_owned(), values.join(" "));
                }
            };
            set("features", &build.features);
            set("args", &build.args);
            if !build.default_features {
                settings.insert("default_features".into(), "false".into());
            }
        }
        if let Some(role) = &self.role {
            settings.insert("role".into(), role.clone());
        }
        if let Some(patched) = self.patched() {
            settings.insert(setting::PATCH_OF.into(), patched.of.clone());
            for found in &patched.crates {
                let name = format!("{}{}", setting::PATCHED, found.name);
                settings.insert(name, found.version.clone());
            }
        }
        settings
    }
}

/// What a subject is for.
///
/// # Errors
/// If it is none that anybody knows, with the nearest.
pub fn check_role(role: &str) -> Result<(), String> {
    match Subject::ROLES.contains(&role) {
        true => Ok(()),
        false => {
            let meant = strict::suggestion(role, Subject::ROLES.into_iter());
            Err(format!(
                "unknown role `{role}`{meant} (valid: {})",
                Subject::ROLES.join(", ")
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::Project;
    use std::ffi::OsString;

    #[test]
    fn the_command_is_the_built_binary_and_the_variants_arguments() {
        let project = Project::new();
        project.rust("alpha");
        project.append(
            "frameworks/alpha/Cargo.toml",
            "[package.metadata.wsbench]\nvariants = [{ name = \"fast\", features = [\"batch\"], args = [\"--batch\", \"8\"] }]\n",
        );
        let catalog = project.catalog();
        let fast = catalog.find("alpha-fast").unwrap();
        let error = fast.command(&project.root).unwrap_err().to_string();
        assert_eq!(
            error,
            "alpha-fast is not built (run: wsbench build alpha-fast)"
        );
        project.write("output/bin/alpha-fast", "");
        let expected: Vec<OsString> = vec![
            project.root.output("bin").join("alpha-fast").into(),
            "--batch".into(),
            "8".into(),
        ];
        assert_eq!(fast.command(&project.root).unwrap(), expected);
        let settings: Vec<_> = fast.settings().into_iter().collect();
        assert_eq!(
            settings,
            [
                ("args".to_owned(), "--batch 8".to_owned()),
                ("features".to_owned(), "batch".to_owned())
            ]
        );
        assert!(catalog.find("alpha").unwrap().settings().is_empty());
    }

    #[test]
    fn the_version_is_what_the_program_says_and_else_the_lock_files() {
        let project = Project::new();
        let folder = project.rust("alpha");
        let lock = "[[package]]\nname = \"alpha\"\nversion = \"0.1.0\"\n";
        std::fs::write(folder.join("Cargo.lock"), lock).unwrap();
        let catalog = project.catalog();
        let alpha = catalog.find("alpha").unwrap();
        let version = || alpha.program_version(&project.root);
        let hash = || alpha.program_hash(&project.root);
        assert_eq!((version(), hash()), ("alpha 0.1.0".into(), None));
        project.script(
            "output/bin/alpha",
            "test \"$*\" = --version && echo alpha 9",
        );
        assert_eq!(version(), "alpha 9");
        let first = hash().unwrap();
        assert_eq!(first.len(), 16);
        project.script("output/bin/alpha", "exit 2");
        assert_eq!(version(), "alpha 0.1.0");
        assert_ne!(hash().unwrap(), first);
    }

    #[test]
    fn a_foreign_program_is_relative_to_its_folder() {
        let project = Project::new();
        project.write(
            "frameworks/foreign/beta/bench.toml",
            "language = \"sh\"\nversion = \"beta 1.0\"\nrun = [\"./serve.sh\", \"-x\"]\n",
        );
        let catalog = project.catalog();
        let beta = catalog.find("beta").unwrap();
        assert_eq!(beta.version(), "beta 1.0");
        let error = beta.command(&project.root).unwrap_err().to_string();
        assert!(error.contains("serve.sh is not there"), "{error}");
        project.script("frameworks/foreign/beta/serve.sh", "exit 0");
        let command = beta.command(&project.root).unwrap();
        assert_eq!(command[0], beta.folder.join("serve.sh").into_os_string());
        assert_eq!(command[1], "-x");
    }
}
