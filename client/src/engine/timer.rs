//! Waiting for events until a time in nanoseconds: epoll's own timeout counts
//! whole milliseconds, which is too coarse for pacing.

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::io;
use std::time::Duration;

/// A timer that wakes its epoll.
pub struct Timer {
    fd: OwnedFd,
    armed_ns: u64,
}

impl Timer {
    /// Registers a timer.
    ///
    /// # Errors
    /// If there is no descriptor left.
    pub fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        registry.register(&mut SourceFd(&fd.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Self { fd, armed_ns: 0 })
    }

    /// Waits for events, at most until `until_ns`; it is `now_ns` now. The timer is set only when
    /// that time differs from the one before: a shard with a far deadline pays
    /// nothing for it.
    ///
    /// # Errors
    /// If epoll or the timer fails.
    pub fn wait(
        &mut self,
        poll: &mut Poll,
        events: &mut Events,
        now_ns: u64,
        until_ns: u64,
    ) -> io::Result<()> {
        let timeout = if until_ns <= now_ns {
            Some(Duration::ZERO)
        } else {
            self.arm(until_ns)?;
            None
        };
        match poll.poll(events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                events.clear();
                Ok(())
            }
            result => result,
        }
    }

    fn arm(&mut self, at_ns: u64) -> io::Result<()> {
        if self.armed_ns == at_ns {
            return Ok(());
        }
        let zero = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let at = Timespec {
            tv_sec: (at_ns / 1_000_000_000) as i64,
            tv_nsec: (at_ns % 1_000_000_000) as _,
        };
        let once = Itimerspec {
            it_interval: zero,
            it_value: at,
        };
        timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &once)?;
        self.armed_ns = at_ns;
        Ok(())
    }
}
