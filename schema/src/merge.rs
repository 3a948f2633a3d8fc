//! One report from those of several client processes that did a phase in step:
//! counts and costs are summed, times are the latest's, histograms are added
//! bucket by bucket. Nothing is averaged.

use crate::metric::{
    BATCH, CLIENT_CPU, CLIENT_CPUS, CLIENT_WINDOW, DRAIN, DURATION, ELAPSED, LONGEST_STALL,
};
use crate::{HistogramError, Intervals, PhaseReport, Series, decode_histogram, encode_histogram};
use std::collections::BTreeMap;
use thiserror::Error;

/// Reports that do not go together.
#[derive(Debug, Error)]
pub enum MergeError {
    /// Nothing says whether to sum this metric.
    #[error("no rule says how `{0}` of several client processes becomes one figure")]
    Unknown(String),
    /// A histogram cannot be read.
    #[error("histogram `{name}` of a client process: {cause}")]
    Unreadable {
        /// Its name.
        name: String,
        /// Why.
        cause: HistogramError,
    },
    /// A value of one histogram does not fit the other.
    #[error("histogram `{name}` of a client process does not fit that of another: {cause}")]
    Misfit {
        /// Its name.
        name: String,
        /// Why.
        cause: String,
    },
}

/// How a metric of several processes becomes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Sum,
    Largest,
}

/// Counts and bytes add up, but for what all processes share or have alike. Of
/// times, only CPU time adds up.
fn rule(name: &str) -> Option<Rule> {
    match name {
        // All run on the same CPUs, and cut their messages alike.
        CLIENT_CPUS | BATCH => Some(Rule::Largest),
        // They began together, so the longest ended last.
        ELAPSED | CLIENT_WINDOW | DURATION | DRAIN => Some(Rule::Largest),
        LONGEST_STALL => Some(Rule::Largest),
        CLIENT_CPU => Some(Rule::Sum),
        _ if name.ends_with("_count") || name.ends_with("_bytes") => Some(Rule::Sum),
        _ => None,
    }
}

