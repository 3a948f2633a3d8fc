//! Scripted servers, honest and wrong in one way each, and what the examiner says
//! of them: no case may be one that nothing can fail, or that nothing can pass.

mod lapse;
mod parse;
mod server;
mod session;
mod table;
mod upgrade;

use super::ask::{self, Limits};
use super::case::Case;
use super::omits::Omits;
use lapse::Lapse;
use server::Scripted;
use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};
use wsbench_schema::{Examination, Finding, SubjectId, Suite, Verdict};

/// Threads that examine at a time.
const AT_ONCE: usize = 8;

/// More time than a real server is given: tests run side by side.
fn patient() -> Limits {
    Limits {
        silence: Duration::from_secs(2),
        long_silence: Duration::from_secs(10),
        first_pass: Duration::from_secs(60),
        both_passes: Duration::from_secs(120),
        ..Limits::default()
    }
}

/// For servers whose lapse is silence.
fn short() -> Limits {
    Limits {
        silence: Duration::from_millis(100),
        long_silence: Duration::from_millis(300),
        first_pass: Duration::from_secs(1),
        both_passes: Duration::from_secs(2),
        last_silence: Duration::from_millis(400),
        last: Duration::from_millis(500),
        ..Limits::default()
    }
}

fn examine(addr: SocketAddr, cases: &[Case], limits: Limits) -> Examination {
    let subject = SubjectId {
        name: "scripted".into(),
        variant: None,
        version: "scripted 1".into(),
        language: "Rust".into(),
    };
    let mut examination = Examination::blank(subject, None, 0);
    examination.findings = ask::all(addr, "/ws", cases, &Omits::default(), limits);
    examination
}

fn cases_of(path: &str) -> Vec<Case> {
    let mut cases = super::cases();
    cases.retain(|case| path_of(case) == path);
    cases
}

fn path_of(case: &Case) -> String {
    format!("{}/{}", case.group, case.name)
}

/// The echo group, less what takes long.
fn light_echo() -> Vec<Case> {
    let mut cases = super::echo::cases();
    cases.retain(|case| !case.name.contains("16") && !case.name.contains("10000"));
    cases
}

fn names(findings: impl Iterator<Item = String>) -> BTreeSet<String> {
    findings.collect()
}

fn failed(examination: &Examination) -> BTreeSet<String> {
    names(examination.failures().map(|finding| finding.name.clone()))
}

fn seen(examination: &Examination, name: &str) -> String {
    let named = |finding: &&Finding| finding.name == name;
    let finding = examination.findings.iter().find(named).unwrap();
    finding.seen.clone().unwrap_or("nothing".into())
}

/// What fails in the echo group.
#[track_caller]
fn echoes_fail_but(lapse: Lapse, passed: &[&str]) -> Examination {
    let examination = examine(Scripted::start(lapse).addr, &light_echo(), patient());
    let mut expected = names(light_echo().into_iter().map(|case| case.name));
    for name in passed {
        assert!(expected.remove(*name), "no case is named {name}");
    }
    assert_eq!(
        failed(&examination),
        expected,
        "{lapse:?}: {examination:#?}"
    );
    assert!(!examination.passed());
    examination
}

#[test]
fn an_honest_server_passes_every_case() {
    let server = Scripted::start(Lapse::None);
    let examination = examine(server.addr, &super::cases(), patient());
    assert_eq!(failed(&examination), BTreeSet::new(), "{examination:#?}");
    assert!(examination.findings.len() >= 60);
    assert_eq!(examination.omitted().count(), 0);
    let by_path = names(examination.findings.iter().map(Finding::path));
    assert_eq!(
        by_path.len(),
        examination.findings.len(),
        "names are unique"
    );
}

#[test]
fn every_case_is_failed_by_the_server_made_for_it() {
    let table = table::made_for();
    let made_for = names(table.iter().map(|(path, _)| path.clone()));
    let all = names(super::cases().iter().map(path_of));
    assert_eq!(made_for, all);
    let left = Mutex::new(table.into_iter());
    let passed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = left.lock().unwrap().next();
                    let Some((path, lapse)) = next else { break };
                    if let Some(complaint) = not_found(&path, lapse) {
                        passed.lock().unwrap().push(complaint);
                    }
                }
            });
        }
    });
    let passed = passed.into_inner().unwrap();
    assert!(passed.is_empty(), "{passed:#?}");
}

