//! Servers that are wrong in one way each, and what the examiner says of them:
//! no case may be one that nothing can fail.

use super::ask::{self, Limits};
use super::case::Case;
use super::connection::http::accept_for;
use super::{Omits, echo};
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use wsbench_schema::{Examination, SubjectId};

/// What a scripted server does with a message it has read.
#[derive(Clone, Copy, Debug)]
enum Manner {
    Honest,
    /// The answer comes in fragments with a ping between, which is allowed.
    Fragments,
    WrongLastByte,
    OneByteMore,
    OneByteLess,
    AlwaysBinary,
    AlwaysText,
    /// Characters beyond ASCII become question marks.
    AsciiOnly,
    /// Answers are cut at 64 KiB less one.
    Short16,
    /// All that one read brings is one message.
    Merged,
    /// After one frame the rest of what was read is forgotten.
    OneFrameARead,
    /// A frame whose header does not come whole ends the connection.
    WholeHeaders,
    Twice,
    Silent,
    Closes,
    ClosesWithCode,
    Masks,
    ReservedBit,
    BadStatus,
    BadAccept,
    /// Never stops pinging and never answers.
    Pings,
    /// Silent on four connections, between which it is not.
    SilentFourTimes,
}

/// A server in a thread that lives as long as the test's process.
fn server(manner: Manner) -> SocketAddr {
    counted_server(manner).0
}

/// The same, and the number of its connections.
fn counted_server(manner: Manner) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let before = count.fetch_add(1, Ordering::SeqCst);
            let manner = match manner {
                Manner::SilentFourTimes if before < 8 && before % 2 == 1 => Manner::Silent,
                manner => manner,
            };
            thread::spawn(move || serve(stream, manner));
        }
    });
    (addr, connections)
}

/// Ends when the client is gone or the manner says so.
fn serve(mut stream: TcpStream, manner: Manner) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        read_more(&mut stream, &mut bytes)?;
    }
    let head = String::from_utf8(bytes).unwrap();
    let key = head
        .lines()
        .find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "))
        .unwrap();
    let accept = match manner {
        Manner::BadAccept => accept_for("another key"),
        _ => accept_for(key),
    };
    let status = match manner {
        Manner::BadStatus => "404 Not Found",
        _ => "101 Switching Protocols",
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    stream.write_all(answer.as_bytes()).ok()?;
    let mut bytes = Vec::new();
    loop {
        read_more(&mut stream, &mut bytes)?;
        let mut output = Vec::new();
        let mut merged: Option<(u8, Vec<u8>)> = None;
        while let Some((opcode, payload, length)) = client_frame(&bytes) {
            bytes.drain(..length);
            match manner {
                Manner::Merged => match &mut merged {
                    Some((_, all)) => all.extend(payload),
                    None => merged = Some((opcode, payload)),
                },
                Manner::OneFrameARead => {
                    bytes.clear();
                    answer_to(manner, opcode, payload, &mut output)?;
                }
                _ => answer_to(manner, opcode, payload, &mut output)?,
            }
        }
        if let Some((opcode, payload)) = merged {
            server_frame(0x80 | opcode, &payload, &mut output);
        }
        let header_is_cut = !bytes.is_empty() && bytes.len() < header_length(&bytes);
        if matches!(manner, Manner::WholeHeaders) && header_is_cut {
            return None;
        }
        stream.write_all(&output).ok()?;
        if matches!(manner, Manner::ClosesWithCode) {
            return None;
        }
        if matches!(manner, Manner::Pings) {
            loop {
                stream.write_all(&[0x89, 0]).ok()?;
            }
        }
    }
}

fn read_more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    let mut buffer = [0; 4096];
    let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
    bytes.extend_from_slice(&buffer[..count]);
    Some(())
}

