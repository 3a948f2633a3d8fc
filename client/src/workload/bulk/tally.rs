//! What became of a shard's transfers.

use super::Outcome;
use super::transfer::Transfer;
use crate::cause::{Cause, Causes};
use hdrhistogram::Histogram;
use wsbench_schema::{latency_histogram, metric};

/// Counts and times. Succeeded, failed and unfinished are all that were begun, once
/// none is under way.
pub struct Tally {
    /// Begun and not over.
    pub under_way: u32,
    /// Pieces sent, wholly or in part.
    pub sent: u64,
    /// Bytes that arrived and were right.
    pub verified_bytes: u64,
    /// When the last of them came.
    pub last_right_ns: u64,
    begun: u32,
    succeeded: u64,
    unfinished: u64,
    failed: Causes,
    latency: Histogram<u64>,
    stalls: Histogram<u64>,
    longest_stall_ns: u64,
}

impl Tally {
    /// Of so many transfers that begin.
    #[must_use]
    pub fn of(begun: u32) -> Self {
        Self {
            under_way: begun,
            sent: 0,
            verified_bytes: 0,
            last_right_ns: 0,
            begun,
            succeeded: 0,
            unfinished: 0,
            failed: Causes::default(),
            latency: latency_histogram(),
            stalls: latency_histogram(),
            longest_stall_ns: 0,
        }
    }

    /// One succeeded, so long after the phase began.
    pub fn succeeded(&mut self, latency_ns: u64) {
        self.latency.saturating_record(latency_ns);
        self.succeeded += 1;
        self.under_way -= 1;
    }

    /// One failed, and its connection was lost with it.
    pub fn failed(&mut self, cause: Cause) {
        self.failed.add(cause, 1);
        self.under_way -= 1;
    }

    /// One was cut off by the end of the time.
    pub fn cut_off(&mut self) {
        self.unfinished += 1;
        self.under_way -= 1;
    }

    /// The longest stall of one that is over.
    pub fn stalled(&mut self, transfer: &Transfer) {
        self.stalls.saturating_record(transfer.stall_ns);
        self.longest_stall_ns = self.longest_stall_ns.max(transfer.stall_ns);
    }

    /// Transfers that failed until now.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failed.total()
    }

    /// Of `planned` transfers of so many bytes.
    #[must_use]
    pub fn outcome(self, planned: u32, bytes: u64) -> Outcome {
        let mut outcome = Outcome {
            last_success_ns: self.last_right_ns,
            ..Outcome::default()
        };
        // A stop, which ends the phase at once, leaves some under way.
        let unfinished = self.unfinished + u64::from(self.under_way);
        let not_sent = planned.saturating_sub(self.begun);
        for (name, count) in [
            (metric::PLANNED, planned.into()),
            (metric::PLANNED_BYTES, u64::from(planned) * bytes),
            (metric::VERIFIED_BYTES, self.verified_bytes),
            (metric::SUCCEEDED, self.succeeded),
            (metric::UNFINISHED, unfinished),
            (metric::NOT_SENT, not_sent.into()),
            (metric::SENT, self.sent),
            (metric::CONNECTIONS, self.begun.into()),
        ] {
            outcome.count(name, count);
        }
        outcome.losses(&self.failed);
        outcome.failures(&self.failed);
        let stall_ns = self.longest_stall_ns;
        outcome.largest.insert(metric::LONGEST_STALL, stall_ns);
        let histograms = [
            (metric::TRANSFER_LATENCY, self.latency),
            (metric::STALL, self.stalls),
        ];
        outcome.histograms.extend(histograms);
        outcome
    }
}
