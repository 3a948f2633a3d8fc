//! A line for each subject, named at its right end: no legend to look up, and a
//! picture with more lines is higher.

use super::axis::{Axis, Scale};
use super::canvas::{self, Anchor, Canvas, ChartError, Drawn, LABEL, MARGIN, SMALL, WIDTH};
use super::{palette, words};

/// Lines over a common pair of axes.
#[derive(Clone, Debug)]
pub struct Lines {
    /// From left to right.
    pub across: Axis,
    /// From the bottom up.
    pub up: Axis,
    /// Their order decides their colours.
    pub lines: Vec<Line>,
}

/// One line.
#[derive(Clone, Debug)]
pub struct Line {
    /// Whose. Hostile input: it is cut to its room and escaped.
    pub name: String,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
}

const PLOT: i32 = 300;
/// From one name to the next.
const ROW: i32 = 17;
/// Of the column of names, at most.
const MOST_NAME: i32 = 180;
/// Between the plot and the names: room for what leads from the one to the other.
const LEAD: i32 = 34;
/// Left of the plot: the name of the axis.
const AXIS_NAME: i32 = 20;
const FOOT: i32 = 48;
const GAP: i32 = 8;
/// With more points than these a line has a marker at its end alone.
const MOST_MARKERS: usize = 12;
/// More points than these are thinned: there are no more pixels.
const MOST_POINTS: usize = 600;

/// Draws them.
pub fn draw(title: &str, about: &str, lines: &Lines) -> Result<String, ChartError> {
    let about = canvas::folded(about);
    let top = canvas::top(&about);
    let rows = i32::try_from(lines.lines.len()).unwrap_or(i32::MAX / ROW / 2);
    let bottom = top + PLOT.max(ROW * rows);
    canvas::picture(bottom + FOOT, title, &about, |canvas| {
        let plot = Plot::new(lines, top, bottom);
        plot.axes(canvas)?;
        let mut ends = Vec::new();
        for (index, line) in lines.lines.iter().enumerate() {
            let end = plot.line(canvas, line, index)?;
            ends.extend(end.map(|at| (at, index)));
        }
        plot.names(canvas, ends)
    })
}

struct Plot<'a> {
    lines: &'a Lines,
    across: Scale,
    up: Scale,
    left: i32,
    right: i32,
    top: i32,
    bottom: i32,
}

