//! The search itself: verdicts in, rates out. It knows no servers and no clocks.
//!
//! From the lowest rate it grows by a factor until one is missed, then halves the
//! distance (of logarithms) between what was held and what was missed, then has the
//! highest rate that was held confirmed by a longer stage. A rate that is missed while
//! searching is tried once more, as one miss may be the machine's; while confirming it
//! is not, but the next lower rate is.

use wsbench_schema::{Limit, StageKind};

/// The bounds of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// No lower rate is tried.
    pub least_per_s: u64,
    /// Where it begins.
    pub first_per_s: u64,
    /// No higher rate is tried.
    pub most_per_s: u64,
    /// What is held and what is missed differ by so much in the end, in thousandths.
    pub resolution_permille: u64,
}

/// What is to be tried next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Try {
    /// What for.
    pub kind: StageKind,
    /// Messages a second.
    pub rate_per_s: u64,
    /// Whether it was missed just before.
    pub is_repeat: bool,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Held.
    Held,
    /// Missed by the server.
    Missed,
    /// Missed while the client was at its limit.
    ClientBound,
}

/// How a search ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Held, and confirmed.
    Found(u64, Limit),
    /// Not even the lowest.
    NeverHeld(u64),
    /// None of those that were to be confirmed; the lowest of them.
    NotConfirmed(u64),
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Measure this, and tell.
    Measure(Try),
    /// There is nothing more to measure.
    Ended(End),
}

/// A search under way.
#[derive(Clone, Debug)]
pub struct Search {
    bounds: Bounds,
    /// The highest rate that was held.
    held: Option<u64>,
    /// The lowest that was missed.
    missed: Option<(u64, Limit)>,
    confirms: u32,
    next: Step,
}

/// From one rate to the next while nothing is missed.
const GROWTH: u64 = 4;
/// Rates that are tried longer, at most, each below the one before.
const CONFIRMS_MOST: u32 = 6;

impl Search {
    /// Not begun.
    pub fn new(bounds: Bounds) -> Self {
        let least_per_s = bounds.least_per_s.max(1);
        let most_per_s = bounds.most_per_s.max(least_per_s);
        let bounds = Bounds {
            least_per_s,
            most_per_s,
            first_per_s: bounds.first_per_s.clamp(least_per_s, most_per_s),
            ..bounds
        };
        Self {
            bounds,
            held: None,
            missed: None,
            confirms: 0,
            next: measure(StageKind::Bracket, bounds.first_per_s),
        }
    }

    /// What to do now.
    pub fn step(&self) -> Step {
        self.next
    }

    /// Takes what became of what was to be measured. Nothing is expected once it has ended.
    pub fn tell(&mut self, found: Found) {
        let Step::Measure(tried) = self.next else {
            return;
        };
        let rate = tried.rate_per_s;
        let is_confirming = tried.kind == StageKind::Confirm;
        self.next = match found {
            Found::Held if is_confirming => {
                let limit = self.missed.map_or(Limit::Highest, |(_, limit)| limit);
                Step::Ended(End::Found(rate, limit))
            }
            Found::Held => {
                self.held = Some(rate);
                self.onward()
            }
            Found::Missed if !is_confirming && !tried.is_repeat => Step::Measure(Try {
                is_repeat: true,
                ..tried
            }),
            Found::Missed | Found::ClientBound => {
                let limit = match found {
                    Found::ClientBound => Limit::Client { bound_per_s: rate },
                    _ => Limit::Server { missed_per_s: rate },
                };
                self.missed = Some((rate, limit));
                match is_confirming {
                    true => self.lower(rate),
                    false => self.onward(),
                }
            }
        };
    }

    /// While searching: outward until there are both ends, then between them.
    fn onward(&self) -> Step {
        let Bounds {
            least_per_s,
            most_per_s,
            ..
        } = self.bounds;
        match (self.held, self.missed) {
            (Some(held), None) if held >= most_per_s => measure(StageKind::Confirm, held),
            (Some(held), None) => {
                let next = held.saturating_mul(GROWTH).min(most_per_s);
                measure(StageKind::Bracket, next)
            }
            (None, Some((missed, _))) if missed <= least_per_s => {
                Step::Ended(End::NeverHeld(missed))
            }
            (None, Some((missed, _))) => {
                let next = (missed / GROWTH).max(least_per_s);
                measure(StageKind::Bracket, next)
            }
            (Some(held), Some((missed, _))) => match self.between(held, missed) {
                Some(middle) => measure(StageKind::Bisect, middle),
                None => measure(StageKind::Confirm, held),
            },
            (None, None) => measure(StageKind::Bracket, self.bounds.first_per_s),
        }
    }

    /// The middle of two rates, unless they are near enough.
    fn between(&self, held: u64, missed: u64) -> Option<u64> {
        let (low, high) = (u128::from(held), u128::from(missed));
        let resolution = u128::from(self.bounds.resolution_permille);
        if high * 1000 <= low * (1000 + resolution) {
            return None;
        }
        let middle = u64::try_from((low * high).isqrt()).unwrap_or(u64::MAX);
        (held < middle && middle < missed).then_some(middle)
    }

