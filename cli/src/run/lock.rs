//! One measurement at a time: two would measure each other.

use crate::process;
use crate::run::id::Utc;
use anyhow::{Context as _, bail};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::Duration;

/// Whoever only asks whether somebody measures holds the lock for less than this.
const ASKING_MOST: Duration = Duration::from_millis(200);

/// Held until dropped, or until this process ends in any way.
#[derive(Debug)]
pub struct RunLock(File);

impl RunLock {
    /// Takes the lock, or says who holds it.
    pub fn take(folder: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let path = folder.join("run.lock");
        let context = || format!("cannot lock {}", path.display());
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .with_context(context)?;
        let mut refused = None;
        let free = process::wait_until(ASKING_MOST, || {
            refused = flock(&file, FlockOperation::NonBlockingLockExclusive).err();
            refused != Some(Errno::WOULDBLOCK)
        });
        match refused {
            None => {}
            Some(error) if free => return Err(error).with_context(context),
            Some(_) => {
                let mut holder = String::new();
                file.read_to_string(&mut holder).with_context(context)?;
                bail!(held_by(holder.trim()));
            }
        }
        let lock = Self(file);
        lock.tell("a run").with_context(context)?;
        Ok(lock)
    }

    /// What the holder does, for those who find the lock taken.
    pub fn tell(&self, what: &str) -> std::io::Result<()> {
        let mut file = &self.0;
        file.seek(SeekFrom::Start(0))?;
        let line = format!("{} {} {what}\n", std::process::id(), Utc::now());
        file.write_all(line.as_bytes())?;
        file.set_len(line.len() as u64)
    }
}

/// Refuses what would disturb a measurement that is under way, such as compiling.
///
/// # Errors
/// Who measures, since when.
pub fn refuse_while_measuring(folder: &Path) -> anyhow::Result<()> {
    // Where nothing was ever measured, nothing is made either.
    if folder.join("run.lock").exists() {
        RunLock::take(folder)?;
    }
    Ok(())
}

/// From the line that the holder wrote: `pid since what`.
fn held_by(line: &str) -> String {
    let words: Vec<&str> = line.splitn(3, ' ').collect();
    let (pid, text) = match words[..] {
        [pid, since, what] => (
            pid,
            format!("{what} is under way here (pid {pid}, since {since})"),
        ),
        // It has the lock and has not written yet.
        _ => ("PID", "another run begins here".into()),
    };
    format!("{text}; two would measure each other (wait for it, or run: kill {pid})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_holds_the_lock_what_for_and_since_when() {
        let folder = tempfile::tempdir().unwrap();
        let held = RunLock::take(folder.path()).unwrap();
        held.tell("run 2026-11-30T14-00-20Z-3f9c").unwrap();
        let refused = || RunLock::take(folder.path()).unwrap_err().to_string();
        let (pid, error) = (std::process::id(), refused());
        let expected =
            format!("run 2026-11-30T14-00-20Z-3f9c is under way here (pid {pid}, since 2");
        assert!(error.starts_with(&expected), "{error}");
        assert!(error.ends_with(&format!("run: kill {pid})")), "{error}");
        held.tell("a short one").unwrap();
        assert!(refused().starts_with("a short one is"), "{}", refused());
        let asked = refuse_while_measuring(folder.path());
        assert!(asked.unwrap_err().to_string().starts_with("a short one is"));
        drop(held);
        refuse_while_measuring(folder.path()).unwrap();
        RunLock::take(folder.path()).unwrap();
    }

    #[test]
    fn asking_where_nothing_was_measured_makes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        refuse_while_measuring(&folder.path().join("run")).unwrap();
        assert!(!folder.path().join("run").exists());
    }
}
