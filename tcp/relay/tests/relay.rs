//! What must hold for every method, asked of the built program.

mod util;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::thread;
use std::time::{Duration, Instant};

use util::{
    Relay, dribble, expect_bytes, expect_end, expect_reset, payload, reset, with_every_method,
    with_every_method_after,
};

const MIB: usize = 1 << 20;

/// A stalled connection may hold socket buffers of the system, not of the relay.
const MOST_GROWTH_BYTES: usize = 8 * MIB;

fn echo(client: &TcpStream, origin: &TcpStream, relay: &Relay) {
    for (mut from, to, seed) in [(client, origin, 1), (origin, client, 2)] {
        let bytes = payload(10_000, seed);
        from.write_all(&bytes).unwrap();
        expect_bytes(to, &bytes, relay);
    }
}

#[test]
fn bytes_arrive_whole_and_in_order_both_ways_at_once() {
    with_every_method(|relay| {
        let (client, origin) = relay.connect();
        let (up, down) = (payload(MIB, 1), payload(MIB + 1, 2));
        thread::scope(|scope| {
            scope.spawn(|| dribble(&client, &up));
            scope.spawn(|| dribble(&origin, &down));
            scope.spawn(|| expect_bytes(&client, &down, relay));
            expect_bytes(&origin, &up, relay);
        });
        echo(&client, &origin, relay);
    });
}

#[test]
fn a_half_close_passes_behind_what_was_sent_and_the_other_direction_goes_on() {
    with_every_method(|relay| {
        for client_first in [true, false] {
            let (client, origin) = relay.connect();
            let (first, second) = if client_first {
                (&client, &origin)
            } else {
                (&origin, &client)
            };
            for (from, to, seed) in [(first, second, 1), (second, first, 2)] {
                let bytes = payload(300_000, seed);
                thread::scope(|scope| {
                    scope.spawn(|| {
                        dribble(from, &bytes);
                        from.shutdown(Shutdown::Write).unwrap();
                    });
                    expect_bytes(to, &bytes, relay);
                    expect_end(to, relay);
                });
            }
        }
        relay.expect_no_connection();
    });
}

#[test]
fn an_end_without_a_byte_passes_too() {
    with_every_method(|relay| {
        let (client, origin) = relay.connect();
        client.shutdown(Shutdown::Write).unwrap();
        expect_end(&origin, relay);
        drop(origin);
        expect_end(&client, relay);
    });
}

#[test]
fn a_reset_of_one_side_resets_the_other() {
    with_every_method(|relay| {
        let (client, origin) = relay.connect();
        echo(&client, &origin, relay);
        reset(client);
        expect_reset(&origin, relay);
        let (client, origin) = relay.connect();
        echo(&client, &origin, relay);
        reset(origin);
        expect_reset(&client, relay);
        let client = relay.connect_to_nobody();
        expect_reset(&client, relay);
    });
}

#[test]
fn what_a_client_sends_before_the_upstream_is_connected_is_not_lost() {
    with_every_method(|relay| {
        let sent = payload(5000, 3);
        let (client, origin) = relay.connect_and(|mut client| client.write_all(&sent).unwrap());
        expect_bytes(&origin, &sent, relay);
        echo(&client, &origin, relay);
    });
}

/// Sends until nothing goes any more, and says how much went.
fn flood(mut stream: &TcpStream, bytes: &[u8]) -> usize {
    stream.set_nonblocking(true).unwrap();
    let (mut sent, mut last) = (0, Instant::now());
    while last.elapsed() < Duration::from_millis(300) {
        match stream.write(&bytes[sent..]) {
            Ok(length) => (sent, last) = (sent + length, Instant::now()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(2));
            }
            Err(error) => panic!("{error}"),
        }
        assert!(
            sent < bytes.len(),
            "{sent} bytes were taken and no end of it"
        );
    }
    stream.set_nonblocking(false).unwrap();
    sent
}

#[test]
fn a_peer_that_does_not_read_stops_its_own_connection_and_takes_no_memory() {
    let bytes = payload(64 * MIB, 4);
    with_every_method(|relay| {
        let others: Vec<_> = (0..2).map(|_| relay.connect()).collect();
        let (client, origin) = relay.connect();
        others
            .iter()
            .for_each(|(client, origin)| echo(client, origin, relay));
        let before = relay.resident_bytes();
        let sent = flood(&client, &bytes);
        others
            .iter()
            .for_each(|(client, origin)| echo(client, origin, relay));
        let growth = relay.resident_bytes().saturating_sub(before);
        assert!(
            growth < MOST_GROWTH_BYTES,
            "{}: {growth} bytes more",
            relay.method
        );
        client.shutdown(Shutdown::Write).unwrap();
        expect_bytes(&origin, &bytes[..sent], relay);
        expect_end(&origin, relay);
    });
}

#[test]
fn a_peer_may_read_only_after_all_it_has_sent_was_read() {
    let (up, down) = (payload(12 * MIB, 5), payload(48 * MIB, 6));
    with_every_method(|relay| {
        let (client, origin) = relay.connect();
        thread::scope(|scope| {
            scope.spawn(|| (&client).write_all(&up).unwrap());
            let sent = scope.spawn(|| (&origin).write_all(&down).unwrap());
            // Both directions are full before one is read.
            thread::sleep(Duration::from_millis(200));
            expect_bytes(&client, &down, relay);
            sent.join().unwrap();
            expect_bytes(&origin, &up, relay);
        });
    });
}

#[test]
fn nothing_is_left_of_connections_that_ended_however_they_did() {
    with_every_method(|relay| {
        let hundred = || {
            for nth in 0..100 {
                let (client, origin) = relay.connect();
                let bytes = payload(1000 * nth, 5);
                (&client).write_all(&bytes).unwrap();
                match nth % 4 {
                    0 => reset(client),
                    1 => reset(origin),
                    2 => drop(origin),
                    _ => {
                        drop(client);
                        expect_bytes(&origin, &bytes, relay);
                    }
                }
            }
            relay.expect_no_connection();
            relay.open_files().len()
        };
        // What a pool keeps it has by now.
        let (before, after) = (hundred(), hundred());
        assert!(
            after <= before + 4,
            "{}: {before} files, then {after}",
            relay.method
        );
    });
}

#[test]
fn it_leaves_on_sigterm_with_connections_open() {
    with_every_method(|relay| {
        let (client, origin) = relay.connect();
        echo(&client, &origin, relay);
        let (status, took) = relay.terminate();
        assert_eq!(status.signal(), Some(15), "{}", relay.method);
        // A second by contract; the rest is for the machine.
        assert!(took < Duration::from_secs(5), "{}: {took:?}", relay.method);
    });
}

#[test]
fn a_client_for_whom_there_are_no_files_waits_until_there_are() {
    const CLIENTS: usize = 100;
    with_every_method_after("ulimit -n 170", |relay| {
        let mut clients: Vec<_> = (0..CLIENTS)
            .map(|nth| {
                let client = relay.connect_client();
                (&client).write_all(&payload(1000, nth as u8)).unwrap();
                Some(client)
            })
            .collect();
        for _ in 0..CLIENTS {
            // Whichever it is; its end makes room for another.
            let origin = relay.accept_at_origin();
            let nth = first_byte(&origin);
            expect_bytes(&origin, &payload(1000, nth)[1..], relay);
            drop(clients[usize::from(nth)].take());
            expect_end(&origin, relay);
        }
        relay.expect_no_connection();
    });
}

fn first_byte(mut stream: &TcpStream) -> u8 {
    let mut byte = [0];
    stream.read_exact(&mut byte).unwrap();
    byte[0]
}