/// Why the case does not find the lapse, if it does not.
fn not_found(path: &str, lapse: Lapse) -> Option<String> {
    // Where silence is the fault it is not waited for long; anywhere else it is no
    // finding, but a server that was late.
    let silent = matches!(
        lapse,
        Lapse::OneAtATime
            | Lapse::OneFrameARead
            | Lapse::NoPongWithin
            | Lapse::NoPongTo(_)
            | Lapse::PingTakesRest
            | Lapse::FirstPing
            | Lapse::OpenAfterClose
            | Lapse::IgnoresFin
            | Lapse::Unlimited
    );
    let limits = if silent { short() } else { patient() };
    let examination = examine(Scripted::start(lapse).addr, &cases_of(path), limits);
    let finding = &examination.findings[0];
    let seen = finding.seen.as_deref().unwrap_or("");
    let found = finding.verdict == Verdict::Fail && (silent || !is_late(seen));
    let told = finding.sent.is_some() && !finding.expected.is_empty() && !seen.is_empty();
    (!found || !told).then(|| format!("{lapse:?}: {}", finding.line()))
}

fn is_late(seen: &str) -> bool {
    seen.starts_with("silence") || seen.starts_with("not done")
}

#[test]
fn an_answer_in_fragments_with_a_ping_between_is_right() {
    let server = Scripted::start(Lapse::AnswersInFragments);
    let examination = examine(server.addr, &light_echo(), patient());
    assert_eq!(failed(&examination), BTreeSet::new(), "{examination:#?}");
}

#[test]
fn a_wrong_byte_or_length_fails_every_echo() {
    // The message that ends each case has bytes too, so the empty ones fail there.
    let wrong = echoes_fail_but(Lapse::FlipsAll, &[]);
    assert_eq!(
        seen(&wrong, "binary of 125 bytes"),
        "0x3c for 0x3d at byte 124 of 125"
    );
    let empty = seen(&wrong, "text of 0 bytes");
    assert!(empty.starts_with("a right answer, and at the next"));
    let more = echoes_fail_but(Lapse::OneByteMore, &[]);
    assert_eq!(
        seen(&more, "binary of 0 bytes"),
        "a message of 1 bytes for one of 0"
    );
    let less = echoes_fail_but(Lapse::OneByteLess, &[]);
    assert_eq!(
        seen(&less, "text of 126 bytes"),
        "a message of 125 bytes for one of 126"
    );
}

#[test]
fn a_wrong_type_fails_every_echo() {
    // Each case ends with a text.
    let binary = echoes_fail_but(Lapse::AlwaysBinary, &[]);
    assert_eq!(
        seen(&binary, "types kept in turn"),
        "a binary message for a text one"
    );
}

#[test]
fn long_messages_cut_short_fail_the_long_cases_alone() {
    let server = Scripted::start(Lapse::Short16);
    let examination = examine(server.addr, &light_echo(), patient());
    let long = [
        "text of 65536 bytes",
        "text of 1048576 bytes",
        "binary of 65536 bytes",
        "binary of 1048576 bytes",
        "frame cut in its header",
    ];
    let long = names(long.iter().map(|name| (*name).to_owned()));
    assert_eq!(failed(&examination), long, "{examination:#?}");
    assert_eq!(
        seen(&examination, "frame cut in its header"),
        "a message of 65535 bytes for one of 65536, cut behind byte 1 of 14"
    );
}

#[test]
fn what_no_server_may_send_fails_every_echo_and_is_told() {
    for (lapse, name, told) in [
        (Lapse::Twice, "binary of 1 bytes", "a right answer, and at"),
        (Lapse::Closes, "text of 1 bytes", "the connection "),
        (
            Lapse::ClosesWithCode,
            "text of 1 bytes",
            "a close frame (1011 tired)",
        ),
        (
            Lapse::Masks,
            "text of 1 bytes",
            "a masked frame, which a server must not send",
        ),
        (
            Lapse::ReservedBit,
            "text of 1 bytes",
            "a frame with reserved bits set",
        ),
        (
            Lapse::BadStatus,
            "text of 1 bytes",
            "the handshake answered with `HTTP/1.1 404 Not Found`",
        ),
        (
            Lapse::BadAccept,
            "text of 1 bytes",
            "a handshake with Sec-WebSocket-Accept: `",
        ),
    ] {
        let seen = seen(&echoes_fail_but(lapse, &[]), name);
        assert!(seen.starts_with(told), "{lapse:?}: {seen}");
    }
}

