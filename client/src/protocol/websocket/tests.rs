//! The reader of answers, against every form an answer may and may not have.

use super::*;
use crate::cause::Cause;
use wsbench_schema::MessageKind;

fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        len @ 0..=125 => bytes.push(len as u8),
        len @ 126..=65_535 => {
            bytes.push(126);
            bytes.extend((len as u16).to_be_bytes());
        }
        len => {
            bytes.push(127);
            bytes.extend((len as u64).to_be_bytes());
        }
    }
    bytes.extend(payload);
    bytes
}

fn socket(payload_len: usize, check: bool) -> WebSocket {
    let templates = Templates::new(MessageKind::Binary, payload_len, 1, 42);
    WebSocket::new(Arc::new(templates), check, "h".into(), "/ws".into())
}

/// What came of a stream: right answers, bytes of replies, and the fault that ended it.
#[derive(Debug, PartialEq)]
struct Verdict {
    answers: u32,
    reply: Vec<u8>,
    fault: Option<Cause>,
}

fn feed(socket: &WebSocket, awaited: u32, stream: &[u8], segment: usize) -> Verdict {
    let (mut cursor, mut odd, mut reply) = (Cursor::default(), None, Vec::new());
    let (mut answers, mut fault) = (0, None);
    'stream: for mut bytes in stream.chunks(segment) {
        while !bytes.is_empty() {
            let (taken, event) =
                socket.receive(&mut cursor, &mut odd, awaited - answers, bytes, &mut reply);
            bytes = &bytes[taken..];
            match event {
                Event::More => assert!(bytes.is_empty()),
                Event::Answer => answers += 1,
                Event::Reply => {}
                Event::Fault(cause) => {
                    fault = Some(cause);
                    break 'stream;
                }
            }
        }
    }
    Verdict {
        answers,
        reply,
        fault,
    }
}

fn expect(payload_len: usize, awaited: u32, stream: &[u8], answers: u32, fault: Option<Cause>) {
    for check in [true, false] {
        for segment in [1, 2, 3, 7, 1000, usize::MAX] {
            let verdict = feed(&socket(payload_len, check), awaited, stream, segment);
            assert_eq!(
                (verdict.answers, verdict.fault),
                (answers, fault),
                "{segment} {check}"
            );
        }
    }
}

#[test]
fn plain_answers_are_right_however_they_are_cut() {
    for len in [0, 1, 125, 126, 1024, 65_535, 65_536] {
        let socket = socket(len, true);
        let stream: Vec<u8> = (0..6)
            .flat_map(|i| frame(0x82, socket.templates.payload(i % socket.templates.count())))
            .collect();
        expect(len, 6, &stream, 6, None);
    }
}

#[test]
fn fragments_with_a_ping_between_are_right_and_the_ping_is_answered() {
    let socket = socket(300, true);
    let payload = socket.templates.payload(0);
    let mut stream = frame(0x02, &payload[..100]);
    stream.extend(frame(0x89, b"are you there"));
    stream.extend(frame(0x00, &payload[100..100]));
    stream.extend(frame(0x8A, b"unasked pong"));
    stream.extend(frame(0x80, &payload[100..]));
    stream.extend(frame(0x82, socket.templates.payload(1)));
    expect(300, 2, &stream, 2, None);
    let reply = feed(&socket, 2, &stream, 5).reply;
    assert_eq!(reply[..2], [0x8A, 0x80 | 13]);
    let unmasked: Vec<u8> = reply[6..]
        .iter()
        .zip(reply[2..6].iter().cycle())
        .map(|(a, b)| a ^ b)
        .collect();
    assert_eq!(unmasked, b"are you there");
}

#[test]
fn control_frames_come_between_messages_too() {
    let socket = socket(10, true);
    let mut stream = frame(0x89, b"");
    stream.extend(frame(0x82, socket.templates.payload(0)));
    stream.extend(frame(0x8A, b"x"));
    expect(10, 1, &stream, 1, None);
    expect(10, 0, &frame(0x89, b"idle"), 0, None);
}

#[test]
fn a_flipped_bit_anywhere_is_noticed() {
    let socket = socket(20, true);
    let good = frame(0x82, socket.templates.payload(0));
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let mut stream = bad;
        stream.extend(frame(0x82, socket.templates.payload(1)));
        let verdict = feed(&socket, 2, &stream, usize::MAX);
        assert!(verdict.fault.is_some() || verdict.answers < 2, "bit {bit}");
        if bit >= 16 {
            assert_eq!(verdict.fault, Some(Cause::WrongPayload), "bit {bit}");
        }
    }
}

