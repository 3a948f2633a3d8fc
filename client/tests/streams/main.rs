//! Plain TCP against the origin: messages and transfers that are right, and the origin
//! against peers of every kind. Peers that go wrong are in `hostile`.

mod origin;
#[path = "../util/mod.rs"]
mod util;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use util::{echoes, expect, in_time_wait, messages, metric, run, transfers};
use wsbench_client::limits::allow_connections;
use wsbench_client::{Engine, EngineError, Origin};
use wsbench_schema::{
    Direction, Load, Part, Phase, PhaseReport, PortRange, Progress, Target, Transport,
    decode_histogram,
};

/// A running origin.
struct Running {
    target: Target,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), EngineError>>>,
}

impl Running {
    fn start(threads: usize) -> Self {
        let any = PortRange { first: 0, last: 0 };
        let origin = Origin::bind("127.0.0.1", any, Some(threads)).unwrap();
        let port = origin.ports().unwrap()[0];
        let ports = PortRange {
            first: port,
            last: port,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&stop);
        Self {
            target: Target {
                host: "127.0.0.1".into(),
                ports,
                path: "/".into(),
            },
            stop,
            thread: Some(std::thread::spawn(move || origin.run(&theirs))),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(matches!(ended, Some(Ok(Ok(())))) || std::thread::panicking());
    }
}

fn as_stream(load: Load) -> Load {
    Load {
        transport: Transport::Stream,
        ..load
    }
}

#[test]
fn every_echo_over_a_stream_counts_once() {
    let origin = Running::start(2);
    for payload in [1, 125, 10_240, 300_000] {
        let mut load = as_stream(echoes(7, payload, 300));
        load.echo.as_mut().unwrap().warmup_echoes = 20;
        let reports = run(load, &origin.target);
        assert_eq!(metric(&reports[&Phase::Connect], "succeeded_count"), 7);
        expect(&reports[&Phase::Warmup], 20, &[]);
        let echo = &reports[&Phase::Echo];
        expect(echo, 300, &[]);
        // Nothing but the messages goes over the wire.
        let bytes = 300 * u64::from(payload);
        assert_eq!(metric(echo, "sent_bytes"), bytes);
        assert_eq!(metric(echo, "received_bytes"), bytes);
        let histogram = decode_histogram(&echo.histograms["latency_ns"]).unwrap();
        assert_eq!(histogram.len(), 300);
    }
}

#[test]
fn messages_that_are_due_go_over_a_stream_too_in_batches() {
    let origin = Running::start(1);
    let mut load = as_stream(messages(10, 50, 0));
    let rate = load.rate.as_mut().unwrap();
    (rate.batch_bytes, rate.timeout_ms) = (64 * 5, 10_000);
    let rate = run(load, &origin.target).remove(&Phase::Rate).unwrap();
    expect(&rate, 500, &[]);
    assert_eq!(metric(&rate, "batch_count"), 5);
    assert_eq!(metric(&rate, "shortfall_count"), 0);
}

const DIRECTIONS: [Direction; 3] = [Direction::Both, Direction::Up, Direction::Down];

/// The report of the transfers of a load.
fn transfer(load: Load, target: &Target) -> PhaseReport {
    run(load, target).remove(&Phase::Bulk).unwrap()
}

/// Every transfer was whole and right, and nothing else came of them.
#[track_caller]
fn expect_whole(report: &PhaseReport, connections: u64, bytes: u64) {
    expect(report, connections, &[]);
    for (name, expected) in [
        ("planned_count", connections),
        ("connections_count", connections),
        ("planned_bytes", connections * bytes),
        ("verified_bytes", connections * bytes),
        ("unfinished_count", 0),
        ("not_sent_count", 0),
        ("connections_lost_count", 0),
    ] {
        assert_eq!(metric(report, name), expected, "{name}");
    }
    let latencies = decode_histogram(&report.histograms["transfer_ns"]).unwrap();
    let stalls = decode_histogram(&report.histograms["stall_ns"]).unwrap();
    assert_eq!((latencies.len(), stalls.len()), (connections, connections));
    assert!(stalls.max() >= metric(report, "longest_stall_ns"));
    let series = &report.series["client_bytes"];
    assert_eq!(series.values.last(), Some(&(connections * bytes)));
    assert!(series.values.is_sorted() && series.offsets_ns.is_sorted());
}

#[test]
fn each_transfer_is_whole_and_right_in_each_direction() {
    let origin = Running::start(2);
    let loads = [
        (1, 1, 1),
        (3, 7, 70_000),
        (40, 32 << 10, 1 << 20),
        (2, 3 << 20, 12 << 20),
    ];
    for direction in DIRECTIONS {
        for (connections, piece_bytes, bytes) in loads {
            let load = transfers(connections, piece_bytes, bytes, direction);
            let report = transfer(load, &origin.target);
            expect_whole(&report, connections.into(), bytes);
        }
    }
}

#[test]
fn what_the_end_of_the_time_cuts_off_is_told_and_is_no_failure() {
    let origin = Running::start(1);
    for direction in DIRECTIONS {
        let mut load = transfers(3, 32 << 10, 64 << 30, direction);
        load.bulk.as_mut().unwrap().duration_ms = Some(200);
        let report = transfer(load, &origin.target);
        expect(&report, 0, &[]);
        assert_eq!(metric(&report, "unfinished_count"), 3);
        assert_eq!(metric(&report, "connections_lost_count"), 0);
        let (verified, planned) = (
            metric(&report, "verified_bytes"),
            metric(&report, "planned_bytes"),
        );
        assert_eq!(planned, 3 * (64 << 30));
        assert!(
            verified > 1 << 20 && verified < planned,
            "{direction:?}: {verified}"
        );
        let series = &report.series["client_bytes"];
        assert!(
            series
                .values
                .iter()
                .all(|bytes| *bytes <= metric(&report, "sent_bytes").max(verified))
        );
        assert!(metric(&report, "elapsed_ns") >= 100_000_000);
    }
}

/// Two of ten read 100,000 bytes a second of the 200,000 that they are sent.
#[test]
fn no_more_than_a_window_is_under_way() {
    // It reads what is there, waits, and answers only then.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let most = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut peer, _) = listener.accept().unwrap();
        let mut opening = [0; 24];
        peer.read_exact(&mut opening).unwrap();
        peer.write_all(&opening).unwrap();
        peer.set_read_timeout(Some(std::time::Duration::from_millis(150)))
            .unwrap();
        let (mut came, mut most, mut buffer) = (Vec::new(), 0, vec![0; 1 << 20]);
        loop {
            match peer.read(&mut buffer) {
                Ok(0) => return most,
                Ok(read) => came.extend_from_slice(&buffer[..read]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    most = most.max(came.len());
                    peer.write_all(&std::mem::take(&mut came)).unwrap();
                }
                // Closed with a reset, as it is when a transfer was whole.
                Err(_) => return most,
            }
        }
    });
    let mut load = transfers(1, 4096, 64 << 10, Direction::Both);
    load.bulk.as_mut().unwrap().window_bytes = 20_000;
    let target = Target {
        host: "127.0.0.1".into(),
        ports: PortRange {
            first: port,
            last: port,
        },
        path: "/".into(),
    };
    let report = transfer(load, &target);
    expect_whole(&report, 1, 64 << 10);
    assert_eq!(most.join().unwrap(), 4 * 4096);
}

