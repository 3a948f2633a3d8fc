//! A line for each subject, named at its right end: no legend to look up, and a
//! picture with more lines is higher.

use super::axis::{Axis, Scale, Spacing};
use super::canvas::{self, Anchor, At, Canvas, LABEL, MARGIN, SMALL, Stroke, WIDTH};
use super::palette::Look;
use super::words;

/// Lines over a common pair of axes.
#[derive(Clone, Debug)]
pub struct Lines {
    /// From left to right.
    pub across: Axis,
    /// From the bottom up.
    pub up: Axis,
    /// In the order in which they are drawn.
    pub lines: Vec<Line>,
}

/// One line.
#[derive(Clone, Debug)]
pub struct Line {
    /// Whose. Hostile input: it is cut to its room and escaped.
    pub name: String,
    /// From left to right; what has no place interrupts it.
    pub points: Vec<(f64, f64)>,
    /// Another quantity of the same subject, drawn thin.
    pub beside: Vec<(f64, f64)>,
    /// Its colour, dashes and marker.
    pub look: Look,
    /// Shown under the pointer behind the name, instead of what can be read from the
    /// points.
    pub tip: Option<String>,
}

const PLOT: f64 = 300.0;
/// From one name to the next.
pub const ROW: f64 = 17.0;
/// Of the column of names, at most.
pub const MOST_NAME: f64 = 180.0;
/// Between the plot and the names: room for what leads from the one to the other.
const LEAD: f64 = 34.0;
/// Left of the plot: the name of the axis.
pub const AXIS_NAME: f64 = 20.0;
/// Below the plot: figures along the axis, and its name.
pub const FOOT: f64 = 48.0;
const GAP: f64 = 8.0;
/// Above the plot: the names of phases.
const BANDS: f64 = 18.0;
/// With more points than these a line has a marker at its end alone.
const MOST_MARKERS: usize = 12;
/// More points than these are thinned: a file holds many pictures.
const MOST_POINTS: usize = 48;

/// Draws them.
pub fn draw(title: &str, about: &str, lines: &Lines) -> String {
    let about = canvas::folded(about);
    let mut top = canvas::top(&about);
    if lines.across.spacing == Spacing::Bands {
        top += BANDS;
    }
    let bottom = top + PLOT.max(ROW * canvas::count(lines.lines.len()));
    canvas::picture(bottom + FOOT, title, &about, |canvas| {
        let plot = Plot::new(lines, top, bottom);
        plot.axes(canvas);
        plot.lines(canvas);
    })
}

struct Plot<'a> {
    lines: &'a Lines,
    across: Scale,
    up: Scale,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// A line in pixels: pieces of it, and of what is beside it.
struct Placed<'a> {
    line: &'a Line,
    pieces: Vec<Vec<(At, (f64, f64))>>,
    beside: Vec<Vec<(At, (f64, f64))>>,
    end: At,
}

impl<'a> Plot<'a> {
    fn new(lines: &'a Lines, top: f64, bottom: f64) -> Self {
        let points = || {
            let lines = lines.lines.iter();
            lines.flat_map(|line| line.points.iter().chain(&line.beside))
        };
        let up = Scale::new(&lines.up, points().map(|point| point.1), (bottom, top));
        let figures = up.ticks(SMALL).into_iter();
        let figures = figures.map(|tick| canvas::width(&tick.text, SMALL));
        let names = lines.lines.iter().map(|line| words::printable(&line.name));
        let names = names.map(|name| canvas::width(&name, LABEL));
        let left = MARGIN + AXIS_NAME + figures.fold(0.0, f64::max) + GAP;
        let right = WIDTH - MARGIN - names.fold(0.0, f64::max).min(MOST_NAME) - LEAD;
        Self {
            across: Scale::new(&lines.across, points().map(|point| point.0), (left, right)),
            lines,
            up,
            left,
            right,
            top,
            bottom,
        }
    }

    fn axes(&self, canvas: &mut Canvas) {
        self.bands(canvas);
        frame(
            canvas,
            (&self.across, &self.up),
            (self.left, self.top),
            (self.right, self.bottom),
        );
    }