#[test]
fn silence_ends_in_bounded_time() {
    let begin = Instant::now();
    let examination = examine(Scripted::start(Lapse::Silent).addr, &light_echo(), short());
    let elapsed = begin.elapsed();
    assert!(elapsed < Duration::from_secs(8), "{elapsed:?}");
    assert_eq!(examination.failures().count(), light_echo().len());
    for name in ["text of 0 bytes", "types kept in turn"] {
        let seen = seen(&examination, name);
        assert_eq!(seen, "silence while waiting for an answer");
    }
}

#[test]
fn who_sends_without_end_is_wrong_at_once() {
    const UNASKED: &str = "more than 1048576 bytes that nobody asked for";
    const PINGS: &str = "more than 100 pings";
    const CLAIM: &str = "a frame that claims to be 1099511627776 bytes long";
    /// The sockets' buffers on both sides are in it.
    const WRITTEN_MOST_BYTES: usize = 64 << 20;
    let terabyte: &[u8] = &[0x82, 127, 0, 0, 1, 0, 0, 0, 0, 0];
    for (first, then, case, told) in [
        (terabyte, &b"x"[..], "echo/binary of 125 bytes", CLAIM),
        (terabyte, b"x", "echo/binary of 16777216 bytes", CLAIM),
        (terabyte, b"x", "refused/length of 1 TiB", CLAIM),
        (b"\x01\x01x", b"\x00\x01x", "echo/text of 1 bytes", UNASKED),
        (b"\x01\x00", b"\x00\x00", "echo/text of 0 bytes", UNASKED),
        (b"", b"\x8a\x00", "echo/text of 1 bytes", UNASKED),
        (b"", b"\x8a\x00", "close/code 1000", UNASKED),
        (b"", b"\x89\x00", "echo/text of 1 bytes", PINGS),
        (b"", b"\x89\x00", "echo/10000 frames without reading", PINGS),
        (b"", b"\x89\x00", "close/code 1000", PINGS),
        (b"", b"\x89\x00", "refused/opcode 3", PINGS),
        (b"", b"x", "handshake/pipelined second request", UNASKED),
    ] {
        let server = Scripted::start(Lapse::Endless(first, then));
        let examination = examine(server.addr, &cases_of(case), patient());
        let seen = examination.findings[0].seen.clone().unwrap();
        assert!(seen.contains(told), "{case}: {seen}");
        assert_eq!(server.connections(), 1, "{case} was asked again");
        let written = server.endless_bytes();
        assert!(written < WRITTEN_MOST_BYTES, "{case}: {written}");
    }
}

#[test]
fn both_passes_end_in_time_together_and_say_that_it_was_over() {
    let limits = Limits {
        silence: Duration::from_secs(1),
        long_silence: Duration::from_secs(2),
        first_pass: Duration::from_secs(3),
        both_passes: Duration::from_secs(4),
        last_most: 0,
        ..Limits::default()
    };
    let examined = |lapse, cases: &[Case]| {
        let begin = Instant::now();
        let examination = examine(Scripted::start(lapse).addr, cases, limits);
        let elapsed = begin.elapsed();
        // Each by itself would be 3 s and 4 s.
        assert!(elapsed < Duration::from_millis(6500), "{elapsed:?}");
        assert!(examination.failures().count() > 0);
        for finding in examination.failures() {
            let seen = finding.seen.as_deref().unwrap();
            let over = "not done when the time was over (last: ";
            assert!(seen.contains(over), "{}", finding.line());
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| examined(Lapse::Drips(60), &light_echo()));
        let split = "handshake/request split at every byte";
        scope.spawn(|| examined(Lapse::Slow(40), &cases_of(split)));
    });
}

