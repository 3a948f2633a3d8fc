//! Requests to the control API.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| wsbench::fuzzing::control(input));
