//! Connections of the examiner: bytes ([`raw`]), the handshake ([`http`]), frames
//! ([`frame`]), and above them messages.

mod account;
pub mod frame;
pub mod http;
mod raw;

pub use raw::{Patience, Raw};

use super::case::{Outcome, Wrong};
use account::Account;
use frame::{BINARY, CLOSE, CONTINUATION, FIN, Frame, PING, PONG, TEXT};
use http::{Answer, Request};
use std::net::SocketAddr;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

/// Longest head of an answer to a handshake.
const HEAD_MAX_BYTES: usize = 16 << 10;

/// The server at the other end, for one case.
pub struct Peer<'a> {
    addr: SocketAddr,
    path: &'a str,
    patience: Patience,
    account: Rc<Account>,
}

impl<'a> Peer<'a> {
    /// Nothing is sent yet.
    pub fn new(addr: SocketAddr, path: &'a str, patience: Patience) -> Self {
        let account = Rc::default();
        Self {
            addr,
            path,
            patience,
            account,
        }
    }

    /// What the case sent on its last connection, in words; the handshake is in it
    /// only if it was all.
    pub fn sent(&self) -> Option<String> {
        self.account.sent.borrow().shown()
    }

    /// Waits until something holds, as long as for an answer; late in those words if it did not.
    pub fn wait_until(&self, seen: &str, mut holds: impl FnMut() -> Outcome<bool>) -> Outcome {
        let end = Instant::now() + self.patience.silence;
        let mut pause = Duration::from_millis(1);
        while !holds()? {
            self.patience.check(seen)?;
            if Instant::now() >= end {
                return Err(Wrong::late(seen));
            }
            thread::sleep(pause);
            pause = (2 * pause).min(Duration::from_millis(50));
        }
        Ok(())
    }

    /// The server's address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Connects, and no more.
    pub fn connect(&self) -> Outcome<Raw> {
        Raw::open(self.addr, self.patience, Rc::clone(&self.account))
    }

    /// A request of the plainest kind.
    pub fn request(&self) -> Request {
        Request::new(&self.addr.to_string(), self.path)
    }

    /// Connects and shakes hands.
    pub fn open(&self) -> Outcome<Connection> {
        let mut raw = self.connect()?;
        let request = self.request();
        raw.send(&request.bytes())?;
        let connection = Connection::shake(raw, &request)?;
        connection.raw.forget_sent();
        Ok(connection)
    }
}

/// Type of a data message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Binary,
}

impl Kind {
    pub fn opcode(self) -> u8 {
        match self {
            Kind::Text => TEXT,
            Kind::Binary => BINARY,
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

/// An open WebSocket.
pub struct Connection {
    pub raw: Raw,
    /// Read, and to be read again.
    put_back: Option<Frame>,
}

impl Connection {
    /// Reads the answer to a request that was sent.
    pub fn shake(mut raw: Raw, request: &Request) -> Outcome<Self> {
        request.check(&answer(&mut raw)?)?;
        let put_back = None;
        Ok(Self { raw, put_back })
    }

    /// Sends bytes as they are; see [`Raw::send`].
    pub fn send(&mut self, bytes: &[u8]) -> Outcome {
        self.raw.send(bytes)
    }

    /// Sends a masked frame whose FIN bit is set.
    pub fn send_frame(&mut self, opcode: u8, payload: &[u8]) -> Outcome {
        self.send(&frame::masked(FIN | opcode, payload))
    }

    /// Is the next frame again.
    pub fn put_back(&mut self, frame: Frame) {
        self.put_back = Some(frame);
    }

    /// The next frame; `None` if the server ended the connection.
    pub fn next(&mut self) -> Outcome<Option<Frame>> {
        if let Some(frame) = self.put_back.take() {
            return Ok(Some(frame));
        }
        loop {
            let most_bytes = self.raw.account().frame_most_bytes();
            if let Some((frame, length)) = frame::parse(self.raw.unread(), most_bytes)? {
                self.raw.consume(length);
                self.raw.account().frame(frame.opcode == PING)?;
                self.raw.check("the next frame")?;
                return Ok(Some(frame));
            }
            let part = self.raw.unread().len();
            // Looks at the clock and at how much came, too.
            let more = self.raw.fill(&match part {
                0 => "an answer".to_owned(),
                part => format!("the rest of a frame ({part} bytes came)"),
            })?;
            match (more, part) {
                (true, _) => {}
                (false, 0) => return Ok(None),
                (false, part) => {
                    let how = self.raw.ended().unwrap_or("closed");
                    return Err(Wrong::new(format!(
                        "the connection {how} within a frame ({part} bytes came)"
                    )));
                }
            }
        }
    }

    /// The next data message. Pings are answered, pongs passed over, fragments put
    /// together.
    pub fn receive(&mut self) -> Outcome<Message> {
        let mut message: Option<Message> = None;
        loop {
            let Some(frame) = self.next()? else {
                let how = self.raw.ended().unwrap_or("closed");
                return Err(Wrong::new(format!(
                    "the connection {how} while waiting for an answer"
                )));
            };
            match (frame.opcode, &mut message) {
                (TEXT | BINARY, None) => {
                    let kind = match frame.opcode {
                        TEXT => Kind::Text,
                        _ => Kind::Binary,
                    };
                    let payload = frame.payload;
                    message = Some(Message { kind, payload });
                }
                (CONTINUATION, Some(message)) => message.payload.extend(frame.payload),
                (CONTINUATION, None) => {
                    return Err(Wrong::new("a continuation frame that continues nothing"));
                }
                (TEXT | BINARY, Some(_)) => {
                    return Err(Wrong::new("a new message within the fragments of another"));
                }
                (PING, _) => self
                    .raw
                    .send_unasked(&frame::masked(FIN | PONG, &frame.payload))?,
                (PONG, _) => {}
                (CLOSE, _) | (_, _) => return Err(Wrong::new(frame.describe())),
            }
            if frame.opcode < CLOSE
                && frame.fin
                && let Some(message) = message.take()
            {
                return Ok(message);
            }
        }
    }
}

/// The head of the server's next answer.
pub fn answer(raw: &mut Raw) -> Outcome<Answer> {
    loop {
        let unread = raw.unread();
        let end = unread.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            let answer = Answer::parse(&unread[..end]);
            raw.consume(end + 4);
            return Ok(answer);
        }
        if unread.len() > HEAD_MAX_BYTES {
            let seen = format!("a handshake's answer beyond {HEAD_MAX_BYTES} bytes");
            return Err(Wrong::new(seen));
        }
        if !raw.fill("an answer to the handshake")? {
            let how = raw.ended().unwrap_or("closed");
            let seen = format!("the connection {how} while waiting for an answer to the handshake");
            return Err(Wrong::new(seen));
        }
    }
}
