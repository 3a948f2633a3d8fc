//! Asks the cases, in two passes and a last word: on a loaded machine a right
//! server may be late, so what ends by silence or is not done in time is asked again.

use super::case::{Case, Wrong};
use super::connection::{Patience, Peer};
use super::omits::Omits;
use std::net::SocketAddr;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};
use wsbench_schema::{Finding, Level, Verdict};

/// How long a server is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Silence that ends a case of the first pass, in which one follows another.
    pub silence: Duration,
    /// The first pass ends by then, or when so many cases were late.
    pub first_pass: Duration,
    pub late_most: usize,
    /// Silence that ends a case of the second pass, in which all that is left is
    /// asked side by side.
    pub long_silence: Duration,
    /// Both passes together end by then, from the beginning of the first, even if a
    /// server never stops sending.
    pub both_passes: Duration,
    /// So few musts that are late in both passes are asked a last time, each
    /// alone, for so long a silence and for so long in all: nobody is refused for a
    /// busy machine. A server that is silent by nature is late more often.
    pub last_most: usize,
    pub last_silence: Duration,
    pub last: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            silence: Duration::from_millis(400),
            first_pass: Duration::from_secs(6),
            late_most: 8,
            long_silence: Duration::from_secs(2),
            both_passes: Duration::from_secs(10),
            last_most: 3,
            last_silence: Duration::from_secs(8),
            last: Duration::from_secs(10),
        }
    }
}

/// A finding for each case, in their order.
pub fn all(
    addr: SocketAddr,
    path: &str,
    cases: &[Case],
    omits: &Omits,
    limits: Limits,
) -> Vec<Finding> {
    let mut findings: Vec<Option<Finding>> = cases
        .iter()
        .map(|case| omits.has(case).then(|| finding(case, Verdict::Omitted)))
        .collect();
    let begin = Instant::now();
    let end = begin + limits.first_pass;
    let patience = Patience {
        silence: limits.silence,
        end,
    };
    let mut late = 0;
    for (case, found) in cases.iter().zip(&mut findings) {
        if late == limits.late_most || Instant::now() >= end {
            break;
        }
        if found.is_none() {
            let (finding, is_late) = ask(addr, path, case, patience);
            *found = (!is_late).then_some(finding);
            late += usize::from(is_late);
        }
    }
    let patience = Patience {
        silence: limits.long_silence,
        end: begin + limits.both_passes,
    };
    let mut findings: Vec<(Finding, bool)> = thread::scope(|scope| {
        let left = cases.iter().zip(findings);
        let asked: Vec<_> = left
            .map(|(case, found)| match found {
                Some(found) => Asked::Found(found),
                None => Asked::Again(scope.spawn(move || ask(addr, path, case, patience))),
            })
            .collect();
        let ended = asked.into_iter().zip(cases).map(|(asked, case)| {
            match asked {
                Asked::Found(found) => (found, false),
                Asked::Again(thread) => thread.join().unwrap_or_else(|_| {
                    // Nothing that a server does may lead there.
                    let seen = "a fault of the examiner".to_owned();
                    (self::asked(case, Verdict::Fail, seen, None), false)
                }),
            }
        });
        ended.collect()
    });
    let late_musts = || {
        let late =
            |(case, (_, late)): &(&Case, &(Finding, bool))| *late && case.level == Level::Must;
        cases.iter().zip(&findings).filter(late).count()
    };
    if late_musts() <= limits.last_most {
        for (case, (found, late)) in cases.iter().zip(&mut findings) {
            if *late && case.level == Level::Must {
                let patience = Patience {
                    silence: limits.last_silence,
                    end: Instant::now() + limits.last,
                };
                *found = ask(addr, path, case, patience).0;
            }
        }
    }
    findings.into_iter().map(|(found, _)| found).collect()
}

/// A case in the second pass.
enum Asked<'scope> {
    Found(Finding),
    Again(ScopedJoinHandle<'scope, (Finding, bool)>),
}

/// The finding, and whether the case ended by silence or with its time.
fn ask(addr: SocketAddr, path: &str, case: &Case, patience: Patience) -> (Finding, bool) {
    let peer = Peer::new(addr, path, patience);
    match (case.ask)(&peer) {
        Ok(()) => {
            let seen = Finding::AS_EXPECTED.to_owned();
            (asked(case, Verdict::Pass, seen, peer.sent()), false)
        }
        Err(Wrong { seen, late }) => (asked(case, Verdict::Fail, seen, peer.sent()), late),
    }
}

fn asked(case: &Case, verdict: Verdict, seen: String, sent: Option<String>) -> Finding {
    Finding {
        seen: Some(seen),
        sent,
        ..finding(case, verdict)
    }
}

fn finding(case: &Case, verdict: Verdict) -> Finding {
    Finding {
        group: case.group.to_owned(),
        name: case.name.clone(),
        level: case.level,
        verdict,
        expected: case.expected.clone(),
        seen: None,
        sent: None,
    }
}
