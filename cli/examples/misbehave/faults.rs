//! Which echo goes wrong in which way.

use crate::frame;
use crate::log::Log;
use crate::switches::Switches;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// What to send for one message.
pub enum Answer {
    /// This frame.
    Frame(Vec<u8>),
    /// A close frame, and no answer any more.
    Close,
    Nothing,
}

/// Shared by all connections.
pub struct Faults {
    pub switches: Switches,
    log: Arc<Log>,
    read: AtomicU64,
    served: AtomicU64,
    first_echo: OnceLock<Instant>,
}

impl Faults {
    pub fn new(switches: Switches, log: Arc<Log>) -> Self {
        Self {
            switches,
            log,
            read: AtomicU64::new(0),
            served: AtomicU64::new(0),
            first_echo: OnceLock::new(),
        }
    }

    /// Whether this message is one of those that go wrong.
    pub fn concern(&self, message: &[u8]) -> bool {
        let only = self.switches.only_bytes;
        only.is_none_or(|bytes| bytes == message.len())
    }

    /// The number of the message that has just been read.
    pub fn number(&self) -> u64 {
        self.read.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Waits as long as it must and says what to answer.
    pub fn answer(&self, number: u64, opcode: u8, mut payload: Vec<u8>) -> Answer {
        let switches = &self.switches;
        let beyond = |limit: Option<u64>| limit.is_some_and(|limit| number > limit);
        if beyond(switches.mute_after) || beyond(switches.die_after) {
            return Answer::Nothing;
        }
        self.stall();
        if switches.sleep_us > 0 {
            thread::sleep(Duration::from_micros(switches.sleep_us));
        }
        if switches.burn_each_ns > 0 {
            spin(ClockId::ThreadCPUTime, switches.burn_each_ns);
        }
        if switches.work_each_steps > 0 {
            self.work(number);
        }
        let due = |every: Option<u64>| every.is_some_and(|every| number.is_multiple_of(every));
        if due(switches.close_every) {
            return Answer::Close;
        }
        let middle = payload.len() / 2;
        if due(switches.corrupt_every)
            && let Some(byte) = payload.get_mut(middle)
        {
            *byte ^= 1;
        }
        if due(switches.wrong_length_every) && payload.pop().is_none() {
            payload.push(0);
        }
        let opcode = match (due(switches.wrong_opcode_every), opcode) {
            (false, right) => right,
            (true, frame::TEXT) => frame::BINARY,
            (true, _) => frame::TEXT,
        };
        Answer::Frame(frame::build(opcode, &payload))
    }

    /// Call just before the answer is written.
    pub fn waited(&self, since_read: Duration) {
        if self.switches.sleep_us > 0 {
            self.log
                .push(u64::try_from(since_read.as_nanos()).unwrap_or(u64::MAX));
        }
    }

    /// Call when the answer is written.
    pub fn served(&self, number: u64) {
        self.first_echo.get_or_init(Instant::now);
        if self.switches.die_after == Some(number) {
            self.log.flush();
            process::exit(1);
        }
        self.burn_if_due(self.served.fetch_add(1, Ordering::Relaxed) + 1);
    }

    /// Starts to burn when exactly so many echoes are served as it was told.
    pub fn burn_if_due(&self, served: u64) {
        let (nanoseconds, log) = (self.switches.burn_ns, Arc::clone(&self.log));
        if nanoseconds > 0 && served == self.switches.burn_after_echoes {
            thread::spawn(move || {
                log.push(spin(ClockId::ProcessCPUTime, nanoseconds));
                log.flush();
            });
        }
    }

    /// Only some are timed, so that the timing costs nothing of weight.
    fn work(&self, number: u64) {
        const TIMED_EVERY: u64 = 64;
        let steps = self.switches.work_each_steps;
        if number.is_multiple_of(TIMED_EVERY) {
            let begin = Instant::now();
            arithmetic(steps);
            let took = u64::try_from(begin.elapsed().as_nanos());
            self.log.push(took.unwrap_or(u64::MAX));
        } else {
            arithmetic(steps);
        }
    }

    fn stall(&self) {
        let Some(first) = self.first_echo.get() else {
            return;
        };
        let begin = *first + Duration::from_millis(self.switches.stall_after_ms);
        let end = begin + Duration::from_millis(self.switches.stall_once_ms);
        let now = Instant::now();
        if begin <= now && now < end {
            thread::sleep(end - now);
        }
    }
}

/// Marsaglia's xorshift: each step needs the one before, and no two make one.
fn arithmetic(steps: u64) {
    let mut value = black_box(1_u64);
    for _ in 0..steps {
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
    }
    black_box(value);
}

/// Spins until the clock is that much further, and tells how much it was.
fn spin(clock: ClockId, nanoseconds: u64) -> u64 {
    let now = || {
        let time = clock_gettime(clock);
        time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
    };
    let start = now();
    loop {
        let spent = now() - start;
        if spent >= nanoseconds {
            return spent;
        }
    }
}
