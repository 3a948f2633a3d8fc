//! Manifests, profiles, lock files and run files.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| wsbench::fuzzing::manifests(input));
