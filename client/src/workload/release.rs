//! Closes some of the connections, spread evenly over those that are open, and then
//! leaves the server in peace for a while: what it keeps of them is its memory's affair.

use super::{Outcome, Workload};
use crate::cause::{Cause, Causes};
use crate::engine::clock::now_ns;
use crate::engine::net::{Net, Writing};
use crate::engine::slot::SlotId;
use crate::protocol::Protocol;
use wsbench_schema::metric;

/// One shard's share of a release.
#[derive(Clone, Debug)]
pub struct ReleaseShare {
    /// Of its open connections.
    pub percent: u32,
    /// Peace after the last of them is closed.
    pub settle_ns: u64,
    /// A close that the server did not complete after this long is given up.
    pub timeout_ns: u64,
}

/// One shard's release.
pub struct Release {
    share: ReleaseShare,
    /// By connection: whether it is being closed.
    closing: Vec<bool>,
    waiting: u32,
    planned: u32,
    connections: u32,
    succeeded: u64,
    failed: Causes,
    lost: Causes,
    last_success_ns: u64,
    wake_at_ns: u64,
    is_done: bool,
}

impl Release {
    /// One shard's release.
    #[must_use]
    pub fn new(share: ReleaseShare) -> Self {
        Self {
            share,
            closing: Vec::new(),
            waiting: 0,
            planned: 0,
            connections: 0,
            succeeded: 0,
            failed: Causes::default(),
            lost: Causes::default(),
            last_success_ns: 0,
            wake_at_ns: u64::MAX,
            is_done: false,
        }
    }

    /// A connection that was being closed is: by `cause`, if not as it should be.
    fn closed(&mut self, cause: Option<Cause>) {
        self.waiting -= 1;
        let now = now_ns();
        match cause {
            None => {
                self.succeeded += 1;
                self.last_success_ns = now;
            }
            Some(cause) => self.failed.add(cause, 1),
        }
        if self.waiting == 0 {
            self.wake_at_ns = now.saturating_add(self.share.settle_ns);
        }
    }
}

impl<P: Protocol> Workload<P> for Release {
    fn begin(&mut self, net: &mut Net<P>) {
        self.connections = net.open;
        self.closing = vec![false; net.slots.len()];
        let mut due = 0;
        for id in 0..net.slots.len() as SlotId {
            if !net.is_open(id) {
                continue;
            }
            due += self.share.percent;
            if due >= 100 {
                due -= 100;
                self.closing[id as usize] = true;
                self.planned += 1;
            }
        }
        let now = now_ns();
        self.waiting = self.planned;
        self.wake_at_ns = now.saturating_add(match self.planned {
            0 => self.share.settle_ns,
            _ => self.share.timeout_ns,
        });
        for id in 0..self.closing.len() as SlotId {
            if self.closing[id as usize]
                && let Writing::Fault(cause) = net.farewell(id)
            {
                net.close(id);
                self.closed(Some(cause));
            }
        }
    }

    fn answered(&mut self, _net: &mut Net<P>, _id: SlotId, _count: u32, _now_ns: u64) {
        // Nothing is awaited: any message is a fault.
    }

    fn dropped(&mut self, _net: &mut Net<P>, id: SlotId, _in_flight: u32, cause: Cause) {
        match (self.closing[id as usize], cause) {
            (true, Cause::Closed) => self.closed(None),
            (true, cause) => self.closed(Some(cause)),
            (false, cause) => self.lost.add(cause, 1),
        }
    }

    fn wake_at_ns(&self) -> u64 {
        self.wake_at_ns
    }

    fn tick(&mut self, net: &mut Net<P>, _now_ns: u64) {
        if self.waiting == 0 {
            self.is_done = true;
            return;
        }
        for id in 0..self.closing.len() as SlotId {
            if self.closing[id as usize] && net.is_open(id) {
                net.close(id);
                self.closed(Some(Cause::Lost));
            }
        }
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn planned(&self) -> u64 {
        self.planned.into()
    }

    fn progress(&self) -> (u64, u64) {
        (self.succeeded, self.failed.total())
    }

    fn outcome(self) -> Outcome {
        let mut outcome = Outcome {
            last_success_ns: self.last_success_ns,
            ..Outcome::default()
        };
        outcome.count(metric::PLANNED, self.planned.into());
        outcome.count(metric::SUCCEEDED, self.succeeded);
        outcome.count(metric::CONNECTIONS, self.connections.into());
        outcome.losses(&self.lost);
        outcome.failures(&self.failed);
        outcome
    }
}
