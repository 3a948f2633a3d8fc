//! One report in five formats, read back: every figure of every table is the same in
//! all of them, exactly where the format has figures, as it is shown where it has text.

use crate::document::{Block, Document, PartKind, row_ids};
use crate::files::Names;
use crate::row::{Cell, Figure};
use crate::snapshots;
use crate::table::Grid;
use crate::units::Unit;
use crate::{csv as tidy, html, json, markdown, text, xlsx};
use calamine::{Data, Reader as _, Xlsx};
use serde_json::Value;
use std::io::Cursor;

/// Whatever is not as the document has it, a line each.
struct Found(Vec<String>);

impl Found {
    #[expect(
        clippy::needless_pass_by_value,
        reason = "it reads better where it is called"
    )]
    fn same<T: PartialEq + std::fmt::Debug>(&mut self, where_: &str, read: T, expected: T) {
        if read != expected {
            self.0
                .push(format!("{where_}: {read:?} instead of {expected:?}"));
        }
    }
}

/// Each cell of a table with the name of its column, as a reader would point at it.
fn cells(grid: &Grid) -> impl Iterator<Item = (String, usize, usize, &Cell)> {
    grid.rows.iter().enumerate().flat_map(move |(row, line)| {
        let cells = line.cells.iter().enumerate();
        cells.map(move |(column, cell)| {
            let at = format!("{} row {row}, {}", grid.file, grid.header[column]);
            (at, row, column, cell)
        })
    })
}

/// The tables of a text, each a list of lines of cells.
fn tables_of_markdown(text: &str) -> Vec<Vec<Vec<String>>> {
    let mut tables = Vec::new();
    let mut is_within = false;
    for line in text.lines() {
        let is_row = line.starts_with('|');
        if is_row && !is_within {
            tables.push(Vec::new());
        }
        is_within = is_row;
        if let (true, Some(table)) = (is_row, tables.last_mut()) {
            table.push(cells_of_markdown(line));
        }
    }
    // Without the rules under the headers.
    tables.iter_mut().for_each(|table: &mut Vec<_>| {
        table.remove(1);
    });
    tables
}

fn cells_of_markdown(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let last = cells.last_mut().unwrap();
        match character {
            '\\' => last.extend(characters.next()),
            '|' => cells.push(String::new()),
            other => last.push(other),
        }
    }
    let inner = &cells[1..cells.len() - 1];
    inner.iter().map(|cell| cell.trim().to_owned()).collect()
}

fn check_markdown(document: &Document, text: &str) -> Vec<String> {
    let mut found = Found(Vec::new());
    let tables = tables_of_markdown(text);
    let grids: Vec<&Grid> = document.grids().map(|(_, grid)| grid).collect();
    found.same("tables", tables.len(), grids.len());
    for (grid, table) in grids.into_iter().zip(tables) {
        let header: Vec<String> = grid
            .header
            .iter()
            .map(|name| text::one_line(name))
            .collect();
        found.same(&grid.file, &table[0], &header);
        found.same(&grid.file, table.len() - 1, grid.rows.len());
        for (at, row, column, cell) in cells(grid) {
            let read = table.get(row + 1).and_then(|line| line.get(column));
            let shown = text::one_line(&text::cell(cell));
            // The first of a line is bold instead.
            let shown = match shown.strip_suffix(" *") {
                Some(figure) => format!("**{figure}**"),
                None => shown,
            };
            found.same(&at, read, Some(&shown));
        }
    }
    found.0
}

