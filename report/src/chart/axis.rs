//! From figures to pixels, and which figures stand along an axis.

use super::canvas::{self, Type};
use crate::units::Unit;

/// What an axis measures.
#[derive(Clone, Debug)]
pub struct Axis {
    /// `Server CPU`; the unit is added to it.
    pub name: String,
    /// Of the figures.
    pub unit: Unit,
    /// How figures are laid along it.
    pub spacing: Spacing,
    /// Of an axis of phases, these.
    pub bands: Vec<Band>,
}

/// A phase along an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// What it is called: our own words.
    pub name: String,
    /// What stands below it: how long it is.
    pub about: String,
    /// Where it ends, of a whole of 1; it begins where the one before ends.
    pub end: f64,
}

/// How figures are laid along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Equal steps are equal differences; begins at zero, or below.
    Linear,
    /// Equal steps are equal factors; what is not above zero has no place.
    Logarithmic,
    /// Of percentiles: a figure is how many samples there are for each beyond it, so
    /// that 90 % is 10 and 99.9 % is 1,000. Equal steps are equal factors.
    Percentiles,
    /// Figures are parts of 1, and [`Axis::bands`] stand along it.
    Bands,
}

impl Axis {
    /// In equal differences.
    #[must_use]
    pub fn linear(name: &str, unit: Unit) -> Self {
        Self {
            name: name.to_owned(),
            unit,
            spacing: Spacing::Linear,
            bands: Vec::new(),
        }
    }

    /// In equal factors.
    #[must_use]
    pub fn logarithmic(name: &str, unit: Unit) -> Self {
        Self {
            spacing: Spacing::Logarithmic,
            ..Self::linear(name, unit)
        }
    }

    /// Of percentiles.
    #[must_use]
    pub fn percentiles() -> Self {
        Self {
            spacing: Spacing::Percentiles,
            ..Self::linear("Percentile", Unit::Ratio)
        }
    }

    /// Of phases, one after another.
    #[must_use]
    pub fn phases(bands: Vec<Band>) -> Self {
        Self {
            spacing: Spacing::Bands,
            bands,
            ..Self::linear("Time since each phase began", Unit::Ratio)
        }
    }

    /// A figure with its unit.
    #[must_use]
    pub fn exactly(&self, value: f64) -> String {
        let shown = self.unit.show(value);
        match self.unit {
            Unit::PerSecond => format!("{shown} {}", self.unit.base()),
            _ => shown,
        }
    }
}

/// A figure that stands along an axis.
#[derive(Clone, Debug)]
pub struct Tick {
    /// Where, in pixels.
    pub at: f64,
    /// The figure, in the axis' unit or with its own.
    pub text: String,
}

/// An axis laid over pixels.
pub struct Scale {
    /// Name and unit.
    pub title: String,
    low: f64,
    high: f64,
    pixels: (f64, f64),
    unit: Unit,
    spacing: Spacing,
    divisor: f64,
    values: Vec<f64>,
}

/// An axis is divided into no more steps than these.
const MOST_STEPS: f64 = 7.0;
/// More figures than these of an axis of factors are not written along it themselves.
const MOST_VALUES: usize = 12;

impl Scale {
    /// Over all `values`, from one pixel to another. Of an axis of factors these are
    /// written along it themselves, if they are few.
    pub fn new(axis: &Axis, values: impl Iterator<Item = f64>, pixels: (f64, f64)) -> Self {
        let is_of_factors = matches!(axis.spacing, Spacing::Logarithmic | Spacing::Percentiles);
        let placed = |value: &f64| value.is_finite() && (!is_of_factors || *value > 0.0);
        let mut values: Vec<f64> = values.filter(placed).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let least = values.first().copied().unwrap_or(0.0);
        let most = values.last().copied().unwrap_or(0.0);
        let (divisor, suffix) = axis.unit.scale(least.abs().max(most.abs()));
        // Over many factors each figure has the unit in which it is short.
        let (divisor, suffix) = match is_of_factors {
            true if has_units(axis.unit) => (1.0, ""),
            _ => (divisor, suffix),
        };
        let (low, high) = match axis.spacing {
            Spacing::Linear => (least.min(0.0) / divisor, most.max(0.0) / divisor),
            Spacing::Logarithmic => ((least / divisor).log10(), (most / divisor).log10()),
            Spacing::Percentiles => (0.0, most.log10()),
            Spacing::Bands => (0.0, 1.0),
        };
        // One figure alone is no range.
        let high = if high > low { high } else { low + 1.0 };
        let title = match suffix {
            "" => axis.name.clone(),
            suffix => format!("{} ({suffix})", axis.name),
        };
        Self {
            title,
            low,
            high,
            pixels,
            unit: axis.unit,
            spacing: axis.spacing,
            divisor,
            values,
        }
    }

