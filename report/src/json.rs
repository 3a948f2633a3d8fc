//! The whole report for other programs: what [`crate::document`] holds, as it is, every
//! figure exact and in its base unit, with the text that the other formats show.

use crate::document::{Attachment, Block, Document, Log, Part, PartKind, row_ids};
use crate::files::Names;
use crate::row::{Cell, Place};
use crate::table::Grid;
use crate::text;
use crate::units::Unit;
use serde::Serialize;

/// Of the file. A reader refuses one that it does not know: what is renamed, removed or
/// changes its meaning makes a new one, what is added does not.
pub const FORMAT: u32 = 1;

#[derive(Serialize)]
struct File<'a> {
    format: u32,
    suite: &'a str,
    run: &'a str,
    warnings: &'a [String],
    facts: Vec<Fact<'a>>,
    commands: &'a [String],
    parts: Vec<Chapter<'a>>,
    files: Vec<Beside<'a>>,
}

#[derive(Serialize)]
struct Fact<'a> {
    name: &'a str,
    value: &'a str,
}

#[derive(Serialize)]
struct Chapter<'a> {
    id: &'a str,
    title: &'a str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<&'a str>,
    blocks: Vec<Piece<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece<'a> {
    Paragraph {
        text: &'a str,
    },
    List {
        items: Vec<Entry<'a>>,
    },
    Table(Table<'a>),
    Absent {
        table: &'a str,
        title: &'a str,
        reason: &'a str,
    },
    Picture {
        title: &'a str,
        about: &'a str,
        file: String,
    },
    Definitions {
        table: &'a str,
        title: &'a str,
        lines: &'a [String],
    },
    Log {
        subject: &'a str,
        load: &'a str,
        round: u32,
        lines: &'a [String],
        is_cut: bool,
    },
    File(Beside<'a>),
}

#[derive(Serialize)]
struct Entry<'a> {
    title: &'a str,
    lines: &'a [String],
}

#[derive(Serialize)]
struct Beside<'a> {
    title: &'a str,
    file: String,
    subject: Option<&'a str>,
    load: Option<&'a str>,
}

#[derive(Serialize)]
struct Table<'a> {
    id: String,
    table: &'a str,
    title: &'a str,
    /// Columns from the left that name a row.
    names: usize,
    columns: Vec<Column<'a>>,
    rows: Vec<Row<'a>>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct Column<'a> {
    name: &'a str,
    /// Of all its figures; empty if they are plain numbers, or of several units.
    unit: &'static str,
}

#[derive(Serialize)]
struct Row<'a> {
    id: String,
    subject: Option<&'a str>,
    cells: Vec<Field>,
}

#[derive(Serialize)]
struct Field {
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    figures: Vec<Figure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<&'static str>,
}

#[derive(Serialize)]
struct Figure {
    #[serde(skip_serializing_if = "str::is_empty")]
    part: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high: Option<f64>,
    unit: &'static str,
}

/// All of it, and a line break.
///
/// # Panics
/// Never: all of it is valid JSON.
#[must_use]
pub fn document(document: &Document, names: &Names<'_>) -> String {
    let facts = document.facts.iter();
    let suite = document.suite.to_string();
    let file = File {
        format: FORMAT,
        suite: &suite,
        run: &document.run,
        warnings: &document.warnings,
        facts: facts.map(|(name, value)| Fact { name, value }).collect(),
        commands: &document.commands,
        parts: (document.parts.iter())
            .map(|part| chapter(part, names))
            .collect(),
        files: (document.files.iter())
            .map(|file| beside(file, names))
            .collect(),
    };
    let mut text = serde_json::to_string(&file).expect("a report is valid JSON");
    text.push('\n');
    text
}

fn chapter<'a>(part: &'a Part, names: &Names<'_>) -> Chapter<'a> {
    Chapter {
        id: &part.id,
        title: &part.title,
        kind: match part.kind {
            PartKind::Answer { .. } => "answer",
            PartKind::Across => "across",
            PartKind::Load { .. } => "load",
            PartKind::Verification => "verification",
            PartKind::Logs => "logs",
            PartKind::Files => "files",
            PartKind::Definitions => "definitions",
        },
        load: part.load_hash(),
        blocks: (part.blocks.iter())
            .map(|block| piece(part, block, names))
            .collect(),
    }
}

fn piece<'a>(part: &'a Part, block: &'a Block, names: &Names<'_>) -> Piece<'a> {
    match block {
        Block::Paragraph(text) => Piece::Paragraph { text },
        Block::List(items) => Piece::List {
            items: (items.iter())
                .map(|item| Entry {
                    title: &item.title,
                    lines: &item.lines,
                })
                .collect(),
        },
        Block::Grid(grid) => Piece::Table(table(part, grid)),
        Block::Absent {
            file,
            title,
            reason,
            ..
        } => Piece::Absent {
            table: file,
            title,
            reason,
        },
        Block::Chart(chart) => Piece::Picture {
            title: &chart.title,
            about: &chart.about,
            file: names.link(chart),
        },
        Block::Definitions { file, title, lines } => Piece::Definitions {
            table: file,
            title,
            lines,
        },
        Block::Log(Log {
            subject,
            load_hash,
            round,
            lines,
            is_cut,
        }) => Piece::Log {
            subject,
            load: load_hash,
            round: *round,
            lines,
            is_cut: *is_cut,
        },
        Block::File(file) => Piece::File(beside(file, names)),
    }
}

fn beside<'a>(file: &'a Attachment, names: &Names<'_>) -> Beside<'a> {
    Beside {
        title: &file.title,
        file: names.path(&names.attachment(file)),
        subject: file.subject.as_deref(),
        load: file.load_hash.as_deref(),
    }
}

fn table<'a>(part: &Part, grid: &'a Grid) -> Table<'a> {
    let id = part.grid_id(grid);
    let columns = grid.header.iter().enumerate().map(|(index, name)| Column {
        name,
        unit: grid.unit(index).map_or("", Unit::base),
    });
    let rows = grid
        .rows
        .iter()
        .zip(row_ids(&id, grid))
        .map(|(row, id)| Row {
            id,
            subject: row.subject.as_deref(),
            cells: row.cells.iter().map(field).collect(),
        });
    Table {
        table: &grid.file,
        title: &grid.title,
        names: grid.names,
        columns: columns.collect(),
        rows: rows.collect(),
        notes: &grid.notes,
        id,
    }
}

fn field(cell: &Cell) -> Field {
    let figures = cell.figures().into_iter();
    let figures = figures.filter_map(|figure| {
        Some(Figure {
            part: figure.part,
            value: figure.value,
            low: figure.low,
            high: figure.high,
            unit: figure.unit?.base(),
        })
    });
    Field {
        text: text::cell(cell),
        figures: figures.collect(),
        place: match cell {
            Cell::Placed(_, _, Place::First) => Some("first"),
            Cell::Placed(_, _, Place::NotShown) => Some("not shown to be behind the first"),
            Cell::Placed(_, _, Place::TooFewRounds) => Some("too few rounds"),
            Cell::Placed(_, _, Place::Behind) => Some("behind the first"),
            _ => None,
        },
    }
}
