//! What a phase of messages leaves over time: successes at intervals, and the latencies of
//! each second. A message costs one comparison more than without it; everything else is
//! done where an interval ends.

use super::total::Total;
use hdrhistogram::Histogram;
use wsbench_schema::{Intervals, Series, encode_histogram, latency_histogram};

/// From one reading of the successes to the next, to begin with.
const READING_NS: u64 = 250_000_000;
/// How long latencies are collected into one histogram, to begin with.
const INTERVAL_NS: u64 = 1_000_000_000;
/// So many intervals, an even number, become half as many of twice the length.
const INTERVALS_MAX: usize = 120;

/// Latencies by their bucket: its lowest value and how often it was hit, ascending.
type Sparse = Vec<(u64, u64)>;

/// Latencies of one kind, by the interval in which they became known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// How long an interval is.
    interval_ns: u64,
    /// One after the other, from the beginning of the phase.
    parts: Vec<Sparse>,
}

/// Successes over time, and latencies of `N` kinds.
pub struct Timeline<const N: usize> {
    total: Total,
    /// When the interval that is being collected ends.
    ends_ns: u64,
    current: [Histogram<u64>; N],
    parts: [Parts; N],
    /// Latencies of each kind that were recorded and were none.
    doubled_ns: [Vec<u64>; N],
}

/// What a timeline comes to.
pub struct Readings<const N: usize> {
    /// Successes.
    pub total: Series,
    /// Latencies of each kind, together ...
    pub latencies: [Histogram<u64>; N],
    /// ... and by interval.
    pub parts: [Parts; N],
}

impl<const N: usize> Timeline<N> {
    /// Of a phase that begins then.
    #[must_use]
    pub fn new(start_ns: u64) -> Self {
        let part = || Parts {
            interval_ns: INTERVAL_NS,
            parts: Vec::new(),
        };
        Self {
            total: Total::new(start_ns, READING_NS),
            ends_ns: start_ns.saturating_add(INTERVAL_NS),
            current: std::array::from_fn(|_| latency_histogram()),
            parts: std::array::from_fn(|_| part()),
            doubled_ns: std::array::from_fn(|_| Vec::new()),
        }
    }

    /// So many successes, now. To be called before their latencies are recorded.
    #[inline]
    pub fn succeeded(&mut self, count: u64, now_ns: u64) {
        self.total.add(count, now_ns);
        while now_ns >= self.ends_ns {
            self.end_interval();
        }
    }

    /// So many latencies of one kind.
    #[inline]
    pub fn record(&mut self, kind: usize, latency_ns: u64, count: u64) {
        self.current[kind].saturating_record_n(latency_ns, count);
    }

    /// One success was none, with these latencies, one of each kind.
    pub fn take_back(&mut self, latencies_ns: [u64; N]) {
        self.total.take_back(1);
        for (doubled, latency_ns) in self.doubled_ns.iter_mut().zip(latencies_ns) {
            doubled.push(latency_ns);
        }
    }

    /// All successes until now.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.total.amount()
    }

    #[cold]
    fn end_interval(&mut self) {
        for (parts, current) in self.parts.iter_mut().zip(&mut self.current) {
            parts.parts.push(sparse(current));
            current.reset();
            if parts.parts.len() == INTERVALS_MAX {
                parts.coarsen();
            }
        }
        let interval_ns = self
            .parts
            .first()
            .map_or(INTERVAL_NS, |first| first.interval_ns);
        self.ends_ns = self.ends_ns.saturating_add(interval_ns);
    }

    /// All of it, of a phase whose last success was then.
    #[must_use]
    pub fn readings(mut self, end_ns: u64) -> Readings<N> {
        self.end_interval();
        for (parts, doubled_ns) in self.parts.iter_mut().zip(&self.doubled_ns) {
            parts.without(doubled_ns);
            while parts.parts.last().is_some_and(Vec::is_empty) {
                parts.parts.pop();
            }
        }
        Readings {
            total: self.total.into_series(end_ns),
            latencies: std::array::from_fn(|kind| {
                let mut all = latency_histogram();
                for (latency_ns, count) in self.parts[kind].parts.iter().flatten() {
                    all.saturating_record_n(*latency_ns, *count);
                }
                all
            }),
            parts: self.parts,
        }
    }
}

fn sparse(histogram: &Histogram<u64>) -> Sparse {
    let buckets = histogram.iter_recorded();
    let bucket = |value| {
        (
            histogram.lowest_equivalent(value),
            histogram.count_at(value),
        )
    };
    buckets
        .map(|found| bucket(found.value_iterated_to()))
        .collect()
}

/// Two lists in one, without a bucket twice.
fn both(one: &Sparse, other: &Sparse) -> Sparse {
    let mut all = [&one[..], other].concat();
    all.sort_unstable();
    all.dedup_by(|later, first| {
        let is_same = later.0 == first.0;
        if is_same {
            first.1 += later.1;
        }
        is_same
    });
    all
}

impl Parts {
    /// Every two intervals become one of twice the length.
    fn coarsen(&mut self) {
        self.interval_ns *= 2;
        let pairs = self.parts.chunks(2);
        self.parts = pairs
            .map(|pair| {
                pair.iter()
                    .fold(Sparse::new(), |all, part| both(&all, part))
            })
            .collect();
    }

    /// Leaves out latencies that are in it, each once: of the last interval that has it.
    fn without(&mut self, latencies_ns: &[u64]) {
        let bounds = latency_histogram();
        for latency_ns in latencies_ns {
            let bucket = bounds.lowest_equivalent(bounds.high().min(*latency_ns));
            let found = self.parts.iter_mut().rev().find_map(|part| {
                let at = part
                    .binary_search_by_key(&bucket, |(value, _)| *value)
                    .ok()?;
                Some((part, at))
            });
            debug_assert!(found.is_some(), "{latency_ns} ns was recorded");
            if let Some((part, at)) = found {
                part[at].1 -= 1;
                if part[at].1 == 0 {
                    part.remove(at);
                }
            }
        }
    }

