//! What of a report stands in other people's pages: the summary of a GitHub job, which
//! has a limit, and a block between markers in a README, which should be short.

use crate::document::{Block, Document, Part, PartKind};
use crate::table::Grid;
use crate::{markdown, text};
use std::fmt::Write as _;
use thiserror::Error;

/// Bytes of a job's summary, at most; GitHub shows none of one that is longer. See
/// "Adding a job summary" in the documentation of GitHub Actions.
pub const SUMMARY_MOST: usize = 1 << 20;
/// Of them, kept for saying what was left out.
const LEFT_OUT_MOST: usize = 4096;

/// How much a table matters to a reader who has no room for all: the least first.
fn rank(part: &Part, grid: &Grid, is_first: bool) -> u8 {
    match part.kind {
        PartKind::Answer { .. } => 0,
        PartKind::Load { .. } if is_first => 1,
        PartKind::Across => 2,
        _ if grid.file == "differences" => 3,
        _ => 4,
    }
}

/// A table with its heading, and what it is called.
fn table(part: &Part, grid: &Grid) -> (String, String) {
    let name = match part.heading_of(&grid.title) {
        Some(title) => format!("{}: {title}", part.title),
        None => part.title.clone(),
    };
    let mut out = format!("\n### {}\n\n", text::markdown(&name));
    markdown::grid(&mut out, grid);
    (name, out)
}

/// All tables, those that matter most first.
fn ranked(document: &Document) -> Vec<(u8, String, String)> {
    let mut tables = Vec::new();
    for part in &document.parts {
        let grids = part.blocks.iter().filter_map(|block| match block {
            Block::Grid(grid) => Some(grid),
            _ => None,
        });
        tables.extend(grids.enumerate().map(|(index, grid)| {
            let (name, text) = table(part, grid);
            (rank(part, grid, index == 0), name, text)
        }));
    }
    tables.sort_by_key(|(rank, ..)| *rank);
    tables
}

/// The report for a job's summary, in at most so many bytes: what does not fit is named.
#[must_use]
pub fn github(document: &Document, room: usize) -> String {
    let mut out = markdown::heading("Report", document);
    if out.len() > room.saturating_sub(LEFT_OUT_MOST) {
        out = format!("# Report: run {}\n", text::markdown(&document.run));
    }
    let room = room.saturating_sub(LEFT_OUT_MOST);
    let mut left_out = Vec::new();
    for (_, name, text) in ranked(document) {
        match out.len() + text.len() <= room {
            true => out.push_str(&text),
            false => left_out.push(name),
        }
    }
    if !left_out.is_empty() {
        let names = text::shortened(&left_out.join(", "), LEFT_OUT_MOST / 8);
        let _ = write!(
            out,
            "\n**{} tables are left out, because a job's summary holds 1 MiB: {}. All are in report.md.**\n",
            left_out.len(),
            text::markdown(&names),
        );
    }
    out
}

/// What a README shows: the answer, and the first table of each load.
#[must_use]
pub fn result(document: &Document) -> String {
    let mut out = String::new();
    for warning in &document.warnings {
        let _ = write!(out, "> **{}**\n\n", text::markdown(warning));
    }
    let facts = document.facts.iter();
    let facts = facts.filter(|(name, _)| ["Started", "CPU", "Kernel"].contains(&name.as_str()));
    let facts: Vec<String> = facts.map(|(_, value)| text::markdown(value)).collect();
    let run = text::markdown(&document.run);
    let _ = writeln!(out, "Run {run}: {}.", facts.join("; "));
    for (rank, _, table) in ranked(document) {
        if rank <= 1 {
            out.push_str(&table);
        }
    }
    out
}

/// A block that cannot be written.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SpliceError {
    /// A marker is not there.
    #[error("there is no `{0}` (put both markers where the result should stand)")]
    Missing(String),
    /// A marker is there twice.
    #[error(
        "there are {1} of `{0}`, and it is not clear which is meant (leave one, or give blocks names)"
    )]
    Doubled(String, usize),
    /// The end comes first.
    #[error("`{1}` stands before `{0}` (exchange them)")]
    Order(String, String),
    /// Not a part of a marker.
    #[error("`{0}` cannot be a block's name: letters, digits, `-`, `_` and `.` only")]
    Name(String),
}

