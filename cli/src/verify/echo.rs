//! The echo group: every message comes back with its type and bytes, however
//! its frame is cut into segments. RFC 6455, sections 5.2 and 5.6.

use super::case::{Case, Group, Outcome, Wrong};
use super::connection::frame::{BINARY, CLOSE, FIN, TEXT, masked};
use super::connection::{Connection, Kind, Message, Peer};
use std::thread;
use std::time::Duration;
use wsbench_schema::Level::{Must, Note};

/// Both sides of each border of the frame's length field, and more than a
/// socket's buffer.
const SIZES_BYTES: [usize; 9] = [0, 1, 125, 126, 127, 128, 65_535, 65_536, 1 << 20];
/// A server may have a lower limit, if it says so.
const LARGE_BYTES: usize = 16 << 20;
/// Long enough that the server reads what came before.
const PAUSE: Duration = Duration::from_millis(2);
/// Between single bytes.
const DRIBBLE: Duration = Duration::from_micros(200);
/// Frames in one segment.
const BURST: usize = 64;
/// Frames that are sent before an answer is read.
const UNREAD: usize = 10_000;

/// In the order in which they run.
pub fn cases() -> Vec<Case> {
    let mut group = Group::new("echo");
    for kind in [Kind::Text, Kind::Binary] {
        for size in SIZES_BYTES {
            let name = kind.name();
            group.add(
                Must,
                format!("{name} of {size} bytes"),
                format!("a {name} message of {size} bytes as it was sent"),
                ending(move |connection| expect_echo(connection, kind, &pattern(size))),
            );
        }
    }
    for kind in [Kind::Text, Kind::Binary] {
        let name = kind.name();
        group.add(
            Must,
            format!("{name} of {LARGE_BYTES} bytes"),
            format!("a {name} message of {LARGE_BYTES} bytes as it was sent, or the end of the connection"),
            move |peer| large(peer, kind).map(drop),
        );
    }
    group.add(
        Note,
        "limit of 16 MiB or more",
        "an answer to a message of 16 MiB",
        |peer| match large(peer, Kind::Binary)? {
            None => Ok(()),
            Some(refused) => Err(Wrong::new(refused)),
        },
    );
    let mut must = |name: &str, expected: &str, ask: fn(&mut Connection) -> Outcome| {
        group.add(Must, name, expected, ending(ask));
    };
    must(
        "multibyte text",
        "text with characters of 2, 3 and 4 bytes as it was sent",
        multibyte,
    );
    must(
        "frame cut in its header",
        "the same answer wherever the header is cut in two segments",
        cut_headers,
    );
    must(
        "one byte a segment",
        "the same answer if each byte comes by itself",
        one_byte_a_segment,
    );
    must(
        "many frames in one segment",
        "an answer to each frame, in order",
        many_frames,
    );
    must(
        "types kept in turn",
        "text for text and binary for binary",
        alternating_types,
    );
    must(
        "10000 frames without reading",
        "an answer to each frame, in order, once they are read",
        without_reading,
    );
    group.cases()
}

/// On a connection of its own, which then still works.
fn ending(
    ask: impl Fn(&mut Connection) -> Outcome + Send + Sync,
) -> impl Fn(&Peer<'_>) -> Outcome + Send + Sync {
    move |peer| {
        let mut connection = peer.open()?;
        ask(&mut connection)?;
        nothing_more(&mut connection)
    }
}

/// Printable, and different at every place within 95 bytes and a block, so that
/// bytes lost, doubled or out of place are seen.
pub fn pattern(size: usize) -> Vec<u8> {
    const BLOCK: usize = 4096;
    let cycle: Vec<u8> = (b' '..=b'~').cycle().take(BLOCK + 95).collect();
    let mut bytes = Vec::with_capacity(size);
    for block in 0..size.div_ceil(BLOCK) {
        let from = (block * BLOCK + block % 31) % 95;
        let length = BLOCK.min(size - bytes.len());
        bytes.extend_from_slice(&cycle[from..from + length]);
    }
    bytes
}

pub fn expect_echo(connection: &mut Connection, kind: Kind, payload: &[u8]) -> Outcome {
    connection.send_frame(kind.opcode(), payload)?;
    expect(connection, kind, payload)
}

pub fn expect(connection: &mut Connection, kind: Kind, payload: &[u8]) -> Outcome {
    let seen = connection.receive()?;
    match difference(kind, payload, &seen) {
        Some(difference) => Err(Wrong::new(difference)),
        None => Ok(()),
    }
}

fn difference(kind: Kind, sent: &[u8], seen: &Message) -> Option<String> {
    if seen.kind != kind {
        return Some(format!(
            "a {} message for a {} one",
            seen.kind.name(),
            kind.name()
        ));
    }
    if seen.payload.len() != sent.len() {
        let (have, want) = (seen.payload.len(), sent.len());
        return Some(format!("a message of {have} bytes for one of {want}"));
    }
    if seen.payload == sent {
        return None;
    }
    let mut pairs = sent.iter().zip(&seen.payload).enumerate();
    let (at, (want, have)) = pairs.find(|(_, (want, have))| want != have)?;
    Some(format!(
        "{have:#04x} for {want:#04x} at byte {at} of {}",
        sent.len()
    ))
}

