//! Servers that misbehave in one way each, and the verbs of the tests.

// Each test binary uses its own part.
#![allow(dead_code)]

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use wsbench_client::Engine;
use wsbench_client::protocol::handshake;
use wsbench_schema::{
    BulkLoad, DialLoad, Direction, EchoLoad, Load, MessageKind, Phase, PhaseReport, PortRange,
    RateLoad, Target, Transport,
};

/// What a server does with a message, or with a close frame: it gets the connection, the number of the
/// message on it, the first byte of the frame and the payload. False closes.
pub type Behaviour = dyn Fn(&mut TcpStream, u64, u8, &[u8]) -> bool + Send + Sync;

/// A frame as a server sends it.
pub fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        len @ 0..=125 => frame.push(len as u8),
        len @ 126..=65_535 => {
            frame.push(126);
            frame.extend((len as u16).to_be_bytes());
        }
        len => {
            frame.push(127);
            frame.extend((len as u64).to_be_bytes());
        }
    }
    frame.extend(payload);
    frame
}

/// Writes a server's frame.
pub fn answer(stream: &mut TcpStream, first: u8, payload: &[u8]) -> bool {
    stream.write_all(&frame(first, payload)).is_ok()
}

/// An honest echo.
pub fn echo(stream: &mut TcpStream, _number: u64, first: u8, payload: &[u8]) -> bool {
    answer(stream, first, payload)
}

/// The head of a request.
pub fn read_request(stream: &mut TcpStream) -> Option<String> {
    let (mut request, mut byte) = (Vec::new(), [0]);
    while !request.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        request.push(byte[0]);
    }
    String::from_utf8(request).ok()
}

/// The answer of an honest server to a request.
pub fn welcome(request: &str) -> String {
    let key = request
        .lines()
        .find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "));
    let accept = handshake::accept(key.unwrap_or_default());
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n\r\n"
    )
}

fn serve(
    mut stream: TcpStream,
    respond: &dyn Fn(&str) -> Vec<u8>,
    behave: &Behaviour,
) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let request = read_request(&mut stream)?;
    stream.write_all(&respond(&request)).ok()?;
    let mut number = 0;
    loop {
        let mut head = [0; 2];
        stream.read_exact(&mut head).ok()?;
        assert!(head[1] & 0x80 != 0, "the client must mask");
        let extended = match head[1] & 0x7F {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let mut long = [0; 8];
        stream.read_exact(&mut long[8 - extended..]).ok()?;
        let len = match extended {
            0 => usize::from(head[1] & 0x7F),
            _ => u64::from_be_bytes(long) as usize,
        };
        let mut key = [0; 4];
        stream.read_exact(&mut key).ok()?;
        let mut payload = vec![0; len];
        stream.read_exact(&mut payload).ok()?;
        payload
            .iter_mut()
            .zip(key.iter().cycle())
            .for_each(|(byte, key)| *byte ^= key);
        if head[0] & 0x0F > 8 {
            continue;
        }
        if !behave(&mut stream, number, head[0], &payload) {
            return None;
        }
        number += 1;
    }
}

/// A server with its own answer to requests and to messages.
pub fn server_with(
    respond: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
    behave: impl Fn(&mut TcpStream, u64, u8, &[u8]) -> bool + Send + Sync + 'static,
) -> Target {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let (respond, behave) = (Arc::new(respond), Arc::new(behave));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (respond, behave) = (Arc::clone(&respond), Arc::clone(&behave));
            thread::spawn(move || serve(stream, &*respond, &*behave));
        }
    });
    Target {
        host: "127.0.0.1".into(),
        ports: PortRange {
            first: port,
            last: port,
        },
        path: "/ws".into(),
    }
}

/// A server with its own answer to messages.
pub fn server(
    behave: impl Fn(&mut TcpStream, u64, u8, &[u8]) -> bool + Send + Sync + 'static,
) -> Target {
    server_with(|request| welcome(request).into_bytes(), behave)
}

/// Connections only.
pub fn load(connections: u32, payload_bytes: u32) -> Load {
    let dial = DialLoad {
        concurrency: 100,
        timeout_ms: 500,
        retries: 1,
        retry_interval_ms: 20,
    };
    Load {
        connections,
        payload_bytes,
        message: MessageKind::Binary,
        check: true,
        dial,
        echo: None,
        rate: None,
        after_connections: 0,
        bulk: None,
        release: None,
        transport: Transport::Websocket,
        client_burn_ns: 0,
    }
}

