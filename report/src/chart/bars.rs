//! A horizontal bar for each subject: names of any length read as they are
//! written, and one more subject makes the picture higher, not tighter.

use super::axis::{Axis, Scale};
use super::canvas::{self, Anchor, Canvas, ChartError, Drawn, LABEL, MARGIN, SMALL, WIDTH};
use super::{palette, words};

/// Bars from the top down, in the order in which they are given.
#[derive(Clone, Debug)]
pub struct Bars {
    /// What the bars measure.
    pub axis: Axis,
    /// Sorted by who made them: the best first.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Whose. Hostile input: it is cut to its room and escaped.
    pub name: String,
    /// Its end; without one there is no bar.
    pub value: Option<f64>,
    /// Lowest and highest of the rounds, drawn as a whisker.
    pub span: Option<(f64, f64)>,
    /// Whether the others are measured against it.
    pub is_reference: bool,
}

/// From one bar to the next.
const ROW: i32 = 24;
const BAR: i32 = 14;
/// Of the column of names, at most.
const MOST_NAME: i32 = 220;
/// Below the bars: figures along the axis, and its name.
const FOOT: i32 = 48;
const GAP: i32 = 8;

/// Draws them.
pub fn draw(title: &str, about: &str, bars: &Bars) -> Result<String, ChartError> {
    let about = canvas::folded(about);
    let top = canvas::top(&about);
    let rows = i32::try_from(bars.bars.len()).unwrap_or(i32::MAX / ROW / 2);
    let bottom = top + ROW * rows;
    canvas::picture(bottom + FOOT, title, &about, |canvas| {
        let plot = Plot::new(bars, top, bottom);
        plot.axis(canvas)?;
        for (row, bar) in (0..).zip(&bars.bars) {
            plot.bar(canvas, bar, top + ROW * row + ROW / 2)?;
        }
        Ok(())
    })
}

struct Plot<'a> {
    bars: &'a Bars,
    scale: Scale,
    left: i32,
    right: i32,
    top: i32,
    bottom: i32,
}

impl<'a> Plot<'a> {
    fn new(bars: &'a Bars, top: i32, bottom: i32) -> Self {
        let widest = |texts: &mut dyn Iterator<Item = String>| {
            let widths = texts.map(|text| words::width(&text, LABEL.size));
            widths.max().unwrap_or(0)
        };
        let names = widest(&mut bars.bars.iter().map(|bar| words::printable(&bar.name)));
        let values = widest(&mut bars.bars.iter().map(|bar| shown(bars, bar)));
        let left = MARGIN + names.min(MOST_NAME) + GAP;
        let right = WIDTH - MARGIN - values - GAP;
        let ends = bars.bars.iter().flat_map(|bar| {
            let span = bar.span.map(|(low, high)| [low, high]);
            bar.value.into_iter().chain(span.into_iter().flatten())
        });
        Self {
            scale: Scale::new(&bars.axis, ends, (left, right)),
            bars,
            left,
            right,
            top,
            bottom,
        }
    }

    fn axis(&self, canvas: &Canvas<'_>) -> Drawn {
        for tick in self.scale.ticks(SMALL.size) {
            let line = vec![(tick.at, self.top), (tick.at, self.bottom)];
            canvas.line(line, palette::GRID, 1)?;
            let at = (tick.at, self.bottom + 12);
            canvas.text(&tick.text, at, Anchor::Middle, SMALL)?;
        }
        let middle = (self.left + self.right) / 2;
        let title = words::fit(&self.scale.title, SMALL.size, self.right - self.left);
        canvas.text(&title, (middle, self.bottom + 32), Anchor::Middle, SMALL)
    }

    fn bar(&self, canvas: &Canvas<'_>, bar: &Bar, middle: i32) -> Drawn {
        let name = words::fit(&bar.name, LABEL.size, MOST_NAME);
        canvas.text(&name, (self.left - GAP, middle), Anchor::End, LABEL)?;
        let colour = match bar.is_reference {
            true => palette::REFERENCE,
            false => palette::BAR,
        };
        let origin = self.scale.origin();
        let mut end = origin;
        if let Some(at) = bar.value.and_then(|value| self.scale.at(value)) {
            let (from, to) = (origin.min(at), origin.max(at));
            let (upper, lower) = (middle - BAR / 2, middle + BAR / 2);
            canvas.fill((from, upper), (to, lower), colour)?;
            end = end.max(at);
        }
        if let Some((low, high)) = bar.span.and_then(|(low, high)| {
            let (low, high) = (self.scale.at(low)?, self.scale.at(high)?);
            Some((low.min(high), low.max(high)))
        }) {
            canvas.line(vec![(low, middle), (high, middle)], palette::INK, 1)?;
            for at in [low, high] {
                canvas.line(vec![(at, middle - 4), (at, middle + 4)], palette::INK, 1)?;
            }
            end = end.max(high);
        }
        let value = shown(self.bars, bar);
        canvas.text(&value, (end + GAP, middle), Anchor::Start, LABEL)
    }
}

/// What stands beside a bar.
fn shown(bars: &Bars, bar: &Bar) -> String {
    let unit = bars.axis.unit;
    bar.value
        .map_or(crate::units::MISSING.to_owned(), |value| unit.show(value))
}
