//! Names of runs, and the time of day as it is printed: always UTC.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// A second, printed as `2026-11-30T14:00:20Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Utc {
    /// Since 1970.
    pub unix_s: u64,
}

impl Utc {
    /// By the system's clock; 1970 if that is set to before it.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            unix_s: since.map_or(0, |since| since.as_secs()),
        }
    }

    /// Year, month, day, by Howard Hinnant's `civil_from_days`.
    fn date(self) -> (u64, u64, u64) {
        let days = self.unix_s / 86_400 + 719_468;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        // Years begin in March here, so that the leap day is the last one.
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = (month_from_march + 2) % 12 + 1;
        let year = year_of_era + era * 400 + u64::from(month <= 2);
        (year, month, day)
    }
}

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.date();
        let second = self.unix_s % 86_400;
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
        )
    }
}

/// Of a run that begins now, as `2026-11-30T14-00-20Z-3f9c`: sorts by time, and
/// two in one second differ.
pub fn new_run(now: Utc) -> String {
    let time = now.to_string().replace(':', "-");
    format!("{time}-{:04x}", fastrand::u16(..))
}

/// A seed that the user did not choose: short enough to be typed again.
pub fn new_seed() -> u64 {
    u64::from(fastrand::u32(..))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_dates() {
        for (unix_s, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_796_047_220, "2026-11-30T14:00:20Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(Utc { unix_s }.to_string(), text);
        }
    }

    #[test]
    fn a_run_is_named_by_its_second_and_four_digits() {
        let id = new_run(Utc { unix_s: 0 });
        let (time, random) = id.rsplit_once('-').unwrap();
        assert_eq!(time, "1970-01-01T00-00-00Z");
        assert_eq!(random.len(), 4);
        assert!(u16::from_str_radix(random, 16).is_ok());
    }
}
