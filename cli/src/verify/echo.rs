//! The echo group: every message comes back with its type and bytes, however
//! its frame is cut into segments.

use super::connection::Seen;
use super::{Case, Connection, Kind, Level, Message, masked_frame};
use std::thread;
use std::time::Duration;

/// Both sides of each border of the frame's length field, and more than a
/// socket's buffer.
const SIZES_BYTES: [usize; 9] = [0, 1, 125, 126, 127, 128, 65_535, 65_536, 1 << 20];
/// Long enough that the server reads what came before.
const PAUSE: Duration = Duration::from_millis(2);
/// Between single bytes.
const DRIBBLE: Duration = Duration::from_micros(200);
/// Frames in one segment.
const BURST: usize = 64;

/// In the order in which they run.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in [Kind::Text, Kind::Binary] {
        for size in SIZES_BYTES {
            cases.push(case(
                &format!("{} of {size} bytes", kind.name()),
                &format!("a {} message of {size} bytes as it was sent", kind.name()),
                move |connection| expect_echo(connection, kind, &pattern(size)),
            ));
        }
    }
    cases.push(case(
        "multibyte text",
        "text with characters of 2, 3 and 4 bytes as it was sent",
        multibyte,
    ));
    cases.push(case(
        "frame cut in its header",
        "the same answer wherever the header is cut in two segments",
        cut_headers,
    ));
    cases.push(case(
        "one byte a segment",
        "the same answer if each byte comes by itself",
        one_byte_a_segment,
    ));
    cases.push(case(
        "many frames in one segment",
        "an answer to each frame, in order",
        many_frames,
    ));
    cases.push(case(
        "types kept in turn",
        "text for text and binary for binary",
        alternating_types,
    ));
    cases
}

fn case(name: &str, expected: &str, run: impl Fn(&mut Connection) -> Seen<()> + 'static) -> Case {
    Case {
        group: "echo",
        name: name.to_owned(),
        level: Level::Must,
        expected: expected.to_owned(),
        run: Box::new(move |connection| {
            run(connection)?;
            nothing_more(connection)
        }),
    }
}

/// Printable, and different at every place within 95 bytes and a block, so that
/// bytes lost, doubled or out of place are seen.
fn pattern(size: usize) -> Vec<u8> {
    let printable = |i: usize| (i % 95 + i / 4096 % 31) % 95;
    (0..size)
        .map(|i| b' ' + u8::try_from(printable(i)).unwrap_or_default())
        .collect()
}

fn expect_echo(connection: &mut Connection, kind: Kind, payload: &[u8]) -> Seen<()> {
    connection.send(&masked_frame(true, kind.opcode(), payload))?;
    expect(connection, kind, payload)
}

fn expect(connection: &mut Connection, kind: Kind, payload: &[u8]) -> Seen<()> {
    let seen = connection.receive()?;
    match difference(kind, payload, &seen) {
        Some(difference) => Err(difference),
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
    let mut pairs = sent.iter().zip(&seen.payload).enumerate();
    let (at, (want, have)) = pairs.find(|(_, (want, have))| want != have)?;
    Some(format!(
        "{have:#04x} for {want:#04x} at byte {at} of {}",
        sent.len()
    ))
}

/// The connection still works, and no answer came that nobody asked for.
fn nothing_more(connection: &mut Connection) -> Seen<()> {
    expect_echo(connection, Kind::Text, b"the end of this case")
        .map_err(|seen| format!("a right answer, and at the next message {seen}"))
}

fn multibyte(connection: &mut Connection) -> Seen<()> {
    let text = "Grüße, 世界, 🦀 ".repeat(20);
    let frame = masked_frame(true, Kind::Text.opcode(), text.as_bytes());
    // Between two segments, within a character.
    let within = frame.len() - 3;
    connection.send(&frame[..within])?;
    thread::sleep(PAUSE);
    connection.send(&frame[within..])?;
    expect(connection, Kind::Text, text.as_bytes())
}

fn cut_headers(connection: &mut Connection) -> Seen<()> {
    for size in [125, 126, 65_536] {
        let payload = pattern(size);
        let header = masked_frame(true, 2, &payload).len() - size;
        for cut in 1..=header {
            let frame = masked_frame(true, Kind::Binary.opcode(), &payload);
            connection.send(&frame[..cut])?;
            thread::sleep(PAUSE);
            connection.send(&frame[cut..])?;
            expect(connection, Kind::Binary, &payload)
                .map_err(|seen| format!("{seen}, cut behind byte {cut} of {header}"))?;
        }
    }
    Ok(())
}

fn one_byte_a_segment(connection: &mut Connection) -> Seen<()> {
    let payload = pattern(192);
    for byte in masked_frame(true, Kind::Binary.opcode(), &payload) {
        connection.send(&[byte])?;
        thread::sleep(DRIBBLE);
    }
    expect(connection, Kind::Binary, &payload)
}

fn many_frames(connection: &mut Connection) -> Seen<()> {
    let payloads: Vec<Vec<u8>> = (0..BURST).map(pattern).collect();
    let frames = payloads
        .iter()
        .map(|payload| masked_frame(true, Kind::Binary.opcode(), payload));
    connection.send(&frames.collect::<Vec<_>>().concat())?;
    for (at, payload) in payloads.iter().enumerate() {
        expect(connection, Kind::Binary, payload)
            .map_err(|seen| format!("{seen}, at frame {at} of {BURST}"))?;
    }
    Ok(())
}

fn alternating_types(connection: &mut Connection) -> Seen<()> {
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

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = cases().into_iter().map(|case| case.name).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!((names.len(), all), (23, 23));
    }
}
