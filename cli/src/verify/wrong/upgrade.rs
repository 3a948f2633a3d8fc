//! The scripted server's side of the opening handshake.

use super::super::connection::http::accept_for;
use super::lapse::Lapse;
use super::session::read_more;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::io::Write as _;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

/// What came behind the request; `None` if it was refused.
pub fn upgrade(stream: &mut TcpStream, lapse: Lapse) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let end = loop {
        read_more(stream, &mut bytes)?;
        match bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            Some(end) => break end,
            None if lapse == Lapse::WholeRequest => return None,
            None => {}
        }
    };
    let behind = bytes.split_off(end + 4);
    let head = String::from_utf8(bytes).ok()?;
    let mut answer = answer(&head, lapse);
    if lapse == Lapse::RefusesEarly && !behind.is_empty() {
        return None;
    }
    if lapse == Lapse::AnswersTwice && behind.starts_with(b"GET ") {
        answer = answer.repeat(2);
    }
    if let Lapse::Slow(pause_ms) = lapse {
        thread::sleep(Duration::from_millis(pause_ms));
    }
    stream.write_all(answer.as_bytes()).ok()?;
    answer.starts_with("HTTP/1.1 101 ").then_some(behind)
}

fn answer(head: &str, lapse: Lapse) -> String {
    let refused = |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or("").split(' ');
    let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
    let header = |name: &str| {
        let named = headers.iter().find(|(have, _)| match lapse {
            Lapse::ExactNames => *have == name,
            _ => have.eq_ignore_ascii_case(name),
        });
        named.map(|(_, value)| *value)
    };
    let has = |name: &str, token: &str| {
        let value = header(name).unwrap_or("");
        match lapse {
            Lapse::ExactValues => value == token,
            Lapse::NoLists => value.eq_ignore_ascii_case(token),
            _ => value
                .split(',')
                .any(|one| one.trim().eq_ignore_ascii_case(token)),
        }
    };
    let too_much = match lapse {
        Lapse::FewHeaders => headers.len() > 10,
        Lapse::ShortHead => head.len() > 4096,
        _ => false,
    };
    if too_much {
        return refused("431 Too Much");
    }
    if words.next() != Some("GET") && lapse != Lapse::AnyMethod {
        return refused("405 Not Allowed");
    }
    if words.next() != Some("/ws") && lapse != Lapse::AnyPath || lapse == Lapse::BadStatus {
        return refused("404 Not Found");
    }
    if words.next() != Some("HTTP/1.1") && lapse != Lapse::AnyHttp {
        return refused("505 Not Supported");
    }
    if !has("Upgrade", "websocket") && lapse != Lapse::UpgradeOptional
        || !has("Connection", "Upgrade") && lapse != Lapse::ConnectionOptional
    {
        return refused("400 Bad Request");
    }
    let version = match header("Sec-WebSocket-Version") {
        None => lapse == Lapse::VersionOptional,
        Some(version) => version == "13" || lapse == Lapse::AnyVersion,
    };
    if !version {
        return match lapse {
            Lapse::VersionUntold => refused("400 Bad Request"),
            _ => refused("426 Upgrade Required\r\nSec-WebSocket-Version: 13"),
        };
    }
    let key = header("Sec-WebSocket-Key");
    let decoded = BASE64_STANDARD
        .decode(key.unwrap_or(""))
        .unwrap_or_default();
    let right = match key {
        None => lapse == Lapse::KeyOptional,
        Some(_) => decoded.len() == 16 || lapse == Lapse::AnyKey,
    };
    if !right {
        return refused("400 Bad Request");
    }
    let accept = match lapse {
        Lapse::BadAccept => accept_for("another key"),
        _ => accept_for(key.unwrap_or("")),
    };
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    )
}
