//! Text that others wrote (names, reasons, versions), made safe to print: in a
//! terminal it cannot move the cursor, in markdown it cannot leave its cell.

use crate::row::{Cell, Place};
use crate::units::{MISSING, Unit};

/// One line without control characters.
#[must_use]
pub fn one_line(text: &str) -> String {
    let printable = |character: char| {
        if character.is_control() {
            ' '
        } else {
            character
        }
    };
    let text: String = text.chars().map(printable).collect();
    text.trim().to_owned()
}

/// One line that markdown shows as it is. An underscore within a word means
/// nothing there and stays readable in the source.
#[must_use]
pub fn markdown(text: &str) -> String {
    let line = one_line(text);
    let characters: Vec<char> = line.chars().collect();
    let mut escaped = String::with_capacity(line.len());
    for (index, &character) in characters.iter().enumerate() {
        let word = |index: Option<usize>| {
            let neighbour = index.and_then(|index| characters.get(index));
            neighbour.is_some_and(|neighbour| neighbour.is_alphanumeric())
        };
        let special = match character {
            '_' => !(word(index.checked_sub(1)) && word(Some(index + 1))),
            _ => "\\|`*<>[]~&$#".contains(character),
        };
        if special {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// The beginning of a text that stands in full elsewhere: at most so many
/// characters.
#[must_use]
pub fn shortened(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    let beginning: String = text.chars().take(longest.saturating_sub(1)).collect();
    beginning + "…"
}

/// Of a reason, which stands in full under the table.
const LONGEST_REASON: usize = 60;

/// What a cell says, before it is made safe.
#[must_use]
pub fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Missing => MISSING.to_owned(),
        Cell::Text(text) => text.clone(),
        Cell::Failed { stage, reason } => {
            format!("FAILED ({stage}: {})", shortened(reason, LONGEST_REASON))
        }
        Cell::Number(value, unit) => unit.show(*value),
        Cell::Span(lowest, highest, unit) => {
            format!("{}-{}", unit.show(*lowest), unit.show(*highest))
        }
        Cell::Change(before, after, unit) => {
            format!("{} -> {}", unit.show(*before), unit.show(*after))
        }
        Cell::Part(part, whole, unit) => part_of(*part, *whole, *unit),
        Cell::Placed(value, unit, place) => match place {
            Place::First => format!("{} *", unit.show(*value)),
            Place::NotShown => format!("{} ~", unit.show(*value)),
            Place::TooFewRounds => format!("{} ?", unit.show(*value)),
            Place::Behind => unit.show(*value),
        },
    }
}

/// `3.2 of 4.0 GB`, in one unit if both have the same; the whole alone is all of it.
fn part_of(part: f64, whole: f64, unit: Unit) -> String {
    let (part, whole) = (unit.show(part), unit.show(whole));
    if part == whole {
        return whole;
    }
    match (part.split_once(' '), whole.split_once(' ')) {
        (Some((number, of)), Some((_, suffix))) if of == suffix => format!("{number} of {whole}"),
        _ => format!("{part} of {whole}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_shows_what_others_wrote_as_it_is() {
        assert_eq!(markdown("a|b"), r"a\|b");
        assert_eq!(markdown("`x` <b> [y](z)"), r"\`x\` \<b\> \[y\](z)");
        assert_eq!(markdown(r"back\slash"), r"back\\slash");
        assert_eq!(markdown("one\ntwo\r\n"), "one two");
        assert_eq!(markdown("tokio_tungstenite"), "tokio_tungstenite");
        assert_eq!(markdown("_bold_ __x__"), r"\_bold\_ \_\_x\_\_");
    }

    #[test]
    fn a_terminal_sees_no_control_characters() {
        assert_eq!(one_line("\u{1b}[2Jboom\n\tmore\u{7}"), "[2Jboom  more");
    }

    #[test]
    fn cells_are_written_in_their_unit() {
        assert_eq!(cell(&Cell::Missing), "-");
        assert_eq!(cell(&Cell::of(None, Unit::Count)), "-");
        assert_eq!(cell(&Cell::of(Some(0.0), Unit::Count)), "0");
        let span = Cell::Span(5200.0, 5440.0, Unit::Microseconds);
        assert_eq!(cell(&span), "5.20-5.44");
        let change = Cell::Change(1.0, 501.0, Unit::Count);
        assert_eq!(cell(&change), "1 -> 501");
        for (part, text) in [
            (3.2e9, "3.2 of 4.0 GB"),
            (9e8, "900.0 MB of 4.0 GB"),
            (4e9, "4.0 GB"),
        ] {
            assert_eq!(cell(&Cell::Part(part, 4e9, Unit::Data)), text);
        }
        let first = Cell::Placed(1.0, Unit::Ratio, Place::First);
        assert_eq!(cell(&first), "1.00 *");
        let failed = Cell::Failed {
            stage: "echo".into(),
            reason: "died".into(),
        };
        assert_eq!(cell(&failed), "FAILED (echo: died)");
        let failed = Cell::Failed {
            stage: "echo".into(),
            reason: "é".repeat(61),
        };
        let text = format!("FAILED (echo: {}…)", "é".repeat(59));
        assert_eq!(cell(&failed), text);
    }
}
