//! Ctrl-C: once, everything is ended in order and the report is still made;
//! twice, this program ends at once (servers and clients are bound to its life).

use anyhow::Context as _;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit code of an interrupted run.
pub const EXIT_CODE: u8 = 130;

/// Becomes true on the first SIGINT or SIGTERM.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Takes both signals from now on.
    pub fn install() -> anyhow::Result<Self> {
        let pressed = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The order matters: the second signal must find what the first one set.
            flag::register_conditional_shutdown(signal, EXIT_CODE.into(), Arc::clone(&pressed))
                .and_then(|_| flag::register(signal, Arc::clone(&pressed)))
                .context("cannot handle signals")?;
        }
        Ok(Self(pressed))
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
