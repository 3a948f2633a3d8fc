//! The opening handshake: RFC 6455, sections 1.3, 4.1, 4.2 and 4.4.

use super::case::{Case, Group, Outcome, Wrong};
use super::connection::frame::{FIN, TEXT, masked};
use super::connection::http::{Answer, Request};
use super::connection::{Connection, Kind, Peer, answer};
use super::echo::{expect, expect_echo};
use std::ops::RangeInclusive;
use std::thread;
use std::time::Duration;
use wsbench_schema::Level::{self, Must, Note, Should};

/// Long enough that the server reads what came before.
const PAUSE: Duration = Duration::from_millis(1);
/// Between single bytes.
const DRIBBLE: Duration = Duration::from_micros(200);
/// Requests that are never finished.
const UNFINISHED: usize = 4;
/// Status codes that say that a request was wrong, or is not served.
const ERRORS: RangeInclusive<u16> = 400..=599;

/// A 101 and the rest of the handshake.
const OPEN: &str = "an open WebSocket";
const REFUSED: &str = "an HTTP answer with an error's status";

/// In the order in which they run.
pub fn cases() -> Vec<Case> {
    let mut group = Group::new("handshake");
    group.add(Must, "good", OPEN, |peer| opens(peer, |_| {}));
    group.add(
        Should,
        "request split at every byte",
        "an open WebSocket wherever the request is cut in two segments",
        split,
    );
    group.add(Note, "request one byte a segment", OPEN, dribbled);
    let mut opened = |level: Level, name: &str, change: fn(&mut Request)| {
        group.add(level, name, OPEN, move |peer| opens(peer, change));
    };
    opened(Should, "lower-case header names", |request| {
        for (name, _) in &mut request.headers {
            name.make_ascii_lowercase();
        }
    });
    opened(Should, "mixed-case header names", |request| {
        for (name, _) in &mut request.headers {
            *name = mixed_case(name);
        }
    });
    opened(Should, "mixed-case header values", |request| {
        request.set("Upgrade", "WebSocket");
        request.set("Connection", "uPGRADE");
    });
    opened(Should, "lists in header values", |request| {
        request.set("Connection", "keep-alive, Upgrade");
    });
    opened(Should, "extra headers", |request| {
        request.set("Origin", "http://127.0.0.1");
        request.set("User-Agent", "wsbench");
        for number in 0..20 {
            request.set(&format!("X-Extra-{number}"), "some value");
        }
    });
    opened(Note, "cookie of 8 KiB", |request| {
        request.set("Cookie", &format!("all={}", "c".repeat(8188)));
    });
    refusals(&mut group);
    group.add(
        Note,
        "frame in the request's segment",
        "an open WebSocket and an answer to the frame",
        early_frame,
    );
    group.add(
        Should,
        "pipelined second request",
        "no second HTTP answer, and the end of the connection",
        pipelined,
    );
    group.add(
        Note,
        "unfinished requests",
        "others served while 4 requests wait for their second half",
        unfinished,
    );
    group.cases()
}

fn refusals(group: &mut Group) {
    let mut refused = |level: Level, name: &str, change: fn(&mut Request)| {
        group.add(level, name, REFUSED, move |peer| {
            refuses(peer, ERRORS, change).map(drop)
        });
    };
    refused(Should, "missing key", |request| {
        request.remove("Sec-WebSocket-Key");
    });
    refused(Note, "key of other than 16 bytes", |request| {
        request.set("Sec-WebSocket-Key", "dG9vIHNob3J0");
    });
    refused(Should, "missing version", |request| {
        request.remove("Sec-WebSocket-Version");
    });
    refused(Should, "missing Upgrade", |request| {
        request.remove("Upgrade");
    });
    refused(Should, "missing Connection", |request| {
        request.remove("Connection");
    });
    refused(Should, "method POST", |request| {
        request.line = request.line.replace("GET", "POST");
        request.set("Content-Length", "0");
    });
    refused(Should, "HTTP/1.0", |request| {
        request.line = request.line.replace("HTTP/1.1", "HTTP/1.0");
    });
    group.add(
        Should,
        "wrong path",
        "an HTTP answer with another status than 101 and 200",
        |peer| {
            let other = |request: &mut Request| {
                request.line = "GET /not/there HTTP/1.1".into();
            };
            refuses(peer, 300..=599, other).map(drop)
        },
    );
    let version = |request: &mut Request| request.set("Sec-WebSocket-Version", "12");
    group.add(
        Should,
        "wrong version",
        "an HTTP answer with status 426 or 400",
        move |peer| {
            let answer = refuses(peer, ERRORS, version)?;
            match answer.code() {
                Some(400 | 426) => Ok(()),
                _ => Err(Wrong::new(format!("`{}`", answer.status))),
            }
        },
    );
    group.add(
        Note,
        "wrong version is told the right one",
        "an HTTP answer with 13 in its Sec-WebSocket-Version",
        move |peer| {
            let answer = refuses(peer, ERRORS, version)?;
            match answer.header("Sec-WebSocket-Version") {
                Some(versions) if versions.split(',').any(|one| one.trim() == "13") => Ok(()),
                Some(other) => Err(Wrong::new(format!("Sec-WebSocket-Version: {other}"))),
                None => Err(Wrong::new("no Sec-WebSocket-Version in the answer")),
            }
        },
    );
}

