//! Connections that end: politely, at once, in the middle of a frame.

use crate::peer::{
    BURST, CLOSE, Message, Peer, Server, all_at_once, burst, case, frame, last_phase, one_by_one,
    run,
};
use crate::util::{expect, losses, metric};
use std::net::Shutdown;
use std::thread;
use std::time::Duration;
use wsbench_schema::{Load, Phase};

const CONNECTIONS: u32 = 4;
const PAYLOAD: u32 = 300;

type End = fn(&mut Peer, &Message) -> Option<()>;

type Script = fn(&mut Peer) -> Option<()>;

fn close(code: u16) -> Vec<u8> {
    frame(CLOSE, &[&code.to_be_bytes()[..], b"so it is"].concat())
}

#[rustfmt::skip]
const ENDS: [(&str, &str, End); 12] = [
    ("close 1001", "closed", |peer, _| { peer.send(close(1001))?; peer.drain(); None }),
    ("close 1011", "closed", |peer, _| { peer.send(close(1011))?; peer.drain(); None }),
    ("close without a code", "closed", |peer, _| { peer.send(frame(CLOSE, b""))?; peer.drain(); None }),
    ("close and FIN", "closed", |peer, _| peer.send(close(1011)).and(None)),
    ("close between two fragments", "closed", |peer, message| {
        peer.send(frame(0x02, &message.payload[..9]))?;
        peer.send(close(1001))?;
        peer.drain();
        None
    }),
    ("FIN", "closed", |_, _| None),
    ("FIN in a header", "closed", |peer, message| peer.send(&message.answer[..1]).and(None)),
    ("FIN in a payload", "closed", |peer, message| peer.send(&message.answer[..99]).and(None)),
    ("half-close", "closed", |peer, _| peer.half_close()),
    ("half-close in a frame", "closed", |peer, message| {
        peer.send_apart(&message.answer[..99])?;
        peer.half_close()
    }),
    ("RST", "reset", |peer, _| peer.reset()),
    ("RST in a frame", "reset", |peer, message| {
        peer.send_apart(&message.answer[..99])?;
        peer.reset()
    }),
];

/// Answers the first message of a connection rightly and ends for the second, when
/// those that are in flight have been read.
fn ends(in_flight: usize, end: End) -> Server {
    Server::start(move |peer| {
        peer.welcome()?;
        let first = peer.message()?;
        let rest = peer.messages(in_flight.saturating_sub(1));
        peer.send(first.answer)?;
        match rest?.first() {
            Some(second) => end(peer, second),
            None => {
                let second = peer.message()?;
                end(peer, &second)
            }
        }
    })
}

fn check(load: Load, server: &Server, right: u64, failures: &[(&str, u64)]) {
    let each = u64::from(CONNECTIONS);
    let report = last_phase(load, &server.target);
    let failures: Vec<(&str, u64)> = failures
        .iter()
        .map(|(cause, n)| (*cause, n * each))
        .collect();
    expect(&report, right * each, &failures);
    assert_eq!(metric(&report, "connections_lost_count"), each);
    server.expect_content();
}

#[test]
fn an_end_fails_one_message_by_its_cause_and_those_behind_it_with_the_connection() {
    let closed = ENDS.map(|(name, cause, end)| {
        case(name, move || {
            let load = one_by_one(CONNECTIONS, PAYLOAD, 40);
            check(load, &ends(1, end), 1, &[(cause, 1)]);
        })
    });
    let open = ENDS.map(|(name, cause, end)| {
        case(format!("{name}, among several"), move || {
            let mut failures = [(cause, 1), ("connection_lost", 2)];
            failures.sort_unstable();
            let load = burst(CONNECTIONS, PAYLOAD);
            check(load, &ends(BURST, end), 1, &failures);
        })
    });
    all_at_once(closed.into_iter().chain(open));
}

/// Nothing was in flight, so nothing has failed, and the others make the echoes.
#[test]
fn an_end_while_idle_is_a_lost_connection_with_its_cause_and_no_failure() {
    let cases: [(&str, &str, Script); 4] = [
        ("close", "closed", |peer| peer.send(close(1001)).and(None)),
        ("FIN", "closed", |_| None),
        ("RST", "reset", Peer::reset),
        ("garbage", "bad_frame", |peer| {
            peer.send(b"zz")?;
            peer.drain();
            None
        }),
    ];
    all_at_once(cases.map(|(name, cause, end)| {
        case(name, move || {
            let server = Server::start(move |peer| {
                peer.welcome()?;
                let message = peer.message()?;
                peer.send(message.answer)?;
                if peer.number < 2 {
                    thread::sleep(Duration::from_millis(5));
                    return end(peer);
                }
                peer.echo()
            });
            let mut load = one_by_one(8, PAYLOAD, 20);
            let echo = load.echo.as_mut().unwrap();
            (echo.concurrency, echo.limit_per_s) = (2, 40);
            let report = last_phase(load, &server.target);
            expect(&report, 20, &[]);
            assert_eq!(losses(&report), [(cause.to_owned(), 2)]);
        })
    }));
}

/// The dial was a success; what follows is another matter.
#[test]
fn a_connection_that_ends_behind_its_handshake_is_lost() {
    let cases: [(&str, Script); 3] = [
        ("FIN", |_| None),
        ("RST", Peer::reset),
        ("half-close", |peer| {
            peer.stream.shutdown(Shutdown::Write).ok()?;
            peer.drain();
            None
        }),
    ];
    all_at_once(cases.map(|(name, end)| {
        case(name, move || {
            let server = Server::start(move |peer| {
                peer.welcome()?;
                end(peer)
            });
            let reports = run(one_by_one(20, PAYLOAD, 20), &server.target);
            let sum = |name: &str| {
                reports
                    .values()
                    .map(|report| metric(report, name))
                    .sum::<u64>()
            };
            let lost = sum("connections_lost_count");
            // A reset may overtake the handshake.
            let dialled = metric(&reports[&Phase::Connect], "succeeded_count");
            assert_eq!(lost, dialled, "{reports:?}");
            assert!(name == "RST" || dialled == 20, "{reports:?}");
        })
    }));
}
