//! The program that the kernel runs on whatever a socket of a connection receives.
//!
//! In C it would be this; it is written in instructions so that nobody needs a compiler
//! for BPF:
//!
//! ```c
//! int verdict(struct __sk_buff *skb) {
//!     __u32 length = skb->len;
//!     if (length == 0)                      // a bare FIN: there is nothing to send on,
//!         return SK_DROP;                   // and sending nothing would be an error
//!     __u64 source = bpf_get_socket_cookie(skb);
//!     struct count *count = bpf_map_lookup_elem(&counts, &source);
//!     if (count) {
//!         struct { __u64 bytes, token; } now = {count->bytes + length, count->token};
//!         __u64 *limit = bpf_map_lookup_elem(&limits, &source);
//!         if (count->passes)
//!             return SK_PASS;               // it stays with the source, in order
//!         if (limit && now.bytes > *limit) {
//!             count->passes = 1;            // so does this, and all that follows
//!             bpf_ringbuf_output(&ring, &now, sizeof now, 0);
//!             return SK_PASS;
//!         }
//!         __u64 before = count->bytes;
//!         count->bytes = now.bytes;
//!         if ((before ^ now.bytes) >> REPORT_SHIFT)
//!             bpf_ringbuf_output(&ring, &now, sizeof now, 0);
//!     }
//!     return bpf_sk_redirect_hash(skb, &targets, &source, 0);
//! }
//! ```

use std::mem::offset_of;
use std::os::fd::{AsRawFd, OwnedFd};

use super::bpf::Count;

/// It tells after every so many bytes (a power of two) of a source.
pub const REPORT_BYTES: u64 = 1 << REPORT_SHIFT;
const REPORT_SHIFT: i32 = 20;

const MAP_LOOKUP_ELEM: i32 = 1;
const GET_SOCKET_COOKIE: i32 = 46;
const SK_REDIRECT_HASH: i32 = 72;
const RINGBUF_OUTPUT: i32 = 130;

/// Where on the stack, which ends at R10, things are.
const SOURCE: i16 = -8;
const NOW_TOKEN: i16 = -16;
const NOW_BYTES: i16 = -24;

/// Where in a count.
const COUNT_BYTES: i16 = offset_of!(Count, bytes) as i16;
const COUNT_TOKEN: i16 = offset_of!(Count, token) as i16;
const COUNT_PASSES: i16 = offset_of!(Count, passes) as i16;

const SK_DROP: i32 = 0;
const SK_PASS: i32 = 1;

const LOAD_WORD: u8 = 0x61;
const LOAD_DOUBLE: u8 = 0x79;
const STORE_DOUBLE: u8 = 0x7b;
const LOAD_MAP: u8 = 0x18;
const MOVE: u8 = 0xbf;
const MOVE_NUMBER: u8 = 0xb7;
const ADD: u8 = 0x0f;
const ADD_NUMBER: u8 = 0x07;
const XOR: u8 = 0xaf;
const SHIFT_RIGHT: u8 = 0x77;
const IF_ZERO: u8 = 0x15;
const IF_NOT_ZERO: u8 = 0x55;
const IF_NOT_LESS: u8 = 0x3d;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// Registers: 0 is what a call returned and what is returned, 1 to 5 are arguments and
/// lost with a call.
const RESULT: u8 = 0;
const SKB: u8 = 6;
const LENGTH: u8 = 7;
const COUNT: u8 = 8;
const BYTES: u8 = 9;
const STACK: u8 = 10;

/// The maps that it works on.
pub struct Maps<'a> {
    pub counts: &'a OwnedFd,
    pub limits: &'a OwnedFd,
    pub ring: &'a OwnedFd,
    pub targets: &'a OwnedFd,
}

