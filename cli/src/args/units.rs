//! Durations and booleans as Go writes them, and lists.

use std::time::Duration;

/// Units of a duration and their nanoseconds. `µ` is written in two ways.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("μs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
];

/// `5s`, `100ms`, `1m30s`, `1.5h`; `0` needs no unit.
///
/// # Errors
/// One line that shows how to write it.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration (write 5s, 100ms or 1m30s)");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut total_ns = 0.0;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, behind) = rest.split_at(digits);
        let letters = behind
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(letters);
        if unit.is_empty() {
            return Err(format!("`{text}` has no unit (write {text}s or {text}ms)"));
        }
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let known = UNITS.iter().find(|(name, _)| *name == unit);
        let (_, ns) = known.ok_or_else(wrong)?;
        total_ns += number * ns;
        rest = behind;
    }
    // A century: beyond it nothing is meant, and conversions could overflow.
    if text.is_empty() || total_ns > 3.2e18 {
        return Err(wrong());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Ok(Duration::from_nanos(total_ns.round() as u64))
}

/// A duration that is kept in milliseconds, none of it cut off.
///
/// # Errors
/// One line that shows how to write it.
pub fn whole_millis(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    match duration.subsec_nanos() % 1_000_000 {
        0 => Ok(duration),
        _ => Err(format!(
            "`{text}` has parts of a millisecond (write whole milliseconds, as in 1ms)"
        )),
    }
}

/// What Go accepts as a boolean.
///
/// # Errors
/// One line that shows how to write it.
pub fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("`{text}` is neither true nor false")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, ns) in [
            ("5s", 5_000_000_000),
            ("100ms", 100_000_000),
            ("1m30s", 90_000_000_000),
            ("1.5s", 1_500_000_000),
            (".5s", 500_000_000),
            ("2h", 7_200_000_000_000),
            ("3us", 3000),
            ("3µs", 3000),
            ("7ns", 7),
            ("0", 0),
            ("0s", 0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_nanos(ns)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_told_how_to_write_one() {
        for text in [
            "",
            "s",
            "5 s",
            "5x",
            "-5s",
            "1..2s",
            "5S",
            "9999999999h",
            "fives",
        ] {
            let error = duration(text).unwrap_err();
            assert!(error.contains("is not a duration"), "{text}: {error}");
        }
        assert_eq!(
            duration("5").unwrap_err(),
            "`5` has no unit (write 5s or 5ms)"
        );
        assert_eq!(
            duration("1m30").unwrap_err(),
            "`1m30` has no unit (write 1m30s or 1m30ms)"
        );
    }

    #[test]
    fn where_milliseconds_are_kept_parts_of_them_are_refused() {
        for text in ["500us", "1.5ms", "1s1ns", "999999ns"] {
            assert_eq!(
                whole_millis(text).unwrap_err(),
                format!(
                    "`{text}` has parts of a millisecond (write whole milliseconds, as in 1ms)"
                )
            );
        }
        for (text, ms) in [("1500us", None), ("2000us", Some(2)), ("1.5s", Some(1500))] {
            let expected = ms.map(Duration::from_millis);
            assert_eq!(whole_millis(text).ok(), expected, "{text}");
        }
        assert_eq!(whole_millis("0"), Ok(Duration::ZERO));
        assert!(whole_millis("5").unwrap_err().contains("has no unit"));
    }

    #[test]
    fn booleans_are_read_as_go_reads_them() {
        assert_eq!(
            (boolean("true"), boolean("T"), boolean("1")),
            (Ok(true), Ok(true), Ok(true))
        );
        assert_eq!(
            (boolean("false"), boolean("F"), boolean("0")),
            (Ok(false), Ok(false), Ok(false))
        );
        assert_eq!(boolean("no").unwrap_err(), "`no` is neither true nor false");
    }
}
