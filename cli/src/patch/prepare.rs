//! The folder of a patched subject: its manifest with the patch in it, its lock file
//! with no other change than that, and links to its sources.

use super::lock::Locked;
use super::{Patch, PatchedCrate, Place, state};
use crate::compile;
use crate::root::Root;
use crate::strict;
use crate::subject::Subject;
use anyhow::{Context as _, bail};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// What became of it.
pub struct Ready {
    /// In the order of the patches.
    pub crates: Vec<PatchedCrate>,
    /// What else differs from the subject's lock file, in words.
    pub others: Vec<String>,
}

/// Files of the folder that are its own and no links.
const OWN: [&str; 2] = ["Cargo.toml", "Cargo.lock"];

/// Makes the folder, or finds that it is as it must be and changes nothing.
pub fn folder(
    root: &Root,
    subject: &Subject,
    folder: &Path,
    patches: &[&Patch],
) -> anyhow::Result<Ready> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let parent = folder.parent().unwrap_or(folder);
    fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    // Apart, so that a lock file that is the same as before stays as old as it is.
    let draft = tempfile::Builder::new()
        .prefix(&format!(".{name}-"))
        .tempdir_in(parent)
        .with_context(|| format!("cannot write to {}", parent.display()))?;
    let draft = draft.path();
    link_sources(&subject.folder, draft)?;
    let text = manifest(&subject.folder, patches)?;
    write(&draft.join("Cargo.toml"), &text)?;
    let before = subject.folder.join("Cargo.lock");
    fs::copy(&before, draft.join("Cargo.lock"))
        .with_context(|| format!("cannot copy {}", before.display()))?;
    let ready = resolve(root, subject, draft, patches)?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    link_sources(&subject.folder, folder)?;
    for own in OWN {
        let (from, to) = (draft.join(own), folder.join(own));
        let is_same = matches!((fs::read(&from), fs::read(&to)), (Ok(a), Ok(b)) if a == b);
        if !is_same {
            fs::rename(&from, &to).with_context(|| format!("cannot write {}", to.display()))?;
        }
    }
    Ok(ready)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Everything of a folder but what is another's here. Links that lead elsewhere or
/// nowhere are made again.
fn link_sources(from: &Path, to: &Path) -> anyhow::Result<()> {
    let cannot = |path: &Path| format!("cannot link {}", path.display());
    for entry in fs::read_dir(to).with_context(|| cannot(to))? {
        let path = entry.with_context(|| cannot(to))?.path();
        if path.is_symlink() {
            fs::remove_file(&path).with_context(|| cannot(&path))?;
        }
    }
    for entry in fs::read_dir(from).with_context(|| cannot(from))? {
        let entry = entry.with_context(|| cannot(from))?;
        let name = entry.file_name();
        let is_left_out = name == "target" || OWN.iter().any(|own| name == *own);
        if !is_left_out {
            symlink(entry.path(), to.join(&name)).with_context(|| cannot(&entry.path()))?;
        }
    }
    Ok(())
}

