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
    /// The first pass ends by then, or when so many cases were late.
    pub first_pass: Duration,
    pub late_most: usize,
    /// The same of the second pass, in which all that is left is asked.
    pub long_silence: Duration,
    pub both_passes: Duration,
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
        let passes = [
            (limits.silence, limits.first_pass, limits.late_most),
            (limits.long_silence, limits.both_passes, usize::MAX),
        ];
        for (silence, end, late_most) in passes {
            let end = begin + end;
            let scene = scene(Patience { silence, end });
            pass(cases, &mut found, &scene, late_most);
        }
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

/// Asks what was not found yet, or was late.
fn pass(cases: &[Case<Question>], found: &mut [Found], scene: &Scene<'_>, late_most: usize) {
    let left = |found: &Found| found.as_ref().is_none_or(|(_, late)| *late);
    let both = cases.iter().zip(found);
    let (asides, others): (Vec<_>, Vec<_>) = both
        .filter(|(_, found)| left(found))
        .partition(|(case, _)| case.ask.aside);
    thread::scope(|scope| {
        for (case, found) in asides {
            scope.spawn(move || *found = Some(ask(case, scene)));
        }
        let mut late = 0;
        for (case, found) in others {
            if late == late_most || Instant::now() >= scene.patience.end {
                break;
            }
            let answer = ask(case, scene);
            late += usize::from(answer.1);
            *found = Some(answer);
        }
    });
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
