//! The few things that are drawn, in pixels, on an SVG in memory.

use super::words;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, FontTransform};
use thiserror::Error;

/// The drawing library refused.
#[derive(Debug, Error)]
#[error("cannot be drawn: {0}")]
pub struct ChartError(String);

/// Whether something was drawn.
pub type Drawn = Result<(), ChartError>;

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Right and down from the upper left corner.
pub type At = (i32, i32);

/// Which end of a text stands where it is put. Vertically it is always the middle.
#[derive(Clone, Copy, Debug)]
pub enum Anchor {
    /// It goes to the right.
    Start,
    /// It is centred.
    Middle,
    /// It goes to the left.
    End,
}

/// How a text looks.
#[derive(Clone, Copy, Debug)]
pub struct Type {
    /// Height of a line in pixels.
    pub size: i32,
    /// Of the letters.
    pub colour: RGBColor,
    /// Whether it is a title.
    pub is_bold: bool,
}

/// What stands above a picture.
pub const TITLE: Type = Type {
    size: 16,
    colour: super::palette::INK,
    is_bold: true,
};
/// Names and values.
pub const LABEL: Type = Type {
    size: 12,
    colour: super::palette::INK,
    is_bold: false,
};
/// What explains.
pub const SMALL: Type = Type {
    size: 11,
    colour: super::palette::SOFT_INK,
    is_bold: false,
};

/// All pictures are so wide: a README's column, and a phone's turned sideways.
pub const WIDTH: i32 = 860;
/// Left free on every side.
pub const MARGIN: i32 = 16;
/// Where what is below the title and its explanation begins.
const TOP: i32 = 36;
/// From one line of an explanation to the next.
const LINE: i32 = 15;

/// A picture while it is drawn.
pub struct Canvas<'a> {
    area: Area<'a>,
}

/// An explanation in lines that fit.
pub fn folded(about: &str) -> Vec<String> {
    let most = WIDTH - 2 * MARGIN;
    let mut lines: Vec<String> = Vec::new();
    for word in words::printable(about).split(' ') {
        let word = words::fit(word, SMALL.size, most);
        let longer = lines.last().map(|line| format!("{line} {word}"));
        match longer.filter(|line| words::width(line, SMALL.size) <= most) {
            Some(longer) => *lines.last_mut().unwrap_or(&mut String::new()) = longer,
            None => lines.push(word),
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

/// Where the figure begins, below the title and so many lines.
pub fn top(lines: &[String]) -> i32 {
    TOP + LINE * i32::try_from(lines.len()).unwrap_or(0) + 12
}

/// A picture of this height with its title and explanation, and what `draw` adds.
pub fn picture(
    height: i32,
    title: &str,
    about: &[String],
    draw: impl FnOnce(&Canvas<'_>) -> Drawn,
) -> Result<String, ChartError> {
    let mut text = String::new();
    let size = (WIDTH.unsigned_abs(), height.unsigned_abs());
    {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        let canvas = Canvas { area };
        canvas.fill((0, 0), (WIDTH, height), super::palette::PAPER)?;
        let shown = words::fit(title, TITLE.size, (WIDTH - 2 * MARGIN) * 9 / 10);
        canvas.text(&shown, (MARGIN, MARGIN + 6), Anchor::Start, TITLE)?;
        for (index, line) in (0..).zip(about) {
            let at = (MARGIN, TOP + 6 + LINE * index);
            canvas.text(line, at, Anchor::Start, SMALL)?;
        }
        draw(&canvas)?;
        canvas.area.present().map_err(refused)?;
    }
    Ok(described(&text, title, about))
}

/// With a role, a name and a description, which the library does not write.
fn described(svg: &str, title: &str, about: &[String]) -> String {
    let escape = |text: &str| {
        words::printable(text)
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            .replace('"', "&quot;")
    };
    let (title, about) = (escape(title), escape(&about.join(" ")));
    let opened = svg.replacen(
        "<svg ",
        &format!("<svg role=\"img\" aria-label=\"{title}\" "),
        1,
    );
    let named = format!(">\n<title>{title}</title>\n<desc>{about}</desc>\n");
    opened.replacen(">\n", &named, 1)
}

fn refused(error: impl std::fmt::Display) -> ChartError {
    ChartError(error.to_string())
}

impl Canvas<'_> {
    /// A text whose middle is at this height. It is as wide as it is: see [`words::fit`].
    pub fn text(&self, text: &str, at: At, anchor: Anchor, look: Type) -> Drawn {
        self.write(text, at, anchor, look, FontTransform::None)
    }

    /// A text that reads from below.
    pub fn upright(&self, text: &str, at: At, look: Type) -> Drawn {
        self.write(text, at, Anchor::Middle, look, FontTransform::Rotate270)
    }

    fn write(&self, text: &str, at: At, anchor: Anchor, look: Type, turn: FontTransform) -> Drawn {
        let across = match anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        let weight = match look.is_bold {
            true => FontStyle::Bold,
            false => FontStyle::Normal,
        };
        // The library writes a size 1.24 times smaller than it is told.
        let size = f64::from(look.size) * 1.24;
        let font = FontDesc::new(FontFamily::SansSerif, size, weight).transform(turn);
        let style = TextStyle::from(font)
            .color(&look.colour)
            .pos(Pos::new(across, VPos::Center));
        self.area.draw_text(text, &style, at).map_err(refused)
    }

    /// A filled rectangle between two corners.
    pub fn fill(&self, from: At, to: At, colour: RGBColor) -> Drawn {
        let rectangle = Rectangle::new([from, to], colour.filled());
        self.area.draw(&rectangle).map_err(refused)
    }

    /// A line of this width from point to point.
    pub fn line(&self, points: Vec<At>, colour: RGBColor, width: u32) -> Drawn {
        let path = PathElement::new(points, colour.stroke_width(width));
        self.area.draw(&path).map_err(refused)
    }

    /// The marker of the `index`th line: another form for each turn through the colours.
    pub fn marker(&self, (x, y): At, colour: RGBColor, index: usize) -> Drawn {
        let form = index / super::palette::SERIES.len();
        let corners = match form % 4 {
            0 => {
                let circle = Circle::new((x, y), 4, colour.filled());
                return self.area.draw(&circle).map_err(refused);
            }
            1 => vec![
                (x - 4, y - 4),
                (x + 4, y - 4),
                (x + 4, y + 4),
                (x - 4, y + 4),
            ],
            2 => vec![(x, y - 5), (x + 5, y + 4), (x - 5, y + 4)],
            _ => vec![(x, y - 5), (x + 5, y), (x, y + 5), (x - 5, y)],
        };
        self.area
            .draw(&Polygon::new(corners, colour))
            .map_err(refused)
    }
}
