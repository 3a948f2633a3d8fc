//! The wrong server of the other tests does exactly the wrong it is told to do,
//! and is right in everything else.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use wsbench_sampler::Tree;

const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PATIENCE: Duration = Duration::from_secs(20);

struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(switches: &str) -> Self {
        // target/debug/deps/this-test and target/debug/examples/misbehave.
        let mut program = std::env::current_exe().unwrap();
        program.pop();
        program.pop();
        program.push("examples/misbehave");
        let port = free_port();
        let child = Command::new(program)
            .args(["--ports", &port.to_string()])
            .args(switches.split_whitespace())
            .stderr(Stdio::null())
            .spawn()
            .expect("built by `cargo test`, but not by `cargo test --test NAME`");
        Self { child, port }
    }

    fn connect(&self) -> Connection {
        let (stream, head) = self.upgrade();
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        // The example of RFC 6455, section 1.3.
        assert!(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
        Connection(stream)
    }

    fn upgrade(&self) -> (BufReader<TcpStream>, String) {
        let deadline = Instant::now() + PATIENCE;
        let stream = loop {
            match TcpStream::connect(("127.0.0.1", self.port)) {
                Ok(stream) => break stream,
                Err(error) => assert!(Instant::now() < deadline, "never listened: {error}"),
            }
            thread::sleep(Duration::from_millis(10));
        };
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut stream = BufReader::new(stream);
        let request = b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\
                        Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        stream.get_mut().write_all(request).unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(stream.read_line(&mut head).unwrap(), 0, "{head}");
        }
        (stream, head)
    }

    fn terminate(&self) {
        let pid = self.child.id().to_string();
        Command::new("kill").arg(pid).status().unwrap();
    }

    #[track_caller]
    fn expect_exit(mut self) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "still runs");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(tree) = Tree::of(self.child.id()) {
            let pids = tree.pids().into_iter().map(|pid| pid.to_string());
            let _ = Command::new("kill").arg("-9").args(pids).status();
        }
        let _ = self.child.wait();
    }
}

struct Connection(BufReader<TcpStream>);

impl Connection {
    fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    /// Opcode and payload of the next frame.
    fn receive(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).unwrap();
        assert_eq!(head[0] & 0xf0, 0x80);
        let length = match head[1] {
            126 => {
                let mut length = [0; 2];
                self.0.read_exact(&mut length).unwrap();
                usize::from(u16::from_be_bytes(length))
            }
            short => usize::from(short),
        };
        let mut payload = vec![0; length];
        self.0.read_exact(&mut payload).unwrap();
        (head[0] & 0x0f, payload)
    }

    fn echo(&mut self, payload: &[u8]) -> (u8, Vec<u8>) {
        self.send(&masked(0x80 | BINARY, payload));
        self.receive()
    }

    #[track_caller]
    fn expect_echo(&mut self, payload: &[u8]) {
        assert_eq!(self.echo(payload), (BINARY, payload.to_vec()));
    }

    #[track_caller]
    fn expect_silence(&mut self, time: Duration) {
        self.0.get_ref().set_read_timeout(Some(time)).unwrap();
        let error = self.0.read_exact(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
    }
}

fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [1, 2, 3, 4];
    let mut frame = vec![first];
    match u8::try_from(payload.len()) {
        Ok(short @ 0..=125) => frame.push(0x80 | short),
        _ => {
            frame.push(0x80 | 126);
            frame.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
        }
    }
    frame.extend(mask);
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(a, b)| a ^ b));
    frame
}

