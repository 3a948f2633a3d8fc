//! Closing: RFC 6455, sections 5.5.1, 7.1 and 7.4; and what becomes of the
//! server's socket.

use super::case::{Case, Group, Outcome, Wrong};
use super::connection::frame::{CLOSE, FIN, Frame, PING, PONG, TEXT, masked};
use super::connection::{Connection, Kind, Peer};
use super::echo::{expect, expect_echo};
use super::refusal::REFUSAL;
use crate::sockets;
use std::net::SocketAddr;
use wsbench_schema::Level::{self, Note, Should};

/// That an endpoint may send: of the RFC, of a library, of an application.
const CODES: [u16; 11] = [
    1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 4999,
];
/// That none may send; of the others the RFC says only that nobody uses them.
const FORBIDDEN_CODES: [u16; 5] = [0, 999, 1005, 1006, 1015];
const UNUSED_CODES: [u16; 4] = [1004, 2999, 5000, 65535];
/// Longest beside the code.
const LONGEST_REASON: usize = 123;

const CLOSED: &str =
    "a close frame with a code that is allowed or none, and the end of the connection";
const NOT_REPEATED: &str = "the end of the connection, and no such close frame in return";

/// In the order in which they run.
pub fn cases() -> Vec<Case> {
    let mut group = Group::new("close");
    for code in CODES {
        group.add(Should, format!("code {code}"), CLOSED, move |peer| {
            closed(peer, &code.to_be_bytes()).map(drop)
        });
    }
    group.add(Should, "no code", CLOSED, |peer| {
        closed(peer, b"").map(drop)
    });
    group.add(Should, "longest reason", CLOSED, |peer| {
        let reason = "é".repeat(LONGEST_REASON / 2) + ".";
        closed(peer, &body(1000, reason.as_bytes())).map(drop)
    });
    group.add(
        Note,
        "code repeated",
        "the code that was sent in the close frame in return",
        |peer| match closed(peer, &body(4321, b""))? {
            frame if frame.code() == Some(4321) => Ok(()),
            frame => Err(Wrong::new(frame.describe())),
        },
    );
    let mut refused = |level: Level, name: String, body: Vec<u8>| {
        group.add(level, name, NOT_REPEATED, move |peer| {
            not_repeated(peer, &body)
        });
    };
    refused(Should, "body of 1 byte".into(), vec![3]);
    for code in FORBIDDEN_CODES {
        refused(Should, format!("forbidden code {code}"), body(code, b""));
    }
    for code in UNUSED_CODES {
        refused(Note, format!("unused code {code}"), body(code, b""));
    }
    let invalid = body(1000, b"not \xff utf-8");
    refused(Should, "reason of invalid UTF-8".into(), invalid);
    after_and_before(&mut group);
    sockets_of_the_server(&mut group);
    group.cases()
}

fn after_and_before(group: &mut Group) {
    group.add(
        Should,
        "data after a close frame",
        "a close frame, and no answer to the message behind the close frame",
        |peer| {
            let mut connection = peer.open()?;
            let late = [
                masked(FIN | CLOSE, &body(1000, b"")),
                masked(FIN | TEXT, b"late"),
            ];
            connection.send(&late.concat())?;
            expect_close(&mut connection)?;
            expect_end(&mut connection)
        },
    );
    group.add(
        Note,
        "message right before a close frame",
        "an answer to the message, and then a close frame",
        |peer| {
            let mut connection = peer.open()?;
            let both = [
                masked(FIN | TEXT, b"the last"),
                masked(FIN | CLOSE, &body(1000, b"")),
            ];
            connection.send(&both.concat())?;
            expect(&mut connection, Kind::Text, b"the last")?;
            expect_close(&mut connection).map(drop)
        },
    );
    group.add(Should, "close frame of 126 bytes", REFUSAL, |peer| {
        let reason = "x".repeat(LONGEST_REASON + 1);
        super::refusal::expect_refusal(peer, &masked(FIN | CLOSE, &body(1000, reason.as_bytes())))
    });
}

