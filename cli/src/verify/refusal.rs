//! What a server does with frames that RFC 6455 forbids. It may close with a frame
//! that says why, or just end; that it goes on is found without waiting, by what
//! it answers behind them.

use super::case::{Outcome, Wrong};
use super::connection::Peer;
use super::connection::frame::{CLOSE, FIN, Frame, PING, PONG, TEXT, masked};

/// In the words of a case.
pub const REFUSAL: &str = "a close frame or the end of the connection";
/// Payload of what comes behind the forbidden frames.
const BEHIND: &[u8] = b"still there?";

/// How a connection was ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// With a close frame.
    Closed(Frame),
    /// Without.
    Ended,
}

impl Refusal {
    /// Whether a close frame with this code said why.
    pub fn expect_code(&self, code: u16) -> Outcome {
        match self {
            Self::Closed(frame) if frame.code() == Some(code) => Ok(()),
            Self::Closed(frame) => Err(Wrong::new(frame.describe())),
            Self::Ended => Err(Wrong::new(
                "the end of the connection without a close frame",
            )),
        }
    }
}

/// What behind forbidden bytes is answered if they were accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// A ping and a message: whoever answers one has read past a forbidden frame.
    PingAndMessage,
    /// A message alone. That text is no UTF-8 may be found when the program takes
    /// the message, and pings may be answered before that.
    Message,
}

/// Sends a forbidden frame; right is any refusal.
pub fn expect_refusal(peer: &Peer<'_>, forbidden: &[u8]) -> Outcome {
    refusal(peer, forbidden, Behind::PingAndMessage).map(drop)
}

/// Sends text that is none; right is any refusal.
pub fn expect_text_refused(peer: &Peer<'_>, forbidden: &[u8]) -> Outcome {
    refusal(peer, forbidden, Behind::Message).map(drop)
}

/// The same, and how it was refused.
pub fn refusal(peer: &Peer<'_>, forbidden: &[u8], behind: Behind) -> Outcome<Refusal> {
    let mut connection = peer.open()?;
    let mut bytes = forbidden.to_vec();
    if behind == Behind::PingAndMessage {
        bytes.extend(masked(FIN | PING, BEHIND));
    }
    bytes.extend(masked(FIN | TEXT, BEHIND));
    // It may have ended before all is sent.
    match connection.send(&bytes) {
        Err(wrong) if wrong.late => return Err(wrong),
        _ => {}
    }
    loop {
        let Some(frame) = connection.next()? else {
            return Ok(Refusal::Ended);
        };
        match frame.opcode {
            CLOSE => return Ok(Refusal::Closed(frame)),
            PING => {}
            PONG if frame.payload == BEHIND => {
                return Err(Wrong::new("a pong to the ping behind it"));
            }
            TEXT if frame.payload == BEHIND => {
                return Err(Wrong::new("an answer to the message behind it"));
            }
            _ => return Err(Wrong::new(frame.describe())),
        }
    }
}