/// The manifest, which stands elsewhere than that of the subject, with the patches.
fn manifest(folder: &Path, patches: &[&Patch]) -> anyhow::Result<String> {
    let path = folder.join("Cargo.toml");
    let text = strict::text_of(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut manifest: Table = strict::from_toml(&text)
        .map_err(|reason| anyhow::anyhow!("{}: {reason}", path.display()))?;
    for (key, value) in &mut manifest {
        // Of the targets, paths are found by the links.
        if key != "package" && key != "bin" && key != "lib" {
            absolute(value, folder);
        }
    }
    // It is no member of the workspace that it lies in.
    let own = || Value::Table(Table::new());
    manifest.entry("workspace").or_insert_with(own);
    let patched = manifest.entry("patch").or_insert_with(own);
    let patched = patched.as_table_mut().context("`patch` is no table")?;
    let registry = patched.entry("crates-io").or_insert_with(own);
    let registry = registry
        .as_table_mut()
        .context("`patch.crates-io` is no table")?;
    for patch in patches {
        registry.insert(patch.crate_name.clone(), Value::Table(place(&patch.place)?));
    }
    toml::to_string(&manifest).context("cannot write the manifest")
}

fn place(place: &Place) -> anyhow::Result<Table> {
    let mut table = Table::new();
    let mut set = |name: &str, text: &str| {
        table.insert(name.to_owned(), Value::String(text.to_owned()));
    };
    match place {
        Place::Folder(folder) => {
            let path = folder.to_str();
            let path = path.with_context(|| format!("{} is no UTF-8", folder.display()))?;
            set("path", path);
        }
        Place::Git { url, revision } => {
            set("git", url);
            if let Some(revision) = revision {
                // A tag as well.
                set("rev", revision);
            }
        }
    }
    Ok(table)
}

/// Each `path = "..."` of a dependency, from the root.
fn absolute(value: &mut Value, folder: &Path) {
    let Some(table) = value.as_table_mut() else {
        return;
    };
    for (key, value) in table {
        match value {
            Value::String(path) if key == "path" => {
                *path = folder.join(&*path).to_string_lossy().into_owned();
            }
            other => absolute(other, folder),
        }
    }
}

/// Has cargo decide with which versions the patched subject is built.
fn resolve(
    root: &Root,
    subject: &Subject,
    draft: &Path,
    patches: &[&Patch],
) -> anyhow::Result<Ready> {
    let before = Locked::read(&subject.folder)?;
    let log = root.output("log");
    fs::create_dir_all(&log).with_context(|| format!("cannot make {}", log.display()))?;
    let cargo = Cargo {
        root,
        manifest: draft.join("Cargo.toml"),
        log: log.join(format!("patch-{}.log", subject.name)),
    };
    cargo.update(&["--workspace"])?;
    for patch in patches {
        let name = &patch.crate_name;
        let now = Locked::read(draft)?;
        // Another version than the locked one that fits what is asked for all the same.
        let Some(unused) = now.unused(name) else {
            continue;
        };
        for old in before.locked(name) {
            let which = format!("{name}@{}", old.version);
            // Whether it was of use stands in the lock file.
            let _ = cargo.update(&["--precise", &unused.version, "-p", &which]);
            if Locked::read(draft)?.unused(name).is_none() {
                break;
            }
        }
    }
    let now = Locked::read(draft)?;
    let mut crates = Vec::with_capacity(patches.len());
    for patch in patches {
        let Some(found) = now.brought(&before, &patch.crate_name) else {
            bail!(not_used(&before, &now, patch));
        };
        let folder = match &patch.place {
            Place::Folder(folder) => Some(folder.clone()),
            Place::Git { .. } => None,
        };
        crates.push(PatchedCrate {
            name: found.name.clone(),
            version: version(&found.version, found.source.as_deref(), folder.as_deref()),
            folder,
        });
    }
    let names: Vec<&str> = patches.iter().map(|p| p.crate_name.as_str()).collect();
    Ok(Ready {
        crates,
        others: now.other_changes(&before, &names),
    })
}

fn version(version: &str, source: Option<&str>, folder: Option<&Path>) -> String {
    let git = source.and_then(|source| source.rsplit_once('#'));
    match (git, folder) {
        (Some((_, revision)), _) => {
            let short: String = revision.chars().take(super::REVISION_CHARS).collect();
            format!("{version}+git ({short})")
        }
        (None, folder) => match folder.and_then(state::revision) {
            Some(revision) => format!("{version}+path ({revision})"),
            None => format!("{version}+path"),
        },
    }
}

fn not_used(before: &Locked, now: &Locked, patch: &Patch) -> String {
    let name = &patch.crate_name;
    let locked: Vec<&str> = before.locked(name).map(|p| p.version.as_str()).collect();
    let locked = locked.join(" and ");
    let place = &patch.place;
    let is = match now.unused(name) {
        Some(unused) => format!("{place} is version {}", unused.version),
        None => format!("{place} is another"),
    };
    format!(
        "it depends on {name} {locked}, and {is}, which does not fit, so that cargo would build the one of the registry \
         (take the sources of a version that fits {locked}, or write such a `version` in their Cargo.toml)"
    )
}

/// Has cargo renew a lock file.
struct Cargo<'a> {
    root: &'a Root,
    manifest: PathBuf,
    log: PathBuf,
}

impl Cargo<'_> {
    /// Without the network, if what is needed is on this machine.
    fn update(&self, args: &[&str]) -> anyhow::Result<()> {
        let update =
            |is_offline| compile::update(self.root, &self.manifest, args, is_offline, &self.log);
        update(true).or_else(|_| update(false))
    }
}
