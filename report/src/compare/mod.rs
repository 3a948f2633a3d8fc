//! Whether figures of several rounds differ, and by how much. Numbers in,
//! verdicts out: it knows no records; [`crate::differences`] asks it.
//!
//! A verdict is one of three, and never a guess: a difference is shown, the test
//! could have shown one and did not, or there are too few rounds to show any.
//! Rounds are compared as two independent samples, not in pairs (see METHODOLOGY.md).

pub mod adjust;
pub mod rank_sum;
pub mod ratio;

use rank_sum::{RankSum, least_p};

/// At most this share of the differences that are shown is false.
pub const LEVEL: f64 = 0.05;

/// Two samples, a value a round. Values are finite.
#[derive(Clone, Debug)]
pub struct Question {
    /// Of whom something is said.
    pub of: Vec<f64>,
    /// Compared with whom.
    pub to: Vec<f64>,
}

/// What the rounds say about two samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Two-sided probability that samples of the same kind differ at least so much.
    pub p: f64,
    /// The same, adjusted for all questions that were asked together.
    pub adjusted_p: f64,
    /// Median / median.
    pub ratio: Option<f64>,
    /// What may be said.
    pub verdict: Verdict,
}

/// What may be said about two samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// However much the values differed, one difference alone could not be shown.
    TooFewRounds {
        /// Of each, for as many comparisons.
        needed: usize,
    },
    /// One could have been shown, and was not. That does not prove equality.
    NoDifference,
    /// At the level of [`LEVEL`].
    Different(Direction),
}

impl Verdict {
    /// The same of the sample that was compared with.
    #[must_use]
    pub fn turned(self) -> Self {
        match self {
            Self::Different(Direction::Less) => Self::Different(Direction::More),
            Self::Different(Direction::More) => Self::Different(Direction::Less),
            other => other,
        }
    }

    /// Whether the sample is the better one; `None` if no difference is shown.
    #[must_use]
    pub fn is_better(self, less_is_better: bool) -> Option<bool> {
        match self {
            Self::Different(direction) => Some((direction == Direction::Less) == less_is_better),
            Self::NoDifference | Self::TooFewRounds { .. } => None,
        }
    }

    /// `better`, `worse`, `~` or `too few rounds (5 needed)`.
    #[must_use]
    pub fn said(self, less_is_better: bool) -> String {
        match (self, self.is_better(less_is_better)) {
            (_, Some(true)) => "better".to_owned(),
            (_, Some(false)) => "worse".to_owned(),
            (Self::TooFewRounds { needed }, _) => format!("too few rounds ({needed} needed)"),
            _ => "~".to_owned(),
        }
    }
}

/// How a sample differs from that which it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Its values are lower.
    Less,
    /// They are higher.
    More,
}

/// Answers all questions of a table together, in their order.
#[must_use]
pub fn decide(questions: &[Question]) -> Vec<Answer> {
    let mut test = RankSum::default();
    let p: Vec<f64> = questions
        .iter()
        .map(|question| test.p(&question.of, &question.to))
        .collect();
    let adjusted = adjust::benjamini_hochberg(&p);
    let found = questions.iter().zip(p.into_iter().zip(adjusted));
    found
        .map(|(question, (p, adjusted_p))| Answer {
            p,
            adjusted_p,
            ratio: ratio::of_medians(&question.of, &question.to),
            verdict: verdict(question, adjusted_p, questions.len()),
        })
        .collect()
}

fn verdict(question: &Question, adjusted_p: f64, comparisons: usize) -> Verdict {
    if adjusted_p <= LEVEL {
        return Verdict::Different(direction(question));
    }
    let least = least_p(question.of.len(), question.to.len());
    if alone(least, comparisons) > LEVEL {
        let needed = rounds_needed(comparisons);
        return Verdict::TooFewRounds { needed };
    }
    Verdict::NoDifference
}

/// What the least of so many probabilities is adjusted to if the others are large.
#[expect(clippy::cast_precision_loss, reason = "numbers of comparisons")]
fn alone(p: f64, comparisons: usize) -> f64 {
    p * comparisons as f64
}

/// Rounds of each side from which on a single difference among so many
/// comparisons can be shown: 4 for one, 5 for two, 7 for 63.
#[must_use]
pub fn rounds_needed(comparisons: usize) -> usize {
    let mut rounds = 1;
    while alone(least_p(rounds, rounds), comparisons) > LEVEL {
        rounds += 1;
    }
    rounds
}

