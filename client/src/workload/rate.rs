//! The open loop: every connection's messages are due at times that do not
//! depend on the answers. What cannot be sent when it is due waits, is sent
//! late, and is timed from when it was due.

use super::overdue::Overdue;
use super::timeline::Timeline;
use super::{Outcome, Workload};
use crate::cause::{Cause, Causes};
use crate::engine::clock::{burn, now_ns};
use crate::engine::net::{Net, Writing};
use crate::engine::pace::{PhaseOfInterval, Schedule};
use crate::engine::slot::{SlotId, State};
use crate::protocol::Protocol;
use wsbench_schema::metric;

/// Due batches are looked for this often: a wake-up for each of 50,000 messages
/// a second would cost more than the messages.
const QUANTUM_NS: u64 = 100_000;
/// Due batches that are sent before answers are looked at again.
const DUE_AT_ONCE: usize = 4096;
/// A message sent more than this after it was due is late.
const LATE_NS: u64 = 1_000_000;
/// Batches in flight on a connection if the load does not say.
const DEFAULT_WINDOW_BATCHES: u32 = 16;

/// One shard's share of a rate load.
#[derive(Clone, Debug)]
pub struct RateShare {
    /// Connections that send; the first ones that are open.
    pub senders: u32,
    /// How batches are cut and how many may be in flight.
    pub batching: Batching,
    /// From one batch of a connection to its next.
    pub interval_ns: f64,
    /// When the phase begins.
    pub start_ns: u64,
    /// How long messages are due.
    pub duration_ns: u64,
    /// How long answers are waited for.
    pub timeout_ns: u64,
    /// Of the senders' phases.
    pub seed: u64,
    /// Work added for each answer; see `Load::client_burn_ns`.
    pub burn_ns: u64,
}

/// Messages to a batch, and the limit of a connection in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// Messages written at once.
    pub batch: u32,
    /// Messages in flight on a connection at most.
    pub window: u32,
}

impl Batching {
    /// Whole frames up to `batch_bytes`, at least one; never more than a second's
    /// worth or than the window.
    #[must_use]
    pub fn of(frame_bytes: usize, batch_bytes: u32, per_s: f64, window: u32) -> Self {
        let fitting =
            (batch_bytes as usize / frame_bytes.max(1)).clamp(1, u32::MAX as usize) as u32;
        let batch = fitting.min((per_s as u32).max(1));
        match window {
            0 => Self {
                batch,
                window: batch.saturating_mul(DEFAULT_WINDOW_BATCHES),
            },
            _ => Self {
                batch: batch.min(window),
                window,
            },
        }
    }

    /// Batches that can be in flight, wholly or in part, on a connection of
    /// which `due` are ever due.
    fn ring(self, due: u64) -> usize {
        u64::from(self.window.div_ceil(self.batch)).min(due).max(1) as usize
    }
}

/// One connection's place in the schedule. A load of more batches than it can
/// count is not valid.
#[derive(Clone, Copy, Debug, Default)]
struct Sender {
    phase: PhaseOfInterval,
    /// Batches due until now, ...
    due: u32,
    /// ... sent, ...
    sent: u32,
    /// ... and answered whole.
    answered: u32,
    /// Messages answered of the batch that comes next.
    answered_part: u32,
}

/// With its turn in the schedule and the times of its batches in flight, this is
/// what a connection costs in this phase beside its slot.
const _: () = assert!(size_of::<Sender>() == 20);

/// One shard's messages.
pub struct Rate {
    share: RateShare,
    schedule: Option<Schedule>,
    senders: Vec<Sender>,
    /// When each batch in flight was sent: a ring for each connection.
    sent_at_ns: Vec<u64>,
    ring_len: usize,
    due_over: bool,
    ends_ns: u64,
    tick_at_ns: u64,
    overdue: Overdue,
    in_flight: u64,
    planned: u64,
    sent: u64,
    late: u64,
    failed: Causes,
    connections: u32,
    lost: Causes,
    /// What was answered, and how fast: intended latencies and actual ones.
    timeline: Timeline<2>,
    last_success_ns: u64,
}

impl Rate {
    /// One shard's messages.
    #[must_use]
    pub fn new(share: RateShare) -> Self {
        Self {
            ends_ns: share.start_ns + share.duration_ns,
            overdue: Overdue::new(share.timeout_ns, share.start_ns),
            timeline: Timeline::new(share.start_ns),
            share,
            schedule: None,
            senders: Vec::new(),
            sent_at_ns: Vec::new(),
            ring_len: 1,
            due_over: false,
            tick_at_ns: 0,
            in_flight: 0,
            planned: 0,
            sent: 0,
            late: 0,
            failed: Causes::default(),
            connections: 0,
            lost: Causes::default(),
            last_success_ns: 0,
        }
    }

    fn schedule(&self) -> Option<&Schedule> {
        self.schedule.as_ref()
    }

