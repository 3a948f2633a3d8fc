//! A horizontal bar for each subject: names of any length read as they are
//! written, and one more subject makes the picture higher, not tighter.

use super::axis::{Axis, Scale};
use super::canvas::{self, Anchor, Canvas, LABEL, MARGIN, SMALL, Stroke, WIDTH};
use super::palette::Look;
use super::words;

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
    /// Its colour.
    pub look: Look,
}

/// From one bar to the next.
const ROW: f64 = 24.0;
const BAR: f64 = 14.0;
/// Of the column of names, at most.
const MOST_NAME: f64 = 220.0;
/// Below the bars: figures along the axis, and its name.
const FOOT: f64 = 48.0;
const GAP: f64 = 8.0;

/// Draws them.
pub fn draw(title: &str, about: &str, bars: &Bars) -> String {
    let about = canvas::folded(about);
    let top = canvas::top(&about);
    let bottom = top + ROW * canvas::count(bars.bars.len());
    canvas::picture(bottom + FOOT, title, &about, |canvas| {
        let plot = Plot::new(bars, top, bottom);
        plot.axis(canvas);
        let mut middle = top + ROW / 2.0;
        for bar in &bars.bars {
            plot.bar(canvas, bar, middle);
            middle += ROW;
        }
    })
}

struct Plot<'a> {
    bars: &'a Bars,
    scale: Scale,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl<'a> Plot<'a> {
    fn new(bars: &'a Bars, top: f64, bottom: f64) -> Self {
        let widest = |texts: &mut dyn Iterator<Item = String>| {
            texts
                .map(|text| canvas::width(&text, LABEL))
                .fold(0.0, f64::max)
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

    fn axis(&self, canvas: &mut Canvas) {
        let ticks = self.scale.ticks(SMALL);
        let guides = ticks.iter();
        let guides = guides.map(|tick| [(tick.at, self.top), (tick.at, self.bottom)]);
        let guides: Vec<[canvas::At; 2]> = guides.collect();
        let guides: Vec<&[canvas::At]> = guides.iter().map(|line| &line[..]).collect();
        canvas.lines(&guides, Stroke::Grid);
        canvas.soft(|canvas| {
            for tick in &ticks {
                let at = (tick.at, self.bottom + 12.0);
                canvas.text(&tick.text, at, Anchor::Middle, SMALL);
            }
            let middle = f64::midpoint(self.left, self.right);
            let title = canvas::fit(&self.scale.title, SMALL, self.right - self.left);
            canvas.text(&title, (middle, self.bottom + 32.0), Anchor::Middle, SMALL);
        });
    }

    fn bar(&self, canvas: &mut Canvas, bar: &Bar, middle: f64) {
        canvas.of(&bar.name, bar.look, &self.tip(bar), |canvas| {
            let name = canvas::fit(&bar.name, LABEL, MOST_NAME);
            canvas.text(&name, (self.left - GAP, middle), Anchor::End, LABEL);
            let origin = self.scale.origin();
            let mut end = origin;
            if let Some(at) = bar.value.and_then(|value| self.scale.at(value)) {
                let (from, to) = (origin.min(at), origin.max(at));
                canvas.bar((from, middle - BAR / 2.0), (to, middle + BAR / 2.0));
                end = end.max(at);
            }
            if let Some((low, high)) = bar.span.and_then(|(low, high)| {
                let (low, high) = (self.scale.at(low)?, self.scale.at(high)?);
                Some((low.min(high), low.max(high)))
            }) {
                let stop = |at: f64| [(at, middle - 4.0), (at, middle + 4.0)];
                let (along, left, right) = ([(low, middle), (high, middle)], stop(low), stop(high));
                canvas.lines(&[&along, &left, &right], Stroke::Whisker);
                end = end.max(high);
            }
            let value = shown(self.bars, bar);
            canvas.text(&value, (end + GAP, middle), Anchor::Start, LABEL);
        });
    }

    fn tip(&self, bar: &Bar) -> String {
        let axis = &self.bars.axis;
        let value = match bar.value {
            Some(value) => axis.exactly(value),
            None => crate::units::MISSING.to_owned(),
        };
        let span = bar.span.map_or(String::new(), |(low, high)| {
            let (low, high) = (axis.exactly(low), axis.exactly(high));
            format!(", rounds {low} to {high}")
        });
        format!("{}: {value}{span}", words::printable(&bar.name))
    }
}

/// What stands beside a bar.
fn shown(bars: &Bars, bar: &Bar) -> String {
    let unit = bars.axis.unit;
    bar.value
        .map_or(crate::units::MISSING.to_owned(), |value| unit.show(value))
}