/// Below the range that the kernel takes clients' ports from, and elsewhere for
/// each test program, so that two that run at once do not meet.
fn free_port() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let first = 12_000 + u16::try_from(std::process::id() % 600).unwrap() * 30;
    loop {
        let port = first + TAKEN.fetch_add(1, Ordering::Relaxed);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

#[test]
fn without_switches_it_is_right() {
    let server = Server::start("");
    let mut connection = server.connect();
    for length in [0, 1, 125, 126, 1024, 65_535] {
        connection.expect_echo(&vec![7; length]);
    }
    // Fragments with a ping between, cut at every byte.
    let mut bytes = masked(TEXT, b"fra");
    bytes.extend(masked(0x89, b"ping"));
    bytes.extend(masked(0x80, b"gments"));
    for byte in bytes {
        connection.send(&[byte]);
    }
    assert_eq!(connection.receive(), (10, b"ping".to_vec()));
    assert_eq!(connection.receive(), (TEXT, b"fragments".to_vec()));
    // Many frames a segment.
    connection.send(&masked(0x81, b"abc").repeat(100));
    for _ in 0..100 {
        assert_eq!(connection.receive(), (TEXT, b"abc".to_vec()));
    }
    connection.send(&masked(0x88, &1000_u16.to_be_bytes()));
    assert_eq!(connection.receive(), (CLOSE, vec![3, 232]));
    server.terminate();
    assert_eq!(server.expect_exit(), Some(0));
}

#[test]
fn each_nth_echo_is_wrong_as_told_over_all_connections() {
    let server = Server::start(
        "--corrupt-every 4 --wrong-opcode-every 5 --wrong-length-every 6 --close-every 14",
    );
    let mut connections = [server.connect(), server.connect()];
    for number in 1..=13_u8 {
        let (opcode, payload) = connections[usize::from(number % 2)].echo(&[number; 9]);
        assert_eq!(opcode == TEXT, number % 5 == 0, "echo {number}");
        assert_eq!(payload.len() == 8, number % 6 == 0, "echo {number}");
        let flipped: u32 = payload
            .iter()
            .map(|byte| (byte ^ number).count_ones())
            .sum();
        assert_eq!(flipped, u32::from(number % 4 == 0), "echo {number}");
    }
    assert_eq!(connections[0].echo(b"last").0, CLOSE);
}

#[test]
fn it_sleeps_and_logs_what_it_slept() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let server = Server::start(&format!("--sleep-us 2000 --log {}", log.display()));
    let mut connection = server.connect();
    let mut seen = Vec::new();
    for _ in 0..20 {
        let sent = Instant::now();
        connection.expect_echo(b"x");
        seen.push(sent.elapsed().as_nanos() as u64);
    }
    assert!(!log.exists(), "logging must not disturb");
    server.terminate();
    assert_eq!(server.expect_exit(), Some(0));
    let slept: Vec<u64> = std::fs::read_to_string(log)
        .unwrap()
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    assert_eq!(slept.len(), 20);
    for (slept, seen) in slept.iter().zip(&seen) {
        assert!(
            *slept >= 2_000_000 && slept < seen,
            "slept {slept}, seen {seen}"
        );
    }
}

#[test]
fn it_burns_what_it_logs_after_so_many_echoes() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let switches = "--burn-ns 300000000 --burn-after-echoes 3 --log";
    let server = Server::start(&format!("{switches} {}", log.display()));
    let mut connection = server.connect();
    let mut tree = Tree::of(server.child.id()).unwrap();
    connection.expect_echo(b"1");
    connection.expect_echo(b"2");
    thread::sleep(Duration::from_millis(100));
    let before = tree.edge().unwrap();
    connection.expect_echo(b"3");
    let deadline = Instant::now() + PATIENCE;
    while std::fs::read(&log).unwrap_or_default().is_empty() {
        assert!(Instant::now() < deadline, "it never burns");
        thread::sleep(Duration::from_millis(10));
    }
    thread::sleep(Duration::from_millis(50));
    let used = tree.edge().unwrap().cpu_ns - before.cpu_ns;
    let text = std::fs::read_to_string(log).unwrap();
    let logged: u64 = text.trim().parse().unwrap();
    assert!((300_000_000..303_000_000).contains(&logged), "{logged}");
    assert!(
        used.abs_diff(logged) < 3_000_000,
        "used {used}, logged {logged}"
    );
}

#[test]
fn it_spins_for_each_echo() {
    let server = Server::start("--burn-each-ns 5000000");
    let mut connection = server.connect();
    let mut tree = Tree::of(server.child.id()).unwrap();
    let before = tree.edge().unwrap();
    for _ in 0..20 {
        connection.expect_echo(b"x");
    }
    let used = tree.edge().unwrap().cpu_ns - before.cpu_ns;
    assert!((100_000_000..110_000_000).contains(&used), "{used}");
}