    #[inline]
    fn ring(&self, id: SlotId, batch: u32) -> usize {
        id as usize * self.ring_len + batch as usize % self.ring_len
    }

    /// Sends what is due on a connection, as far as its window and its socket allow.
    #[inline]
    fn send_due<P: Protocol>(&mut self, net: &mut Net<P>, id: SlotId) {
        let Batching { batch, window } = self.share.batching;
        loop {
            let sender = self.senders[id as usize];
            let slot = net.slot(id);
            let fits = slot.awaited + batch <= window || slot.awaited == 0;
            let ready = slot.state == State::Open && !slot.is_writing();
            if sender.sent >= sender.due || !fits || !ready || self.due_over {
                return;
            }
            let now = now_ns();
            if slot.awaited == 0 {
                slot.since_ns = now;
            }
            let ring = self.ring(id, sender.sent);
            self.sent_at_ns[ring] = now;
            self.senders[id as usize].sent += 1;
            self.sent += u64::from(batch);
            self.in_flight += u64::from(batch);
            let Some(schedule) = self.schedule() else {
                return;
            };
            if now.saturating_sub(schedule.intended_ns(sender.phase, sender.sent)) > LATE_NS {
                self.late += u64::from(batch);
            }
            if let Writing::Fault(cause) = net.send(id, batch) {
                let in_flight = net.close(id);
                self.gone(in_flight, cause);
                return;
            }
        }
    }

    /// The first message in flight failed by the cause, the others with it.
    fn gone(&mut self, in_flight: u32, cause: Cause) {
        self.lost.add(cause, 1);
        self.in_flight -= u64::from(in_flight);
        if in_flight > 0 {
            self.failed.add(cause, 1);
            self.failed
                .add(Cause::ConnectionLost, u64::from(in_flight) - 1);
        }
    }

    /// The connection's last message, whose answer came at `answered_ns`, was
    /// answered twice, so not rightly.
    fn take_back(&mut self, id: SlotId, answered_ns: u64) {
        let sender = self.senders[id as usize];
        let of_batch = u32::from(sender.answered_part == 0);
        let last = sender.answered.checked_sub(of_batch);
        // It may have answered none in this phase.
        let (Some(last), Some(schedule)) = (last, &self.schedule) else {
            return;
        };
        let intended = schedule.intended_ns(sender.phase, last);
        let actual = self.sent_at_ns[self.ring(id, last)];
        let latencies_ns = [intended, actual].map(|since| answered_ns.saturating_sub(since));
        self.timeline.take_back(latencies_ns);
        self.failed.add(Cause::Unexpected, 1);
    }

    fn sweep<P: Protocol>(&mut self, net: &mut Net<P>, now: u64) {
        let mut overdue = self.overdue;
        overdue.sweep(net, now, |in_flight| self.gone(in_flight, Cause::Lost));
        self.overdue = overdue;
    }

    /// Everything in flight has had its time after the last message was due.
    fn give_up<P: Protocol>(&mut self, net: &mut Net<P>) {
        for id in 0..net.slots.len() as SlotId {
            if net.slot(id).awaited > 0 {
                let in_flight = net.close(id);
                self.gone(in_flight, Cause::Lost);
            }
        }
    }
}

impl<P: Protocol> Workload<P> for Rate {
    fn begin(&mut self, net: &mut Net<P>) {
        let senders: Vec<SlotId> = (0..net.slots.len() as SlotId)
            .filter(|id| net.is_open(*id))
            .take(self.share.senders as usize)
            .collect();
        let RateShare {
            interval_ns,
            start_ns,
            duration_ns,
            seed,
            ..
        } = self.share;
        let schedule = Schedule::new(&senders, interval_ns, start_ns, duration_ns, seed);
        self.connections = senders.len() as u32;
        self.senders = vec![Sender::default(); net.slots.len()];
        let due = (duration_ns as f64 / interval_ns) as u64 + 1;
        self.ring_len = self.share.batching.ring(due);
        self.sent_at_ns = vec![0; net.slots.len() * self.ring_len];
        for (id, phase) in schedule.phases() {
            self.senders[id as usize].phase = phase;
        }
        self.planned = schedule.batches() * u64::from(self.share.batching.batch);
        self.schedule = Some(schedule);
        self.tick_at_ns = start_ns;
    }

