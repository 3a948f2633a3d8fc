//! Answers to the opening handshake.

use crate::peer::{
    BINARY, CLOSE, PING, PONG, Peer, Server, all_at_once, case, dial, dials, frame, last_phase,
    one_by_one, run,
};
use crate::util::{causes, expect, load, metric, welcome};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;
use wsbench_schema::Phase;

const CONNECTIONS: u32 = 3;

#[test]
fn a_101_is_accepted_wherever_it_is_cut() {
    let length = welcome("").len() as u32;
    let server = Server::start(|peer| {
        let answer = welcome(&peer.request()?).into_bytes();
        let cut = 1 + peer.number % (answer.len() - 1);
        peer.send_apart(&answer[..cut])?;
        peer.send(&answer[cut..])?;
        peer.echo()
    });
    let bytes = Server::start(|peer| {
        let answer = welcome(&peer.request()?).into_bytes();
        answer.iter().try_for_each(|byte| peer.send([*byte]))?;
        peer.echo()
    });
    all_at_once([
        case("in two pieces", || {
            let count = length - 1;
            let report = last_phase(one_by_one(count, 64, u64::from(count)), &server.target);
            expect(&report, count.into(), &[]);
        }),
        case("in single bytes", || {
            let report = last_phase(one_by_one(CONNECTIONS, 64, 9), &bytes.target);
            expect(&report, 9, &[]);
        }),
    ]);
}

#[test]
fn what_comes_behind_a_101_in_its_segment_is_read() {
    let behind = |bytes: Vec<u8>| {
        Server::start(move |peer| {
            let answer = welcome(&peer.request()?).into_bytes();
            peer.send([&answer, &bytes[..]].concat())?;
            if bytes.first() == Some(&PING) {
                assert_eq!(peer.pong()?, b"early");
            }
            peer.echo()
        })
    };
    // More than one read of the handshake takes.
    let long = [frame(PING, b"early"), frame(PONG, &[1; 125]).repeat(200)].concat();
    all_at_once([
        case("a ping", || {
            let server = behind(frame(PING, b"early"));
            expect(
                &last_phase(one_by_one(CONNECTIONS, 64, 9), &server.target),
                9,
                &[],
            );
            server.expect_content();
        }),
        case("a ping, and pongs without a request", || {
            let server = behind(long);
            expect(
                &last_phase(one_by_one(CONNECTIONS, 64, 9), &server.target),
                9,
                &[],
            );
            server.expect_content();
        }),
        case("half a ping", || {
            let server = Server::start(|peer| {
                let answer = welcome(&peer.request()?).into_bytes();
                let ping = frame(PING, b"early");
                peer.send_apart([&answer, &ping[..4]].concat())?;
                peer.send(&ping[4..])?;
                assert_eq!(peer.pong()?, b"early");
                peer.echo()
            });
            expect(
                &last_phase(one_by_one(CONNECTIONS, 64, 9), &server.target),
                9,
                &[],
            );
            server.expect_content();
        }),
        case("a message", || {
            let server = behind(frame(BINARY, b"news"));
            let failed = [("unexpected", u64::from(CONNECTIONS))];
            expect(&dial(dials(CONNECTIONS, 64), &server.target), 0, &failed);
        }),
        case("a masked frame", || {
            let server = behind(vec![PING, 0x80, 1, 2, 3, 4]);
            let failed = [("bad_frame", u64::from(CONNECTIONS))];
            expect(&dial(dials(CONNECTIONS, 64), &server.target), 0, &failed);
        }),
        case("a close", || {
            let server = behind(frame(CLOSE, &1001_u16.to_be_bytes()));
            let failed = [("closed", u64::from(CONNECTIONS))];
            expect(&dial(dials(CONNECTIONS, 64), &server.target), 0, &failed);
        }),
    ]);
}