/// `None` ends the connection.
fn answer_to(manner: Manner, opcode: u8, mut payload: Vec<u8>, output: &mut Vec<u8>) -> Option<()> {
    if opcode >= 8 {
        return Some(());
    }
    let mut first = 0x80 | opcode;
    match manner {
        Manner::Honest | Manner::Merged | Manner::OneFrameARead | Manner::WholeHeaders => {}
        Manner::BadStatus | Manner::BadAccept | Manner::SilentFourTimes => {}
        Manner::Fragments => {
            let half = payload.len() / 2;
            server_frame(opcode, &payload[..half], output);
            server_frame(0x89, b"are you there?", output);
            server_frame(0x00, &payload[half..], output);
            server_frame(0x80, b"", output);
            return Some(());
        }
        Manner::WrongLastByte => {
            if let Some(last) = payload.last_mut() {
                *last ^= 1;
            }
        }
        Manner::OneByteMore => payload.push(b'x'),
        Manner::OneByteLess => {
            payload.pop();
        }
        Manner::AlwaysBinary => first = 0x82,
        Manner::AlwaysText => first = 0x81,
        Manner::AsciiOnly => {
            for byte in &mut payload {
                *byte = if byte.is_ascii() { *byte } else { b'?' };
            }
        }
        Manner::Short16 => payload.truncate(0xffff),
        Manner::Twice => server_frame(first, &payload, output),
        Manner::Silent | Manner::Pings => return Some(()),
        Manner::Closes => return None,
        Manner::ClosesWithCode => {
            server_frame(0x88, b"\x03\xf3tired", output);
            return Some(());
        }
        Manner::Masks => {
            output.extend([first, 0x80 | 5, 0, 0, 0, 0, 1, 2, 3, 4, 5]);
            return Some(());
        }
        Manner::ReservedBit => first |= 0x40,
    }
    server_frame(first, &payload, output);
    Some(())
}

fn server_frame(first: u8, payload: &[u8], output: &mut Vec<u8>) {
    output.push(first);
    match payload.len() {
        short @ 0..=125 => output.push(short as u8),
        medium @ 126..=0xffff => {
            output.push(126);
            output.extend((medium as u16).to_be_bytes());
        }
        long => {
            output.push(127);
            output.extend((long as u64).to_be_bytes());
        }
    }
    output.extend_from_slice(payload);
}

fn header_length(bytes: &[u8]) -> usize {
    match bytes.get(1).map_or(0, |byte| byte & 0x7f) {
        126 => 8,
        127 => 14,
        _ => 6,
    }
}

/// Opcode, unmasked payload and whole length of the first frame, if it is there.
fn client_frame(bytes: &[u8]) -> Option<(u8, Vec<u8>, usize)> {
    let header = header_length(bytes);
    if bytes.len() < header {
        return None;
    }
    assert!(bytes[1] & 0x80 != 0, "the examiner's frames are masked");
    let length = match header {
        6 => usize::from(bytes[1] & 0x7f),
        8 => usize::from(u16::from_be_bytes([bytes[2], bytes[3]])),
        _ => usize::try_from(u64::from_be_bytes(bytes[2..10].try_into().unwrap())).unwrap(),
    };
    let payload = bytes.get(header..header + length)?;
    let key = &bytes[header - 4..header];
    let plain = payload
        .iter()
        .zip(key.iter().cycle())
        .map(|(byte, key)| byte ^ key);
    Some((bytes[0] & 0x0f, plain.collect(), header + length))
}

/// More time than a real server is given: tests run side by side.
fn examine(manner: Manner) -> Examination {
    let limits = Limits {
        first_pass: Duration::from_secs(60),
        second_pass: Duration::from_secs(60),
        ..Limits::default()
    };
    examine_within(server(manner), limits)
}

fn examine_within(addr: SocketAddr, limits: Limits) -> Examination {
    let subject = SubjectId {
        name: "scripted".into(),
        variant: None,
        version: "scripted 1".into(),
        language: "Rust".into(),
    };
    let mut examination = Examination::blank(subject, None, 0);
    examination.findings = ask::all(addr, "/ws", &small_cases(), &Omits::default(), limits);
    examination
}

