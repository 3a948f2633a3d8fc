//! Asks the cases, one after another, since what a subject holds is one of the
//! questions. On a loaded machine a right subject may be late, so what ends by silence
//! is asked again, with more patience.

use super::flow::{Patience, Scatter};
use super::resources::Resources;
use super::scene::{Scale, Scene};
use super::tape::Tape;
use super::upstream::Upstream;
use crate::verify::case::{Case, Outcome, Wrong};
use crate::verify::omits::Omits;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::{Duration, Instant};
use wsbench_schema::{Finding, Level, Verdict};

/// What a case does.
pub type Ask = Box<dyn Fn(&Scene<'_>) -> Outcome + Send + Sync>;

/// A case's question.
pub struct Question {
    pub ask: Ask,
    /// Mostly waits, on a port of its own: asked beside the others.
    pub aside: bool,
}

/// How long a subject is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Silence that ends a case of the first pass.
    pub silence: Duration,
    /// Once a case was late the first pass ends by then, or when so many were.
    pub first_pass: Duration,
    pub late_most: usize,
    /// The same of the second pass, in which all that is left is asked.
    pub long_silence: Duration,
    pub both_passes: Duration,
    /// Any case ends by then.
    pub case: Duration,
    /// And so does a first pass in which none was late: on a busy machine.
    pub longest: Duration,
    /// So few musts that were late in both are asked a last time.
    pub last_most: usize,
    pub last_silence: Duration,
    pub last: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            silence: Duration::from_secs(1),
            first_pass: Duration::from_secs(6),
            late_most: 3,
            long_silence: Duration::from_secs(3),
            both_passes: Duration::from_secs(11),
            case: Duration::from_secs(6),
            longest: Duration::from_secs(40),
            last_most: 1,
            last_silence: Duration::from_secs(3),
            last: Duration::from_secs(4),
        }
    }
}

/// Who asks, whom and how.
pub struct Examiner<'a> {
    pub addresses: &'a [SocketAddr],
    pub upstream: Option<&'a Upstream>,
    pub resources: &'a dyn Resources,
    pub scale: Scale,
    pub limits: Limits,
}

/// How a case was found: and whether it ended by silence, or with its time.
type Found = Option<(Finding, bool)>;

/// Of the bytes that are sent.
const SEED: u64 = 20_261_130;

impl Examiner<'_> {
    /// A finding for each case, in their order.
    pub fn ask(&self, cases: &[Case<Question>], omits: &Omits) -> Vec<Finding> {
        let begin = Instant::now();
        let limits = self.limits;
        let (tape, serial) = (Tape::new(SEED), AtomicU64::new(1));
        // A subject that cannot be seen fails the cases that look at it again.
        let before = self.resources.held().unwrap_or_default();
        let scatter = match Scatter::new() {
            Ok(scatter) => Arc::new(scatter),
            Err(error) => {
                let seen = format!("the examiner cannot connect to itself: {error}");
                let told = |case| asked(case, Verdict::Fail, seen.clone());
                return cases.iter().map(told).collect();
            }
        };
        let scene = |patience| Scene {
            addresses: self.addresses,
            upstream: self.upstream,
            resources: self.resources,
            tape: &tape,
            scatter: &scatter,
            serial: &serial,
            scale: self.scale,
            before,
            patience,
        };
        let mut found: Vec<Found> = cases
            .iter()
            .map(|case| {
                omits
                    .has(case)
                    .then(|| (finding(case, Verdict::Omitted), false))
            })
            .collect();
        let scene_until = |silence, end: Instant| {
            let end = end.min(Instant::now() + limits.case);
            scene(Patience { silence, end })
        };
        let first = Pass {
            silence: limits.silence,
            end: begin + limits.first_pass,
            longest: begin + limits.longest,
            late_most: limits.late_most,
        };
        first.ask(cases, &mut found, scene_until);
        let both = limits.both_passes;
        // Where the first took its time, the second has what it would have had.
        let end = (begin + both).max(Instant::now() + both.saturating_sub(limits.first_pass));
        let second = Pass {
            silence: limits.long_silence,
            end,
            longest: end,
            late_most: usize::MAX,
        };
        second.ask(cases, &mut found, scene_until);
        let is_late_must = |(case, found): &(&Case<Question>, &mut Found)| {
            let late = found.as_ref().is_none_or(|(_, late)| *late);
            case.level == Level::Must && late
        };
        let late = cases.iter().zip(&mut found).filter(is_late_must);
        let late: Vec<_> = late.take(limits.last_most + 1).collect();
        if late.len() <= limits.last_most {
            for (case, found) in late {
                let silence = limits.last_silence;
                let end = Instant::now() + limits.last;
                *found = Some(ask(case, &scene(Patience { silence, end })));
            }
        }
        let found = cases.iter().zip(found);
        let told = found.map(|(case, found)| match found {
            Some((found, _)) => found,
            None => asked(case, Verdict::Fail, "no time left to ask it".into()),
        });
        told.collect()
    }
}

/// One after another.
struct Pass {
    silence: Duration,
    /// Once a case was late.
    end: Instant,
    /// Before.
    longest: Instant,
    late_most: usize,
}

impl Pass {
    /// Asks what was not found yet, or was late.
    fn ask<'s>(
        &self,
        cases: &[Case<Question>],
        found: &mut [Found],
        scene: impl Fn(Duration, Instant) -> Scene<'s> + Sync,
    ) {
        let left = |found: &Found| found.as_ref().is_none_or(|(_, late)| *late);
        let both = cases.iter().zip(found);
        let (asides, others): (Vec<_>, Vec<_>) = both
            .filter(|(_, found)| left(found))
            .partition(|(case, _)| case.ask.aside);
        thread::scope(|scope| {
            for (case, found) in asides {
                let scene = scene(self.silence, self.end);
                scope.spawn(move || *found = Some(ask(case, &scene)));
            }
            let mut late = 0;
            for (case, found) in others {
                let end = match late {
                    0 => self.longest,
                    _ => self.end,
                };
                if late == self.late_most || Instant::now() >= end {
                    break;
                }
                let answer = ask(case, &scene(self.silence, end));
                late += usize::from(answer.1);
                *found = Some(answer);
            }
        });
    }
}

fn ask(case: &Case<Question>, scene: &Scene<'_>) -> (Finding, bool) {
    match (case.ask.ask)(scene) {
        Ok(()) => {
            let seen = Finding::AS_EXPECTED.to_owned();
            (asked(case, Verdict::Pass, seen), false)
        }
        Err(Wrong { seen, late }) => (asked(case, Verdict::Fail, seen), late),
    }
}

fn asked(case: &Case<Question>, verdict: Verdict, seen: String) -> Finding {
    let seen = Some(seen);
    Finding {
        seen,
        ..finding(case, verdict)
    }
}

fn finding(case: &Case<Question>, verdict: Verdict) -> Finding {
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
