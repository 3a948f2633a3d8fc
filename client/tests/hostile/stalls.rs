//! Servers that accept and do not go on. What they were sent is lost by its
//! timeout; nobody else waits for them.

use crate::peer::{
    BOUND, BURST, Peer, Server, all_at_once, burst, case, last_phase, one_by_one, with_timeout,
};
use crate::util::{expect, metric};
use std::io::Read as _;
use std::thread;
use std::time::{Duration, Instant};
use wsbench_schema::{Load, PhaseReport};

/// More than a connection's buffers hold: a message waits in the midst of a write.
const LARGE: u32 = 4 << 20;

const CONNECTIONS: u32 = 8;

/// A server of which the first two connections are stalled.
fn server(stalled: fn(&mut Peer)) -> Server {
    Server::start(move |peer| {
        peer.welcome()?;
        if peer.number < 2 {
            stalled(peer);
            return None;
        }
        peer.echo()
    })
}

fn never_reads(peer: &mut Peer) {
    peer.read_nothing();
}

fn reads_a_byte_a_second(peer: &mut Peer) {
    let until = Instant::now() + BOUND;
    while Instant::now() < until && peer.stream.read_exact(&mut [0]).is_ok() {
        thread::sleep(Duration::from_secs(1));
    }
}

fn reads_and_is_mute(peer: &mut Peer) {
    peer.drain();
}

#[track_caller]
fn check(load: Load, stalled: fn(&mut Peer), right: u64, failures: &[(&str, u64)]) -> PhaseReport {
    let report = last_phase(
        with_timeout(load, Duration::from_secs(5)),
        &server(stalled).target,
    );
    expect(&report, right, failures);
    assert_eq!(metric(&report, "connections_lost_count"), 2);
    report
}

/// That is, some of the messages were never written whole.
fn was_blocked(report: &PhaseReport) -> bool {
    let sent = metric(report, "sent_count");
    metric(report, "sent_bytes") < sent * u64::from(LARGE)
}

#[test]
fn a_stalled_connection_loses_its_messages_and_stops_no_other() {
    let echoes = |payload, count| one_by_one(CONNECTIONS, payload, count);
    // Of two connections four messages each.
    let failures = [("connection_lost", 6), ("lost", 2)];
    let right = u64::from(CONNECTIONS - 2) * BURST as u64;
    let large = || burst(CONNECTIONS, LARGE / BURST as u32);
    all_at_once([
        case("never reads, closed loop", || {
            let report = check(echoes(LARGE, 12), never_reads, 10, &[("lost", 2)]);
            assert!(was_blocked(&report), "{:?}", report.metrics);
        }),
        case("reads a byte a second, closed loop", || {
            let report = check(echoes(LARGE, 12), reads_a_byte_a_second, 10, &[("lost", 2)]);
            assert!(was_blocked(&report), "{:?}", report.metrics);
        }),
        case("never reads, small messages", || {
            check(echoes(64, 1000), never_reads, 998, &[("lost", 2)]);
        }),
        case("mute, closed loop", || {
            check(echoes(64, 1000), reads_and_is_mute, 998, &[("lost", 2)]);
        }),
        case("never reads, open loop", || {
            check(large(), never_reads, right, &failures);
        }),
        case("reads a byte a second, open loop", || {
            check(large(), reads_a_byte_a_second, right, &failures);
        }),
        case("mute, open loop", || {
            check(burst(CONNECTIONS, 64), reads_and_is_mute, right, &failures);
        }),
    ]);
}
