//! Starts the built server on an address of its own, and looks at it from outside.

#![allow(dead_code)] // each test program uses a part of it

#[path = "../../src/counters/layout.rs"]
pub mod layout;
#[path = "../../src/counters/reader.rs"]
pub mod reader;

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub use layout::Slot;

pub const BUFFER_BYTES: u64 = 32 << 10;
/// Long, as the machine may be busy: what is awaited comes in milliseconds.
const DEADLINE: Duration = Duration::from_secs(60);

pub struct Server {
    pub strategy: String,
    pub address: SocketAddr,
    counters: PathBuf,
    child: Child,
}

/// Runs a check against a server of each strategy, all at once.
pub fn every_strategy(check: impl Fn(&mut Server) + Sync) {
    thread::scope(|scope| {
        for strategy in strategies() {
            let check = &check;
            thread::Builder::new()
                .name(strategy.clone())
                .spawn_scoped(scope, move || check(&mut Server::start(&strategy, &[])))
                .unwrap();
        }
    });
}

/// As the manifest has them, which a unit test holds equal to the list.
pub fn strategies() -> Vec<String> {
    let manifest: toml::Table = include_str!("../../Cargo.toml").parse().unwrap();
    let variants = manifest["package"]["metadata"]["wsbench"]["variants"]
        .as_array()
        .unwrap();
    variants
        .iter()
        .map(|variant| variant["name"].as_str().unwrap().to_owned())
        .collect()
}

impl Server {
    pub fn start(strategy: &str, flags: &[&str]) -> Self {
        // Each has an address of its own, so no two want the same port.
        static STARTED: AtomicU8 = AtomicU8::new(1);
        let [.., high, low] = std::process::id().to_be_bytes();
        let host = format!(
            "127.{high}.{low}.{}",
            STARTED.fetch_add(1, Ordering::Relaxed)
        );
        let counters = std::env::temp_dir().join(format!("transfer-counters-{host}"));
        let child = Command::new(env!("CARGO_BIN_EXE_transfer"))
            .args(["--host", &host, "--ports", "10001-10002", "--threads", "2"])
            .args(["--strategy", strategy, "--counters"])
            .arg(&counters)
            .args(flags)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let address = format!("{host}:10002").parse().unwrap();
        let mut server = Self {
            strategy: strategy.to_owned(),
            address,
            counters,
            child,
        };
        // The last port: then all listen.
        server.until("it listens", |server| {
            assert_eq!(
                server.child.try_wait().unwrap(),
                None,
                "{}: has left",
                server.strategy
            );
            TcpStream::connect(server.address).is_ok()
        });
        server.until("that connection was served", |server| {
            server.get(Slot::Connections) == 1 && server.get(Slot::Tasks) == 0
        });
        server
    }

    pub fn dial(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        stream
    }

    /// A peer for which the kernel holds little, so that it is soon stuck.
    pub fn dial_narrow(&self) -> TcpStream {
        use socket2::{Domain, Socket, Type};
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        // Before it connects: the peer's buffers are sized by what it hears then.
        socket.set_tcp_mss(1_400).unwrap();
        socket.set_recv_buffer_size(8 << 10).unwrap();
        socket.set_send_buffer_size(16 << 10).unwrap();
        socket.connect(&self.address.into()).unwrap();
        socket.into()
    }

    pub fn get(&self, slot: Slot) -> u64 {
        reader::read(&self.counters).unwrap().get(slot)
    }

    pub fn until(&mut self, what: &str, mut reached: impl FnMut(&mut Self) -> bool) {
        let start = Instant::now();
        while !reached(self) {
            assert!(
                start.elapsed() < DEADLINE,
                "{}: not reached: {what}",
                self.strategy
            );
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Opens connections and waits until the server serves them all.
    pub fn dial_many(&mut self, count: u64) -> Vec<TcpStream> {
        let before = self.get(Slot::Tasks);
        let streams = (0..count).map(|_| self.dial()).collect();
        self.until("all are served", |server| {
            server.get(Slot::Tasks) == before + count
        });
        streams
    }

    pub fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id()))
            .unwrap()
            .count()
    }

    pub fn status_kib(&self, field: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(field))
            .unwrap();
        line.trim_start_matches(':')
            .split_whitespace()
            .next()
            .unwrap()
            .parse()
            .unwrap()
    }

    /// Lets the running server open no more files than so many.
    pub fn limit_files(&self, most: u64) {
        use rustix::process::{Pid, Resource, Rlimit, prlimit};
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(20_000),
        };
        prlimit(Some(Pid::from_child(&self.child)), Resource::Nofile, limit).unwrap();
    }

    /// CPU time of all its threads, those that ended too.
    pub fn cpu(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat
            .rsplit_once(')')
            .unwrap()
            .1
            .split_whitespace()
            .collect();
        let ticks: u64 = fields[11..13]
            .iter()
            .map(|ticks| ticks.parse::<u64>().unwrap())
            .sum();
        Duration::from_millis(ticks * 1_000 / rustix::param::clock_ticks_per_second())
    }

    /// Sends SIGTERM and returns how long the server took to leave.
    pub fn terminate(&mut self) -> Duration {
        let start = Instant::now();
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap();
        start.elapsed()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have left already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.counters);
    }
}

/// Bytes in which each place differs from those a buffer before and after.
pub fn pattern(length: usize) -> Vec<u8> {
    (0..length)
        .map(|index| (index ^ (index >> 8).wrapping_mul(31) ^ (index >> 16).wrapping_mul(7)) as u8)
        .collect()
}

/// Writes in pieces of the given lengths, in turn, while another thread reads the same back.
pub fn exchange(stream: &TcpStream, bytes: &[u8], pieces: &[usize]) {
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut rest, mut pieces) = (bytes, pieces.iter().cycle());
            while !rest.is_empty() {
                let (piece, behind) = rest.split_at(rest.len().min(*pieces.next().unwrap()));
                (&mut &*stream).write_all(piece).unwrap();
                rest = behind;
            }
        });
        expect(stream, bytes);
    });
}

/// Reads exactly these bytes.
pub fn expect(mut stream: &TcpStream, bytes: &[u8]) {
    let mut came = vec![0; 61_001];
    let mut rest = bytes;
    while !rest.is_empty() {
        let most = came.len().min(rest.len());
        let length = stream.read(&mut came[..most]).unwrap();
        assert_ne!(length, 0, "ended {} bytes too soon", rest.len());
        assert!(
            came[..length] == rest[..length],
            "wrong after {} bytes",
            bytes.len() - rest.len()
        );
        rest = &rest[length..];
    }
}

/// Expects the end of the connection and nothing before it.
pub fn expect_end(mut stream: &TcpStream) {
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
}

/// Writes without reading until all is written or the kernel takes no more; says how much it took.
pub fn write_until_stuck(mut stream: &TcpStream, bytes: &[u8]) -> usize {
    stream
        .set_write_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let mut written = 0;
    while written < bytes.len() {
        match stream.write(&bytes[written..]) {
            Ok(length) => written += length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    stream.set_write_timeout(Some(DEADLINE)).unwrap();
    written
}
