//! Plain TCP against the origin: messages and transfers that are right, and the origin
//! against peers of every kind. Peers that go wrong are in `hostile`.

mod util;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use util::{echoes, expect, messages, metric, run};
use wsbench_client::{EngineError, Origin};
use wsbench_schema::{Load, Phase, PortRange, Target, Transport, decode_histogram};

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