fn check_csv(document: &Document, text: &str) -> Vec<String> {
    let mut found = Found(Vec::new());
    let mut lines = ::csv::Reader::from_reader(text.as_bytes());
    let header: Vec<String> = lines.headers().unwrap().iter().map(str::to_owned).collect();
    found.same("header", header, tidy::HEADER.map(str::to_owned).to_vec());
    let mut lines = lines.records().map(Result::unwrap);
    for (part, grid) in document.grids() {
        for (at, row, column, cell) in cells(grid).filter(|(_, _, column, _)| *column >= grid.names)
        {
            for figure in cell.figures() {
                let Some(line) = lines.next() else {
                    found.0.push(format!("{at}: no line"));
                    continue;
                };
                let number = |column: usize| line[column].parse::<f64>().ok();
                let read = (number(6), number(8), number(9));
                found.same(&at, read, (figure.value, figure.low, figure.high));
                let plain = |text: &str| text.trim_start_matches('\'').to_owned();
                let subject = grid.rows[row].subject.as_deref().unwrap_or_default();
                let unit = figure.unit.map_or("", Unit::base);
                for (column, expected) in [
                    (0, part.load_hash().unwrap_or_default().to_owned()),
                    (1, grid.file.clone()),
                    (2, text::one_line(subject)),
                    (4, text::one_line(&grid.header[column])),
                    (5, figure.part.to_owned()),
                    (7, unit.to_owned()),
                    (
                        10,
                        match cell {
                            Cell::Missing => String::new(),
                            cell => text::one_line(&text::cell(cell)),
                        },
                    ),
                ] {
                    found.same(&at, plain(&line[column]), expected);
                }
            }
        }
    }
    found.same("lines left over", lines.count(), 0);
    found.0
}

fn check_json(document: &Document, text: &str) -> Vec<String> {
    let mut found = Found(Vec::new());
    let file: Value = serde_json::from_str(text).unwrap();
    found.same("format", file["format"].as_u64(), Some(json::FORMAT.into()));
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let blocks = list(&file["parts"]).into_iter();
    let blocks = blocks.flat_map(|part| list(&part["blocks"]));
    let tables: Vec<Value> = blocks.filter(|block| block["type"] == "table").collect();
    found.same("tables", tables.len(), document.grids().count());
    for ((_, grid), table) in document.grids().zip(&tables) {
        found.same(&grid.file, table["table"].as_str(), Some(&*grid.file));
        for (index, column) in grid.header.iter().enumerate() {
            let read = &table["columns"][index];
            let unit = grid.unit(index).map_or("", Unit::base);
            found.same(&grid.file, read["name"].as_str(), Some(column.as_str()));
            found.same(&grid.file, read["unit"].as_str(), Some(unit));
        }
        found.same(&grid.file, list(&table["rows"]).len(), grid.rows.len());
        for (at, row, column, cell) in cells(grid) {
            let line = &table["rows"][row];
            let subject = grid.rows[row].subject.as_deref();
            found.same(&at, line["subject"].as_str(), subject);
            found.same(&at, list(&line["cells"]).len(), grid.header.len());
            let read = &line["cells"][column];
            found.same(&at, read["text"].as_str(), Some(&*text::cell(cell)));
            let figures = list(&read["figures"]);
            let expected = cell.figures();
            let expected: Vec<&Figure> = expected.iter().filter(|f| f.unit.is_some()).collect();
            found.same(&at, figures.len(), expected.len());
            for (read, figure) in figures.iter().zip(expected) {
                let [value, low, high] = ["value", "low", "high"].map(|name| read[name].as_f64());
                found.same(
                    &at,
                    (value, low, high),
                    (figure.value, figure.low, figure.high),
                );
                let unit = figure.unit.map(Unit::base);
                found.same(&at, read["unit"].as_str(), unit);
                let part = read["part"].as_str().unwrap_or_default();
                found.same(&at, part, figure.part);
            }
        }
    }
    found.0
}

