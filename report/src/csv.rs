//! All figures of a report in one tidy table: a line a figure, exact, in base units.
//!
//! Nothing in it begins as a formula does, so that a spreadsheet that opens it shows
//! what a server calls itself and does not compute it.

use crate::document::Document;
use crate::row::Cell;
use crate::text;
use crate::units::Unit;
use std::fmt::Write as _;

/// The names of the columns.
pub const HEADER: [&str; 11] = [
    "load", "table", "subject", "row", "column", "part", "value", "unit", "low", "high", "text",
];

/// All tables.
#[must_use]
pub fn document(document: &Document) -> String {
    let mut out = String::new();
    line(&mut out, &HEADER.map(str::to_owned));
    for (part, grid) in document.grids() {
        let load = part.load_hash().unwrap_or_default();
        for row in &grid.rows {
            let subject = word(row.subject.as_deref().unwrap_or_default());
            let names = row.cells.iter().take(grid.names).map(text::cell);
            let name = word(&names.collect::<Vec<_>>().join(", "));
            for (column, cell) in grid.header.iter().zip(&row.cells).skip(grid.names) {
                let shown = match cell {
                    Cell::Missing => String::new(),
                    Cell::Text(_) | Cell::Failed { .. } => word(&text::cell(cell)),
                    figure => text::cell(figure),
                };
                for figure in cell.figures() {
                    line(
                        &mut out,
                        &[
                            load.to_owned(),
                            grid.file.clone(),
                            subject.clone(),
                            name.clone(),
                            word(column),
                            figure.part.to_owned(),
                            number(figure.value),
                            figure.unit.map_or("", Unit::base).to_owned(),
                            number(figure.low),
                            number(figure.high),
                            shown.clone(),
                        ],
                    );
                }
            }
        }
    }
    out
}

/// Every digit of it, never as a power of ten.
fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// A text of others in one line; what a spreadsheet would compute has a `'` before it,
/// which says there that it is text.
fn word(text: &str) -> String {
    let text = text::one_line(text);
    match text.starts_with(['=', '+', '-', '@']) {
        true => format!("'{text}"),
        false => text,
    }
}

/// As RFC 4180 has it.
fn line(out: &mut String, fields: &[String]) {
    for (index, field) in fields.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        match field.contains([',', '"', '\n', '\r']) {
            true => _ = write!(out, "\"{}\"", field.replace('"', "\"\"")),
            false => out.push_str(field),
        }
    }
    out.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_begins_as_a_formula_does() {
        for (text, expected) in [
            ("=1+1", "'=1+1"),
            ("\t=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-x", "'-x"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("a=b", "a=b"),
            ("two\nlines", "two lines"),
        ] {
            assert_eq!(word(text), expected);
        }
    }

    #[test]
    fn a_field_stays_one_field() {
        let mut out = String::new();
        line(&mut out, &["a,b", "say \"no\"", "c"].map(str::to_owned));
        assert_eq!(out, "\"a,b\",\"say \"\"no\"\"\",c\r\n");
    }
}