fn mixed_case(name: &str) -> String {
    let mixed = name.chars().enumerate().map(|(at, letter)| match at % 2 {
        0 => letter.to_ascii_lowercase(),
        _ => letter.to_ascii_uppercase(),
    });
    mixed.collect()
}

/// The changed request opens a WebSocket that echoes.
fn opens(peer: &Peer<'_>, change: impl Fn(&mut Request)) -> Outcome {
    let mut request = peer.request();
    change(&mut request);
    let mut raw = peer.connect()?;
    raw.send(&request.bytes())?;
    works(Connection::shake(raw, &request)?)
}

fn works(mut connection: Connection) -> Outcome {
    expect_echo(&mut connection, Kind::Text, b"after the handshake")
        .map_err(|wrong| wrong.told(|seen| format!("a right handshake, and then {seen}")))
}

/// The changed request is answered with an error.
fn refuses(
    peer: &Peer<'_>,
    statuses: RangeInclusive<u16>,
    change: impl Fn(&mut Request),
) -> Outcome<Answer> {
    let mut request = peer.request();
    change(&mut request);
    let mut raw = peer.connect()?;
    raw.send(&request.bytes())?;
    let answer = answer(&mut raw)?;
    match answer.code() {
        Some(code) if statuses.contains(&code) => Ok(answer),
        _ => Err(Wrong::new(format!("`{}`", answer.status))),
    }
}

fn split(peer: &Peer<'_>) -> Outcome {
    let length = peer.request().bytes().len();
    for cut in 1..length {
        let request = peer.request();
        let bytes = request.bytes();
        let mut raw = peer.connect()?;
        raw.send(&bytes[..cut])?;
        thread::sleep(PAUSE);
        let sent = raw.send(&bytes[cut..]);
        sent.and_then(|()| Connection::shake(raw, &request))
            .map_err(|wrong| {
                wrong.told(|seen| format!("{seen}, cut behind byte {cut} of {length}"))
            })?;
    }
    Ok(())
}

fn dribbled(peer: &Peer<'_>) -> Outcome {
    let request = peer.request();
    let mut raw = peer.connect()?;
    for byte in request.bytes() {
        raw.send(&[byte])?;
        thread::sleep(DRIBBLE);
    }
    works(Connection::shake(raw, &request)?)
}

fn early_frame(peer: &Peer<'_>) -> Outcome {
    let request = peer.request();
    let mut bytes = request.bytes();
    bytes.extend(masked(FIN | TEXT, b"at once"));
    let mut raw = peer.connect()?;
    raw.send(&bytes)?;
    let mut connection = Connection::shake(raw, &request)?;
    expect(&mut connection, Kind::Text, b"at once")
}

fn pipelined(peer: &Peer<'_>) -> Outcome {
    let request = peer.request();
    let mut raw = peer.connect()?;
    raw.send(&request.bytes().repeat(2))?;
    let first = match answer(&mut raw) {
        Ok(first) => first,
        // Refused as a whole.
        Err(wrong) if !wrong.late && raw.ended().is_some() => return Ok(()),
        Err(wrong) => return Err(wrong),
    };
    if first.code() != Some(101) {
        return Ok(());
    }
    loop {
        if raw.unread().starts_with(b"HTTP/") {
            return Err(Wrong::new("a second HTTP answer"));
        }
        if !raw.fill("the end of the connection")? {
            return Ok(());
        }
    }
}

fn unfinished(peer: &Peer<'_>) -> Outcome {
    let mut waiting = Vec::new();
    for _ in 0..UNFINISHED {
        let bytes = peer.request().bytes();
        let mut raw = peer.connect()?;
        raw.send(&bytes[..bytes.len() / 2])?;
        waiting.push(raw);
    }
    thread::sleep(PAUSE);
    works(peer.open()?)
}