/// The connection still works, and no answer came that nobody asked for.
pub fn nothing_more(connection: &mut Connection) -> Outcome {
    expect_echo(connection, Kind::Text, b"the end of this case").map_err(|wrong| {
        wrong.told(|seen| format!("a right answer, and at the next message {seen}"))
    })
}

fn multibyte(connection: &mut Connection) -> Outcome {
    let text = "Grüße, 世界, 🦀 ".repeat(20);
    let frame = masked(FIN | TEXT, text.as_bytes());
    // Between two segments, within a character.
    let within = frame.len() - 3;
    connection.send(&frame[..within])?;
    thread::sleep(PAUSE);
    connection.send(&frame[within..])?;
    expect(connection, Kind::Text, text.as_bytes())
}

fn cut_headers(connection: &mut Connection) -> Outcome {
    for size in [125, 126, 65_536] {
        let payload = pattern(size);
        let header = masked(FIN | BINARY, &payload).len() - size;
        for cut in 1..=header {
            let frame = masked(FIN | BINARY, &payload);
            connection.send(&frame[..cut])?;
            thread::sleep(PAUSE);
            connection.send(&frame[cut..])?;
            expect(connection, Kind::Binary, &payload).map_err(|wrong| {
                wrong.told(|seen| format!("{seen}, cut behind byte {cut} of {header}"))
            })?;
        }
    }
    Ok(())
}

fn one_byte_a_segment(connection: &mut Connection) -> Outcome {
    let payload = pattern(192);
    for byte in masked(FIN | BINARY, &payload) {
        connection.send(&[byte])?;
        thread::sleep(DRIBBLE);
    }
    expect(connection, Kind::Binary, &payload)
}

fn many_frames(connection: &mut Connection) -> Outcome {
    let payloads: Vec<Vec<u8>> = (0..BURST).map(pattern).collect();
    let frames = payloads.iter().map(|payload| masked(FIN | BINARY, payload));
    connection.send(&frames.collect::<Vec<_>>().concat())?;
    for (at, payload) in payloads.iter().enumerate() {
        expect(connection, Kind::Binary, payload)
            .map_err(|wrong| wrong.told(|seen| format!("{seen}, at frame {at} of {BURST}")))?;
    }
    Ok(())
}

fn alternating_types(connection: &mut Connection) -> Outcome {
    for kind in [
        Kind::Text,
        Kind::Binary,
        Kind::Text,
        Kind::Text,
        Kind::Binary,
    ] {
        expect_echo(connection, kind, b"the same bytes")?;
    }
    Ok(())
}

fn without_reading(connection: &mut Connection) -> Outcome {
    let payload = |at: usize| format!("message {at:08}");
    let frames: Vec<Vec<u8>> = (0..UNREAD)
        .map(|at| masked(FIN | BINARY, payload(at).as_bytes()))
        .collect();
    connection.raw.send_unread(&frames.concat())?;
    for at in 0..UNREAD {
        expect(connection, Kind::Binary, payload(at).as_bytes())
            .map_err(|wrong| wrong.told(|seen| format!("{seen}, at frame {at} of {UNREAD}")))?;
    }
    Ok(())
}

/// In words, how a server that may have a lower limit refused; `None` if it answered
/// as it must.
fn large(peer: &Peer<'_>, kind: Kind) -> Outcome<Option<String>> {
    let payload = pattern(LARGE_BYTES);
    let mut connection = peer.open()?;
    // It may end while we send, and say why before.
    let sent = connection.send_frame(kind.opcode(), &payload);
    if let Err(wrong) = sent
        && wrong.late
    {
        return Err(wrong);
    }
    match connection.next()? {
        None => Ok(Some("the end of the connection".into())),
        Some(frame) if frame.opcode == CLOSE => Ok(Some(frame.describe())),
        Some(frame) => {
            connection.put_back(frame);
            expect(&mut connection, kind, &payload)?;
            nothing_more(&mut connection)?;
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_told_by_type_length_and_place() {
        let seen = |kind, payload: &[u8]| Message {
            kind,
            payload: payload.to_vec(),
        };
        let of = |seen: Message| difference(Kind::Binary, b"abc", &seen);
        assert_eq!(of(seen(Kind::Binary, b"abc")), None);
        assert_eq!(
            of(seen(Kind::Text, b"abc")).unwrap(),
            "a text message for a binary one"
        );
        assert_eq!(
            of(seen(Kind::Binary, b"abcd")).unwrap(),
            "a message of 4 bytes for one of 3"
        );
        assert_eq!(
            of(seen(Kind::Binary, b"abd")).unwrap(),
            "0x64 for 0x63 at byte 2 of 3"
        );
    }

    #[test]
    fn the_pattern_is_text_and_shows_a_lost_block() {
        let bytes = pattern(1 << 20);
        assert!(bytes.iter().all(|byte| (b' '..=b'~').contains(byte)));
        assert_ne!(bytes[..1000], bytes[4096..5096]);
        assert_ne!(bytes[..1000], bytes[95 * 64..95 * 64 + 1000]);
        assert_ne!(bytes[..4096], bytes[4096 * 16..4096 * 17]);
    }
}
