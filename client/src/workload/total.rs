//! Successes or bytes over time: a reading every so often, of a bounded number.

use wsbench_schema::Series;

/// Readings at most; beyond them every second one is left out.
const READINGS_MAX: usize = 600;

/// A running total and its readings.
#[derive(Debug)]
pub struct Total {
    start_ns: u64,
    interval_ns: u64,
    next_ns: u64,
    amount: u64,
    readings: Series,
}

impl Total {
    /// Nothing yet; read at this interval, to begin with.
    #[must_use]
    pub fn new(start_ns: u64, interval_ns: u64) -> Self {
        Self {
            start_ns,
            interval_ns,
            next_ns: start_ns + interval_ns,
            amount: 0,
            readings: Series::default(),
        }
    }

    /// All until now.
    #[must_use]
    pub fn amount(&self) -> u64 {
        self.amount
    }

    /// When the next reading is taken.
    #[must_use]
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// More, now: it is in no reading of a time before.
    #[inline]
    pub fn add(&mut self, more: u64, now_ns: u64) {
        self.pass(now_ns);
        self.amount += more;
    }

    /// Less: something that was counted was none.
    pub fn take_back(&mut self, less: u64) {
        self.amount -= less;
    }

    /// Takes the readings whose time has come.
    #[inline]
    pub fn pass(&mut self, now_ns: u64) {
        while now_ns >= self.next_ns {
            self.read(self.next_ns);
            if self.readings.values.len() > READINGS_MAX {
                self.thin_out();
            }
            self.next_ns += self.interval_ns;
        }
    }

    fn read(&mut self, at_ns: u64) {
        self.readings.offsets_ns.push(at_ns - self.start_ns);
        self.readings.values.push(self.amount);
    }

    /// Keeps the readings at multiples of twice the interval.
    fn thin_out(&mut self) {
        self.interval_ns *= 2;
        let (interval_ns, readings) = (self.interval_ns, &mut self.readings);
        let kept = readings.offsets_ns.iter().zip(&readings.values);
        let kept = kept.filter(|(offset, _)| offset.is_multiple_of(interval_ns));
        let (offsets_ns, values) = kept.map(|(offset, value)| (*offset, *value)).unzip();
        *readings = Series { offsets_ns, values };
        let passed_ns = self.next_ns - self.start_ns;
        self.next_ns -= passed_ns % self.interval_ns;
    }

    /// The readings, and one of the end.
    #[must_use]
    pub fn into_series(mut self, now_ns: u64) -> Series {
        self.pass(now_ns);
        if now_ns > self.start_ns {
            // What came at the very time of the last reading is in the end.
            if self.readings.offsets_ns.last() == Some(&(now_ns - self.start_ns)) {
                self.readings.offsets_ns.pop();
                self.readings.values.pop();
            }
            self.read(now_ns);
        }
        self.readings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL_NS: u64 = 100_000_000;
    const START: u64 = 5_000_000_123;

    #[test]
    fn a_reading_has_what_had_come_before_its_time_and_nothing_else() {
        let mut total = Total::new(START, INTERVAL_NS);
        total.add(10, START + 99_999_999);
        total.add(1, START + 100_000_000);
        total.add(1, START + 450_000_000);
        let series = total.into_series(START + 460_000_000);
        let tenths = [1, 2, 3, 4].map(|tenth| tenth * INTERVAL_NS);
        assert_eq!(series.offsets_ns[..4], tenths);
        assert_eq!(series.offsets_ns[4..], [460_000_000]);
        assert_eq!(series.values, [10, 11, 11, 11, 12]);
    }

    #[test]
    fn a_long_phase_has_fewer_readings_at_even_times() {
        let mut total = Total::new(START, INTERVAL_NS);
        let seconds = 3600;
        for tenth in 1..=seconds * 10 {
            total.add(1, START + tenth * INTERVAL_NS);
        }
        let series = total.into_series(START + seconds * 1_000_000_000);
        let count = series.values.len();
        assert!(
            (READINGS_MAX / 2..=READINGS_MAX + 1).contains(&count),
            "{count}"
        );
        let step = series.offsets_ns[0];
        for (index, (offset, value)) in series.offsets_ns.iter().zip(&series.values).enumerate() {
            let is_last = index + 1 == count;
            assert!(*offset == step * (index as u64 + 1) || is_last);
            let before = offset.div_ceil(INTERVAL_NS) - u64::from(!is_last);
            assert_eq!(*value, before, "at {offset}");
        }
    }
}
