//! What git knows of a folder. It looks only: it writes nothing, not even its index, which
//! somebody may be using.

use std::path::Path;
use std::process::{Command, Stdio};

/// How a revision is shortened.
pub const SHORT: &str = "--short=12";

/// What a command of git prints in a folder; `None` if it fails, as where git is missing
/// or does not keep the folder.
pub fn ask(folder: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .arg("--no-optional-locks")
        .args(args)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
