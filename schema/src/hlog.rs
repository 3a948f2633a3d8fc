//! Interval logs in the form V2 that HdrHistogram's own tools read: a line an interval,
//! each with its histogram, deflated, in base64.

use crate::{HistogramError, Intervals, Phase, metric};
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;
use std::time::{Duration, SystemTime};

/// The ending of such a file.
pub const EXTENSION: &str = "hlog";
/// The column of the largest value is in milliseconds, as those tools expect it.
const NS_PER_MS: f64 = 1e6;

/// What the log of a latency is called, behind the name of its record: `echo`,
/// `rate-intended`, `rate-actual`. `None` of latencies that are in no table.
#[must_use]
pub fn name(phase: Phase, latency: &str) -> Option<&'static str> {
    match (phase, latency) {
        (Phase::Echo, metric::ECHO_LATENCY) => Some("echo"),
        (Phase::Rate, metric::INTENDED_LATENCY) => Some("rate-intended"),
        (Phase::Rate, metric::ACTUAL_LATENCY) => Some("rate-actual"),
        _ => None,
    }
}

/// The text of a log. `began` is when the phase did, `elapsed` how long it took, and
/// `about` says what it is of, in one line.
///
/// # Errors
/// If a histogram cannot be read.
pub fn text(
    intervals: &Intervals,
    began: SystemTime,
    elapsed: Duration,
    about: &str,
) -> Result<Vec<u8>, HistogramError> {
    let form = |error: &dyn std::fmt::Debug| HistogramError::Form(format!("{error:?}"));
    let mut text = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment(&about.replace(['\r', '\n'], " "))
        .with_start_time(began)
        .with_base_time(began)
        .with_max_value_divisor(NS_PER_MS)
        .begin_log_with(&mut text, &mut serializer)
        .map_err(|error| form(&error))?;
    let interval = Duration::from_nanos(intervals.interval_ns);
    let mut start = Duration::ZERO;
    for histogram in intervals.decoded()? {
        // The last one ends with the phase.
        let length = interval.min(elapsed.saturating_sub(start));
        log.write_histogram(&histogram, start, length, None)
            .map_err(|error| form(&error))?;
        start = start.saturating_add(interval);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{encode_histogram, latency_histogram};
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use std::time::UNIX_EPOCH;

    #[test]
    fn what_was_measured_is_read_back_interval_by_interval() {
        let latencies: [&[u64]; 3] = [&[1_000_000, 2_000_000], &[], &[40_000_000]];
        let parts = latencies.map(|latencies| {
            let mut part = latency_histogram();
            for latency in latencies {
                part.record(*latency).unwrap();
            }
            part
        });
        let intervals = Intervals {
            interval_ns: 1_000_000_000,
            histograms: parts.iter().map(encode_histogram).collect(),
        };
        let began = UNIX_EPOCH + Duration::from_secs(1_796_047_227);
        let elapsed = Duration::from_millis(2500);
        let text = text(&intervals, began, elapsed, "axum\nround 1").unwrap();
        let shown = String::from_utf8(text.clone()).unwrap();
        assert!(shown.starts_with("#axum round 1\n"), "{shown}");
        let mut found = Vec::new();
        for entry in IntervalLogIterator::new(&text) {
            let entry = entry.unwrap();
            if let LogEntry::Interval(interval) = entry {
                let bytes = base64::Engine::decode(
                    &base64::engine::general_purpose::STANDARD,
                    interval.encoded_histogram(),
                );
                let part: Histogram<u64> = Deserializer::new()
                    .deserialize(&mut bytes.unwrap().as_slice())
                    .unwrap();
                found.push((interval.start_timestamp(), interval.duration(), part));
            }
        }
        let ms = Duration::from_millis;
        let times: Vec<_> = found.iter().map(|(at, long, _)| (*at, *long)).collect();
        assert_eq!(
            times,
            [(ms(0), ms(1000)), (ms(1000), ms(1000)), (ms(2000), ms(500))]
        );
        for ((_, _, found), expected) in found.iter().zip(&parts) {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_damaged_histogram_is_an_error() {
        let intervals = Intervals {
            interval_ns: 1,
            histograms: vec!["%".into()],
        };
        assert!(text(&intervals, UNIX_EPOCH, Duration::ZERO, "x").is_err());
    }
}