/// With so many echoes, all connections in flight.
pub fn echoes(connections: u32, payload_bytes: u32, echoes: u64) -> Load {
    let echo = EchoLoad {
        echoes,
        duration_ms: None,
        concurrency: 0,
        limit_per_s: 0,
        timeout_ms: 5000,
        warmup_echoes: 0,
    };
    Load {
        echo: Some(echo),
        ..load(connections, payload_bytes)
    }
}

/// With messages due for a second.
pub fn messages(connections: u32, per_connection_per_s: u32, window: u32) -> Load {
    let rate = RateLoad {
        connections: 0,
        duration_ms: 1000,
        per_connection_per_s,
        batch_bytes: 0,
        window,
        limit_per_s: 0,
        timeout_ms: 500,
    };
    Load {
        rate: Some(rate),
        ..load(connections, 64)
    }
}

/// A transfer of so many bytes on each connection, in pieces of `piece_bytes`.
pub fn transfers(connections: u32, piece_bytes: u32, bytes: u64, direction: Direction) -> Load {
    let bulk = BulkLoad {
        bytes_per_connection: bytes,
        direction,
        window_bytes: 0,
        slow_readers_percent: 0,
        slow_bytes_per_s: 0,
        duration_ms: None,
        timeout_ms: 10_000,
    };
    Load {
        bulk: Some(bulk),
        transport: Transport::Stream,
        ..load(connections, piece_bytes)
    }
}

/// Runs all phases of a load, on two CPUs at most: on a machine with many, each
/// of few connections would have a shard of its own, and others could not do its
/// part.
pub fn run(load: Load, target: &Target) -> BTreeMap<Phase, PhaseReport> {
    let on_two = || {
        let mut cpus = CpuSet::new();
        let allowed = sched_getaffinity(None).expect("it can be read");
        let numbers = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
        numbers.take(2).for_each(|cpu| cpus.set(cpu));
        sched_setaffinity(None, &cpus).expect("they are allowed");
        run_here(load, target)
    };
    let result = thread::scope(|scope| scope.spawn(on_two).join());
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn run_here(load: Load, target: &Target) -> BTreeMap<Phase, PhaseReport> {
    let mut engine = Engine::prepare(load, target, 1).expect("the load can be run");
    let stop = AtomicBool::new(false);
    let phases = engine.phases();
    let run = |phase: Phase| {
        let report = engine.run(phase, None, &stop, &mut |_| {});
        (phase, report.expect("it runs"))
    };
    phases.into_iter().map(run).collect()
}

/// A metric; absent ones are zero here.
pub fn metric(report: &PhaseReport, name: &str) -> u64 {
    report.metrics.get(name).copied().unwrap_or(0)
}

/// The causes of failure in a report.
pub fn causes(report: &PhaseReport) -> Vec<(String, u64)> {
    by_cause(report, "failed_")
}

/// The causes of lost connections in a report.
pub fn losses(report: &PhaseReport) -> Vec<(String, u64)> {
    by_cause(report, "connections_lost_")
}

fn by_cause(report: &PhaseReport, before: &str) -> Vec<(String, u64)> {
    let cause = |(name, count): (&String, &u64)| {
        let cause = name.strip_prefix(before)?.strip_suffix("_count")?;
        Some((cause.to_owned(), *count))
    };
    report.metrics.iter().filter_map(cause).collect()
}

/// Expects these counts of an echo or rate phase.
#[track_caller]
pub fn expect(report: &PhaseReport, succeeded: u64, failures: &[(&str, u64)]) {
    let failures: Vec<_> = failures
        .iter()
        .map(|(cause, count)| ((*cause).to_owned(), *count))
        .collect();
    assert_eq!(causes(report), failures, "{:?}", report.metrics);
    assert_eq!(
        metric(report, "succeeded_count"),
        succeeded,
        "{:?}",
        report.metrics
    );
    let lost: u64 = losses(report).iter().map(|(_, count)| count).sum();
    let all = metric(report, "connections_lost_count");
    assert_eq!(lost, all, "by cause: {:?}", report.metrics);
}

/// Sockets in TIME_WAIT with this port at either end.
pub fn in_time_wait(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let port = format!(":{port:04X}");
    let waits = |line: &&str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields[3] == "06" && fields[1..3].iter().any(|address| address.ends_with(&port))
    };
    table.lines().filter(waits).count()
}
