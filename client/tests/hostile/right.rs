//! Answers that are right in an unusual form.

use crate::peer::{
    BINARY, BURST, Message, PING, PONG, Peer, Server, all_at_once, burst, case, frame, last_phase,
    one_by_one,
};
use crate::util::{expect, metric};
use wsbench_schema::Load;

const CONNECTIONS: u32 = 3;
const PAYLOAD: u32 = 300;

type Form = fn(&mut Peer, &Message) -> Option<()>;

#[rustfmt::skip]
const FORMS: [(&str, Form); 8] = [
    ("three fragments and a ping between", |peer, message| {
        let payload = &message.payload;
        peer.send_apart(frame(BINARY & 0x0F, &payload[..100]))?;
        peer.send_apart(frame(PING, b"still there?"))?;
        peer.send_apart(frame(0x00, &payload[100..299]))?;
        assert_eq!(peer.pong()?, b"still there?");
        peer.send(frame(0x80, &payload[299..]))
    }),
    ("fragments and pings in one segment", |peer, message| {
        let payload = &message.payload;
        peer.send([
            frame(PING, b""), frame(BINARY & 0x0F, &payload[..1]), frame(PING, &[7; 125]),
            frame(0x00, &payload[1..]), frame(PONG, b"unasked"), frame(0x80, b""),
        ].concat())?;
        assert_eq!(peer.pong()?, b"");
        assert_eq!(peer.pong()?, [7; 125]);
        Some(())
    }),
    ("empty fragments", |peer, message| {
        let payload = &message.payload;
        let empty = frame(0x00, b"").repeat(1000);
        peer.send([frame(0x02, b""), empty, frame(0x80, payload)].concat())
    }),
    ("a fragment a byte", |peer, message| {
        let (first, rest) = message.payload.split_at(1);
        let mut bytes = frame(0x02, first);
        for (index, byte) in rest.iter().enumerate() {
            let is_last = index + 1 == rest.len();
            bytes.extend(frame(u8::from(is_last) << 7, &[*byte]));
        }
        peer.send(bytes)
    }),
    ("a byte a segment", |peer, message| {
        message.answer.iter().try_for_each(|byte| peer.send([*byte]))
    }),
    ("cut in the header", |peer, message| {
        let cut = 1 + message.payload[0] as usize % 4;
        peer.send_apart(&message.answer[..cut])?;
        peer.send(&message.answer[cut..])
    }),
    ("a ping cut in the middle before it", |peer, message| {
        let ping = frame(PING, b"in two pieces");
        peer.send_apart(&ping[..7])?;
        peer.send([&ping[7..], &message.answer[..50]].concat())?;
        assert_eq!(peer.pong()?, b"in two pieces");
        peer.send(&message.answer[50..])
    }),
    ("pongs that nobody asked for", |peer, message| {
        peer.send([frame(PONG, b""), message.answer.clone(), frame(PONG, &[1; 125])].concat())
    }),
];

fn expect_right(form: Form, load: Load, count: u64) {
    let server = Server::start(move |peer| {
        peer.welcome()?;
        loop {
            let message = peer.message()?;
            form(peer, &message)?;
        }
    });
    let report = last_phase(load, &server.target);
    expect(&report, count, &[]);
    assert_eq!(metric(&report, "connections_lost_count"), 0);
    server.expect_content();
}

#[test]
fn an_answer_in_any_legal_form_is_right() {
    let closed = FORMS.map(|(name, form)| {
        case(name, move || {
            let load = one_by_one(CONNECTIONS, PAYLOAD, 12);
            expect_right(form, load, 12);
        })
    });
    let open = FORMS.map(|(name, form)| {
        case(format!("{name}, among several"), move || {
            let load = burst(CONNECTIONS, PAYLOAD);
            expect_right(form, load, u64::from(CONNECTIONS) * BURST as u64);
        })
    });
    all_at_once(closed.into_iter().chain(open));
}

/// All of a burst behind one another, cut where no frame ends.
#[test]
fn answers_that_share_segments_are_each_counted() {
    let server = Server::start(|peer| {
        peer.welcome()?;
        loop {
            let answers: Vec<Vec<u8>> = peer
                .messages(BURST)?
                .into_iter()
                .map(|message| message.answer)
                .collect();
            for piece in answers.concat().chunks(113) {
                peer.send_apart(piece)?;
            }
        }
    });
    let report = last_phase(burst(CONNECTIONS, PAYLOAD), &server.target);
    expect(&report, u64::from(CONNECTIONS) * BURST as u64, &[]);
    server.expect_content();
}
