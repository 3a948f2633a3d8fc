//! Intended send times.

/// Admits so many events a second over any stretch of a run: an idle stretch
/// earns no burst beyond a hundredth of a second's worth.
///
/// This is the generic cell rate algorithm (ITU-T I.371): each event moves the
/// theoretical time of the next one on by the interval.
#[derive(Clone, Debug)]
pub struct Limiter {
    interval_ns: f64,
    next_ns: f64,
}

/// How far the limiter may lag behind, so that a late wake-up costs no rate.
const CATCH_UP_NS: f64 = 10_000_000.0;

impl Limiter {
    /// `per_s` events a second from `start_ns` on.
    #[must_use]
    pub fn new(per_s: f64, start_ns: u64) -> Self {
        Self {
            interval_ns: 1e9 / per_s,
            next_ns: start_ns as f64,
        }
    }

    /// Whether an event may happen now.
    #[must_use]
    pub fn admits(&self, now_ns: u64) -> bool {
        now_ns as f64 >= self.next_ns
    }

    /// An event happens now.
    pub fn take(&mut self, now_ns: u64) {
        self.next_ns = self.next_ns.max(now_ns as f64 - CATCH_UP_NS) + self.interval_ns;
    }

    /// When the next event may happen.
    #[must_use]
    pub fn next_ns(&self) -> u64 {
        self.next_ns.ceil() as u64
    }
}

/// A sender's phase: how far into each interval its batches are due, in parts of
/// the interval of 2^32.
pub type PhaseOfInterval = u32;

/// When each sender's batches are due: every sender has the same interval and
/// its own random phase, so the order of senders repeats and finding the next
/// one costs nothing.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Phases in rising order, each with its sender.
    turns: Vec<(PhaseOfInterval, u32)>,
    interval_ns: f64,
    start_ns: u64,
    duration_ns: u64,
    turn: usize,
    lap: u32,
}