/// The markers of a block: `<!-- wsbench:result begin -->`, and with a name
/// `<!-- wsbench:result NAME begin -->`.
///
/// # Errors
/// If the name could end the marker.
pub fn markers(name: Option<&str>) -> Result<[String; 2], SpliceError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let name = match name {
        None => String::new(),
        Some(name) if !name.is_empty() && !name.contains("--") && name.bytes().all(is_plain) => {
            format!(" {name}")
        }
        Some(name) => return Err(SpliceError::Name(name.to_owned())),
    };
    Ok(["begin", "end"].map(|end| format!("<!-- wsbench:result{name} {end} -->")))
}

/// Puts a block between its markers. Every other byte is as it was.
///
/// # Errors
/// If a marker is missing, doubled, or before the one that it should follow.
pub fn splice(file: &[u8], name: Option<&str>, block: &str) -> Result<Vec<u8>, SpliceError> {
    let [begin, end] = markers(name)?;
    let from = only(file, &begin)? + begin.len();
    let to = only(file, &end)?;
    if to < from {
        return Err(SpliceError::Order(begin, end));
    }
    let (before, after) = (&file[..from], &file[to..]);
    let block = block.trim();
    Ok([before, b"\n\n", block.as_bytes(), b"\n\n", after].concat())
}

/// Where a marker is.
fn only(file: &[u8], marker: &str) -> Result<usize, SpliceError> {
    let found = file.windows(marker.len()).enumerate();
    let found = found.filter(|(_, window)| *window == marker.as_bytes());
    let places: Vec<usize> = found.map(|(place, _)| place).collect();
    match places[..] {
        [place] => Ok(place),
        [] => Err(SpliceError::Missing(marker.to_owned())),
        [..] => Err(SpliceError::Doubled(marker.to_owned(), places.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshots;

    #[test]
    fn a_summary_keeps_the_limit_and_says_what_it_left_out() {
        let document = snapshots::report().document();
        let whole = github(&document, SUMMARY_MOST);
        assert!(!whole.contains("left out"), "{whole}");
        let place = |title: &str| whole.find(&format!("### {title}")).expect(title);
        assert!(place("In short") < place("Load "));
        for room in [whole.len(), LEFT_OUT_MOST + 3000, LEFT_OUT_MOST, 10] {
            let cut = github(&document, room);
            assert!(
                cut.len() <= room.max(LEFT_OUT_MOST),
                "{room}: {}",
                cut.len()
            );
            assert!(cut.contains("tables are left out"), "{cut}");
            assert!(cut.starts_with("# Report: run example\n"));
        }
    }

    #[test]
    fn a_block_is_put_between_its_markers_and_nothing_else_changes() {
        let file = b"\xff\r\n<!-- wsbench:result begin -->old<!-- wsbench:result end -->\r\n\
            <!-- wsbench:result tcp begin -->\n<!-- wsbench:result tcp end -->tail";
        let one = splice(file, None, "new\n").unwrap();
        let text = String::from_utf8_lossy(&one).into_owned();
        assert!(
            one.starts_with(
                b"\xff\r\n<!-- wsbench:result begin -->\n\nnew\n\n<!-- wsbench:result end -->\r\n"
            ),
            "{text}"
        );
        assert!(
            one.ends_with(
                b"<!-- wsbench:result tcp begin -->\n<!-- wsbench:result tcp end -->tail"
            ),
            "{text}"
        );
        // Twice is the same as once, and another block is another block.
        assert_eq!(splice(&one, None, "new").unwrap(), one);
        let both = splice(&one, Some("tcp"), "relays").unwrap();
        assert!(both.ends_with(b"begin -->\n\nrelays\n\n<!-- wsbench:result tcp end -->tail"));
    }

    #[test]
    fn markers_that_leave_it_unclear_where_the_block_goes_are_refused() {
        let [begin, end] = markers(None).unwrap();
        let error = |file: String| splice(file.as_bytes(), None, "x").unwrap_err();
        assert_eq!(error(end.clone()), SpliceError::Missing(begin.clone()));
        assert_eq!(error(begin.clone()), SpliceError::Missing(end.clone()));
        let doubled = error(format!("{begin}{begin}{end}"));
        assert_eq!(doubled, SpliceError::Doubled(begin.clone(), 2));
        let order = error(format!("{end}{begin}"));
        assert_eq!(order, SpliceError::Order(begin, end));
        for name in ["", "a b", "a--b", "-->"] {
            assert!(markers(Some(name)).is_err(), "{name}");
        }
    }

    #[test]
    fn a_readme_shows_the_answer_and_a_table_of_each_load() {
        let text = result(&snapshots::report().document());
        assert!(text.contains("### In short"), "{text}");
        assert!(text.contains(": Compact"), "{text}");
        assert!(!text.contains("BenchRate"), "{text}");
    }
}
