//! A point for each subject between two quantities of which less is better. Names
//! stand beside the points where they lie upon nothing, those of the best first; the
//! others stand in a key.

use super::axis::{Axis, Scale};
use super::canvas::{self, Anchor, At, LABEL, MARGIN, SMALL, WIDTH};
use super::lines::{AXIS_NAME, FOOT, MOST_NAME, ROW, frame};
use super::palette::Look;
use super::words;

/// Points over a pair of axes.
#[derive(Clone, Debug)]
pub struct Dots {
    /// From left to right.
    pub across: Axis,
    /// From the bottom up.
    pub up: Axis,
    /// One a subject.
    pub dots: Vec<Dot>,
}

/// One point.
#[derive(Clone, Debug)]
pub struct Dot {
    /// Whose. Hostile input: it is cut to its room and escaped.
    pub name: String,
    /// Right and up, in the units of the axes.
    pub at: (f64, f64),
    /// Its colour and marker.
    pub look: Look,
}

const PLOT: f64 = 360.0;
const GAP: f64 = 8.0;
/// Between the frame and the outermost points.
const INSET: f64 = 12.0;
/// A marker and what is left free around it.
const MARKER: f64 = 6.5;
/// Half of a name's height.
const HALF: f64 = 8.0;

/// Left, upper, right and lower end.
type Box4 = [f64; 4];

fn overlap([l, u, r, d]: Box4, [left, upper, right, lower]: Box4) -> bool {
    l < right && left < r && u < lower && upper < d
}

/// Draws them.
pub fn draw(title: &str, about: &str, dots: &Dots) -> String {
    let about = canvas::folded(about);
    let top = canvas::top(&about);
    let names = dots.dots.iter().map(|dot| words::printable(&dot.name));
    let key = names
        .map(|name| canvas::width(&name, LABEL))
        .fold(0.0, f64::max);
    let key = key.min(MOST_NAME) + 3.0 * GAP;
    // With a key there is less room, and perhaps more to go into it.
    let mut plot = Plot::new(dots, (top, top + PLOT), WIDTH - MARGIN);
    let mut labels = plot.labels();
    if labels.iter().any(Option::is_none) {
        let rows = ROW * canvas::count(dots.dots.len());
        plot = Plot::new(dots, (top, top + PLOT.max(rows)), WIDTH - MARGIN - key);
        labels = plot.labels();
    }
    canvas::picture(plot.bottom + FOOT, title, &about, |canvas| {
        let corners = ((plot.left, plot.top), (plot.right, plot.bottom));
        frame(canvas, (&plot.across, &plot.up), corners.0, corners.1);
        let mut row = plot.top + ROW / 2.0;
        for ((dot, at), label) in plot.placed().zip(labels) {
            canvas.of(&dot.name, dot.look, &plot.tip(dot), |canvas| {
                canvas.marker(at, dot.look, "");
                let name = canvas::fit(&dot.name, LABEL, MOST_NAME);
                match label {
                    Some((at, anchor)) => canvas.text(&name, at, anchor, LABEL),
                    None => {
                        canvas.marker((plot.right + 2.0 * GAP, row), dot.look, "");
                        let at = (plot.right + 3.0 * GAP, row);
                        canvas.text(&name, at, Anchor::Start, LABEL);
                        row += ROW;
                    }
                }
            });
        }
    })
}

struct Plot<'a> {
    dots: &'a Dots,
    across: Scale,
    up: Scale,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl<'a> Plot<'a> {
    fn new(dots: &'a Dots, (top, bottom): (f64, f64), right: f64) -> Self {
        let heights = dots.dots.iter().map(|dot| dot.at.1);
        let up = Scale::new(&dots.up, heights, (bottom - INSET, top + INSET));
        let figures = up.ticks(SMALL).into_iter();
        let figures = figures.map(|tick| canvas::width(&tick.text, SMALL));
        let left = MARGIN + AXIS_NAME + figures.fold(0.0, f64::max) + GAP;
        let places = dots.dots.iter().map(|dot| dot.at.0);
        Self {
            across: Scale::new(&dots.across, places, (left + INSET, right - 2.0 * INSET)),
            dots,
            up,
            left,
            right,
            top,
            bottom,
        }
    }

    fn placed(&self) -> impl Iterator<Item = (&'a Dot, At)> {
        self.dots.dots.iter().filter_map(|dot| {
            let at = (self.across.at(dot.at.0)?, self.up.at(dot.at.1)?);
            Some((dot, at))
        })
    }

    /// Where the name of each point stands; `None` of one that lies upon something
    /// wherever it is put.
    fn labels(&self) -> Vec<Option<(At, Anchor)>> {
        let placed: Vec<(&Dot, At)> = self.placed().collect();
        let markers = placed
            .iter()
            .map(|(_, (x, y))| [x - MARKER, y - MARKER, x + MARKER, y + MARKER]);
        let mut taken: Vec<Box4> = markers.collect();
        let mut order: Vec<usize> = (0..placed.len()).collect();
        order.sort_by_key(|index| self.is_behind(placed[*index].0));
        let mut labels = vec![None; placed.len()];
        for index in order {
            let (dot, at) = placed[index];
            let name = canvas::fit(&dot.name, LABEL, MOST_NAME);
            let width = canvas::width(&name, LABEL);
            let free = around(at, width).into_iter().find(|(_, _, of)| {
                let [left, upper, right, lower] = *of;
                let is_inside = left >= self.left
                    && upper >= self.top
                    && right <= self.right
                    && lower <= self.bottom;
                is_inside && !taken.iter().any(|other| overlap(*of, *other))
            });
            if let Some((at, anchor, of)) = free {
                taken.push(of);
                labels[index] = Some((at, anchor));
            }
        }
        labels
    }

    /// Whether another one is as good in one way and better in the other.
    fn is_behind(&self, dot: &Dot) -> bool {
        let (x, y) = dot.at;
        let is_better = |other: &Dot| other.at.0 <= x && other.at.1 <= y && other.at != (x, y);
        self.dots.dots.iter().any(is_better)
    }

    fn tip(&self, dot: &Dot) -> String {
        let Dots { across, up, .. } = self.dots;
        format!(
            "{}: {} {}, {} {}",
            words::printable(&dot.name),
            up.name,
            up.exactly(dot.at.1),
            across.name,
            across.exactly(dot.at.0)
        )
    }
}

/// The places of a name so wide around a point, the best first.
fn around((x, y): At, width: f64) -> [(At, Anchor, Box4); 6] {
    let (aside, above) = (MARKER + 3.0, MARKER + HALF + 1.0);
    let boxed = |at: At, anchor: Anchor| {
        let left = match anchor {
            Anchor::Start => at.0,
            Anchor::Middle => at.0 - width / 2.0,
            Anchor::End => at.0 - width,
        };
        (at, anchor, [left, at.1 - HALF, left + width, at.1 + HALF])
    };
    [
        boxed((x + aside, y), Anchor::Start),
        boxed((x - aside, y), Anchor::End),
        boxed((x, y - above), Anchor::Middle),
        boxed((x, y + above), Anchor::Middle),
        boxed((x + aside, y - above), Anchor::Start),
        boxed((x + aside, y + above), Anchor::Start),
    ]
}
