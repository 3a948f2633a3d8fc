//! A program that writes the answer to a client's opening request.

#![no_main]

#[path = "../../client/tests/any_bytes/cut.rs"]
mod cut;
#[path = "../../client/tests/any_bytes/welcome.rs"]
mod welcome;
#[path = "../../schema/tests/any_bytes/words.rs"]
mod words;

libfuzzer_sys::fuzz_target!(|input: &[u8]| welcome::check(input, &[1, 7, 100]));
