//! The closed loop: so many echoes in flight, each answered one followed by
//! the next, on the connection that has been idle longest.

use super::overdue::Overdue;
use super::timeline::Timeline;
use super::{Outcome, Workload};
use crate::cause::{Cause, Causes};
use crate::engine::clock::{burn, now_ns};
use crate::engine::net::{Net, Writing};
use crate::engine::pace::Limiter;
use crate::engine::slot::{SlotId, State};
use crate::protocol::Protocol;
use std::collections::{BTreeMap, VecDeque};
use wsbench_schema::metric;

/// One shard's share of an echo load.
#[derive(Clone, Debug)]
pub struct EchoShare {
    /// Echoes to make.
    pub echoes: u64,
    /// Echoes in flight.
    pub concurrency: u32,
    /// When the phase begins.
    pub start_ns: u64,
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
    /// Idle connections on which a control frame waits to be written, and since
    /// when they were passed over for that.
    parked: BTreeMap<SlotId, u64>,
    in_flight: u32,
    sent: u64,
    /// No connection is left, or time is up.
    ended: bool,
    timed_out: bool,
    connections: u32,
    lost: Causes,
    /// What was answered, and how fast.
    timeline: Timeline<1>,
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
            timeline: Timeline::new(share.start_ns),
            share,
            idle: VecDeque::new(),
            parked: BTreeMap::new(),
            in_flight: 0,
            sent: 0,
            ended: false,
            timed_out: false,
            connections: 0,
            lost: Causes::default(),
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
            let Some(id) = self.next_idle(net, now) else {
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
    /// once nothing is in flight and none is parked either.
    #[inline]
    fn next_idle<P: Protocol>(&mut self, net: &mut Net<P>, now: u64) -> Option<SlotId> {
        loop {
            let Some(id) = self.idle.pop_front() else {
                self.ended = self.in_flight == 0 && self.parked.is_empty();
                return None;
            };
            let slot = net.slot(id);
            if slot.state == State::Open && !slot.is_writing() {
                return Some(id);
            }
            if slot.state == State::Open {
                // `drained` brings it back.
                self.parked.insert(id, now);
            }
        }
    }

    fn gone(&mut self, in_flight: u32, cause: Cause) {
        self.lost.add(cause, 1);
        self.in_flight -= in_flight;
        self.failed.add(cause, in_flight.into());
    }

    /// The connection's last echo was answered twice, so not rightly.
    fn take_back(&mut self, latency_ns: u64) {
        // Zero if it has answered none in this phase.
        if latency_ns > 0 {
            self.timeline.take_back([latency_ns]);
            self.failed.add(Cause::Unexpected, 1);
        }
    }

    fn sweep<P: Protocol>(&mut self, net: &mut Net<P>, now: u64) {
        let mut overdue = self.overdue;
        overdue.sweep(net, now, |in_flight| self.gone(in_flight, Cause::Lost));
        self.overdue = overdue;
        let timeout_ns = self.share.timeout_ns;
        let is_late = |since: u64| now.saturating_sub(since) >= timeout_ns;
        for (id, _) in self.parked.extract_if(.., |_, since| is_late(*since)) {
            net.close(id);
            self.lost.add(Cause::Flooded, 1);
        }
    }
}

impl<P: Protocol> Workload<P> for Echo {
    fn begin(&mut self, net: &mut Net<P>) {
        for id in 0..net.slots.len() as SlotId {
            if net.is_open(id) {
                net.slot(id).since_ns = 0;
                self.idle.push_back(id);
            }
        }
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
        let slot = net.slot(id);
        let latency_ns = now_ns - slot.since_ns;
        slot.since_ns = latency_ns;
        self.timeline.succeeded(1, now_ns);
        self.timeline.record(0, latency_ns, 1);
        self.last_success_ns = now_ns;
        self.in_flight -= 1;
        self.idle.push_back(id);
        burn(self.share.burn_ns);
        self.fill(net, now_ns);
    }

