//! Pictures: figures in, the text of an SVG file out.
//!
//! A [`Chart`] is data, as a table is: who makes one knows records and nothing of
//! pixels, and who draws one knows nothing of records. A new kind of picture is a
//! file here and a line in [`Figure`].
//!
//! Every picture has a background of its own and colours that the colour-blind can
//! tell apart ([`palette`]), which follow the reader's light or dark scheme in a file
//! of its own as in a page; one generic font, a title for those who do not see it, and
//! no text upon another. What is of a subject is a group with `data-subject` and a
//! `<title>` that tells its figures.

pub mod axis;
pub mod bars;
mod canvas;
pub mod dots;
pub mod lines;
pub mod palette;
mod words;

#[cfg(test)]
mod tests;

pub(crate) use axis::percentile;
pub use axis::{Axis, Band, Spacing};
pub use bars::{Bar, Bars};
pub use dots::{Dot, Dots};
pub use lines::{Line, Lines};
pub use palette::Look;
pub(crate) use words::printable;

/// One picture.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The file's name, without prefix, suffix and ending.
    pub file: String,
    /// What it shows.
    pub title: String,
    /// How to read it: what a bar or a line is, and what its whiskers are.
    pub about: String,
    /// The figures.
    pub figure: Figure,
}

/// What is drawn.
#[derive(Clone, Debug)]
pub enum Figure {
    /// A bar for each subject.
    Bars(Bars),
    /// A line for each subject, over time or over another quantity.
    Lines(Lines),
    /// A point for each subject, between two quantities.
    Dots(Dots),
}

impl Chart {
    /// The picture as the text of an SVG file. Names may hold anything.
    #[must_use]
    pub fn svg(&self) -> String {
        let (title, about) = (&self.title, &self.about);
        match &self.figure {
            Figure::Bars(bars) => bars::draw(title, about, bars),
            Figure::Lines(lines) => lines::draw(title, about, lines),
            Figure::Dots(dots) => dots::draw(title, about, dots),
        }
    }

    /// The picture for a page that has [`palette::STYLE`] in its own style: once, for all
    /// pictures in it.
    #[must_use]
    pub fn svg_without_style(&self) -> String {
        let style = canvas::style();
        self.svg().replacen(&style, "", 1)
    }
}