/// Those that take little time.
fn small_cases() -> Vec<Case> {
    let mut cases = echo::cases();
    cases.retain(|case| !case.name.contains("16") && !case.name.contains("10000"));
    cases
}

fn failed(examination: &Examination) -> BTreeSet<String> {
    examination
        .failures()
        .map(|finding| finding.name.clone())
        .collect()
}

fn all_names() -> BTreeSet<String> {
    small_cases().into_iter().map(|case| case.name).collect()
}

fn seen(examination: &Examination, name: &str) -> String {
    let finding = examination
        .findings
        .iter()
        .find(|finding| finding.name == name)
        .unwrap();
    finding.seen.clone().unwrap_or("pass".into())
}

#[track_caller]
fn fails_only(manner: Manner, names: &[&str]) -> Examination {
    let examination = examine(manner);
    let names: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(failed(&examination), names, "{manner:?}: {examination:#?}");
    assert_eq!(examination.passed(), names.is_empty());
    examination
}

#[track_caller]
fn fails_all_but(manner: Manner, names: &[&str]) -> Examination {
    let examination = examine(manner);
    let mut expected = all_names();
    for name in names {
        assert!(expected.remove(*name), "no case is named {name}");
    }
    assert_eq!(
        failed(&examination),
        expected,
        "{manner:?}: {examination:#?}"
    );
    assert!(!examination.passed());
    examination
}

#[test]
fn an_honest_server_passes_all() {
    let examination = examine(Manner::Honest);
    assert_eq!(failed(&examination), BTreeSet::new(), "{examination:#?}");
    assert_eq!(examination.summary(), "23/23");
}

#[test]
fn an_answer_in_fragments_with_a_ping_between_is_right() {
    fails_only(Manner::Fragments, &[]);
}

#[test]
fn a_wrong_byte_fails_every_case() {
    // The message that ends each case has bytes too, so the empty ones fail there.
    let examination = fails_all_but(Manner::WrongLastByte, &[]);
    assert_eq!(
        seen(&examination, "binary of 125 bytes"),
        "0x3c for 0x3d at byte 124 of 125"
    );
    assert!(seen(&examination, "text of 0 bytes").starts_with("a right answer, and at the next"));
}

#[test]
fn a_wrong_length_fails_every_case() {
    let more = fails_all_but(Manner::OneByteMore, &[]);
    assert_eq!(
        seen(&more, "binary of 0 bytes"),
        "a message of 1 bytes for one of 0"
    );
    let less = fails_all_but(Manner::OneByteLess, &[]);
    assert_eq!(
        seen(&less, "text of 126 bytes"),
        "a message of 125 bytes for one of 126"
    );
}

#[test]
fn a_wrong_type_fails_every_case_of_that_type() {
    // Each case ends with a text, so that every one fails where all is binary.
    let binary = fails_all_but(Manner::AlwaysBinary, &[]);
    assert_eq!(
        seen(&binary, "types kept in turn"),
        "a binary message for a text one"
    );
    let text = examine(Manner::AlwaysText);
    assert!(
        failed(&text).iter().all(|name| !name.contains("text")),
        "{text:#?}"
    );
    assert_eq!(failed(&text).len(), 13, "{text:#?}");
}

#[test]
fn mangled_characters_fail_the_multibyte_case_alone() {
    fails_only(Manner::AsciiOnly, &["multibyte text"]);
}

#[test]
fn long_messages_cut_short_fail_the_long_cases_alone() {
    let long = [
        "text of 65536 bytes",
        "text of 1048576 bytes",
        "binary of 65536 bytes",
        "binary of 1048576 bytes",
        "frame cut in its header",
    ];
    let examination = fails_only(Manner::Short16, &long);
    let cut = seen(&examination, "frame cut in its header");
    assert_eq!(
        cut,
        "a message of 65535 bytes for one of 65536, cut behind byte 1 of 14"
    );
}

