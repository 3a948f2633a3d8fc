//! A table is data: columns, each a name and what it reads from a row. Markdown
//! and terminal are two ways to print the same [`Grid`].

use crate::row::{Cell, Order, Row};
use crate::section::Section;
use crate::units::Unit;
use wsbench_schema::{Load, Phase};

/// One column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// What stands above it.
    pub name: &'static str,
    /// What it reads from a row.
    pub cell: fn(&Row<'_>) -> Cell,
}

/// What is shown of each subject, and in which order.
#[derive(Clone, Debug)]
pub struct Table {
    /// The file's name, without prefix, suffix and ending.
    pub file: &'static str,
    /// What stands above the table.
    pub title: &'static str,
    /// What the columns are about; a load without it has no such table.
    pub phase: Phase,
    /// What the rows are sorted by.
    pub order: Order,
    /// From left to right; the first is the subject's name.
    pub columns: Vec<Column>,
    /// What the columns mean, a sentence each.
    pub definitions: &'static [&'static str],
    /// What stands under it, a line each.
    pub notes: fn(&[Row<'_>]) -> Vec<String>,
}

/// The names of columns.
#[must_use]
pub fn header(columns: &[Column]) -> Vec<String> {
    let names = columns.iter().map(|column| column.name.to_owned());
    names.collect()
}

/// A table filled with the rows of a section.
#[derive(Clone, Debug)]
pub struct Grid {
    /// What it is called where titles are too long, in all reports: the name of a file
    /// or a sheet, or a part of one. Small letters, digits and `-`.
    pub file: String,
    /// What stands above it; our own words.
    pub title: String,
    /// Columns from the left that name a row; the others hold what is known of it.
    pub names: usize,
    /// The names of the columns.
    pub header: Vec<String>,
    /// From top to bottom.
    pub rows: Vec<Line>,
    /// What stands under it, a line each.
    pub notes: Vec<String>,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Whose figures these are, without what the first cell may say beside the name;
    /// `None` where a row is about something else, as about a load.
    pub subject: Option<String>,
    /// As many as the table has columns.
    pub cells: Vec<Cell>,
}

impl Line {
    /// A row of what was measured of one subject.
    #[must_use]
    pub fn of(subject: &str, cells: Vec<Cell>) -> Self {
        Self {
            subject: Some(subject.to_owned()),
            cells,
        }
    }
}

impl Grid {
    /// The unit of a column's figures; none if it has no figures, or of several units.
    #[must_use]
    pub fn unit(&self, column: usize) -> Option<Unit> {
        let cells = self.rows.iter().filter_map(|row| row.cells.get(column));
        let mut units = cells.filter_map(Cell::unit);
        let first = units.next()?;
        units.all(|unit| unit == first).then_some(first)
    }

    /// Columns from the left that are names in words, and read from their left.
    #[must_use]
    pub fn words(&self) -> usize {
        let is_text = |column: usize| {
            let mut cells = self.rows.iter().filter_map(|row| row.cells.get(column));
            column == 0 || cells.all(|cell| matches!(cell, Cell::Text(_)))
        };
        (0..self.names)
            .take_while(|column| is_text(*column))
            .count()
    }
}

impl Table {
    /// Whether the load has the phase that this table is about.
    #[must_use]
    pub fn applies_to(&self, load: &Load) -> bool {
        match self.phase {
            Phase::Connect => true,
            Phase::Warmup | Phase::Echo => load.echo.is_some(),
            Phase::Rate => load.rate.is_some(),
            Phase::Bulk => load.bulk.is_some(),
            Phase::Release => load.release.is_some(),
        }
    }

    /// Fills the table with the subjects of a section.
    #[must_use]
    pub fn fill(&self, section: &Section) -> Grid {
        let rows = Row::all(section, self.phase, self.order);
        Grid {
            file: self.file.to_owned(),
            title: self.title.to_owned(),
            names: 1,
            header: header(&self.columns),
            rows: rows.iter().map(|row| line(&self.columns, row, 1)).collect(),
            notes: (self.notes)(&rows),
        }
    }
}

/// What the columns read from a row, of which the first `names` say what it is.
#[must_use]
pub fn line(columns: &[Column], row: &Row<'_>, names: usize) -> Line {
    let mut cells: Vec<Cell> = columns.iter().map(|column| (column.cell)(row)).collect();
    // The reason takes the place of the first figure, and what is known of the load
    // alone is not repeated beside it. How far a round came before it failed is known,
    // if anything is.
    if let Some(failure) = row.failure() {
        let is_kept = |cell: &Cell| matches!(cell, Cell::Text(_) | Cell::Part(..));
        for cell in cells.iter_mut().skip(names).filter(|cell| !is_kept(cell)) {
            *cell = Cell::Missing;
        }
        if let Some(first) = cells.get_mut(names) {
            *first = failure;
        }
    }
    Line::of(&row.subject.name, cells)
}
