//! The report as a spreadsheet: an index, and a sheet for each table of each load, with
//! numbers as numbers in the unit that their header names.
//!
//! Texts are written as texts, so that none is a formula.

use crate::document::{Document, Part, PartKind};
use crate::row::Cell;
use crate::table::Grid;
use crate::text;
use crate::units::Unit;
use rust_xlsxwriter::{
    Chart, ChartType, Color, DocProperties, ExcelDateTime, Format, FormatAlign, FormatBorder, Url,
    Workbook, Worksheet, XlsxError,
};
use std::collections::HashSet;

/// Characters of a sheet's name, at most.
const NAME_MOST: usize = 31;
/// The first sheet.
const INDEX: &str = "Index";
/// Characters of a cell, at most, and below what a sheet takes.
const TEXT_MOST: usize = 32_000;
/// Rows that the picture of a sheet shows, at most.
const BARS_MOST: usize = 40;

/// Columns whose figures are worth a picture, the first that there is.
const DRAWN: [&str; 3] = ["TPS", "Throughput", "Achieved msg/s"];

struct Formats {
    bold: Format,
    title: Format,
    header: Format,
    warning: Format,
    note: Format,
}

/// One column of a sheet: a part of a table's column.
struct Column {
    /// Of the table.
    of: usize,
    part: &'static str,
    unit: Option<Unit>,
    header: String,
}

/// The bytes of the file.
///
/// # Errors
/// If the library refuses, as it does what no spreadsheet could show.
pub fn document(document: &Document) -> Result<Vec<u8>, XlsxError> {
    let formats = Formats {
        bold: Format::new().set_bold(),
        title: Format::new().set_bold().set_font_size(14),
        header: Format::new()
            .set_bold()
            .set_text_wrap()
            .set_align(FormatAlign::Top)
            .set_border_bottom(FormatBorder::Thin),
        warning: Format::new()
            .set_bold()
            .set_font_color(Color::RGB(0x9c_00_06)),
        note: Format::new().set_italic(),
    };
    let mut workbook = Workbook::new();
    let properties = DocProperties::new().set_title(cut(&document.run));
    // The same report is the same file, whenever it is made.
    let properties = properties.set_creation_datetime(&ExcelDateTime::from_ymd(2000, 1, 1)?);
    workbook.set_properties(&properties);
    let mut used = HashSet::from([INDEX.to_lowercase()]);
    let mut sheets = Vec::new();
    let grids = document
        .grids()
        .map(|(part, grid)| (part, grid, sheet_name(part, grid, &mut used)));
    let grids: Vec<_> = grids.collect();
    sheets.push(index(document, &grids, &formats)?);
    for (_, grid, name) in &grids {
        sheets.push(sheet(grid, name, &formats)?);
    }
    for sheet in sheets {
        workbook.push_worksheet(sheet);
    }
    workbook.save_to_buffer()
}

/// What a sheet takes of a text of others.
fn cut(text: &str) -> String {
    text::shortened(&text::one_line(text), TEXT_MOST)
}

/// Valid and unlike all others, whatever their case: `echo 1a2b3c4d`.
fn sheet_name(part: &Part, grid: &Grid, used: &mut HashSet<String>) -> String {
    let is_valid = |character: &char| !"[]:*?/\\'".contains(*character) && !character.is_control();
    let hash = part.load_hash().map_or(String::new(), |hash| {
        format!(" {}", hash.chars().take(8).collect::<String>())
    });
    let mut ending = hash.clone();
    let mut times = 1;
    loop {
        let room = NAME_MOST.saturating_sub(ending.chars().count());
        let name: String = grid.file.chars().filter(is_valid).take(room).collect();
        let name = format!("{name}{ending}");
        if used.insert(name.to_lowercase()) {
            return name;
        }
        times += 1;
        ending = format!("{hash} ({times})");
    }
}

/// What stands above everything, and where each table is.
fn index(
    document: &Document,
    grids: &[(&Part, &Grid, String)],
    formats: &Formats,
) -> Result<Worksheet, XlsxError> {
    let mut sheet = Worksheet::new();
    sheet.set_name(INDEX)?;
    sheet
        .set_column_width(0, 28)?
        .set_column_width(1, 44)?
        .set_column_width(2, 60)?;
    let mut row = 0;
    let title = format!("Report: run {}", document.run);
    sheet.write_string_with_format(row, 0, cut(&title), &formats.title)?;
    row += 2;
    for warning in &document.warnings {
        sheet.write_string_with_format(row, 0, cut(warning), &formats.warning)?;
        row += 1;
    }
    for (name, value) in &document.facts {
        sheet.write_string_with_format(row, 0, cut(name), &formats.bold)?;
        sheet.write_string(row, 1, cut(value))?;
        row += 1;
    }
    for command in &document.commands {
        sheet.write_string_with_format(row, 0, "To do it again", &formats.bold)?;
        sheet.write_string(row, 1, cut(command))?;
        row += 1;
    }
    row += 1;
    for (column, name) in (0..).zip(["Sheet", "Table", "Load"]) {
        sheet.write_string_with_format(row, column, name, &formats.header)?;
    }
    for (part, grid, name) in grids {
        row += 1;
        let link = Url::new(format!("internal:'{name}'!A1")).set_text(name);
        sheet.write_url(row, 0, link)?;
        sheet.write_string(row, 1, cut(&grid.title))?;
        if let PartKind::Load { hash, short } = &part.kind {
            sheet.write_string(row, 2, cut(&format!("{hash}: {short}")))?;
        }
    }
    Ok(sheet)
}

