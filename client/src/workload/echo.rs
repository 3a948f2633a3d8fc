//! The closed loop: so many echoes in flight, each answered one followed by
//! the next, on the connection that has been idle longest.

use super::overdue::Overdue;
use super::{Outcome, Workload};
use crate::cause::{Cause, Causes};
use crate::engine::clock::{burn, now_ns};
use crate::engine::net::{Net, Writing};
use crate::engine::pace::Limiter;
use crate::engine::slot::{SlotId, State};
use crate::protocol::Protocol;
use hdrhistogram::Histogram;
use std::collections::VecDeque;
use wsbench_schema::{latency_histogram, metric};

/// One shard's share of an echo load.
#[derive(Clone, Debug)]
pub struct EchoShare {
    /// Echoes to make.
    pub echoes: u64,
    /// Echoes in flight.
    pub concurrency: u32,
    /// When no more are sent, if before all are made.
    pub until_ns: Option<u64>,
    /// An echo unanswered for this long is lost.
    pub timeout_ns: u64,
    /// Echoes a second.
    pub limit: Option<Limiter>,
    /// Work added for each answer; see `Load::client_burn_ns`.
    pub burn_ns: u64,
}

/// One shard's echoes.
pub struct Echo {
    share: EchoShare,
    /// Connections without an echo in flight, the longest idle first. It also
    /// holds some that were closed meanwhile.
    idle: VecDeque<SlotId>,
    in_flight: u32,
    sent: u64,
    /// No connection is left, or time is up.
    ended: bool,
    timed_out: bool,
    connections: u32,
    lost: u64,
    latency: Histogram<u64>,
    succeeded: u64,
    failed: Causes,
    last_success_ns: u64,
    overdue: Overdue,
}

impl Echo {
    /// One shard's echoes.
    #[must_use]
    pub fn new(share: EchoShare) -> Self {
        Self {
            overdue: Overdue::new(share.timeout_ns, 0),
            share,
            idle: VecDeque::new(),
            in_flight: 0,
            sent: 0,
            ended: false,
            timed_out: false,
            connections: 0,
            lost: 0,
            latency: latency_histogram(),
            succeeded: 0,
            failed: Causes::default(),
            last_success_ns: 0,
        }
    }

    #[inline]
    fn may_send(&self) -> bool {
        !self.ended && self.in_flight < self.share.concurrency && self.sent < self.share.echoes
    }

    /// Sends until enough are in flight. The first is sent `now`; each further
    /// one reads the clock.
    #[inline]
    fn fill<P: Protocol>(&mut self, net: &mut Net<P>, now: u64) {
        let mut first = Some(now);
        while self.may_send() {
            let now = first.take().unwrap_or_else(now_ns);
            if self.share.until_ns.is_some_and(|until| now >= until) {
                self.ended = true;
                self.timed_out = true;
                return;
            }
            if self
                .share
                .limit
                .as_ref()
                .is_some_and(|limit| !limit.admits(now))
            {
                return;
            }
            let Some(id) = self.next_idle(net) else {
                return;
            };
            if let Some(limit) = &mut self.share.limit {
                limit.take(now);
            }
            self.sent += 1;
            self.in_flight += 1;
            net.slot(id).since_ns = now;
            if let Writing::Fault(cause) = net.send(id, 1) {
                let in_flight = net.close(id);
                self.gone(in_flight, cause);
            }
        }
    }

    /// The open connection that has been idle longest. None is left for good
    /// once nothing is in flight either.
    #[inline]
    fn next_idle<P: Protocol>(&mut self, net: &mut Net<P>) -> Option<SlotId> {
        loop {
            let Some(id) = self.idle.pop_front() else {
                self.ended = self.in_flight == 0;
                return None;
            };
            let slot = net.slot(id);
            if slot.state == State::Open && !slot.is_writing() {
                return Some(id);
            }
            // One that still writes a pong is brought back by `drained`.
            slot.parked = slot.state == State::Open;
        }
    }

    fn gone(&mut self, in_flight: u32, cause: Cause) {
        self.lost += 1;
        self.in_flight -= in_flight;
        self.failed.add(cause, in_flight.into());
        if cause == Cause::Unexpected && self.succeeded > 0 {
            // An echo that is answered twice was not answered right.
            self.succeeded -= 1;
            self.failed.add(cause, 1);
        }
    }

    fn sweep<P: Protocol>(&mut self, net: &mut Net<P>, now: u64) {
        let mut overdue = self.overdue;
        overdue.sweep(net, now, |in_flight| self.gone(in_flight, Cause::Lost));
        self.overdue = overdue;
    }
}

impl<P: Protocol> Workload<P> for Echo {
    fn begin(&mut self, net: &mut Net<P>) {
        self.idle = (0..net.slots.len() as SlotId)
            .filter(|id| net.is_open(*id))
            .collect();
        self.connections = net.open;
        let now = now_ns();
        self.overdue = Overdue::new(self.share.timeout_ns, now);
        // No connection was left when the shares were cut.
        self.ended = self.share.concurrency == 0;
        self.fill(net, now);
    }

