//! Latencies of all rounds together: histograms are merged, percentiles are
//! read from the sum, and none is shown that its samples cannot support.
//!
//! A percentile of each round averaged over rounds is the percentile of
//! nothing; see Gil Tene, "How NOT to Measure Latency".

use hdrhistogram::Histogram;
use wsbench_schema::{HistogramError, decode_histogram, latency_histogram};

/// Percentiles that a report can show, in thousandths.
pub const PERMILLES: [u64; 6] = [500, 750, 900, 950, 990, 999];

/// What a report shows of a latency, in nanoseconds and to three significant
/// digits, as the histograms keep them.
#[derive(Clone, Debug, PartialEq)]
pub struct Latency {
    /// The shortest.
    pub min_ns: f64,
    /// The arithmetic mean.
    pub mean_ns: f64,
    /// The longest.
    pub max_ns: f64,
    /// One for each of [`PERMILLES`]; `None` where the samples are too few.
    percentiles_ns: [Option<f64>; PERMILLES.len()],
    curve: Vec<(f64, f64)>,
}

/// Points of a curve for each factor of ten.
const STEPS: i32 = 5;

impl Latency {
    /// Reads the histograms of the rounds and merges them; `None` if nothing
    /// was recorded in any of them.
    ///
    /// # Errors
    /// If a text is no histogram.
    pub fn merged<'a>(
        texts: impl IntoIterator<Item = &'a str>,
    ) -> Result<Option<Self>, HistogramError> {
        let mut all = latency_histogram();
        all.auto(true);
        for text in texts {
            all.add(decode_histogram(text)?)
                .map_err(|error| HistogramError::Form(error.to_string()))?;
        }
        Ok((!all.is_empty()).then(|| Self::of(&all)))
    }

    #[expect(clippy::cast_precision_loss, reason = "three digits are kept anyway")]
    fn of(histogram: &Histogram<u64>) -> Self {
        let samples = histogram.len();
        let percentile = |permille: u64| {
            let supported = Self::supports(samples, permille);
            supported.then(|| histogram.value_at_quantile(permille as f64 / 1000.0) as f64)
        };
        Self {
            min_ns: histogram.min() as f64,
            mean_ns: histogram.mean(),
            max_ns: histogram.max() as f64,
            percentiles_ns: PERMILLES.map(percentile),
            curve: curve(histogram),
        }
    }

    /// Latencies over percentiles, for a picture: how many samples there are for each
    /// beyond (10 is the percentile 90), and what the others do not exceed. It ends where
    /// the samples support no more.
    #[must_use]
    pub fn curve(&self) -> &[(f64, f64)] {
        &self.curve
    }

    /// A percentile needs at least one sample beyond it: 1,000 for TP99.9, 100 for
    /// TP99, 2 for TP50.
    #[must_use]
    pub fn supports(samples: u64, permille: u64) -> bool {
        u128::from(samples) * u128::from(1000 - permille) >= 1000
    }

    /// The latency that `permille` thousandths of the samples do not exceed;
    /// `None` if the samples are too few or it is not one of [`PERMILLES`].
    #[must_use]
    pub fn percentile_ns(&self, permille: u64) -> Option<f64> {
        let index = PERMILLES.iter().position(|known| *known == permille)?;
        self.percentiles_ns[index]
    }
}

/// See [`Latency::curve`]: one way through the histogram, whatever the points.
#[expect(clippy::cast_precision_loss, reason = "three digits are kept anyway")]
fn curve(histogram: &Histogram<u64>) -> Vec<(f64, f64)> {
    let samples = histogram.len() as f64;
    let steps = (0..).map(|step| 10f64.powf(f64::from(step) / f64::from(STEPS)));
    // The median is a point of its own, and told by name.
    let mut wanted: Vec<f64> = steps.take_while(|beyond| *beyond <= samples).collect();
    wanted.extend([2.0].into_iter().filter(|beyond| *beyond <= samples));
    wanted.sort_by(f64::total_cmp);
    let mut wanted = wanted.into_iter().peekable();
    let mut curve = Vec::new();
    let mut below = 0.0;
    for value in histogram.iter_recorded() {
        below += value.count_since_last_iteration() as f64;
        let is_reached = |beyond: &f64| below >= samples * (1.0 - 1.0 / beyond) - 1e-6;
        while let Some(beyond) = wanted.next_if(is_reached) {
            curve.push((beyond, value.value_iterated_to() as f64));
        }
    }
    curve
}

