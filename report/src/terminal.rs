//! The report on a terminal: a table that is too wide is cut into parts that
//! each begin with the subject's name; no row is ever folded.

use crate::Report;
use crate::machine::describe;
use crate::row::Cell;
use crate::table::{Grid, Table};
use crate::tcp::{self, least};
use crate::{differences, notes, patched, rank, scaling, slo, text, verification};
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, TableStyle};
use std::io::IsTerminal as _;

/// The width where standard output is no terminal: the compact table in one part.
const FIXED_WIDTH: u16 = 150;

/// Cells side by side and one rule under the header.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle {
    fill: Some('─'),
    ..LineStyle::none()
});

/// Columns of the terminal that standard output is; `None` if it is none.
#[must_use]
pub fn terminal_width() -> Option<u16> {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let size = terminal_size::terminal_size_of(&stdout);
    size.map(|(terminal_size::Width(columns), _)| columns)
        .filter(|columns| *columns > 0)
}

/// All of it, in so many columns.
#[must_use]
pub fn document(report: &Report, tables: &[Table], width: Option<u16>) -> String {
    let width = usize::from(width.unwrap_or(FIXED_WIDTH));
    let mut lines: Vec<String> = Vec::new();
    let mut say = |text: &str| lines.push(wrapped(text, width));
    for warning in &report.heading.warnings {
        say(&format!("WARNING: {warning}"));
    }
    for (name, value) in &report.heading.facts {
        say(&format!("{name}: {value}"));
    }
    lines.extend(slo::found(&report.searches).map(|found| grid(&found, width)));
    for section in &report.sections {
        lines.push(format!("\nLoad {}", section.load_hash));
        let about = describe(&section.load);
        for line in about.into_iter().chain(notes::of_section(section)) {
            lines.push(wrapped(&line, width));
        }
        for table in tables {
            if table.applies_to(&section.load) {
                lines.push(grid(&table.fill(section), width));
            }
        }
        let more = patched::grid(section).into_iter();
        let more = more.chain(least::grid(section));
        let more = more.chain(differences::grid(section));
        lines.extend(more.map(|found| grid(&found, width)));
    }
    let mut compared = scaling::grids(&report.sections);
    compared.extend(tcp::overview(&report.sections));
    compared.extend(rank::summary(&report.sections).filter(|_| report.suite().is_websocket()));
    lines.extend(compared.iter().map(|found| grid(found, width)));
    lines.extend(verification(report, width));
    lines.push(String::new());
    lines.join("\n")
}

/// Of a server that fails everything, the files tell the rest.
const MOST_FAILURES: usize = 8;

fn verification(report: &Report, width: usize) -> Vec<String> {
    let items = verification::items(&report.examinations);
    if items.is_empty() {
        return Vec::new();
    }
    let mut lines = vec!["\nVerification".to_owned()];
    for item in items {
        lines.push(wrapped(&item.title, width));
        let shown = item.lines.iter().take(MOST_FAILURES);
        lines.extend(shown.map(|line| format!("  {}", wrapped(line, width.saturating_sub(2)))));
        if let Some(more) = item.lines.len().checked_sub(MOST_FAILURES + 1) {
            lines.push(format!("  and {} more: see report.md", more + 1));
        }
    }
    lines
}

/// A table for a terminal of `width` columns, or in a fixed layout.
#[must_use]
pub fn table(found: &Grid, width: Option<u16>) -> String {
    grid(found, usize::from(width.unwrap_or(FIXED_WIDTH)))
}

fn grid(grid: &Grid, width: usize) -> String {
    let columns: Vec<Strip> = (0..grid.header.len())
        .map(|column| Strip::new(grid, column))
        .collect();
    let parts = parts(&columns, grid.names, width);
    let mut out = String::new();
    for (index, part) in parts.iter().enumerate() {
        let title = match parts.len() {
            1 => grid.title.to_owned(),
            count => format!("{} ({}/{count})", grid.title, index + 1),
        };
        out.push_str(&format!("\n{title}\n{}\n", print(part, grid.words())));
    }
    let notes = grid.notes.iter().map(|note| wrapped(note, width));
    out + &notes.collect::<Vec<_>>().join("\n")
}

/// One line, continued further in where it is too long.
fn wrapped(text: &str, width: usize) -> String {
    const INDENT: usize = 4;
    let folded = folded(&text::one_line(text), width.saturating_sub(INDENT));
    folded.replace('\n', &format!("\n{:INDENT$}", ""))
}

/// One column as it is printed.
struct Strip {
    header: String,
    cells: Vec<String>,
    width: usize,
}

