//! A text with edits, written from a program of bytes: so the same programs
//! serve the property tests and the fuzzer, and most of a text stays right,
//! which random bytes never are.

/// What stands in the way of readers.
const AWKWARD: [&str; 16] = [
    "null",
    "-1",
    "0",
    "1e999",
    "18446744073709551615",
    "18446744073709551616",
    "0.1",
    "\"\"",
    "\"\u{0}\\ud800\"",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    "{\"a\":{\"a\":{\"a\":",
    "true",
    "\"",
    ",",
    "}",
    "\n",
];

/// The text after the edits that the program says: in place of a stretch come
/// nothing, bytes of the program, something awkward, or another stretch.
pub fn edited(text: &[u8], mut program: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    while let [operation, at, more, length, rest @ ..] = program {
        program = rest;
        let place = |high: u8, low: u8| {
            ((usize::from(high) << 8 | usize::from(low)) * (text.len() + 1)) >> 16
        };
        let start = place(*at, *more);
        let end = text.len().min(start + usize::from(length % 32));
        let instead = match operation % 5 {
            0 => Vec::new(),
            1 => {
                let (bytes, rest) = program.split_at(program.len().min(usize::from(length / 32)));
                program = rest;
                bytes.to_vec()
            }
            2 => text[place(*more, *at)..].iter().take(40).copied().collect(),
            3 => {
                text.truncate(start);
                continue;
            }
            _ => AWKWARD[usize::from(operation / 5) % AWKWARD.len()].into(),
        };
        text.splice(start..end, instead);
    }
    text
}