/// Nothing of the attempt that failed is left in the one that follows.
#[test]
fn an_attempt_that_fails_behind_its_101_does_not_spoil_the_next() {
    let server = Server::start(|peer| {
        let answer = welcome(&peer.request()?).into_bytes();
        if peer.number < CONNECTIONS as usize {
            return peer.send([&answer, &[BINARY][..]].concat());
        }
        peer.send(answer)?;
        peer.echo()
    });
    let mut load = one_by_one(CONNECTIONS, 64, 30);
    // Whoever is dialled again may be among the first accepted, too.
    load.dial.retries = CONNECTIONS;
    let reports = run(load, &server.target);
    let connect = &reports[&Phase::Connect];
    assert_eq!(metric(connect, "retried_unexpected_count"), 3);
    expect(connect, CONNECTIONS.into(), &[]);
    expect(&reports[&Phase::Echo], 30, &[]);
}

fn status(line: &str) -> Vec<u8> {
    format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\n\r\n").into_bytes()
}

type Answer = fn(&str) -> Vec<u8>;

#[rustfmt::skip]
const REFUSALS: [(&str, &str, Answer); 24] = [
    ("200", "handshake_status_200", |_| status("200 OK")),
    ("302", "handshake_status_302", |_| status("302 Found\r\nLocation: ws://127.0.0.1:1/ws")),
    ("400", "handshake_status_400", |_| status("400 Bad Request")),
    ("426", "handshake_status_426", |_| status("426 Upgrade Required")),
    ("503", "handshake_status_503", |_| status("503 Service Unavailable")),
    ("503 and the headers of a 101", "handshake_status_503", |request| {
        welcome(request).replace("101 Switching Protocols", "503 Busy").into_bytes()
    }),
    ("404 and an endless page", "handshake_status_404", |_| {
        [status("404 Not Found"), vec![b'x'; 1 << 20]].concat()
    }),
    ("64 KiB of headers of a 500", "handshake_status_500", |_| {
        format!("HTTP/1.1 500 x\r\n{}", "X: y\r\n".repeat(11_000)).into_bytes()
    }),
    ("Accept of another key", "handshake_accept", |request| {
        welcome(&request.replace("Key: ", "Key: x")).into_bytes()
    }),
    ("no Accept", "handshake_accept", |request| {
        welcome(request).replace("Sec-WebSocket-Accept", "X").into_bytes()
    }),
    ("empty Accept", "handshake_accept", |request| {
        let answer = welcome(request);
        let (head, _) = answer.split_once("Accept: ").unwrap();
        format!("{head}Accept: \r\n\r\n").into_bytes()
    }),
    ("Accept in capitals", "handshake_accept", |request| {
        let answer = welcome(request);
        let (head, accept) = answer.split_once("Accept: ").unwrap();
        format!("{head}Accept: {}", accept.to_uppercase()).into_bytes()
    }),
    ("two Accepts", "handshake_accept", |request| {
        let other = "Sec-WebSocket-Accept: dGhlIHNhbXBsZSBub25jZQ==";
        welcome(request).replace("Upgrade: w", &format!("{other}\r\nUpgrade: w")).into_bytes()
    }),
    ("no Upgrade", "handshake_headers", |request| {
        welcome(request).replace("Upgrade: w", "X: w").into_bytes()
    }),
    ("no Connection", "handshake_headers", |request| {
        welcome(request).replace("Connection", "X").into_bytes()
    }),
    ("an extension that was not offered", "handshake_headers", |request| {
        let extension = "Sec-WebSocket-Extensions: permessage-deflate";
        welcome(request).replace("Upgrade: w", &format!("{extension}\r\nUpgrade: w")).into_bytes()
    }),
    ("a protocol that was not offered", "handshake_headers", |request| {
        let protocol = "Sec-WebSocket-Protocol: chat";
        welcome(request).replace("Upgrade: w", &format!("{protocol}\r\nUpgrade: w")).into_bytes()
    }),
    ("another protocol's greeting", "handshake_malformed", |_| b"SSH-2.0-OpenSSH_9.9\r\n".to_vec()),
    ("an alert of TLS", "handshake_malformed", |_| vec![0x15, 3, 1, 0, 2, 2, 0x46]),
    ("zeros", "handshake_malformed", |_| vec![0; 5000]),
    ("frames without a handshake", "handshake_malformed", |_| frame(BINARY, b"no 101")),
    ("status of four digits", "handshake_malformed", |_| status("1010 Switching")),
    ("64 KiB of headers", "handshake_malformed", |request| {
        let many = "X: y\r\n".repeat(11_000);
        welcome(request).replace("Upgrade: w", &format!("{many}Upgrade: w")).into_bytes()
    }),
    ("one header of 64 KiB", "handshake_malformed", |request| {
        let long = format!("X: {}\r\n", "y".repeat(64 << 10));
        welcome(request).replace("Upgrade: w", &format!("{long}Upgrade: w")).into_bytes()
    }),
];

