//! The report as markdown that also reads well as it is.

use crate::document::{Block, Document, Log, Part, PartKind};
use crate::files::Names;
use crate::row::{Cell, Place};
use crate::table::{Grid, Table};
use crate::text;
use std::fmt::Write as _;

/// All of it.
#[must_use]
pub fn document(document: &Document, names: &Names<'_>) -> String {
    let mut out = heading("Report", document);
    for part in &document.parts {
        chapter(&mut out, part, part.blocks.iter().filter(is_told), names);
    }
    out
}

/// One table under each load.
#[must_use]
pub fn single(document: &Document, table: &Table, names: &Names<'_>) -> String {
    let mut out = heading(table.title, document);
    let is_of_table = |block: &&Block| match block {
        Block::Grid(grid) => grid.file == table.file,
        Block::Absent { file, .. } | Block::Definitions { file, .. } => file == table.file,
        Block::List(_) => true,
        _ => false,
    };
    for part in &document.parts {
        if matches!(part.kind, PartKind::Load { .. } | PartKind::Definitions) {
            let mut blocks = part.blocks.iter().filter(is_of_table).peekable();
            if blocks.peek().is_some() {
                chapter(&mut out, part, blocks, names);
            }
        }
    }
    out
}

fn is_told(block: &&Block) -> bool {
    !matches!(
        block,
        Block::Absent {
            is_silent: true,
            ..
        }
    )
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// A line with an empty one above it.
fn paragraph(out: &mut String, text: &str) {
    out.push('\n');
    line(out, text);
}

/// Title, warnings and facts.
pub(crate) fn heading(title: &str, document: &Document) -> String {
    let run = text::markdown(&document.run);
    let mut out = format!("# {title}: run {run}\n");
    for warning in &document.warnings {
        paragraph(&mut out, &format!("> **{}**", text::markdown(warning)));
    }
    out.push('\n');
    for (name, value) in &document.facts {
        line(&mut out, &format!("- {name}: {}", text::markdown(value)));
    }
    if !document.commands.is_empty() {
        paragraph(&mut out, "To do it again:\n");
        for command in &document.commands {
            line(&mut out, &format!("    {}", text::one_line(command)));
        }
    }
    out
}

fn chapter<'a>(
    out: &mut String,
    part: &Part,
    blocks: impl Iterator<Item = &'a Block>,
    names: &Names<'_>,
) {
    paragraph(out, &format!("## {}", part.title));
    let mut is_in_list = false;
    for block in blocks {
        let follows = std::mem::replace(&mut is_in_list, matches!(block, Block::File(_)));
        if !(follows && is_in_list) {
            out.push('\n');
        }
        match block {
            Block::Paragraph(text) => line(out, text),
            Block::List(items) => {
                for item in items {
                    line(out, &format!("- {}", text::markdown(&item.title)));
                    for part in &item.lines {
                        line(out, &format!("  - {}", text::markdown(part)));
                    }
                }
            }
            Block::Grid(found) => {
                if let Some(title) = part.heading_of(&found.title) {
                    line(out, &format!("### {title}\n"));
                }
                grid(out, found);
            }
            Block::Absent { title, reason, .. } => line(out, &format!("### {title}\n\n{reason}")),
            Block::Chart(chart) => {
                let title = text::markdown(&chart.title);
                line(out, &format!("![{title}]({})", names.link(chart)));
            }
            Block::Definitions { title, lines, .. } => {
                line(out, &format!("### {title}\n"));
                for definition in lines {
                    line(out, &format!("- {definition}"));
                }
            }
            Block::Log(found) => log(out, found),
            Block::File(file) => {
                let title = text::markdown(&file.title);
                line(
                    out,
                    &format!("- [{title}]({})", names.path(&names.attachment(file))),
                );
            }
        }
    }
}

fn log(out: &mut String, log: &Log) {
    let subject = text::markdown(&log.subject);
    line(
        out,
        &format!(
            "### {subject}, round {}, load {}\n",
            log.round, log.load_hash
        ),
    );
    if log.is_cut {
        line(out, "    (lines before these are left out)");
    }
    for written in &log.lines {
        line(out, &format!("    {}", text::one_line(written)));
    }
}

/// A cell that markdown shows as it is, the first of its line in bold. Only what
/// others wrote needs care.
fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Placed(value, unit, Place::First) => format!("**{}**", unit.show(*value)),
        Cell::Text(_) | Cell::Failed { .. } => text::markdown(&text::cell(cell)),
        figure => text::cell(figure),
    }
}

/// In the source a long reason must not widen its whole column.
const WIDEST: usize = 32;

/// A table and the lines under it.
#[must_use]
pub fn table(found: &Grid) -> String {
    let mut out = String::new();
    grid(&mut out, found);
    out
}

/// The same, behind what is there.
pub fn grid(out: &mut String, grid: &Grid) {
    let mut lines: Vec<Vec<String>> = Vec::new();
    lines.push(
        grid.header
            .iter()
            .map(|name| text::markdown(name))
            .collect(),
    );
    for row in &grid.rows {
        lines.push(row.cells.iter().map(cell).collect());
    }
    let widths: Vec<usize> = (0..grid.header.len())
        .map(|column| {
            let widths = lines.iter().map(|line| line[column].chars().count());
            widths.filter(|width| *width <= WIDEST).max().unwrap_or(3)
        })
        .collect();
    let words = grid.words();
    for (index, cells) in lines.iter().enumerate() {
        let mut text = String::from("|");
        for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            if column < words {
                let _ = write!(text, " {cell:<width$} |");
            } else {
                let _ = write!(text, " {cell:>width$} |");
            }
        }
        line(out, &text);
        if index == 0 {
            let rule = widths.iter().enumerate().map(|(column, width)| {
                let dashes = "-".repeat(width + 1);
                if column < words {
                    format!("-{dashes}|")
                } else {
                    format!("{dashes}:|")
                }
            });
            line(out, &format!("|{}", rule.collect::<String>()));
        }
    }
    for (index, note) in grid.notes.iter().enumerate() {
        let before = if index == 0 { "\n" } else { "" };
        line(out, &format!("{before}- {}", text::markdown(note)));
    }
}
