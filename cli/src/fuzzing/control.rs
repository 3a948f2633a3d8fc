//! Requests to the control API.

use super::words::written;
use crate::control::{Served, Status, connection};
use crate::machine;
use crate::observe::LocalObserver;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::channel;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use wsbench_schema::Machine;

const WORDS: [&str; 28] = [
    "GET /v1/status HTTP/1.1\r\n",
    "POST /v1/phases/connect/begin HTTP/1.1\r\n",
    "POST /v1/phases/echo/end HTTP/1.1\r\n",
    "POST /v1/stop HTTP/1.1\r\n",
    "\r\n",
    "\n",
    "GET ",
    "POST ",
    "/v1/",
    "phases/",
    " HTTP/1.1\r\n",
    " HTTP/1.0\r\n",
    "HTTP/2.0\r\n",
    "x-wsbench: 1\r\n",
    "host: localhost\r\n",
    "host: [::1]:9\r\n",
    "host: evil.example\r\n",
    "authorization: Bearer secret\r\n",
    "origin: http://x\r\n",
    "content-length: 5\r\n",
    "content-length: 99999999999999999999\r\n",
    "transfer-encoding: chunked\r\n",
    "ffffffffffffffff\r\n",
    "expect: 100-continue\r\n",
    "connection: upgrade\r\n",
    "upgrade: h2c\r\n",
    "GET /v1/status HTTP/1.1\r\nx-wsbench: 1\r\nhost: localhost\r\n\r\n",
    ":",
];
/// Far beyond what an answer takes.
const PATIENCE: Duration = Duration::from_secs(30);
const ANSWER_MAX_BYTES: usize = 16 << 10;

static MACHINE: LazyLock<Machine> = LazyLock::new(machine::describe);

/// A request that the program writes, whole, and cut in its middle.
pub fn check(program: &[u8]) {
    let request = written(&WORDS, program);
    let whole = answer(&[&request]);
    let (first, second) = request.split_at(request.len() / 2);
    let cut = status(&answer(&[first, second]));
    // hyper looks at what came in pieces only once there is an empty line in what
    // has come since, so that a slow head costs nothing: half a head that is wrong
    // gets no answer then.
    let since = &request[first.len().saturating_sub(3)..];
    let is_half = !contains(since, b"\r\n\r\n") && !contains(since, b"\n\n");
    assert!(
        cut == status(&whole) || (is_half && cut.is_none()),
        "cut: {cut:?}, whole: {:?}",
        status(&whole)
    );
    if let Some(status) = status(&whole) {
        assert!(matches!(status, 200 | 400..=431 | 500..=505), "{status}");
        let marked = contains(&request, b"x-wsbench");
        assert!(
            status != 200 || marked,
            "who does not show the mark is not answered"
        );
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len())
        .any(|window| window.eq_ignore_ascii_case(part))
}

/// `None` if there is no answer, which is right for half a request.
fn status(answer: &[u8]) -> Option<u16> {
    if answer.is_empty() {
        return None;
    }
    let text = String::from_utf8_lossy(answer);
    let status = text.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5));
    Some(
        status
            .and_then(|code| code.parse().ok())
            .unwrap_or_else(|| panic!("{text}")),
    )
}

/// What a new server answers to the segments.
fn answer(segments: &[&[u8]]) -> Vec<u8> {
    let (mut client, server) = UnixStream::pair().expect("a pair of sockets");
    let (stop, _stopped) = channel();
    let pid = std::process::id();
    let status = Status {
        name: "echo".into(),
        variant: None,
        version: "echo 1".into(),
        language: "Rust".into(),
        pid,
        ports: "1-2".parse().expect("a range of ports"),
        cpus: vec![0],
        nodelay: true,
        machine: MACHINE.clone(),
        harness: "0".into(),
    };
    let observer =
        LocalObserver::new(vec![pid], vec![0], Duration::from_secs(60)).expect("a process");
    let served = Arc::new(Served::new(status, observer, None, stop));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    server.set_nonblocking(true).expect("a non-blocking socket");
    client.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut answer = Vec::new();
    runtime.block_on(async {
        let server = tokio::net::UnixStream::from_std(server).expect("a socket");
        let serving = tokio::spawn(connection(server, served));
        for segment in segments {
            // The server may have refused already.
            let _ = client.write_all(segment);
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        }
        let _ = client.shutdown(Shutdown::Write);
        tokio::time::timeout(PATIENCE, serving)
            .await
            .expect("it ends")
            .expect("it does not panic");
    });
    if let Err(error) = client.read_to_end(&mut answer) {
        // It refused before it had read everything.
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    assert!(answer.len() < ANSWER_MAX_BYTES);
    answer
}