    fn place(&self, value: f64) -> f64 {
        let part = (value - self.low) / (self.high - self.low);
        self.pixels.0 + part * (self.pixels.1 - self.pixels.0)
    }

    /// Where a figure is; `None` if it has no place.
    pub fn at(&self, value: f64) -> Option<f64> {
        let value = value / self.divisor;
        let value = match self.spacing {
            Spacing::Linear | Spacing::Bands => value,
            Spacing::Logarithmic | Spacing::Percentiles => value.log10(),
        };
        value.is_finite().then(|| self.place(value))
    }

    /// Where zero is, or the beginning if there is none.
    pub fn origin(&self) -> f64 {
        match self.spacing {
            Spacing::Linear => self.place(0.0),
            _ => self.pixels.0,
        }
    }

    /// The figures that stand along the axis, none upon another.
    pub fn ticks(&self, look: Type) -> Vec<Tick> {
        let size = f64::from(look.size);
        let is_upright = self.pixels.1 < self.pixels.0;
        let mut ticks: Vec<Tick> = Vec::new();
        // Where the last one is, and how much of the axis it takes.
        let mut last: Option<(f64, f64)> = None;
        for (value, text) in self.marked() {
            let at = self.place(value);
            let extent = match is_upright {
                true => size * 1.5,
                false => canvas::width(&text, look) + size / 2.0,
            };
            let is_free = |(before, taken): (f64, f64)| (at - before).abs() * 2.0 >= extent + taken;
            if last.is_none_or(is_free) {
                last = Some((at, extent));
                ticks.push(Tick { at, text });
            }
        }
        ticks
    }

    fn marked(&self) -> Vec<(f64, String)> {
        match self.spacing {
            Spacing::Linear => {
                let step = step(self.high - self.low);
                let decimals = decimals(step);
                let first = (self.low / step - 1e-9).ceil();
                let steps = std::iter::successors(Some(first), |step| Some(step + 1.0));
                steps
                    .map(|times| times * step)
                    .take_while(|value| *value <= self.high + step * 1e-9)
                    // Never more, whatever the figures are.
                    .take(16)
                    .map(|value| (value, format!("{:.decimals$}", value + 0.0)))
                    .collect()
            }
            Spacing::Logarithmic => {
                let own = self.values.iter().map(|value| value / self.divisor);
                let mut values: Vec<f64> = own.collect();
                if values.len() > MOST_VALUES {
                    values = match self.unit {
                        Unit::Bytes => doublings(self.low, self.high),
                        _ => powers(self.low, self.high),
                    };
                }
                values
                    .into_iter()
                    .map(|value| (value.log10(), brief(self.unit, value)))
                    .collect()
            }
            Spacing::Percentiles => {
                let beyond = [1.0, 2.0, 10.0].into_iter();
                let beyond = beyond.chain((2..=12).map(|power| 10f64.powi(power)));
                beyond
                    .map(|beyond| (beyond.log10(), percentile(beyond)))
                    .filter(|(value, _)| *value <= self.high + 1e-9)
                    .collect()
            }
            Spacing::Bands => Vec::new(),
        }
    }
}

/// Whether figures of this unit are written with one of several.
fn has_units(unit: Unit) -> bool {
    matches!(
        unit,
        Unit::Duration | Unit::Bytes | Unit::Data | Unit::DataPerSecond
    )
}

/// A figure along an axis of factors.
fn brief(unit: Unit, value: f64) -> String {
    let (divisor, suffix) = match has_units(unit) {
        true => unit.scale(value * (1.0 + 1e-9)),
        false => (1.0, ""),
    };
    let value = value / divisor;
    let text = match value {
        value if (value - value.round()).abs() < 1e-6 * value => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.decimals$}", decimals = decimals(value) + 1),
    };
    match suffix {
        "" => text,
        suffix => format!("{text} {suffix}"),
    }
}

/// What of the samples is not beyond, if there are so many for each that is: `99.9 %`.
pub fn percentile(samples_for_each_beyond: f64) -> String {
    let percent = 100.0 - 100.0 / samples_for_each_beyond;
    let text = format!("{percent:.10}");
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// 1, 2 or 5 times a power of ten, so that a range has few of them.
fn step(range: f64) -> f64 {
    let power = 10f64.powf((range / MOST_STEPS).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
    let fits = steps
        .into_iter()
        .find(|step| range / step <= MOST_STEPS + 1e-9);
    fits.unwrap_or(range)
}

/// Of ten between two logarithms; 1, 2 and 5 times these where they are few; the ends
/// where there are fewer than two.
#[expect(
    clippy::cast_possible_truncation,
    reason = "floats of 300 powers at most"
)]
fn powers(low: f64, high: f64) -> Vec<f64> {
    let times: &[f64] = if high - low < 2.5 {
        &[1.0, 2.0, 5.0]
    } else {
        &[1.0]
    };
    let powers: Vec<f64> = (low.floor() as i32..=high.floor() as i32)
        .flat_map(|power| times.iter().map(move |times| times * 10f64.powi(power)))
        .filter(|value| (low - 1e-9..=high + 1e-9).contains(&value.log10()))
        .collect();
    match powers.len() {
        0 | 1 => vec![10f64.powf(low), 10f64.powf(high)],
        _ => powers,
    }
}

