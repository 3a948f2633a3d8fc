//! What an observer of the server sees from outside.

use serde::{Deserialize, Serialize};

/// Exact cumulative figures of a process tree at one instant: an edge of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edge {
    /// `CLOCK_MONOTONIC` of the observer's machine.
    pub at_ns: u64,
    /// CPU time since each process started, the reaped children's included.
    pub cpu_ns: u64,
    /// Resident memory.
    pub rss_bytes: u64,
    /// Processes in the tree.
    pub processes: u32,
    /// Threads in the tree.
    pub threads: u32,
    /// Of the kernel; `None` if it does not tell.
    pub listen_queue: Option<ListenQueue>,
}

/// Connection requests that the kernel dropped since it started, for all sockets
/// of the network namespace that the server is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListenQueue {
    /// `ListenOverflows`: the queue of connections to be accepted was full.
    pub overflows: u64,
    /// `ListenDrops`: for any reason, the overflows among them.
    pub drops: u64,
}

/// One reading of the series between two edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Since the phase's first edge.
    pub offset_ns: u64,
    /// Since the sample before; 100,000 is one CPU fully used.
    pub cpu_millipercent: u64,
    /// Resident memory.
    pub rss_bytes: u64,
}

/// Reads a running total from its beginning to its end.
struct Running<'a> {
    series: &'a Series,
    next: usize,
    value: u64,
}

impl<'a> Running<'a> {
    fn of(series: &'a Series) -> Self {
        Self {
            series,
            next: 0,
            value: 0,
        }
    }

    /// What it has come to by then; no time is before the one asked for last.
    fn at(&mut self, offset_ns: u64) -> u64 {
        let readings = self.series.offsets_ns.iter().zip(&self.series.values);
        for (_, value) in readings
            .skip(self.next)
            .take_while(|(offset, _)| **offset <= offset_ns)
        {
            self.value = *value;
            self.next += 1;
        }
        self.value
    }
}

/// Readings over time as they are kept in a record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Since the phase's first edge.
    pub offsets_ns: Vec<u64>,
    /// In the unit of the series' name; one for each offset.
    pub values: Vec<u64>,
}

impl Series {
    /// One quantity of the samples.
    #[must_use]
    pub fn of(samples: &[Sample], quantity: impl Fn(&Sample) -> u64) -> Self {
        Self {
            offsets_ns: samples.iter().map(|sample| sample.offset_ns).collect(),
            values: samples.iter().map(quantity).collect(),
        }
    }

    /// The sum of two running totals: at each time of either, what both have come to
    /// by then.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let mut sum = Self::default();
        let mut offsets: Vec<u64> = [&self.offsets_ns[..], &other.offsets_ns].concat();
        offsets.sort_unstable();
        offsets.dedup();
        let (mut ours, mut theirs) = (Running::of(self), Running::of(other));
        for offset in offsets {
            sum.offsets_ns.push(offset);
            let value = ours.at(offset).saturating_add(theirs.at(offset));
            sum.values.push(value);
        }
        sum
    }
}
