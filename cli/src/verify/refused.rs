//! Frames that must be refused: RFC 6455, sections 5.1, 5.2, 5.6, 8.1 and 10.4.

use super::case::{Case, Group, Outcome, Wrong};
use super::connection::frame::{
    BINARY, CLOSE, CONTINUATION, FIN, PING, PONG, TEXT, add_masked, masked,
};
use super::connection::{Kind, Peer};
use super::fragmentation::fragments;
use super::refusal::{Behind, REFUSAL, expect_refusal, expect_text_refused, refusal};
use wsbench_schema::Level::{self, Note, Should};

/// Reserved bits, as in a frame's first byte.
const RESERVED_BITS: [(&str, u8); 3] = [("RSV1", 0x40), ("RSV2", 0x20), ("RSV3", 0x10)];
const RESERVED_OPCODES: [u8; 10] = [3, 4, 5, 6, 7, 11, 12, 13, 14, 15];
/// More than any memory, for a server without a limit.
const TOO_LONG_BYTES: u64 = 1 << 40;
/// Text that is not UTF-8.
const INVALID: [(&str, &[u8]); 5] = [
    ("byte that none has", b"right \xff wrong"),
    ("lone continuation byte", b"right \x80 wrong"),
    ("overlong form", b"right \xc0\xaf wrong"),
    ("surrogate", b"right \xed\xa0\x80 wrong"),
    ("beyond U+10FFFF", b"right \xf4\x90\x80\x80 wrong"),
];

/// In the order in which they run.
pub fn cases() -> Vec<Case> {
    let mut group = Group::new("refused");
    let mut refused = |level: Level, name: String, frames: fn() -> Vec<u8>| {
        group.add(level, name, REFUSAL, move |peer| {
            expect_refusal(peer, &frames())
        });
    };
    refused(Should, "frame without a mask".into(), unmasked);
    refused(Note, "length of 5 in 2 bytes".into(), || {
        with_length(FIN | TEXT, &[126, 0, 5], b"Hello")
    });
    refused(Note, "length of 5 in 8 bytes".into(), || {
        with_length(FIN | TEXT, &[127, 0, 0, 0, 0, 0, 0, 0, 5], b"Hello")
    });
    refused(Should, "length with the highest bit".into(), || {
        let length = (1_u64 << 63 | 5).to_be_bytes();
        with_length(FIN | BINARY, &[&[127], &length[..]].concat(), b"Hello")
    });
    refused(Should, "length of 1 TiB".into(), too_long);
    for (name, bit) in RESERVED_BITS {
        group.add(
            Should,
            format!("{name} without an extension"),
            REFUSAL,
            move |peer| expect_refusal(peer, &masked(FIN | bit | TEXT, b"Hello")),
        );
    }
    group.add(Should, "RSV1 in a ping", REFUSAL, |peer| {
        expect_refusal(peer, &masked(FIN | 0x40 | PING, b"Hello"))
    });
    for opcode in RESERVED_OPCODES {
        group.add(Should, format!("opcode {opcode}"), REFUSAL, move |peer| {
            expect_refusal(peer, &masked(FIN | opcode, b"Hello"))
        });
    }
    invalid_text(&mut group);
    reasons(&mut group);
    group.cases()
}

fn invalid_text(group: &mut Group) {
    for (name, text) in INVALID {
        group.add(
            Should,
            format!("invalid UTF-8: {name}"),
            REFUSAL,
            move |peer| expect_text_refused(peer, &masked(FIN | TEXT, text)),
        );
    }
    let mut cut = |name: &str, parts: &'static [&'static [u8]]| {
        let name = format!("invalid UTF-8: {name}");
        group.add(Should, name, REFUSAL, move |peer| {
            expect_text_refused(peer, &fragments(Kind::Text, parts))
        });
    };
    cut("character cut by the end", &[b"right \xe4\xb8"]);
    cut(
        "within a later fragment",
        &[b"right", b" wr\xffong", b" late"],
    );
    cut("across fragments", &[b"right \xe4\xb8", b" wrong"]);
    cut(
        "cut by the last fragment",
        &[b"right ", b"\xf0\x9f\xa6", b""],
    );
    group.add(
        Note,
        "invalid UTF-8: refused before the message ends",
        "a close frame or the end of the connection at the first fragment",
        fail_fast,
    );
}

/// Section 7.1.7: a close frame should say why.
fn reasons(group: &mut Group) {
    let invalid = || masked(FIN | TEXT, b"\xff");
    for (name, code, behind, frames) in [
        (
            "a protocol error",
            1002,
            Behind::PingAndMessage,
            unmasked as fn() -> Vec<u8>,
        ),
        ("invalid UTF-8", 1007, Behind::Message, invalid),
        ("a length of 1 TiB", 1009, Behind::PingAndMessage, too_long),
    ] {
        group.add(
            Note,
            format!("reason given for {name}"),
            format!("a close frame ({code})"),
            move |peer| refusal(peer, &frames(), behind)?.expect_code(code),
        );
    }
}

fn unmasked() -> Vec<u8> {
    [&[FIN | TEXT, 5], &b"Hello"[..]].concat()
}

fn too_long() -> Vec<u8> {
    let length = TOO_LONG_BYTES.to_be_bytes();
    with_length(FIN | BINARY, &[&[127], &length[..]].concat(), b"Hello")
}

/// A masked frame whose length is written as told.
fn with_length(first: u8, length: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    frame.extend(length);
    frame[1] |= 0x80;
    add_masked(&mut frame, payload);
    frame
}

fn fail_fast(peer: &Peer<'_>) -> Outcome {
    let mut connection = peer.open()?;
    let frames = [
        masked(TEXT, b"right"),
        masked(CONTINUATION, b" wr\xffong"),
        masked(FIN | PING, b"still there?"),
    ];
    match connection.send(&frames.concat()) {
        Err(wrong) if wrong.late => return Err(wrong),
        _ => {}
    }
    match connection.next()? {
        None => Ok(()),
        Some(frame) if frame.opcode == CLOSE => Ok(()),
        Some(frame) if frame.opcode == PONG => Err(Wrong::new("a pong to the ping behind it")),
        Some(frame) => Err(Wrong::new(frame.describe())),
    }
}
