//! How numbers look: the only place where base units become `39.24us`,
//! `1.91G` or `293.65%`. It knows nothing of records or tables.
//!
//! Never scientific notation, never `NaN` or `inf`: what is not a number is
//! shown as [`MISSING`].

/// What stands where nothing was measured. Never a zero.
pub const MISSING: &str = "-";

/// Of things that are far from filling a float.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "numbers of things")]
pub fn count(things: usize) -> f64 {
    things as f64
}

/// A number of things in words: `1 round`, `2 rounds`, `2 processes`.
#[must_use]
pub fn counted(count: u64, what: &str) -> String {
    match (count, what.ends_with('s')) {
        (1, _) => format!("1 {what}"),
        (_, true) => format!("{count} {what}es"),
        (_, false) => format!("{count} {what}s"),
    }
}

/// What a number counts, which decides how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things: no decimals.
    Count,
    /// Things a second: no decimals from 100 on, two below.
    PerSecond,
    /// A quotient without a unit: two decimals.
    Ratio,
    /// Nanoseconds, written as `39.24us`, `19.86ms` or `49.67s`.
    Duration,
    /// Nanoseconds, written as plain microseconds for a column that says so.
    Microseconds,
    /// Nanoseconds, written as plain milliseconds for a column that says so.
    Milliseconds,
    /// Nanoseconds, written as plain seconds for a column that says so.
    Seconds,
    /// Bytes of memory, written as `448.12M` or `1.91G` (steps of 1024).
    Bytes,
    /// Bytes that were transferred, written as `2.0 GB` (steps of 1000).
    Data,
    /// Bytes a second, written as `70.4 MB/s` (steps of 1000).
    DataPerSecond,
    /// Hundredths, written as `293.65%`.
    Percent,
}

