//! The origin against peers that no client of ours is.

use super::Running;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};
use wsbench_client::protocol::stream::opening::{Mode, Opening};
use wsbench_client::protocol::stream::pieces::{GO, LAST_WORD};
use wsbench_client::protocol::stream::ring::Ring;

const PIECE: u32 = 1000;
const PIECES: u32 = 100;
const BYTES: usize = 100_000;
const FIRST: u32 = 77;

/// A connection to the origin.
struct Peer(TcpStream);

impl Peer {
    fn connect(origin: &Running) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", origin.target.ports.first)).unwrap();
        stream.set_nodelay(true).unwrap();
        // Long before a test that hangs is noticed by others.
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        Self(stream)
    }

    /// The opening has come back.
    fn open(origin: &Running, mode: Mode) -> Self {
        let mut peer = Self::connect(origin);
        let bytes = opening(mode);
        peer.send(&bytes);
        assert_eq!(peer.bytes(bytes.len()), bytes);
        peer
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// A byte a segment.
    fn dribble(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.send(&[*byte]));
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }

    fn fin(&mut self) {
        self.0.shutdown(Shutdown::Write).unwrap();
    }

    #[track_caller]
    fn expect_fin(&mut self) {
        let read = self.0.read(&mut [0]);
        assert!(matches!(read, Ok(0)), "{read:?}");
    }

    #[track_caller]
    fn expect_reset(&mut self) {
        let read = self.0.read(&mut [0]);
        let kind = read.map_err(|error| error.kind());
        assert_eq!(kind, Err(ErrorKind::ConnectionReset));
    }

    #[track_caller]
    fn expect_silence(&mut self) {
        self.0
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        let read = self.0.read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(read, Err(ErrorKind::WouldBlock));
        self.0
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
    }
}

fn opening(mode: Mode) -> [u8; Opening::BYTES] {
    let opening = Opening {
        mode,
        piece_bytes: PIECE,
        pieces: PIECES,
        first: FIRST,
    };
    opening.to_bytes(42)
}

/// All pieces.
fn payload() -> Vec<u8> {
    let ring = Ring::new(PIECE);
    let pieces = (FIRST..FIRST + PIECES).map(|piece| ring.piece(piece).to_vec());
    pieces.collect::<Vec<_>>().concat()
}

fn receipt(bytes: usize) -> [u8; 8] {
    (bytes as u64).to_le_bytes()
}

#[test]
fn a_byte_a_segment_is_as_good_as_any() {
    let origin = Running::start(1);
    let (payload, few) = (payload(), 300);
    let mut echo = Peer::connect(&origin);
    echo.dribble(&opening(Mode::Echo));
    assert_eq!(echo.bytes(Opening::BYTES), opening(Mode::Echo));
    echo.dribble(&payload[..few]);
    assert_eq!(echo.bytes(few), payload[..few]);

    let mut sink = Peer::connect(&origin);
    sink.dribble(&opening(Mode::Sink));
    sink.bytes(Opening::BYTES);
    sink.dribble(&payload[..few]);
    sink.send(&payload[few..]);
    assert_eq!(sink.bytes(8), receipt(BYTES));
    sink.dribble(&LAST_WORD);
    sink.expect_fin();
}

#[test]
fn what_is_no_opening_is_reset() {
    let origin = Running::start(1);
    let mut wrong = opening(Mode::Sink);
    wrong[0] ^= 1;
    for garbage in [&b"GET / HTTP/1.1\r\nHost: you\r\n\r\n"[..], &wrong] {
        let mut peer = Peer::connect(&origin);
        peer.send(garbage);
        peer.expect_reset();
    }
    let mut half = Peer::connect(&origin);
    half.send(&opening(Mode::Echo)[..23]);
    half.fin();
    half.expect_reset();
    // One who only looks whether somebody listens is not.
    let mut silent = Peer::connect(&origin);
    silent.fin();
    silent.expect_fin();
}

