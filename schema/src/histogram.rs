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
    check_form(&bytes).map_err(|reason| HistogramError::Form(reason.into()))?;
    Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| HistogramError::Form(format!("{error:?}")))
}

/// Bytes in front of the counts: cookie, their length, and 32 of settings.
const HEADER_BYTES: usize = 40;
/// Bytes in a row that go on, at most: so no count reaches 2^41.
const GOING_ON_MAX: usize = 5;

/// What the library would believe: it takes memory for whatever length and range
/// the header claims, and adds up counts without looking whether they fit.
fn check_form(bytes: &[u8]) -> Result<(), &'static str> {
    let mut ours = Vec::with_capacity(HEADER_BYTES);
    V2Serializer::new()
        .serialize(&latency_histogram(), &mut ours)
        .map_err(|_| "there is no memory")?;
    let Some((header, counts)) = bytes.split_at_checked(HEADER_BYTES) else {
        return Err("it is too short");
    };
    if header[..4] != ours[..4] || header[8..] != ours[8..HEADER_BYTES] {
        return Err("it is not of latencies in nanoseconds with three digits");
    }
    let length = u32::try_from(counts.len()).map_err(|_| "it is too long")?;
    if header[4..8] != length.to_be_bytes() {
        return Err("it is longer or shorter than it says");
    }
    let goes_on = |byte: &u8| byte & 0x80 != 0;
    if counts
        .windows(GOING_ON_MAX + 1)
        .any(|window| window.iter().all(goes_on))
    {
        return Err("a count is beyond all that can be measured");
    }
    Ok(())
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

    /// A histogram with some bytes of its form changed.
    fn forged(at: usize, with: &[u8]) -> String {
        let mut bytes = STANDARD
            .decode(encode_histogram(&latency_histogram()))
            .unwrap();
        bytes.splice(at..at + with.len(), with.iter().copied());
        STANDARD.encode(bytes)
    }

    #[test]
    fn what_the_header_claims_takes_no_memory() {
        for (at, with) in [
            (4, &[0xFF; 4][..]),
            (12, &[0, 0, 0, 5]),
            (24, &[0x7F; 8]),
            (0, b"\x1C\x84\x93\x14"),
        ] {
            assert!(decode_histogram(&forged(at, &[])).is_ok());
            assert!(decode_histogram(&forged(at, with)).is_err(), "{at}");
        }
    }

    #[test]
    fn a_count_that_cannot_be_is_an_error() {
        let with_counts = |counts: &[u8]| {
            let mut bytes = STANDARD.decode(forged(0, &[])).unwrap();
            bytes.truncate(HEADER_BYTES);
            bytes[4..8].copy_from_slice(&(counts.len() as u32).to_be_bytes());
            bytes.extend(counts);
            decode_histogram(&STANDARD.encode(bytes))
        };
        // i64::MIN zeros, which the library negates.
        assert!(with_counts(&[0xFF; 9]).is_err());
        let most = with_counts(&[0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]).unwrap();
        assert_eq!(most.len(), (1 << 41) - 1);
        assert!(with_counts(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1]).is_err());
    }

    #[test]
    fn other_text_is_an_error() {
        assert!(decode_histogram("%").is_err());
        assert!(decode_histogram("AAAA").is_err());
    }
}
