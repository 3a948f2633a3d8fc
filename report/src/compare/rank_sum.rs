//! The rank sum test of Wilcoxon (1945) and of Mann and Whitney (1947), two-sided:
//! how probable is it that two samples of the same kind differ at least so much?
//!
//! The figure is W, the sum of the midranks of one sample within both together.
//! Its distribution, if the two are of the same kind, is that over all ways to
//! choose that sample, each as probable as any other. It is computed exactly, ties
//! included, and the probability is that of a W at least as far from its mean:
//! `P(|W - E W| >= |w - E W|)` (Lehmann, Nonparametrics, 1975, sections 1.2 and 1.4).
//! Beyond [`EXACT_MOST`] values it is the normal approximation with correction for
//! ties and for continuity. Written here since no crate does this: statrs 0.19.1
//! has no exact test with ties, and gives 1 where two samples of four that do not
//! overlap have 2/70.

use std::collections::BTreeMap;

/// Values of both samples together up to which the test is exact: 25 rounds each.
/// Up to there every count of choices is a whole number that `f64` holds.
pub const EXACT_MOST: usize = 50;

/// The test, which remembers distributions that it needs again.
#[derive(Debug, Default)]
pub struct RankSum {
    untied: BTreeMap<(usize, usize), Null>,
}

impl RankSum {
    /// The two-sided probability, 1 if a sample is empty. All values are finite.
    pub fn p(&mut self, a: &[f64], b: &[f64]) -> f64 {
        if a.is_empty() || b.is_empty() {
            return 1.0;
        }
        let (small, large) = if a.len() <= b.len() { (a, b) } else { (b, a) };
        let ranks = Ranks::new(small, large);
        let sum = ranks.doubled[..small.len()].iter().sum();
        if ranks.doubled.len() > EXACT_MOST {
            return ranks.approximate(small.len(), sum);
        }
        if ranks.ties.is_empty() {
            let sizes = (small.len(), large.len());
            let null = self.untied.entry(sizes);
            let null = null.or_insert_with(|| Null::new(small.len(), &ranks.doubled));
            return null.two_sided(sum);
        }
        Null::new(small.len(), &ranks.doubled).two_sided(sum)
    }
}

/// The least probability that samples of these sizes can have: they do not
/// overlap. Two of the choices are as far apart.
#[must_use]
pub fn least_p(a: usize, b: usize) -> f64 {
    if a == 0 || b == 0 {
        return 1.0;
    }
    // 1 / C(a + b, a), factor by factor, so that nothing overflows.
    let share = |index: usize| to_f64(index) / to_f64(index + b);
    (2.0 * (1..=a).map(share).product::<f64>()).min(1.0)
}

/// Midranks are halves of whole numbers: doubled, they are whole.
struct Ranks {
    /// Those of the first sample stand first.
    doubled: Vec<usize>,
    /// How many values share a rank, for each rank that is shared.
    ties: Vec<usize>,
}

impl Ranks {
    fn new(first: &[f64], second: &[f64]) -> Self {
        let values: Vec<f64> = first.iter().chain(second).copied().collect();
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|x, y| values[*x].total_cmp(&values[*y]));
        let mut doubled = vec![0; values.len()];
        let mut ties = Vec::new();
        let mut before = 0;
        for equal in order.chunk_by(|x, y| values[*x] == values[*y]) {
            // The mean of `before + 1` to `before + count`, twice.
            for index in equal {
                doubled[*index] = 2 * before + equal.len() + 1;
            }
            if equal.len() > 1 {
                ties.push(equal.len());
            }
            before += equal.len();
        }
        Self { doubled, ties }
    }

    /// Mann and Whitney's normal approximation, with the variance for ties.
    fn approximate(&self, size: usize, doubled_sum: usize) -> f64 {
        let all = to_f64(self.doubled.len());
        let (a, b) = (to_f64(size), all - to_f64(size));
        let tied = self.ties.iter().map(|count| to_f64(*count));
        let tied: f64 = tied.map(|count| count.powi(3) - count).sum();
        let variance = a * b / 12.0 * (all + 1.0 - tied / (all * (all - 1.0)));
        let mean = a * (all + 1.0) / 2.0;
        let distance = (to_f64(doubled_sum) / 2.0 - mean).abs() - 0.5;
        if variance <= 0.0 || distance <= 0.0 {
            return 1.0;
        }
        libm::erfc(distance / (2.0 * variance).sqrt())
    }
}

/// How many choices of `size` ranks have each sum.
#[derive(Debug)]
struct Null {
    size: usize,
    /// Of all ranks, doubled as they are.
    total: usize,
    all: usize,
    counts: Vec<f64>,
}

