//! Our reader of frames against tungstenite's.
//!
//! Ours awaits the echo of a known message and judges each byte as it comes;
//! tungstenite takes any message and judges whole frames. So *agree* means:
//!
//! 1. The same pings are answered and the same messages end, in the same order,
//!    up to the first fault.
//! 2. A message that tungstenite hands over is an `Answer` if and only if one is
//!    awaited and it is the echo: type, length and (with `check`) bytes. Otherwise
//!    it is a fault that says what is wrong with it: `Unexpected`, `WrongOpcode`,
//!    `WrongLength`, `WrongPayload`.
//! 3. A close frame is `Closed`, whatever its code.
//! 4. What tungstenite calls a breach of the protocol is a fault: `BadFrame`, or
//!    one of the four above if the message in question was no echo already.
//! 5. What tungstenite is content with is no `BadFrame`, with one exception: a
//!    length that is not in the shortest form. Ours may say `BadFrame` before the
//!    frame has come whole; then tungstenite says so at its end.
//! 6. Ours may say earlier that a message is no echo, before all of it has come;
//!    then tungstenite hands over no right echo in its place.
//! 7. Without `check` the payload is not looked at, so neither is its UTF-8.

use super::cut::cut;
use super::ours::{Client, Seen};
use super::stream::Case;
use super::theirs::{self, End};
use tungstenite::Message;
use wsbench_client::Cause;
use wsbench_schema::MessageKind;

/// Whether both agree on the case, and ours wherever the stream is cut.
pub fn check(case: &Case, cuts: &[usize]) {
    let client = Client::of(case);
    let seen = client.read([case.bytes.as_slice()]);
    // A long stream is mostly payload, of which each byte takes the same way.
    let small = 1 + case.bytes.len() / 20_000;
    assert_eq!(
        client.read(case.bytes.chunks(small)),
        seen,
        "by {small} bytes"
    );
    assert_eq!(client.read(cut(&case.bytes, cuts)), seen, "cut at {cuts:?}");
    agree(case, &seen);
}

fn agree(case: &Case, seen: &[Seen]) {
    let long_form = theirs::first_long_form(&case.bytes);
    let known = long_form.unwrap_or(case.bytes.len());
    let (messages, end) = theirs::read(&case.bytes[..known]);
    let mut walk = Walk {
        case,
        seen,
        answers: 0,
    };
    for (place, message) in messages.iter().enumerate() {
        if !walk.goes_on(message, &messages[place..]) {
            return;
        }
    }
    let unlooked = !case.check && case.templates.kind() == MessageKind::Text;
    if end == End::NotUtf8 && unlooked {
        return;
    }
    let fault = match walk.seen {
        [] => None,
        [Seen::Fault(cause)] => Some(*cause),
        more => panic!("tungstenite ends here ({end:?}), ours goes on: {more:?}"),
    };
    match (end, fault) {
        (End::Open, None) => assert_eq!(long_form, None, "ours waits for more"),
        (_, Some(cause)) if is_no_echo(cause) => {}
        (End::Open, Some(Cause::BadFrame)) if long_form.is_none() => {
            let (_, end) = theirs::read(&theirs::completed(&case.bytes));
            assert_ne!(end, End::Open, "a bad frame");
        }
        (_, Some(Cause::BadFrame)) => {}
        (end, fault) => panic!("tungstenite says {end:?}, ours {fault:?}"),
    }
}

/// The causes that say: this is not the message that was awaited.
fn is_no_echo(cause: Cause) -> bool {
    use Cause::{Unexpected, WrongLength, WrongOpcode, WrongPayload};
    matches!(cause, Unexpected | WrongOpcode | WrongLength | WrongPayload)
}

/// Along both in step.
struct Walk<'a> {
    case: &'a Case,
    /// What ours saw and was not compared yet.
    seen: &'a [Seen],
    answers: u32,
}

impl Walk<'_> {
    /// Compares the next thing on both sides; false after the first fault.
    fn goes_on(&mut self, message: &Message, rest: &[Message]) -> bool {
        let next = self.seen.first();
        match message {
            Message::Pong(_) => return true,
            Message::Ping(payload) => match next {
                Some(Seen::Pong(answered)) => assert_eq!(answered, payload),
                // The ping stands inside a message that is no echo.
                Some(Seen::Fault(cause)) if is_no_echo(*cause) => {
                    let mut data = rest.iter().filter(|m| m.is_text() || m.is_binary());
                    assert!(data.next().is_none_or(|message| !self.is_right(message)));
                    return false;
                }
                other => panic!("a ping, but ours saw {other:?}"),
            },
            Message::Close(_) => {
                // Of a message that it breaks into, more may be known already.
                let Some(Seen::Fault(cause)) = next else {
                    panic!("a close frame, but ours saw {next:?}");
                };
                assert!(*cause == Cause::Closed || is_no_echo(*cause), "{cause:?}");
                return false;
            }
            Message::Text(_) | Message::Binary(_) if self.is_right(message) => {
                assert_eq!(next, Some(&Seen::Answer), "a right echo");
                self.answers += 1;
            }
            Message::Text(_) | Message::Binary(_) => {
                let Some(Seen::Fault(cause)) = next else {
                    panic!("a message that is no echo, but ours saw {next:?}");
                };
                assert!(self.is_wrong_by(message, *cause), "{cause:?}");
                return false;
            }
            Message::Frame(_) => panic!("tungstenite reads no bare frames"),
        }
        self.seen = &self.seen[1..];
        true
    }

    fn expected(&self) -> &[u8] {
        let templates = &self.case.templates;
        templates.payload(self.answers % templates.count())
    }

    fn is_awaited(&self) -> bool {
        self.answers < self.case.awaited
    }

    fn has_right_type(&self, message: &Message) -> bool {
        message.is_text() == (self.case.templates.kind() == MessageKind::Text)
    }

    fn is_right(&self, message: &Message) -> bool {
        let payload = message.clone().into_data();
        self.is_awaited()
            && self.has_right_type(message)
            && payload.len() == self.expected().len()
            && (!self.case.check || payload == self.expected())
    }

    /// Whether the cause tells the truth about the message.
    fn is_wrong_by(&self, message: &Message, cause: Cause) -> bool {
        let payload = message.clone().into_data();
        let both = payload.len().min(self.expected().len());
        match cause {
            Cause::Unexpected => !self.is_awaited(),
            Cause::WrongOpcode => self.is_awaited() && !self.has_right_type(message),
            Cause::WrongLength => payload.len() != self.expected().len(),
            Cause::WrongPayload => self.case.check && payload[..both] != self.expected()[..both],
            _ => false,
        }
    }
}
