//! Wrong answers. Each connection first answers rightly, so that what was right
//! before stays counted, and then goes wrong in one way.

use crate::peer::{
    BINARY, BURST, Message, PING, Peer, Server, TEXT, all_at_once, burst, case, frame, last_phase,
    one_by_one, two_bursts,
};
use crate::util::{causes, expect, metric};
use std::fmt::Debug;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};
use wsbench_schema::{Load, PhaseReport, decode_histogram};

const CONNECTIONS: u64 = 4;
const PAYLOAD: u32 = 300;

/// What is sent for a message instead of its answer, given the message before.
type Wrong = fn(&Message, &Message) -> Vec<u8>;

fn changed(message: &Message, change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut answer = message.answer.clone();
    change(&mut answer);
    answer
}

fn flipped(message: &Message, byte: usize) -> Vec<u8> {
    changed(message, |answer| answer[byte] ^= 0x10)
}

/// Header of an answer of [`PAYLOAD`] bytes.
const HEADER: usize = 4;

#[rustfmt::skip]
const WRONGS: [(&str, &str, Wrong); 21] = [
    ("masked", "bad_frame", |message, _| {
        let (header, payload) = message.answer.split_at(HEADER);
        let masked = [header[0], header[1] | 0x80, header[2], header[3], 0, 0, 0, 0];
        [&masked, payload].concat()
    }),
    ("text for binary", "wrong_opcode", |message, _| frame(TEXT, &message.payload)),
    ("reserved opcode", "bad_frame", |message, _| frame(0x83, &message.payload)),
    ("reserved bit", "bad_frame", |message, _| frame(BINARY | 0x40, &message.payload)),
    ("continuation of nothing", "bad_frame", |message, _| frame(0x80, &message.payload)),
    ("never continued", "bad_frame", |message, _| {
        [frame(0x02, &message.payload), message.answer.clone()].concat()
    }),
    ("one byte longer", "wrong_length", |message, _| {
        frame(BINARY, &[&message.payload[..], &[0]].concat())
    }),
    ("one byte shorter", "wrong_length", |message, _| frame(BINARY, &message.payload[1..])),
    ("empty", "wrong_length", |_, _| frame(BINARY, &[])),
    ("fragments that are too long", "wrong_length", |message, _| {
        [frame(0x02, &message.payload), frame(0x80, &[0])].concat()
    }),
    ("length not in its shortest form", "bad_frame", |message, _| {
        let long = [&[BINARY, 127, 0, 0, 0, 0, 0, 0][..], &message.answer[2..4]].concat();
        [&long, &message.payload[..]].concat()
    }),
    ("length with the top bit", "bad_frame", |_, _| {
        vec![BINARY, 127, 0x80, 0, 0, 0, 0, 0, 0, 0]
    }),
    ("longer than was ever sent", "wrong_length", |message, _| {
        [&[BINARY, 127, 0, 0, 1, 0, 0, 0, 0, 0][..], &message.payload].concat()
    }),
    ("first byte flipped", "wrong_payload", |message, _| flipped(message, HEADER)),
    ("middle byte flipped", "wrong_payload", |message, _| flipped(message, HEADER + 150)),
    ("last byte flipped", "wrong_payload", |message, _| flipped(message, HEADER + 299)),
    ("flipped in the second fragment", "wrong_payload", |message, _| {
        let payload = &flipped(message, HEADER + 200)[HEADER..];
        [frame(0x02, &payload[..150]), frame(0x80, &payload[150..])].concat()
    }),
    ("payload of zeros", "wrong_payload", |message, _| {
        changed(message, |answer| answer[HEADER..].fill(0))
    }),
    ("the answer before again", "wrong_payload", |_, before| before.answer.clone()),
    ("fragmented ping", "bad_frame", |_, _| frame(0x09, b"half")),
    ("ping of 126 bytes", "bad_frame", |_, _| frame(PING, &[0; 126])),
];

/// Answers the first message of a connection rightly, sends `wrong` for the
/// second, and behind it what is right for those that are in flight too.
fn second_is_wrong(in_flight: usize, wrong: Wrong) -> Server {
    Server::start(move |peer| {
        peer.welcome()?;
        let first = peer.message()?;
        peer.send(&first.answer)?;
        let second = peer.message()?;
        let mut bytes = wrong(&second, &first);
        for message in peer.messages(in_flight.saturating_sub(2))? {
            bytes.extend(message.answer);
        }
        peer.send(bytes)?;
        peer.drain();
        None
    })
}

