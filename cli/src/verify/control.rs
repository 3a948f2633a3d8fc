//! Ping and pong: RFC 6455, sections 5.5, 5.5.2 and 5.5.3.

use super::case::{Case, Group, Outcome, Wrong};
use super::connection::frame::{FIN, PING, PONG, TEXT, masked};
use super::connection::{Connection, Kind, Peer};
use super::echo::{expect, nothing_more, pattern};
use super::refusal::{REFUSAL, expect_refusal};
use std::thread;
use std::time::Duration;
use wsbench_schema::Level::Should;

/// Between single bytes.
const DRIBBLE: Duration = Duration::from_micros(200);
/// Pings that come at once.
const PINGS: usize = 10;

/// In the order in which they run.
pub fn cases() -> Vec<Case> {
    let mut group = Group::new("control");
    for size in [0, 125] {
        let name = match size {
            0 => "empty ping".to_owned(),
            size => format!("ping of {size} bytes"),
        };
        group.add(
            Should,
            name,
            format!("a pong with the same {size} bytes"),
            move |peer| {
                let mut connection = peer.open()?;
                connection.send_frame(PING, &pattern(size))?;
                expect_pong(&mut connection, &pattern(size))?;
                nothing_more(&mut connection)
            },
        );
    }
    group.add(
        Should,
        "ping one byte a segment",
        "a pong with the same bytes",
        |peer| {
            let mut connection = peer.open()?;
            for byte in masked(FIN | PING, b"slowly") {
                connection.send(&[byte])?;
                thread::sleep(DRIBBLE);
            }
            expect_pong(&mut connection, b"slowly")?;
            nothing_more(&mut connection)
        },
    );
    group.add(
        Should,
        "ping and data in one segment",
        "a pong, and an answer to each message around the ping",
        among_data,
    );
    group.add(
        Should,
        "10 pings in one segment",
        "a pong to the last, and only such as were asked for",
        many_pings,
    );
    group.add(
        Should,
        "unsolicited pong",
        "no answer to it, and the next message answered",
        |peer| {
            let mut connection = peer.open()?;
            connection.send_frame(PONG, b"nobody asked")?;
            connection.send_frame(PONG, b"")?;
            nothing_else(&mut connection)
        },
    );
    for (name, opcode) in [("ping of 126 bytes", PING), ("pong of 126 bytes", PONG)] {
        group.add(Should, name, REFUSAL, move |peer| {
            expect_refusal(peer, &masked(FIN | opcode, &pattern(126)))
        });
    }
    group.cases()
}

fn expect_pong(connection: &mut Connection, payload: &[u8]) -> Outcome {
    match connection.next()? {
        Some(frame) if frame.opcode == PONG && frame.payload == payload => Ok(()),
        Some(frame) if frame.opcode == PONG && frame.payload.len() == payload.len() => {
            Err(Wrong::new("a pong with other bytes"))
        }
        Some(frame) => Err(Wrong::new(frame.describe())),
        None => Err(Wrong::new("the end of the connection")),
    }
}

/// The next frame answers a message that is sent now.
fn nothing_else(connection: &mut Connection) -> Outcome {
    connection.send_frame(TEXT, b"a message")?;
    match connection.next()? {
        Some(frame) if frame.opcode == TEXT => {
            connection.put_back(frame);
            expect(connection, Kind::Text, b"a message")
        }
        Some(frame) => Err(Wrong::new(frame.describe())),
        None => Err(Wrong::new("the end of the connection")),
    }
}

fn among_data(peer: &Peer<'_>) -> Outcome {
    let mut connection = peer.open()?;
    let frames = [
        masked(FIN | TEXT, b"one"),
        masked(FIN | PING, b"and"),
        masked(FIN | TEXT, b"two"),
    ];
    connection.send(&frames.concat())?;
    // A pong may overtake messages and the reverse.
    let (mut pongs, mut messages) = (0, Vec::new());
    while pongs < 1 || messages.len() < 2 {
        match connection.next()? {
            Some(frame) if frame.opcode == PONG && frame.payload == b"and" => pongs += 1,
            Some(frame) if frame.opcode == PONG => return Err(Wrong::new(frame.describe())),
            Some(frame) => {
                connection.put_back(frame);
                messages.push(connection.receive()?.payload);
            }
            None => return Err(Wrong::new("the end of the connection")),
        }
    }
    match messages[..] == [b"one", b"two"] && pongs == 1 {
        true => nothing_more(&mut connection),
        false => Err(Wrong::new("other messages than were sent")),
    }
}

fn many_pings(peer: &Peer<'_>) -> Outcome {
    let mut connection = peer.open()?;
    let payload = |at: usize| format!("ping {at}").into_bytes();
    let frames: Vec<Vec<u8>> = (0..PINGS)
        .map(|at| masked(FIN | PING, &payload(at)))
        .collect();
    connection.send(&frames.concat())?;
    let mut asked = (0..PINGS).map(payload);
    let last = payload(PINGS - 1);
    loop {
        match connection.next()? {
            // Those before it may be left out.
            Some(frame) if frame.opcode == PONG && asked.any(|ping| ping == frame.payload) => {
                if frame.payload == last {
                    return nothing_more(&mut connection);
                }
            }
            Some(frame) => {
                let seen = format!("{} that answers none of the pings left", frame.describe());
                return Err(Wrong::new(seen));
            }
            None => return Err(Wrong::new("the end of the connection")),
        }
    }
}
