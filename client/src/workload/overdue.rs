//! Finding messages that were not answered in time, without looking at every
//! connection more often than one can be overdue.

use crate::engine::net::Net;
use crate::engine::slot::{SlotId, State};
use crate::protocol::Protocol;

/// Looks through the connections of a shard for overdue messages.
#[derive(Clone, Copy, Debug)]
pub struct Overdue {
    timeout_ns: u64,
    /// From one look to the next at least.
    pause_ns: u64,
    at_ns: u64,
}

impl Overdue {
    /// For a phase in which nothing is sent before `now_ns`.
    #[must_use]
    pub fn new(timeout_ns: u64, now_ns: u64) -> Self {
        Self {
            timeout_ns,
            pause_ns: (timeout_ns / 16).clamp(1_000_000, 500_000_000),
            at_ns: now_ns.saturating_add(timeout_ns),
        }
    }

    /// When to look next. Nothing is overdue before, or only by the pause.
    #[must_use]
    pub fn at_ns(&self) -> u64 {
        self.at_ns
    }

    /// Closes the connections whose oldest message in flight is overdue, and
    /// tells of each how many were in flight. A million idle
    /// connections are looked through once in a timeout, not at every wake-up.
    pub fn sweep<P: Protocol>(&mut self, net: &mut Net<P>, now_ns: u64, mut gone: impl FnMut(u32)) {
        // What is sent from now on is later than this.
        let mut oldest_ns = now_ns;
        for id in 0..net.slots.len() as SlotId {
            let slot = net.slot(id);
            if slot.state != State::Open || slot.awaited == 0 {
                continue;
            }
            if now_ns.saturating_sub(slot.since_ns) >= self.timeout_ns {
                gone(net.close(id));
            } else {
                oldest_ns = oldest_ns.min(slot.since_ns);
            }
        }
        let possible_ns = oldest_ns.saturating_add(self.timeout_ns);
        self.at_ns = possible_ns.max(now_ns + self.pause_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::template::Templates;
    use crate::protocol::websocket::WebSocket;
    use std::sync::Arc;
    use wsbench_schema::MessageKind;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn connections_are_looked_through_no_sooner_than_one_can_be_overdue() {
        let templates = Arc::new(Templates::new(MessageKind::Binary, 8, 1, 1));
        let socket = WebSocket::new(templates, true, "h".into(), "/ws".into());
        let poll = mio::Poll::new().unwrap();
        let mut net = Net::new(socket, 3, poll.registry().try_clone().unwrap());
        for id in 0..3 {
            net.slot(id).state = State::Open;
            net.open += 1;
        }
        let mut lost = Vec::new();
        let mut overdue = Overdue::new(5 * SECOND, SECOND);
        assert_eq!(overdue.at_ns(), 6 * SECOND);
        // Two in flight since second 4, three since second 1: those are overdue.
        for (id, since, awaited) in [(1, 4 * SECOND, 2), (2, SECOND, 3)] {
            (net.slot(id).since_ns, net.slot(id).awaited) = (since, awaited);
        }
        overdue.sweep(&mut net, 6 * SECOND, |in_flight| lost.push(in_flight));
        assert_eq!(
            (lost.as_slice(), overdue.at_ns()),
            ([3].as_slice(), 9 * SECOND)
        );
        assert!(!net.is_open(2) && net.is_open(1));
        // Answered in time: with nothing in flight a whole timeout can pass.
        net.slot(1).awaited = 0;
        overdue.sweep(&mut net, 9 * SECOND, |in_flight| lost.push(in_flight));
        assert_eq!((lost.len(), overdue.at_ns()), (1, 14 * SECOND));
        // However old the oldest is, others have their turn between two looks.
        (net.slot(1).since_ns, net.slot(1).awaited) = (9 * SECOND + 1, 1);
        overdue.sweep(&mut net, 14 * SECOND, |in_flight| lost.push(in_flight));
        assert_eq!(overdue.at_ns(), 14 * SECOND + SECOND / 16 * 5);
        let at_ns = overdue.at_ns();
        overdue.sweep(&mut net, at_ns, |in_flight| lost.push(in_flight));
        assert_eq!(lost, [3, 1]);
    }
}