#[track_caller]
fn check(load: Load, server: &Server, succeeded: u64, failures: &[(&str, u64)]) -> PhaseReport {
    let report = last_phase(load, &server.target);
    let failures: Vec<(&str, u64)> = failures
        .iter()
        .map(|(cause, count)| (*cause, count * CONNECTIONS))
        .collect();
    expect(&report, succeeded * CONNECTIONS, &failures);
    assert_eq!(metric(&report, "connections_lost_count"), CONNECTIONS);
    server.expect_content();
    report
}

fn closed_loop(payload: u32) -> Load {
    one_by_one(CONNECTIONS as u32, payload, CONNECTIONS * 10)
}

fn open_loop(payload: u32) -> Load {
    burst(CONNECTIONS as u32, payload)
}

/// What was answered before the wrong one is right; what was in flight behind it
/// failed with its connection.
#[test]
fn an_answer_that_is_wrong_in_any_way_fails_by_its_cause() {
    let closed = WRONGS.map(|(name, cause, wrong)| {
        case(name, move || {
            let server = second_is_wrong(1, wrong);
            let report = check(closed_loop(PAYLOAD), &server, 1, &[(cause, 1)]);
            let not_sent = metric(&report, "not_sent_count");
            assert_eq!(not_sent, CONNECTIONS * 8, "a connection was used again");
        })
    });
    let open = WRONGS.map(|(name, cause, wrong)| {
        case(format!("{name}, among several"), move || {
            let server = second_is_wrong(BURST, wrong);
            let failures = sorted([(cause, 1), ("connection_lost", 2)]);
            check(open_loop(PAYLOAD), &server, 1, &failures);
        })
    });
    all_at_once(closed.into_iter().chain(open));
}

/// As they stand in a report.
fn sorted<const N: usize, T: Ord + Debug>(mut causes: [(&str, T); N]) -> [(&str, T); N] {
    causes.sort_unstable();
    causes
}

/// The answer is larger than the buffer into which it is read, and bytes around
/// each place where a read may end are flipped: those of the whole buffer and
/// those of segments.
#[test]
fn a_flipped_bit_at_the_edge_of_a_read_is_noticed() {
    const LARGE: u32 = 200_000;
    const READ: usize = 64 << 10;
    let edges = [
        10,
        11,
        READ - 1,
        READ,
        READ + 1,
        2 * READ - 1,
        2 * READ,
        2 * READ + 10,
        150_000,
        200_009,
    ];
    let names: Vec<String> = edges.iter().map(|edge| format!("byte {edge}")).collect();
    all_at_once(edges.iter().zip(&names).map(|(&edge, name)| {
        case(name, move || {
            let server = Server::start(move |peer| {
                peer.welcome()?;
                let message = peer.message()?;
                // Whole, so that reads end where the buffer does.
                peer.send(&message.answer)?;
                let message = peer.message()?;
                let bytes = flipped(&message, edge);
                // Cut, so that a read begins or ends at the flipped byte.
                let cut = if peer.number % 2 == 0 { edge } else { edge + 1 };
                peer.send_apart(&bytes[..cut.min(bytes.len())])?;
                peer.send(&bytes[cut.min(bytes.len())..])?;
                peer.drain();
                None
            });
            check(closed_loop(LARGE), &server, 1, &[("wrong_payload", 1)]);
            let whole = Server::start(move |peer| {
                peer.welcome()?;
                let messages = peer.messages(BURST)?;
                peer.send(&messages[0].answer)?;
                peer.send(flipped(&messages[1], edge))?;
                peer.drain();
                None
            });
            let failures = [("connection_lost", 2), ("wrong_payload", 1)];
            check(open_loop(LARGE), &whole, 1, &failures);
        })
    }));
}

fn twice(peer: &mut Peer, apart: bool) -> Option<()> {
    let answer = peer.message()?.answer;
    if apart {
        peer.send_apart(&answer)?;
        return peer.send(&answer);
    }
    peer.send(answer.repeat(2))
}

