//! What of the folder of a patched crate is known from outside: its revision, and
//! whether it changed since the program was built.

use super::Patched;
use crate::git;
use std::path::{Path, PathBuf};

/// Files besides the sources, which cargo lists, that decide what is built.
pub fn sources(patched: &Patched) -> impl Iterator<Item = PathBuf> {
    let folders = patched
        .crates
        .iter()
        .filter_map(|found| found.folder.as_ref());
    folders.map(|folder| folder.join("Cargo.toml"))
}

/// `git 1a2b3c4d5e6f`, with `, dirty` behind it if anything in the folder is not as in
/// that revision; `None` if git does not keep the folder.
pub fn revision(folder: &Path) -> Option<String> {
    let git = |args: &[&str]| git::ask(folder, args);
    // A copy that lies in somebody else's repository is of no revision of it.
    git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    let revision = git(&["rev-parse", git::SHORT, "HEAD"])?;
    Some(
        match git(&["status", "--porcelain", "--", "."]).as_deref() {
            Some("") => format!("git {revision}"),
            _ => format!("git {revision}, dirty"),
        },
    )
}