    fn dropped(&mut self, net: &mut Net<P>, id: SlotId, in_flight: u32, cause: Cause) {
        self.gone(in_flight, cause);
        self.parked.remove(&id);
        if cause == Cause::Unexpected {
            self.take_back(net.slot(id).since_ns);
        }
        self.fill(net, now_ns());
    }

    fn drained(&mut self, net: &mut Net<P>, id: SlotId) {
        if self.parked.remove(&id).is_some() {
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
        (self.timeline.count(), self.failed.total())
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
        outcome.count(metric::SUCCEEDED, self.timeline.count());
        outcome.count(metric::CONNECTIONS, self.connections.into());
        outcome.losses(&self.lost);
        outcome.count(
            metric::CONCURRENCY,
            self.share.concurrency.min(self.connections).into(),
        );
        outcome.failures(&self.failed);
        let readings = self.timeline.readings(self.last_success_ns);
        outcome.readings([metric::ECHO_LATENCY], readings);
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

    fn one_open() -> (Net<WebSocket>, mio::Poll) {
        let templates = Arc::new(Templates::new(MessageKind::Binary, 8, 1, 1));
        let socket = WebSocket::new(templates, true, "h".into(), "/ws".into());
        let poll = mio::Poll::new().unwrap();
        let mut net = Net::new(socket, 1, poll.registry().try_clone().unwrap());
        net.slot(0).state = State::Open;
        net.open = 1;
        (net, poll)
    }

    /// Nine echoes of which none may be sent.
    fn echo(timeout_ns: u64) -> Echo {
        Echo::new(EchoShare {
            echoes: 9,
            concurrency: 0,
            start_ns: 0,
            until_ns: None,
            timeout_ns,
            limit: None,
            burn_ns: 0,
        })
    }

    fn is_done(echo: &Echo) -> bool {
        Workload::<WebSocket>::is_done(echo)
    }

    fn counts(echo: Echo) -> std::collections::BTreeMap<String, u64> {
        Workload::<WebSocket>::outcome(echo).counts
    }

    #[test]
    fn a_connection_that_wrote_its_pong_while_idle_is_not_queued_twice() {
        let (mut net, _poll) = one_open();
        let mut echo = echo(1);
        echo.begin(&mut net);
        echo.drained(&mut net, 0);
        assert_eq!(echo.idle, [0]);
        // Only one that was passed over comes back, and the phase waits for it.
        net.slot(0).aside.get_or_insert_default().reply.push(0);
        assert_eq!(echo.next_idle(&mut net, 5), None);
        assert!(!is_done(&echo));
        net.slot(0).aside = None;
        echo.drained(&mut net, 0);
        assert_eq!(echo.idle, [0]);
    }

    #[test]
    fn a_connection_that_never_takes_its_pong_is_given_up_by_the_timeout() {
        let (mut net, _poll) = one_open();
        let mut echo = echo(10);
        echo.begin(&mut net);
        net.slot(0).aside.get_or_insert_default().reply.push(0);
        assert_eq!(echo.next_idle(&mut net, 5), None);
        echo.sweep(&mut net, 14);
        assert!(net.is_open(0));
        echo.sweep(&mut net, 15);
        assert_eq!(echo.next_idle(&mut net, 15), None);
        assert!(is_done(&echo));
        let counts = counts(echo);
        assert_eq!((counts[metric::NOT_SENT], counts[metric::FAILED]), (9, 0));
        assert_eq!(counts[metric::CONNECTIONS_LOST], 1);
        assert_eq!(counts[&metric::lost_by("flooded")], 1);
    }

    #[test]
    fn with_no_connection_left_the_phase_is_over_and_its_echoes_are_not_sent() {
        let (mut net, _poll) = one_open();
        net.close(0);
        let mut echo = echo(10);
        echo.begin(&mut net);
        assert!(is_done(&echo));
        assert_eq!(counts(echo)[metric::NOT_SENT], 9);
    }
}
