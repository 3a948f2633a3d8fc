//! The opening handshake: requests, and what an answer to one must be.

use super::super::case::{Outcome, Wrong};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha1::{Digest as _, Sha1};

/// RFC 6455, section 1.3.
const KEY_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A request as it is written, with a random key.
pub struct Request {
    /// `GET /ws HTTP/1.1`
    pub line: String,
    /// Names and values, in their order.
    pub headers: Vec<(String, String)>,
    key: String,
}

impl Request {
    /// What a client asks that wants nothing special.
    pub fn new(host: &str, path: &str) -> Self {
        let nonce: [u8; 16] = std::array::from_fn(|_| fastrand::u8(..));
        let key = BASE64_STANDARD.encode(nonce);
        let headers = [
            ("Host", host),
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Key", &key),
            ("Sec-WebSocket-Version", "13"),
        ];
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Self {
            line: format!("GET {path} HTTP/1.1"),
            headers: headers.into_iter().map(owned).collect(),
            key,
        }
    }

    /// Sets a header, or adds it behind the others.
    pub fn set(&mut self, name: &str, value: &str) {
        match self.headers.iter_mut().find(|(have, _)| have == name) {
            Some((_, have)) => *have = value.to_owned(),
            None => self.headers.push((name.to_owned(), value.to_owned())),
        }
    }

    /// Leaves a header out.
    pub fn remove(&mut self, name: &str) {
        self.headers.retain(|(have, _)| have != name);
    }

    /// The bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let headers = self.headers.iter();
        let headers: String = headers
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        format!("{}\r\n{headers}\r\n", self.line).into_bytes()
    }

    /// Whether the answer opens a WebSocket as it was asked for.
    pub fn check(&self, answer: &Answer) -> Outcome {
        check(answer, &accept_for(&self.key))
    }
}

/// The head of an answer.
#[derive(Debug)]
pub struct Answer {
    /// `HTTP/1.1 101 Switching Protocols`
    pub status: String,
    headers: Vec<(String, String)>,
}

impl Answer {
    /// Reads a head, without the empty line at its end.
    pub fn parse(head: &[u8]) -> Self {
        let head = String::from_utf8_lossy(head);
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap_or("").to_owned();
        let headers = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect();
        Self { status, headers }
    }

    /// The status code.
    pub fn code(&self) -> Option<u16> {
        let mut words = self.status.strip_prefix("HTTP/1.")?.split(' ');
        words.nth(1)?.parse().ok()
    }

    /// The first header of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut named = self
            .headers
            .iter()
            .filter(|(have, _)| have.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value.as_str())
    }
}

/// What `Sec-WebSocket-Accept` must be for a key.
pub fn accept_for(key: &str) -> String {
    BASE64_STANDARD.encode(Sha1::digest(format!("{key}{KEY_SUFFIX}")))
}

fn check(answer: &Answer, accept: &str) -> Outcome {
    if answer.code() != Some(101) || !answer.status.starts_with("HTTP/1.1 ") {
        let status = shorten(&answer.status);
        return Err(Wrong::new(format!(
            "the handshake answered with `{status}`"
        )));
    }
    let wrong = |name: &str| {
        let value = answer.header(name);
        let value = value.map_or("absent".into(), |value| format!("`{}`", shorten(value)));
        Err(Wrong::new(format!("a handshake with {name}: {value}")))
    };
    let is_websocket = |value: &str| value.eq_ignore_ascii_case("websocket");
    if !answer.header("Upgrade").is_some_and(is_websocket) {
        return wrong("Upgrade");
    }
    let has_upgrade = |value: &str| {
        value
            .split(',')
            .any(|one| one.trim().eq_ignore_ascii_case("upgrade"))
    };
    if !answer.header("Connection").is_some_and(has_upgrade) {
        return wrong("Connection");
    }
    if answer.header("Sec-WebSocket-Accept") != Some(accept) {
        return wrong("Sec-WebSocket-Accept");
    }
    for not_offered in ["Sec-WebSocket-Extensions", "Sec-WebSocket-Protocol"] {
        if answer.header(not_offered).is_some() {
            return wrong(not_offered);
        }
    }
    Ok(())
}

fn shorten(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accept_key_is_the_rfcs() {
        assert_eq!(
            accept_for("dGhlIHNhbXBsZSBub25jZQ=="),
            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        );
    }

    #[test]
    fn a_handshake_is_checked_header_by_header() {
        let right = "HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Accept: k\r\n";
        let checked = |head: &str| check(&Answer::parse(head.as_bytes()), "k");
        assert_eq!(checked(right), Ok(()));
        for (from, to, seen) in [
            (
                "101",
                "200",
                "the handshake answered with `HTTP/1.1 200 Switching Protocols`",
            ),
            (
                "HTTP/1.1",
                "HTTP/1.0",
                "the handshake answered with `HTTP/1.0 101 Switching Protocols`",
            ),
            ("WebSocket\r", "h2c\r", "a handshake with Upgrade: `h2c`"),
            (", Upgrade", "", "a handshake with Connection: `keep-alive`"),
            (
                ": k\r",
                ": q\r",
                "a handshake with Sec-WebSocket-Accept: `q`",
            ),
            (
                "Sec-WebSocket-Accept: k\r\n",
                "",
                "a handshake with Sec-WebSocket-Accept: absent",
            ),
            (
                ": k\r\n",
                ": k\r\nSec-WebSocket-Extensions: x\r\n",
                "a handshake with Sec-WebSocket-Extensions: `x`",
            ),
        ] {
            assert_eq!(checked(&right.replace(from, to)), Err(Wrong::new(seen)));
        }
    }
}
