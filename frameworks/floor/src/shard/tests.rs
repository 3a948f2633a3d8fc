//! A shard driven by hand, one turn at a time.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

use super::*;

const KEY: [u8; 4] = [7, 0xa5, 0, 0x3c];
const REQUEST: &str = "GET /ws HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

/// A shard and a peer in one thread, so that what is read at once is what was written at once.
struct Pair {
    shard: Shard,
    work: Workplace,
    peer: TcpStream,
}

impl Pair {
    fn upgraded() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        peer.set_nodelay(true).unwrap();
        let shard = Shard::new(8 << 20).unwrap();
        shard.adopt(listener.accept().unwrap().0.into());
        peer.set_nonblocking(true).unwrap();
        let work = Workplace::new();
        let mut pair = Self { shard, work, peer };
        pair.write(&REQUEST.as_bytes()[..50]);
        let rest = pair.exchange(&REQUEST.as_bytes()[50..], 129);
        assert!(rest.starts_with(b"HTTP/1.1 101 ") && rest.ends_with(b"\r\n\r\n"));
        pair
    }

    fn serve(&mut self) {
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        self.shard
            .serve_ready(&mut self.work, Some(&at_once))
            .unwrap();
    }

    fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.peer.write(bytes) {
                Ok(length) => bytes = &bytes[length..],
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            self.serve();
        }
    }

    fn read(&mut self, length: usize) -> Vec<u8> {
        let (mut answer, mut idle) = (vec![0; length], 0);
        let mut here = 0;
        while here < length {
            self.serve();
            match self.peer.read(&mut answer[here..]) {
                Ok(0) => panic!("ended after {here} bytes"),
                Ok(length) => (here, idle) = (here + length, 0),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    idle += 1;
                    assert!(idle < 1_000_000, "nothing comes after {here} bytes");
                }
            }
        }
        answer
    }

    fn exchange(&mut self, bytes: &[u8], answer: usize) -> Vec<u8> {
        self.write(bytes);
        self.read(answer)
    }
}

/// A message as the client sends it, and its echo.
fn message(length: usize) -> (Vec<u8>, Vec<u8>) {
    let payload: Vec<u8> = (0..length)
        .map(|index| (index * 7 + index / 251) as u8)
        .collect();
    let mut answer = vec![0x82, 127];
    answer.extend((length as u64).to_be_bytes());
    let mut frame = answer.clone();
    frame[1] |= 0x80;
    frame.extend(KEY);
    frame.extend(
        payload
            .iter()
            .zip(KEY.iter().cycle())
            .map(|(byte, key)| byte ^ key),
    );
    answer.extend(payload);
    (frame, answer)
}

#[test]
fn a_frame_longer_than_the_buffer_may_be_cut_anywhere() {
    let (frame, answer) = message(BUFFER_BYTES + 40_000);
    let mut pair = Pair::upgraded();
    let around = |place: usize| place.saturating_sub(20)..place + 20;
    let cuts = around(0)
        .chain(around(BUFFER_BYTES))
        .chain((1..frame.len()).step_by(30_011))
        .chain(frame.len() - 40..frame.len());
    for cut in cuts {
        pair.write(&frame[..cut]);
        assert!(
            pair.exchange(&frame[cut..], answer.len()) == answer,
            "{cut}"
        );
        assert!(pair.work.kept.is_empty(), "kept after the answer: {cut}");
    }
}

#[test]
fn long_frames_behind_one_another_are_answered_in_order() {
    let (long, long_answer) = message(1 << 20);
    let (short, short_answer) = message(70_000);
    let frames = [&short[..], &long, &short, &short, &long, &short].concat();
    let answers = [
        &short_answer[..],
        &long_answer,
        &short_answer,
        &short_answer,
        &long_answer,
        &short_answer,
    ]
    .concat();
    let mut pair = Pair::upgraded();
    for piece in [70_001, 262_144, 300_000, 1_000_000] {
        let mut came = Vec::new();
        for piece in frames.chunks(piece) {
            pair.write(piece);
            // What has been answered for sure: whatever is there.
            let _ = pair.peer.read_to_end(&mut came);
        }
        let rest = pair.read(answers.len() - came.len());
        came.extend(rest);
        assert!(came == answers, "by {piece}");
    }
}

#[test]
fn a_peer_that_reads_late_gets_everything_and_then_the_end() {
    let (frame, answer) = message(5 << 20);
    let mut pair = Pair::upgraded();
    pair.write(&frame);
    pair.peer.shutdown(Shutdown::Write).unwrap();
    for _ in 0..100 {
        pair.serve();
    }
    assert_eq!(
        pair.work.kept.len(),
        1,
        "an answer that is not taken is kept"
    );
    assert!(pair.read(answer.len()) == answer);
    for _ in 0..100 {
        pair.serve();
    }
    assert!(matches!(pair.peer.read(&mut [0]), Ok(0)), "not closed");
    assert!(pair.work.kept.is_empty());
}
