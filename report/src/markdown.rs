//! The report as markdown that also reads well as it is.

use crate::Report;
use crate::machine::describe;
use crate::section::Section;
use crate::table::{Grid, Table};
use crate::{differences, notes, scaling, text, verification};
use std::fmt::Write as _;

/// All of it, or the tables that are given.
#[must_use]
pub fn document(report: &Report, tables: &[Table]) -> String {
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
    for section in &report.sections {
        load(&mut out, section, tables);
    }
    if tables.len() > 1 {
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

fn verification(out: &mut String, report: &Report) {
    let items = verification::items(&report.examinations);
    line(out, "\n## Verification\n");
    if items.is_empty() {
        return line(out, "No server was examined.");
    }
    line(out, verification::ABOUT);
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
    for table in tables {
        line(out, &format!("\n### {}\n", table.title));
        if table.applies_to(&section.load) {
            grid(out, &table.fill(section));
        } else {
            line(out, &format!("This load has no {} phase.", table.phase));
        }
    }
    if let ([_, _, ..], Some(differences)) = (tables, differences::grid(section)) {
        line(out, &format!("\n### {}\n", differences.title));
        grid(out, &differences);
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
        let cells = row.iter().map(text::cell);
        lines.push(cells.map(|cell| text::markdown(&cell)).collect());
    }
    let widths: Vec<usize> = (0..grid.header.len())
        .map(|column| {
            let widths = lines.iter().map(|line| line[column].chars().count());
            widths.filter(|width| *width <= WIDEST).max().unwrap_or(3)
        })
        .collect();
    for (index, cells) in lines.iter().enumerate() {
        let mut text = String::from("|");
        for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            if column == 0 {
                let _ = write!(text, " {cell:<width$} |");
            } else {
                let _ = write!(text, " {cell:>width$} |");
            }
        }
        line(out, &text);
        if index == 0 {
            let rule = widths.iter().enumerate().map(|(column, width)| {
                let dashes = "-".repeat(width + 1);
                if column == 0 {
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
