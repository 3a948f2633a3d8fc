//! How long a client has been silent, as far as this program was there to hear it.

use super::TICK;
use std::fs;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// A higher load average for each CPU starves clients: those under test
/// and their clients keep each CPU busy, not several times over.
const BUSY_LOAD: f64 = 4.0;

/// Of one client.
pub struct Silence {
    since: Instant,
    counted: Duration,
}

impl Silence {
    /// It said something, or was told something.
    pub fn broken() -> Self {
        Self {
            since: Instant::now(),
            counted: Duration::ZERO,
        }
    }

    /// Nothing was heard of it in a wait of at most [`TICK`] that took `turn`.
    pub fn go_on(&mut self, turn: Duration) {
        self.counted += counted(turn);
    }

    /// Whether it has lasted longer than a client may say nothing.
    pub fn exceeds(&self, allowed: Duration) -> bool {
        self.counted > allowed
    }

    /// What is to blame for it, if that is not the client alone: stands behind the reason.
    pub fn excuse(&self) -> String {
        let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = text.split(' ').next().and_then(|load| load.parse().ok());
        let cpus = available_parallelism().map_or(1, std::num::NonZero::get);
        let missed = self.since.elapsed().saturating_sub(self.counted);
        excuse(load, cpus, missed, self.counted)
    }
}

/// What comes late is not the client's silence: this program did not run either.
fn counted(turn: Duration) -> Duration {
    turn.min(TICK)
}

/// `load` is the load average, `missed` the time in which this program did not run.
fn excuse(load: Option<f64>, cpus: usize, missed: Duration, counted: Duration) -> String {
    let busy = load.is_some_and(|load| load > BUSY_LOAD * cpus as f64);
    if !busy && missed <= counted / 2 {
        return String::new();
    }
    let load = load.map_or(String::new(), |load| format!(": load average {load:.0}"));
    let also = match missed.as_secs() {
        0 => String::new(),
        seconds => format!(", which kept wsbench itself from running for {seconds} s more"),
    };
    format!(
        "; the machine was too busy{load} on {cpus} CPUs{also} \
         (end what else runs here, and measure again)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn time_in_which_this_program_did_not_run_is_not_the_clients_silence() {
        assert_eq!(counted(TICK / 3), TICK / 3);
        assert_eq!(counted(TICK), TICK);
        assert_eq!(counted(40 * SECOND), TICK);
        let mut silence = Silence::broken();
        for _ in 0..9 {
            silence.go_on(7 * SECOND);
        }
        assert!(!silence.exceeds(SECOND), "63 s passed, 0.9 s were heard");
        silence.go_on(TICK);
        silence.go_on(TICK);
        assert!(silence.exceeds(SECOND));
    }

    #[test]
    fn a_busy_machine_is_named_and_an_idle_one_excuses_nothing() {
        let idle = excuse(Some(1.9), 2, Duration::ZERO, 30 * SECOND);
        assert_eq!(idle, "");
        // As busy as server and client make it.
        assert_eq!(excuse(Some(8.0), 2, SECOND, 30 * SECOND), "");
        assert_eq!(excuse(None, 2, SECOND, 30 * SECOND), "");
        assert_eq!(
            excuse(Some(55.2), 2, Duration::ZERO, 30 * SECOND),
            "; the machine was too busy: load average 55 on 2 CPUs \
             (end what else runs here, and measure again)"
        );
        // The average is that of a minute, and lags behind.
        let late = excuse(Some(3.0), 2, 20 * SECOND, 30 * SECOND);
        let expected =
            "load average 3 on 2 CPUs, which kept wsbench itself from running for 20 s more";
        assert!(late.contains(expected), "{late}");
    }
}
