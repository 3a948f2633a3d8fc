//! What is sent when, and when a phase is done. A workload reacts to what the
//! loop of a shard tells it and acts through [`Net`].

pub mod bulk;
pub mod connect;
pub mod echo;
pub mod overdue;
pub mod rate;
pub mod release;
pub mod timeline;
pub mod total;

use crate::cause::Cause;
use crate::engine::net::Net;
use crate::engine::slot::SlotId;
use crate::protocol::Protocol;
use hdrhistogram::Histogram;
use mio::event::Event;
use std::collections::BTreeMap;
use timeline::{Parts, Readings};
use wsbench_schema::{Series, metric};

/// One shard's part of a phase.
pub trait Workload<P: Protocol> {
    /// The phase begins.
    fn begin(&mut self, net: &mut Net<P>);

    /// `count` messages came back right, by `now`; the connection is open still.
    fn answered(&mut self, net: &mut Net<P>, id: SlotId, count: u32, now_ns: u64);

    /// Something came, by `now`: `count` messages whole and right, and perhaps a part
    /// of another. The connection is open still.
    #[inline]
    fn received(&mut self, net: &mut Net<P>, id: SlotId, count: u32, now_ns: u64) {
        if count > 0 {
            self.answered(net, id, count, now_ns);
        }
    }

    /// How much may be read from a connection now; `None` is all that is there.
    #[inline]
    fn allowance(&mut self, _id: SlotId) -> Option<usize> {
        None
    }

    /// A connection was closed while `in_flight` messages were unanswered.
    fn dropped(&mut self, net: &mut Net<P>, id: SlotId, in_flight: u32, cause: Cause);

    /// A connection that something waited on has written it all.
    fn drained(&mut self, _net: &mut Net<P>, _id: SlotId) {}

    /// Of what waited on a connection, some was written.
    fn progressed(&mut self, _net: &mut Net<P>, _id: SlotId) {}

    /// A connection that is not open yet has an event.
    fn dialling(&mut self, _net: &mut Net<P>, _id: SlotId, _event: &Event) {}

    /// When [`Workload::tick`] wants to be called next.
    fn wake_at_ns(&self) -> u64;

    /// Called at or after that time, with the time.
    fn tick(&mut self, net: &mut Net<P>, now_ns: u64);

    /// Nothing is in flight and nothing is to be sent.
    fn is_done(&self) -> bool;

    /// For the counters: what succeeds if all goes well. Known once it has begun.
    fn planned(&self) -> u64;

    /// For the counters: what succeeded and what failed until now.
    fn progress(&self) -> (u64, u64);

    /// What was measured.
    fn outcome(self) -> Outcome;
}

/// What one shard measured in a phase; the engine adds up those of all shards.
#[derive(Default)]
pub struct Outcome {
    /// Names in [`wsbench_schema::metric`]; they add up over shards.
    pub counts: BTreeMap<String, u64>,
    /// Names in [`wsbench_schema::metric`].
    pub histograms: BTreeMap<&'static str, Histogram<u64>>,
    /// Names in [`wsbench_schema::metric`]; of several shards, the largest counts.
    pub largest: BTreeMap<&'static str, u64>,
    /// Names in [`wsbench_schema::metric`]: running totals, which add up over shards.
    pub series: BTreeMap<&'static str, Series>,
    /// Of histograms, under their names: what became known in each interval.
    pub parts: BTreeMap<&'static str, Parts>,
    /// When the last success came; 0 if none did.
    pub last_success_ns: u64,
}

impl Outcome {
    /// Adds to a count.
    pub fn count(&mut self, name: impl Into<String>, value: u64) {
        *self.counts.entry(name.into()).or_default() += value;
    }

    /// Adds the failures, as a total and by cause.
    pub fn failures(&mut self, causes: &crate::cause::Causes) {
        self.count(metric::FAILED, causes.total());
        for (cause, count) in causes.iter() {
            self.count(metric::failed_by(&cause.name()), count);
        }
    }

    /// Adds the lost connections, as a total and by cause.
    pub fn losses(&mut self, causes: &crate::cause::Causes) {
        self.count(metric::CONNECTIONS_LOST, causes.total());
        for (cause, count) in causes.iter() {
            self.count(metric::lost_by(&cause.name()), count);
        }
    }

    /// Adds the successes and latencies over time, of kinds with these names.
    pub fn readings<const N: usize>(&mut self, names: [&'static str; N], found: Readings<N>) {
        self.series.insert(metric::SUCCEEDED_SERIES, found.total);
        for ((name, latency), parts) in names.into_iter().zip(found.latencies).zip(found.parts) {
            self.histograms.insert(name, latency);
            self.parts.insert(name, parts);
        }
    }

    /// Adds another shard's.
    ///
    /// # Errors
    /// Never for histograms of the engine, which share their bounds.
    pub fn merge(&mut self, other: Self) -> Result<(), hdrhistogram::AdditionError> {
        for (name, value) in other.counts {
            self.count(name, value);
        }
        for (name, histogram) in other.histograms {
            match self.histograms.entry(name) {
                std::collections::btree_map::Entry::Vacant(entry) => {
                    entry.insert(histogram);
                }
                std::collections::btree_map::Entry::Occupied(mut entry) => {
                    entry.get_mut().add(&histogram)?;
                }
            }
        }
        for (name, value) in other.largest {
            let largest = self.largest.entry(name).or_default();
            *largest = value.max(*largest);
        }
        for (name, series) in other.series {
            let all = self.series.entry(name).or_default();
            *all = all.plus(&series);
        }
        for (name, parts) in other.parts {
            self.parts.entry(name).or_default().add(parts);
        }
        self.last_success_ns = self.last_success_ns.max(other.last_success_ns);
        Ok(())
    }
}
