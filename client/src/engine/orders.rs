//! What each shard has to do in a phase: the load, cut into shares.

use super::dial::Route;
use super::pace::Limiter;
use super::worker::{Order, Worker};
use crate::workload::bulk::BulkShare;
use crate::workload::connect::Connect;
use crate::workload::echo::EchoShare;
use crate::workload::rate::{Batching, RateShare};
use crate::workload::release::ReleaseShare;
use std::sync::Arc;
use wsbench_schema::split::{apportion, share};
use wsbench_schema::{BulkLoad, EchoLoad, Load, RateLoad, ReleaseLoad};

const NS_PER_MS: u64 = 1_000_000;

/// Connections and dials in flight are split evenly. What the loads before have
/// opened was split in the same way, so that a shard goes on where it stopped.
pub fn connect(workers: &[Worker], route: &Arc<Route>, load: &Load, seed: u64) -> Vec<Order> {
    let order = |(index, worker): (usize, &Worker)| {
        let part = |total: u32| share(total.into(), workers.len(), index) as u32;
        let in_flight = part(load.dial.concurrency).max(1);
        let slots = part(load.after_connections)..part(load.connections);
        debug_assert!(slots.end <= worker.room);
        let first = worker.first_number;
        let connect = Connect::new(Arc::clone(route), &load.dial, slots, first, in_flight, seed);
        Order::Connect(Box::new(connect))
    };
    workers.iter().enumerate().map(order).collect()
}

/// Echoes in flight are split by open connections, and echoes by those in
/// flight. Duration and limit hold in the warm-up too. With fewer in flight than shards, some shards have nothing to do.
pub fn echo(
    workers: &[Worker],
    echo: &EchoLoad,
    warmup: bool,
    burn_ns: u64,
    start_ns: u64,
) -> Vec<Order> {
    let open = open(workers);
    let all: u64 = open.iter().sum();
    let concurrency = match u64::from(echo.concurrency) {
        0 => all,
        asked => asked.min(all),
    };
    let in_flight = apportion(concurrency, &open);
    let total = if warmup {
        echo.warmup_echoes
    } else {
        echo.echoes
    };
    let mut echoes = apportion(total, &in_flight);
    if concurrency == 0 {
        // Somebody must say that they were not sent.
        echoes[0] = total;
    }
    let until_ns = echo
        .duration_ms
        .map(|ms| start_ns.saturating_add(ms.saturating_mul(NS_PER_MS)));
    let order = |(echoes, in_flight): (u64, u64)| {
        let per_s = echo.limit_per_s as f64 * echoes as f64 / total.max(1) as f64;
        Order::Echo(Box::new(EchoShare {
            echoes,
            concurrency: in_flight as u32,
            start_ns,
            until_ns,
            timeout_ns: echo.timeout_ms.saturating_mul(NS_PER_MS),
            limit: (per_s > 0.0).then(|| Limiter::new(per_s, start_ns)),
            burn_ns,
        }))
    };
    echoes.into_iter().zip(in_flight).map(order).collect()
}

/// Senders are split by open connections; all have the same interval.
pub fn rate(
    workers: &[Worker],
    plan: &RatePlan,
    load: &Load,
    rate: &RateLoad,
    seed: u64,
    start_ns: u64,
) -> Vec<Order> {
    let order = |(index, senders): (usize, u64)| {
        Order::Rate(Box::new(RateShare {
            senders: senders as u32,
            batching: plan.batching,
            interval_ns: plan.interval_ns,
            start_ns,
            duration_ns: rate.duration_ms.saturating_mul(NS_PER_MS),
            timeout_ns: rate.timeout_ms.saturating_mul(NS_PER_MS),
            seed: seed.wrapping_add(index as u64),
            burn_ns: load.client_burn_ns,
        }))
    };
    apportion(plan.senders.into(), &open(workers))
        .into_iter()
        .enumerate()
        .map(order)
        .collect()
}

/// Each shard closes its part of its own connections.
pub fn release(workers: &[Worker], release: &ReleaseLoad) -> Vec<Order> {
    let share = ReleaseShare {
        percent: release.percent,
        settle_ns: release.settle_ms.saturating_mul(NS_PER_MS),
        timeout_ns: release.timeout_ms.saturating_mul(NS_PER_MS),
    };
    let order = |_| Order::Release(share.clone());
    workers.iter().map(order).collect()
}

