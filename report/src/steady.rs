//! Whether a phase ran at one speed: a server that still warms up, slows down or stalls has
//! no speed that one figure could tell.
//!
//! Judged are the successes of each interval, without those in which the loop fills and
//! empties. Three questions: did the speed change from the first third to the last, and is
//! that a trend (Mann, "Nonparametric tests against trend", Econometrica 13, 1945; Kendall,
//! "Rank correlation methods", 1955); did it stall; did it vary.

use crate::row::Row;
use crate::stats::median;
use crate::units;
use wsbench_schema::{Phase, Series, TrialRecord, metric};

/// Intervals that are needed to judge.
pub const INTERVALS_MIN: usize = 10;
/// From the first third to the last, in percent of the median: less is no drift.
pub const DRIFT_PERCENT: f64 = 10.0;
/// A trend that chance makes more often than this is none.
pub const TREND_P: f64 = 0.01;
/// An interval below this part of the median, in percent, is a stall.
pub const STALL_PERCENT: f64 = 50.0;
/// Standard deviation / mean of the intervals, in percent: more is no one speed.
pub const VARIATION_PERCENT: f64 = 20.0;

/// What became of the speed of a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Steadiness {
    /// One speed.
    Steady,
    /// It changed by so many percent of the median from the first third to the last.
    Drifted(f64),
    /// Its slowest interval had so many percent of the median.
    Stalled(f64),
    /// Its standard deviation was so many percent of its mean.
    Varied(f64),
}

/// Of a round's phase; `None` if it was not measured or too short to tell.
#[must_use]
pub fn of(trial: &TrialRecord, phase: Phase, mean_latency_ns: Option<f64>) -> Option<Steadiness> {
    let series = trial.series.get(&phase.metric(metric::SUCCEEDED_SERIES))?;
    judge(&inner(series, mean_latency_ns.unwrap_or(0.0)))
}

/// Successes of each whole interval, but for those in which the first answers are still on
/// their way, or the last.
#[expect(clippy::cast_precision_loss, reason = "rates are compared")]
fn inner(series: &Series, mean_latency_ns: f64) -> Vec<f64> {
    let Some(interval_ns) = series.offsets_ns.first().copied() else {
        return Vec::new();
    };
    let whole = |(offset, _): &(&u64, &u64)| offset.is_multiple_of(interval_ns.max(1));
    let totals = series.offsets_ns.iter().zip(&series.values);
    let totals: Vec<u64> = totals.filter(whole).map(|(_, total)| *total).collect();
    let before = std::iter::once(&0).chain(&totals);
    let each = totals.iter().zip(before);
    let each: Vec<f64> = each
        .map(|(now, before)| now.saturating_sub(*before) as f64)
        .collect();
    // Not negative, and small: a latency is at most an hour.
    let edge = 1 + (mean_latency_ns / interval_ns.max(1) as f64).ceil() as usize;
    let end = each.len().saturating_sub(edge);
    each.get(edge..end).map_or(Vec::new(), <[f64]>::to_vec)
}

#[expect(clippy::cast_precision_loss, reason = "rates are compared")]
fn judge(rates: &[f64]) -> Option<Steadiness> {
    if rates.len() < INTERVALS_MIN {
        return None;
    }
    let middle = median(rates.iter().copied()).filter(|middle| *middle > 0.0)?;
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    let third = rates.len() / 3;
    let (first, last) = (mean(&rates[..third]), mean(&rates[rates.len() - third..]));
    let drift = (last - first) * 100.0 / middle;
    if drift.abs() > DRIFT_PERCENT && trend_p(rates) < TREND_P {
        return Some(Steadiness::Drifted(drift));
    }
    let slowest = rates.iter().copied().reduce(f64::min)? * 100.0 / middle;
    if slowest < STALL_PERCENT {
        return Some(Steadiness::Stalled(slowest));
    }
    let all = mean(rates);
    let squares: f64 = rates.iter().map(|rate| (rate - all).powi(2)).sum();
    let variation = (squares / (rates.len() - 1) as f64).sqrt() * 100.0 / all;
    Some(match variation > VARIATION_PERCENT {
        true => Steadiness::Varied(variation),
        false => Steadiness::Steady,
    })
}

/// How often chance makes such a trend: the two-sided probability of Mann's test, by
/// Kendall's normal approximation with its correction for continuity.
#[expect(clippy::cast_precision_loss, reason = "numbers of intervals")]
fn trend_p(values: &[f64]) -> f64 {
    let pairs = values.iter().enumerate().flat_map(|(index, early)| {
        let late = &values[index + 1..];
        late.iter().map(move |late| late.total_cmp(early) as i64)
    });
    let balance: i64 = pairs.sum();
    let count = values.len() as f64;
    let deviation = (count * (count - 1.0) * (2.0 * count + 5.0) / 18.0).sqrt();
    let z = (balance.abs() - 1).max(0) as f64 / deviation;
    libm::erfc(z / std::f64::consts::SQRT_2)
}

/// What is said of the rounds of a row, if one of them was not steady.
#[must_use]
pub fn meaning(row: &Row<'_>) -> Option<String> {
    let judged = judged(row);
    let mut unsteady: Vec<Steadiness> = judged
        .iter()
        .copied()
        .filter(|of| *of != Steadiness::Steady)
        .collect();
    // The first that is said stands for all.
    unsteady.sort_by(|a, b| b.severity().total_cmp(&a.severity()));
    let worst = unsteady.first()?.said();
    Some(format!(
        "not steady: {worst} ({} of {})",
        unsteady.len(),
        units::counted(judged.len() as u64, "round")
    ))
}

