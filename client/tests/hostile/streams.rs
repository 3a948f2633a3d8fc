//! Plain TCP: transfers that go wrong in every way are counted by their cause, none as
//! a success, and what was right of them as so many bytes.

use crate::peer::{Peer, Server, TIMEOUT, all_at_once, case, last_phase, run};
use crate::util::{echoes, expect, losses, metric, transfers};
use std::io::{Read as _, Write as _};
use wsbench_client::protocol::stream::opening::Opening;
use wsbench_client::protocol::stream::pieces::LAST_WORD;
use wsbench_client::protocol::stream::ring::Ring;
use wsbench_schema::{Direction, Load, Phase, Transport};

const CONNECTIONS: u32 = 3;
const PIECE: u32 = 1000;
const BYTES: usize = 100_000;
const HALF: usize = BYTES / 2;

/// The other end of a stream.
trait Stream {
    fn opening_bytes(&mut self) -> Option<[u8; Opening::BYTES]>;
    /// Reads the opening and sends it back.
    fn open(&mut self) -> Option<Opening>;
    fn bytes(&mut self, len: usize) -> Option<Vec<u8>>;
    fn send_back(&mut self, len: usize) -> Option<()>;
    fn fin(&mut self) -> Option<()>;
}

impl Stream for Peer {
    fn opening_bytes(&mut self) -> Option<[u8; Opening::BYTES]> {
        let mut bytes = [0; Opening::BYTES];
        self.stream.read_exact(&mut bytes).ok()?;
        Some(bytes)
    }

    fn open(&mut self) -> Option<Opening> {
        let bytes = self.opening_bytes()?;
        self.send(bytes)?;
        Some(Opening::parse(&bytes).expect("the client's opening is one"))
    }

    fn bytes(&mut self, len: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.stream.read_exact(&mut bytes).ok()?;
        Some(bytes)
    }

    fn send_back(&mut self, len: usize) -> Option<()> {
        let bytes = self.bytes(len)?;
        self.send(bytes)
    }

    fn fin(&mut self) -> Option<()> {
        self.half_close()
    }
}

type Script = fn(&mut Peer) -> Option<()>;

/// The script is what follows the opening. How many bytes are right before it goes
/// wrong is exact but for a reset, which may overtake some.
type Case = (&'static str, &'static str, usize, Script);

#[rustfmt::skip]
const BACK_AND_FORTH: [Case; 12] = [
    ("a wrong byte", "wrong_payload", HALF, |peer| {
        peer.send_back(HALF)?;
        let mut bytes = peer.bytes(10)?;
        bytes[0] ^= 1;
        peer.send(bytes)?;
        peer.drain();
        None
    }),
    ("a wrong byte at the end", "wrong_payload", BYTES - 1, |peer| {
        let mut bytes = peer.bytes(BYTES)?;
        bytes[BYTES - 1] ^= 0x80;
        peer.send(bytes)?;
        peer.drain();
        None
    }),
    ("a lost byte", "wrong_payload", HALF, |peer| {
        peer.send_back(HALF)?;
        peer.bytes(1)?;
        peer.send_back(HALF - 1)?;
        peer.drain();
        None
    }),
    ("a lost buffer", "wrong_payload", 8192, |peer| {
        peer.send_back(8192)?;
        peer.bytes(8192)?;
        peer.send_back(BYTES - 2 * 8192)?;
        peer.drain();
        None
    }),
    ("the last byte lost", "lost", BYTES - 1, |peer| {
        peer.send_back(BYTES - 1)?;
        peer.drain();
        None
    }),
    ("a byte too many", "wrong_payload", HALF, |peer| {
        peer.send_back(HALF)?;
        let bytes = peer.bytes(9)?;
        peer.send([bytes[0] ^ 1])?;
        peer.send(bytes)?;
        peer.drain();
        None
    }),
    ("a byte too many at the end", "unexpected", BYTES, |peer| {
        let bytes = peer.bytes(BYTES)?;
        peer.send([&bytes[..], &bytes[..1]].concat())?;
        peer.drain();
        None
    }),
    ("a byte too many behind the end", "unexpected", BYTES, |peer| {
        peer.send_back(BYTES)?;
        let last = peer.bytes(LAST_WORD.len())?;
        peer.send([&[0], &last[..]].concat())?;
        peer.drain();
        None
    }),
    ("an early FIN", "closed", HALF, |peer| { peer.send_back(HALF)?; peer.fin() }),
    ("a FIN behind the last byte", "closed", BYTES, |peer| { peer.send_back(BYTES)?; peer.fin() }),
    ("a reset", "reset", HALF, |peer| { peer.send_back(HALF)?; peer.reset() }),
    ("a stall", "lost", HALF, |peer| { peer.send_back(HALF)?; peer.read_nothing() }),
];