#[test]
fn slow_readers_are_slow_and_slow_nobody_down() {
    let origin = Running::start(1);
    let slowly = |direction| {
        let mut load = transfers(10, 1000, 200_000, direction);
        let bulk = load.bulk.as_mut().unwrap();
        (bulk.slow_readers_percent, bulk.slow_bytes_per_s) = (20, 100_000);
        // Reading slowly is no silence, however long it takes.
        bulk.timeout_ms = 1500;
        let report = transfer(load, &origin.target);
        expect(&report, 10, &[]);
        assert_eq!(metric(&report, "verified_bytes"), 2_000_000);
        let latencies = decode_histogram(&report.histograms["transfer_ns"]).unwrap();
        let seconds = |quantile| latencies.value_at_quantile(quantile) as f64 / 1e9;
        // All but the last read of a slow one has been waited for.
        let (slow, others) = (seconds(0.9), seconds(0.8));
        assert!((1.9..10.0).contains(&slow), "{slow} s");
        assert!(others < 1.0, "{others} s");
        let stalls = decode_histogram(&report.histograms["stall_ns"]).unwrap();
        assert_eq!(stalls.len(), 8, "slow ones are slow themselves");
    };
    std::thread::scope(|scope| {
        scope.spawn(|| slowly(Direction::Down));
        slowly(Direction::Both);
    });
}

