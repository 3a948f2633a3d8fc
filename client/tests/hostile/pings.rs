//! Pings in masses. Every one is answered with its own payload, masked, in order,
//! by a client that goes on with its work.

use crate::peer::{
    BURST, PING, Peer, Server, all_at_once, burst, case, frame, impatient, last_phase, one_by_one,
};
use crate::util::{expect, metric};
use std::io::Write as _;
use std::thread;
use std::time::Duration;
use wsbench_schema::{Load, PhaseReport};

const CONNECTIONS: u32 = 3;
const PAYLOAD: u32 = 300;

fn payload(number: usize) -> Vec<u8> {
    let bytes = number.to_le_bytes();
    bytes.iter().copied().cycle().take(number % 126).collect()
}

/// Sends a storm before each answer and checks that every pong comes back.
fn storm(peer: &mut Peer, pings: usize) -> Option<()> {
    peer.welcome()?;
    loop {
        let message = peer.message()?;
        let storm: Vec<u8> = (0..pings)
            .flat_map(|number| frame(PING, &payload(number)))
            .collect();
        peer.send(storm)?;
        peer.send(message.answer)?;
        for number in 0..pings {
            assert_eq!(peer.pong()?, payload(number), "ping {number}");
        }
    }
}

fn expect_right(load: Load, server: &Server, count: u64) {
    let report = last_phase(load, &server.target);
    expect(&report, count, &[]);
    assert_eq!(metric(&report, "connections_lost_count"), 0);
    server.expect_content();
}

#[test]
fn each_ping_of_a_storm_has_its_pong_and_no_echo_fails() {
    all_at_once([
        case("one in flight", || {
            let server = Server::start(|peer| storm(peer, 1000));
            expect_right(one_by_one(CONNECTIONS, PAYLOAD, 15), &server, 15);
        }),
        case("several in flight", || {
            let server = Server::start(|peer| storm(peer, 500));
            let count = u64::from(CONNECTIONS) * BURST as u64;
            expect_right(burst(CONNECTIONS, PAYLOAD), &server, count);
        }),
    ]);
}

/// The pongs are three times as many bytes as the pings, so one read asks for more
/// than may wait for a peer that does not read. This one does.
#[test]
fn the_shortest_pings_in_the_longest_reads_are_answered_too() {
    const PINGS: usize = 40_000;
    let server = Server::start(|peer| {
        peer.welcome()?;
        loop {
            let message = peer.message()?;
            let mut output = peer.stream.try_clone().ok()?;
            let pings =
                thread::spawn(move || output.write_all(&frame(PING, b"").repeat(PINGS)).is_ok());
            for _ in 0..PINGS {
                assert_eq!(peer.pong()?, b"");
            }
            assert!(pings.join().ok()?);
            peer.send(message.answer)?;
        }
    });
    expect_right(one_by_one(2, PAYLOAD, 2), &server, 2);
}

/// A peer that sends pings for ever, reads the pongs and answers no message.
fn flood(peer: &mut Peer) -> Option<()> {
    let mut output = peer.stream.try_clone().ok()?;
    let flood = frame(PING, &[9; 125]).repeat(1000);
    let flooding = thread::spawn(move || while output.write_all(&flood).is_ok() {});
    peer.drain();
    flooding.join().ok()
}

/// A peer that sends pings for ever and reads nothing.
fn flood_deaf(peer: &mut Peer) -> Option<()> {
    let flood = frame(PING, &[9; 125]).repeat(1000);
    while peer.send(&flood).is_some() {}
    None
}

/// One connection of four floods when its first message has come.
fn flooded(flood: fn(&mut Peer) -> Option<()>) -> Server {
    Server::start(move |peer| {
        peer.welcome()?;
        if peer.number == 0 {
            peer.message()?;
            return flood(peer);
        }
        peer.echo()
    })
}

/// Its message is overdue, unless the machine is so busy that its pongs wait for
/// it, too.
fn given_up(report: &PhaseReport) -> &'static str {
    match metric(report, "failed_flooded_count") {
        0 => "lost",
        _ => "flooded",
    }
}

/// Neither the other connections nor the end of the phase wait for it. One that
/// reads its pongs has its time until its message is overdue; what may wait for
/// one that does not is bounded.
#[test]
fn a_flood_without_an_end_is_given_its_time_and_no_more() {
    let closed_loop = || {
        let mut load = one_by_one(4, PAYLOAD, 101);
        load.echo.as_mut().unwrap().limit_per_s = 100;
        load
    };
    let right = 3 * BURST as u64;
    all_at_once([
        case("pongs are read, closed loop", || {
            let report = last_phase(impatient(closed_loop()), &flooded(flood).target);
            expect(&report, 100, &[(given_up(&report), 1)]);
        }),
        case("pongs are read, open loop", || {
            let report = last_phase(impatient(burst(4, PAYLOAD)), &flooded(flood).target);
            let mut failures = [("connection_lost", 3), (given_up(&report), 1)];
            failures.sort_unstable();
            expect(&report, right, &failures);
        }),
        case("pongs are not read, closed loop", || {
            let report = last_phase(impatient(closed_loop()), &flooded(flood_deaf).target);
            expect(&report, 100, &[("flooded", 1)]);
        }),
        case("pongs are not read, open loop", || {
            let report = last_phase(impatient(burst(4, PAYLOAD)), &flooded(flood_deaf).target);
            expect(&report, right, &[("connection_lost", 3), ("flooded", 1)]);
        }),
    ]);
}

/// It is flooded while idle and may or may not have given it up by its next turn.
#[test]
fn a_peer_that_floods_and_reads_late_ends_the_phase_with_every_echo_counted() {
    let server = Server::start(|peer| {
        peer.welcome()?;
        let first = peer.message()?;
        peer.send(first.answer)?;
        let flood = frame(PING, &[7; 125]).repeat(400);
        for _ in 0..40 {
            peer.send(&flood)?;
        }
        thread::sleep(Duration::from_millis(300));
        peer.echo()
    });
    let mut load = one_by_one(10, PAYLOAD, 100);
    let echo = load.echo.as_mut().unwrap();
    (echo.limit_per_s, echo.duration_ms) = (100, Some(5000));
    let report = last_phase(load, &server.target);
    let counted = ["succeeded_count", "failed_count", "not_sent_count"];
    let counted: u64 = counted.iter().map(|name| metric(&report, name)).sum();
    let metrics = &report.metrics;
    assert_eq!(counted, metric(&report, "planned_count"), "{metrics:?}");
    server.expect_content();
}
