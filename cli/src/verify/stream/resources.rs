//! What a subject holds: read from `/proc`, or told by a scripted one.

use crate::process;
use anyhow::Context as _;
use std::fs;
use std::io::ErrorKind;

/// At one moment, over all processes of a subject.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    pub sockets: usize,
    /// Without sockets: pipes, memory files, epolls, ...
    pub other_files: usize,
    pub threads: usize,
    pub rss_bytes: u64,
}

/// Where it can be read.
pub trait Resources: Sync {
    /// # Errors
    /// If it cannot be seen.
    fn held(&self) -> anyhow::Result<Held>;
}

/// Of the processes that descend from this one, as `/proc` shows them.
pub struct Below(pub u32);

impl Resources for Below {
    fn held(&self) -> anyhow::Result<Held> {
        let mut held = Held::default();
        for process in process::descendants(self.0)? {
            add(&mut held, process.identity.pid)?;
        }
        Ok(held)
    }
}

/// One that vanishes meanwhile holds nothing.
fn add(held: &mut Held, pid: u32) -> anyhow::Result<()> {
    let folder = format!("/proc/{pid}/fd");
    let files = match fs::read_dir(&folder) {
        Ok(files) => files,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {folder}")),
    };
    for file in files.flatten() {
        let Ok(link) = fs::read_link(file.path()) else {
            continue;
        };
        match link.to_string_lossy().starts_with("socket:") {
            true => held.sockets += 1,
            false => held.other_files += 1,
        }
    }
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let figure = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    held.threads += usize::try_from(figure("Threads:").unwrap_or(0)).unwrap_or(0);
    held.rss_bytes += figure("VmRSS:").unwrap_or(0) * 1024;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn files_sockets_threads_and_memory_of_a_child_are_seen() {
        // A pipe that the shell keeps open, a socket that it was given, and a child of its own.
        let (given, _kept) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 60 & echo ready; read line; kill $!"])
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(given)))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = shell.stdout.as_mut().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let held = Held::default();
        let mut alone = held;
        add(&mut alone, shell.id()).unwrap();
        assert_eq!((alone.sockets, alone.threads), (1, 1), "{alone:?}");
        assert!(alone.other_files >= 2, "{alone:?}");
        assert!((1 << 16..1 << 28).contains(&alone.rss_bytes), "{alone:?}");
        // Of another process' children only these are ours to count.
        let below = Below(shell.id()).held().unwrap();
        assert_eq!(below.threads, 1, "{below:?}");
        drop(_kept);
        shell.wait().unwrap();
        let mut gone = held;
        add(&mut gone, shell.id()).unwrap();
        assert_eq!(gone, held);
    }
}