#[test]
fn the_shares_of_several_client_processes_are_the_whole_together() {
    let origin = Running::start(1);
    for direction in DIRECTIONS {
        let load = transfers(10, 4096, 1 << 20, direction);
        let shares = load.shares(3).unwrap();
        let part = |(index, share): (usize, Load)| {
            let part = Part {
                index: index as u32,
                of: 3,
            };
            let most = share.connections;
            let mut engine = Engine::prepare_part(share, most, &origin.target, 1, part).unwrap();
            let stop = AtomicBool::new(false);
            let mut last = Progress {
                phase: Phase::Connect,
                done: 0,
                failed: 0,
                total: 0,
            };
            assert_eq!(engine.phases(), [Phase::Connect, Phase::Bulk]);
            engine
                .run(Phase::Connect, None, &stop, &mut |_| {})
                .unwrap();
            let report = engine.run(Phase::Bulk, None, &stop, &mut |progress| last = progress);
            // Told in bytes.
            let bytes = u64::from(most) << 20;
            assert_eq!((last.done, last.total, last.failed), (bytes, bytes, 0));
            report.unwrap()
        };
        let reports: Vec<PhaseReport> = shares.into_iter().enumerate().map(part).collect();
        let longest = reports
            .iter()
            .map(|report| metric(report, "longest_stall_ns"));
        let longest = longest.max().unwrap();
        let merged = PhaseReport::merge(&reports).unwrap();
        expect_whole(&merged, 10, 1 << 20);
        assert_eq!(metric(&merged, "longest_stall_ns"), longest);
    }
}

#[test]
fn a_stop_ends_a_transfer_at_once_with_what_was_right_of_it() {
    let origin = Running::start(1);
    let load = transfers(2, 32 << 10, 64 << 30, Direction::Both);
    let mut engine = Engine::prepare(load, &origin.target, 1).unwrap();
    let stop = AtomicBool::new(false);
    engine
        .run(Phase::Connect, None, &stop, &mut |_| {})
        .unwrap();
    let report = engine.run(Phase::Bulk, None, &stop, &mut |progress| {
        // About a second has passed.
        assert!(progress.done > 0);
        stop.store(true, Ordering::Relaxed);
    });
    let report = report.unwrap();
    expect(&report, 0, &[]);
    assert_eq!(metric(&report, "unfinished_count"), 2);
    assert!(metric(&report, "verified_bytes") > 0);
}

#[test]
fn a_thousand_connections_at_once_are_no_trouble_and_leave_no_port_behind() {
    allow_connections(3000).unwrap();
    let origin = Running::start(2);
    let port = origin.target.ports.first;
    let echo = as_stream(patient(echoes(1000, 64, 3000)));
    expect(&run(echo, &origin.target)[&Phase::Echo], 3000, &[]);
    for direction in DIRECTIONS {
        let load = patient(transfers(1000, 1024, 10_240, direction));
        expect_whole(&transfer(load, &origin.target), 1000, 10_240);
    }
    assert_eq!(in_time_wait(port), 0);
}

fn patient(mut load: Load) -> Load {
    load.dial.timeout_ms = 10_000;
    if let Some(echo) = &mut load.echo {
        echo.timeout_ms = 10_000;
    }
    load
}
