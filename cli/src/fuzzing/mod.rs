//! What must hold of the parsers, whatever is written: for the property tests
//! and for the fuzzer. Not part of the program.

mod control;
mod flags;
mod manifests;

#[path = "../../../schema/tests/any_bytes/edit.rs"]
mod edit;
#[path = "../../../schema/tests/any_bytes/words.rs"]
mod words;

pub use control::check as control;
pub use flags::check as flags;
pub use manifests::check as manifests;

/// Errors are told in one line.
fn assert_one_line(error: &str) {
    assert!(!error.contains(['\n', '\r']), "{error:?}");
    assert!(!error.is_empty());
}

#[cfg(test)]
mod tests;
