//! Command lines.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| wsbench::fuzzing::flags(input));