pub fn verdict(maps: &Maps<'_>) -> Vec<u64> {
    let leave_with = |verdict: i32| {
        [
            number(MOVE_NUMBER, RESULT, verdict),
            instruction(EXIT, 0, 0, 0, 0),
        ]
    };
    let (drop_it, pass_it) = (leave_with(SK_DROP), leave_with(SK_PASS));
    let tell = [
        &load_map(1, maps.ring)[..],
        &stack_address(2, NOW_BYTES),
        &[
            number(MOVE_NUMBER, 3, 16),
            number(MOVE_NUMBER, 4, 0),
            call(RINGBUF_OUTPUT),
        ],
    ]
    .concat();
    let stop_redirecting = [
        &[
            number(MOVE_NUMBER, 1, 1),
            instruction(STORE_DOUBLE, COUNT, 1, COUNT_PASSES, 0),
        ][..],
        &tell,
        &pass_it,
    ]
    .concat();
    let heed_limit = [
        &[
            instruction(LOAD_DOUBLE, 1, RESULT, 0, 0),
            instruction(IF_NOT_LESS, 1, BYTES, stop_redirecting.len() as i16, 0),
        ][..],
        &stop_redirecting,
    ]
    .concat();
    let count = [
        &[
            register(MOVE, COUNT, RESULT),
            instruction(LOAD_DOUBLE, 1, COUNT, COUNT_PASSES, 0),
            skip(IF_ZERO, 1, &pass_it),
        ][..],
        &pass_it,
        &[
            instruction(LOAD_DOUBLE, BYTES, COUNT, COUNT_BYTES, 0),
            register(ADD, BYTES, LENGTH),
            instruction(STORE_DOUBLE, STACK, BYTES, NOW_BYTES, 0),
            instruction(LOAD_DOUBLE, 1, COUNT, COUNT_TOKEN, 0),
            instruction(STORE_DOUBLE, STACK, 1, NOW_TOKEN, 0),
        ],
        &load_map(1, maps.limits),
        &stack_address(2, SOURCE),
        &[call(MAP_LOOKUP_ELEM), skip(IF_ZERO, RESULT, &heed_limit)],
        &heed_limit,
        &[
            instruction(LOAD_DOUBLE, 1, COUNT, COUNT_BYTES, 0),
            instruction(STORE_DOUBLE, COUNT, BYTES, COUNT_BYTES, 0),
            register(XOR, 1, BYTES),
            number(SHIFT_RIGHT, 1, REPORT_SHIFT),
            skip(IF_ZERO, 1, &tell),
        ],
        &tell,
    ]
    .concat();
    [
        &[
            register(MOVE, SKB, 1),
            instruction(LOAD_WORD, LENGTH, SKB, 0, 0),
            skip(IF_NOT_ZERO, LENGTH, &drop_it),
        ][..],
        &drop_it,
        &[
            register(MOVE, 1, SKB),
            call(GET_SOCKET_COOKIE),
            instruction(STORE_DOUBLE, STACK, RESULT, SOURCE, 0),
        ],
        &load_map(1, maps.counts),
        &stack_address(2, SOURCE),
        &[call(MAP_LOOKUP_ELEM), skip(IF_ZERO, RESULT, &count)],
        &count,
        &[register(MOVE, 1, SKB)],
        &load_map(2, maps.targets),
        &stack_address(3, SOURCE),
        &[
            number(MOVE_NUMBER, 4, 0),
            call(SK_REDIRECT_HASH),
            instruction(EXIT, 0, 0, 0, 0),
        ],
    ]
    .concat()
}

fn instruction(code: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> u64 {
    let [low, high] = offset.to_le_bytes();
    let [a, b, c, d] = immediate.to_le_bytes();
    u64::from_ne_bytes([code, source << 4 | destination, low, high, a, b, c, d])
}

fn register(code: u8, destination: u8, source: u8) -> u64 {
    instruction(code, destination, source, 0, 0)
}

fn number(code: u8, destination: u8, immediate: i32) -> u64 {
    instruction(code, destination, 0, 0, immediate)
}

fn call(helper: i32) -> u64 {
    number(CALL, 0, helper)
}

/// Past all of these, if so.
fn skip(condition: u8, tested: u8, instructions: &[u64]) -> u64 {
    instruction(condition, tested, 0, instructions.len() as i16, 0)
}

fn stack_address(destination: u8, offset: i16) -> [u64; 2] {
    [
        register(MOVE, destination, STACK),
        number(ADD_NUMBER, destination, offset.into()),
    ]
}

/// An instruction of two words, whose source says that the number is a map's file.
fn load_map(destination: u8, map: &OwnedFd) -> [u64; 2] {
    [instruction(LOAD_MAP, destination, 1, 0, map.as_raw_fd()), 0]
}