#[test]
fn an_echo_ends_behind_the_last_byte_that_came_before_a_half_close() {
    let origin = Running::start(1);
    let mut peer = Peer::open(&origin, Mode::Echo);
    let sent = payload().repeat(50);
    let mut writer = peer.0.try_clone().unwrap();
    let ours = sent.clone();
    let writing = thread::spawn(move || {
        writer.write_all(&ours).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    // What waits here, and the half-close behind it, must not be lost.
    thread::sleep(Duration::from_millis(50));
    assert!(peer.bytes(sent.len()) == sent);
    peer.expect_fin();
    writing.join().unwrap();
}

#[test]
fn a_peer_that_does_not_read_is_not_read() {
    let origin = Running::start(1);
    let mut peer = Peer::open(&origin, Mode::Echo);
    let (sent, mut taken) = (payload(), 0);
    peer.0
        .set_write_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    // The buffers of both sockets each way, and what the origin holds.
    let most = 256 << 20;
    while let Ok(written) = peer.0.write(&sent[taken % BYTES..]) {
        taken += written;
        assert!(taken < most, "it takes without end");
    }
    // Meanwhile others are served.
    let mut other = Peer::open(&origin, Mode::Echo);
    other.send(b"still there?");
    assert_eq!(other.bytes(12), b"still there?");
    let back = peer.bytes(taken);
    let right = back.iter().zip(sent.iter().cycle());
    assert!(right.into_iter().all(|(a, b)| a == b));
}

#[test]
fn a_sink_tells_how_much_was_right() {
    let origin = Running::start(1);
    let payload = payload();
    // Whole.
    let mut peer = Peer::open(&origin, Mode::Sink);
    peer.send(&payload);
    assert_eq!(peer.bytes(8), receipt(BYTES));
    peer.expect_silence();
    peer.send(&LAST_WORD);
    peer.expect_fin();
    // A wrong byte, with more behind it.
    let mut peer = Peer::open(&origin, Mode::Sink);
    let mut wrong = payload.clone();
    wrong[70_000] ^= 1;
    peer.send(&wrong);
    assert_eq!(peer.bytes(8), receipt(70_000));
    peer.send(&payload);
    peer.expect_silence();
    // Too little, and no more to come.
    let mut peer = Peer::open(&origin, Mode::Sink);
    peer.send(&payload[..1234]);
    peer.fin();
    assert_eq!(peer.bytes(8), receipt(1234));
    // It is for the client to go, and if a relay keeps that to itself, for the origin.
    peer.expect_silence();
    peer.expect_fin();
    // Too much: before the last word, in it, behind it.
    for last in [&b"x"[..], b"that wll", b"that all?"] {
        let mut peer = Peer::open(&origin, Mode::Sink);
        peer.send(&payload);
        assert_eq!(peer.bytes(8), receipt(BYTES));
        peer.send(last);
        peer.expect_reset();
    }
}

#[test]
fn a_source_sends_all_that_was_asked_for_once_it_is_told_to() {
    let origin = Running::start(1);
    let mut peer = Peer::open(&origin, Mode::Source);
    peer.expect_silence();
    let mut peer = Peer::open(&origin, Mode::Source);
    peer.send(&GO);
    assert!(peer.bytes(BYTES) == payload());
    peer.expect_fin();
    for wrong in [&b"x"[..], b"gg"] {
        let mut peer = Peer::open(&origin, Mode::Source);
        peer.send(wrong);
        peer.expect_reset();
    }
}

#[test]
fn it_leaves_when_it_is_told_to_whoever_is_there() {
    let origin = Running::start(2);
    let port = origin.target.ports.first;
    let mut peers: Vec<Peer> = (0..5).map(|_| Peer::open(&origin, Mode::Echo)).collect();
    let began = Instant::now();
    drop(origin);
    assert!(began.elapsed() < Duration::from_secs(10));
    for peer in &mut peers {
        peer.expect_fin();
    }
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}
