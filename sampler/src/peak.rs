//! The most memory that processes had, looked at every few milliseconds.

use crate::SamplerError;
use crate::clock::own_thread_cpu_ns;
use crate::procfs;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What was seen from the start of a [`PeakSampler`] to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// The largest sum of the processes' resident memory.
    pub rss_bytes: u64,
    /// Readings that were taken, the first and the last at the ends of the time.
    pub readings: u64,
    /// CPU time that taking them cost.
    pub own_cpu_ns: u64,
}

/// A thread that reads the resident memory of processes at an interval.
///
/// One reading is one `pread` of `/proc/PID/statm`, kept open, for each process:
/// half a microsecond of the kernel's time. It runs on the CPUs of the thread that
/// starts it.
#[derive(Debug)]
pub struct PeakSampler {
    // Dropped to say stop.
    stop: Sender<()>,
    thread: JoinHandle<Result<Peak, SamplerError>>,
}

impl PeakSampler {
    /// Starts to look at these processes, and not at what they may start.
    ///
    /// # Errors
    /// [`SamplerError::Gone`] if one of them is not there.
    pub fn start(pids: &[u32], interval: Duration) -> Result<Self, SamplerError> {
        let open = |pid: &u32| {
            let gone = |_| SamplerError::Gone { pid: *pid };
            File::open(procfs::file(*pid, "statm")).map_err(gone)
        };
        let files: Vec<File> = pids.iter().map(open).collect::<Result<_, _>>()?;
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("peak".into())
            .spawn(move || {
                let mut peak = Peak {
                    rss_bytes: 0,
                    readings: 0,
                    own_cpu_ns: 0,
                };
                let mut due = Instant::now();
                loop {
                    peak.rss_bytes = peak.rss_bytes.max(resident_bytes(&files)?);
                    peak.readings += 1;
                    due = (due + interval).max(Instant::now());
                    let wait = due.saturating_duration_since(Instant::now());
                    if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                        peak.rss_bytes = peak.rss_bytes.max(resident_bytes(&files)?);
                        peak.readings += 1;
                        peak.own_cpu_ns = own_thread_cpu_ns();
                        return Ok(peak);
                    }
                }
            })
            .map_err(|error| SamplerError::Thread(error.to_string()))?;
        Ok(Self { stop, thread })
    }

    /// Takes a last reading and ends.
    ///
    /// # Errors
    /// If `/proc` could not be read or the thread panicked.
    pub fn stop(self) -> Result<Peak, SamplerError> {
        drop(self.stop);
        match self.thread.join() {
            Ok(result) => result,
            Err(_) => Err(SamplerError::Thread("it panicked".into())),
        }
    }
}

/// Of all of them; one that has ended has none.
fn resident_bytes(files: &[File]) -> Result<u64, SamplerError> {
    let mut pages = 0;
    for file in files {
        // Seven numbers of at most twenty digits.
        let mut line = [0; 160];
        match file.read_at(&mut line, 0) {
            Ok(length) => {
                let resident = procfs::parse_resident_pages(&line[..length]);
                pages += resident.ok_or_else(|| SamplerError::Proc {
                    path: "/proc/PID/statm".into(),
                    cause: "not the fields that Linux writes".into(),
                })?;
            }
            Err(error) if procfs::is_gone(&error) => {}
            Err(error) => {
                return Err(SamplerError::Proc {
                    path: "/proc/PID/statm".into(),
                    cause: error.to_string(),
                });
            }
        }
    }
    Ok(pages * rustix::param::page_size() as u64)
}
