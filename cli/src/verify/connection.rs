//! One WebSocket connection of the examiner: blocking calls with a deadline, and
//! a frame writer and reader of its own, so that a mistake of the load engine
//! cannot hide one of the server.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sha1::{Digest as _, Sha1};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// What was seen in place of what was expected, in words.
pub type Seen<T> = Result<T, String>;

/// Longest head of an answer to a handshake.
const HEAD_MAX_BYTES: usize = 16 << 10;
/// Longest message that any answer may have.
const MESSAGE_MAX_BYTES: u64 = 8 << 20;
/// RFC 6455, section 1.3.
const KEY_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Type of a data message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Binary,
}

impl Kind {
    pub fn opcode(self) -> u8 {
        match self {
            Kind::Text => 1,
            Kind::Binary => 2,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Binary => "binary",
        }
    }
}

/// A data message, put together from its fragments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub kind: Kind,
    pub payload: Vec<u8>,
}

/// An open connection; every call ends by the deadline.
pub struct Connection {
    stream: TcpStream,
    deadline: Instant,
    /// Received and not yet read.
    received: Vec<u8>,
}

impl Connection {
    /// Connects and shakes hands.
    pub fn open(addr: SocketAddr, path: &str, deadline: Instant) -> Seen<Self> {
        let left = deadline.saturating_duration_since(Instant::now());
        // A timeout of zero is refused by the library.
        let left = left.max(Duration::from_millis(1));
        let stream = TcpStream::connect_timeout(&addr, left)
            .map_err(|error| format!("cannot connect to {addr}: {error}"))?;
        stream
            .set_nodelay(true)
            .and_then(|()| stream.set_nonblocking(true))
            .map_err(|error| error.to_string())?;
        let mut connection = Self {
            stream,
            deadline,
            received: Vec::new(),
        };
        connection.handshake(addr, path)?;
        Ok(connection)
    }

