//! The colours of Okabe and Ito, "Color Universal Design" (2008), which those who
//! see fewer colours tell apart too, without the yellow that vanishes on white.

use plotters::style::RGBColor;

/// One a line, in turn; lines of the same colour have other markers.
pub const SERIES: [RGBColor; 7] = [
    RGBColor(0x00, 0x72, 0xb2), // blue
    RGBColor(0xd5, 0x5e, 0x00), // vermillion
    RGBColor(0x00, 0x9e, 0x73), // bluish green
    RGBColor(0xe6, 0x9f, 0x00), // orange
    RGBColor(0xcc, 0x79, 0xa7), // reddish purple
    RGBColor(0x56, 0xb4, 0xe9), // sky blue
    RGBColor(0x00, 0x00, 0x00), // black
];
/// Of bars.
pub const BAR: RGBColor = SERIES[0];
/// Of the bar that the others are measured against.
pub const REFERENCE: RGBColor = RGBColor(0x76, 0x76, 0x76);
/// Behind everything.
pub const PAPER: RGBColor = RGBColor(0xff, 0xff, 0xff);
/// Titles, names and values.
pub const INK: RGBColor = RGBColor(0x1f, 0x1f, 0x1f);
/// What explains: subtitles, names of axes, numbers along them.
pub const SOFT_INK: RGBColor = RGBColor(0x55, 0x55, 0x55);
/// Lines that guide the eye.
pub const GRID: RGBColor = RGBColor(0xe2, 0xe2, 0xe2);