/// A transfer on each connection that was asked for, split as they are.
pub fn bulk(
    workers: &[Worker],
    load: &Load,
    bulk: &BulkLoad,
    first_of_part: u32,
    start_ns: u64,
) -> Vec<Order> {
    let until_ns = bulk
        .duration_ms
        .map(|ms| start_ns.saturating_add(ms.saturating_mul(NS_PER_MS)));
    let order = |(index, worker): (usize, &Worker)| {
        Order::Bulk(Box::new(BulkShare {
            planned: share(load.connections.into(), workers.len(), index) as u32,
            pieces: pieces(load, bulk),
            piece_bytes: load.payload_bytes,
            direction: bulk.direction,
            window_bytes: bulk.window_bytes,
            slow_percent: bulk.slow_readers_percent,
            slow_bytes_per_s: bulk.slow_bytes_per_s,
            first_number: first_of_part.wrapping_add(worker.first_number),
            start_ns,
            until_ns,
            timeout_ns: bulk.timeout_ms.saturating_mul(NS_PER_MS),
            burn_ns: load.client_burn_ns,
        }))
    };
    workers.iter().enumerate().map(order).collect()
}

/// Pieces of each transfer; a valid load has no more than that.
pub fn pieces(load: &Load, bulk: &BulkLoad) -> u32 {
    let pieces = bulk.bytes_per_connection / u64::from(load.payload_bytes.max(1));
    u32::try_from(pieces).unwrap_or(u32::MAX)
}

/// A rate load on the connections that are open.
#[derive(Clone, Copy, Debug)]
pub struct RatePlan {
    /// Connections that send.
    pub senders: u32,
    /// How their messages are cut into batches.
    pub batching: Batching,
    /// Messages a second in all: what the senders ask for, or the limit if lower.
    pub per_s: f64,
    /// From one batch of a connection to its next.
    pub interval_ns: f64,
}

impl RatePlan {
    /// The longest batch of any plan for this load. A limit is shared by the
    /// connections that opened: the fewer they are, the longer their batches.
    #[must_use]
    pub fn longest_batch(rate: &RateLoad, frame_bytes: usize) -> u32 {
        let each = f64::from(rate.per_connection_per_s);
        Batching::of(frame_bytes, rate.batch_bytes, each, rate.window).batch
    }

    /// For `open` connections and frames of so many bytes.
    #[must_use]
    pub fn new(rate: &RateLoad, open: u32, frame_bytes: usize) -> Self {
        let senders = match rate.connections {
            0 => open,
            asked => asked.min(open),
        };
        let count = f64::from(senders.max(1));
        let asked = f64::from(rate.per_connection_per_s) * count;
        let per_s = match rate.limit_per_s {
            0 => asked,
            limit => asked.min(limit as f64),
        };
        let each = per_s / count;
        let batching = Batching::of(frame_bytes, rate.batch_bytes, each, rate.window);
        let interval_ns = f64::from(batching.batch) * 1e9 / each;
        Self {
            senders,
            batching,
            per_s,
            interval_ns,
        }
    }
}

fn open(workers: &[Worker]) -> Vec<u64> {
    workers.iter().map(|worker| worker.open.into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(limit_per_s: u64) -> RateLoad {
        RateLoad {
            connections: 10,
            duration_ms: 1000,
            per_connection_per_s: 200,
            batch_bytes: 16_384,
            window: 0,
            limit_per_s,
            timeout_ms: 1000,
        }
    }

    #[test]
    fn a_batch_of_fifteen_is_due_every_75_ms() {
        let plan = RatePlan::new(&rate(0), 50, 1032);
        assert_eq!((plan.senders, plan.batching.batch), (10, 15));
        assert_eq!((plan.per_s, plan.interval_ns), (2000.0, 75e6));
    }

    #[test]
    fn a_limit_stretches_the_interval() {
        let plan = RatePlan::new(&rate(1000), 50, 1032);
        assert_eq!((plan.per_s, plan.interval_ns), (1000.0, 150e6));
        // A batch is a second's worth of what is sent, not of what was asked for.
        let plan = RatePlan::new(&rate(50), 50, 1032);
        assert_eq!((plan.batching.batch, plan.interval_ns), (5, 1e9));
        let plan = RatePlan::new(&rate(1), 50, 1032);
        assert_eq!((plan.batching.batch, plan.interval_ns), (1, 10e9));
    }

    #[test]
    fn no_plan_has_a_longer_batch_than_the_frames_are_made_for() {
        for limit in [0, 1, 50, 1000] {
            let longest = RatePlan::longest_batch(&rate(limit), 1032);
            for open in [0, 1, 3, 10] {
                assert!(RatePlan::new(&rate(limit), open, 1032).batching.batch <= longest);
            }
        }
        assert_eq!(RatePlan::new(&rate(50), 1, 1032).batching.batch, 15);
    }

    #[test]
    fn no_connection_left_is_no_sender_and_no_division_by_zero() {
        let plan = RatePlan::new(&rate(0), 0, 1032);
        assert_eq!(plan.senders, 0);
        assert!(plan.interval_ns.is_finite());
    }
}