    fn bands(&self, canvas: &mut Canvas) {
        let mut from = self.left;
        for (index, band) in self.lines.across.bands.iter().enumerate() {
            let Some(to) = self.across.at(band.end) else {
                continue;
            };
            if index % 2 == 0 {
                canvas.shade((from, self.top - BANDS), (to, self.bottom));
            }
            let middle = f64::midpoint(from, to);
            let room = to - from - GAP;
            let name = canvas::fit(&band.name, SMALL, room);
            canvas.text(
                &name,
                (middle, self.top - BANDS / 2.0),
                Anchor::Middle,
                SMALL,
            );
            let about = canvas::fit(&band.about, SMALL, room);
            canvas.text(&about, (middle, self.bottom + 14.0), Anchor::Middle, SMALL);
            from = to;
        }
    }

    fn pieces(&self, points: &[(f64, f64)]) -> Vec<Vec<(At, (f64, f64))>> {
        let place = |(x, y): (f64, f64)| Some((self.across.at(x)?, self.up.at(y)?));
        let mut pieces = Vec::new();
        // As many points of each piece as it has of all.
        let share = |piece: usize| MOST_POINTS * piece / points.len().max(1);
        for piece in points.split(|(x, y)| place((*x, *y)).is_none()) {
            let kept = thinned(piece, share(piece.len()).max(4));
            let placed = kept.into_iter().filter_map(|at| Some((place(at)?, at)));
            pieces.push(placed.collect::<Vec<_>>());
        }
        pieces.retain(|piece| !piece.is_empty());
        pieces
    }

    /// All lines, each with its name beside its end, moved apart where lines end
    /// together. Of whom nothing has a place there is none.
    fn lines(&self, canvas: &mut Canvas) {
        let placed = self.lines.lines.iter().filter_map(|line| {
            let pieces = self.pieces(&line.points);
            let (end, _) = *pieces.last()?.last()?;
            let beside = self.pieces(&line.beside);
            Some(Placed {
                line,
                pieces,
                beside,
                end,
            })
        });
        let mut placed: Vec<Placed<'_>> = placed.collect();
        placed.sort_by(|a, b| {
            a.end
                .1
                .total_cmp(&b.end.1)
                .then(a.end.0.total_cmp(&b.end.0))
        });
        let wanted: Vec<f64> = placed.iter().map(|line| line.end.1).collect();
        let rows = apart(&wanted, (self.top, self.bottom));
        for (placed, row) in placed.iter().zip(rows) {
            let tip = self.tip(placed.line);
            canvas.of(&placed.line.name, placed.line.look, &tip, |canvas| {
                self.line(canvas, placed);
                self.name(canvas, placed, row);
            });
        }
    }

    fn line(&self, canvas: &mut Canvas, placed: &Placed<'_>) {
        let look = placed.line.look;
        let drawn =
            |piece: &[(At, (f64, f64))]| piece.iter().map(|(at, _)| *at).collect::<Vec<_>>();
        for piece in &placed.beside {
            canvas.line(&drawn(piece), Stroke::Thin);
        }
        for piece in &placed.pieces {
            canvas.line(&drawn(piece), Stroke::Figures(look.dashes()));
        }
        let points: Vec<&(At, (f64, f64))> = placed.pieces.iter().flatten().collect();
        if points.len() > MOST_MARKERS {
            return canvas.marker(placed.end, look, "");
        }
        for (at, (x, y)) in points {
            let (x, y) = (self.lines.across.exactly(*x), self.lines.up.exactly(*y));
            let name = words::printable(&placed.line.name);
            canvas.marker(*at, look, &format!("{name}: {y} at {x}"));
        }
    }

    fn name(&self, canvas: &mut Canvas, placed: &Placed<'_>, row: f64) {
        let ((x, y), look) = (placed.end, placed.line.look);
        let marker = self.right + LEAD - 2.0 * GAP;
        // What ends long before the others, or was moved far, is known by colour and
        // marker: what would lead to it crosses everything.
        if self.right - x < LEAD && (row - y).abs() <= 3.0 * ROW {
            canvas.line(&[(x, y), (marker, row)], Stroke::Thin);
        }
        canvas.marker((marker, row), look, "");
        let name = canvas::fit(&placed.line.name, LABEL, MOST_NAME);
        let at = (self.right + LEAD - GAP, row);
        canvas.text(&name, at, Anchor::Start, LABEL);
    }

    fn tip(&self, line: &Line) -> String {
        let name = words::printable(&line.name);
        if let Some(tip) = &line.tip {
            return format!("{name}: {tip}");
        }
        let heights = || {
            line.points
                .iter()
                .map(|point| point.1)
                .filter(|y| y.is_finite())
        };
        match (heights().reduce(f64::min), heights().reduce(f64::max)) {
            (Some(low), Some(high)) => {
                let (low, high) = (self.lines.up.exactly(low), self.lines.up.exactly(high));
                format!("{name}: {low} to {high}")
            }
            _ => name,
        }
    }
}

