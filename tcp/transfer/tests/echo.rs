//! What every strategy must do: the same bytes, whatever becomes of the connection.

mod util;

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::thread;
use std::time::Duration;

use util::{Slot, every_strategy, exchange, expect, expect_end, pattern, write_until_stuck};

#[test]
fn bytes_come_back_whatever_the_segments() {
    let bytes = pattern(1_500_001);
    every_strategy(|server| {
        let pieces: [&[usize]; 4] = [&[1, 7, 1_447], &[32_767, 32_769, 3], &[32_768], &[200_003]];
        thread::scope(|scope| {
            for pieces in pieces {
                let stream = server.dial();
                // Not so many of the small ones: each is a system call.
                let bytes = if pieces[0] == 1 {
                    &bytes[..100_000]
                } else {
                    &bytes[..]
                };
                scope.spawn(move || exchange(&stream, bytes, pieces));
            }
        });
        let read = server.get(Slot::ReadBytes);
        assert_eq!(read, 3 * 1_500_001 + 100_000, "{}", server.strategy);
    });
}

#[test]
fn a_client_that_writes_all_it_can_before_it_reads_gets_all_and_fills_no_memory() {
    let bytes = pattern(8 << 20);
    every_strategy(|server| {
        let stream = server.dial();
        let resident_kib = server.status_kib("VmRSS");
        let written = write_until_stuck(&stream, &bytes);
        let grown_kib = server.status_kib("VmRSS").saturating_sub(resident_kib);
        assert!(grown_kib < 3_072, "{}: {grown_kib} KiB", server.strategy);
        let rest = &bytes[written..];
        thread::scope(|scope| {
            scope.spawn(|| (&stream).write_all(rest).unwrap());
            expect(&stream, &bytes);
        });
        assert_eq!(server.get(Slot::KeptInUseBytes), 0, "{}", server.strategy);
    });
}

#[test]
fn what_came_before_the_end_is_echoed_before_the_end() {
    let bytes = pattern(300_000);
    every_strategy(|server| {
        let stream = server.dial();
        thread::scope(|scope| {
            scope.spawn(|| {
                (&stream).write_all(&bytes).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
            });
            expect(&stream, &bytes);
        });
        expect_end(&stream);
        expect_end(&{
            let silent = server.dial();
            silent.shutdown(Shutdown::Write).unwrap();
            silent
        });
    });
}

#[test]
fn after_resets_and_ends_nothing_is_left() {
    let bytes = pattern(4 << 20);
    every_strategy(|server| {
        let streams = server.dial_many(8);
        let descriptors = server.descriptors() - streams.len();
        for (index, stream) in streams.iter().enumerate() {
            // Idle, busy, and stuck in a write.
            match index % 3 {
                0 => {}
                1 => (&*stream).write_all(&bytes[..100_000]).unwrap(),
                _ => drop(write_until_stuck(stream, &bytes)),
            }
            rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO)).unwrap();
        }
        drop(streams);
        server.until("none is served", |server| server.get(Slot::Tasks) == 0);
        server.until("no descriptor is left", |server| {
            server.descriptors() <= descriptors
        });
        assert_eq!(server.get(Slot::PoolInUse), 0, "{}", server.strategy);
        assert_eq!(server.get(Slot::KeptInUseBytes), 0, "{}", server.strategy);
        exchange(&server.dial(), &bytes[..100_000], &[9_999]);
    });
}

#[test]
fn it_leaves_within_a_second_of_sigterm_and_its_connections_with_it() {
    every_strategy(|server| {
        let streams = server.dial_many(100);
        let took = server.terminate();
        // Its own share of a busy machine is not its fault: it is killed after two seconds.
        assert!(
            took < Duration::from_secs(2),
            "{}: {took:?}",
            server.strategy
        );
        for mut stream in &streams {
            match stream.read(&mut [0; 1]) {
                Ok(0) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
                other => panic!("{}: {other:?}", server.strategy),
            }
        }
    });
}

#[test]
fn peers_that_do_not_read_stop_nobody_else() {
    let bytes = pattern(4 << 20);
    every_strategy(|server| {
        // More than the pool has buffers, each with a write that waits.
        let streams: Vec<_> = (0..100).map(|_| server.dial_narrow()).collect();
        thread::scope(|scope| {
            for stream in &streams {
                let bytes = &bytes;
                scope.spawn(move || write_until_stuck(stream, bytes));
            }
        });
        exchange(&server.dial(), &bytes[..200_000], &[50_000]);
        if ["pool", "pool_threads", "provided"].contains(&server.strategy.as_str()) {
            assert_eq!(server.get(Slot::PoolPeak), 64, "{}", server.strategy);
            assert_ne!(server.get(Slot::KeptCalls), 0, "{}", server.strategy);
        }
    });
}

#[test]
fn out_of_files_it_waits_without_spinning_and_goes_on() {
    every_strategy(|server| {
        let streams = server.dial_many(8);
        server.limit_files(server.descriptors() as u64);
        let waiting = server.dial();
        (&waiting).write_all(b"bytes").unwrap();
        let before = server.cpu();
        thread::sleep(Duration::from_millis(300));
        let spent = server.cpu() - before;
        assert!(
            spent < Duration::from_millis(100),
            "{}: {spent:?}",
            server.strategy
        );
        drop(streams);
        expect(&waiting, b"bytes");
    });
}