    #[inline]
    fn answered(&mut self, net: &mut Net<P>, id: SlotId, count: u32, now_ns: u64) {
        debug_assert_eq!(count, 1);
        self.latency
            .saturating_record(now_ns - net.slot(id).since_ns);
        self.succeeded += 1;
        self.last_success_ns = now_ns;
        self.in_flight -= 1;
        self.idle.push_back(id);
        burn(self.share.burn_ns);
        self.fill(net, now_ns);
    }

    fn dropped(&mut self, net: &mut Net<P>, _id: SlotId, in_flight: u32, cause: Cause) {
        self.gone(in_flight, cause);
        self.fill(net, now_ns());
    }

    fn drained(&mut self, net: &mut Net<P>, id: SlotId) {
        if std::mem::take(&mut net.slot(id).parked) {
            self.idle.push_back(id);
            self.fill(net, now_ns());
        }
    }

    fn wake_at_ns(&self) -> u64 {
        let paced = match &self.share.limit {
            Some(limit) if self.may_send() && !self.idle.is_empty() => limit.next_ns(),
            _ => u64::MAX,
        };
        let until = self
            .share
            .until_ns
            .filter(|_| !self.ended)
            .unwrap_or(u64::MAX);
        self.overdue.at_ns().min(paced).min(until)
    }

    fn tick(&mut self, net: &mut Net<P>, now_ns: u64) {
        if now_ns >= self.overdue.at_ns() {
            self.sweep(net, now_ns);
        }
        if self.share.until_ns.is_some_and(|until| now_ns >= until) && !self.ended {
            self.ended = true;
            self.timed_out = true;
        }
        self.fill(net, now_ns);
    }

    fn is_done(&self) -> bool {
        self.in_flight == 0 && (self.ended || self.sent == self.share.echoes)
    }

    fn planned(&self) -> u64 {
        self.share.echoes
    }

    fn progress(&self) -> (u64, u64) {
        (self.succeeded, self.failed.total())
    }

    fn outcome(self) -> Outcome {
        let mut outcome = Outcome {
            last_success_ns: self.last_success_ns,
            ..Outcome::default()
        };
        let planned = if self.timed_out {
            self.sent
        } else {
            self.share.echoes
        };
        outcome.count(metric::PLANNED, planned);
        outcome.count(metric::SENT, self.sent);
        outcome.count(metric::NOT_SENT, planned - self.sent);
        outcome.count(metric::SUCCEEDED, self.succeeded);
        outcome.count(metric::CONNECTIONS, self.connections.into());
        outcome.count(metric::CONNECTIONS_LOST, self.lost);
        outcome.count(
            metric::CONCURRENCY,
            self.share.concurrency.min(self.connections).into(),
        );
        outcome.failures(&self.failed);
        outcome
            .histograms
            .insert(metric::ECHO_LATENCY, self.latency);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::template::Templates;
    use crate::protocol::websocket::WebSocket;
    use std::sync::Arc;
    use wsbench_schema::MessageKind;

    fn echo(concurrency: u32) -> Echo {
        Echo::new(EchoShare {
            echoes: 9,
            concurrency,
            until_ns: None,
            timeout_ns: 1,
            limit: None,
            burn_ns: 0,
        })
    }

    #[test]
    fn with_no_connection_left_the_phase_is_over_and_its_echoes_are_not_sent() {
        let templates = Arc::new(Templates::new(MessageKind::Binary, 8, 1, 1));
        let socket = WebSocket::new(templates, true, "h".into(), "/ws".into());
        let poll = mio::Poll::new().unwrap();
        let mut net = Net::new(socket, 1, poll.registry().try_clone().unwrap());
        let mut echo = echo(0);
        echo.begin(&mut net);
        assert!(Workload::<WebSocket>::is_done(&echo));
        let outcome = Workload::<WebSocket>::outcome(echo);
        assert_eq!(outcome.counts[metric::NOT_SENT], 9);
    }

    #[test]
    fn a_connection_that_wrote_its_pong_while_idle_is_not_queued_twice() {
        let templates = Arc::new(Templates::new(MessageKind::Binary, 8, 1, 1));
        let socket = WebSocket::new(templates, true, "h".into(), "/ws".into());
        let poll = mio::Poll::new().unwrap();
        let mut net = Net::new(socket, 1, poll.registry().try_clone().unwrap());
        net.slot(0).state = State::Open;
        let mut echo = echo(0);
        echo.begin(&mut net);
        echo.drained(&mut net, 0);
        assert_eq!(echo.idle, [0]);
        // Only one that was passed over comes back.
        net.slot(0).aside.get_or_insert_default().reply.push(0);
        assert_eq!(echo.next_idle(&mut net), None);
        net.slot(0).aside = None;
        echo.drained(&mut net, 0);
        assert_eq!(echo.idle, [0]);
    }
}