/// A header of the sheet: the column's, what it is of the cell, and the unit.
fn sheet_header(column: &str, part: &str, figure: &Figure) -> (String, f64) {
    let (divisor, unit) = match figure.unit {
        Some(Unit::Duration | Unit::Microseconds) => (1e3, "us"),
        Some(Unit::Milliseconds) => (1e6, "ms"),
        Some(Unit::Seconds) => (1e9, "s"),
        other => (1.0, other.map_or("", Unit::base)),
    };
    let mut header = column.to_owned();
    if !part.is_empty() {
        header = format!("{header}, {part}");
    }
    if !unit.is_empty()
        && !header.ends_with(&format!("({unit})"))
        && !header.contains(&format!("({unit}),"))
    {
        header = format!("{header} ({unit})");
    }
    (header, divisor)
}

fn check_xlsx(document: &Document, bytes: &[u8]) -> Vec<String> {
    let mut found = Found(Vec::new());
    let mut workbook: Xlsx<_> = Xlsx::new(Cursor::new(bytes.to_vec())).unwrap();
    let names = workbook.sheet_names();
    let mut lower: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    lower.sort();
    lower.dedup();
    found.same("names that differ", lower.len(), names.len());
    found.same("sheets", names.len(), document.grids().count() + 1);
    for ((_, grid), name) in document.grids().zip(&names[1..]) {
        assert!(name.chars().count() <= 31, "{name}");
        let sheet = workbook.worksheet_range(name).unwrap();
        let width = u32::try_from(sheet.width()).unwrap();
        let header: Vec<String> = (0..width)
            .map(|column| {
                sheet
                    .get_value((0, column))
                    .map_or_else(String::new, ToString::to_string)
            })
            .collect();
        for (at, row, column, cell) in cells(grid) {
            let row = u32::try_from(row + 1).unwrap();
            let name = &grid.header[column];
            let value = |header_of: &str| {
                let column = header.iter().position(|found| found == header_of)?;
                sheet
                    .get_value((row, u32::try_from(column).unwrap()))
                    .cloned()
            };
            for figure in cell.figures() {
                for (part, expected) in [
                    (figure.part, figure.value),
                    ("low", figure.low),
                    ("high", figure.high),
                ] {
                    let Some(expected) = expected else { continue };
                    let (header, divisor) = sheet_header(name, part, &figure);
                    let read = match value(&header) {
                        Some(Data::Float(read)) => Some(read),
                        Some(Data::Int(read)) => Some(read as f64),
                        _ => None,
                    };
                    let is_same = read.is_some_and(|read| {
                        (read * divisor - expected).abs() <= expected.abs() * 1e-14
                    });
                    if !is_same {
                        found
                            .0
                            .push(format!("{at}, {header}: {read:?} instead of {expected:?}"));
                    }
                }
            }
            if let Cell::Text(_) | Cell::Failed { .. } = cell {
                let at_all = header
                    .iter()
                    .position(|found| found.starts_with(name.as_str()));
                let read = at_all
                    .and_then(|column| sheet.get_value((row, u32::try_from(column).unwrap())));
                let read = read.map(ToString::to_string).unwrap_or_default();
                found.same(&at, read, text::one_line(&text::cell(cell)));
            }
        }
    }
    found.0
}

fn unescaped(html: &str) -> String {
    let mut text = html.to_owned();
    for (escaped, character) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&#34;", "\""),
        ("&#60;", "<"),
        ("&#62;", ">"),
        ("&#38;", "&"),
        ("&amp;", "&"),
    ] {
        text = text.replace(escaped, character);
    }
    text
}

