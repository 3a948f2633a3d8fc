//! The opening handshake of RFC 6455, section 4, from the client's side.

use super::Welcome;
use crate::cause::Cause;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

/// An answer longer than this is malformed.
pub const ANSWER_MAX_BYTES: usize = 16 << 10;
const HEADERS_MAX: usize = 64;
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The `Sec-WebSocket-Key` of an attempt: 16 random bytes in base64.
#[must_use]
pub fn key(nonce: u64) -> String {
    let mut bytes = [0; 16];
    fastrand::Rng::with_seed(nonce).fill(&mut bytes);
    STANDARD.encode(bytes)
}

/// The `Sec-WebSocket-Accept` that fits a key.
#[must_use]
pub fn accept(key: &str) -> String {
    STANDARD.encode(Sha1::new().chain_update(key).chain_update(GUID).finalize())
}

/// Appends the request.
pub fn request(host: &str, port: u16, path: &str, key: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"GET ");
    out.extend_from_slice(path.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
    if host.contains(':') {
        out.extend_from_slice(format!("[{host}]:{port}").as_bytes());
    } else {
        out.extend_from_slice(format!("{host}:{port}").as_bytes());
    }
    out.extend_from_slice(b"\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: ");
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\r\nSec-WebSocket-Version: 13\r\n\r\n");
}

/// Judges the answer: status, `Upgrade`, `Connection`, `Sec-WebSocket-Accept`,
/// and that nothing is agreed to that was not offered.
#[must_use]
pub fn judge(key: &str, answer: &[u8]) -> Welcome {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    // What is behind the limit is not looked at, however much came at once.
    let answer = &answer[..answer.len().min(ANSWER_MAX_BYTES)];
    let parsed = response.parse(answer);
    // A whole status line tells enough: what follows may be long, or wrong.
    let status = response.code.filter(|_| response.reason.is_some());
    if let Some(status) = status.filter(|status| *status != 101) {
        return Welcome::Rejected(Cause::HandshakeStatus(status));
    }
    let length = match parsed {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if answer.len() < ANSWER_MAX_BYTES => {
            return Welcome::Partial;
        }
        Ok(httparse::Status::Partial) | Err(_) => {
            return Welcome::Rejected(Cause::HandshakeMalformed);
        }
    };
    let values = |name: &'static str| {
        let named = move |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case(name);
        response
            .headers
            .iter()
            .filter(named)
            .map(|header| header.value.trim_ascii())
    };
    let names = |name, token: &[u8]| {
        let is_token = |part: &[u8]| part.trim_ascii().eq_ignore_ascii_case(token);
        values(name).any(|value| value.split(|byte| *byte == b',').any(is_token))
    };
    let upgraded = names("upgrade", b"websocket") && names("connection", b"upgrade");
    let uninvited = values("sec-websocket-extensions").any(|value| !value.is_empty())
        || values("sec-websocket-protocol").any(|value| !value.is_empty());
    if !upgraded || uninvited {
        return Welcome::Rejected(Cause::HandshakeHeaders);
    }
    let mut accepts = values("sec-websocket-accept");
    if accepts.next() != Some(accept(key).as_bytes()) || accepts.next().is_some() {
        return Welcome::Rejected(Cause::HandshakeAccept);
    }
    Welcome::Accepted(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 6455, section 1.3.
    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
    const GOOD: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
        Connection: keep-alive, Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

    #[test]
    fn the_example_of_the_rfc_is_accepted_wherever_it_is_cut() {
        assert_eq!(accept(KEY), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        for cut in 0..GOOD.len() {
            assert_eq!(
                judge(KEY, &GOOD.as_bytes()[..cut]),
                Welcome::Partial,
                "cut at {cut}"
            );
        }
        assert_eq!(judge(KEY, GOOD.as_bytes()), Welcome::Accepted(GOOD.len()));
        let with_frame = format!("{GOOD}\u{1}");
        assert_eq!(
            judge(KEY, with_frame.as_bytes()),
            Welcome::Accepted(GOOD.len())
        );
    }

    #[test]
    fn wrong_answers_have_their_cause() {
        let judge = |from: &str, to: &str| {
            assert!(GOOD.contains(from));
            judge(KEY, GOOD.replace(from, to).as_bytes())
        };
        assert_eq!(
            judge("101", "200"),
            Welcome::Rejected(Cause::HandshakeStatus(200))
        );
        assert_eq!(
            judge("websocket", "h2c"),
            Welcome::Rejected(Cause::HandshakeHeaders)
        );
        assert_eq!(
            judge("Upgrade\r", "close\r"),
            Welcome::Rejected(Cause::HandshakeHeaders)
        );
        assert_eq!(
            judge("s3p", "S3p"),
            Welcome::Rejected(Cause::HandshakeAccept)
        );
        assert_eq!(
            judge("Sec-WebSocket-Accept", "X"),
            Welcome::Rejected(Cause::HandshakeAccept)
        );
        let deflate = "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n";
        assert_eq!(
            judge("\r\n\r\n", &format!("\r\n{deflate}")),
            Welcome::Rejected(Cause::HandshakeHeaders)
        );
        assert_eq!(
            judge("HTTP/1.1", "SSH-2.0"),
            Welcome::Rejected(Cause::HandshakeMalformed)
        );
    }

    #[test]
    fn another_status_is_told_whatever_is_behind_it() {
        for rest in ["\r\n", "\r\nX", "\r\nno header\0\r\n\r\n"] {
            assert_eq!(
                judge(KEY, format!("HTTP/1.1 503 x{rest}").as_bytes()),
                Welcome::Rejected(Cause::HandshakeStatus(503)),
                "{rest:?}"
            );
        }
    }

    #[test]
    fn a_long_answer_is_malformed_also_in_one_piece() {
        let long = "X: ".to_owned() + &"y".repeat(ANSWER_MAX_BYTES) + "\r\n\r\n";
        assert_eq!(
            judge(
                KEY,
                GOOD.replace("\r\n\r\n", &format!("\r\n{long}")).as_bytes()
            ),
            Welcome::Rejected(Cause::HandshakeMalformed)
        );
        let early = [GOOD.as_bytes(), &[0x82; ANSWER_MAX_BYTES]].concat();
        assert_eq!(judge(KEY, &early), Welcome::Accepted(GOOD.len()));
    }

    #[test]
    fn an_endless_answer_is_malformed() {
        let endless = format!("HTTP/1.1 101 x\r\nX: {}", "y".repeat(ANSWER_MAX_BYTES));
        assert_eq!(
            judge(KEY, endless.as_bytes()),
            Welcome::Rejected(Cause::HandshakeMalformed)
        );
    }

    #[test]
    fn a_status_is_told_however_long_the_page_behind_it() {
        let told = Welcome::Rejected(Cause::HandshakeStatus(503));
        let headers = "X: y\r\n".repeat(HEADERS_MAX + 1);
        for rest in ["\r\n\r\n", "\r\nX: endless", &format!("\r\n{headers}\r\n")] {
            assert_eq!(
                judge(KEY, format!("HTTP/1.1 503 Busy{rest}").as_bytes()),
                told
            );
        }
        assert_eq!(judge(KEY, b"HTTP/1.1 50"), Welcome::Partial);
        let malformed = Welcome::Rejected(Cause::HandshakeMalformed);
        assert_eq!(judge(KEY, b"HTTP/1.1 5033 Busy\r\n\r\n"), malformed);
    }

    #[test]
    fn keys_are_sixteen_bytes_and_differ() {
        assert_eq!(STANDARD.decode(key(1)).unwrap().len(), 16);
        assert_ne!(key(1), key(2));
    }
}