#[test]
fn frames_of_one_segment_merged_or_forgotten_fail_that_case_alone() {
    fails_only(Manner::Merged, &["many frames in one segment"]);
    let forgets = fails_only(Manner::OneFrameARead, &["many frames in one segment"]);
    let seen = seen(&forgets, "many frames in one segment");
    assert!(
        seen.starts_with("silence while waiting for an answer, at frame "),
        "{seen}"
    );
}

#[test]
fn a_header_that_does_not_come_whole_fails_the_cases_that_cut_it() {
    let examination = examine(Manner::WholeHeaders);
    let failed = failed(&examination);
    assert!(failed.contains("frame cut in its header"), "{failed:?}");
    assert!(failed.contains("one byte a segment"), "{failed:?}");
    assert!(!failed.contains("text of 125 bytes"), "{failed:?}");
}

#[test]
fn an_answer_given_twice_fails_every_case() {
    let examination = fails_all_but(Manner::Twice, &[]);
    assert!(seen(&examination, "binary of 1 bytes").starts_with("a right answer, and at the next"));
}

#[test]
fn silence_and_chatter_end_in_bounded_time() {
    for manner in [Manner::Silent, Manner::Pings] {
        let begin = Instant::now();
        let limits = Limits {
            silence: Duration::from_millis(100),
            long_silence: Duration::from_millis(300),
            first_pass: Duration::from_secs(1),
            second_pass: Duration::from_secs(1),
            ..Limits::default()
        };
        let examination = examine_within(server(manner), limits);
        let elapsed = begin.elapsed();
        assert!(elapsed < Duration::from_secs(8), "{elapsed:?}");
        assert_eq!(failed(&examination), all_names(), "{manner:?}");
        for name in ["text of 0 bytes", "types kept in turn"] {
            let seen = seen(&examination, name);
            assert_eq!(seen, "silence while waiting for an answer", "{manner:?}");
        }
    }
}

#[test]
fn a_case_that_ended_by_silence_is_asked_again() {
    let examine = |manner| {
        let (addr, connections) = counted_server(manner);
        let examination = examine_within(addr, Limits::default());
        (examination, connections.load(Ordering::SeqCst))
    };
    let (late, connections) = examine(Manner::SilentFourTimes);
    assert_eq!(failed(&late), BTreeSet::new(), "{late:#?}");
    assert_eq!(connections, 23 + 4);
    // Any other failure is one at once.
    let (_, connections) = examine(Manner::WrongLastByte);
    assert_eq!(connections, 23);
}

#[test]
fn a_closed_connection_fails_every_case_and_its_code_is_told() {
    fails_all_but(Manner::Closes, &[]);
    let examination = fails_all_but(Manner::ClosesWithCode, &[]);
    assert_eq!(
        seen(&examination, "text of 1 bytes"),
        "a close frame (1011 tired)"
    );
}

#[test]
fn frames_that_a_server_must_not_send_fail_every_case() {
    let masks = fails_all_but(Manner::Masks, &[]);
    assert_eq!(
        seen(&masks, "text of 1 bytes"),
        "a masked frame, which a server must not send"
    );
    let bit = fails_all_but(Manner::ReservedBit, &[]);
    assert!(seen(&bit, "text of 1 bytes").starts_with("a frame with reserved bits set"));
}

#[test]
fn a_wrong_handshake_fails_every_case() {
    let status = fails_all_but(Manner::BadStatus, &[]);
    let seen_status = seen(&status, "text of 1 bytes");
    assert_eq!(
        seen_status,
        "the handshake answered with `HTTP/1.1 404 Not Found`"
    );
    let accept = fails_all_but(Manner::BadAccept, &[]);
    assert!(
        seen(&accept, "text of 1 bytes").starts_with("a handshake with Sec-WebSocket-Accept: `")
    );
}

#[test]
fn nobody_there_is_told_at_once() {
    let addr = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let begin = Instant::now();
    let examination = examine_within(addr, Limits::default());
    assert!(begin.elapsed() < Duration::from_secs(2));
    let seen = seen(&examination, "text of 0 bytes");
    assert!(
        seen.starts_with(&format!("cannot connect to {addr}: ")),
        "{seen}"
    );
}