    /// While confirming: the next lower rate, if there may be one.
    fn lower(&mut self, rate: u64) -> Step {
        self.confirms += 1;
        let resolution = u128::from(self.bounds.resolution_permille);
        let next = u128::from(rate) * 1000 / (1000 + resolution.max(1));
        let next = u64::try_from(next).unwrap_or(u64::MAX).min(rate - 1);
        match next < self.bounds.least_per_s || self.confirms >= CONFIRMS_MOST {
            true => Step::Ended(End::NotConfirmed(rate)),
            false => measure(StageKind::Confirm, next),
        }
    }
}

fn measure(kind: StageKind, rate_per_s: u64) -> Step {
    Step::Measure(Try {
        kind,
        rate_per_s,
        is_repeat: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOUNDS: Bounds = Bounds {
        least_per_s: 20,
        first_per_s: 400,
        most_per_s: 10_000_000,
        resolution_permille: 50,
    };
    /// No search has more stages than this.
    const STAGES_MOST: usize = 80;

    /// Makes a search of a server that does what it is told.
    fn search(bounds: Bounds, mut server: impl FnMut(Try) -> Found) -> (End, Vec<(Try, Found)>) {
        let mut search = Search::new(bounds);
        let mut stages = Vec::new();
        loop {
            match search.step() {
                Step::Ended(end) => return (end, stages),
                Step::Measure(tried) => {
                    let found = server(tried);
                    stages.push((tried, found));
                    assert!(stages.len() <= STAGES_MOST, "it does not end");
                    search.tell(found);
                }
            }
        }
    }

    /// Holds up to its capacity.
    fn holds(capacity: u64) -> impl FnMut(Try) -> Found {
        move |tried| match tried.rate_per_s <= capacity {
            true => Found::Held,
            false => Found::Missed,
        }
    }

    #[test]
    fn a_known_capacity_is_found_in_few_stages() {
        let (end, stages) = search(BOUNDS, holds(10_000));
        let End::Found(rate, Limit::Server { missed_per_s }) = end else {
            panic!("{end:?}");
        };
        assert!(rate <= 10_000 && missed_per_s > 10_000, "{end:?}");
        assert!(missed_per_s * 1000 <= rate * 1050, "{end:?}");
        let shown: Vec<(StageKind, u64)> = stages
            .iter()
            .map(|(tried, _)| (tried.kind, tried.rate_per_s))
            .collect();
        let begin = [400, 1600, 6400, 25_600, 25_600];
        for (index, rate) in begin.into_iter().enumerate() {
            assert_eq!(shown[index], (StageKind::Bracket, rate));
        }
        assert_eq!(shown.last(), Some(&(StageKind::Confirm, rate)));
        assert!(shown.len() <= 15, "{shown:?}");
    }

    #[test]
    fn a_server_below_where_it_begins_is_found_too_and_none_below_the_lowest() {
        let (end, _) = search(BOUNDS, holds(30));
        let End::Found(rate @ 28..=30, _) = end else {
            panic!("{end:?}");
        };
        assert!(rate <= 30);
        let (end, stages) = search(BOUNDS, holds(19));
        assert_eq!(end, End::NeverHeld(20));
        assert!(stages.iter().all(|(tried, _)| tried.rate_per_s >= 20));
        let (end, _) = search(BOUNDS, holds(20));
        assert!(matches!(end, End::Found(20, _)), "{end:?}");
    }

    #[test]
    fn a_server_that_holds_everything_is_said_to_hold_the_highest_and_no_more() {
        let (end, _) = search(BOUNDS, |_| Found::Held);
        assert_eq!(end, End::Found(10_000_000, Limit::Highest));
    }

    #[test]
    fn where_the_client_is_the_limit_it_is_not_the_servers() {
        let (end, stages) = search(BOUNDS, |tried| match tried.rate_per_s {
            ..=50_000 => Found::Held,
            _ => Found::ClientBound,
        });
        let End::Found(rate, Limit::Client { bound_per_s }) = end else {
            panic!("{end:?}");
        };
        assert!(rate <= 50_000 && bound_per_s > 50_000 && bound_per_s * 1000 <= rate * 1050);
        // What the client cannot do it cannot do twice.
        assert!(stages.iter().all(|(tried, _)| !tried.is_repeat));
        // The server misses below where the client would.
        let (end, _) = search(BOUNDS, |tried| match tried.rate_per_s {
            ..=5_000 => Found::Held,
            5_001..=50_000 => Found::Missed,
            _ => Found::ClientBound,
        });
        assert!(
            matches!(end, End::Found(_, Limit::Server { .. })),
            "{end:?}"
        );
    }

    #[test]
    fn one_miss_of_the_machines_does_not_decide() {
        let mut hiccup = true;
        let mut server = holds(10_000);
        let (end, stages) = search(BOUNDS, |tried| {
            match tried.rate_per_s == 1600 && std::mem::take(&mut hiccup) {
                true => Found::Missed,
                false => server(tried),
            }
        });
        assert!(matches!(end, End::Found(9_500.., _)), "{end:?}");
        let (again, _) = stages[2];
        assert_eq!((again.rate_per_s, again.is_repeat), (1600, true));
    }

    #[test]
    fn what_is_not_confirmed_is_lowered_until_it_is_or_said_not_to_be() {
        let of = |confirmed: u64| {
            move |tried: Try| match tried.kind {
                StageKind::Confirm => holds(confirmed)(tried),
                _ => holds(10_000)(tried),
            }
        };
        let (end, stages) = search(BOUNDS, of(9_000));
        let End::Found(rate, Limit::Server { missed_per_s }) = end else {
            panic!("{end:?}");
        };
        assert!(rate <= 9_000 && missed_per_s > 9_000 && missed_per_s * 100 <= rate * 106);
        let confirms = |stages: &[(Try, Found)]| {
            let of_kind = |(tried, _): &&(Try, Found)| tried.kind == StageKind::Confirm;
            stages.iter().filter(of_kind).count()
        };
        assert!(confirms(&stages) > 1);
        let (end, stages) = search(BOUNDS, of(10));
        let End::NotConfirmed(lowest) = end else {
            panic!("{end:?}");
        };
        assert_eq!(confirms(&stages), CONFIRMS_MOST as usize);
        assert_eq!(
            stages.last().map(|(tried, _)| tried.rate_per_s),
            Some(lowest)
        );
    }

    proptest! {
        #[test]
        fn whatever_the_capacity_it_is_found_within_the_resolution(
            capacity in 20_u64..20_000_000,
            first in 1_u64..100_000,
            resolution in 5_u64..500,
        ) {
            let bounds = Bounds { first_per_s: first, resolution_permille: resolution, ..BOUNDS };
            let (end, stages) = search(bounds, holds(capacity));
            let End::Found(rate, limit) = end else {
                panic!("{end:?}");
            };
            prop_assert!(rate <= capacity);
            match limit {
                Limit::Server { missed_per_s } => {
                    prop_assert!(missed_per_s > capacity);
                    // Between neighbours there is no rate.
                    let is_near = missed_per_s * 1000 <= rate * (1000 + resolution);
                    prop_assert!(is_near || missed_per_s - rate == 1);
                }
                _ => prop_assert_eq!(rate, bounds.most_per_s),
            }
            prop_assert!(stages.len() <= 45, "{}", stages.len());
        }

        #[test]
        fn whatever_a_server_does_the_search_ends_and_what_it_names_was_confirmed(
            seed in any::<u64>(),
            share in 0_u8..=100,
            resolution in 5_u64..500,
        ) {
            let mut random = wsbench_schema::SplitMix64::new(seed);
            let bounds = Bounds { resolution_permille: resolution, ..BOUNDS };
            let (end, stages) = search(bounds, |_| match random.below(100) {
                some if some >= u64::from(share) => Found::Held,
                some if some.is_multiple_of(3) => Found::ClientBound,
                _ => Found::Missed,
            });
            for (tried, _) in &stages {
                prop_assert!((20..=10_000_000).contains(&tried.rate_per_s));
            }
            if let End::Found(rate, limit) = end {
                let last = stages.last().copied().unwrap();
                prop_assert_eq!((last.0.kind, last.0.rate_per_s), (StageKind::Confirm, rate));
                prop_assert_eq!(last.1, Found::Held);
                // What limits it was measured, and lies above it.
                let (at, expected) = match limit {
                    Limit::Server { missed_per_s } => (missed_per_s, Found::Missed),
                    Limit::Client { bound_per_s } => (bound_per_s, Found::ClientBound),
                    Limit::Highest => (u64::MAX, Found::Held),
                };
                if at < u64::MAX {
                    prop_assert!(at > rate);
                    let is_it = |(tried, found): &(Try, Found)| tried.rate_per_s == at && *found == expected;
                    prop_assert!(stages.iter().any(is_it));
                }
            }
        }

        /// Near its capacity a server holds or misses by chance.
        #[test]
        fn noise_near_the_capacity_moves_the_result_no_further_than_the_noise(
            seed in any::<u64>(),
            capacity in 2_000_u64..1_000_000,
        ) {
            let mut random = wsbench_schema::SplitMix64::new(seed);
            let (end, _) = search(BOUNDS, |tried| {
                let wobble = 900 + random.below(201);
                holds(capacity * wobble / 1000)(tried)
            });
            match end {
                End::Found(rate, _) => {
                    prop_assert!(rate * 1000 <= capacity * 1101, "{rate} of {capacity}");
                    prop_assert!(rate * 1000 >= capacity * 700, "{rate} of {capacity}");
                }
                End::NotConfirmed(rate) => prop_assert!(rate * 1000 >= capacity * 700),
                End::NeverHeld(_) => prop_assert!(false, "{end:?}"),
            }
        }
    }
}
