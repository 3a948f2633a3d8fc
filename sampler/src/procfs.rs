//! The few figures of `/proc` that are needed. A process that vanishes while
//! it is read is None, never an error.

use crate::SamplerError;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use wsbench_schema::ListenQueue;

/// One process, from `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub pid: u32,
    pub parent: u32,
    /// Clock ticks after boot. With the pid it names one process for ever.
    pub start: u64,
    pub threads: u32,
    /// CPU time of children that it has waited for, in clock ticks.
    pub reaped_ticks: u64,
    state: u8,
}

impl Stat {
    /// Nothing of it runs any more; only its exit code is left.
    pub fn is_dead(&self) -> bool {
        // The leader of living threads can be a zombie too.
        matches!(self.state, b'Z' | b'X') && self.threads <= 1
    }
}

/// Every process that can be seen.
pub(crate) fn all(buffer: &mut Vec<u8>) -> Result<Vec<Stat>, SamplerError> {
    let folder = Path::new("/proc");
    let entries = folder
        .read_dir()
        .map_err(|error| failed(folder, &error.to_string()))?;
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| failed(folder, &error.to_string()))?;
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        found.extend(stat(pid, buffer)?);
    }
    Ok(found)
}

/// One process.
pub(crate) fn stat(pid: u32, buffer: &mut Vec<u8>) -> Result<Option<Stat>, SamplerError> {
    let path = file(pid, "stat");
    if !read(&path, buffer)? {
        return Ok(None);
    }
    match parse_stat(buffer) {
        Some(stat) => Ok(Some(stat)),
        None => Err(failed(&path, "not the fields that Linux writes")),
    }
}

/// Resident memory in pages.
pub(crate) fn resident_pages(pid: u32, buffer: &mut Vec<u8>) -> Result<Option<u64>, SamplerError> {
    let path = file(pid, "statm");
    if !read(&path, buffer)? {
        return Ok(None);
    }
    let pages = std::str::from_utf8(buffer)
        .ok()
        .and_then(|text| text.split_ascii_whitespace().nth(1)?.parse().ok());
    match pages {
        Some(pages) => Ok(Some(pages)),
        None => Err(failed(&path, "not the fields that Linux writes")),
    }
}

/// What the kernel dropped of the connection requests in the network namespace of
/// a process; `None` if it does not count them.
pub(crate) fn listen_queue(
    pid: u32,
    buffer: &mut Vec<u8>,
) -> Result<Option<ListenQueue>, SamplerError> {
    let found = read(&file(pid, "net/netstat"), buffer)?;
    Ok(found.then(|| parse_listen_queue(buffer)).flatten())
}

/// Pairs of lines with the same beginning: names, then values.
fn parse_listen_queue(netstat: &[u8]) -> Option<ListenQueue> {
    let text = std::str::from_utf8(netstat).ok()?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("TcpExt:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let value = |wanted: &str| {
        let place = names.split_whitespace().position(|name| name == wanted)?;
        values.split_whitespace().nth(place)?.parse().ok()
    };
    Some(ListenQueue {
        overflows: value("ListenOverflows")?,
        drops: value("ListenDrops")?,
    })
}

fn file(pid: u32, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{name}"))
}

/// False if the process is gone.
fn read(path: &Path, buffer: &mut Vec<u8>) -> Result<bool, SamplerError> {
    buffer.clear();
    match File::open(path).and_then(|mut file| file.read_to_end(buffer)) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        // ESRCH: it was there when the file was opened.
        Err(error) if error.raw_os_error() == Some(nix::libc::ESRCH) => Ok(false),
        Err(error) => Err(failed(path, &error.to_string())),
    }
}

fn failed(path: &Path, cause: &str) -> SamplerError {
    SamplerError::Proc {
        path: path.display().to_string(),
        cause: cause.to_owned(),
    }
}

/// The name of the program, in parentheses, may hold spaces and parentheses.
fn parse_stat(line: &[u8]) -> Option<Stat> {
    let end_of_name = line.iter().rposition(|&byte| byte == b')')?;
    let pid = std::str::from_utf8(line.split(|&byte| byte == b' ').next()?).ok()?;
    let fields: Vec<&str> = std::str::from_utf8(&line[end_of_name + 1..])
        .ok()?
        .split_ascii_whitespace()
        .collect();
    // proc(5) counts from 1 and the state is its field 3.
    let field = |number: usize| fields.get(number - 3).copied();
    let ticks = |number| field(number)?.parse::<i64>().ok().map(i64::unsigned_abs);
    Some(Stat {
        pid: pid.parse().ok()?,
        state: *field(3)?.as_bytes().first()?,
        parent: field(4)?.parse().ok()?,
        reaped_ticks: ticks(16)? + ticks(17)?,
        threads: field(20)?.parse().ok()?,
        start: field(22)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_by_its_fields() {
        let line = b"17 (a) b (c)) S 4 17 17 0 -1 4194560 1 2 3 4 50 60 70 80 20 0 9 0 12345 1 2\n";
        let stat = parse_stat(line).unwrap();
        assert_eq!(
            stat,
            Stat {
                pid: 17,
                parent: 4,
                start: 12_345,
                threads: 9,
                reaped_ticks: 150,
                state: b'S',
            }
        );
        assert!(!stat.is_dead());
    }

    #[test]
    fn a_cut_stat_line_is_refused() {
        assert_eq!(parse_stat(b"17 (a) S 4 17"), None);
        assert_eq!(parse_stat(b""), None);
    }

    #[test]
    fn a_zombie_is_dead_unless_its_threads_live_on() {
        let line = b"17 (a) Z 4 17 17 0 -1 4194560 1 2 3 4 50 60 70 80 20 0 1 0 12345 0 0\n";
        let mut stat = parse_stat(line).unwrap();
        assert!(stat.is_dead());
        stat.threads = 2;
        assert!(!stat.is_dead());
    }

    #[test]
    fn this_process_and_its_parent_are_among_all() {
        let mut buffer = Vec::new();
        let all = all(&mut buffer).unwrap();
        let own = all
            .iter()
            .find(|stat| stat.pid == std::process::id())
            .unwrap();
        assert_eq!(own.parent, std::os::unix::process::parent_id());
        assert!(own.threads >= 2, "libtest runs tests in a thread");
    }

    #[test]
    fn dropped_connection_requests_are_found_by_name() {
        let text =
            b"TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPHPHits\nTcpExt: 1 22 333 4\n\
                     IpExt: ListenDrops\nIpExt: 9\n";
        let (overflows, drops) = (22, 333);
        let expected = ListenQueue { overflows, drops };
        assert_eq!(parse_listen_queue(text), Some(expected));
        assert_eq!(parse_listen_queue(b"TcpExt: A B\nTcpExt: 1 2\n"), None);
        assert_eq!(
            parse_listen_queue(b"TcpExt: ListenOverflows ListenDrops\n"),
            None
        );
        let here = listen_queue(std::process::id(), &mut Vec::new()).unwrap();
        assert!(here.is_some_and(|here| here.drops >= here.overflows));
    }

    #[test]
    fn what_is_gone_is_none() {
        let mut buffer = Vec::new();
        assert_eq!(stat(0x3fff_fffe, &mut buffer).unwrap(), None);
        assert_eq!(resident_pages(0x3fff_fffe, &mut buffer).unwrap(), None);
    }
}
