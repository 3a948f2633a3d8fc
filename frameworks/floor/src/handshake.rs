//! The upgrade request and its answer.

use data_encoding::BASE64;
use httparse::{EMPTY_HEADER, Request, Status};
use sha1::{Digest, Sha1};

const PATH: &str = "/ws";
const ACCEPT_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const LONGEST_REQUEST: usize = 16 << 10;
const MOST_HEADERS: usize = 64;

/// What a connection's first bytes are.
pub enum Handshake {
    /// The request has more to come.
    Incomplete,
    /// Upgraded; frames may follow the first `consumed` bytes.
    Accepted { response: String, consumed: usize },
    /// Answered otherwise, and closed.
    Refused { response: String },
}

/// Reads a request from the connection's first bytes.
pub fn answer(bytes: &[u8]) -> Handshake {
    let mut headers = [EMPTY_HEADER; MOST_HEADERS];
    let mut request = Request::new(&mut headers);
    let consumed = match request.parse(bytes) {
        Ok(Status::Complete(consumed)) => consumed,
        Ok(Status::Partial) if bytes.len() < LONGEST_REQUEST => return Handshake::Incomplete,
        Ok(Status::Partial) => return refused("431 Request Header Fields Too Large"),
        Err(_) => return refused("400 Bad Request"),
    };
    let path = request.path.unwrap_or_default();
    if path.split('?').next() != Some(PATH) {
        return refused("404 Not Found");
    }
    if request.method != Some("GET") {
        return refused("405 Method Not Allowed");
    }
    if request.version != Some(1) {
        return refused("505 HTTP Version Not Supported");
    }
    if !has_token(&request, "connection", "upgrade") || !has_token(&request, "upgrade", "websocket")
    {
        return refused("400 Bad Request");
    }
    if value(&request, "sec-websocket-version") != Some(b"13") {
        return refused("426 Upgrade Required\r\nSec-WebSocket-Version: 13");
    }
    match value(&request, "sec-websocket-key") {
        Some(key) => Handshake::Accepted {
            response: accepted(key),
            consumed,
        },
        None => refused("400 Bad Request"),
    }
}

fn accepted(key: &[u8]) -> String {
    let digest = Sha1::new()
        .chain_update(key)
        .chain_update(ACCEPT_SUFFIX)
        .finalize();
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {}\r\n\r\n",
        BASE64.encode(&digest)
    )
}

fn refused(status: &str) -> Handshake {
    Handshake::Refused {
        response: format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
    }
}

fn value<'b>(request: &Request<'_, 'b>, name: &str) -> Option<&'b [u8]> {
    let header = request
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case(name))?;
    Some(header.value.trim_ascii())
}

fn has_token(request: &Request<'_, '_>, name: &str, token: &str) -> bool {
    let named = request
        .headers
        .iter()
        .filter(|header| header.name.eq_ignore_ascii_case(name));
    named
        .flat_map(|header| header.value.split(|&byte| byte == b','))
        .any(|word| word.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &str = "GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

    fn status(request: &str) -> Option<String> {
        match answer(request.as_bytes()) {
            Handshake::Incomplete => None,
            Handshake::Accepted { response, .. } | Handshake::Refused { response } => {
                Some(response[9..12].to_owned())
            }
        }
    }

    #[test]
    fn the_key_of_rfc_6455_has_the_answer_of_rfc_6455() {
        let Handshake::Accepted { response, consumed } =
            answer(format!("{REQUEST}frames").as_bytes())
        else {
            panic!("not accepted");
        };
        assert!(
            response.contains("\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"),
            "{response}"
        );
        assert_eq!(consumed, REQUEST.len());
    }

    #[test]
    fn a_request_cut_anywhere_waits() {
        for cut in 0..REQUEST.len() {
            assert_eq!(status(&REQUEST[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn any_other_request_is_refused() {
        for (from, to, expected) in [
            ("/ws ", "/ws?room=1 ", "101"),
            ("/ws ", "/ ", "404"),
            ("/ws ", "/wss ", "404"),
            ("GET", "POST", "405"),
            ("Upgrade: WebSocket", "Upgrade: h2c", "400"),
            ("keep-alive, Upgrade", "keep-alive", "400"),
            ("Version: 13", "Version: 8", "426"),
            ("Sec-WebSocket-Key", "X-Key", "400"),
            ("HTTP/1.1", "SMTP", "400"),
            ("HTTP/1.1", "HTTP/1.0", "505"),
        ] {
            assert_eq!(
                status(&REQUEST.replacen(from, to, 1)).as_deref(),
                Some(expected),
                "{from} -> {to}"
            );
        }
        assert_eq!(
            status(&format!(
                "GET /ws HTTP/1.1\r\nX: {}",
                "x".repeat(LONGEST_REQUEST)
            ))
            .as_deref(),
            Some("431")
        );
    }
}
