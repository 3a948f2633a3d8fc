//! The few things that are drawn, in pixels, as the text of an SVG file.

use super::palette::{self, Look};
use super::words;
pub(super) use crate::units::count;
use std::fmt::Write as _;

/// Right and down from the upper left corner.
pub type At = (f64, f64);

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
    /// Whether it explains and is no name or value.
    pub is_soft: bool,
    /// Whether it is a title.
    pub is_bold: bool,
}

/// What stands above a picture.
pub const TITLE: Type = Type {
    size: 16,
    is_soft: false,
    is_bold: true,
};
/// Names and values.
pub const LABEL: Type = Type {
    size: 12,
    is_soft: false,
    is_bold: false,
};
/// What explains.
pub const SMALL: Type = Type {
    size: 11,
    is_soft: true,
    is_bold: false,
};

/// What a line is for.
#[derive(Clone, Copy, Debug)]
pub enum Stroke {
    /// It guides the eye.
    Grid,
    /// An axis.
    Rule,
    /// How far rounds lie apart.
    Whisker,
    /// The figures themselves, in the colour of whose they are.
    Figures(Option<&'static str>),
    /// The same, and less of it.
    Thin,
}

/// All pictures are so wide: a README's column, and a phone's turned sideways.
pub const WIDTH: f64 = 860.0;
/// Left free on every side.
pub const MARGIN: f64 = 16.0;
/// Where what is below the title and its explanation begins.
const TOP: f64 = 36.0;
/// From one line of an explanation to the next.
const LINE: f64 = 15.0;
/// The baseline is so much of a text's size below its middle.
pub const BASELINE: f64 = 0.35;

/// Pixels that a text takes at most.
pub fn width(text: &str, look: Type) -> f64 {
    f64::from(words::width(text, look.size))
}

/// As much of a text as is no wider.
pub fn fit(text: &str, look: Type, most: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "pixels of a picture")]
    let most = most.max(0.0) as i32;
    words::fit(text, look.size, most)
}

