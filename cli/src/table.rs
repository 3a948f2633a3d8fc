//! Plain tables of text on standard output, for verbs that list subjects.

use comfy_table::{ContentArrangement, LineStyle, Row, TableStyle};
use std::io::{self, Write as _};

/// Cells side by side and one rule under the header, as in the report.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle {
    fill: Some('─'),
    ..LineStyle::none()
});

/// No cell is ever folded: a row stays a line, so that it can be searched.
pub fn render<R: Into<Row>>(header: impl Into<Row>, rows: Vec<R>) -> String {
    let mut table = comfy_table::Table::new();
    table
        .load_style(STYLE)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header)
        .add_rows(rows);
    table.trim_fmt()
}

/// Prints lines; whoever closes standard output early (`| head`) has seen enough.
///
/// # Errors
/// If they cannot be written for another reason.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_one_line_however_long() {
        let long = "x".repeat(300);
        let text = render(["Name", "State"], vec![["axum".into(), long.clone()]]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].contains("Name") && lines[0].contains("State"));
        assert!(lines[2].contains("axum") && lines[2].contains(&long));
    }
}