#[test]
fn an_answer_that_is_no_acceptance_is_retried_and_fails_by_its_cause() {
    all_at_once(REFUSALS.map(|(name, cause, answer)| {
        case(name, move || {
            let server = Server::start(move |peer| {
                let request = peer.request()?;
                peer.send(answer(&request))?;
                peer.drain();
                None
            });
            let report = dial(dials(CONNECTIONS, 64), &server.target);
            expect(&report, 0, &[(cause, CONNECTIONS.into())]);
            let retried = metric(&report, &format!("retried_{cause}_count"));
            assert_eq!(retried, u64::from(CONNECTIONS), "{:?}", report.metrics);
        })
    }));
}

#[test]
fn a_handshake_that_ends_or_never_does_has_its_cause() {
    const HALF: usize = 60;
    type Script = fn(&mut Peer) -> Option<()>;
    #[rustfmt::skip]
    let cases: [(&str, &str, Script); 9] = [
        ("silence", "timed_out", |peer| { peer.drain(); None }),
        ("silence without reading", "timed_out", Peer::read_nothing),
        ("half a 101 and silence", "timed_out", |peer| {
            let answer = welcome(&peer.request()?);
            peer.send(&answer[..HALF])?;
            peer.drain();
            None
        }),
        ("a byte of a header now and then, for ever", "timed_out", |peer| {
            peer.request()?;
            peer.send("HTTP/1.1 101 Switching Protocols\r\nX: ")?;
            loop {
                peer.send("y")?;
                thread::sleep(Duration::from_millis(50));
            }
        }),
        ("FIN", "closed", |peer| { peer.request()?; None }),
        ("FIN in the middle", "closed", |peer| {
            let answer = welcome(&peer.request()?);
            peer.send(&answer[..HALF])?;
            None
        }),
        ("half-close", "closed", |peer| { peer.request()?; peer.half_close() }),
        ("RST", "reset", |peer| { peer.request()?; peer.reset() }),
        ("RST in the middle", "reset", |peer| {
            let answer = welcome(&peer.request()?);
            peer.send_apart(&answer[..HALF])?;
            peer.reset()
        }),
    ];
    all_at_once(cases.map(|(name, cause, script)| {
        case(name, move || {
            let mut load = dials(CONNECTIONS, 64);
            if cause == "timed_out" {
                load.dial.timeout_ms = 500;
            }
            let report = dial(load, &Server::start(script).target);
            expect(&report, 0, &[(cause, CONNECTIONS.into())]);
            let retried = metric(&report, "retried_count");
            assert_eq!(retried, u64::from(CONNECTIONS), "{:?}", report.metrics);
        })
    }));
}

/// As many statuses as there are dials: the first are told apart, the rest
/// together, and none is missing.
#[test]
fn a_server_with_a_status_for_every_dial_fills_no_report() {
    let server = Server::start(|peer| {
        peer.request()?;
        peer.send(status(&format!("{} x", 200 + peer.number)))?;
        peer.drain();
        None
    });
    let mut load = dials(300, 64);
    load.dial.retries = 0;
    let report = dial(load, &server.target);
    let causes = causes(&report);
    let told: u64 = causes.iter().map(|(_, count)| count).sum();
    assert_eq!(
        (told, metric(&report, "failed_count")),
        (300, 300),
        "{causes:?}"
    );
    // Each shard tells its own first ones.
    let shards = std::thread::available_parallelism().unwrap().get();
    assert!(causes.len() <= 8 * shards + 1, "{causes:?}");
    assert!(
        causes
            .iter()
            .all(|(cause, _)| cause.starts_with("handshake_status_"))
    );
}

/// Nobody accepts, but the kernel does.
#[test]
fn a_listener_that_never_accepts_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let report = dial(load(CONNECTIONS, 64), &crate::peer::target(port));
    expect(&report, 0, &[("timed_out", CONNECTIONS.into())]);
}