    fn handshake(&mut self, addr: SocketAddr, path: &str) -> Seen<()> {
        let nonce: [u8; 16] = std::array::from_fn(|_| fastrand::u8(..));
        let key = BASE64_STANDARD.encode(nonce);
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {addr}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        );
        self.send(request.as_bytes())?;
        let end = loop {
            let found = self
                .received
                .windows(4)
                .position(|four| four == b"\r\n\r\n");
            if let Some(at) = found {
                break at;
            }
            if self.received.len() > HEAD_MAX_BYTES {
                return Err(format!(
                    "a handshake's answer beyond {HEAD_MAX_BYTES} bytes"
                ));
            }
            self.wait_for_more("an answer to the handshake")?;
        };
        let rest = self.received.split_off(end + 4);
        let head = std::mem::replace(&mut self.received, rest);
        check_handshake(&String::from_utf8_lossy(&head), &accept_for(&key))
    }

    /// Sends bytes as they are. What arrives meanwhile is kept, so that a server
    /// that answers before it has read all cannot block both sides.
    pub fn send(&mut self, mut bytes: &[u8]) -> Seen<()> {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(0) => return Err("a connection that takes no more bytes".into()),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let ready = self.wait(PollFlags::IN | PollFlags::OUT)?;
                    if ready.is_empty() {
                        return Err("a server that does not read what it is sent".into());
                    }
                    if ready.contains(PollFlags::IN) && self.read_available()? == 0 {
                        return Err("the connection closed while sending".into());
                    }
                }
                Err(error) => return Err(format!("{error} while sending")),
            }
        }
        Ok(())
    }

    /// The next data message. Pings are answered, fragments put together.
    pub fn receive(&mut self) -> Seen<Message> {
        let mut message: Option<Message> = None;
        loop {
            let frame = self.read_frame()?;
            match (frame.opcode, &mut message) {
                (1 | 2, None) => {
                    let kind = if frame.opcode == 1 {
                        Kind::Text
                    } else {
                        Kind::Binary
                    };
                    let payload = frame.payload;
                    message = Some(Message { kind, payload });
                }
                (0, Some(message)) => message.payload.extend(frame.payload),
                (0, None) => return Err("a continuation frame that continues nothing".into()),
                (1 | 2, Some(_)) => {
                    return Err("a new message within the fragments of another".into());
                }
                (8, _) => return Err(describe_close(&frame.payload)),
                (9, _) => self.send(&masked_frame(true, 10, &frame.payload))?,
                (10, _) => {}
                (opcode, _) => return Err(format!("a frame with the reserved opcode {opcode}")),
            }
            if frame.opcode < 8
                && frame.fin
                && let Some(message) = message.take()
            {
                return Ok(message);
            }
        }
    }

    fn read_frame(&mut self) -> Seen<Frame> {
        loop {
            if let Some((frame, length)) = parse_frame(&self.received)? {
                self.received.drain(..length);
                return Ok(frame);
            }
            let part = self.received.len();
            self.wait_for_more(&match part {
                0 => "an answer".to_owned(),
                part => format!("the rest of a frame ({part} bytes came)"),
            })?;
        }
    }

    fn wait_for_more(&mut self, what: &str) -> Seen<()> {
        if self.wait(PollFlags::IN)?.is_empty() {
            return Err(format!("silence while waiting for {what}"));
        }
        match self.read_available()? {
            0 => Err(format!("the connection closed while waiting for {what}")),
            _ => Ok(()),
        }
    }

    /// Which of the events came before the deadline; empty if none did.
    fn wait(&self, events: PollFlags) -> Seen<PollFlags> {
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            // A server that never stops sending must not keep us for ever.
            if left.is_zero() {
                return Ok(PollFlags::empty());
            }
            let timeout = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            };
            let mut fds = [PollFd::new(&self.stream, events)];
            match poll(&mut fds, Some(&timeout)) {
                // An error or a hang-up is told by the call that follows.
                Ok(_) if fds[0].revents().is_empty() => return Ok(PollFlags::empty()),
                Ok(_) => return Ok(fds[0].revents() | PollFlags::IN),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Reads what is there, without waiting; the number of bytes.
    fn read_available(&mut self) -> Seen<usize> {
        let mut buffer = [0; 64 << 10];
        match self.stream.read(&mut buffer) {
            Ok(count) => {
                self.received.extend_from_slice(&buffer[..count]);
                Ok(count)
            }
            Err(error) if is_transient(&error) => Ok(usize::MAX),
            Err(error) => Err(format!("{error} while receiving")),
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// What `Sec-WebSocket-Accept` must be for a key.
pub fn accept_for(key: &str) -> String {
    BASE64_STANDARD.encode(Sha1::digest(format!("{key}{KEY_SUFFIX}")))
}

fn check_handshake(head: &str, accept: &str) -> Seen<()> {
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap_or("");
    if status.split(' ').nth(1) != Some("101") || !status.starts_with("HTTP/1.1 ") {
        return Err(format!("the handshake answered with `{}`", shorten(status)));
    }
    let headers: Vec<(&str, &str)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name, value.trim()))
        .collect();
    let header = |name: &str| {
        let mut of_that_name = headers
            .iter()
            .filter(|(have, _)| have.eq_ignore_ascii_case(name));
        of_that_name.next().map(|(_, value)| *value)
    };
    let wrong = |name: &str| {
        let value = header(name).map_or("absent".into(), |value| format!("`{}`", shorten(value)));
        Err(format!("a handshake with {name}: {value}"))
    };
    if !header("Upgrade").is_some_and(|value| value.eq_ignore_ascii_case("websocket")) {
        return wrong("Upgrade");
    }
    let has_upgrade = |value: &str| {
        value
            .split(',')
            .any(|one| one.trim().eq_ignore_ascii_case("upgrade"))
    };
    if !header("Connection").is_some_and(has_upgrade) {
        return wrong("Connection");
    }
    if header("Sec-WebSocket-Accept") != Some(accept) {
        return wrong("Sec-WebSocket-Accept");
    }
    for not_offered in ["Sec-WebSocket-Extensions", "Sec-WebSocket-Protocol"] {
        if header(not_offered).is_some() {
            return wrong(not_offered);
        }
    }
    Ok(())
}

fn shorten(text: &str) -> String {
    text.chars().take(80).collect()
}

struct Frame {
    fin: bool,
    opcode: u8,
    payload: Vec<u8>,
}

/// The first frame of the bytes and its whole length; `None` if there is more to come.
fn parse_frame(bytes: &[u8]) -> Seen<Option<(Frame, usize)>> {
    let [first, second, rest @ ..] = bytes else {
        return Ok(None);
    };
    if first & 0x70 != 0 {
        return Err(format!(
            "a frame with reserved bits set (first byte {first:#04x})"
        ));
    }
    if second & 0x80 != 0 {
        return Err("a masked frame, which a server must not send".into());
    }
    let (fin, opcode) = (first & 0x80 != 0, first & 0x0f);
    let extended = match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let Some((length, rest)) = rest.split_at_checked(extended) else {
        return Ok(None);
    };
    let length = match extended {
        0 => u64::from(second & 0x7f),
        _ => length
            .iter()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
    };
    let shortest = match length {
        0..=125 => 0,
        126..=0xffff => 2,
        _ => 8,
    };
    if extended != shortest {
        return Err(format!("a length of {length} written in {extended} bytes"));
    }
    if opcode >= 8 && (length > 125 || !fin) {
        return Err("a control frame in fragments or longer than 125 bytes".into());
    }
    if length > MESSAGE_MAX_BYTES {
        return Err(format!("a frame that claims to be {length} bytes long"));
    }
    let Some(payload) = usize::try_from(length)
        .ok()
        .and_then(|length| rest.get(..length))
    else {
        return Ok(None);
    };
    let whole = 2 + extended + payload.len();
    let payload = payload.to_vec();
    Ok(Some((
        Frame {
            fin,
            opcode,
            payload,
        },
        whole,
    )))
}

fn describe_close(payload: &[u8]) -> String {
    match payload {
        [high, low, reason @ ..] => {
            let code = u16::from_be_bytes([*high, *low]);
            let reason = shorten(&String::from_utf8_lossy(reason));
            format!("a close frame ({code} {reason})").replace(" )", ")")
        }
        _ => "a close frame".into(),
    }
}

/// A client's frame, masked with a random key that has no zero byte, so that a
/// server that does not unmask cannot be right by chance.
pub fn masked_frame(fin: bool, opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![if fin { 0x80 | opcode } else { opcode }];
    match payload.len() {
        #[expect(clippy::cast_possible_truncation, reason = "the pattern says so")]
        short @ 0..=125 => frame.push(0x80 | short as u8),
        #[expect(clippy::cast_possible_truncation, reason = "the pattern says so")]
        medium @ 126..=0xffff => {
            frame.push(0x80 | 126);
            frame.extend((medium as u16).to_be_bytes());
        }
        long => {
            frame.push(0x80 | 127);
            frame.extend((long as u64).to_be_bytes());
        }
    }
    let key: [u8; 4] = std::array::from_fn(|_| fastrand::u8(1..));
    frame.extend(key);
    frame.extend(
        payload
            .iter()
            .zip(key.iter().cycle())
            .map(|(byte, key)| byte ^ key),
    );
    frame
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
    fn a_masked_frame_is_the_rfcs_but_for_the_key() {
        let frame = masked_frame(true, 1, b"Hello");
        assert_eq!(frame[..2], [0x81, 0x85]);
        let key = &frame[2..6];
        assert!(key.iter().all(|byte| *byte != 0));
        let plain: Vec<u8> = frame[6..]
            .iter()
            .zip(key.iter().cycle())
            .map(|(a, b)| a ^ b)
            .collect();
        assert_eq!(plain, b"Hello");
        assert_eq!(masked_frame(false, 0, &[0; 126])[..4], [0x00, 0xfe, 0, 126]);
        assert_eq!(
            masked_frame(true, 2, &[0; 65536])[..10],
            [0x82, 0xff, 0, 0, 0, 0, 0, 1, 0, 0]
        );
    }

    fn parse(bytes: &[u8]) -> Seen<Option<(Vec<u8>, usize)>> {
        parse_frame(bytes).map(|found| found.map(|(frame, length)| (frame.payload, length)))
    }

    #[test]
    fn frames_are_read_whole_or_not_at_all() {
        let long = [&[0x82, 126, 0, 200][..], &[7; 200]].concat();
        for cut in 0..long.len() {
            assert_eq!(parse(&long[..cut]), Ok(None), "{cut}");
        }
        assert_eq!(parse(&long), Ok(Some((vec![7; 200], 204))));
        assert_eq!(parse(&[0x81, 1, b'x', 0x81]), Ok(Some((vec![b'x'], 3))));
    }

    #[test]
    fn what_a_server_must_not_send_is_named() {
        for (bytes, seen) in [
            (
                &[0xc1, 0][..],
                "a frame with reserved bits set (first byte 0xc1)",
            ),
            (
                &[0x81, 0x80],
                "a masked frame, which a server must not send",
            ),
            (&[0x81, 126, 0, 5], "a length of 5 written in 2 bytes"),
            (
                &[0x81, 127, 0, 0, 0, 0, 0, 0, 1, 0],
                "a length of 256 written in 8 bytes",
            ),
            (
                &[0x09, 0],
                "a control frame in fragments or longer than 125 bytes",
            ),
            (
                &[0x82, 127, 0xff, 0, 0, 0, 0, 0, 0, 0],
                "a frame that claims to be 18374686479671623680 bytes long",
            ),
        ] {
            assert_eq!(parse(bytes), Err(seen.to_owned()));
        }
        assert_eq!(describe_close(&[]), "a close frame");
        assert_eq!(describe_close(&[3, 234]), "a close frame (1002)");
        assert_eq!(describe_close(b"\x03\xeano"), "a close frame (1002 no)");
    }

    #[test]
    fn a_handshake_is_checked_header_by_header() {
        let right = "HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Accept: k\r\n";
        assert_eq!(check_handshake(right, "k"), Ok(()));
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
            assert_eq!(
                check_handshake(&right.replace(from, to), "k"),
                Err(seen.to_owned())
            );
        }
    }
}
