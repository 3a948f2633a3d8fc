//! Scripted relays and echo servers, honest and wrong in one way each, and what
//! the examiner says of them: no case may be one that nothing can fail, or that
//! nothing can pass.

mod eagain;
mod fault;
mod scripted;
mod table;

use super::ask::{Examiner, Limits, Question};
use super::scene::Scale;
use super::{Kind, Upstream};
use crate::verify::case::Case;
use crate::verify::omits::Omits;
use fault::Fault;
use scripted::Scripted;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};
use wsbench_schema::{Finding, Suite, Verdict};

/// Threads that examine at a time.
const AT_ONCE: usize = 8;

const ATTEMPTS: usize = 3;

/// Less than of a real subject, and more patience: tests run side by side.
const SCALE: Scale = Scale {
    bulk_bytes: 12 << 20,
    offered_bytes: 24 << 20,
    crowd: 150,
    stalled: 24,
    quiet: Duration::from_millis(150),
};

fn patient() -> Limits {
    Limits {
        silence: Duration::from_secs(10),
        first_pass: Duration::from_secs(60),
        long_silence: Duration::from_secs(20),
        both_passes: Duration::from_secs(100),
        case: Duration::from_secs(60),
        ..Limits::default()
    }
}

/// For those whose fault is silence.
fn short() -> Limits {
    Limits {
        silence: Duration::from_millis(400),
        long_silence: Duration::from_millis(600),
        first_pass: Duration::from_secs(5),
        both_passes: Duration::from_secs(8),
        last_most: 0,
        ..Limits::default()
    }
}

fn examine(kind: Kind, fault: Fault, cases: &[Case<Question>], limits: Limits) -> Vec<Finding> {
    let upstream = match kind {
        Kind::Relay => Some(Upstream::bind("127.0.0.1").unwrap()),
        Kind::Echo => None,
    };
    let upstream = upstream.as_ref();
    let scripted = Scripted::start(fault, upstream);
    let examiner = Examiner {
        addresses: &scripted.addresses,
        upstream,
        resources: &scripted,
        scale: SCALE,
        limits,
    };
    examiner.ask(cases, &Omits::default())
}

fn lines(findings: &[Finding]) -> Vec<String> {
    let failed = findings.iter().filter(|finding| finding.is_failure());
    failed.map(Finding::line).collect()
}

#[test]
fn honest_ones_pass_every_case() {
    for (kind, count) in [(Kind::Relay, 45), (Kind::Echo, 25)] {
        let findings = examine(kind, Fault::None, &kind.cases(), patient());
        assert_eq!(lines(&findings), Vec::<String>::new());
        assert!(findings.len() >= count, "{}", findings.len());
        let paths: BTreeSet<String> = findings.iter().map(Finding::path).collect();
        assert_eq!(paths.len(), findings.len(), "names are unique");
    }
}

#[test]
fn every_case_is_failed_by_one_made_for_it() {
    let mut rows = Vec::new();
    for kind in [Kind::Relay, Kind::Echo] {
        let table = table::made_for(kind);
        let cases = kind.cases();
        let all: BTreeSet<String> = cases.iter().map(path_of).collect();
        let made_for: BTreeSet<String> = table.iter().map(|(path, _)| path.clone()).collect();
        assert_eq!(made_for, all);
        rows.extend(table.into_iter().map(|(path, fault)| (kind, path, fault)));
    }
    let left = Mutex::new(rows.into_iter());
    let missed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = left.lock().unwrap().next();
                    let Some((kind, path, fault)) = next else {
                        break;
                    };
                    let mut cases = kind.cases();
                    // Something must have been there to be left.
                    let before = path.starts_with("left/").then_some("many/at once");
                    let is_asked = |asked: &str| asked == path || Some(asked) == before;
                    cases.retain(|case| is_asked(&path_of(case)));
                    // On a busy machine a fault may have had no occasion.
                    let found = (0..ATTEMPTS).any(|_| {
                        let findings = examine(kind, fault, &cases, short());
                        findings[findings.len() - 1].verdict == Verdict::Fail
                    });
                    if !found {
                        missed
                            .lock()
                            .unwrap()
                            .push(format!("{kind:?} {fault:?}: {path}"));
                    }
                }
            });
        }
    });
    let missed = missed.into_inner().unwrap();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn silence_ends_in_bounded_time() {
    for kind in [Kind::Relay, Kind::Echo] {
        let begin = Instant::now();
        let limits = Limits {
            silence: Duration::from_millis(100),
            first_pass: Duration::from_secs(1),
            long_silence: Duration::from_millis(200),
            both_passes: Duration::from_secs(2),
            last_most: 0,
            ..Limits::default()
        };
        let findings = examine(kind, Fault::Silent, &kind.cases(), limits);
        let elapsed = begin.elapsed();
        assert!(elapsed < Duration::from_secs(12), "{elapsed:?}");
        let left = lines(&findings).len();
        // Of what is held at the end nothing is more than before.
        assert!(left >= findings.len() - 5, "{left} of {}", findings.len());
        let unasked = lines(&findings)
            .iter()
            .filter(|line| line.contains("no time left to ask it"))
            .count();
        assert!(unasked < findings.len(), "{unasked}");
    }
}

#[test]
fn what_a_manifest_omits_is_of_its_suite_and_no_must() {
    let read = |suite, name: &str| Omits::read(suite, &[name.to_owned()]).map(drop);
    assert_eq!(read(Suite::Relay, "origin/refused: passed on"), Ok(()));
    assert_eq!(read(Suite::Transfer, "left/memory"), Ok(()));
    for (suite, name, told) in [
        (Suite::Relay, "ends", "it is a must"),
        (Suite::Relay, "left/memorie", "did you mean `left/memory`?"),
        (
            Suite::Transfer,
            "origin/refused: passed on",
            "which is no group",
        ),
        (Suite::Websocket, "left/memory", "which is no group"),
    ] {
        let error = read(suite, name).unwrap_err();
        assert!(error.contains(told), "{error}");
    }
}

fn path_of(case: &Case<Question>) -> String {
    format!("{}/{}", case.group, case.name)
}
