//! A relay with both of its ends in the test: clients are dialed, and what it dials is
//! accepted.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;
use rustix::process::{Pid, Signal, kill_process};

/// For what takes no time on a machine that has any.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The methods that the manifest names.
pub fn methods() -> Vec<&'static str> {
    include_str!("../../Cargo.toml")
        .lines()
        .filter_map(|line| {
            line.trim_start()
                .strip_prefix("{ name = \"")?
                .split('"')
                .next()
        })
        .collect()
}

/// Tries a case with every method, all of them at the same time.
pub fn with_every_method(case: impl Fn(&Relay) + Sync) {
    with_every_method_after("true", case);
}

/// The same, with something done in the shell before each relay starts.
pub fn with_every_method_after(before: &str, case: impl Fn(&Relay) + Sync) {
    let methods = methods();
    assert!(methods.contains(&"splice"), "{methods:?}");
    thread::scope(|scope| {
        for method in methods {
            let case = &case;
            let try_case = move || {
                if let Some(relay) = Relay::start(method, before) {
                    case(&relay);
                }
            };
            thread::Builder::new()
                .name(method.into())
                .spawn_scoped(scope, try_case)
                .unwrap();
        }
    });
}

/// A relay of two ports: the first leads to an origin, the second to nobody.
pub struct Relay {
    pub method: &'static str,
    process: Mutex<Child>,
    id: u32,
    origin: TcpListener,
    host: Ipv4Addr,
    /// Its sockets without a connection, and perhaps one of the probe's.
    listening: usize,
}

const PORT: u16 = 20_001;

impl Relay {
    /// `None` if this machine has not what the method asks for.
    fn start(method: &'static str, before: &str) -> Option<Self> {
        // Every relay of every test has its own loopback address: no port is taken.
        static STARTED: AtomicU16 = AtomicU16::new(0);
        let (pid, nth) = (std::process::id(), STARTED.fetch_add(1, Ordering::Relaxed));
        let host = Ipv4Addr::new(127, 64 + (pid >> 8) as u8 % 128, pid as u8, nth as u8 + 1);
        let origin = TcpListener::bind((host, 0)).unwrap();
        // Where nobody listens: a port that was just free, of an address that nobody else has.
        let origin_port = loop {
            let port = origin.local_addr().unwrap().port();
            if port < u16::MAX && TcpListener::bind((host, port + 1)).is_ok() {
                break port;
            }
        };
        let process = Command::new("sh")
            .args(["-c", &format!("{before} && exec \"$@\""), "sh"])
            .arg(env!("CARGO_BIN_EXE_relay"))
            .args(["--method", method, "--threads", "2"])
            .args(["--host", &host.to_string()])
            .args(["--ports", &format!("{PORT}-{}", PORT + 1)])
            .args([
                "--upstream",
                &format!("{host}:{origin_port}-{}", origin_port + 1),
            ])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut relay = Self {
            method,
            id: process.id(),
            process: Mutex::new(process),
            origin,
            host,
            listening: 0,
        };
        let since = Instant::now();
        let probe = loop {
            match TcpStream::connect(relay.address(1)) {
                Ok(probe) => break with_patience(probe),
                Err(_) if relay.has_left() => return relay.excuse(),
                Err(error) => {
                    assert!(
                        since.elapsed() < PATIENCE,
                        "{method} does not listen: {error}"
                    );
                    thread::sleep(Duration::from_millis(2));
                }
            }
        };
        // It leads to nobody: with its reset the relay is as it was.
        let _ = (&probe).read(&mut [0; 1]);
        // Reset it is too by one that leaves; which does not listen after that.
        match TcpStream::connect(relay.address(1)) {
            Ok(probe) => drop((&with_patience(probe)).read(&mut [0; 1])),
            Err(_) => return relay.excuse(),
        }
        relay.listening = relay.open_sockets();
        Some(relay)
    }

    fn has_left(&self) -> bool {
        self.process.lock().unwrap().try_wait().unwrap().is_some()
    }

    /// Why it has left, which may only be that the machine has not what it asks for.
    fn excuse(self) -> Option<Self> {
        let (mut process, mut said) = (self.process.lock().unwrap(), String::new());
        let stderr = process.stderr.as_mut().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        let excused = ["cannot set up an io_uring"];
        assert!(
            excused.iter().any(|it| said.contains(it)),
            "{} has left: {said}",
            self.method
        );
        println!("skipped: {said}");
        None
    }

    fn address(&self, port: u16) -> SocketAddr {
        (self.host, PORT + port).into()
    }

