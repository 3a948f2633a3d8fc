//! Names of runs, and the time of day as it is printed: always UTC.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};
use wsbench_report::document::slug;

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

/// Characters of the host's and of the profile's name, at most.
const PART_MOST: usize = 32;

/// Of a run that begins now, as `2026-11-30T14-00-20Z-myhost-default`: it sorts by time,
/// and says where it was made and of what. One whose name `is_taken` gets four digits
/// behind it.
pub fn new_run(now: Utc, host: &str, profile: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let time = now.to_string().replace(':', "-");
    let part = |text: &str| {
        let slug = slug(text);
        let part: String = slug.chars().take(PART_MOST).collect();
        if part.is_empty() {
            "unnamed".to_owned()
        } else {
            part
        }
    };
    let name = format!("{time}-{}-{}", part(host), part(profile));
    let mut candidate = name.clone();
    while is_taken(&candidate) {
        candidate = format!("{name}-{:04x}", fastrand::u16(..));
    }
    candidate
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
    fn a_run_is_named_by_its_second_its_host_and_its_profile() {
        let start = Utc { unix_s: 0 };
        let free = |_: &str| false;
        let name = "1970-01-01T00-00-00Z-my-host.lan-default";
        assert_eq!(new_run(start, "my host.lan", "default", free), name);
        let odd = new_run(start, "../..", "a/b", free);
        assert_eq!(odd, "1970-01-01T00-00-00Z-unnamed-a-b");
        assert!(new_run(start, &"x".repeat(999), "p", free).len() < 80);
        let taken = |found: &str| found == name;
        let other = new_run(start, "my host.lan", "default", taken);
        let random = other.strip_prefix(&format!("{name}-")).unwrap();
        assert!(random.len() == 4 && u16::from_str_radix(random, 16).is_ok());
    }
}