impl Schedule {
    /// A batch every `interval_ns` for each sender, from `start_ns` on, for
    /// `duration_ns`. Phases are uniformly random over an interval.
    #[must_use]
    pub fn new(
        senders: &[u32],
        interval_ns: f64,
        start_ns: u64,
        duration_ns: u64,
        seed: u64,
    ) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut turns: Vec<(PhaseOfInterval, u32)> = senders
            .iter()
            .map(|sender| (random.u32(..), *sender))
            .collect();
        turns.sort_unstable();
        Self {
            turns,
            interval_ns,
            start_ns,
            duration_ns,
            turn: 0,
            lap: 0,
        }
    }

    #[inline]
    fn offset_ns(&self, phase: PhaseOfInterval, lap: u32) -> u64 {
        const PARTS: f64 = (1_u64 << 32) as f64;
        let into_ns = (f64::from(phase) * (self.interval_ns / PARTS)) as u64;
        into_ns + (f64::from(lap) * self.interval_ns) as u64
    }

    /// When the next batch is due; `None` when no more are.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        let (phase, _) = self.turns.get(self.turn)?;
        let offset = self.offset_ns(*phase, self.lap);
        (offset < self.duration_ns).then(|| self.start_ns + offset)
    }

    /// The sender whose batch is due by now, and when it was due.
    pub fn pop(&mut self, now_ns: u64) -> Option<(u32, u64)> {
        let due = self.next_ns().filter(|due| *due <= now_ns)?;
        let sender = self.turns[self.turn].1;
        self.turn += 1;
        if self.turn == self.turns.len() {
            self.turn = 0;
            self.lap += 1;
        }
        Some((sender, due))
    }

    /// When batch `lap` of a sender with this phase is due.
    #[inline]
    #[must_use]
    pub fn intended_ns(&self, phase: PhaseOfInterval, lap: u32) -> u64 {
        self.start_ns + self.offset_ns(phase, lap)
    }

    /// Each sender with its phase.
    pub fn phases(&self) -> impl Iterator<Item = (u32, PhaseOfInterval)> {
        self.turns.iter().map(|(phase, sender)| (*sender, *phase))
    }

    /// Batches due over the whole duration.
    #[must_use]
    pub fn batches(&self) -> u64 {
        let of = |phase: PhaseOfInterval| {
            let begins_ns = self.offset_ns(phase, 0);
            let laps = self.duration_ns.saturating_sub(begins_ns) as f64 / self.interval_ns;
            // The exact count is what `pop` yields: correct the estimate by it.
            let mut laps = laps.ceil() as u32;
            while laps > 0 && self.offset_ns(phase, laps - 1) >= self.duration_ns {
                laps -= 1;
            }
            while self.offset_ns(phase, laps) < self.duration_ns {
                laps += 1;
            }
            u64::from(laps)
        };
        self.turns.iter().map(|(phase, _)| of(*phase)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Events in each of the first seconds, asked for every `step_ns`.
    fn admitted(per_s: f64, step_ns: u64, seconds: u64, idle: std::ops::Range<u64>) -> Vec<u64> {
        let mut limiter = Limiter::new(per_s, 0);
        let mut counts = vec![0; seconds as usize];
        for now in (0..seconds * SECOND).step_by(step_ns as usize) {
            while !idle.contains(&(now / SECOND)) && limiter.admits(now) {
                limiter.take(now);
                counts[(now / SECOND) as usize] += 1;
            }
        }
        counts
    }

    #[test]
    fn a_limit_holds_in_every_second() {
        for (per_s, step_ns) in [
            (1000.0, 100_000),
            (1000.0, 5_000_000),
            (99_999.0, 1_000_000),
        ] {
            for count in admitted(per_s, step_ns, 5, 9..9) {
                assert!(
                    (count as f64 - per_s).abs() <= per_s * 0.011,
                    "{count} of {per_s}"
                );
            }
        }
    }

    #[test]
    fn an_idle_second_earns_no_burst() {
        let counts = admitted(1000.0, 100_000, 5, 2..3);
        assert_eq!(counts[2], 0);
        assert!(counts[3] <= 1011, "{counts:?}");
    }

    #[test]
    fn every_sender_is_due_once_an_interval() {
        let mut schedule = Schedule::new(&[7, 8, 9], 5e6, SECOND, SECOND, 3);
        let total = schedule.batches();
        assert_eq!(total, 600);
        let mut last = 0;
        let mut of_seven = Vec::new();
        for _ in 0..total {
            let (sender, due) = schedule.pop(u64::MAX).unwrap();
            assert!(due >= last && (SECOND..2 * SECOND).contains(&due));
            last = due;
            if sender == 7 {
                of_seven.push(due);
            }
        }
        assert_eq!(schedule.pop(u64::MAX), None);
        assert!(
            of_seven
                .windows(2)
                .all(|pair| pair[1] - pair[0] == 5_000_000)
        );
        assert_eq!(of_seven.len(), 200);
    }

    #[test]
    fn phases_fill_the_interval_and_come_from_the_seed() {
        let senders: Vec<u32> = (0..1000).collect();
        let phases = |seed| {
            Schedule::new(&senders, 1e9, 0, SECOND, seed)
                .phases()
                .collect::<Vec<_>>()
        };
        let mean = phases(1)
            .iter()
            .map(|(_, phase)| f64::from(*phase) / f64::from(u32::MAX))
            .sum::<f64>()
            / 1000.0;
        assert!((0.45..0.55).contains(&mean), "{mean}");
        assert_eq!(phases(1), phases(1));
        assert_ne!(phases(1), phases(2));
    }

    #[test]
    fn nothing_is_due_before_its_time() {
        let mut schedule = Schedule::new(&[1], 1e9, 100, 3 * SECOND, 9);
        let due = schedule.next_ns().unwrap();
        assert_eq!(schedule.pop(due - 1), None);
        assert_eq!(schedule.pop(due), Some((1, due)));
        let mut none = Schedule::new(&[], 1e9, 0, SECOND, 9);
        assert_eq!(
            (none.next_ns(), none.pop(SECOND), none.batches()),
            (None, None, 0)
        );
    }
}