/// The columns of a sheet, from left to right.
fn columns(grid: &Grid) -> Vec<Column> {
    let mut columns = Vec::new();
    for (of, name) in grid.header.iter().enumerate() {
        let mut kinds: Vec<(&'static str, Option<Unit>)> = Vec::new();
        for cell in grid.rows.iter().filter_map(|row| row.cells.get(of)) {
            for (part, unit) in parts(cell).into_iter().map(|(part, unit, _)| (part, unit)) {
                if !kinds.contains(&(part, unit)) {
                    kinds.push((part, unit));
                }
            }
        }
        // Texts stand where the figures of others do.
        if kinds.iter().any(|(_, unit)| unit.is_some()) {
            kinds.retain(|(_, unit)| unit.is_some());
        }
        if kinds.is_empty() {
            kinds.push(("", None));
        }
        for (part, unit) in kinds {
            let mut header = name.clone();
            if !part.is_empty() {
                header = format!("{header}, {part}");
            }
            let unit_name = unit.map_or("", |unit| unit.sheet().1);
            if !unit_name.is_empty() && !header.contains(&format!("({unit_name})")) {
                header = format!("{header} ({unit_name})");
            }
            columns.push(Column {
                of,
                part,
                unit,
                header,
            });
        }
    }
    columns
}

/// The figures of a cell, each with what it is of the cell and its unit.
fn parts(cell: &Cell) -> Vec<(&'static str, Option<Unit>, Option<f64>)> {
    let mut parts = Vec::new();
    for figure in cell.figures() {
        let ends = [("low", figure.low), ("high", figure.high)];
        let ends = ends.into_iter().filter(|(_, value)| value.is_some());
        if figure.value.is_some() || (figure.low.is_none() && figure.high.is_none()) {
            parts.push((figure.part, figure.unit, figure.value));
        }
        parts.extend(ends.map(|(name, value)| (name, figure.unit, value)));
    }
    parts
}

fn sheet(grid: &Grid, name: &str, formats: &Formats) -> Result<Worksheet, XlsxError> {
    let mut sheet = Worksheet::new();
    sheet.set_name(name)?;
    let columns = columns(grid);
    let place = |column: usize| u16::try_from(column).unwrap_or(u16::MAX);
    for (index, column) in columns.iter().enumerate() {
        sheet.write_string_with_format(0, place(index), cut(&column.header), &formats.header)?;
        let is_name = column.of < grid.names;
        sheet.set_column_width(place(index), if is_name { 26 } else { 13 })?;
    }
    let mut last = 0;
    for (line, row) in (1..).zip(&grid.rows) {
        last = line;
        for (of, cell) in row.cells.iter().enumerate() {
            let mut own = columns
                .iter()
                .enumerate()
                .filter(|(_, column)| column.of == of);
            if let Cell::Text(_) | Cell::Failed { .. } = cell {
                if let Some((index, _)) = own.next() {
                    sheet.write_string(line, place(index), cut(&text::cell(cell)))?;
                }
                continue;
            }
            let parts = parts(cell);
            for (index, column) in own {
                let is_it =
                    |(part, unit, _): &&(_, _, _)| (*part, *unit) == (column.part, column.unit);
                if let Some((_, Some(unit), Some(value))) = parts.iter().find(is_it) {
                    sheet.write_number(line, place(index), value / unit.sheet().0)?;
                }
            }
        }
    }
    sheet.set_freeze_panes(1, place(grid.names))?;
    if let (Some(most), true) = (columns.len().checked_sub(1), last > 0) {
        sheet.autofilter(0, 0, last, place(most))?;
    }
    let mut below = last + 2;
    for note in &grid.notes {
        sheet.write_string_with_format(below, 0, cut(note), &formats.note)?;
        below += 1;
    }
    if let Some(chart) = chart(grid, name, &columns) {
        sheet.insert_chart(below + 1, 0, &chart)?;
    }
    Ok(sheet)
}

/// Bars of the figure that the table is sorted by, if it has it.
fn chart(grid: &Grid, name: &str, columns: &[Column]) -> Option<Chart> {
    let drawn = DRAWN.iter().find_map(|drawn| {
        let is_it = |column: &Column| {
            grid.header.get(column.of).is_some_and(|name| name == drawn) && column.unit.is_some()
        };
        columns.iter().position(is_it)
    });
    let column = u16::try_from(drawn?).ok()?;
    let rows = u32::try_from(grid.rows.len().min(BARS_MOST))
        .ok()
        .filter(|rows| *rows > 0)?;
    let header = &columns.get(usize::from(column))?.header;
    let names = u16::try_from(grid.names.checked_sub(1)?).ok()?;
    let mut chart = Chart::new(ChartType::Bar);
    chart
        .add_series()
        .set_name(header.as_str())
        .set_categories((name, 1, 0, rows, names))
        .set_values((name, 1, column, rows, column))
        .set_gap(60);
    chart.title().set_name(&format!("{}: {header}", grid.title));
    chart.legend().set_hidden();
    // The first row is the topmost bar.
    chart.y_axis().set_reverse();
    chart.set_width(760).set_height(120 + 22 * rows);
    Some(chart)
}
