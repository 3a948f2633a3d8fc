//! What is behind a relay, as a process: it listens, answers an opening and leaves.

use crate::project::{Project, eventually, expect_exit, free_ports, signal};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};
use wsbench_client::protocol::stream::opening::{Mode, Opening};

#[test]
fn an_origin_echoes_on_all_its_ports_and_leaves_on_sigterm() {
    let project = Project::new();
    let (first, ports) = free_ports(2);
    let mut origin = project
        .wsbench(&format!("origin --ports {ports} --threads 1"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let opening = Opening {
        mode: Mode::Echo,
        piece_bytes: 1,
        pieces: 0,
        first: 0,
    };
    let sent = [&opening.to_bytes(3)[..], b"and what follows"].concat();
    for port in [first, first + 1] {
        let mut connected = None;
        eventually("it listens", || {
            connected = TcpStream::connect(("127.0.0.1", port)).ok();
            connected.is_some()
        });
        let mut stream = connected.unwrap();
        stream.write_all(&sent).unwrap();
        let mut back = vec![0; sent.len()];
        stream.read_exact(&mut back).unwrap();
        assert_eq!(back, sent);
    }
    // Whoever cannot have its ports says so in a line.
    let other = project.run(&format!("origin --ports {ports}"));
    let said = other.expect_failure();
    assert!(said.contains(&format!("127.0.0.1:{first}")), "{said}");
    let asked = Instant::now();
    signal(origin.id(), "TERM");
    assert_eq!(expect_exit(&mut origin), Some(0));
    assert!(asked.elapsed() < Duration::from_secs(10));
    // Nobody but those who start it need know of it.
    let help = project.run("--help").expect_success();
    let is_told = |line: &str| line.trim_start().starts_with("origin ");
    assert!(!help.lines().any(is_told), "{help}");
}