/// Powers of two between two logarithms of ten, as memory is counted; the ends where
/// there are fewer than two.
fn doublings(low: f64, high: f64) -> Vec<f64> {
    let twos = std::iter::successors(Some(1.0), |value| Some(value * 2.0));
    let within = twos.take_while(|value: &f64| value.log10() <= high + 1e-9);
    let within: Vec<f64> = within.filter(|value| value.log10() >= low - 1e-9).collect();
    match within.len() {
        0 | 1 => vec![10f64.powf(low), 10f64.powf(high)],
        _ => within,
    }
}

/// Digits behind the point that a step or a figure needs to be told.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "0 to 9"
)]
fn decimals(step: f64) -> usize {
    (-step.abs().log10() - 1e-9).ceil().clamp(0.0, 9.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis, values: &[f64]) -> String {
        let scale = Scale::new(axis, values.iter().copied(), (0.0, 700.0));
        let ticks = scale.ticks(canvas::SMALL);
        let texts: Vec<String> = ticks.into_iter().map(|tick| tick.text).collect();
        format!("{}: {}", scale.title, texts.join(" "))
    }

    #[test]
    fn figures_along_an_axis_are_round_and_in_the_unit_of_the_largest() {
        let table = [
            (
                Unit::Bytes,
                vec![3.0 * 1024.0 * 1024.0],
                "x (MiB): 0.0 0.5 1.0 1.5 2.0 2.5 3.0",
            ),
            (
                Unit::Duration,
                vec![1e6, 6e8],
                "x (ms): 0 100 200 300 400 500 600",
            ),
            (Unit::Count, vec![40.0], "x: 0 10 20 30 40"),
            (Unit::Ratio, vec![-0.2, 0.2], "x: -0.2 -0.1 0.0 0.1 0.2"),
            (Unit::Count, vec![], "x: 0.0 0.2 0.4 0.6 0.8 1.0"),
        ];
        for (unit, values, expected) in table {
            assert_eq!(texts(&Axis::linear("x", unit), &values), expected);
        }
    }

    #[test]
    fn an_axis_of_factors_names_its_own_figures_if_they_are_few() {
        let axis = Axis::logarithmic("Connections", Unit::Count);
        let levels = [0.0, 1.0, 100.0, 500.0, 510.0, 2000.0, 10_000.0];
        let expected = "Connections: 1 100 500 2000 10000";
        assert_eq!(texts(&axis, &levels), expected);
        let many: Vec<f64> = (1..=1000).map(f64::from).collect();
        assert_eq!(texts(&axis, &many), "Connections: 1 10 100 1000");
        assert_eq!(texts(&axis, &[500.0]), "Connections: 500");
    }

    #[test]
    fn equal_factors_are_equal_distances() {
        let axis = Axis::logarithmic("x", Unit::Count);
        let scale = Scale::new(&axis, [1.0, 100.0].into_iter(), (0.0, 200.0));
        assert_eq!(
            [1.0, 10.0, 100.0].map(|x| scale.at(x)),
            [Some(0.0), Some(100.0), Some(200.0)]
        );
        assert_eq!(scale.at(0.0), None);
    }

    #[test]
    fn percentiles_are_as_far_apart_as_the_samples_beyond_them_are_rarer() {
        let beyond = [1.0, 2.0, 10.0, 5000.0];
        assert_eq!(
            texts(&Axis::percentiles(), &beyond),
            "Percentile: 0 % 50 % 90 % 99 % 99.9 %"
        );
        assert_eq!(percentile(1e6), "99.9999 %");
    }

    #[test]
    fn over_many_factors_each_figure_has_the_unit_in_which_it_is_short() {
        let many = (1..=600).map(|step| f64::from(step) * 1e5);
        let axis = Axis::logarithmic("Latency", Unit::Duration);
        let expected = "Latency: 100 us 1 ms 10 ms";
        assert_eq!(texts(&axis, &many.collect::<Vec<_>>()), expected);
        let few = (0..=60).map(|step| 2e6 + f64::from(step) * 1e5);
        let expected = "Latency: 2 ms 5 ms";
        assert_eq!(texts(&axis, &few.collect::<Vec<_>>()), expected);
        let sizes = Axis::logarithmic("Payload", Unit::Bytes);
        assert_eq!(
            texts(&sizes, &[64.0, 1024.0, 16384.0, 1536.0 * 16.0]),
            "Payload: 64 B 1 KiB 16 KiB 24 KiB"
        );
    }
}
