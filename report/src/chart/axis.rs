//! From figures to pixels, and which figures stand along an axis.

use super::words;
use crate::units::Unit;
use plotters::coord::ranged1d::Ranged as _;
use plotters::coord::types::RangedCoordf64;

/// What an axis measures.
#[derive(Clone, Debug)]
pub struct Axis {
    /// `Server CPU`; the unit is added to it.
    pub name: String,
    /// Of the figures.
    pub unit: Unit,
    /// How figures are laid along it.
    pub spacing: Spacing,
}

/// How figures are laid along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Equal steps are equal differences; begins at zero, or below.
    Linear,
    /// Equal steps are equal factors; what is not above zero has no place.
    Logarithmic,
}

impl Axis {
    /// In equal differences.
    #[must_use]
    pub fn linear(name: &str, unit: Unit) -> Self {
        Self {
            name: name.to_owned(),
            unit,
            spacing: Spacing::Linear,
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
}

/// A figure that stands along an axis.
#[derive(Clone, Debug)]
pub struct Tick {
    /// Where, in pixels.
    pub at: i32,
    /// The figure in the axis' unit.
    pub text: String,
}

/// An axis laid over pixels.
pub struct Scale {
    /// Name and unit.
    pub title: String,
    range: RangedCoordf64,
    low: f64,
    high: f64,
    pixels: (i32, i32),
    spacing: Spacing,
    divisor: f64,
    values: Vec<f64>,
}

/// More figures along an axis than these are not all written: of steps, and of those
/// that an axis of factors has itself.
const MOST_STEPS: usize = 8;
const MOST_VALUES: usize = 12;

impl Scale {
    /// Over all `values`, from one pixel to another. Of an axis of factors these are
    /// written along it themselves, if they are few.
    pub fn new(axis: &Axis, values: impl Iterator<Item = f64>, pixels: (i32, i32)) -> Self {
        let placed =
            |value: &f64| value.is_finite() && (axis.spacing == Spacing::Linear || *value > 0.0);
        let mut values: Vec<f64> = values.filter(placed).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let least = values.first().copied().unwrap_or(0.0);
        let most = values.last().copied().unwrap_or(0.0);
        let (divisor, suffix) = axis.unit.scale(least.abs().max(most.abs()));
        let (low, high) = match axis.spacing {
            Spacing::Linear => (least.min(0.0) / divisor, most.max(0.0) / divisor),
            Spacing::Logarithmic => (log(least / divisor), log(most / divisor)),
        };
        // One figure alone is no range.
        let high = if high > low { high } else { low + 1.0 };
        let title = match suffix {
            "" => axis.name.clone(),
            suffix => format!("{} ({suffix})", axis.name),
        };
        Self {
            title,
            range: (low..high).into(),
            low,
            high,
            pixels,
            spacing: axis.spacing,
            divisor,
            values,
        }
    }

    /// Where a figure is; `None` if it has no place.
    pub fn at(&self, value: f64) -> Option<i32> {
        let value = value / self.divisor;
        let value = match self.spacing {
            Spacing::Linear => value,
            Spacing::Logarithmic => log(value),
        };
        value
            .is_finite()
            .then(|| self.range.map(&value, self.pixels))
    }

    /// Where zero is, or the beginning if there is none.
    pub fn origin(&self) -> i32 {
        match self.spacing {
            Spacing::Linear => self.range.map(&0.0, self.pixels),
            Spacing::Logarithmic => self.pixels.0,
        }
    }

    /// The figures that stand along the axis, `size` pixels high, none upon another.
    pub fn ticks(&self, size: i32) -> Vec<Tick> {
        let is_upright = self.pixels.1 < self.pixels.0;
        let mut ticks: Vec<Tick> = Vec::new();
        // Where the last one is, and how much of the axis it takes.
        let mut last: Option<(i32, i32)> = None;
        for (value, text) in self.marked() {
            let at = self.range.map(&value, self.pixels);
            let extent = match is_upright {
                true => size * 3 / 2,
                false => words::width(&text, size) + size / 2,
            };
            let is_free = |(before, taken): (i32, i32)| (at - before).abs() * 2 >= extent + taken;
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
                let values = self.range.key_points(MOST_STEPS);
                let step = match values[..] {
                    [first, second, ..] => second - first,
                    _ => 1.0,
                };
                let decimals = decimals(step);
                values
                    .into_iter()
                    .map(|value| (value, format!("{:.decimals$}", value + 0.0)))
                    .collect()
            }
            Spacing::Logarithmic => {
                let own = self.values.iter().map(|value| value / self.divisor);
                let mut values: Vec<f64> = own.collect();
                if values.len() > MOST_VALUES {
                    values = powers(self.low, self.high);
                }
                let text = |value: f64| match value {
                    value if value.fract() == 0.0 => format!("{value:.0}"),
                    value => format!("{value:.decimals$}", decimals = decimals(value)),
                };
                values
                    .into_iter()
                    .map(|value| (log(value), text(value)))
                    .collect()
            }
        }
    }
}

fn log(value: f64) -> f64 {
    value.log10()
}

/// Of ten between two logarithms; the ends where there are fewer than two.
#[expect(
    clippy::cast_possible_truncation,
    reason = "floats of 300 powers at most"
)]
fn powers(low: f64, high: f64) -> Vec<f64> {
    let powers: Vec<f64> = (low.ceil() as i32..=high.floor() as i32)
        .map(|power| 10f64.powi(power))
        .collect();
    match powers.len() {
        0 | 1 => vec![10f64.powf(low), 10f64.powf(high)],
        _ => powers,
    }
}

/// Digits behind the point that a step or a figure needs to be told.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "0 to 9"
)]
fn decimals(step: f64) -> usize {
    (-step.abs().log10()).ceil().clamp(0.0, 9.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis, values: &[f64]) -> String {
        let scale = Scale::new(axis, values.iter().copied(), (0, 700));
        let ticks = scale.ticks(11);
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
        let scale = Scale::new(&axis, [1.0, 100.0].into_iter(), (0, 200));
        assert_eq!(
            [1.0, 10.0, 100.0].map(|x| scale.at(x)),
            [Some(0), Some(100), Some(200)]
        );
        assert_eq!(scale.at(0.0), None);
    }
}
