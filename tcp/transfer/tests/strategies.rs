//! Each strategy does what its name says, as its allocator tells.

mod util;

use std::io::Write;
use std::net::TcpStream;
use std::thread;

use util::{BUFFER_BYTES, Server, Slot, exchange, expect, pattern, strategies};

/// Beside its buffer a connection needs no more than this: a fraction of a buffer.
const CONNECTION_BYTES: u64 = 4 << 10;
const CONNECTIONS: u64 = 200;
/// How far the peak may be from the truth.
const PEAK_BYTES: u64 = 256 << 10;

/// What a server allocated between two moments.
#[derive(Debug)]
struct Cost {
    calls: u64,
    bytes: u64,
    in_use: i64,
    reads: u64,
    kept_bytes: u64,
}

impl Cost {
    fn of(server: &mut Server, work: impl FnOnce(&mut Server)) -> Self {
        let slots = [
            Slot::AllocCalls,
            Slot::AllocBytes,
            Slot::HeapInUseBytes,
            Slot::Reads,
            Slot::KeptBytes,
        ];
        let before = slots.map(|slot| server.get(slot));
        work(server);
        let after = slots.map(|slot| server.get(slot));
        let grown = |index: usize| after[index] - before[index];
        Self {
            calls: grown(0),
            bytes: grown(1),
            in_use: after[2] as i64 - before[2] as i64,
            reads: grown(3),
            kept_bytes: grown(4),
        }
    }
}

/// Sends a little over each connection at a time, so that all are in transfer.
fn echo_over_all(streams: &[TcpStream], bytes: &[u8]) {
    for mut stream in streams {
        stream.write_all(bytes).unwrap();
    }
    for stream in streams {
        expect(stream, bytes);
    }
}

/// Of each strategy: buffers that 200 connections hold when idle, and allocations of a buffer a read.
#[test]
fn a_connection_holds_what_its_strategy_says() {
    thread::scope(|scope| {
        for strategy in strategies() {
            scope.spawn(move || {
                let mut server = Server::start(&strategy, &[]);
                // What is made once for all connections is there before.
                exchange(&server.dial(), &pattern(200_000), &[50_000]);
                server.until("it is idle", |server| server.get(Slot::Tasks) == 0);
                let mut streams = Vec::new();
                let cost = Cost::of(&mut server, |server| {
                    streams = server.dial_many(CONNECTIONS);
                    echo_over_all(&streams, &pattern(3_000));
                });
                let buffers = match strategy.as_str() {
                    "task" | "heap" | "slab" => CONNECTIONS,
                    _ => 0,
                };
                // The pool's and the threads' own are made as they are needed.
                let shared = match strategy.as_str() {
                    "pool" | "pool_threads" => server.get(Slot::PoolPeak),
                    "thread_local" => 2,
                    _ => 0,
                };
                let least = (buffers * BUFFER_BYTES) as i64;
                let most = least + (shared * BUFFER_BYTES + CONNECTIONS * CONNECTION_BYTES) as i64;
                assert!(
                    (least..most).contains(&cost.in_use),
                    "{strategy}: {cost:?}, expected {least} to {most}"
                );
                server.until("all are back", |server| server.get(Slot::PoolInUse) == 0);
                let most = server.get(Slot::HeapInUseBytes);
                drop(streams);
                server.until("that memory is given back", |server| {
                    let left = server.get(Slot::HeapInUseBytes);
                    left + buffers * BUFFER_BYTES <= most + CONNECTIONS * CONNECTION_BYTES
                });
                let peak = server.get(Slot::HeapPeakBytes);
                assert!(
                    peak + PEAK_BYTES >= most,
                    "{strategy}: peak {peak}, but {most} were in use"
                );
                // And no more than the buffers of a read, of which some may have been in use at once.
                let beside = PEAK_BYTES + CONNECTIONS * BUFFER_BYTES / 10;
                assert!(
                    peak <= most + beside,
                    "{strategy}: peak {peak}, {most} were in use"
                );
            });
        }
    });
}

/// 20 MB over one connection, and how much memory that took.
#[test]
fn a_transfer_allocates_what_its_strategy_says() {
    let bytes = pattern(20 << 20);
    thread::scope(|scope| {
        for strategy in strategies() {
            let bytes = &bytes;
            scope.spawn(move || {
                let mut server = Server::start(&strategy, &[]);
                let stream = server.dial();
                exchange(&stream, &bytes[..200_000], &[50_000]);
                let cost = Cost::of(&mut server, |_| exchange(&stream, bytes, &[100_000]));
                assert!(
                    cost.reads >= bytes.len() as u64 / BUFFER_BYTES,
                    "{strategy}: {cost:?}"
                );
                let (least, most) = match strategy.as_str() {
                    // A read that finds nothing has allocated too.
                    "per_read" => (cost.reads * BUFFER_BYTES, 2 * cost.reads * BUFFER_BYTES),
                    // What is aside, and the other worker's buffer if it had none yet.
                    "thread_local" => (cost.kept_bytes, cost.kept_bytes + BUFFER_BYTES),
                    _ => (0, BUFFER_BYTES),
                };
                let slack = CONNECTION_BYTES;
                assert!(
                    (least..=most + slack).contains(&cost.bytes),
                    "{strategy}: {cost:?}"
                );
                if !["per_read", "thread_local"].contains(&strategy.as_str()) {
                    assert!(cost.calls < 100, "{strategy}: {cost:?}");
                }
            });
        }
    });
}

#[test]
fn a_thousand_idle_connections_have_no_buffer_of_the_pool_and_five_hundred_busy_ones_its_bound() {
    let bytes = pattern(100_000);
    thread::scope(|scope| {
        for strategy in ["pool", "pool_threads", "provided"] {
            let bytes = &bytes;
            scope.spawn(move || {
                let mut server = Server::start(strategy, &[]);
                let idle = server.dial_many(1_000);
                echo_over_all(&idle, &bytes[..3_000]);
                server.until("all are back", |server| server.get(Slot::PoolInUse) == 0);
                let busy = server.dial_many(500);
                thread::scope(|scope| {
                    for share in busy.chunks(125) {
                        scope.spawn(|| echo_over_all(share, bytes));
                    }
                });
                server.until("all are back", |server| server.get(Slot::PoolInUse) == 0);
                let peak = server.get(Slot::PoolPeak);
                assert!((1..=64).contains(&peak), "{strategy}: {peak}");
                drop(idle);
            });
        }
    });
}

#[test]
fn the_threads_counted_are_the_threads_of_the_process() {
    util::every_strategy(|server| {
        let streams = server.dial_many(20);
        // A thread counts itself when it begins.
        server.until("each has counted itself", |server| {
            server.get(Slot::Threads) == server.status_kib("Threads")
        });
        drop(streams);
    });
}
