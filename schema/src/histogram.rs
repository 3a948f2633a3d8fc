//! Histograms of latency, as they are kept in records: HdrHistogram V2
//! (three significant digits, nanoseconds), in base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use thiserror::Error;

/// The longest latency kept apart from longer ones: an hour.
pub const LATENCY_MAX_NS: u64 = 3_600_000_000_000;

/// A histogram that cannot be written or read.
#[derive(Debug, Error)]
pub enum HistogramError {
    /// The text is not base64.
    #[error("histogram is not base64: {0}")]
    Base64(#[from] base64::DecodeError),
    /// The bytes are not an HdrHistogram.
    #[error("histogram is not in HdrHistogram V2 form: {0}")]
    Form(String),
}

/// An empty histogram for latencies in nanoseconds, from 1 to [`LATENCY_MAX_NS`].
///
/// # Panics
/// Never: the bounds are constants that the library accepts.
#[must_use]
pub fn latency_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_MAX_NS, 3).expect("constant bounds are valid")
}

/// To text.
///
/// # Panics
/// Never: writing to memory does not fail.
#[must_use]
pub fn encode_histogram(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(histogram, &mut bytes)
        .expect("memory takes all bytes");
    STANDARD.encode(bytes)
}

/// From text.
///
/// # Errors
/// If the text is not what [`encode_histogram`] writes.
pub fn decode_histogram(text: &str) -> Result<Histogram<u64>, HistogramError> {
    let bytes = STANDARD.decode(text)?;
    Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| HistogramError::Form(format!("{error:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_reads_back_as_it_was() {
        let mut histogram = latency_histogram();
        for latency in [1, 999, 20_000, 1_500_000_000, LATENCY_MAX_NS] {
            histogram.record(latency).unwrap();
        }
        assert_eq!(
            decode_histogram(&encode_histogram(&histogram)).unwrap(),
            histogram
        );
    }

    #[test]
    fn other_text_is_an_error() {
        assert!(decode_histogram("%").is_err());
        assert!(decode_histogram("AAAA").is_err());
    }
}
