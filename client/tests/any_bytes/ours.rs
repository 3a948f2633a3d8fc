//! What the client makes of a stream.

use super::stream::Case;
use std::sync::Arc;
use wsbench_client::Cause;
use wsbench_client::protocol::websocket::WebSocket;
use wsbench_client::protocol::{Cursor, Event, Protocol as _};

/// What a driver of the protocol notices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// An awaited message came, and it was right.
    Answer,
    /// A ping was answered with this payload.
    Pong(Vec<u8>),
    /// The connection is given up. Always the last.
    Fault(Cause),
}

/// A client that awaits the case's echoes.
pub struct Client {
    socket: WebSocket,
    awaited: u32,
}

impl Client {
    pub fn of(case: &Case) -> Self {
        let templates = Arc::clone(&case.templates);
        Self {
            socket: WebSocket::new(templates, case.check, "h".into(), "/ws".into()),
            awaited: case.awaited,
        }
    }

    /// Reads the segments one after another, up to the first fault.
    pub fn read<'a>(&self, segments: impl IntoIterator<Item = &'a [u8]>) -> Vec<Seen> {
        let mut seen = Vec::new();
        self.each(segments, |event, reply| match event {
            Event::Answer => seen.push(Seen::Answer),
            Event::Reply => seen.push(Seen::Pong(pong(reply))),
            Event::Fault(cause) => seen.push(Seen::Fault(cause)),
            Event::More => {}
        });
        seen
    }

    /// The same with no memory of what was seen: for counting allocations.
    pub fn each<'a>(
        &self,
        segments: impl IntoIterator<Item = &'a [u8]>,
        mut tell: impl FnMut(Event, &[u8]),
    ) {
        let (mut cursor, mut odd, mut reply) = (Cursor::default(), None, Vec::new());
        let mut awaited = self.awaited;
        for mut bytes in segments {
            while !bytes.is_empty() {
                let (taken, event) =
                    self.socket
                        .receive(&mut cursor, &mut odd, awaited, bytes, &mut reply);
                tell(event, &reply);
                match event {
                    Event::Fault(_) => return,
                    Event::More => assert_eq!(taken, bytes.len(), "more is asked for too early"),
                    Event::Answer => awaited -= 1,
                    Event::Reply => {}
                }
                assert!(taken > 0, "it stands still");
                assert_eq!(event == Event::Reply, !reply.is_empty());
                bytes = &bytes[taken..];
                reply.clear();
            }
        }
    }
}

/// The payload of the one pong that a reply is, which must be masked.
fn pong(reply: &[u8]) -> Vec<u8> {
    let [0x8A, len, a, b, c, d, masked @ ..] = reply else {
        panic!("not a pong: {reply:?}");
    };
    assert_eq!(usize::from(*len), 0x80 | masked.len());
    let key = [a, b, c, d].into_iter().cycle();
    masked
        .iter()
        .zip(key)
        .map(|(byte, key)| byte ^ key)
        .collect()
}
