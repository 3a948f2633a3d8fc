//! Servers that follow a script, a thread a connection, and the loads under which
//! it is known what each message must come to.

pub use crate::util::frame;
use crate::util::{self, echoes, load, welcome};
use std::collections::{BTreeMap, VecDeque};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use wsbench_schema::{Load, Phase, PhaseReport, PortRange, RateLoad, Target};

pub const TEXT: u8 = 0x81;
pub const BINARY: u8 = 0x82;
pub const CLOSE: u8 = 0x88;
pub const PING: u8 = 0x89;
pub const PONG: u8 = 0x8A;

/// Messages of [`burst`] that are in flight on a connection at once.
pub const BURST: usize = 4;
/// How long a message may take that will come: a busy machine loses none.
const PATIENT: Duration = Duration::from_secs(10);
/// How long it may take where some never come.
pub const TIMEOUT: Duration = Duration::from_secs(2);
/// Long after everything has failed by its timeout.
pub const BOUND: Duration = Duration::from_secs(25);

/// A message of the client, and how a right server answers it.
#[derive(Clone, Debug)]
pub struct Message {
    pub payload: Vec<u8>,
    pub answer: Vec<u8>,
}

/// A connection as its server sees it.
pub struct Peer {
    pub stream: TcpStream,
    /// In the order of accepting, from 0.
    pub number: usize,
    /// Messages that were handed out until now.
    pub taken: usize,
    messages: VecDeque<Message>,
    pongs: VecDeque<Vec<u8>>,
}

impl Peer {
    /// Reads the request and accepts it.
    pub fn welcome(&mut self) -> Option<()> {
        let request = self.request()?;
        self.send(welcome(&request))
    }

    pub fn request(&mut self) -> Option<String> {
        util::read_request(&mut self.stream)
    }

    /// None once the client has gone, which ends a script.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> Option<()> {
        self.stream.write_all(bytes.as_ref()).ok()
    }

    /// In a segment of their own, or as near to it as TCP allows.
    pub fn send_apart(&mut self, bytes: impl AsRef<[u8]>) -> Option<()> {
        self.send(bytes)?;
        thread::sleep(Duration::from_millis(2));
        Some(())
    }

    /// The next data message.
    pub fn message(&mut self) -> Option<Message> {
        while self.messages.is_empty() {
            self.read()?;
        }
        self.taken += 1;
        self.messages.pop_front()
    }

    /// So many data messages.
    pub fn messages(&mut self, count: usize) -> Option<Vec<Message>> {
        (0..count).map(|_| self.message()).collect()
    }

    /// The payload of the next pong.
    pub fn pong(&mut self) -> Option<Vec<u8>> {
        while self.pongs.is_empty() {
            self.read()?;
        }
        self.pongs.pop_front()
    }

    /// Answers rightly until the client goes.
    pub fn echo(&mut self) -> Option<()> {
        loop {
            let message = self.message()?;
            self.send(message.answer)?;
        }
    }

    /// Nothing more is sent, the client's bytes are read.
    pub fn half_close(&mut self) -> Option<()> {
        self.stream.shutdown(Shutdown::Write).ok()?;
        self.drain();
        None
    }

    /// The connection ends as by a process that dies with unread bytes.
    pub fn reset(&mut self) -> Option<()> {
        let linger = Some(Duration::ZERO);
        let socket = socket2::SockRef::from(&self.stream);
        socket.set_linger(linger).expect("the socket is open");
        None
    }

    /// Reads and ignores everything until the client goes.
    pub fn drain(&mut self) {
        let mut ignored = [0; 1 << 16];
        while self.stream.read(&mut ignored).is_ok_and(|read| read > 0) {}
    }

    /// Leaves everything unread until the client resets the connection.
    pub fn read_nothing(&mut self) -> Option<()> {
        let until = Instant::now() + BOUND;
        let is_open = |stream: &TcpStream| matches!(stream.take_error(), Ok(None));
        while is_open(&self.stream) && Instant::now() < until {
            thread::sleep(Duration::from_millis(20));
        }
        None
    }

    /// One frame of the client, which must be whole, final and masked.
    fn read(&mut self) -> Option<()> {
        let mut head = [0; 2];
        self.stream.read_exact(&mut head).ok()?;
        assert_eq!(head[1] & 0x80, 0x80, "a frame that is not masked");
        assert_eq!(
            head[0] & 0xF0,
            0x80,
            "a frame with reserved bits or a fragment"
        );
        let mut long = [0; 8];
        let extended = [2, 8]
            .get(usize::from(head[1] & 0x7F).wrapping_sub(126))
            .copied();
        let len = match extended {
            None => usize::from(head[1] & 0x7F),
            Some(bytes) => {
                self.stream.read_exact(&mut long[8 - bytes..]).ok()?;
                u64::from_be_bytes(long) as usize
            }
        };
        let mut key = [0; 4];
        self.stream.read_exact(&mut key).ok()?;
        assert_ne!(key, [0; 4], "a mask that masks nothing");
        let mut payload = vec![0; len];
        self.stream.read_exact(&mut payload).ok()?;
        let key = key.iter().cycle();
        payload
            .iter_mut()
            .zip(key)
            .for_each(|(byte, key)| *byte ^= key);
        match head[0] {
            PONG => self.pongs.push_back(payload),
            first @ (TEXT | BINARY) => {
                let answer = frame(first, &payload);
                self.messages.push_back(Message { payload, answer });
            }
            first => panic!("a frame that begins with {first:#x}"),
        }
        Some(())
    }
}