#[rustfmt::skip]
const UP: [Case; 8] = [
    ("a receipt of too little", "wrong_payload", BYTES - 1, |peer| {
        peer.bytes(BYTES)?;
        peer.send((BYTES as u64 - 1).to_le_bytes())?;
        peer.drain();
        None
    }),
    ("a receipt of too much", "wrong_payload", BYTES, |peer| {
        peer.bytes(BYTES)?;
        peer.send((BYTES as u64 + 1).to_le_bytes())?;
        peer.drain();
        None
    }),
    ("a receipt and FIN", "wrong_payload", HALF, |peer| {
        peer.bytes(BYTES)?;
        peer.send((HALF as u64).to_le_bytes())?;
        peer.fin()
    }),
    ("no receipt", "closed", 0, |peer| { peer.bytes(BYTES)?; peer.fin() }),
    ("a part of a receipt", "closed", 0, |peer| { peer.bytes(BYTES)?; peer.send([0; 7])?; peer.fin() }),
    ("silence", "lost", 0, |peer| { peer.bytes(BYTES)?; peer.drain(); None }),
    ("a byte behind the receipt", "unexpected", BYTES, |peer| {
        peer.bytes(BYTES)?;
        peer.send((BYTES as u64).to_le_bytes())?;
        peer.bytes(LAST_WORD.len())?;
        peer.send([0])?;
        peer.drain();
        None
    }),
    ("a reset", "reset", 0, |peer| { peer.bytes(HALF)?; peer.reset() }),
];

/// What a right source sends, which a script spoils.
fn down(peer: &mut Peer, spoil: impl Fn(Vec<u8>) -> Vec<u8>) -> Option<()> {
    let opening = peer.open()?;
    let ring = Ring::new(opening.piece_bytes);
    let pieces = (0..opening.pieces).flat_map(|it| ring.piece((opening.first + it) % Ring::BYTES));
    let bytes = spoil(pieces.copied().collect());
    assert_eq!(peer.bytes(1)?, b"g");
    peer.send(bytes)
}

type Spoil = fn(Vec<u8>) -> Vec<u8>;

#[rustfmt::skip]
const DOWN: [(&str, &str, usize, Spoil, Script); 6] = [
    ("a wrong byte", "wrong_payload", HALF, |mut bytes| { bytes[HALF] ^= 4; bytes }, Peer::half_close),
    ("a lost byte", "wrong_payload", HALF, |mut bytes| { bytes.remove(HALF); bytes }, Peer::half_close),
    ("the last byte lost", "closed", BYTES - 1, |mut bytes| { bytes.pop(); bytes }, Peer::half_close),
    ("a byte too many", "unexpected", BYTES, |mut bytes| { bytes.push(0); bytes }, Peer::half_close),
    ("no FIN", "lost", BYTES, |bytes| bytes, |peer| { peer.drain(); None }),
    ("a reset", "reset", BYTES, |bytes| bytes, Peer::reset),
];

/// All transfers fail by the cause.
fn check(direction: Direction, cause: &str, right: usize, server: &Server) {
    let mut load = transfers(CONNECTIONS, PIECE, BYTES as u64, direction);
    if cause == "lost" {
        load.bulk.as_mut().unwrap().timeout_ms = TIMEOUT.as_millis() as u64;
    }
    let report = last_phase(load, &server.target);
    let each = u64::from(CONNECTIONS);
    expect(&report, 0, &[(cause, each)]);
    assert_eq!(losses(&report), [(cause.to_owned(), each)]);
    assert_eq!(metric(&report, "planned_bytes"), each * BYTES as u64);
    let (verified, right) = (metric(&report, "verified_bytes"), each * right as u64);
    let may_be_less = cause == "reset";
    assert!(
        verified == right || (may_be_less && verified < right),
        "{verified} of {right}"
    );
    if cause == "lost" {
        let stall_ns = metric(&report, "longest_stall_ns");
        assert!(u128::from(stall_ns) >= TIMEOUT.as_nanos(), "{stall_ns} ns");
    }
    server.expect_content();
}

#[test]
fn a_transfer_that_goes_wrong_fails_by_its_cause_with_what_was_right_of_it() {
    let opened = |direction, name, (_, cause, right, script): Case| {
        case(format!("{direction:?}: {name}"), move || {
            let server = Server::start(move |peer| {
                peer.open()?;
                script(peer)
            });
            check(direction, cause, right, &server);
        })
    };
    let both = BACK_AND_FORTH.map(|it| opened(Direction::Both, it.0, it));
    let up = UP.map(|it| opened(Direction::Up, it.0, it));
    let down = DOWN.map(|(name, cause, right, spoil, end)| {
        case(format!("Down: {name}"), move || {
            let server = Server::start(move |peer| {
                down(peer, spoil)?;
                end(peer)
            });
            check(Direction::Down, cause, right, &server);
        })
    });
    all_at_once(both.into_iter().chain(up).chain(down));
}