#[test]
fn a_slow_server_passes_what_takes_it_less_than_the_last_word() {
    let must = cases_of("echo/many frames in one segment");
    let slow = Limits {
        first_pass: Duration::from_millis(200),
        both_passes: Duration::from_millis(400),
        last_silence: Duration::from_secs(10),
        last: Duration::from_secs(30),
        ..patient()
    };
    let server = Scripted::start(Lapse::Slow(20));
    let examination = examine(server.addr, &must, slow);
    assert!(examination.passed(), "{examination:#?}");
    assert_eq!(server.connections(), 3);
    let last = Duration::from_millis(400);
    let examination = examine(server.addr, &must, Limits { last, ..slow });
    let seen = seen(&examination, "many frames in one segment");
    let over = "not done when the time was over (last: ";
    assert!(seen.starts_with(over), "{seen}");
}

#[test]
fn a_case_that_ended_by_silence_is_asked_again() {
    let examine = |lapse| {
        let server = Scripted::start(lapse);
        let limits = Limits {
            silence: Duration::from_secs(1),
            ..patient()
        };
        let examination = examine(server.addr, &light_echo(), limits);
        (failed(&examination).len(), server.connections())
    };
    let all = light_echo().len();
    assert_eq!(examine(Lapse::SilentTwice), (0, all + 2));
    // Any other failure is one at once.
    assert_eq!(examine(Lapse::FlipsAll), (all, all));
}

#[test]
fn a_must_that_ended_by_silence_twice_is_asked_a_last_time() {
    let server = Scripted::start(Lapse::SilentAtFirst);
    let must = cases_of("echo/text of 0 bytes");
    let examination = examine(server.addr, &must, short());
    assert_eq!((failed(&examination).len(), server.connections()), (0, 3));
    // Of those that are silent by nature there are more.
    let silent = Scripted::start(Lapse::Silent);
    let all = light_echo();
    let examination = examine(silent.addr, &all, short());
    assert_eq!(failed(&examination).len(), all.len());
    assert!(silent.connections() <= 2 * all.len());
}

#[test]
fn what_is_omitted_is_not_asked() {
    let server = Scripted::start(Lapse::None);
    let omits = ["control", "close/RST"].map(str::to_owned);
    let omits = Omits::read(Suite::Websocket, &omits).unwrap();
    let mut cases = super::control::cases();
    cases.extend(cases_of("close/RST"));
    cases.extend(cases_of("close/code 1000"));
    let findings = ask::all(server.addr, "/ws", &cases, &omits, patient());
    let verdicts: Vec<_> = findings.iter().map(|finding| finding.verdict).collect();
    let (last, omitted) = verdicts.split_last().unwrap();
    assert!(omitted.iter().all(|verdict| *verdict == Verdict::Omitted));
    assert_eq!((*last, server.connections()), (Verdict::Pass, 1));
}

#[test]
fn a_failure_shows_what_was_sent() {
    let server = Scripted::start(Lapse::Unmasked);
    let cases = cases_of("refused/frame without a mask");
    let examination = examine(server.addr, &cases, patient());
    let line = examination.first_failure().unwrap().line();
    let told = "refused/frame without a mask (should): expected a close frame or the end of \
                the connection; saw a text message of 5 bytes; sent 81 05 48 65 6c 6c 6f 89 8c ";
    assert!(line.starts_with(told), "{line}");
    assert!(line.ends_with(" (43 bytes)"), "{line}");
}

#[test]
fn a_pass_shows_all_of_a_request() {
    let server = Scripted::start(Lapse::None);
    let examination = examine(server.addr, &cases_of("handshake/good"), patient());
    let finding = &examination.findings[0];
    assert_eq!(finding.seen.as_deref(), Some(Finding::AS_EXPECTED));
    let sent = finding.sent.as_deref().unwrap();
    assert!(sent.starts_with("47 45 54 20 2f 77 73 20"), "{sent}");
    assert!(sent.contains("0d 0a 0d 0a 81 93 "), "{sent}");
}

#[test]
fn nobody_there_is_told_at_once() {
    let addr = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let begin = Instant::now();
    let examination = examine(addr, &super::cases(), Limits::default());
    assert!(begin.elapsed() < Duration::from_secs(4));
    let seen = seen(&examination, "text of 0 bytes");
    assert!(
        seen.starts_with(&format!("cannot connect to {addr}: ")),
        "{seen}"
    );
}