#[cfg(test)]
mod tests {
    use super::*;
    use wsbench_schema::encode_histogram;

    fn histogram(latencies_ns: impl IntoIterator<Item = u64>) -> String {
        let mut histogram = latency_histogram();
        for latency in latencies_ns {
            histogram.record(latency).unwrap();
        }
        encode_histogram(&histogram)
    }

    fn close(value: Option<f64>, expected: f64) {
        let value = value.expect("a percentile");
        assert!((value / expected - 1.0).abs() < 0.002, "{value}");
    }

    #[test]
    fn rounds_are_merged_and_not_averaged() {
        // 990 echoes of 1 ms in one round, 10 of 100 ms in another: TP50 of the
        // rounds averages to 50.5 ms, but half of all echoes took 1 ms.
        let fast = histogram(std::iter::repeat_n(1_000_000, 990));
        let slow = histogram(std::iter::repeat_n(100_000_000, 10));
        let latency = Latency::merged([fast.as_str(), &slow]).unwrap().unwrap();
        close(latency.percentile_ns(500), 1e6);
        close(latency.percentile_ns(990), 1e6);
        close(latency.percentile_ns(999), 1e8);
        close(Some(latency.min_ns), 1e6);
        close(Some(latency.max_ns), 1e8);
        close(Some(latency.mean_ns), 1.99e6);
    }

    #[test]
    fn a_percentile_needs_a_sample_beyond_it() {
        for (permille, needed) in [
            (500, 2),
            (750, 4),
            (900, 10),
            (950, 20),
            (990, 100),
            (999, 1000),
        ] {
            for (samples, shown) in [(needed - 1, false), (needed, true)] {
                let text = histogram(std::iter::repeat_n(5000, samples));
                let latency = Latency::merged([text.as_str()]).unwrap().unwrap();
                let percentile = latency.percentile_ns(permille);
                assert_eq!(percentile.is_some(), shown, "{permille} of {samples}");
            }
        }
    }

    #[test]
    fn nothing_recorded_is_no_latency_and_damage_is_an_error() {
        let empty = histogram([]);
        assert_eq!(Latency::merged([empty.as_str()]).unwrap(), None);
        assert_eq!(Latency::merged([]).unwrap(), None);
        assert!(Latency::merged(["damaged"]).is_err());
    }

    #[test]
    fn a_percentile_that_is_not_kept_is_missing() {
        let text = histogram(std::iter::repeat_n(5000, 100_000));
        let latency = Latency::merged([text.as_str()]).unwrap().unwrap();
        assert_eq!(latency.percentile_ns(800), None);
    }

    #[test]
    fn a_curve_shows_what_percentiles_say_and_ends_where_they_do() {
        let text = histogram((1..=2500).map(|step| step * 1000));
        let latency = Latency::merged([text.as_str()]).unwrap().unwrap();
        let at = |beyond: f64| {
            let mut curve = latency.curve().iter();
            let found = curve.find(|point| (point.0 / beyond - 1.0).abs() < 1e-9);
            found.map(|point| point.1)
        };
        for (beyond, permille) in [(2.0, 500), (10.0, 900), (100.0, 990), (1000.0, 999)] {
            assert_eq!(at(beyond), latency.percentile_ns(permille));
            assert!(at(beyond).is_some());
        }
        assert!(latency.curve().iter().all(|point| point.0 <= 2500.0));
        let few = histogram([5000; 50]);
        let few = Latency::merged([few.as_str()]).unwrap().unwrap();
        assert!(few.curve().iter().all(|point| point.0 <= 50.0));
    }
}
