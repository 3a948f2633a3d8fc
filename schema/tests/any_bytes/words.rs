//! A text of given words and other bytes between, written from a program.

/// Each byte of the program writes a word, or takes some of the bytes behind it
/// as they are.
pub fn written(words: &[&str], mut program: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    while let [first, rest @ ..] = program {
        program = rest;
        match words.get(usize::from(*first)) {
            Some(word) => text.extend_from_slice(word.as_bytes()),
            None => {
                let (raw, rest) = program.split_at(program.len().min(usize::from(first % 16)));
                program = rest;
                text.extend_from_slice(raw);
            }
        }
    }
    text
}