/// Whoever knows what will come can send it before it has come.
#[test]
fn what_nobody_can_have_from_the_client_yet_is_no_answer() {
    const LONG: usize = 16_000_000;
    let server = Server::start(|peer| {
        let opening = peer.opening_bytes()?;
        let first = Opening::parse(&opening)?.first;
        peer.send(opening)?;
        peer.bytes(HALF)?;
        // Far more than is under way, and every byte right.
        let ring = Ring::new(LONG as u32);
        peer.send(ring.piece(first % Ring::BYTES))?;
        peer.drain();
        None
    });
    let load = transfers(1, LONG as u32, LONG as u64, Direction::Both);
    let report = last_phase(load, &server.target);
    expect(&report, 0, &[("unexpected", 1)]);
    let (sent, verified) = (
        metric(&report, "sent_bytes"),
        metric(&report, "verified_bytes"),
    );
    assert!(
        verified <= sent && sent < LONG as u64,
        "{verified} of {sent}"
    );
    server.expect_content();
}

/// One in three is wrong, one is never opened, and the rest are whole.
#[test]
fn what_goes_wrong_on_some_connections_is_nothing_to_the_others() {
    let server = Server::start(|peer| {
        let bytes = peer.opening_bytes()?;
        if peer.number == 2 {
            return None;
        }
        peer.send(bytes)?;
        if peer.number.is_multiple_of(3) {
            peer.send_back(HALF)?;
            return peer.fin();
        }
        peer.send_back(BYTES)?;
        peer.send_back(LAST_WORD.len())?;
        peer.drain();
        None
    });
    let mut load = transfers(10, PIECE, BYTES as u64, Direction::Both);
    (load.dial.retries, load.dial.timeout_ms) = (0, 10_000);
    let reports = run(load, &server.target);
    expect(&reports[&Phase::Connect], 9, &[("closed", 1)]);
    let bulk = &reports[&Phase::Bulk];
    expect(bulk, 5, &[("closed", 4)]);
    assert_eq!(metric(bulk, "planned_count"), 10);
    assert_eq!(metric(bulk, "not_sent_count"), 1);
    let right = 5 * BYTES + 4 * HALF;
    assert_eq!(metric(bulk, "verified_bytes"), right as u64);
    server.expect_content();
}

#[test]
fn an_opening_that_does_not_come_back_as_it_was_is_a_failed_dial() {
    let cases: [(&str, &str, Script); 5] = [
        ("a wrong byte", "wrong_opening", |peer| {
            let mut bytes = peer.opening_bytes()?;
            bytes[23] ^= 1;
            peer.send(bytes)?;
            peer.drain();
            None
        }),
        ("a greeting", "wrong_opening", |peer| {
            peer.send("220 ready")?;
            peer.drain();
            None
        }),
        ("a byte behind it", "unexpected", |peer| {
            let bytes = peer.opening_bytes()?;
            peer.send([&bytes[..], b"x"].concat())?;
            peer.drain();
            None
        }),
        ("FIN in it", "closed", |peer| {
            let bytes = peer.opening_bytes()?;
            peer.send(&bytes[..23])?;
            peer.fin()
        }),
        ("RST", "reset", |peer| {
            peer.opening_bytes()?;
            peer.reset()
        }),
    ];
    all_at_once(cases.map(|(name, cause, script)| {
        case(name, move || {
            let server = Server::start(script);
            for load in [
                transfers(2, PIECE, BYTES as u64, Direction::Both),
                as_stream(echoes(2, PIECE, 10)),
            ] {
                let mut load = load;
                (load.dial.retries, load.dial.timeout_ms) = (0, 10_000);
                let reports = run(load, &server.target);
                expect(&reports[&Phase::Connect], 0, &[(cause, 2)]);
                let (_, last) = reports.last_key_value().unwrap();
                assert_eq!(metric(last, "succeeded_count"), 0);
                assert!(metric(last, "not_sent_count") >= 2);
            }
        })
    }));
}

fn as_stream(load: Load) -> Load {
    Load {
        transport: Transport::Stream,
        ..load
    }
}

/// The answer of one message is wrong, and those behind it are lost with the connection.
#[test]
fn a_wrong_answer_over_a_stream_fails_its_message() {
    let cases: [(&str, &str, Script); 4] = [
        ("a wrong byte", "wrong_payload", |peer| {
            let mut bytes = peer.bytes(PIECE as usize)?;
            bytes[500] ^= 1;
            peer.send(bytes)
        }),
        ("a byte too many", "unexpected", |peer| {
            let bytes = peer.bytes(PIECE as usize)?;
            peer.stream.write_all(&[&bytes[..], b"x"].concat()).ok()
        }),
        ("FIN", "closed", |peer| {
            peer.bytes(PIECE as usize)?;
            peer.fin()
        }),
        ("RST", "reset", |peer| {
            peer.bytes(PIECE as usize)?;
            peer.reset()
        }),
    ];
    all_at_once(cases.map(|(name, cause, script)| {
        case(name, move || {
            let server = Server::start(move |peer| {
                peer.open()?;
                peer.send_back(PIECE as usize)?;
                script(peer)?;
                peer.drain();
                None
            });
            let mut load = as_stream(echoes(1, PIECE, 10));
            load.echo.as_mut().unwrap().timeout_ms = 10_000;
            let report = last_phase(load, &server.target);
            // One that is answered twice was not answered rightly.
            expect(&report, 1, &[(cause, 1)]);
            assert_eq!(metric(&report, "not_sent_count"), 8);
            server.expect_content();
        })
    }));
}
