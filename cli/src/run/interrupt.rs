//! Ctrl-C: once, everything is ended in order and the report is still made;
//! twice, this program ends at once (servers and clients are bound to its life).
//! SIGTERM is the same as Ctrl-C, and so is SIGHUP, the terminal's end, however
//! often: shell and kernel both send it, and nobody is there to press twice.

use anyhow::Context as _;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Exit code of an interrupted run.
pub const EXIT_CODE: u8 = 130;

/// Signals are the whole process', and so is what they set.
static INSTALLED: OnceLock<Interrupt> = OnceLock::new();

/// Becomes true on the first SIGINT, SIGTERM or SIGHUP.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Takes the signals from now on.
    pub fn install() -> anyhow::Result<Self> {
        let pressed = Arc::new(AtomicBool::new(false));
        let once = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The order matters: the second signal must find what the first one set.
            flag::register_conditional_shutdown(signal, EXIT_CODE.into(), Arc::clone(&once))
                .and_then(|_| flag::register(signal, Arc::clone(&once)))
                .and_then(|_| flag::register(signal, Arc::clone(&pressed)))
                .context("cannot handle signals")?;
        }
        // Whoever started this under `nohup` wants it to outlive the terminal.
        if !is_ignored(SIGHUP) {
            flag::register(SIGHUP, Arc::clone(&pressed)).context("cannot handle signals")?;
        }
        Ok(INSTALLED.get_or_init(|| Self(pressed)).clone())
    }

    /// Whether the user wants to stop.
    pub fn pressed(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// For those who watch the flag themselves.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }
}

/// Whether the user wants to stop, for those who are called by verbs that take
/// the signals and by others, which any signal ends.
pub fn pressed() -> bool {
    INSTALLED.get().is_some_and(Interrupt::pressed)
}

/// Whether whoever started this process had the signal ignored.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