/// Whenever the second answer comes, one echo has failed and its latency is in no
/// figure.
#[test]
fn an_echo_that_is_answered_twice_has_failed() {
    let doubles = |apart| {
        Server::start(move |peer| {
            peer.welcome()?;
            let right = peer.message()?;
            peer.send(right.answer)?;
            twice(peer, apart)?;
            peer.drain();
            None
        })
    };
    let counted = |report: &PhaseReport| {
        let latency = decode_histogram(&report.histograms["latency_ns"]).unwrap();
        assert_eq!(latency.len(), metric(report, "succeeded_count"));
    };
    let together = check(
        closed_loop(PAYLOAD),
        &doubles(false),
        1,
        &[("unexpected", 1)],
    );
    counted(&together);
    // One in flight on the two of a shard: the second answer meets an idle
    // connection, or its next echo, which then fails in place of the doubled one.
    let mut load = closed_loop(PAYLOAD);
    let echo = load.echo.as_mut().unwrap();
    (echo.concurrency, echo.limit_per_s) = (2, 20);
    let report = last_phase(load, &doubles(true).target);
    counted(&report);
    let causes = causes(&report);
    let known = |(cause, _): &(String, u64)| cause == "unexpected" || cause == "wrong_payload";
    assert!(causes.iter().all(known), "{causes:?}");
    assert!(metric(&report, "failed_unexpected_count") > 0, "{causes:?}");
    assert_eq!(metric(&report, "failed_count"), CONNECTIONS);
    let sent = metric(&report, "sent_count");
    assert_eq!(metric(&report, "succeeded_count"), sent - CONNECTIONS);
}

#[test]
fn a_doubled_or_reordered_answer_among_several_is_noticed() {
    type Script = fn(&mut Peer, Vec<Message>) -> Option<()>;
    type Failures = &'static [(&'static str, u64)];
    #[rustfmt::skip]
    let cases: [(&str, u64, Failures, Script); 4] = [
        ("doubled in the middle", 2, &[("connection_lost", 1), ("wrong_payload", 1)], |peer, sent| {
            for index in [0, 1, 1, 2, 3] {
                peer.send(&sent[index].answer)?;
            }
            Some(())
        }),
        ("doubled at the end, in one write", 3, &[("unexpected", 1)], |peer, sent| {
            let answers = [0, 1, 2, 3, 3].map(|index| sent[index].answer.clone());
            peer.send(answers.concat())
        }),
        ("doubled at the end, later", 3, &[("unexpected", 1)], |peer, sent| {
            for message in &sent {
                peer.send(&message.answer)?;
            }
            thread::sleep(Duration::from_millis(5));
            peer.send(&sent[3].answer)
        }),
        ("reordered", 1, &[("connection_lost", 2), ("wrong_payload", 1)], |peer, sent| {
            for index in [0, 2, 1, 3] {
                peer.send(&sent[index].answer)?;
            }
            Some(())
        }),
    ];
    all_at_once(cases.map(|(name, right, failures, script)| {
        case(name, move || {
            let server = Server::start(move |peer| {
                peer.welcome()?;
                let sent = peer.messages(BURST)?;
                script(peer, sent)?;
                peer.drain();
                None
            });
            // Two, so that the phase goes on behind the first.
            let load = two_bursts(CONNECTIONS as u32, PAYLOAD);
            let report = check(load, &server, right, failures);
            for name in ["intended_latency_ns", "actual_latency_ns"] {
                let latency = decode_histogram(&report.histograms[name]).unwrap();
                assert_eq!(latency.len(), right * CONNECTIONS, "{name}");
            }
        })
    }));
}

/// It is of no message of this phase, so none has failed; its connection is lost.
#[test]
fn a_message_that_nothing_asked_for_costs_its_connection_and_no_echo() {
    let begun: OnceLock<Instant> = OnceLock::new();
    let server = Server::start(move |peer| {
        peer.welcome()?;
        let often = Some(Duration::from_millis(20));
        peer.stream.set_read_timeout(often).ok()?;
        // Until its turn has come, or that of another some time ago.
        while peer.stream.peek(&mut [0]).is_err() {
            let others = begun.get().map(Instant::elapsed).unwrap_or_default();
            if others > Duration::from_millis(100) {
                peer.send(frame(BINARY, b"news"))?;
                peer.stream.set_read_timeout(None).ok()?;
                peer.drain();
                return None;
            }
        }
        begun.get_or_init(Instant::now);
        peer.stream.set_read_timeout(None).ok()?;
        peer.echo()
    });
    let mut load = one_by_one(40, PAYLOAD, 3);
    let echo = load.echo.as_mut().unwrap();
    (echo.concurrency, echo.limit_per_s) = (1, 4);
    let report = last_phase(load, &server.target);
    expect(&report, 3, &[]);
    let lost = metric(&report, "connections_lost_count");
    assert!(lost > 5, "{:?}", report.metrics);
}