/// A listening server.
pub struct Server {
    pub target: Target,
    connections: Arc<Mutex<Vec<JoinHandle<()>>>>,
    complaints: Arc<Mutex<Vec<String>>>,
}

/// The one target on `127.0.0.1`.
pub fn target(port: u16) -> Target {
    Target {
        host: "127.0.0.1".into(),
        ports: PortRange {
            first: port,
            last: port,
        },
        path: "/ws".into(),
    }
}

impl Server {
    /// Each connection is handed to `script`, and ends when that returns.
    pub fn start(script: impl Fn(&mut Peer) -> Option<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        Self::on(listener, script)
    }

    pub fn on(
        listener: TcpListener,
        script: impl Fn(&mut Peer) -> Option<()> + Send + Sync + 'static,
    ) -> Self {
        // Both ends of every connection are in this process.
        wsbench_client::limits::allow_connections(8000).expect("enough files");
        let server = Self {
            target: target(listener.local_addr().expect("it is bound").port()),
            connections: Arc::default(),
            complaints: Arc::default(),
        };
        let script = Arc::new(script);
        let (connections, complaints) = (
            Arc::clone(&server.connections),
            Arc::clone(&server.complaints),
        );
        let accepted = AtomicUsize::new(0);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let number = accepted.fetch_add(1, Ordering::Relaxed);
                let (script, complaints) = (Arc::clone(&script), Arc::clone(&complaints));
                let follow = move || follow(stream, number, &*script, &complaints);
                let thread = thread::Builder::new().stack_size(256 << 10);
                let thread = thread.spawn(follow).expect("a thread is left");
                connections.lock().expect("nobody panics").push(thread);
            }
        });
        server
    }

    /// Waits until every script has ended and fails if one of them complained of
    /// the client.
    #[track_caller]
    pub fn expect_content(&self) {
        let connections = std::mem::take(&mut *self.connections.lock().expect("nobody panics"));
        for connection in connections {
            connection.join().expect("it catches panics");
        }
        let complaints = self.complaints.lock().expect("nobody panics");
        assert!(complaints.is_empty(), "{complaints:?}");
    }
}

fn follow(
    stream: TcpStream,
    number: usize,
    script: &dyn Fn(&mut Peer) -> Option<()>,
    complaints: &Mutex<Vec<String>>,
) {
    stream.set_nodelay(true).expect("the socket is open");
    let mut peer = Peer {
        stream,
        number,
        taken: 0,
        messages: VecDeque::new(),
        pongs: VecDeque::new(),
    };
    // The panic has said on standard error what it was.
    if catch_unwind(AssertUnwindSafe(|| script(&mut peer))).is_err() {
        let complaint = format!("connection {number}");
        complaints.lock().expect("nobody panics").push(complaint);
    }
}