    /// Both ends of a connection through the relay.
    pub fn connect(&self) -> (TcpStream, TcpStream) {
        self.connect_and(|_| ())
    }

    /// The same, with something done at the client as early as can be.
    pub fn connect_and(&self, at_once: impl FnOnce(&TcpStream)) -> (TcpStream, TcpStream) {
        let client = self.connect_client();
        at_once(&client);
        (client, self.accept_at_origin())
    }

    pub fn connect_client(&self) -> TcpStream {
        with_patience(TcpStream::connect(self.address(0)).unwrap())
    }

    #[track_caller]
    pub fn accept_at_origin(&self) -> TcpStream {
        let mut accepted = None;
        self.origin.set_nonblocking(true).unwrap();
        expect_soon("no connection comes to the origin", self, || {
            accepted = self.origin.accept().ok();
            accepted.is_some()
        });
        let (origin, _) = accepted.unwrap();
        origin.set_nonblocking(false).unwrap();
        with_patience(origin)
    }

    /// A client of the port that leads to nobody.
    pub fn connect_to_nobody(&self) -> TcpStream {
        with_patience(TcpStream::connect(self.address(1)).unwrap())
    }

    /// What the files are that it has open.
    pub fn open_files(&self) -> Vec<PathBuf> {
        std::fs::read_dir(format!("/proc/{}/fd", self.id))
            .unwrap()
            .filter_map(|file| std::fs::read_link(file.ok()?.path()).ok())
            .collect()
    }

    #[track_caller]
    pub fn expect_no_connection(&self) {
        expect_soon("sockets are left of connections that ended", self, || {
            self.open_sockets() <= self.listening
        });
    }

    fn open_sockets(&self) -> usize {
        let is_socket = |file: &PathBuf| file.to_string_lossy().starts_with("socket:");
        self.open_files()
            .iter()
            .filter(|file| is_socket(file))
            .count()
    }

    pub fn resident_bytes(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id)).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        let kib: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kib << 10
    }

    /// How it left, and how long that took.
    pub fn terminate(&self) -> (ExitStatus, Duration) {
        let (mut process, since) = (self.process.lock().unwrap(), Instant::now());
        kill_process(Pid::from_child(&process), Signal::TERM).unwrap();
        (process.wait().unwrap(), since.elapsed())
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if let Ok(process) = self.process.get_mut() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn with_patience(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Bytes without a period that a buffer's length could be a multiple of.
pub fn payload(length: usize, seed: u8) -> Vec<u8> {
    (0..length)
        .map(|index| (index * 7 + index / 251 + index / 65_521) as u8 ^ seed)
        .collect()
}

/// Sends in segments of odd lengths.
pub fn dribble(mut stream: &TcpStream, bytes: &[u8]) {
    let mut rest = bytes;
    for length in [1, 7, 1448, 4095, 4097, 32_768, 3, 65_537, 100_003]
        .iter()
        .cycle()
    {
        if rest.is_empty() {
            break;
        }
        let (segment, after) = rest.split_at(rest.len().min(*length));
        stream.write_all(segment).unwrap();
        rest = after;
    }
}

#[track_caller]
pub fn expect_bytes(mut stream: &TcpStream, expected: &[u8], relay: &Relay) {
    let mut bytes = vec![0; expected.len()];
    stream
        .read_exact(&mut bytes)
        .unwrap_or_else(|error| panic!("{}: {error}", relay.method));
    let wrong = bytes
        .iter()
        .zip(expected)
        .position(|(byte, expected)| byte != expected);
    assert_eq!(
        wrong,
        None,
        "{}: wrong at that byte of {}",
        relay.method,
        expected.len()
    );
}

#[track_caller]
pub fn expect_end(mut stream: &TcpStream, relay: &Relay) {
    let read = stream.read(&mut [0; 1]);
    assert!(
        matches!(read, Ok(0)),
        "{}: {read:?} instead of the end",
        relay.method
    );
}

#[track_caller]
pub fn expect_reset(mut stream: &TcpStream, relay: &Relay) {
    let read = stream.read(&mut [0; 1]);
    assert!(
        matches!(&read, Err(error) if error.kind() == ErrorKind::ConnectionReset),
        "{}: {read:?} instead of a reset",
        relay.method
    );
}

/// Waits until something that takes its time is so.
#[track_caller]
pub fn expect_soon(what: &str, relay: &Relay, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < PATIENCE, "{}: {what}", relay.method);
        thread::sleep(Duration::from_millis(1));
    }
}

pub fn reset(stream: TcpStream) {
    set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
}
