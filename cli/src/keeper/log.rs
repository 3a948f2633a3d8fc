//! The file that takes a server's output, kept small however much it says.
//!
//! Not a pipe: a server that says much would wait for its reader, and be measured
//! doing so. Nor a limit on files, which would hold for all that it writes and end
//! it by a signal. It writes to the file as it would without us, and what is too
//! much is cut out behind it.

use anyhow::Context as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

/// How often it is looked at: so long may a server fill the disk.
pub const LOOK: Duration = Duration::from_millis(50);
/// A log that is longer is cut.
const MOST_BYTES: u64 = 8 << 20;
/// What stays of its beginning. Its end is what is written from then on.
const HEAD_BYTES: u64 = 1 << 20;

/// An open log.
pub struct Log {
    file: File,
    cut_bytes: u64,
    /// Length after the last cut.
    floor_bytes: u64,
}

impl Log {
    /// Makes it, or empties the one that is there.
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        let cannot = || format!("cannot write the log {}", path.display());
        File::create(path).with_context(cannot)?;
        // All that write to it write at its end, wherever that is after a cut.
        let file = OpenOptions::new().append(true).open(path);
        Ok(Self {
            file: file.with_context(cannot)?,
            cut_bytes: 0,
            floor_bytes: 0,
        })
    }

    /// For the server's standard output or error.
    pub fn handle(&self) -> anyhow::Result<File> {
        let copy = self.file.try_clone();
        copy.context("cannot copy a file descriptor")
    }

    /// Cuts it if it is too long, and says so in it.
    pub fn bound(&mut self) {
        // A log that cannot be cut is no reason to end the server that it is of.
        let _ = self.try_bound();
    }

    fn try_bound(&mut self) -> io::Result<()> {
        let bytes = self.file.metadata()?.len();
        if bytes <= MOST_BYTES {
            return Ok(());
        }
        // The note of the last cut goes with what it was about.
        self.cut_bytes += bytes - self.floor_bytes.max(HEAD_BYTES);
        self.file.set_len(HEAD_BYTES)?;
        let cut = self.cut_bytes;
        writeln!(
            self.file,
            "\n[wsbench: too much output; about {cut} bytes are left out here]"
        )?;
        self.floor_bytes = self.file.metadata()?.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_log_that_is_too_long_keeps_its_beginning_and_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, "of the last server").unwrap();
        let mut log = Log::create(&path).unwrap();
        let mut server = log.handle().unwrap();
        let block = vec![b'x'; 5 << 20];
        server.write_all(b"first\n").unwrap();
        for _ in 0..4 {
            server.write_all(&block).unwrap();
            log.bound();
        }
        server.write_all(b"last\n").unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("first\nx") && text.ends_with("]\nlast\n"));
        let notes = text.matches("[wsbench: ").count();
        assert_eq!(notes, 1);
        let left_out = (20 << 20) + 6 - HEAD_BYTES;
        assert!(
            text.contains(&format!("about {left_out} bytes")),
            "{}",
            &text[HEAD_BYTES as usize..]
        );
        assert!(text.len() as u64 <= MOST_BYTES);
    }
}