/// An explanation in lines that fit.
pub fn folded(about: &str) -> Vec<String> {
    let most = WIDTH - 2.0 * MARGIN;
    let mut lines: Vec<String> = Vec::new();
    for word in words::printable(about).split(' ') {
        let word = fit(word, SMALL, most);
        let longer = lines.last().map(|line| format!("{line} {word}"));
        match longer.filter(|line| width(line, SMALL) <= most) {
            Some(longer) => *lines.last_mut().unwrap_or(&mut String::new()) = longer,
            None => lines.push(word),
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

/// Where the figure begins, below the title and so many lines.
pub fn top(lines: &[String]) -> f64 {
    TOP + LINE * count(lines.len()) + 12.0
}

/// With one digit behind the point, and none where it is a zero: a tenth of a pixel.
fn pixels(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

fn escaped(text: &str) -> String {
    words::printable(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// What makes a picture dark where the reader wants it so.
pub fn style() -> String {
    format!("<style>{}</style>\n", palette::STYLE)
}

/// A picture while it is drawn.
pub struct Canvas {
    svg: String,
    /// Whether what is written now stands in a group that says how it looks.
    is_soft: bool,
}

/// A picture of this height with its title and explanation, and what `draw` adds.
pub fn picture(
    height: f64,
    title: &str,
    about: &[String],
    draw: impl FnOnce(&mut Canvas),
) -> String {
    let (named, told) = (escaped(title), escaped(&about.join(" ")));
    let (wide, high) = (pixels(WIDTH), pixels(height));
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"{named}\" class=\"wsb\" \
         width=\"{wide}\" height=\"{high}\" viewBox=\"0 0 {wide} {high}\" font-family=\"sans-serif\" \
         font-size=\"{}\" fill=\"{}\">\n<title>{named}</title>\n<desc>{told}</desc>\n\
         {}\
         <rect class=\"wsb-paper\" width=\"{wide}\" height=\"{high}\" fill=\"{}\"/>\n",
        LABEL.size,
        palette::INK,
        style(),
        palette::PAPER,
    );
    let mut canvas = Canvas {
        svg,
        is_soft: false,
    };
    let shown = fit(title, TITLE, (WIDTH - 2.0 * MARGIN) * 0.9);
    canvas.text(&shown, (MARGIN, MARGIN + 6.0), Anchor::Start, TITLE);
    canvas.soft(|canvas| {
        let mut at = (MARGIN, TOP + 6.0);
        for line in about {
            canvas.text(line, at, Anchor::Start, SMALL);
            at.1 += LINE;
        }
    });
    draw(&mut canvas);
    canvas.svg.push_str("</svg>\n");
    canvas.svg
}

impl Canvas {
    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        // A text in memory takes everything.
        let _ = self.svg.write_fmt(text);
    }

    /// What is of one subject, in its colour, with what is shown under the pointer.
    pub fn of(&mut self, subject: &str, look: Look, tip: &str, draw: impl FnOnce(&mut Self)) {
        self.write(format_args!(
            "<g data-subject=\"{}\" class=\"{}\" color=\"{}\"><title>{}</title>\n",
            escaped(subject),
            look.class(),
            look.colour(),
            escaped(tip),
        ));
        draw(self);
        self.svg.push_str("</g>\n");
    }

    /// Texts that explain, which say once how they look.
    pub fn soft(&mut self, draw: impl FnOnce(&mut Self)) {
        self.write(format_args!(
            "<g class=\"wsb-soft\" fill=\"{}\" font-size=\"{}\">\n",
            palette::SOFT_INK,
            SMALL.size
        ));
        self.is_soft = true;
        draw(self);
        self.is_soft = false;
        self.svg.push_str("</g>\n");
    }

    /// A text whose middle is at this height. It is as wide as it is: see [`fit`].
    pub fn text(&mut self, text: &str, (x, y): At, anchor: Anchor, look: Type) {
        let place = format!(
            "x=\"{}\" y=\"{}\"",
            pixels(x),
            pixels(y + BASELINE * f64::from(look.size))
        );
        self.letters(text, &place, anchor, look);
    }

    /// A text that reads from below.
    pub fn upright(&mut self, text: &str, (x, y): At, look: Type) {
        let x = pixels(x + BASELINE * f64::from(look.size));
        let y = pixels(y);
        let place = format!("x=\"{x}\" y=\"{y}\" transform=\"rotate(270 {x} {y})\"");
        self.letters(text, &place, Anchor::Middle, look);
    }

    fn letters(&mut self, text: &str, place: &str, anchor: Anchor, look: Type) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let weight = if look.is_bold {
            " font-weight=\"bold\""
        } else {
            ""
        };
        let is_said = self.is_soft && look.is_soft && look.size == SMALL.size;
        let size = match look.size {
            size if is_said || size == LABEL.size => String::new(),
            size => format!(" font-size=\"{size}\""),
        };
        let soft = match look.is_soft && !is_said {
            true => format!(" class=\"wsb-soft\" fill=\"{}\"", palette::SOFT_INK),
            false => String::new(),
        };
        self.write(format_args!(
            "<text {place}{anchor}{size}{weight}{soft}>{}</text>\n",
            escaped(text)
        ));
    }

    /// A rectangle between two corners, in the colour of whose it is.
    pub fn bar(&mut self, from: At, to: At) {
        self.rectangle(from, to, "fill=\"currentColor\"");
    }

    /// A rectangle behind what is drawn later.
    pub fn shade(&mut self, from: At, to: At) {
        let fill = format!("class=\"wsb-shade\" fill=\"{}\"", palette::SHADE);
        self.rectangle(from, to, &fill);
    }

    fn rectangle(&mut self, from: At, to: At, fill: &str) {
        self.write(format_args!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {fill}/>\n",
            pixels(from.0),
            pixels(from.1),
            pixels((to.0 - from.0).max(0.0)),
            pixels((to.1 - from.1).max(0.0)),
        ));
    }

    /// A line from point to point.
    pub fn line(&mut self, points: &[At], stroke: Stroke) {
        self.lines(&[points], stroke);
    }

    /// Several lines that look the same.
    pub fn lines(&mut self, lines: &[&[At]], stroke: Stroke) {
        let look = match stroke {
            Stroke::Grid => format!("class=\"wsb-grid\" stroke=\"{}\"", palette::GRID),
            Stroke::Rule => format!("class=\"wsb-rule\" stroke=\"{}\"", palette::SOFT_INK),
            Stroke::Whisker => format!("class=\"wsb-ink\" stroke=\"{}\"", palette::INK),
            Stroke::Figures(None) => "stroke=\"currentColor\" stroke-width=\"2\"".to_owned(),
            Stroke::Figures(Some(dashes)) => {
                format!("stroke=\"currentColor\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"")
            }
            Stroke::Thin => "stroke=\"currentColor\"".to_owned(),
        };
        let mut path = String::new();
        for points in lines {
            for (index, (x, y)) in points.iter().enumerate() {
                let step = if index == 0 { 'M' } else { 'L' };
                let _ = write!(path, "{step}{} {}", pixels(*x), pixels(*y));
            }
        }
        if path.is_empty() {
            return;
        }
        self.write(format_args!("<path d=\"{path}\" fill=\"none\" {look}/>\n"));
    }

    /// A subject's marker: another form for each turn through the colours. `tip` is
    /// shown under the pointer, if it is not empty.
    pub fn marker(&mut self, (x, y): At, look: Look, tip: &str) {
        let tip = match tip {
            "" => String::new(),
            tip => format!("<title>{}</title>", escaped(tip)),
        };
        let (x, y) = (pixels(x), pixels(y));
        // Around the point, clockwise.
        let form = match look {
            Look::Reference => "m-4 -4l8 8m0 -8l-8 8",
            Look::Subject(_) => match look.turn() % 6 {
                0 => {
                    return self.write(format_args!(
                        "<circle cx=\"{x}\" cy=\"{y}\" r=\"4\" fill=\"currentColor\">{tip}</circle>\n"
                    ));
                }
                1 => "m-4 -4h8v8h-8z",
                2 => "m0 -5l5 9h-10z",
                3 => "m0 -5.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z",
                4 => "m0 5l5 -9h-10z",
                _ => "m-1.5 -5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5v-3h3.5z",
            },
        };
        let paint = match look {
            Look::Reference => "fill=\"none\" stroke=\"currentColor\" stroke-width=\"2.5\"",
            Look::Subject(_) => "fill=\"currentColor\"",
        };
        self.write(format_args!(
            "<path d=\"M{x} {y}{form}\" {paint}>{tip}</path>\n"
        ));
    }
}
