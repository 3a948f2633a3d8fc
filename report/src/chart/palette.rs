//! The colours of Okabe and Ito, "Color Universal Design" (2008), which those who
//! see fewer colours tell apart too, without the yellow that vanishes on white. On a
//! dark page they are lighter, and so is the ink.
//!
//! A picture says its light colours in attributes, which every viewer reads, and its
//! dark ones in [`STYLE`], which is the same text in every picture: where many stand
//! in one page, their rules are one.

/// One a subject, in turn; subjects of the same colour have other markers and dashes.
pub const SERIES: [&str; 7] = [
    "#0072b2", // blue
    "#d55e00", // vermillion
    "#009e73", // bluish green
    "#e69f00", // orange
    "#cc79a7", // reddish purple
    "#56b4e9", // sky blue
    "#000000", // black
];
/// Of what the others are measured against.
pub const REFERENCE: &str = "#767676";
/// Behind everything.
pub const PAPER: &str = "#ffffff";
/// Titles, names and values.
pub const INK: &str = "#1c2126";
/// What explains: subtitles, names of axes, numbers along them.
pub const SOFT_INK: &str = "#56606a";
/// Lines that guide the eye.
pub const GRID: &str = "#dfe2e5";
/// Every second phase.
pub const SHADE: &str = "#f1f3f5";

/// The same on a dark page, and never on printed paper.
pub const STYLE: &str = "@media screen and (prefers-color-scheme:dark){\
.wsb{fill:#e6e9ec}.wsb-ink{stroke:#e6e9ec}.wsb-paper{fill:#191e22}.wsb-soft{fill:#a6b0ba}\
.wsb-grid{stroke:#2f373e}.wsb-rule{stroke:#a6b0ba}.wsb-shade{fill:#222a30}.wsb-halo{stroke:#191e22}\
.wsb-0{color:#4ba3e3}.wsb-1{color:#f07a35}.wsb-2{color:#1fbf8f}.wsb-3{color:#f2b53c}\
.wsb-4{color:#e09cc6}.wsb-5{color:#9bd8ff}.wsb-6{color:#ffffff}.wsb-r{color:#98a2ab}}";

/// How a subject looks in all pictures of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// One of those compared: its place among them.
    Subject(usize),
    /// What they are measured against.
    Reference,
}

impl Look {
    /// The colour on a light page.
    #[must_use]
    pub fn colour(self) -> &'static str {
        match self {
            Look::Subject(index) => SERIES[index % SERIES.len()],
            Look::Reference => REFERENCE,
        }
    }

    /// The rule of [`STYLE`] that is about it.
    #[must_use]
    pub fn class(self) -> String {
        match self {
            Look::Subject(index) => format!("wsb-{}", index % SERIES.len()),
            Look::Reference => "wsb-r".to_owned(),
        }
    }

    /// How often all colours were used before: who has the same colour differs in this.
    #[must_use]
    pub fn turn(self) -> usize {
        match self {
            Look::Subject(index) => index / SERIES.len(),
            Look::Reference => 0,
        }
    }

    /// The dashes of its line.
    #[must_use]
    pub fn dashes(self) -> Option<&'static str> {
        let of_turn = [None, Some("7 3"), Some("2 3"), Some("9 3 2 3")];
        match self {
            Look::Subject(_) => of_turn[self.turn() % of_turn.len()],
            Look::Reference => Some("4 4"),
        }
    }
}
