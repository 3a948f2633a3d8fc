//! One run at a time: two would measure each other.

use anyhow::{Context as _, bail};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

/// Held until dropped, or until this process ends in any way.
#[derive(Debug)]
pub struct RunLock(#[expect(dead_code, reason = "closing it releases the lock")] File);

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
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut holder = String::new();
                file.read_to_string(&mut holder).with_context(context)?;
                let holder = holder.trim();
                bail!(
                    "another run is under way here (pid {holder}); two would measure each other \
                     (wait for it, or run: kill {holder})"
                );
            }
            Err(error) => return Err(error).with_context(context),
        }
        file.set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| writeln!(file, "{}", std::process::id()))
            .with_context(context)?;
        Ok(Self(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_run_is_told_who_holds_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let held = RunLock::take(folder.path()).unwrap();
        let error = RunLock::take(folder.path()).unwrap_err().to_string();
        let holder = format!("pid {}", std::process::id());
        assert!(error.contains(&holder), "{error}");
        drop(held);
        RunLock::take(folder.path()).unwrap();
    }
}
