//! Pictures: figures in, the text of an SVG file out.
//!
//! A [`Chart`] is data, as a table is: who makes one knows records and nothing of
//! pixels, and who draws one knows nothing of records. A new kind of picture is a
//! file here and a line in [`Figure`].
//!
//! Every picture has a background of its own, so that it reads on a light page as
//! on a dark one, colours that the colour-blind can tell apart ([`palette`]), one
//! generic font, a title for those who do not see it, and no text upon another.

pub mod axis;
pub mod bars;
mod canvas;
pub mod lines;
pub mod palette;
mod words;

#[cfg(test)]
mod tests;

pub use axis::{Axis, Spacing};
pub use bars::{Bar, Bars};
pub use canvas::ChartError;
pub use lines::{Line, Lines};
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
}

impl Chart {
    /// The picture as the text of an SVG file. Names may hold anything.
    ///
    /// # Errors
    /// If the drawing library refuses, which it does not for an SVG in memory.
    pub fn svg(&self) -> Result<String, ChartError> {
        let (title, about) = (&self.title, &self.about);
        match &self.figure {
            Figure::Bars(bars) => bars::draw(title, about, bars),
            Figure::Lines(lines) => lines::draw(title, about, lines),
        }
    }
}