impl Null {
    fn new(size: usize, doubled: &[usize]) -> Self {
        let total: usize = doubled.iter().sum();
        // `counts[k][s]`: choices of k of the ranks so far with the sum s.
        let mut counts = vec![vec![0.0; total + 1]; size + 1];
        counts[0][0] = 1.0;
        for (index, rank) in doubled.iter().enumerate() {
            for k in (1..=size.min(index + 1)).rev() {
                let (without, with) = counts.split_at_mut(k);
                for sum in *rank..=total {
                    with[0][sum] += without[k - 1][sum - rank];
                }
            }
        }
        Self {
            size,
            total,
            all: doubled.len(),
            counts: counts.pop().unwrap_or_default(),
        }
    }

    fn two_sided(&self, sum: usize) -> f64 {
        // Times the number of all values, the mean is a whole number too.
        let mean = self.size * self.total;
        let distance = (sum * self.all).abs_diff(mean);
        let sums = self.counts.iter().enumerate();
        let as_far = sums.filter(|(other, _)| (other * self.all).abs_diff(mean) >= distance);
        let as_far: f64 = as_far.map(|(_, count)| count).sum();
        as_far / self.counts.iter().sum::<f64>()
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "numbers of rounds and their sums"
)]
fn to_f64(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use wsbench_schema::SplitMix64;

    fn p(a: &[f64], b: &[f64]) -> f64 {
        RankSum::default().p(a, b)
    }

    #[track_caller]
    fn expect_p(a: &[f64], b: &[f64], expected: f64) {
        for found in [p(a, b), p(b, a)] {
            assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
        }
    }

    /// Two samples without ties for which Mann and Whitney's U is this.
    fn with_u(a: usize, b: usize, u: usize) -> (Vec<f64>, Vec<f64>) {
        let second: Vec<f64> = (0..b).map(to_f64).collect();
        // Each of the first stands above `below` of the second.
        let mut left = u;
        let mut first = Vec::new();
        for index in 0..a {
            let below = left.min(b);
            left -= below;
            first.push(to_f64(below) - 0.9 + to_f64(index) / 1000.0);
        }
        assert_eq!(left, 0);
        (first, second)
    }

    /// The test written down as it is defined, over all choices.
    fn by_enumeration(a: &[f64], b: &[f64]) -> f64 {
        let values: Vec<f64> = a.iter().chain(b).copied().collect();
        let rank = |value: f64| -> f64 {
            let less = values.iter().filter(|other| **other < value).count();
            let equal = values.iter().filter(|other| **other == value).count();
            to_f64(less) + (to_f64(equal) + 1.0) / 2.0
        };
        let ranks: Vec<f64> = values.iter().map(|value| rank(*value)).collect();
        let mean = to_f64(a.len()) * (to_f64(values.len()) + 1.0) / 2.0;
        let far = |sum: f64| (sum - mean).abs();
        let seen = far(ranks[..a.len()].iter().sum());
        let (mut all, mut as_far) = (0.0, 0.0);
        for choice in 0_u32..1 << values.len() {
            if choice.count_ones() as usize == a.len() {
                let chosen = (0..values.len()).filter(|index| choice >> index & 1 == 1);
                let sum = chosen.map(|index| ranks[index]).sum();
                all += 1.0;
                as_far += f64::from(u8::from(far(sum) >= seen - 1e-9));
            }
        }
        as_far / all
    }

    #[test]
    fn samples_that_do_not_overlap_have_the_least_probability() {
        for (a, b, choices) in [
            (1, 1, 2.0),
            (3, 3, 20.0),
            (4, 4, 70.0),
            (3, 5, 56.0),
            (5, 5, 252.0),
            (10, 10, 184_756.0),
            (25, 25, 126_410_606_437_752.0),
        ] {
            let (first, second) = with_u(a, b, 0);
            expect_p(&first, &second, 2.0 / choices);
            assert!((least_p(a, b) * choices - 2.0).abs() < 1e-9, "{a} {b}");
        }
        assert_eq!((least_p(0, 5), least_p(5, 0)), (1.0, 1.0));
    }

    /// Each sizes and the largest U that is significant at the level.
    #[track_caller]
    fn expect_critical(level: f64, table: &[(usize, usize, usize)]) {
        for &(a, b, critical) in table {
            let at = |u| {
                let (first, second) = with_u(a, b, u);
                p(&first, &second)
            };
            let (significant, beyond) = (at(critical), at(critical + 1));
            assert!(
                significant <= level && beyond > level,
                "{a} {b} {critical}: {significant} {beyond}"
            );
        }
    }

    #[test]
    fn critical_values_are_those_of_the_published_tables() {
        // Of two-sided tests, as in any textbook (Siegel, Nonparametric
        // Statistics, 1956, table K).
        let sizes_3_to_5 = [
            (3, 5, 0),
            (3, 8, 2),
            (3, 10, 3),
            (4, 4, 0),
            (4, 7, 3),
            (4, 10, 5),
            (5, 5, 2),
            (5, 8, 6),
            (5, 10, 8),
        ];
        let sizes_from_6 = [
            (6, 6, 5),
            (6, 10, 11),
            (7, 7, 8),
            (7, 10, 14),
            (8, 8, 13),
            (8, 10, 17),
            (9, 9, 17),
            (9, 10, 20),
            (10, 10, 23),
            (20, 20, 127),
        ];
        expect_critical(0.05, &sizes_3_to_5);
        expect_critical(0.05, &sizes_from_6);
        let at_one_percent = [
            (5, 5, 0),
            (6, 6, 2),
            (7, 7, 4),
            (8, 8, 7),
            (9, 9, 11),
            (10, 10, 16),
            (20, 20, 105),
        ];
        expect_critical(0.01, &at_one_percent);
        // The same tables have none for these: no result of theirs is significant.
        for (a, b) in [(3, 3), (3, 4), (2, 7)] {
            assert!(least_p(a, b) > 0.05, "{a} {b}");
        }
    }

    #[test]
    fn it_is_what_counting_all_choices_gives_with_and_without_ties() {
        let mut random = SplitMix64::new(1);
        for values in [2, 3, 5, 1000] {
            for (a, b) in [
                (1, 1),
                (1, 4),
                (3, 3),
                (2, 6),
                (4, 4),
                (5, 3),
                (5, 5),
                (6, 4),
            ] {
                let mut sample = |count| -> Vec<f64> {
                    let mut value = || to_f64(random.below(values) as usize);
                    (0..count).map(|_| value()).collect()
                };
                let (first, second) = (sample(a), sample(b));
                expect_p(&first, &second, by_enumeration(&first, &second));
            }
        }
    }

    #[test]
    fn a_published_example_with_ties() {
        // NAG Library, example of G08AKF: lower tail 0.0020, exact.
        let first = [13, 6, 12, 7, 12, 7, 10, 7, 10, 7, 16, 7, 10, 8, 9, 8].map(f64::from);
        let second = [
            17, 6, 10, 8, 15, 8, 15, 10, 15, 10, 14, 10, 14, 11, 14, 11, 13, 12, 13, 12, 13, 12, 12,
        ]
        .map(f64::from);
        let found = p(&first, &second);
        assert!((0.0038..0.0042).contains(&found), "{found}");
    }

    #[test]
    fn equal_values_differ_in_nothing() {
        expect_p(&[7.0; 5], &[7.0; 5], 1.0);
        expect_p(&[7.0; 30], &[7.0; 30], 1.0);
        expect_p(&[], &[1.0], 1.0);
    }

    #[test]
    fn the_approximation_takes_over_smoothly() {
        for u in [50, 150, 210, 250, 300] {
            let (first, second) = with_u(25, 25, u);
            let exact = p(&first, &second);
            let ranks = Ranks::new(&first, &second);
            let sum = ranks.doubled[..25].iter().sum();
            let approximate = ranks.approximate(25, sum);
            // The tails of W are shorter than the normal's.
            assert!((exact - approximate).abs() < 0.003, "{exact} {approximate}");
        }
        // And it is used: 26 against 26, some of them tied in pairs.
        let values: Vec<f64> = (0..26).map(to_f64).collect();
        let shifted: Vec<f64> = values.iter().map(|value| value + 8.0).collect();
        let found = p(&values, &shifted);
        assert!((0.0001..0.005).contains(&found), "{found}");
    }

    #[test]
    fn relabelling_equals_alarms_at_most_as_often_as_the_level_says() {
        // Over all choices of five of ten values, exactly.
        let alarms = (0_u32..1 << 10).filter(|choice| choice.count_ones() == 5);
        let values = |choice: u32, chosen: bool| -> Vec<f64> {
            let bits = 0..10_u32;
            let of = bits.filter(|bit| (choice >> bit & 1 == 1) == chosen);
            of.map(f64::from).collect()
        };
        let alarms =
            alarms.filter(|choice| p(&values(*choice, true), &values(*choice, false)) <= 0.05);
        assert_eq!(alarms.count(), 8); // of 252: 3.2 %
    }
}
