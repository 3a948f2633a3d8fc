//! The end of a server's log, for messages.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

const LINES_MOST: usize = 5;
const BYTES_MOST: i64 = 4000;

/// `its log PATH ends with: a | b`, in one line.
pub fn tail(path: &Path) -> String {
    let shown = path.display();
    match last_bytes(path) {
        Err(error) => format!("its log {shown} cannot be read: {error}"),
        Ok(text) => {
            let lines: Vec<&str> = text
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty())
                .collect();
            match lines.as_slice() {
                [] => format!("its log {shown} is empty"),
                lines => {
                    let last = &lines[lines.len().saturating_sub(LINES_MOST)..];
                    format!("its log {shown} ends with: {}", last.join(" | "))
                }
            }
        }
    }
}

/// The last lines of a log, and whether there were others before them; `None` if there is
/// nothing to show.
pub fn last_lines(path: &Path, most: usize) -> Option<(Vec<String>, bool)> {
    let text = last_bytes(path).ok()?;
    let is_short = path.metadata().ok()?.len() <= BYTES_MOST.unsigned_abs();
    let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    if !is_short && lines.len() > 1 {
        // It may have been cut within.
        lines.remove(0);
    }
    lines.retain(|line| !line.is_empty());
    let is_cut = !is_short || lines.len() > most;
    let last = &lines[lines.len().saturating_sub(most)..];
    let shown: Vec<String> = last.iter().map(|line| (*line).to_owned()).collect();
    (!shown.is_empty()).then_some((shown, is_cut))
}

fn last_bytes(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = i64::try_from(file.metadata()?.len()).unwrap_or(i64::MAX);
    file.seek(SeekFrom::End(-length.min(BYTES_MOST)))?;
    let mut bytes = Vec::new();
    file.take(BYTES_MOST.unsigned_abs())
        .read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_shown_in_one() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let name = file.path().display().to_string();
        assert_eq!(tail(file.path()), format!("its log {name} is empty"));
        let long = "x".repeat(9000) + "\n1\n2\n\n3\n  4\n5\n6\n";
        std::fs::write(file.path(), long).unwrap();
        let expected = format!("its log {name} ends with: 2 | 3 | 4 | 5 | 6");
        assert_eq!(tail(file.path()), expected);
        let missing = tail(Path::new("/nonexistent/log"));
        assert!(missing.contains("cannot be read"), "{missing}");
    }
}
