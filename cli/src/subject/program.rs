//! Programs that a subject needs: where they are, and what they print.

use std::env;
use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The executable file of that name on PATH.
pub fn on_path(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|path| is_executable(path))
}

/// A program as `bench.toml` names it: with a slash it is relative to the
/// subject's folder, without one it is looked up on PATH.
pub fn resolve(program: &str, folder: &Path) -> Option<PathBuf> {
    if program.contains('/') {
        let path = folder.join(program.strip_prefix("./").unwrap_or(program));
        is_executable(&path).then_some(path)
    } else {
        on_path(program)
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// The first line that a program prints, which must succeed within the time.
///
/// # Errors
/// A short reason.
pub fn first_line(
    program: &Path,
    args: &[String],
    folder: &Path,
    within: Duration,
) -> Result<String, String> {
    let mut child = Command::new(program)
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let name = program.file_name().unwrap_or(OsStr::new("program"));
    let name = name.to_string_lossy();
    let deadline = Instant::now() + within;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(2)),
            late => {
                // It may have ended in the meantime, which is as good.
                let _ = child.kill();
                let _ = child.wait();
                let seconds = within.as_secs();
                return Err(late.map_or_else(
                    |error| error.to_string(),
                    |_| format!("`{name}` did not end within {seconds} s"),
                ));
            }
        }
    };
    if !status.success() {
        return Err(format!("`{name}`: {status}"));
    }
    let mut text = Vec::new();
    if let Some(output) = child.stdout.take() {
        // A grandchild may hold the pipe open: what fits a line is enough.
        let _ = output.take(4096).read_to_end(&mut text);
    }
    let text = String::from_utf8_lossy(&text);
    match text.lines().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) => Ok(line.to_owned()),
        None => Err(format!("`{name}` printed nothing")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, within_ms: u64) -> Result<String, String> {
        let args = ["-c".to_owned(), script.to_owned()];
        let sh = on_path("sh").expect("sh is on PATH");
        first_line(&sh, &args, Path::new("/"), Duration::from_millis(within_ms))
    }

    #[test]
    fn the_first_line_is_taken_and_failures_have_a_reason() {
        assert_eq!(
            sh("echo; echo ' one 1.0 '; echo two", 5000).unwrap(),
            "one 1.0"
        );
        assert_eq!(sh("exit 3", 5000).unwrap_err(), "`sh`: exit status: 3");
        assert_eq!(sh("true", 5000).unwrap_err(), "`sh` printed nothing");
        let begin = Instant::now();
        let late = sh("exec sleep 20", 1000).unwrap_err();
        assert_eq!(late, "`sh` did not end within 1 s");
        assert!(begin.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_slash_means_the_folder_and_no_slash_means_path() {
        assert!(resolve("sh", Path::new("/nowhere")).is_some());
        assert!(resolve("./sh", Path::new("/nowhere")).is_none());
        assert_eq!(resolve("./sh", Path::new("/bin")), Some("/bin/sh".into()));
        assert!(on_path("no-such-program-here").is_none());
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("plain"), "").unwrap();
        assert!(
            resolve("./plain", folder.path()).is_none(),
            "not executable"
        );
    }
}