impl PhaseReport {
    /// The report of all processes together.
    ///
    /// # Errors
    /// If a histogram cannot be read, or a metric is of a kind that nobody
    /// thought of: better none than a wrong sum.
    pub fn merge(reports: &[Self]) -> Result<Self, MergeError> {
        if let [only] = reports {
            return Ok(only.clone());
        }
        let mut metrics = BTreeMap::new();
        for (name, value) in reports.iter().flat_map(|report| &report.metrics) {
            let all: &mut u64 = metrics.entry(name.clone()).or_default();
            *all = match rule(name) {
                Some(Rule::Sum) => all.saturating_add(*value),
                Some(Rule::Largest) => *value.max(all),
                None => return Err(MergeError::Unknown(name.clone())),
            };
        }
        let mut histograms = BTreeMap::new();
        for (name, text) in reports.iter().flat_map(|report| &report.histograms) {
            let name = name.clone();
            let part = match decode_histogram(text) {
                Ok(part) => part,
                Err(cause) => return Err(MergeError::Unreadable { name, cause }),
            };
            let all = histograms
                .entry(name.clone())
                .or_insert_with(crate::latency_histogram);
            all.add(part).map_err(|cause| MergeError::Misfit {
                name,
                cause: cause.to_string(),
            })?;
        }
        let mut series: BTreeMap<String, Series> = BTreeMap::new();
        for (name, part) in reports.iter().flat_map(|report| &report.series) {
            let all = series.entry(name.clone()).or_default();
            *all = all.plus(part);
        }
        let mut parts: BTreeMap<&String, Vec<&Intervals>> = BTreeMap::new();
        for (name, intervals) in reports.iter().flat_map(|report| &report.intervals) {
            parts.entry(name).or_default().push(intervals);
        }
        let mut intervals = BTreeMap::new();
        for (name, parts) in parts {
            let name = name.clone();
            match Intervals::sum(&parts) {
                Ok(sum) => intervals.insert(name, sum),
                Err(cause) => return Err(MergeError::Unreadable { name, cause }),
            };
        }
        Ok(Self {
            metrics,
            series,
            intervals,
            histograms: histograms
                .iter()
                .map(|(name, all)| (name.clone(), encode_histogram(all)))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency_histogram;
    use crate::metric::{
        CLIENT_BYTES_SERIES, CONNECTIONS, ECHO_LATENCY, SENT_BYTES, SUCCEEDED, failed_by, lost_by,
    };

    fn report(succeeded: u64, elapsed_ns: u64, latencies: &[u64]) -> PhaseReport {
        let mut histogram = latency_histogram();
        for latency in latencies {
            histogram.record(*latency).unwrap();
        }
        let metrics = [
            (SUCCEEDED, succeeded),
            (CONNECTIONS, 7),
            (SENT_BYTES, 100 * succeeded),
            (ELAPSED, elapsed_ns),
            (CLIENT_CPU, elapsed_ns / 2),
            (CLIENT_CPUS, 2),
        ];
        PhaseReport {
            metrics: metrics.map(|(name, value)| (name.into(), value)).into(),
            histograms: [(ECHO_LATENCY.into(), encode_histogram(&histogram))].into(),
            ..PhaseReport::default()
        }
    }

    #[test]
    fn counts_and_costs_are_summed_and_times_are_the_latest() {
        let mut late = report(3, 400, &[]);
        late.metrics.insert(failed_by("reset"), 2);
        late.metrics.insert(lost_by("bad_frame"), 3);
        let mut first = report(5, 100, &[]);
        first.metrics.insert(lost_by("bad_frame"), 1);
        let merged = PhaseReport::merge(&[first, late]).unwrap();
        let expected = [
            (SUCCEEDED.to_owned(), 8),
            (CONNECTIONS.to_owned(), 14),
            (SENT_BYTES.to_owned(), 800),
            (ELAPSED.to_owned(), 400),
            (CLIENT_CPU.to_owned(), 250),
            (CLIENT_CPUS.to_owned(), 2),
            (failed_by("reset"), 2),
            (lost_by("bad_frame"), 4),
        ];
        assert_eq!(merged.metrics, expected.into());
    }

    #[test]
    fn a_merged_histogram_is_that_of_all_samples_and_no_average() {
        let fast = report(1, 1, &[10, 10, 10, 10, 10, 10, 10, 10, 10]);
        let slow = report(1, 1, &[1_000_000]);
        let merged = PhaseReport::merge(&[fast, slow]).unwrap();
        let all = decode_histogram(&merged.histograms[ECHO_LATENCY]).unwrap();
        assert_eq!((all.len(), all.min()), (10, 10));
        assert_eq!(all.value_at_quantile(0.9), 10);
        assert!(all.max() >= 1_000_000);
    }

    #[test]
    fn one_report_is_left_as_it_is() {
        let mut only = report(3, 9, &[5]);
        only.metrics.insert("of_a_new_kind".into(), 1);
        assert_eq!(PhaseReport::merge(&[only.clone()]).unwrap(), only);
    }

    #[test]
    fn the_longest_stall_is_that_of_the_process_that_had_it_and_bytes_over_time_are_summed() {
        let with = |stall: u64, offsets_ns: &[u64], values: &[u64]| {
            let mut report = report(1, 1, &[]);
            report.metrics.insert(LONGEST_STALL.into(), stall);
            let series = Series {
                offsets_ns: offsets_ns.into(),
                values: values.into(),
            };
            report.series.insert(CLIENT_BYTES_SERIES.into(), series);
            report
        };
        // The second has thinned out its series and the first is over sooner.
        let parts = [
            with(7, &[1, 2, 3], &[10, 20, 30]),
            with(9, &[2, 4], &[5, 9]),
        ];
        let merged = PhaseReport::merge(&parts).unwrap();
        assert_eq!(merged.metrics[LONGEST_STALL], 9);
        let series = &merged.series[CLIENT_BYTES_SERIES];
        assert_eq!(series.offsets_ns, [1, 2, 3, 4]);
        assert_eq!(series.values, [10, 25, 35, 39]);
    }

    #[test]
    fn what_nobody_thought_of_is_an_error_and_never_a_wrong_figure() {
        let mut new = report(3, 9, &[5]);
        new.metrics.insert("mean_wait_ns".into(), 1);
        let error = PhaseReport::merge(&[new, report(1, 1, &[])]).unwrap_err();
        assert!(error.to_string().contains("`mean_wait_ns`"), "{error}");
        let mut broken = report(3, 9, &[5]);
        broken.histograms.insert(ECHO_LATENCY.into(), "%".into());
        let error = PhaseReport::merge(&[report(1, 1, &[1]), broken]).unwrap_err();
        assert!(error.to_string().contains(ECHO_LATENCY), "{error}");
    }
}