impl Strip {
    fn new(grid: &Grid, column: usize) -> Self {
        let cells: Vec<String> = grid
            .rows
            .iter()
            .map(|row| match &row.cells[column] {
                // The reason is long and stands under the table.
                Cell::Failed { .. } => "FAILED".to_owned(),
                cell => text::one_line(&text::cell(cell)),
            })
            .collect();
        let widest = |texts: &mut dyn Iterator<Item = &str>| {
            texts.map(|text| text.chars().count()).max().unwrap_or(0)
        };
        let cell_width = widest(&mut cells.iter().map(String::as_str));
        let header = folded(&grid.header[column], cell_width);
        let width = cell_width.max(widest(&mut header.lines()));
        Self {
            header,
            cells,
            width,
        }
    }
}

/// Breaks a long text between words, no narrower than its longest word.
fn folded(text: &str, width: usize) -> String {
    let words = || text.split(' ');
    let width = words()
        .map(|word| word.chars().count())
        .max()
        .unwrap_or(0)
        .max(width);
    let mut folded = String::new();
    let mut used = 0;
    for word in words() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            folded.push('\n');
            used = 0;
        } else if used > 0 {
            folded.push(' ');
            used += 1;
        }
        folded.push_str(word);
        used += length;
    }
    folded
}

/// A space to the left and right of each cell.
const PADDING: usize = 2;

/// Cuts the columns into parts that fit; those that name the rows begin each of them.
/// A part has at least one more, however narrow the terminal is.
fn parts(columns: &[Strip], names: usize, width: usize) -> Vec<Vec<&Strip>> {
    let (names, figures) = columns.split_at(names.min(columns.len()));
    let named = |more: Option<&'_ Strip>| -> usize {
        let widths = names
            .iter()
            .chain(more)
            .map(|column| column.width + PADDING);
        widths.sum()
    };
    let mut parts: Vec<Vec<&Strip>> = vec![names.iter().collect()];
    let mut used = named(None);
    for column in figures {
        let needed = column.width + PADDING;
        let part = parts
            .last_mut()
            .filter(|part| part.len() == names.len() || used + needed <= width);
        if let Some(part) = part {
            part.push(column);
            used += needed;
        } else {
            parts.push(names.iter().chain([column]).collect());
            used = named(Some(column));
        }
    }
    parts
}

fn print(columns: &[&Strip], words: usize) -> String {
    let mut table = comfy_table::Table::new();
    table
        .load_style(STYLE)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(columns.iter().map(|column| &column.header));
    for row in 0..columns.first().map_or(0, |column| column.cells.len()) {
        table.add_row(columns.iter().map(|column| &column.cells[row]));
    }
    for column in table.column_iter_mut().skip(words) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Line;

    fn strip(header: &str, cell: &str) -> Strip {
        let grid = Grid {
            file: String::new(),
            title: String::new(),
            names: 1,
            header: vec![header.to_owned()],
            rows: vec![Line::of("", vec![Cell::Text(cell.to_owned())])],
            notes: Vec::new(),
        };
        Strip::new(&grid, 0)
    }

    #[test]
    fn a_header_is_folded_to_its_cells_but_no_word_is_cut() {
        assert_eq!(
            folded("Server CPU/msg min-max", 9),
            "Server\nCPU/msg\nmin-max"
        );
        assert_eq!(
            folded("Server CPU/msg min-max", 14),
            "Server CPU/msg\nmin-max"
        );
        assert_eq!(folded("Concurrency", 4), "Concurrency");
        assert_eq!(folded("CPU Avg", 7), "CPU Avg");
    }

    #[test]
    fn each_part_fits_and_begins_with_the_name() {
        let columns: Vec<Strip> = ["Framework", "TPS", "Min", "Max"]
            .map(|header| strip(header, "12345"))
            .into();
        // 11 for the name, 7 for each other column.
        let headers = |width| -> Vec<String> {
            let parts = parts(&columns, 1, width);
            let join = |part: &Vec<&Strip>| {
                part.iter()
                    .map(|s| s.header.as_str())
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            parts.iter().map(join).collect()
        };
        assert_eq!(headers(32), ["Framework TPS Min Max"]);
        assert_eq!(headers(31), ["Framework TPS Min", "Framework Max"]);
        assert_eq!(
            headers(1),
            ["Framework TPS", "Framework Min", "Framework Max"]
        );
    }

    #[test]
    fn a_reason_does_not_widen_the_terminals_table() {
        let failed = Cell::Failed {
            stage: "echo".into(),
            reason: "x".repeat(500),
        };
        let grid = Grid {
            file: "t".to_owned(),
            title: "T".to_owned(),
            names: 1,
            header: vec!["Framework".to_owned(), "TPS".to_owned()],
            rows: vec![Line::of("axum", vec![Cell::Text("axum".into()), failed])],
            notes: Vec::new(),
        };
        assert_eq!(Strip::new(&grid, 1).cells, ["FAILED"]);
    }
}