/// Whether no round of a row was long enough to tell.
#[must_use]
pub fn is_too_short(row: &Row<'_>) -> bool {
    let has_series = |trial: &TrialRecord| {
        let name = row.phase.metric(metric::SUCCEEDED_SERIES);
        trial.series.contains_key(&name)
    };
    row.subject.completed.iter().any(has_series) && judged(row).is_empty()
}

fn judged(row: &Row<'_>) -> Vec<Steadiness> {
    let latency = row.latency(row.latency_name());
    let mean_ns = latency.map(|latency| latency.mean_ns);
    let trials = row.subject.completed.iter();
    trials
        .filter_map(|trial| of(trial, row.phase, mean_ns))
        .collect()
}

impl Steadiness {
    fn said(self) -> String {
        match self {
            Self::Steady => "one speed".to_owned(),
            Self::Drifted(percent) => {
                let how = if percent < 0.0 { "fell" } else { "rose" };
                let percent = percent.abs();
                format!("TPS {how} by {percent:.0} % from the first third of the phase to the last")
            }
            Self::Stalled(percent) => {
                format!("in its slowest interval TPS was {percent:.0} % of the median")
            }
            Self::Varied(percent) => {
                format!("the standard deviation of TPS was {percent:.0} % of its mean")
            }
        }
    }

    fn severity(self) -> f64 {
        match self {
            Self::Steady => 0.0,
            Self::Drifted(percent) => 200.0 + percent.abs(),
            Self::Stalled(percent) => 100.0 + (100.0 - percent),
            Self::Varied(percent) => percent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wsbench_schema::SplitMix64;

    /// 24 intervals at this speed each, with noise of so many percent either way.
    #[expect(clippy::cast_precision_loss, reason = "a test")]
    fn noisy(seed: u64, percent: u64, speed: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut random = SplitMix64::new(seed);
        let mut noise = || 1.0 + (random.below(2 * percent + 1) as f64 - percent as f64) / 100.0;
        (0..24).map(|index| speed(index) * noise()).collect()
    }

    #[test]
    fn noise_alone_is_steady() {
        let judged = (0..2000).map(|seed| judge(&noisy(seed, 15, |_| 1000.0)));
        let alarms = judged.filter(|of| *of != Some(Steadiness::Steady)).count();
        // 0 to 15 % either way is a standard deviation of 9 %.
        assert!(alarms <= 20, "{alarms} of 2000");
    }

    #[test]
    fn a_drift_a_warm_up_and_a_stall_are_told_by_their_size() {
        let percent = |found: Option<Steadiness>| match found {
            Some(Steadiness::Drifted(percent)) => percent.round(),
            other => panic!("{other:?}"),
        };
        // 3 % an interval: 48 % over 16 of them, of a median of 65.5 %.
        #[expect(clippy::cast_precision_loss, reason = "a test")]
        let falling = noisy(1, 5, |index| 1000.0 - 30.0 * index as f64);
        assert!(
            (-80.0..-60.0).contains(&percent(judge(&falling))),
            "{falling:?}"
        );
        let warming = noisy(2, 5, |index| if index < 8 { 500.0 } else { 1000.0 });
        assert!((40.0..60.0).contains(&percent(judge(&warming))));
        let stalling = noisy(3, 5, |index| if index % 6 == 3 { 100.0 } else { 1000.0 });
        assert!(matches!(judge(&stalling), Some(Steadiness::Stalled(percent)) if percent < 15.0));
        let jumping = noisy(4, 2, |index| if index % 2 == 0 { 700.0 } else { 1200.0 });
        assert!(matches!(judge(&jumping), Some(Steadiness::Varied(percent)) if percent > 20.0));
    }

    #[test]
    fn a_small_drift_is_none_and_what_is_short_is_not_judged() {
        #[expect(clippy::cast_precision_loss, reason = "a test")]
        let slow = noisy(5, 1, |index| 1000.0 - 3.0 * index as f64);
        assert_eq!(judge(&slow), Some(Steadiness::Steady));
        assert_eq!(judge(&slow[..INTERVALS_MIN - 1]), None);
        assert_eq!(judge(&[0.0; 20]), None);
    }

    #[test]
    fn intervals_in_which_the_loop_fills_or_empties_do_not_count() {
        let interval_ns = 250_000_000;
        let mut series = Series::default();
        let mut total = 0;
        for index in 0..16 {
            total += if index == 0 || index == 15 { 1 } else { 100 };
            series.offsets_ns.push((index + 1) * interval_ns);
            series.values.push(total);
        }
        // Of the end of the phase, within an interval.
        series.offsets_ns.push(16 * interval_ns + 7);
        series.values.push(total + 1);
        assert_eq!(inner(&series, 0.0), [100.0; 14]);
        assert_eq!(inner(&series, 1e6).len(), 12);
        assert_eq!(inner(&series, 300e6).len(), 10);
        assert!(inner(&series, 3.6e12).is_empty());
    }

    /// By hand: five values in order are 10 pairs, z = 9 / sqrt(5 x 4 x 15 / 18).
    #[test]
    fn a_trend_is_as_unlikely_as_the_tables_say() {
        let up = trend_p(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!((up - 0.0275).abs() < 0.0005, "{up}");
        let level = trend_p(&[1.0, 3.0, 2.0, 3.0, 1.0]);
        assert!(level > 0.9, "{level}");
    }
}