/// Connections only.
pub fn dials(connections: u32, payload_bytes: u32) -> Load {
    let mut load = load(connections, payload_bytes);
    load.dial.timeout_ms = PATIENT.as_millis() as u64;
    load
}

/// A closed loop, one echo in flight on each connection.
pub fn one_by_one(connections: u32, payload_bytes: u32, count: u64) -> Load {
    let mut load = echoes(connections, payload_bytes, count);
    load.dial = dials(connections, payload_bytes).dial;
    let echo = load.echo.as_mut().expect("it has echoes");
    echo.timeout_ms = PATIENT.as_millis() as u64;
    load
}

/// An open loop in which each connection sends [`BURST`] messages at once.
pub fn burst(connections: u32, payload_bytes: u32) -> Load {
    let rate = RateLoad {
        connections: 0,
        duration_ms: 500,
        per_connection_per_s: 2 * BURST as u32,
        batch_bytes: BURST as u32 * (payload_bytes + 14),
        window: BURST as u32,
        limit_per_s: 0,
        timeout_ms: PATIENT.as_millis() as u64,
    };
    Load {
        rate: Some(rate),
        ..dials(connections, payload_bytes)
    }
}

/// As [`burst`], and the same again a second later, if all of the first are
/// answered then.
pub fn two_bursts(connections: u32, payload_bytes: u32) -> Load {
    let mut load = burst(connections, payload_bytes);
    if let Some(rate) = &mut load.rate {
        (rate.duration_ms, rate.per_connection_per_s) = (2000, BURST as u32);
    }
    load
}

/// The load with [`TIMEOUT`].
pub fn impatient(load: Load) -> Load {
    with_timeout(load, TIMEOUT)
}

/// The load with another time for each message.
pub fn with_timeout(mut load: Load, timeout: Duration) -> Load {
    let timeout_ms = timeout.as_millis() as u64;
    if let Some(echo) = &mut load.echo {
        echo.timeout_ms = timeout_ms;
    }
    if let Some(rate) = &mut load.rate {
        rate.timeout_ms = timeout_ms;
    }
    load
}

/// Runs the load; the reports, which must come in time.
#[track_caller]
pub fn run(load: Load, target: &Target) -> BTreeMap<Phase, PhaseReport> {
    let began = Instant::now();
    let reports = util::run(load, target);
    let took = began.elapsed();
    assert!(took < BOUND, "it took {took:?}");
    reports
}

/// The report of the last phase of a load.
#[track_caller]
pub fn last_phase(load: Load, target: &Target) -> PhaseReport {
    let (_, report) = run(load, target).pop_last().expect("it has phases");
    report
}

/// The report of the dials of a load.
#[track_caller]
pub fn dial(load: Load, target: &Target) -> PhaseReport {
    let mut reports = run(load, target);
    reports.remove(&Phase::Connect).expect("it dials")
}

/// One of [`all_at_once`].
pub type Case<'a> = (String, Box<dyn FnOnce() + Send + 'a>);

/// One of [`all_at_once`].
pub fn case<'a>(name: impl Into<String>, run: impl FnOnce() + Send + 'a) -> Case<'a> {
    (name.into(), Box::new(run))
}

/// Runs every case at the same time, since most of them only wait. Fails with
/// the name of each that failed.
#[track_caller]
pub fn all_at_once<'a>(cases: impl IntoIterator<Item = Case<'a>>) {
    let failed: Vec<String> = thread::scope(|scope| {
        let start = |(name, case)| (name, scope.spawn(case));
        let cases: Vec<_> = cases.into_iter().map(start).collect();
        let failed = |(name, case): (String, thread::ScopedJoinHandle<'_, ()>)| {
            case.join().is_err().then_some(name)
        };
        cases.into_iter().filter_map(failed).collect()
    });
    assert!(failed.is_empty(), "failed: {failed:?}");
}