#[test]
fn it_holds_memory() {
    let server = Server::start("--hold-bytes 100000000");
    drop(server.connect());
    let edge = Tree::of(server.child.id()).unwrap().edge().unwrap();
    assert!(
        (100_000_000..120_000_000).contains(&edge.rss_bytes),
        "{edge:?}"
    );
}

#[test]
fn it_stalls_once() {
    let server = Server::start("--stall-after-ms 300 --stall-once-ms 700");
    let mut connections = [server.connect(), server.connect()];
    let first = Instant::now();
    let mut echoes = Vec::new();
    while first.elapsed() < Duration::from_millis(1500) {
        for connection in &mut connections {
            connection.send(&masked(0x82, b"x"));
        }
        let sent = Instant::now();
        for connection in &mut connections {
            connection.receive();
            echoes.push(sent.elapsed());
        }
        thread::sleep(Duration::from_millis(5));
    }
    let stalled = Duration::from_millis(600)..Duration::from_millis(1_000);
    let count = echoes.iter().filter(|echo| stalled.contains(echo)).count();
    assert_eq!(
        count, 2,
        "one echo of each connection was held up: {echoes:?}"
    );
}

#[test]
fn it_dies_or_falls_silent_after_so_many_echoes() {
    let server = Server::start("--die-after 3");
    let mut connection = server.connect();
    for _ in 0..3 {
        connection.expect_echo(b"x");
    }
    assert_eq!(server.expect_exit(), Some(1));

    let server = Server::start("--mute-after 2");
    let mut connection = server.connect();
    connection.expect_echo(b"x");
    connection.expect_echo(b"x");
    connection.send(&masked(0x82, b"x"));
    connection.expect_silence(Duration::from_millis(200));

    let server = Server::start("--mute-after 0");
    let mut connection = server.connect();
    connection.send(&masked(0x82, b"x"));
    connection.expect_silence(Duration::from_millis(200));
}

#[test]
fn it_goes_wrong_with_messages_of_one_length_alone() {
    let server = Server::start("--only-bytes 3 --corrupt-every 2 --die-after 3");
    let mut connection = server.connect();
    for _ in 0..10 {
        connection.expect_echo(b"four");
    }
    connection.expect_echo(b"one");
    connection.expect_echo(b"four");
    assert_ne!(connection.echo(b"two"), (BINARY, b"two".to_vec()));
    connection.expect_echo(b"not");
    assert_eq!(server.expect_exit(), Some(1));
}

#[test]
fn it_refuses_or_spoils_the_upgrade() {
    let (_, head) = Server::start("--status 503").upgrade();
    assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
    let (_, head) = Server::start("--bad-accept").upgrade();
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert!(!head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
}

#[test]
fn it_never_listens_or_exits_at_once() {
    assert_eq!(Server::start("--exit-at-start").expect_exit(), Some(1));
    let server = Server::start("--no-listen");
    thread::sleep(Duration::from_millis(200));
    TcpStream::connect(("127.0.0.1", server.port)).unwrap_err();
    assert_eq!(Tree::of(server.child.id()).unwrap().pids().len(), 1);
}

#[test]
fn it_stays_when_told_to_leave() {
    let server = Server::start("--ignore-sigterm");
    let mut connection = server.connect();
    server.terminate();
    thread::sleep(Duration::from_millis(200));
    connection.expect_echo(b"x");
}

#[test]
fn it_runs_in_a_grandchild() {
    let server = Server::start("--fork");
    server.connect().expect_echo(b"x");
    assert_eq!(Tree::of(server.child.id()).unwrap().pids().len(), 3);
}

#[test]
fn a_hundred_connections_at_once() {
    let server = Server::start("--threads 2 --nodelay false --host 127.0.0.1");
    let mut connections: Vec<_> = (0..100).map(|_| server.connect()).collect();
    for connection in &mut connections {
        connection.send(&masked(0x82, &[5; 1000]));
    }
    for connection in &mut connections {
        assert_eq!(connection.receive(), (BINARY, vec![5; 1000]));
    }
}
