//! Records, plans, examinations, histograms, lines between processes, URLs.

#![no_main]

#[path = "../../schema/tests/any_bytes/check.rs"]
mod check;
#[path = "../../schema/tests/any_bytes/edit.rs"]
mod edit;
#[path = "../../schema/tests/any_bytes/samples.rs"]
mod samples;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::any(input));
