//! Any answer to the opening request, cut anywhere.

use super::cut::cut;
use super::words::written;
use wsbench_client::protocol::Welcome;
use wsbench_client::protocol::handshake::{ANSWER_MAX_BYTES, accept, judge, key};

const NONCE: u64 = 7;
/// Bytes that judging may need at most: the key and what fits it.
const MEMORY_MAX_BYTES: u64 = 1024;

/// The same verdict wherever the answer is cut, and no memory that grows with it.
pub fn check(program: &[u8], cuts: &[usize]) {
    let answer = answer(program);
    let key = key(NONCE);
    let mut whole = Welcome::Partial;
    let used = allocation_counter::measure(|| whole = judge(&key, &answer));
    assert!(used.bytes_max <= MEMORY_MAX_BYTES, "{used:?}");
    if let Welcome::Accepted(length) = whole {
        assert!(length <= answer.len().min(ANSWER_MAX_BYTES));
    }
    let segments = cut(&answer, cuts);
    assert_eq!(
        in_segments(&key, &answer, segments.iter().map(|part| part.len())),
        whole
    );
    // Each byte alone costs a parse of all before it.
    if answer.len() < 1000 {
        assert_eq!(in_segments(&key, &answer, answer.iter().map(|_| 1)), whole);
    }
}

/// The first verdict that is not `Partial`, judging after each segment.
fn in_segments(key: &str, answer: &[u8], lengths: impl Iterator<Item = usize>) -> Welcome {
    let mut there = 0;
    for length in lengths {
        there += length;
        match judge(key, &answer[..there]) {
            Welcome::Partial => {}
            verdict => return verdict,
        }
    }
    judge(key, answer)
}

/// Lines of which most are right, in any order, with bytes of the program between.
fn answer(program: &[u8]) -> Vec<u8> {
    let accepted = format!("Sec-WebSocket-Accept: {}\r\n", accept(&key(NONCE)));
    let long = format!("X-Long: {}\r\n", "y".repeat(ANSWER_MAX_BYTES / 3));
    let parts = [
        "HTTP/1.1 101 Switching Protocols\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n",
        &accepted,
        "\r\n",
        "HTTP/1.1 302 Found\r\nLocation: /\r\n",
        "Upgrade: h2c, WebSocket\r\n",
        "Connection: keep-alive\r\n",
        "Sec-WebSocket-Protocol: \r\n",
        "Sec-WebSocket-Extensions: permessage-deflate\r\n",
        "X: y\r\n folded: z\n",
        &long,
    ];
    written(&parts, program)
}
