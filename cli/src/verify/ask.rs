//! Asks the cases, in two passes: on a loaded machine a right server may be late,
//! so what ends by silence is asked again.

use super::case::{Case, Wrong};
use super::connection::{Patience, Peer};
use super::omits::Omits;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};
use wsbench_schema::{Finding, Verdict};

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
    /// The second pass ends by then, even if a server never stops sending.
    pub second_pass: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            silence: Duration::from_millis(400),
            first_pass: Duration::from_secs(6),
            late_most: 8,
            long_silence: Duration::from_secs(3),
            second_pass: Duration::from_secs(8),
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
    let end = Instant::now() + limits.first_pass;
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
            *found = ask(addr, path, case, patience).ok();
            late += usize::from(found.is_none());
        }
    }
    let patience = Patience {
        silence: limits.long_silence,
        end: Instant::now() + limits.second_pass,
    };
    thread::scope(|scope| {
        let left = cases.iter().zip(findings);
        let asked: Vec<_> = left
            .map(|(case, found)| match found {
                Some(found) => Err(found),
                None => Ok(scope.spawn(move || ask(addr, path, case, patience))),
            })
            .collect();
        let ended = asked.into_iter().zip(cases).map(|(asked, case)| {
            match asked {
                Err(found) => found,
                Ok(thread) => match thread.join() {
                    Ok(Ok(found) | Err(found)) => found,
                    // Nothing that a server does may lead there.
                    Err(_) => failed(case, "a fault of the examiner".into(), None),
                },
            }
        });
        ended.collect()
    })
}

/// The error is the finding of a case that ended by silence.
fn ask(addr: SocketAddr, path: &str, case: &Case, patience: Patience) -> Result<Finding, Finding> {
    let peer = Peer::new(addr, path, patience);
    match (case.ask)(&peer) {
        Ok(()) => Ok(finding(case, Verdict::Pass)),
        Err(Wrong { seen, late }) => {
            let failed = failed(case, seen, peer.sent());
            if late { Err(failed) } else { Ok(failed) }
        }
    }
}

fn failed(case: &Case, seen: String, sent: Option<String>) -> Finding {
    Finding {
        seen: Some(seen),
        sent,
        ..finding(case, Verdict::Fail)
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
