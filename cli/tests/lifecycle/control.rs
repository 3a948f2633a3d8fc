//! The control API over real sockets.

use crate::project::{Project, Serve, eventually, is_running, signal};
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

/// A served server and the address of its control API.
struct Api {
    project: Project,
    serve: Serve,
    address: String,
}

impl Api {
    fn start(switches: &str, arguments: &str) -> Self {
        let project = Project::new();
        project.misbehave("echo", switches);
        let serve = project.serve(&format!("echo {arguments}"));
        let file = project.run_file("echo").unwrap();
        let address = file["control"]
            .as_str()
            .unwrap()
            .replace("0.0.0.0", "127.0.0.1");
        Self {
            project,
            serve,
            address,
        }
    }

    /// Status code and body; the headers are lines.
    fn request(&self, line: &str, headers: &[&str]) -> (u16, Value) {
        let mut text = format!("{line} HTTP/1.1\r\n");
        for header in headers {
            text += &format!("{header}\r\n");
        }
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all((text + "\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer
            .split_once("\r\n\r\n")
            .unwrap_or_else(|| panic!("{answer}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }

    fn get(&self, path: &str) -> (u16, Value) {
        self.request(&format!("GET {path}"), &["host: localhost", "x-wsbench: 1"])
    }

    fn post(&self, path: &str) -> (u16, Value) {
        self.request(
            &format!("POST {path}"),
            &["host: localhost", "x-wsbench: 1"],
        )
    }
}

#[test]
fn it_says_who_is_served_and_what_a_phase_cost() {
    let api = Api::start(
        "--burn-ns 600000000 --hold-bytes 50000000",
        "--sample-interval 200ms",
    );
    let (code, status) = api.get("/v1/status");
    assert_eq!(code, 200, "{status}");
    assert_eq!(status["name"], "echo");
    assert_eq!(status["version"], "echo 1.0");
    assert_eq!(status["language"], "test");
    assert_eq!(status["pid"], api.project.server_pid("echo"));
    assert!(
        status["machine"]["kernel"]
            .as_str()
            .unwrap()
            .starts_with("Linux")
    );
    let (code, begin) = api.post("/v1/phases/connect/begin");
    assert_eq!(code, 200, "{begin}");
    std::thread::sleep(Duration::from_millis(900));
    let (code, end) = api.post("/v1/phases/connect/end");
    assert_eq!(code, 200, "{end}");
    let nanoseconds = |edge: &Value, name: &str| edge[name].as_u64().unwrap();
    let wall = nanoseconds(&end["edge"], "at_ns") - nanoseconds(&begin, "at_ns");
    assert!(wall >= 900_000_000, "{wall}");
    assert!(nanoseconds(&end["edge"], "cpu_ns") >= nanoseconds(&begin, "cpu_ns"));
    // What the kernel drops on the server's host is told from there.
    assert!(begin["listen_queue"]["overflows"].is_u64(), "{begin}");
    assert!(nanoseconds(&end["edge"], "rss_bytes") > 50_000_000);
    let samples = end["samples"].as_array().unwrap();
    assert!((1..=4).contains(&samples.len()), "{samples:?}");
}

#[test]
fn phases_out_of_order_and_unknown_ones_are_refused_with_a_reason() {
    let api = Api::start("", "");
    let refused = |path: &str, code: u16, word: &str| {
        let (status, problem) = api.post(path);
        assert_eq!(status, code, "{path}: {problem}");
        let error = problem["error"].as_str().unwrap();
        assert!(error.contains(word), "{error}");
    };
    refused("/v1/phases/echo/end", 409, "has not begun");
    assert_eq!(api.post("/v1/phases/echo/begin").0, 200);
    refused("/v1/phases/rate/begin", 409, "echo has not ended");
    refused("/v1/phases/warmup/end", 409, "warmup cannot end");
    refused("/v1/phases/idle/begin", 404, "`idle` is no phase");
    refused("/v1/nothing", 404, "no such request");
    refused("/v1/status", 404, "no such request");
    // A new client begins anew, whatever the last one left.
    assert_eq!(api.post("/v1/phases/connect/begin").0, 200);
    assert_eq!(api.post("/v1/phases/connect/end").0, 200);
}

#[test]
fn a_web_page_cannot_stop_it() {
    let api = Api::start("", "");
    let stop = "POST /v1/stop";
    let attempts: [&[&str]; 4] = [
        &["host: 127.0.0.1"],
        &[
            "host: 127.0.0.1",
            "content-type: text/plain",
            "content-length: 0",
        ],
        &["host: evil.example", "x-wsbench: 1"],
        &[
            "host: 127.0.0.1",
            "x-wsbench: 1",
            "origin: http://evil.example",
        ],
    ];
    for headers in attempts {
        assert_eq!(api.request(stop, headers).0, 403, "{headers:?}");
    }
    // What a browser asks before it would send the header.
    let preflight = [
        "host: 127.0.0.1",
        "origin: http://evil.example",
        "access-control-request-headers: x-wsbench",
    ];
    assert_eq!(api.request("OPTIONS /v1/stop", &preflight).0, 403);
    assert!(is_running(api.project.server_pid("echo")));
}

#[test]
fn a_request_stops_the_server_and_serve_ends() {
    let mut api = Api::start("", "");
    let server = api.project.server_pid("echo");
    assert_eq!(api.post("/v1/stop"), (200, Value::Bool(true)));
    assert_eq!(api.serve.expect_exit(), Some(0));
    assert!(!is_running(server));
    assert_eq!(api.project.run_file("echo"), None);
}

#[test]
fn that_the_server_died_is_told_as_the_reason() {
    let mut api = Api::start("", "");
    assert_eq!(api.post("/v1/phases/connect/begin").0, 200);
    signal(api.project.server_pid("echo"), "KILL");
    eventually("it is noticed", || api.project.run_file("echo").is_none());
    let (code, problem) = api.post("/v1/phases/connect/end");
    assert_eq!(code, 410, "{problem}");
    let error = problem["error"].as_str().unwrap();
    assert!(error.contains("signal 9 (SIGKILL"), "{error}");
    assert_eq!(api.serve.expect_exit(), Some(1));
}

#[test]
fn clients_that_stall_keep_nobody_waiting_and_are_cut_off() {
    let api = Api::start("", "");
    let mut stalled = Vec::new();
    for at in 0..100 {
        let mut stream = TcpStream::connect(&api.address).unwrap();
        if at % 2 == 0 {
            stream
                .write_all(b"POST /v1/stop HTTP/1.1\r\nhost: 127")
                .unwrap();
        }
        stalled.push(stream);
    }
    let start = Instant::now();
    assert_eq!(api.get("/v1/status").0, 200);
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
    for mut stream in stalled {
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        // An answer or a reset, but not silence.
        let mut rest = Vec::new();
        if let Err(error) = stream.read_to_end(&mut rest) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
        }
    }
}

#[test]
fn a_head_without_end_is_refused() {
    let api = Api::start("", "");
    let mut stream = TcpStream::connect(&api.address).unwrap();
    let head = "GET /v1/status HTTP/1.1\r\nx: ".to_owned() + &"x".repeat(64 << 10);
    // It may be cut off while it is sent, or be answered first.
    let sent = stream.write_all(head.as_bytes());
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    let refused = answer.starts_with(b"HTTP/1.1 431");
    let cut_off = sent.is_err() || read.is_err() || answer.is_empty();
    assert!(refused || cut_off, "{:?}", String::from_utf8_lossy(&answer));
    assert_eq!(api.get("/v1/status").0, 200);
}

#[test]
fn on_other_addresses_only_who_has_the_token_is_answered() {
    let api = Api::start("", "--control 0.0.0.0:0");
    let file = api.project.path("output/run/echo.token");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let token = fs::read_to_string(file).unwrap();
    let token = token.trim();
    assert_eq!(token.len(), 32);
    let shown = |authorization: &str| {
        let headers = ["host: 10.0.0.1", "x-wsbench: 1", authorization];
        api.request("GET /v1/status", &headers).0
    };
    assert_eq!(shown("x: y"), 401);
    assert_eq!(
        shown("authorization: Bearer 0123456789abcdef0123456789abcdef"),
        401
    );
    assert_eq!(
        shown(&format!("authorization: Bearer {}", &token[..31])),
        401
    );
    assert_eq!(shown(&format!("authorization: Bearer {token}")), 200);
    // `kill` finds it by the run file.
    api.project.run("kill echo").expect_success();
}

#[test]
fn a_token_of_the_user_is_asked_for_on_loopback_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    fs::write(&file, "user's own\n").unwrap();
    let api = Api::start("", &format!("--token-file {}", file.display()));
    assert_eq!(api.get("/v1/status").0, 401);
    let headers = [
        "host: h",
        "x-wsbench: 1",
        "authorization: Bearer user's own",
    ];
    assert_eq!(api.request("GET /v1/status", &headers).0, 200);
    let project = Project::new();
    fs::write(&file, "\n").unwrap();
    let arguments = format!("serve echo --token-file {}", file.display());
    let error = project.run(&arguments).expect_failure();
    assert!(error.contains("holds no token"), "{error}");
}

#[test]
fn watching_costs_less_than_two_percent_of_a_core() {
    let api = Api::start("", "");
    let serve = api.serve.child.id();
    let used = || {
        let stat = fs::read_to_string(format!("/proc/{serve}/stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        // Ticks of 10 ms.
        fields[11].parse::<u64>().unwrap() * 10 + fields[12].parse::<u64>().unwrap() * 10
    };
    assert_eq!(api.post("/v1/phases/echo/begin").0, 200);
    let before = used();
    std::thread::sleep(Duration::from_secs(4));
    let after = used();
    assert_eq!(api.post("/v1/phases/echo/end").0, 200);
    assert!(after - before <= 80, "{} ms in 4 s", after - before);
}