/// Of more pairs of values, one of either side, which one is larger.
fn direction(question: &Question) -> Direction {
    let pairs = question
        .of
        .iter()
        .flat_map(|of| question.to.iter().map(move |to| of.total_cmp(to)));
    let balance: i64 = pairs.map(|order| order as i64).sum();
    if balance < 0 {
        Direction::Less
    } else {
        Direction::More
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(of: &[f64], to: &[f64]) -> Question {
        Question {
            of: of.to_vec(),
            to: to.to_vec(),
        }
    }

    fn verdicts(questions: &[Question]) -> Vec<Verdict> {
        decide(questions).into_iter().map(|a| a.verdict).collect()
    }

    #[test]
    fn three_rounds_never_show_a_difference_and_four_do() {
        let of_three = question(&[1.0, 1.1, 1.2], &[9.0, 9.1, 9.2]);
        assert_eq!(verdicts(&[of_three]), [Verdict::TooFewRounds { needed: 4 }]);
        let of_four = question(&[1.0, 1.1, 1.2, 1.3], &[9.0, 9.1, 9.2, 9.3]);
        let [answer] = &decide(&[of_four])[..] else {
            panic!("one question, one answer")
        };
        assert_eq!(answer.verdict, Verdict::Different(Direction::Less));
        assert!((answer.p - 2.0 / 70.0).abs() < 1e-12);
        assert!((answer.ratio.unwrap() - 1.15 / 9.15).abs() < 1e-12);
    }

    #[test]
    fn a_round_that_is_missing_on_one_side_counts() {
        let unequal = question(&[1.0, 1.1], &[9.0, 9.1, 9.2, 9.3, 9.4, 9.5]);
        assert_eq!(verdicts(&[unequal]), [Verdict::TooFewRounds { needed: 4 }]);
        let none = question(&[], &[9.0; 10]);
        let answer = decide(&[none]).remove(0);
        assert_eq!(answer.verdict, Verdict::TooFewRounds { needed: 4 });
        assert_eq!((answer.p, answer.ratio), (1.0, None));
    }

    #[test]
    fn values_that_overlap_are_not_said_to_differ() {
        let mixed = question(&[1.0, 3.0, 5.0, 7.0], &[2.0, 4.0, 6.0, 8.0]);
        let ties = question(&[1.0; 4], &[1.0; 4]);
        assert_eq!(verdicts(&[mixed]), [Verdict::NoDifference]);
        assert_eq!(verdicts(&[ties]), [Verdict::NoDifference]);
    }

    #[test]
    fn the_more_is_compared_the_more_rounds_are_needed() {
        let table = [(1, 4), (2, 5), (6, 5), (7, 6), (63, 7), (2340, 10)];
        for (comparisons, rounds) in table {
            assert_eq!(rounds_needed(comparisons), rounds, "{comparisons}");
        }
        let apart = question(&[1.0, 1.1, 1.2, 1.3], &[9.0, 9.1, 9.2, 9.3]);
        let mixed = question(&[1.0, 3.0, 5.0, 7.0], &[2.0, 4.0, 6.0, 8.0]);
        // One of two alone: 2/70 x 2 is above the level.
        let few = Verdict::TooFewRounds { needed: 5 };
        assert_eq!(verdicts(&[apart.clone(), mixed.clone()]), [few, few]);
        // Both of them together are shown by the same rounds.
        let less = Verdict::Different(Direction::Less);
        assert_eq!(verdicts(&[apart.clone(), apart]), [less, less]);
    }

    #[test]
    fn the_direction_is_that_of_most_pairs() {
        let apart = question(&[9.0, 9.1, 9.2, 9.3], &[1.0, 1.1, 1.2, 9.15]);
        assert_eq!(direction(&apart), Direction::More);
        let turned = question(&apart.to, &apart.of);
        assert_eq!(direction(&turned), Direction::Less);
    }

    /// Every round of a drifting machine is slower than the one before for both.
    #[test]
    fn drift_that_both_share_raises_no_more_alarms_than_the_level() {
        let mut random = wsbench_schema::SplitMix64::new(3);
        #[expect(clippy::cast_precision_loss, reason = "a test")]
        let mut noise = move || random.below(1000) as f64 / 1000.0;
        let mut alarms = 0;
        for _ in 0..1000 {
            let mut side = || -> Vec<f64> { (0..8).map(|r| f64::from(r) + noise()).collect() };
            let (of, to) = (side(), side());
            alarms += usize::from(verdicts(&[question(&of, &to)]) != [Verdict::NoDifference]);
        }
        assert!(alarms <= 50, "{alarms} of 1000");
    }
}
