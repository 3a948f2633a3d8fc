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
    parsed(&file(pid, "stat"), buffer, parse_stat)
}

/// Resident memory in pages.
pub(crate) fn resident_pages(pid: u32, buffer: &mut Vec<u8>) -> Result<Option<u64>, SamplerError> {
    parsed(&file(pid, "statm"), buffer, parse_resident_pages)
}

/// Of the line of `/proc/PID/statm`.
pub(crate) fn parse_resident_pages(line: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(line).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Page faults of all threads that a process has and had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Faults {
    pub minor: u64,
    pub major: u64,
}

/// Of `/proc/PID/stat`.
pub(crate) fn faults(pid: u32, buffer: &mut Vec<u8>) -> Result<Option<Faults>, SamplerError> {
    parsed(&file(pid, "stat"), buffer, parse_faults)
}

fn parse_faults(line: &[u8]) -> Option<Faults> {
    let fields = fields_behind_name(line)?;
    let field = |number: usize| fields.get(number - 3)?.parse().ok();
    Some(Faults {
        minor: field(10)?,
        major: field(12)?,
    })
}

/// The threads that a process has; none if it is gone.
pub(crate) fn threads(pid: u32) -> Result<Vec<u32>, SamplerError> {
    let folder = file(pid, "task");
    let cannot = |error: &std::io::Error| failed(&folder, &error.to_string());
    let entries = match folder.read_dir() {
        Err(error) if is_gone(&error) => return Ok(Vec::new()),
        entries => entries.map_err(|error| cannot(&error))?,
    };
    let mut found = Vec::new();
    for entry in entries {
        match entry {
            Err(error) if is_gone(&error) => break,
            entry => {
                let name = entry.map_err(|error| cannot(&error))?.file_name();
                found.extend(name.to_str().and_then(|name| name.parse::<u32>().ok()));
            }
        }
    }
    Ok(found)
}

/// How often a thread went to sleep, and how often it was made to wait.
pub(crate) fn switches(
    pid: u32,
    thread: u32,
    buffer: &mut Vec<u8>,
) -> Result<Option<(u64, u64)>, SamplerError> {
    parsed(
        &file(pid, &format!("task/{thread}/status")),
        buffer,
        parse_switches,
    )
}

fn parse_switches(status: &[u8]) -> Option<(u64, u64)> {
    // The name of a program stands in it too, but never with a line break.
    let text = String::from_utf8_lossy(status);
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    Some((
        value("voluntary_ctxt_switches:")?,
        value("nonvoluntary_ctxt_switches:")?,
    ))
}

/// The stack pointer of a thread that waits in a system call; `None` if it runs.
pub(crate) fn stack_pointer(
    pid: u32,
    thread: u32,
    buffer: &mut Vec<u8>,
) -> Result<Option<u64>, SamplerError> {
    let path = file(pid, &format!("task/{thread}/syscall"));
    let found = read(&path, buffer)?;
    Ok(found.then(|| parse_stack_pointer(buffer)).flatten())
}

/// The last but one of the numbers, in `running` none.
fn parse_stack_pointer(line: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(line).ok()?;
    let word = text.split_ascii_whitespace().rev().nth(1)?;
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

/// A stretch of a process' address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    start: u64,
    end: u64,
    pub resident_bytes: u64,
}

impl Mapping {
    /// Whether any of these sorted addresses is in it.
    pub fn holds_any(&self, sorted: &[u64]) -> bool {
        let first = sorted.partition_point(|address| *address < self.start);
        sorted.get(first).is_some_and(|address| *address < self.end)
    }
}

/// All of a process; none if it is gone.
pub(crate) fn mappings(pid: u32, buffer: &mut Vec<u8>) -> Result<Vec<Mapping>, SamplerError> {
    let found = parsed(&file(pid, "smaps"), buffer, parse_mappings)?;
    Ok(found.unwrap_or_default())
}

fn parse_mappings(smaps: &[u8]) -> Option<Vec<Mapping>> {
    let mut found: Vec<Mapping> = Vec::new();
    // A mapping is named after its file, which may have any name.
    for line in String::from_utf8_lossy(smaps).lines() {
        if let Some(rest) = line.strip_prefix("Rss:") {
            let kilobytes: u64 = rest.trim().strip_suffix(" kB")?.trim().parse().ok()?;
            found.last_mut()?.resident_bytes = kilobytes * 1024;
        } else if let Some((start, end)) = parse_range(line) {
            found.push(Mapping {
                start,
                end,
                resident_bytes: 0,
            });
        }
    }
    Some(found)
}

/// `55678cc04000-55678cc06000 r--p ...`, the first line of a mapping.
fn parse_range(line: &str) -> Option<(u64, u64)> {
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    Some((address(start)?, address(end)?))
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

/// Ticks in which CPUs were not idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ticks {
    /// User and kernel.
    pub processes: u64,
    /// Interrupts, of devices and of the kernel's own.
    pub interrupts: u64,
    /// Taken by a hypervisor.
    pub steal: u64,
}

impl Ticks {
    /// All of them.
    pub fn all(self) -> u64 {
        self.processes + self.interrupts + self.steal
    }

    fn plus(self, other: Self) -> Self {
        Self {
            processes: self.processes + other.processes,
            interrupts: self.interrupts + other.interrupts,
            steal: self.steal + other.steal,
        }
    }
}

/// `/proc/stat`, as it was at one time.
pub(crate) struct CpuStat(String);

impl CpuStat {
    /// Now.
    pub fn read() -> Result<Self, SamplerError> {
        let path = Path::new(CPU_STAT);
        let mut buffer = Vec::new();
        if !read(path, &mut buffer)? {
            return Err(failed(path, "it is not there"));
        }
        Ok(Self(String::from_utf8_lossy(&buffer).into_owned()))
    }

    /// Ticks in which these CPUs were not idle.
    pub fn ticks(&self, cpus: &[u32]) -> Result<Ticks, SamplerError> {
        let mut all = Ticks::default();
        for cpu in cpus {
            let ticks = parse_ticks(&self.0, *cpu);
            let missing = || {
                failed(
                    Path::new(CPU_STAT),
                    &format!("there is no line of cpu{cpu}"),
                )
            };
            all = all.plus(ticks.ok_or_else(missing)?);
        }
        Ok(all)
    }
}

const CPU_STAT: &str = "/proc/stat";

/// `cpu0 user nice system idle iowait irq softirq steal guest guest_nice`, where the
/// guests' time is in the user's.
fn parse_ticks(stat: &str, cpu: u32) -> Option<Ticks> {
    let name = format!("cpu{cpu} ");
    let line = stat.lines().find_map(|line| line.strip_prefix(&name))?;
    let ticks: Option<Vec<u64>> = line
        .split_whitespace()
        .map(|word| word.parse().ok())
        .collect();
    match ticks?[..] {
        [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] => Some(Ticks {
            processes: user + nice + system,
            interrupts: irq + softirq,
            steal,
        }),
        _ => None,
    }
}

pub(crate) fn file(pid: u32, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{name}"))
}

/// What a file of a process says; `None` if the process is gone.
fn parsed<T>(
    path: &Path,
    buffer: &mut Vec<u8>,
    parse: impl FnOnce(&[u8]) -> Option<T>,
) -> Result<Option<T>, SamplerError> {
    match read(path, buffer)? {
        true => parse(buffer).map(Some).ok_or_else(|| strange(path)),
        false => Ok(None),
    }
}

/// False if the process is gone.
fn read(path: &Path, buffer: &mut Vec<u8>) -> Result<bool, SamplerError> {
    buffer.clear();
    match File::open(path).and_then(|mut file| file.read_to_end(buffer)) {
        Ok(_) => Ok(true),
        Err(error) if is_gone(&error) => Ok(false),
        Err(error) => Err(failed(path, &error.to_string())),
    }
}

/// Whether that is because the process is no more. ESRCH: it was there when the file
/// was opened.
pub(crate) fn is_gone(error: &std::io::Error) -> bool {
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(nix::libc::ESRCH)
}

fn strange(path: &Path) -> SamplerError {
    failed(path, "not the fields that Linux writes")
}

fn failed(path: &Path, cause: &str) -> SamplerError {
    SamplerError::Proc {
        path: path.display().to_string(),
        cause: cause.to_owned(),
    }
}

/// The fields of a `stat` line from the third on. The name of the program, in
/// parentheses, may hold spaces and parentheses.
fn fields_behind_name(line: &[u8]) -> Option<Vec<&str>> {
    let end_of_name = line.iter().rposition(|&byte| byte == b')')?;
    let text = std::str::from_utf8(&line[end_of_name + 1..]).ok()?;
    Some(text.split_ascii_whitespace().collect())
}

fn parse_stat(line: &[u8]) -> Option<Stat> {
    let pid = std::str::from_utf8(line.split(|&byte| byte == b' ').next()?).ok()?;
    let fields = fields_behind_name(line)?;
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
    fn faults_are_those_of_the_process_and_not_of_its_children() {
        let line = b"17 (a) b (c)) S 4 17 17 0 -1 4194560 1 2 3 4 50 60 70 80 20 0 9 0 12345 1 2\n";
        let expected = Faults { minor: 1, major: 3 };
        assert_eq!(parse_faults(line), Some(expected));
        assert_eq!(parse_faults(b"17 (a) S 4 17"), None);
    }

    #[test]
    fn a_cpu_is_busy_in_all_but_idle_time() {
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 4 900 800 8 16 32 5 5\ncpu1 7\n";
        assert_eq!(parse_ticks(stat, 0).map(Ticks::all), Some(63));
        assert_eq!(parse_ticks(stat, 1), None);
        assert_eq!(parse_ticks(stat, 2), None);
    }

    #[test]
    fn both_kinds_of_switches_are_told_apart() {
        let status = b"Name:\tx\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t9\n";
        assert_eq!(parse_switches(status), Some((7, 9)));
        assert_eq!(parse_switches(b"Name:\tx\n"), None);
    }

    #[test]
    fn a_waiting_threads_stack_pointer_finds_its_mapping() {
        let waiting = b"230 0x0 0x0 0x0 0x0 0x0 0x0 0x7ffc2a06878 0x7f8c8bc79503\n";
        assert_eq!(parse_stack_pointer(waiting), Some(0x7ff_c2a0_6878));
        assert_eq!(parse_stack_pointer(b"running\n"), None);
        let smaps = b"1000-3000 rw-p 00000000 00:00 0   [stack]\nSize:  8 kB\nRss:   4 kB\n\
            3000-4000 r--p 00000000 fe:00 1  /a Rss: b\nRss:  0 kB\n";
        let found = parse_mappings(smaps).unwrap();
        let held = |sorted: &[u64]| -> Vec<bool> {
            found
                .iter()
                .map(|mapping| mapping.holds_any(sorted))
                .collect()
        };
        assert_eq!(found[0].resident_bytes, 4096);
        assert_eq!(held(&[0x2fff]), [true, false]);
        assert_eq!(held(&[0xfff, 0x3000]), [false, true]);
        assert_eq!(held(&[0x4000]), [false, false]);
        assert_eq!(held(&[]), [false, false]);
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