#[test]
fn without_checking_only_the_payload_is_not_compared() {
    let wrong = vec![0; 20];
    let verdict = |stream: &[u8], check| feed(&socket(20, check), 1, stream, usize::MAX);
    assert_eq!(
        verdict(&frame(0x82, &wrong), true).fault,
        Some(Cause::WrongPayload)
    );
    assert_eq!(verdict(&frame(0x82, &wrong), false).answers, 1);
    assert_eq!(
        verdict(&frame(0x81, &wrong), false).fault,
        Some(Cause::WrongOpcode)
    );
    assert_eq!(
        verdict(&frame(0x82, &wrong[1..]), false).fault,
        Some(Cause::WrongLength)
    );
}

#[test]
fn wrong_answers_have_their_cause() {
    let payload = socket(300, true).templates.payload(0).to_vec();
    expect(300, 1, &frame(0x81, &payload), 0, Some(Cause::WrongOpcode));
    expect(
        300,
        1,
        &frame(0x82, &payload[..299]),
        0,
        Some(Cause::WrongLength),
    );
    expect(
        300,
        1,
        &frame(0x82, &[&payload[..], &[0]].concat()),
        0,
        Some(Cause::WrongLength),
    );
    expect(300, 0, &frame(0x82, &payload), 0, Some(Cause::Unexpected));
    let twice = frame(0x82, &payload).repeat(2);
    expect(300, 1, &twice, 1, Some(Cause::Unexpected));
    expect(300, 1, &frame(0x88, &[3, 232]), 0, Some(Cause::Closed));
}

#[test]
fn what_a_server_must_not_send_is_a_bad_frame() {
    let payload = socket(300, true).templates.payload(0).to_vec();
    let masked = [&[0x82, 0x80 | 126, 1, 44, 0, 0, 0, 0][..], &payload].concat();
    let long_form = [&[0x82, 127, 0, 0, 0, 0, 0, 0, 1, 44][..], &payload].concat();
    let new_message_inside = [frame(0x02, &payload[..9]), frame(0x82, &payload)].concat();
    for stream in [
        masked,
        long_form,
        new_message_inside,
        frame(0xC2, &payload),
        frame(0x83, &payload),
        frame(0x80, &payload),
        frame(0x09, b"fragmented ping"),
        frame(0x89, &payload[..126]),
        vec![0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0],
    ] {
        expect(300, 1, &stream, 0, Some(Cause::BadFrame));
    }
}

#[test]
fn a_buffer_full_of_pongs_takes_no_stack() {
    let pongs = frame(0x8A, b"").repeat(32 << 10);
    let small = std::thread::Builder::new().stack_size(128 << 10);
    let verdict = small
        .spawn(move || feed(&socket(20, true), 1, &pongs, usize::MAX))
        .unwrap()
        .join()
        .unwrap();
    assert_eq!((verdict.answers, verdict.fault), (0, None));
    assert!(verdict.reply.is_empty());
}

#[test]
fn a_wrong_length_is_told_before_the_payload_comes() {
    let payload = socket(300, true).templates.payload(0).to_vec();
    let wrong = |len: usize| frame(0x82, &vec![!payload[0]; len]);
    expect(300, 1, &wrong(301), 0, Some(Cause::WrongLength));
    expect(300, 1, &wrong(299)[..4], 0, Some(Cause::WrongLength));
    let fragments = [frame(0x02, &payload[..200]), frame(0x00, &payload[..101])].concat();
    expect(300, 1, &fragments, 0, Some(Cause::WrongLength));
    let short = [
        frame(0x02, &payload[..200]),
        frame(0x80, &payload[200..299]),
    ]
    .concat();
    expect(300, 1, &short, 0, Some(Cause::WrongLength));
}

#[test]
fn a_close_frame_says_closed_unless_it_is_none() {
    for body in [&[][..], &[3, 233], &[3, 243, b'o', b'h'], &[0, 0]] {
        expect(300, 1, &frame(0x88, body), 0, Some(Cause::Closed));
    }
    for body in [&[3][..], &[3, 232, 0xFF]] {
        expect(300, 1, &frame(0x88, body), 0, Some(Cause::BadFrame));
    }
}