    #[inline]
    fn answered(&mut self, net: &mut Net<P>, id: SlotId, count: u32, now_ns: u64) {
        let batch = self.share.batching.batch;
        let Some(schedule) = &self.schedule else {
            return;
        };
        self.timeline.succeeded(count.into(), now_ns);
        let mut left = count;
        while left > 0 {
            // Messages of a batch that came with one read have the same times.
            let sender = self.senders[id as usize];
            let together = left.min(batch - sender.answered_part);
            let intended = schedule.intended_ns(sender.phase, sender.answered);
            let actual = self.sent_at_ns[self.ring(id, sender.answered)];
            for (kind, since_ns) in [intended, actual].into_iter().enumerate() {
                let latency_ns = now_ns.saturating_sub(since_ns);
                self.timeline.record(kind, latency_ns, together.into());
            }
            let sender = &mut self.senders[id as usize];
            sender.answered_part += together;
            if sender.answered_part == batch {
                sender.answered_part = 0;
                sender.answered += 1;
            }
            left -= together;
        }
        self.in_flight -= u64::from(count);
        self.last_success_ns = now_ns;
        let sender = self.senders[id as usize];
        let slot = net.slot(id);
        // The oldest in flight is now another; if none is, the last answer's time is kept.
        slot.since_ns = match slot.awaited {
            0 => now_ns,
            _ => self.sent_at_ns[self.ring(id, sender.answered)],
        };
        burn(u64::from(count) * self.share.burn_ns);
        if sender.sent < sender.due {
            self.send_due(net, id);
        }
    }

    fn dropped(&mut self, net: &mut Net<P>, id: SlotId, in_flight: u32, cause: Cause) {
        self.gone(in_flight, cause);
        if cause == Cause::Unexpected {
            self.take_back(id, net.slot(id).since_ns);
        }
    }

    fn drained(&mut self, net: &mut Net<P>, id: SlotId) {
        self.send_due(net, id);
    }

    fn wake_at_ns(&self) -> u64 {
        self.tick_at_ns
    }

    fn tick(&mut self, net: &mut Net<P>, now_ns: u64) {
        for _ in 0..DUE_AT_ONCE {
            let due = self.schedule.as_mut().and_then(|due| due.pop(now_ns));
            let Some((id, _)) = due else { break };
            self.senders[id as usize].due += 1;
            self.send_due(net, id);
        }
        let next_due = self.schedule().and_then(Schedule::next_ns);
        if now_ns < self.ends_ns && next_due.is_some_and(|due| due <= now_ns) {
            // Answers have their turn before the rest.
            self.tick_at_ns = now_ns;
            return;
        }
        if now_ns >= self.ends_ns {
            // All that was due has had its turn above; what could not go is unsent.
            self.due_over = true;
            if now_ns >= self.ends_ns + self.share.timeout_ns {
                self.give_up(net);
            }
        }
        if now_ns >= self.overdue.at_ns() {
            self.sweep(net, now_ns);
        }
        let end = if self.due_over {
            self.ends_ns + self.share.timeout_ns
        } else {
            self.ends_ns
        };
        self.tick_at_ns = next_due
            .unwrap_or(u64::MAX)
            .max(now_ns + QUANTUM_NS)
            .min(self.overdue.at_ns())
            .min(end);
    }

    fn is_done(&self) -> bool {
        self.due_over && self.in_flight == 0
    }

    fn planned(&self) -> u64 {
        self.planned
    }

    fn progress(&self) -> (u64, u64) {
        (self.timeline.count(), self.failed.total())
    }

    fn outcome(self) -> Outcome {
        let mut outcome = Outcome {
            last_success_ns: self.last_success_ns,
            ..Outcome::default()
        };
        outcome.count(metric::PLANNED, self.planned);
        outcome.count(metric::SENT, self.sent);
        outcome.count(metric::SHORTFALL, self.planned - self.sent);
        outcome.count(metric::LATE, self.late);
        outcome.count(metric::SUCCEEDED, self.timeline.count());
        outcome.count(metric::CONNECTIONS, self.connections.into());
        outcome.losses(&self.lost);
        outcome.failures(&self.failed);
        let names = [metric::INTENDED_LATENCY, metric::ACTUAL_LATENCY];
        let readings = self.timeline.readings(self.last_success_ns);
        outcome.readings(names, readings);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_batch_that_may_be_in_flight_has_its_place() {
        let ring = |batch, window, due| Batching { batch, window }.ring(due);
        assert_eq!((ring(3, 6, 99), ring(3, 4, 99), ring(5, 5, 99)), (2, 2, 1));
        assert_eq!(ring(1, u32::MAX, 11), 11, "never more than are due");
        assert_eq!(ring(9, 9, 0), 1);
    }

    #[test]
    fn a_batch_is_whole_frames_at_least_one_and_at_most_a_second() {
        let of = |frame, bytes, per_s, window| Batching::of(frame, bytes, f64::from(per_s), window);
        assert_eq!(
            of(1032, 16_384, 200, 0),
            Batching {
                batch: 15,
                window: 240
            }
        );
        assert_eq!(
            of(20_000, 16_384, 200, 0),
            Batching {
                batch: 1,
                window: 16
            }
        );
        assert_eq!(
            of(1032, 16_384, 5, 0),
            Batching {
                batch: 5,
                window: 80
            }
        );
        assert_eq!(
            of(1032, 16_384, 200, 1),
            Batching {
                batch: 1,
                window: 1
            }
        );
        assert_eq!(
            of(1032, 0, 200, 4),
            Batching {
                batch: 1,
                window: 4
            }
        );
    }
}
