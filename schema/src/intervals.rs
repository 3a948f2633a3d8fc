//! Latencies by the interval of a phase in which they became known.

use crate::{HistogramError, decode_histogram, encode_histogram, latency_histogram};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Histograms of one latency, one after the other from the beginning of the phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Intervals {
    /// How long each interval is; the last one ends with the phase.
    pub interval_ns: u64,
    /// HdrHistogram V2, base64, as [`encode_histogram`] writes it.
    pub histograms: Vec<String>,
}

impl Intervals {
    /// Each of them.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn decoded(&self) -> Result<Vec<Histogram<u64>>, HistogramError> {
        self.histograms
            .iter()
            .map(|text| decode_histogram(text))
            .collect()
    }

    /// Those of several client processes in step, interval by interval. Where the intervals
    /// of one are twice as long, every two of another's become one.
    ///
    /// # Errors
    /// If one cannot be read, or an interval is no multiple of another.
    pub fn sum(parts: &[&Self]) -> Result<Self, HistogramError> {
        let interval_ns = parts.iter().map(|part| part.interval_ns).max().unwrap_or(0);
        let mut sums: Vec<Histogram<u64>> = Vec::new();
        for part in parts {
            let together = interval_ns.checked_div(part.interval_ns).unwrap_or(0);
            if together == 0 || !interval_ns.is_multiple_of(part.interval_ns) {
                let (one, other) = (part.interval_ns, interval_ns);
                return Err(HistogramError::Form(format!(
                    "intervals of {one} ns do not go into those of {other} ns"
                )));
            }
            for (index, histogram) in part.decoded()?.iter().enumerate() {
                let index = index / usize::try_from(together).unwrap_or(usize::MAX);
                while sums.len() <= index {
                    sums.push(latency_histogram());
                }
                sums[index]
                    .add(histogram)
                    .map_err(|error| HistogramError::Form(format!("{error:?}")))?;
            }
        }
        Ok(Self {
            interval_ns,
            histograms: sums.iter().map(encode_histogram).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many latencies in each interval.
    fn of(interval_ns: u64, counts: &[u64]) -> Intervals {
        let encode = |count: &u64| {
            let mut histogram = latency_histogram();
            histogram.record_n(1000, *count).unwrap();
            encode_histogram(&histogram)
        };
        Intervals {
            interval_ns,
            histograms: counts.iter().map(encode).collect(),
        }
    }

    fn counts(intervals: &Intervals) -> Vec<u64> {
        let histograms = intervals.decoded().unwrap();
        histograms.iter().map(Histogram::len).collect()
    }

    #[test]
    fn processes_add_up_interval_by_interval() {
        let sum = Intervals::sum(&[&of(5, &[1, 2]), &of(5, &[10]), &of(5, &[])]).unwrap();
        assert_eq!((sum.interval_ns, counts(&sum)), (5, vec![11, 2]));
        let sum = Intervals::sum(&[&of(10, &[1, 2]), &of(5, &[10, 20, 30])]).unwrap();
        assert_eq!((sum.interval_ns, counts(&sum)), (10, vec![31, 32]));
    }

    #[test]
    fn what_does_not_go_together_is_an_error() {
        for (one, other) in [(10, 3), (0, 5), (0, 0)] {
            let sum = Intervals::sum(&[&of(one, &[1]), &of(other, &[1])]);
            assert!(sum.is_err(), "{one} {other}: {sum:?}");
        }
        let damaged = Intervals {
            interval_ns: 1,
            histograms: vec!["%".into()],
        };
        assert!(Intervals::sum(&[&damaged]).is_err());
    }
}
