//! A crate of a subject taken from somewhere else: a folder or a git revision, as its
//! author has it before a release. Each chosen subject that depends on it has a second
//! one beside it, which differs from the first in that crate and in nothing else.

mod lock;
mod prepare;
mod state;

pub use state::sources;

use crate::progress::note;
use crate::root::Root;
use crate::strict;
use crate::subject::{Kind, Subject};
use anyhow::{Context as _, bail};
use lock::Locked;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Characters of a git revision that a name has.
const REVISION_CHARS: usize = 12;
/// Of a folder's name.
const TAG_CHARS: usize = 40;

/// `CRATE=PLACE`: which crate, and where it is taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// As its registry names it.
    pub crate_name: String,
    /// Instead of the registry.
    pub place: Place,
}

/// Where a crate is taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A folder with its `Cargo.toml`, from the root.
    Folder(PathBuf),
    /// A repository, and what of it is meant.
    Git {
        /// Without `git+`.
        url: String,
        /// Or a tag; the newest of its usual branch, if nothing is said.
        revision: Option<String>,
    },
}

/// `--patch` of the commands that build.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PatchArgs {
    /// Also the subjects with this crate taken from a folder, or from git+URL#REVISION
    ///
    /// As in --patch tungstenite=../my-tungstenite. Each chosen subject that depends on
    /// the crate has a second one beside it, built with a lock file of its own; several
    /// --patch are applied together.
    #[arg(long, value_name = "CRATE=PLACE", help_heading = "Server")]
    pub patch: Vec<Patch>,
}

/// What of a subject is patched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patched {
    /// Name of the subject that it is compared with.
    pub of: String,
    /// In the order of the flags.
    pub crates: Vec<PatchedCrate>,
}

/// A crate that is not the registry's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchedCrate {
    /// Its name.
    pub name: String,
    /// Its version, with what is known of where it is from:
    /// `0.29.0+path (git 1a2b3c4d5e6f, dirty)`.
    pub version: String,
    /// Its folder, if it is one.
    pub folder: Option<PathBuf>,
}

impl FromStr for Patch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let usage = "write CRATE=FOLDER or CRATE=git+URL#REVISION";
        let (name, place) = text
            .split_once('=')
            .ok_or_else(|| format!("`{text}` has no `=` ({usage})"))?;
        let is_named = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(is_named) {
            return Err(format!("`{name}` cannot be the name of a crate ({usage})"));
        }
        let place = match place.strip_prefix("git+") {
            Some(url) => git(url)?,
            None if place.is_empty() => return Err(format!("no folder is named ({usage})")),
            None => Place::Folder(folder(name, Path::new(place))?),
        };
        Ok(Self {
            crate_name: name.to_owned(),
            place,
        })
    }
}

fn git(text: &str) -> Result<Place, String> {
    let (url, revision) = match text.split_once('#') {
        Some((url, revision)) => (url, Some(revision.to_owned())),
        None => (text, None),
    };
    if !url.contains("://") {
        return Err(format!("`{url}` is no URL (write git+https://host/path)"));
    }
    if revision.as_deref() == Some("") {
        return Err("there is nothing behind the `#` (write a revision or a tag)".into());
    }
    Ok(Place::Git {
        url: url.to_owned(),
        revision,
    })
}