fn sockets_of_the_server(group: &mut Group) {
    group.add(
        Should,
        "FIN without a close frame",
        "the end of the connection",
        |peer| {
            let mut connection = peer.open()?;
            expect_echo(&mut connection, Kind::Text, b"before the end")?;
            connection.raw.half_close()?;
            gone(&mut connection)
        },
    );
    group.add(
        Should,
        "FIN within a frame",
        "the end of the connection",
        |peer| {
            let mut connection = peer.open()?;
            connection.send(&masked(FIN | TEXT, b"cut")[..4])?;
            connection.raw.half_close()?;
            gone(&mut connection)
        },
    );
    group.add(
        Note,
        "half-close behind a message",
        "an answer to the message, and then the end of the connection",
        |peer| {
            let mut connection = peer.open()?;
            connection.raw.send_last(&masked(FIN | TEXT, b"the last"))?;
            expect(&mut connection, Kind::Text, b"the last")?;
            gone(&mut connection)
        },
    );
    group.add(
        Should,
        "socket freed after the closing handshake",
        "no socket of the connection left with the server",
        |peer| {
            let mut connection = peer.open()?;
            let local = connection.raw.local()?;
            connection.send_frame(CLOSE, &body(1000, b""))?;
            expect_close(&mut connection)?;
            connection.raw.close()?;
            freed(peer, local)
        },
    );
    group.add(
        Should,
        "socket freed after a client is gone",
        "no socket of the connection left with the server",
        |peer| {
            let mut connection = peer.open()?;
            let local = connection.raw.local()?;
            expect_echo(&mut connection, Kind::Text, b"before the end")?;
            connection.raw.close()?;
            freed(peer, local)
        },
    );
    group.add(
        Should,
        "RST",
        "the next connection served as if nothing had been",
        |peer| {
            let mut connection = peer.open()?;
            expect_echo(&mut connection, Kind::Text, b"before the reset")?;
            connection.send(&masked(FIN | TEXT, b"cut")[..4])?;
            connection.raw.reset();
            let mut next = peer.open()?;
            expect_echo(&mut next, Kind::Text, b"after the reset")
        },
    );
}

/// Of a close frame.
fn body(code: u16, reason: &[u8]) -> Vec<u8> {
    [&code.to_be_bytes(), reason].concat()
}

/// Closes as it is allowed; the close frame that came in return.
fn closed(peer: &Peer<'_>, body: &[u8]) -> Outcome<Frame> {
    let mut connection = peer.open()?;
    connection.send_frame(CLOSE, body)?;
    let frame = expect_close(&mut connection)?;
    expect_end(&mut connection)?;
    Ok(frame)
}

/// The next frame that is no ping is a close frame, with a body as it may be.
fn expect_close(connection: &mut Connection) -> Outcome<Frame> {
    loop {
        match connection.next()? {
            Some(frame) if matches!(frame.opcode, PING | PONG) => {}
            Some(frame) if frame.opcode == CLOSE && is_allowed(&frame.payload) => {
                return Ok(frame);
            }
            Some(frame) => return Err(Wrong::new(frame.describe())),
            None => {
                let seen = "the end of the connection without a close frame";
                return Err(Wrong::new(seen));
            }
        }
    }
}

fn is_allowed(body: &[u8]) -> bool {
    match body {
        [] => true,
        [_] => false,
        [high, low, reason @ ..] => {
            let code = u16::from_be_bytes([*high, *low]);
            // Those that were registered after the RFC too.
            let allowed = matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999);
            allowed && str::from_utf8(reason).is_ok()
        }
    }
}

fn expect_end(connection: &mut Connection) -> Outcome {
    match connection.next() {
        Ok(None) => Ok(()),
        Ok(Some(frame)) => {
            let seen = format!("{} behind the close frame", frame.describe());
            Err(Wrong::new(seen))
        }
        Err(wrong) => Err(wrong.told(|seen| match seen.starts_with("silence") {
            true => "a close frame, and then no end of the connection".into(),
            false => seen,
        })),
    }
}

/// A close frame that nobody may send is not answered with such a one.
fn not_repeated(peer: &Peer<'_>, body: &[u8]) -> Outcome {
    let mut connection = peer.open()?;
    connection.send_frame(CLOSE, body)?;
    match connection.next()? {
        None => Ok(()),
        Some(frame) if frame.opcode == CLOSE && is_allowed(&frame.payload) => Ok(()),
        Some(frame) => Err(Wrong::new(frame.describe())),
    }
}

/// The server ends what the client has half-closed, with a close frame or without.
fn gone(connection: &mut Connection) -> Outcome {
    match connection.next()? {
        None => Ok(()),
        Some(frame) if frame.opcode == CLOSE => expect_end(connection),
        Some(frame) => Err(Wrong::new(frame.describe())),
    }
}

fn freed(peer: &Peer<'_>, local: SocketAddr) -> Outcome {
    let port = peer.addr().port();
    let held = || {
        let held = sockets::is_held(port, local);
        held.map_err(|error| Wrong::new(format!("the examiner cannot look: {error:#}")))
    };
    let seen = "a socket that the server still holds (CLOSE_WAIT)";
    peer.wait_until(seen, || Ok(!held()?))
}