/// A plot between two corners: figures along both axes, and what they are.
pub fn frame(canvas: &mut Canvas, (across, up): (&Scale, &Scale), from: At, to: At) {
    let ((left, top), (right, bottom)) = (from, to);
    let (heights, places) = (up.ticks(SMALL), across.ticks(SMALL));
    let guides = heights.iter();
    let guides: Vec<[At; 2]> = guides
        .map(|tick| [(left, tick.at), (right, tick.at)])
        .collect();
    let guides: Vec<&[At]> = guides.iter().map(|line| &line[..]).collect();
    canvas.lines(&guides, Stroke::Grid);
    let base = [(left, bottom), (right, bottom)];
    let marks = places.iter();
    let marks = marks.map(|tick| [(tick.at, bottom), (tick.at, bottom + 4.0)]);
    let marks: Vec<[At; 2]> = std::iter::once(base).chain(marks).collect();
    let marks: Vec<&[At]> = marks.iter().map(|line| &line[..]).collect();
    canvas.lines(&marks, Stroke::Rule);
    canvas.soft(|canvas| {
        for tick in &heights {
            canvas.text(&tick.text, (left - GAP, tick.at), Anchor::End, SMALL);
        }
        for tick in &places {
            let at = (tick.at, bottom + 14.0);
            canvas.text(&tick.text, at, Anchor::Middle, SMALL);
        }
        let title = canvas::fit(&across.title, SMALL, right - left);
        let middle = f64::midpoint(left, right);
        canvas.text(&title, (middle, bottom + 34.0), Anchor::Middle, SMALL);
        let title = canvas::fit(&up.title, SMALL, bottom - top);
        let half = f64::from(SMALL.size) / 2.0;
        canvas.upright(&title, (MARGIN + half, f64::midpoint(top, bottom)), SMALL);
    });
}

/// Heights, sorted, moved until each is a row from the next, within the bounds as
/// far as there is room.
fn apart(wanted: &[f64], (top, bottom): (f64, f64)) -> Vec<f64> {
    let mut places = wanted.to_vec();
    let mut least = top + ROW / 2.0;
    for place in &mut places {
        *place = place.max(least);
        least = *place + ROW;
    }
    let mut most = bottom - ROW / 2.0;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - ROW;
    }
    places
}

/// Of many points the lowest and the highest of each stretch, so that no peak is lost.
fn thinned(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    if points.len() <= most {
        return points.to_vec();
    }
    let stretch = points.len().div_ceil(most / 2);
    let mut kept = Vec::with_capacity(most);
    for stretch in points.chunks(stretch) {
        let by_height = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let lowest = stretch.iter().min_by(by_height);
        let highest = stretch.iter().max_by(by_height);
        let mut both: Vec<(f64, f64)> = lowest.into_iter().chain(highest).copied().collect();
        both.sort_by(|a, b| a.0.total_cmp(&b.0));
        both.dedup();
        kept.extend(both);
    }
    // The name stands where the line ends.
    let last = points.last().filter(|last| kept.last() != Some(last));
    kept.extend(last);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_lines_that_end_together_are_moved_apart_and_stay_within() {
        let places = apart(&[100.0, 100.0, 101.0, 299.0, 300.0], (0.0, 300.0));
        assert!(
            places.windows(2).all(|pair| pair[1] - pair[0] >= ROW),
            "{places:?}"
        );
        assert!(
            places.iter().all(|place| (0.0..=300.0).contains(place)),
            "{places:?}"
        );
        assert_eq!(apart(&[50.0, 200.0], (0.0, 300.0)), [50.0, 200.0]);
    }

    #[test]
    fn thinning_keeps_the_peak_and_the_ends_of_time() {
        let mut points: Vec<(f64, f64)> = (0..10_000).map(|x| (f64::from(x), 1.0)).collect();
        points[7777].1 = 9.0;
        let kept = thinned(&points, MOST_POINTS);
        assert!(kept.len() <= MOST_POINTS + 1, "{}", kept.len());
        assert!(kept.contains(&(7777.0, 9.0)));
        assert_eq!(kept.last(), points.last());
        assert!(kept.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