    /// Adds those of another shard in the same phase.
    pub fn add(&mut self, mut other: Self) {
        if self.interval_ns == 0 {
            *self = other;
            return;
        }
        while self.interval_ns < other.interval_ns {
            self.coarsen();
        }
        while other.interval_ns < self.interval_ns {
            other.coarsen();
        }
        let length = self.parts.len().max(other.parts.len());
        self.parts.resize_with(length, Sparse::new);
        for (all, part) in self.parts.iter_mut().zip(&other.parts) {
            *all = both(all, part);
        }
    }

    /// As it is told.
    #[must_use]
    pub fn encoded(&self) -> Intervals {
        let mut room = latency_histogram();
        let encode = |part: &Sparse| {
            room.reset();
            for (latency_ns, count) in part {
                room.saturating_record_n(*latency_ns, *count);
            }
            encode_histogram(&room)
        };
        Intervals {
            interval_ns: self.interval_ns,
            histograms: self.parts.iter().map(encode).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wsbench_schema::decode_histogram;

    const START: u64 = 7_000_000_123;
    const SECOND: u64 = INTERVAL_NS;

    /// One latency at each of these times after the start, of that many microseconds.
    fn recorded(at: &[(u64, u64)]) -> Timeline<1> {
        let mut timeline = Timeline::new(START);
        for (offset_ns, us) in at {
            timeline.succeeded(1, START + offset_ns);
            timeline.record(0, us * 1000, 1);
        }
        timeline
    }

    fn counts(parts: &Parts) -> Vec<u64> {
        let histograms = parts.encoded().histograms;
        let count = |text: &String| decode_histogram(text).unwrap().len();
        histograms.iter().map(count).collect()
    }

    #[test]
    fn each_latency_is_in_the_interval_in_which_it_became_known() {
        let timeline = recorded(&[(1, 10), (SECOND - 1, 20), (SECOND, 30), (3 * SECOND, 40)]);
        let readings = timeline.readings(START + 3 * SECOND);
        assert_eq!(counts(&readings.parts[0]), [2, 1, 0, 1]);
        assert_eq!(readings.latencies[0].len(), 4);
        assert_eq!(readings.total.values.last(), Some(&4));
        let at = |second: u64| {
            let offsets = &readings.total.offsets_ns;
            let index = offsets
                .iter()
                .position(|at| *at == second * SECOND)
                .unwrap();
            readings.total.values[index]
        };
        assert_eq!((at(1), at(2), at(3)), (2, 3, 4));
    }

    #[test]
    fn all_intervals_together_are_the_whole() {
        let mut random = wsbench_schema::SplitMix64::new(9);
        let mut timeline = Timeline::<2>::new(START);
        let mut whole = [latency_histogram(), latency_histogram()];
        for step in 0..10_000 {
            timeline.succeeded(1, START + step * SECOND / 1000);
            for (kind, whole) in whole.iter_mut().enumerate() {
                let latency_ns = 1 << random.below(50);
                timeline.record(kind, latency_ns, 1);
                whole.saturating_record(latency_ns);
            }
        }
        let readings = timeline.readings(START + 10 * SECOND);
        let kinds = readings.latencies.iter().zip(&readings.parts).zip(&whole);
        for ((all, parts), whole) in kinds {
            assert_eq!(encode_histogram(all), encode_histogram(whole));
            let mut sum = latency_histogram();
            for text in parts.encoded().histograms {
                sum.add(decode_histogram(&text).unwrap()).unwrap();
            }
            assert_eq!(sum, *all);
        }
    }

    #[test]
    fn what_was_none_is_in_no_interval() {
        let mut timeline = recorded(&[(1, 10), (2, 10), (SECOND, 10), (SECOND + 1, 90)]);
        timeline.take_back([10_000]);
        assert_eq!(timeline.count(), 3);
        let readings = timeline.readings(START + SECOND + 1);
        assert_eq!(counts(&readings.parts[0]), [2, 1]);
        assert_eq!(readings.latencies[0].len(), 3);
    }

    #[test]
    fn a_phase_of_hours_has_as_many_intervals_as_one_of_minutes() {
        let hour: Vec<_> = (0..3600).map(|second| (second * SECOND, 10)).collect();
        let readings = recorded(&hour).readings(START + 3599 * SECOND);
        let found = counts(&readings.parts[0]);
        assert_eq!(readings.parts[0].interval_ns, 32 * SECOND);
        assert_eq!(found.len(), 3600_usize.div_ceil(32));
        assert!(
            found[..found.len() - 1].iter().all(|count| *count == 32),
            "{found:?}"
        );
        assert_eq!(found.iter().sum::<u64>(), 3600);
    }

    #[test]
    fn shards_add_up_interval_by_interval_even_if_one_ended_early() {
        let short = recorded(&[(1, 10), (SECOND, 10)]).readings(START + SECOND);
        let long: Vec<_> = (0..200).map(|second| (second * SECOND, 20)).collect();
        let long = recorded(&long).readings(START + 199 * SECOND);
        let [short, long] = [short, long].map(|readings| readings.parts[0].clone());
        let mut all = Parts::default();
        all.add(short.clone());
        all.add(long.clone());
        assert_eq!(counts(&all)[..3], [4, 2, 2]);
        assert_eq!(counts(&all).iter().sum::<u64>(), 202);
        let mut turned = long;
        turned.add(short);
        assert_eq!(turned, all);
    }
}
