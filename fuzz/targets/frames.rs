//! A program that writes a stream of server frames, and the cuts of the stream.

#![no_main]

#[path = "../../client/tests/any_bytes/agreement.rs"]
mod agreement;
#[path = "../../client/tests/any_bytes/cut.rs"]
mod cut;
#[path = "../../client/tests/any_bytes/ours.rs"]
mod ours;
#[path = "../../client/tests/any_bytes/stream.rs"]
mod stream;
#[path = "../../client/tests/any_bytes/theirs.rs"]
mod theirs;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    agreement::check(&stream::case(input), &[1, 7, 100]);
});
