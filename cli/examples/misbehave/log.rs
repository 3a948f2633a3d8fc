//! What really happened, for a test to compare with: one integer a line.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Kept in memory until it is flushed, so that logging does not disturb.
pub struct Log {
    path: Option<PathBuf>,
    lines: Mutex<Vec<u64>>,
}

impl Log {
    pub fn new(path: Option<PathBuf>) -> Self {
        Self {
            path,
            lines: Mutex::new(Vec::with_capacity(1 << 16)),
        }
    }

    pub fn push(&self, nanoseconds: u64) {
        if self.path.is_some() {
            self.lines
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(nanoseconds);
        }
    }

    /// Appends to the file all that was not yet written.
    pub fn flush(&self) {
        let Some(path) = &self.path else { return };
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let text: String = lines.drain(..).map(|line| format!("{line}\n")).collect();
        let appended = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .and_then(|mut file| file.write_all(text.as_bytes()));
        if let Err(error) = appended {
            eprintln!("misbehave: cannot write {}: {error}", path.display());
        }
    }
}
