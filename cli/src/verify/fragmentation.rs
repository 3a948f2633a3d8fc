//! Messages in several frames: RFC 6455, sections 5.4, 5.5 and 5.6.

use super::case::{Case, Group, Outcome, Wrong};
use super::connection::frame::{BINARY, CONTINUATION, FIN, PING, PONG, TEXT, masked};
use super::connection::{Connection, Kind, Peer};
use super::echo::{expect, nothing_more, pattern};
use super::refusal::{REFUSAL, expect_refusal};
use wsbench_schema::Level::Should;

/// In the order in which they run.
pub fn cases() -> Vec<Case> {
    let mut group = Group::new("fragmentation");
    for (kind, count, size) in [
        (Kind::Text, 2, 5),
        (Kind::Binary, 10, 1_010),
        (Kind::Binary, 1_000, 4_000),
    ] {
        group.add(
            Should,
            format!("{} in {count} fragments", kind.name()),
            format!("one {} message of {size} bytes", kind.name()),
            move |peer| {
                let payload = pattern(size);
                let parts: Vec<&[u8]> = payload.chunks(size.div_ceil(count)).collect();
                echoed(peer, kind, &parts)
            },
        );
    }
    group.add(
        Should,
        "types of messages in fragments",
        "text for text and binary for binary",
        |peer| {
            echoed(peer, Kind::Text, &[b"the same ", b"bytes"])?;
            echoed(peer, Kind::Binary, &[b"the same ", b"bytes"])
        },
    );
    group.add(
        Should,
        "empty fragments",
        "one text message of 10 bytes, and one of 0 bytes",
        |peer| {
            echoed(peer, Kind::Text, &[b"", b"with", b"", b" holes", b""])?;
            echoed(peer, Kind::Text, &[b"", b"", b""])
        },
    );
    group.add(
        Should,
        "character cut by fragments",
        "the text as it was sent",
        |peer| {
            let text = "🦀é世".as_bytes();
            let parts: Vec<&[u8]> = text.chunks(1).collect();
            echoed(peer, Kind::Text, &parts)
        },
    );
    group.add(
        Should,
        "ping between fragments",
        "a pong, and one text message",
        ping_between,
    );
    let mut refused = |name: &str, frames: fn() -> Vec<u8>| {
        group.add(Should, name, REFUSAL, move |peer| {
            expect_refusal(peer, &frames())
        });
    };
    refused("ping in fragments", || {
        [masked(PING, b"in "), masked(FIN | CONTINUATION, b"two")].concat()
    });
    refused("continuation without a start", || {
        masked(FIN | CONTINUATION, b"of nothing")
    });
    refused("unfinished continuation without a start", || {
        masked(CONTINUATION, b"of nothing")
    });
    refused("new message within fragments", || {
        [masked(TEXT, b"unfinished"), masked(FIN | TEXT, b"new")].concat()
    });
    refused("new fragments within fragments", || {
        [masked(BINARY, b"unfinished"), masked(BINARY, b"new")].concat()
    });
    group.cases()
}

/// The frames of one message.
pub fn fragments(kind: Kind, parts: &[&[u8]]) -> Vec<u8> {
    let last = parts.len().saturating_sub(1);
    let frames = parts.iter().enumerate().map(|(at, part)| {
        let opcode = if at == 0 { kind.opcode() } else { CONTINUATION };
        let fin = if at == last { FIN } else { 0 };
        masked(fin | opcode, part)
    });
    frames.collect::<Vec<_>>().concat()
}

fn echoed(peer: &Peer<'_>, kind: Kind, parts: &[&[u8]]) -> Outcome {
    let mut connection = peer.open()?;
    connection.send(&fragments(kind, parts))?;
    expect(&mut connection, kind, &parts.concat())?;
    nothing_more(&mut connection)
}

fn ping_between(peer: &Peer<'_>) -> Outcome {
    let mut connection = peer.open()?;
    let frames = [
        masked(TEXT, b"before "),
        masked(FIN | PING, b"between"),
        masked(FIN | CONTINUATION, b"and after"),
    ];
    connection.send(&frames.concat())?;
    // Which of the two comes first is the server's choice.
    let mut answered = false;
    loop {
        match connection.next()? {
            Some(frame) if frame.opcode == PONG && frame.payload == b"between" => answered = true,
            Some(frame) => {
                connection.put_back(frame);
                expect(&mut connection, Kind::Text, b"before and after")?;
                break;
            }
            None => return Err(ended(&connection)),
        }
    }
    if answered {
        return nothing_more(&mut connection);
    }
    match connection.next()? {
        Some(frame) if frame.opcode == PONG && frame.payload == b"between" => {
            nothing_more(&mut connection)
        }
        Some(frame) => Err(Wrong::new(format!("{} for a pong", frame.describe()))),
        None => Err(ended(&connection)),
    }
}

fn ended(connection: &Connection) -> Wrong {
    let how = connection.raw.ended().unwrap_or("closed");
    Wrong::new(format!("the connection {how} while waiting for an answer"))
}