fn check_html(document: &Document, html: &str) -> Vec<String> {
    let mut found = Found(Vec::new());
    // What is said in short is no table there, but cards.
    let tables = document.grids();
    let tables = tables.filter(|(part, _)| !matches!(part.kind, PartKind::Answer { .. }));
    for (part, grid) in tables {
        let id = part.grid_id(grid);
        for (id, row) in row_ids(&id, grid).iter().zip(&grid.rows) {
            let start = format!("<tr id=\"{id}\"");
            let Some((_, rest)) = html.split_once(&start) else {
                found.0.push(format!("no row {id}"));
                continue;
            };
            let line = rest.split("<tr ").next().unwrap();
            let line = line.split("</tbody>").next().unwrap();
            let words = line.split("data-v=\"").nth(1).unwrap();
            let words = unescaped(words.split('"').next().unwrap());
            let words: Vec<&str> = words.split(' ').collect();
            found.same(id, words.len(), row.cells.len());
            let texts = line.split("<td").skip(1);
            let texts = texts.map(|cell| unescaped(cell.split_once('>').unwrap().1.trim_end()));
            let texts: Vec<String> = texts.collect();
            found.same(id, texts.len() + 1, row.cells.len());
            for (column, cell) in row.cells.iter().enumerate().skip(1) {
                let at = format!("{id}, {}", grid.header[column]);
                let shown = text::one_line(&text::cell(cell));
                found.same(
                    &at,
                    texts.get(column - 1).map(|text| text.trim()),
                    Some(shown.as_str()),
                );
                let figures = cell.figures();
                let expected: Vec<f64> = figures
                    .iter()
                    .flat_map(|figure| [figure.low, figure.value, figure.high])
                    .flatten()
                    .collect();
                let read: Vec<f64> = words.get(column).map_or(Vec::new(), |word| {
                    word.split([':', '>', '/'])
                        .filter_map(|figure| figure.parse().ok())
                        .collect()
                });
                found.same(&at, read, expected);
            }
        }
    }
    found.0
}

/// What a format says that the document does not, or the other way about.
fn disagreements(expected: &Document, written: &Document) -> [(&'static str, Vec<String>); 5] {
    let names = Names::default();
    [
        (
            "md",
            check_markdown(expected, &markdown::document(written, &names)),
        ),
        ("csv", check_csv(expected, &tidy::document(written))),
        (
            "json",
            check_json(expected, &json::document(written, &names)),
        ),
        (
            "xlsx",
            check_xlsx(expected, &xlsx::document(written).unwrap()),
        ),
        (
            "html",
            check_html(expected, &html::document(written, &names).unwrap()),
        ),
    ]
}

fn documents() -> [Document; 3] {
    let reports = [
        snapshots::report(),
        snapshots::relays(),
        snapshots::transfers(),
    ];
    reports.map(|report| report.document())
}

#[test]
fn five_formats_say_the_same() {
    for document in documents() {
        let figures = document.grids().flat_map(|(_, grid)| cells(grid));
        assert!(figures.count() > 50);
        for (format, found) in disagreements(&document, &document) {
            assert_eq!(found, [""; 0], "{format}");
        }
    }
}

type Edit = fn(&mut Grid);

/// Each format is read closely enough to tell a column that is gone, two that changed
/// places, and figures a thousand times too large.
#[test]
fn a_format_that_says_something_else_is_told() {
    let [document, ..] = documents();
    let edits: [(&str, Edit); 3] = [
        ("drops", |grid| {
            grid.header.remove(3);
            grid.rows.iter_mut().for_each(|row| _ = row.cells.remove(3));
        }),
        ("swaps", |grid| {
            grid.rows.iter_mut().for_each(|row| row.cells.swap(4, 5));
        }),
        ("scales", |grid| {
            for cell in grid.rows.iter_mut().map(|row| &mut row.cells[5]) {
                if let Cell::Number(value, _) = cell {
                    *value *= 1000.0;
                }
            }
        }),
    ];
    for (what, edit) in edits {
        let mut written = document.clone();
        let blocks = written.parts.iter_mut().flat_map(|part| &mut part.blocks);
        let mut grids = blocks.filter_map(|block| match block {
            Block::Grid(grid) if grid.file == "echo" => Some(grid),
            _ => None,
        });
        edit(grids.next().unwrap());
        for (format, found) in disagreements(&document, &written) {
            assert!(
                !found.is_empty(),
                "{format} {what} a column, and nobody sees it"
            );
        }
    }
}
