//! The report as markdown that also reads well as it is.

use crate::Report;
use crate::chart::Chart;
use crate::files::Names;
use crate::machine::describe;
use crate::row::{Cell, Place};
use crate::section::Section;
use crate::table::{Grid, Table};
use crate::tcp::{self, least};
use crate::{differences, notes, pictures, scaling, text, verification};
use std::fmt::Write as _;
use wsbench_schema::Suite;

/// All of it, or the tables that are given.
#[must_use]
pub fn document(report: &Report, tables: &[Table], names: &Names<'_>) -> String {
    let mut out = String::new();
    let run = text::markdown(report.run());
    let title = match tables {
        [only] => only.title,
        _ => "Report",
    };
    line(&mut out, &format!("# {title}: run {run}\n"));
    for warning in &report.heading.warnings {
        line(&mut out, &format!("> **{}**\n", text::markdown(warning)));
    }
    for (name, value) in &report.heading.facts {
        line(&mut out, &format!("- {name}: {}", text::markdown(value)));
    }
    let is_whole = tables.len() > 1;
    if is_whole {
        for found in tcp::overview(&report.sections) {
            line(&mut out, &format!("\n## {}\n", found.title));
            grid(&mut out, &found);
        }
        pictures(&mut out, &pictures::across(&report.sections), names);
    }
    for section in &report.sections {
        load(&mut out, section, tables);
        if is_whole {
            pictures(&mut out, &pictures::of_section(section), names);
        }
    }
    if is_whole {
        for found in scaling::grids(&report.sections) {
            line(&mut out, &format!("\n## {}\n", found.title));
            grid(&mut out, &found);
        }
        verification(&mut out, report);
    }
    let shown: Vec<&Table> = tables
        .iter()
        .filter(|table| report.sections.iter().any(|s| table.applies_to(&s.load)))
        .collect();
    if !shown.is_empty() {
        line(&mut out, "\n## How to read it");
    }
    for table in shown {
        line(&mut out, &format!("\n### {} explained\n", table.title));
        for definition in table.definitions {
            line(&mut out, &format!("- {definition}"));
        }
    }
    out
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

fn pictures(out: &mut String, charts: &[Chart], names: &Names<'_>) {
    for chart in charts {
        let title = text::markdown(&chart.title);
        line(out, &format!("\n![{title}]({})", names.link(chart)));
    }
}

fn verification(out: &mut String, report: &Report) {
    let items = verification::items(&report.examinations);
    line(out, "\n## Verification\n");
    if items.is_empty() {
        return line(out, "No server was examined.");
    }
    line(out, &verification::about(report.suite()));
    line(out, "");
    for item in items {
        line(out, &format!("- {}", text::markdown(&item.title)));
        for part in item.lines {
            line(out, &format!("  - {}", text::markdown(&part)));
        }
    }
}

fn load(out: &mut String, section: &Section, tables: &[Table]) {
    line(out, &format!("\n## Load {}\n", section.load_hash));
    let about = describe(&section.load);
    for part in about.into_iter().chain(notes::of_section(section)) {
        line(out, &format!("- {}", text::markdown(&part)));
    }
    let is_whole = tables.len() > 1;
    for table in tables {
        let applies = table.applies_to(&section.load);
        // The tables of relays are of one kind of load or of another.
        if is_whole && !applies && section.suite != Suite::Websocket {
            continue;
        }
        line(out, &format!("\n### {}\n", table.title));
        match applies {
            true => grid(out, &table.fill(section)),
            false => line(out, &format!("This load has no {} phase.", table.phase)),
        }
    }
    if is_whole {
        let more = least::grid(section).into_iter();
        for found in more.chain(differences::grid(section)) {
            line(out, &format!("\n### {}\n", found.title));
            grid(out, &found);
        }
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

fn grid(out: &mut String, grid: &Grid) {
    let mut lines: Vec<Vec<String>> = Vec::new();
    lines.push(
        grid.header
            .iter()
            .map(|name| text::markdown(name))
            .collect(),
    );
    for row in &grid.rows {
        lines.push(row.iter().map(cell).collect());
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