impl Unit {
    /// The value as a reader sees it.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        if !value.is_finite() {
            return MISSING.to_owned();
        }
        match self {
            Unit::Count => format!("{value:.0}"),
            Unit::PerSecond if value < 99.995 => format!("{value:.2}"),
            Unit::PerSecond => format!("{value:.0}"),
            Unit::Ratio => format!("{value:.2}"),
            Unit::Duration => scaled(value, 1000.0, &["ns", "us", "ms", "s"]),
            Unit::Microseconds => format!("{:.2}", value / 1000.0),
            Unit::Milliseconds => format!("{:.2}", value / 1e6),
            Unit::Seconds => format!("{:.3}", value / 1e9),
            Unit::Bytes => scaled(value, 1024.0, &["B", "K", "M", "G", "T"]),
            Unit::Data => rounded(value, 1000.0, &[" B", " kB", " MB", " GB", " TB"], 1),
            // A tenth of a gigabyte is too coarse to compare by.
            Unit::DataPerSecond => {
                let suffixes = [" B/s", " kB/s", " MB/s", " GB/s", " TB/s"];
                match value < 999.95e6 {
                    true => rounded(value, 1000.0, &suffixes, 1),
                    false => rounded(value.max(1e9), 1000.0, &suffixes, 2),
                }
            }
            Unit::Percent => format!("{value:.2}%"),
        }
    }

    /// What a figure is in before it is shown.
    #[must_use]
    pub fn base(self) -> &'static str {
        match self {
            Unit::Count | Unit::Ratio => "",
            Unit::PerSecond => "a second",
            Unit::Duration | Unit::Microseconds | Unit::Milliseconds | Unit::Seconds => "ns",
            Unit::Bytes | Unit::Data => "bytes",
            Unit::DataPerSecond => "bytes a second",
            Unit::Percent => "%",
        }
    }

    /// What a figure is divided by in a spreadsheet, where all of a column have one unit,
    /// and what it is then called.
    #[must_use]
    pub fn sheet(self) -> (f64, &'static str) {
        match self {
            Unit::Duration | Unit::Microseconds => (1e3, "us"),
            Unit::Milliseconds => (1e6, "ms"),
            Unit::Seconds => (1e9, "s"),
            unit => (1.0, unit.base()),
        }
    }

    /// Of an axis whose largest figure is this one: what its figures are divided by,
    /// and what they are then called.
    #[must_use]
    pub fn scale(self, most: f64) -> (f64, &'static str) {
        const DURATIONS: [(f64, &str); 4] = [(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")];
        const BYTES: [(f64, &str); 5] = [
            (1_099_511_627_776.0, "TiB"),
            (1_073_741_824.0, "GiB"),
            (1_048_576.0, "MiB"),
            (1024.0, "KiB"),
            (1.0, "B"),
        ];
        const DATA: [(f64, &str); 4] = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")];
        const RATES: [(f64, &str); 4] = [(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")];
        let largest = |steps: &[(f64, &'static str)]| {
            let fits = steps.iter().find(|(divisor, _)| most >= *divisor);
            fits.or(steps.last()).copied().unwrap_or((1.0, ""))
        };
        match self {
            Unit::Count | Unit::Ratio => (1.0, ""),
            Unit::PerSecond => (1.0, "a second"),
            Unit::Duration => largest(&DURATIONS),
            Unit::Microseconds => (1000.0, "us"),
            Unit::Milliseconds => (1e6, "ms"),
            Unit::Seconds => (1e9, "s"),
            Unit::Bytes => largest(&BYTES),
            Unit::Data => largest(&DATA),
            Unit::DataPerSecond => largest(&RATES),
            Unit::Percent => (1.0, "%"),
        }
    }
}

/// Two decimals in the largest suffix that leaves at least 1 before the point.
fn scaled(value: f64, step: f64, suffixes: &[&str]) -> String {
    rounded(value, step, suffixes, 2)
}

/// So many decimals in the largest suffix that leaves at least 1 before the point.
/// The step is taken on the rounded figure, so that 999.996us is 1.00ms.
fn rounded(value: f64, step: f64, suffixes: &[&str], decimals: usize) -> String {
    let tens = if decimals == 1 { 10.0 } else { 100.0 };
    let mut value = value;
    let mut suffixes = suffixes.iter();
    let mut suffix = suffixes.next().copied().unwrap_or_default();
    for larger in suffixes {
        if (value.abs() * tens).round() < step * tens {
            break;
        }
        value /= step;
        suffix = larger;
    }
    format!("{value:.decimals$}{suffix}")
}

/// A part of a whole in percent. Rounding never turns one failure among
/// millions into `0.00%`, nor the rest into `100.00%`.
#[must_use]
pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return MISSING.to_owned();
    }
    #[expect(clippy::cast_precision_loss, reason = "two decimals are shown")]
    let percent = part as f64 * 100.0 / whole as f64;
    Unit::Percent.show(match part {
        0 => 0.0,
        _ if part < whole => percent.clamp(0.01, 99.99),
        _ => percent,
    })
}

/// Seconds since 1970 as a date, `Mon, 30 Nov 2026 14:00:27 GMT`.
#[must_use]
pub fn date(unix_s: u64) -> String {
    use std::time::{Duration, SystemTime};
    /// The last second of the year 9999, beyond which dates have no such form.
    const LAST_S: u64 = 253_402_300_799;
    match SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(unix_s)) {
        Some(time) if unix_s <= LAST_S => httpdate::fmt_http_date(time),
        _ => format!("second {unix_s} since 1970"),
    }
}

/// CPU numbers in short: `0-3,8`.
#[must_use]
pub fn ranges(numbers: &[u32]) -> String {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let runs = sorted.chunk_by(|a, b| a + 1 == *b);
    let texts: Vec<String> = runs
        .map(|run| match run {
            [first, .., last] => format!("{first}-{last}"),
            _ => run.iter().map(u32::to_string).collect(),
        })
        .collect();
    if texts.is_empty() {
        return "none".to_owned();
    }
    texts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_look_as_in_the_original() {
        for (ns, text) in [
            (0.0, "0.00ns"),
            (20.0, "20.00ns"),
            (39_240.0, "39.24us"),
            (19_860_000.0, "19.86ms"),
            (49_670_000_000.0, "49.67s"),
            (3_600_000_000_000.0, "3600.00s"),
        ] {
            assert_eq!(Unit::Duration.show(ns), text);
        }
    }

    #[test]
    fn memory_looks_as_in_the_original() {
        for (bytes, text) in [
            (0.0, "0.00B"),
            (1023.0, "1023.00B"),
            (1024.0, "1.00K"),
            (469_887_877.0, "448.12M"),
            (2_050_846_883.0, "1.91G"),
            (1_099_511_627_776.0, "1.00T"),
            (-12_288.0, "-12.00K"),
        ] {
            assert_eq!(Unit::Bytes.show(bytes), text);
        }
    }

    #[test]
    fn counts_rates_ratios_and_percents_are_plain() {
        assert_eq!(Unit::Count.show(5_000_000.0), "5000000");
        assert_eq!(Unit::PerSecond.show(100_672.4), "100672");
        assert_eq!(Unit::PerSecond.show(3.456), "3.46");
        assert_eq!(Unit::PerSecond.show(99.996), "100");
        assert_eq!(Unit::Ratio.show(342.834), "342.83");
        assert_eq!(Unit::Percent.show(293.65), "293.65%");
        assert_eq!(Unit::Microseconds.show(5_309.0), "5.31");
    }

    #[test]
    fn what_was_transferred_looks_as_in_the_original() {
        for (bytes, data, rate) in [
            (0.0, "0.0 B", "0.0 B/s"),
            (70.44e6, "70.4 MB", "70.4 MB/s"),
            (999.96e6, "1.0 GB", "1.00 GB/s"),
            (2e9, "2.0 GB", "2.00 GB/s"),
            (2.345e12, "2.3 TB", "2.35 TB/s"),
        ] {
            assert_eq!(Unit::Data.show(bytes), data);
            assert_eq!(Unit::DataPerSecond.show(bytes), rate);
        }
    }

    #[test]
    fn columns_that_name_their_unit_hold_plain_numbers() {
        assert_eq!(Unit::Milliseconds.show(1.58e9), "1580.00");
        assert_eq!(Unit::Seconds.show(123_456_789.0), "0.123");
    }

    #[test]
    fn an_axis_is_in_the_unit_of_its_largest_figure() {
        assert_eq!(Unit::Duration.scale(2e6), (1e6, "ms"));
        assert_eq!(Unit::Bytes.scale(1536.0), (1024.0, "KiB"));
        assert_eq!(Unit::Bytes.scale(0.0), (1.0, "B"));
        assert_eq!(Unit::Count.scale(1e9), (1.0, ""));
    }

    #[test]
    fn rounding_up_takes_the_next_unit() {
        assert_eq!(Unit::Duration.show(999.994), "999.99ns");
        assert_eq!(Unit::Duration.show(999.996), "1.00us");
        assert_eq!(Unit::Duration.show(999_996.0), "1.00ms");
        assert_eq!(Unit::Bytes.show(1023.999 * 1024.0), "1.00M");
    }

    /// Over 19 orders of magnitude: plain digits, and reading the text back
    /// gives the value to the digits shown.
    #[test]
    fn every_size_reads_back_and_needs_no_exponent() {
        let factors = [
            ("ns", 1.0),
            ("us", 1e3),
            ("ms", 1e6),
            ("s", 1e9),
            ("B", 1.0),
            ("K", 1024.0),
            ("M", 1024f64.powi(2)),
            ("G", 1024f64.powi(3)),
            ("T", 1024f64.powi(4)),
        ];
        let mut value = 1.0;
        while value < 1e19 {
            for unit in [Unit::Duration, Unit::Bytes] {
                let text = unit.show(value);
                let digits = text.trim_end_matches(char::is_alphabetic);
                let suffix = &text[digits.len()..];
                let factor = factors.iter().find(|(name, _)| *name == suffix).unwrap().1;
                let back = digits.parse::<f64>().unwrap() * factor;
                assert!((back - value).abs() <= 0.00501 * factor, "{value} {text}");
                assert!(digits.bytes().all(|b| b.is_ascii_digit() || b == b'.'));
            }
            value *= 1.37;
        }
    }

    #[test]
    fn what_is_not_a_number_is_missing() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for unit in [Unit::Count, Unit::Duration, Unit::Bytes, Unit::Percent] {
                assert_eq!(unit.show(value), MISSING);
            }
        }
    }

    #[test]
    fn one_failure_among_millions_is_not_nothing() {
        assert_eq!(share(5_000_000, 5_000_000), "100.00%");
        assert_eq!(share(4_999_999, 5_000_000), "99.99%");
        assert_eq!(share(1, 5_000_000), "0.01%");
        assert_eq!(share(0, 5_000_000), "0.00%");
        assert_eq!(share(1, 8), "12.50%");
        assert_eq!(share(0, 0), "-");
    }

    #[test]
    fn dates_are_utc_and_bounded() {
        assert_eq!(date(1_796_047_227), "Mon, 30 Nov 2026 14:00:27 GMT");
        assert!(date(u64::MAX).starts_with("second "));
    }

    #[test]
    fn cpu_numbers_are_gathered_into_ranges() {
        assert_eq!(ranges(&[3, 0, 1, 2, 8]), "0-3,8");
        assert_eq!(ranges(&[5]), "5");
        assert_eq!(ranges(&[]), "none");
        assert_eq!(ranges(&[u32::MAX, 0]), "0,4294967295");
    }
}
