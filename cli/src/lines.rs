//! Lines from other processes, which may write anything: what is no text is
//! replaced, and what has no end comes in pieces.

use std::io::{self, BufRead, Read as _};

/// The longest line of a client, with all its histograms by interval, is a tenth of it.
const LINE_MOST_BYTES: u64 = 64 << 20;
/// Of a line that is shown to the user.
const SHOWN_MOST_CHARS: usize = 200;

/// The lines of `input`, without their ends.
///
/// # Errors
/// Those of reading.
pub fn lines(input: impl BufRead) -> impl Iterator<Item = io::Result<String>> {
    pieces(input, LINE_MOST_BYTES)
}

fn pieces(mut input: impl BufRead, most: u64) -> impl Iterator<Item = io::Result<String>> {
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        match input.by_ref().take(most).read_until(b'\n', &mut line) {
            Ok(0) => None,
            Ok(_) => {
                let text = line.strip_suffix(b"\n").unwrap_or(&line);
                let text = text.strip_suffix(b"\r").unwrap_or(text);
                Some(Ok(String::from_utf8_lossy(text).into_owned()))
            }
            Err(error) => Some(Err(error)),
        }
    })
}

/// The beginning of a line that is not what it should be.
pub fn shown(line: &str) -> String {
    match line.char_indices().nth(SHOWN_MOST_CHARS) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

/// Several lines in one, as a reason stands in a row.
pub fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_end_comes_in_pieces_and_no_text_is_replaced() {
        let of = |bytes: &[u8]| -> Vec<_> { pieces(bytes, 4).map(Result::unwrap).collect() };
        assert_eq!(of(b""), [""; 0]);
        assert_eq!(of(b"a\n\nb\r\nc"), ["a", "", "b", "c"]);
        assert_eq!(of(b"abcdefghi\nj"), ["abcd", "efgh", "i", "j"]);
        assert_eq!(of(b"\xFF\n"), ["\u{FFFD}"]);
    }

    #[test]
    fn only_the_beginning_of_a_long_line_is_shown() {
        assert_eq!(shown("short"), "short");
        assert_eq!(shown(&"ä".repeat(300)), "ä".repeat(200) + "...");
    }
}