impl<'a> Plot<'a> {
    fn new(lines: &'a Lines, top: i32, bottom: i32) -> Self {
        let points = || lines.lines.iter().flat_map(|line| line.points.iter());
        let up = Scale::new(&lines.up, points().map(|point| point.1), (bottom, top));
        let figures = up.ticks(SMALL.size).into_iter();
        let figures = figures.map(|tick| words::width(&tick.text, SMALL.size));
        let names = lines.lines.iter().map(|line| words::printable(&line.name));
        let names = names.map(|name| words::width(&name, LABEL.size));
        let left = MARGIN + AXIS_NAME + figures.max().unwrap_or(0) + GAP;
        let right = WIDTH - MARGIN - names.max().unwrap_or(0).min(MOST_NAME) - LEAD;
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

    fn axes(&self, canvas: &Canvas<'_>) -> Drawn {
        for tick in self.up.ticks(SMALL.size) {
            let line = vec![(self.left, tick.at), (self.right, tick.at)];
            canvas.line(line, palette::GRID, 1)?;
            canvas.text(&tick.text, (self.left - GAP, tick.at), Anchor::End, SMALL)?;
        }
        for tick in self.across.ticks(SMALL.size) {
            let line = vec![(tick.at, self.bottom), (tick.at, self.bottom + 4)];
            canvas.line(line, palette::SOFT_INK, 1)?;
            let at = (tick.at, self.bottom + 14);
            canvas.text(&tick.text, at, Anchor::Middle, SMALL)?;
        }
        let corners = vec![(self.left, self.bottom), (self.right, self.bottom)];
        canvas.line(corners, palette::SOFT_INK, 1)?;
        let (middle, width) = ((self.left + self.right) / 2, self.right - self.left);
        let title = words::fit(&self.across.title, SMALL.size, width);
        canvas.text(&title, (middle, self.bottom + 34), Anchor::Middle, SMALL)?;
        let (middle, height) = ((self.top + self.bottom) / 2, self.bottom - self.top);
        let title = words::fit(&self.up.title, SMALL.size, height);
        canvas.upright(&title, (MARGIN + SMALL.size / 2, middle), SMALL)
    }

    /// Draws one and says where it ends; `None` if nothing of it has a place.
    fn line(
        &self,
        canvas: &Canvas<'_>,
        line: &Line,
        index: usize,
    ) -> Result<Option<canvas::At>, ChartError> {
        let place = |(x, y): &(f64, f64)| Some((self.across.at(*x)?, self.up.at(*y)?));
        let points: Vec<canvas::At> = thinned(&line.points).iter().filter_map(place).collect();
        let Some(&end) = points.last() else {
            return Ok(None);
        };
        let colour = colour(index);
        let marked = match points.len() <= MOST_MARKERS {
            true => points.clone(),
            false => vec![end],
        };
        canvas.line(points, colour, 2)?;
        for at in marked {
            canvas.marker(at, colour, index)?;
        }
        Ok(Some(end))
    }

    /// The names beside the ends of their lines, moved apart where lines end
    /// together.
    fn names(&self, canvas: &Canvas<'_>, mut ends: Vec<(canvas::At, usize)>) -> Drawn {
        ends.sort();
        ends.sort_by_key(|((_, y), _)| *y);
        let wanted: Vec<i32> = ends.iter().map(|((_, y), _)| *y).collect();
        let places = apart(&wanted, (self.top, self.bottom));
        for (((x, y), index), place) in ends.into_iter().zip(places) {
            let colour = colour(index);
            let marker = self.right + LEAD - 2 * GAP;
            // What ends long before the others, or was moved far, is known by colour and
            // marker: what would lead to it crosses everything.
            if self.right - x < LEAD && (place - y).abs() <= 3 * ROW {
                canvas.line(vec![(x, y), (marker, place)], colour, 1)?;
            }
            canvas.marker((marker, place), colour, index)?;
            let name = words::fit(&self.lines.lines[index].name, LABEL.size, MOST_NAME);
            canvas.text(
                &name,
                (self.right + LEAD - GAP, place),
                Anchor::Start,
                LABEL,
            )?;
        }
        Ok(())
    }
}

fn colour(index: usize) -> plotters::style::RGBColor {
    palette::SERIES[index % palette::SERIES.len()]
}

/// Heights, sorted, moved until each is a row from the next, within the bounds as
/// far as there is room.
fn apart(wanted: &[i32], (top, bottom): (i32, i32)) -> Vec<i32> {
    let mut places = wanted.to_vec();
    let mut least = top + ROW / 2;
    for place in &mut places {
        *place = (*place).max(least);
        least = *place + ROW;
    }
    let mut most = bottom - ROW / 2;
    for place in places.iter_mut().rev() {
        *place = (*place).min(most);
        most = *place - ROW;
    }
    places
}

/// Of many points the lowest and the highest of each stretch, so that no peak is lost.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if points.len() <= MOST_POINTS {
        return points.to_vec();
    }
    let stretch = points.len().div_ceil(MOST_POINTS / 2);
    let mut kept = Vec::with_capacity(MOST_POINTS);
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
        let places = apart(&[100, 100, 101, 299, 300], (0, 300));
        assert!(
            places.windows(2).all(|pair| pair[1] - pair[0] >= ROW),
            "{places:?}"
        );
        assert!(
            places.iter().all(|place| (0..=300).contains(place)),
            "{places:?}"
        );
        assert_eq!(apart(&[50, 200], (0, 300)), [50, 200]);
    }

    #[test]
    fn thinning_keeps_the_peak_and_the_ends_of_time() {
        let mut points: Vec<(f64, f64)> = (0..10_000).map(|x| (f64::from(x), 1.0)).collect();
        points[7777].1 = 9.0;
        let kept = thinned(&points);
        assert!(kept.len() <= MOST_POINTS + 1, "{}", kept.len());
        assert!(kept.contains(&(7777.0, 9.0)));
        assert_eq!(kept.last(), points.last());
        assert!(kept.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
