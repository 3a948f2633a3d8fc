//! How wide a text is at most, without a font at hand: the file names none, the
//! viewer takes its own. The widths are at least those of DejaVu Sans, which is
//! about the widest of those that `sans-serif` usually means.

/// Wide writing systems and emoji have squares.
const SQUARE_MILLIEMS: u32 = 1000;

fn milliems(character: char) -> u32 {
    match character {
        'i' | 'j' | 'l' | 'I' | '\'' | '.' | ',' | ' ' | ':' | ';' | '|' | '/' | '\\' => 340,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '!' => 415,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => 1000,
        'A'..='Z' | '&' | '+' | '=' | '<' | '>' | '~' | '#' => 840,
        '!'..='~' => 645,
        _ => SQUARE_MILLIEMS,
    }
}

/// Pixels at a size in pixels.
pub fn width(text: &str, size: i32) -> i32 {
    let milliems: u64 = text.chars().map(|c| u64::from(milliems(c))).sum();
    let pixels = milliems * u64::from(size.unsigned_abs()) / 1000 + 1;
    i32::try_from(pixels).unwrap_or(i32::MAX)
}

/// As much of the text as is no wider, with an ellipsis where it was cut. What XML
/// cannot hold, or what would turn the writing around it, is left out.
pub fn fit(text: &str, size: i32, most: i32) -> String {
    let text = printable(text);
    if width(&text, size) <= most {
        return text;
    }
    let mut cut = String::new();
    for character in text.chars() {
        cut.push(character);
        if width(&cut, size) + width("…", size) > most {
            cut.pop();
            break;
        }
    }
    cut.trim_end().to_owned() + "…"
}

/// One line of what every viewer shows in the order in which it is written.
pub fn printable(text: &str) -> String {
    let is_no_character = |c: &char| u32::from(*c) & 0xfffe == 0xfffe;
    let turns = |c: &char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let line = crate::text::one_line(text);
    line.chars()
        .filter(|c| !is_no_character(c) && !turns(c))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_to_its_room_and_says_so() {
        assert_eq!(fit("axum", 12, 100), "axum");
        let cut = fit("fastwebsockets_with_everything", 12, 100);
        assert!(cut.starts_with("fastwebs") && cut.ends_with('…'), "{cut}");
        assert!(width(&cut, 12) <= 100);
        assert_eq!(fit("axum", 12, 0), "…");
    }

    #[test]
    fn what_xml_cannot_hold_is_left_out() {
        assert_eq!(printable("a\u{1b}[2J\u{ffff}\u{202e}b\0"), "a [2Jb");
    }
}