/// The folder, if it holds that crate.
fn folder(name: &str, place: &Path) -> Result<PathBuf, String> {
    let at = |reason: String| format!("{}: {reason}", place.display());
    let folder = place
        .canonicalize()
        .map_err(|error| at(error.to_string()))?;
    let text = strict::text_of(&folder.join("Cargo.toml"))
        .map_err(|error| at(format!("its Cargo.toml cannot be read: {error}")))?;
    let manifest: toml::Table = strict::from_toml(&text).map_err(at)?;
    let package = manifest.get("package");
    let found = package.and_then(|package| package.get("name"));
    match found.and_then(toml::Value::as_str) {
        Some(found) if found == name => Ok(folder),
        Some(found) => Err(at(format!(
            "this is the crate `{found}` (write --patch {found}=..., or name the folder of `{name}`)"
        ))),
        None => Err(at(format!(
            "this is a workspace and no crate (name the folder of `{name}` in it)"
        ))),
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => folder.display().fmt(f),
            Self::Git { url, revision } => {
                write!(f, "git+{url}")?;
                match revision {
                    Some(revision) => write!(f, "#{revision}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl Patch {
    /// `tungstenite@my-tungstenite`: what stands behind the subject's name, and in the
    /// names of files.
    fn tag(&self) -> String {
        let place = match &self.place {
            Place::Folder(folder) => {
                let name = folder.file_name().unwrap_or_default().to_string_lossy();
                name.chars().take(TAG_CHARS).collect()
            }
            Place::Git { url, revision } => match revision {
                Some(revision) => revision.chars().take(REVISION_CHARS).collect(),
                None => {
                    let last = url.trim_end_matches('/').rsplit('/').next();
                    last.unwrap_or(url).trim_end_matches(".git").to_owned()
                }
            },
        };
        let safe = |c: char| match c.to_ascii_lowercase() {
            c @ ('a'..='z' | '0'..='9' | '_' | '-' | '.') => c,
            _ => '-',
        };
        let place: String = place.chars().map(safe).collect();
        format!("{}@{place}", self.crate_name)
    }
}

/// Behind each subject that depends on a patched crate, the same with it. Their folders
/// are made in `output/patched/`, and nothing is built yet.
///
/// # Errors
/// If nobody depends on one of the crates, or a subject does and cargo does not use the
/// patched one.
pub fn beside(
    root: &Root,
    subjects: Vec<Subject>,
    patches: &[Patch],
) -> anyhow::Result<Vec<Subject>> {
    if patches.is_empty() {
        return Ok(subjects);
    }
    refuse_two_of_one(patches)?;
    let needs = |subject: &Subject, patch: &Patch| depends(subject, &patch.crate_name);
    for patch in patches {
        if !subjects.iter().any(|subject| needs(subject, patch)) {
            bail!(none_depends(&subjects, &patch.crate_name));
        }
    }
    let mut all = Vec::with_capacity(subjects.len() * 2);
    for subject in subjects {
        let its: Vec<&Patch> = patches.iter().filter(|p| needs(&subject, p)).collect();
        let without: Vec<&str> = patches
            .iter()
            .filter(|patch| !needs(&subject, patch))
            .map(|patch| patch.crate_name.as_str())
            .collect();
        if !without.is_empty() {
            note(format_args!(
                "{} does not depend on {}, and is as it was in that",
                subject.name,
                without.join(", ")
            ));
        }
        let patched = match its.is_empty() {
            true => None,
            false => Some(
                one(root, &subject, &its)
                    .with_context(|| format!("{} cannot be patched", subject.name))?,
            ),
        };
        all.push(subject);
        all.extend(patched);
    }
    Ok(all)
}

/// Whether a subject of that name is a patched one: no folder and no variant has such.
pub fn is_name(name: &str) -> bool {
    name.split_once('+')
        .is_some_and(|(_, tags)| tags.contains('@'))
}

fn refuse_two_of_one(patches: &[Patch]) -> anyhow::Result<()> {
    for (index, patch) in patches.iter().enumerate() {
        let name = &patch.crate_name;
        if patches[..index]
            .iter()
            .any(|other| other.crate_name == *name)
        {
            bail!(
                "--patch names `{name}` twice, and a program has one of it (make two runs, or compare with `wsbench cmp`)"
            );
        }
    }
    Ok(())
}

fn depends(subject: &Subject, crate_name: &str) -> bool {
    let is_rust = matches!(subject.kind, Kind::Rust(_));
    is_rust && Locked::read(&subject.folder).is_ok_and(|lock| lock.has_from_elsewhere(crate_name))
}

fn none_depends(subjects: &[Subject], crate_name: &str) -> String {
    let names: Vec<&str> = subjects.iter().map(|s| s.name.as_str()).collect();
    let locks = subjects.iter().filter_map(|s| Locked::read(&s.folder).ok());
    let known: Vec<String> = locks.flat_map(|lock| lock.names_elsewhere()).collect();
    let meant = strict::suggestion(crate_name, known.iter().map(String::as_str));
    format!(
        "no Cargo.lock of {} has a crate `{crate_name}` of a registry{meant}",
        names.join(", ")
    )
}

fn one(root: &Root, subject: &Subject, patches: &[&Patch]) -> anyhow::Result<Subject> {
    let Kind::Rust(build) = &subject.kind else {
        bail!("it is no Cargo package");
    };
    let tags: Vec<String> = patches.iter().map(|patch| patch.tag()).collect();
    let with = |name: &str| format!("{name}+{}", tags.join("+"));
    let name = with(&subject.name);
    let folder = root.output("patched").join(&name);
    let ready = prepare::folder(root, subject, &folder, patches)?;
    if !ready.others.is_empty() {
        note(format_args!(
            "{name}: its lock file differs from that of {} in what the patch needs too: {}",
            subject.name,
            ready.others.join(", ")
        ));
    }
    let mut build = build.clone();
    build.binary = with(&build.binary);
    build.patched = Some(Patched {
        of: subject.name.clone(),
        crates: ready.crates,
    });
    Ok(Subject {
        name,
        folder,
        kind: Kind::Rust(build),
        ..subject.clone()
    })
}

impl Patched {
    /// The version of the subject, with what is not the registry's: in place of what its
    /// lock file says of that crate, or behind it.
    pub fn version(&self, of_subject: &str) -> String {
        let named = of_subject.split(' ').next().unwrap_or_default();
        let is_it = |found: &&PatchedCrate| found.name == named;
        let own = self.crates.iter().find(is_it);
        let own = own.map_or_else(
            || of_subject.to_owned(),
            |found| format!("{named} {}", found.version),
        );
        let others = self.crates.iter().filter(|found| found.name != named);
        let others = others.map(|found| format!("{} {}", found.name, found.version));
        std::iter::once(own)
            .chain(others)
            .collect::<Vec<_>>()
            .join(", ")
    }
}

#[cfg(test)]
mod tests;
