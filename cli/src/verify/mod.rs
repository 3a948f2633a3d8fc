//! Whether a server answers rightly. Cases stand in groups; each is one
//! connection and says what it expected and what it saw.

mod connection;
mod echo;
#[cfg(test)]
mod wrong;

use connection::Seen;
pub use connection::{Connection, Kind, Message, masked_frame};
use serde::Serialize;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A case that takes longer is repeated, or has failed.
const CASE_WITHIN: Duration = Duration::from_secs(2);
/// What is left undone after this time has failed.
const EXAMINATION_WITHIN: Duration = Duration::from_secs(10);

/// What follows from a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(
    dead_code,
    reason = "the echo group has only musts; further groups have all three"
)]
pub enum Level {
    /// The server is wrong, and its figures mean nothing.
    Must,
    /// The server departs from the standard where an echo does not need it.
    Should,
    /// Worth knowing.
    Note,
}

/// What is asked on a fresh connection; the error is what was seen instead.
type Question = Box<dyn Fn(&mut Connection) -> Seen<()>>;

/// One thing that a server is asked to do.
pub struct Case {
    group: &'static str,
    name: String,
    level: Level,
    /// In words: "a binary message of 125 bytes, as it was sent".
    expected: String,
    run: Question,
}

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// As expected.
    Pass,
    /// Not as expected.
    Fail {
        /// In words.
        expected: String,
        /// In words.
        seen: String,
    },
}

/// A case and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Cases of one kind.
    pub group: &'static str,
    /// Unique within the group.
    pub name: String,
    /// What follows from a failure.
    pub level: Level,
    /// How it ended.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// All findings about one server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Examination {
    /// In the order in which the cases ran.
    pub findings: Vec<Finding>,
}

/// Asks the server at that address everything, in ten seconds, and at most twice
/// that if cases had to be repeated.
pub fn examine(addr: SocketAddr, path: &str) -> Examination {
    examine_within(addr, path, &echo::cases(), CASE_WITHIN, EXAMINATION_WITHIN)
}

fn examine_within(
    addr: SocketAddr,
    path: &str,
    cases: &[Case],
    case_within: Duration,
    within: Duration,
) -> Examination {
    let begin = Instant::now();
    let mut patience = Patience {
        case_within,
        end: begin + within,
        latest: begin + 2 * within,
        repeats: true,
    };
    let findings = cases.iter().map(|case| Finding {
        group: case.group,
        name: case.name.clone(),
        level: case.level,
        verdict: match patience.ask(|deadline| {
            let mut connection = Connection::open(addr, path, deadline)?;
            (case.run)(&mut connection)
        }) {
            Ok(()) => Verdict::Pass,
            Err(seen) => Verdict::Fail {
                expected: case.expected.clone(),
                seen,
            },
        },
    });
    Examination {
        findings: findings.collect(),
    }
}

/// How long a server is waited for. On a loaded machine a right one may be late:
/// a case that ends by the deadline is repeated once, until one is late twice.
struct Patience {
    case_within: Duration,
    /// Of all cases; a repetition puts it off.
    end: Instant,
    /// As far as it can be put off.
    latest: Instant,
    /// Whether a case that is late is repeated.
    repeats: bool,
}

impl Patience {
    fn ask(&mut self, question: impl Fn(Instant) -> Seen<()>) -> Seen<()> {
        let begin = Instant::now();
        if begin >= self.end {
            return Err("not tried: the time for all cases was over".into());
        }
        let deadline = self.end.min(begin + self.case_within);
        let seen = question(deadline);
        if seen.is_ok() || Instant::now() < deadline || !self.repeats {
            return seen;
        }
        self.end = self.latest.min(self.end + self.case_within);
        let deadline = self.end.min(Instant::now() + self.case_within);
        let seen = question(deadline);
        self.repeats = seen.is_ok() || Instant::now() < deadline;
        seen
    }
}

impl Finding {
    /// Whether it is as expected.
    pub fn is_pass(&self) -> bool {
        self.verdict == Verdict::Pass
    }
}

impl Examination {
    /// Whether the server may be measured: no `must` failed.
    pub fn passed(&self) -> bool {
        self.failures().all(|finding| finding.level != Level::Must)
    }

    /// What was not as expected, of any level.
    pub fn failures(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| !finding.is_pass())
    }

    /// Cases passed of all: `23/23`.
    pub fn summary(&self) -> String {
        let all = self.findings.len();
        format!("{}/{all}", all - self.failures().count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(level: Level, pass: bool) -> Finding {
        let (expected, seen) = ("yes".into(), "no".into());
        Finding {
            group: "echo",
            name: "one".into(),
            level,
            verdict: if pass {
                Verdict::Pass
            } else {
                Verdict::Fail { expected, seen }
            },
        }
    }

    #[test]
    fn only_a_failed_must_fails_a_server() {
        let of = |findings: Vec<Finding>| Examination { findings };
        let all_pass = of(vec![finding(Level::Must, true)]);
        assert!(all_pass.passed());
        assert_eq!(all_pass.summary(), "1/1");
        let should = of(vec![
            finding(Level::Should, false),
            finding(Level::Note, false),
        ]);
        assert!(should.passed());
        assert_eq!(should.summary(), "0/2");
        let must = of(vec![
            finding(Level::Should, false),
            finding(Level::Must, false),
        ]);
        assert!(!must.passed());
    }

    #[test]
    fn a_finding_is_flat_json() {
        let json = serde_json::to_value(finding(Level::Must, false)).unwrap();
        let expected = serde_json::json!({
            "group": "echo", "name": "one", "level": "must",
            "verdict": "fail", "expected": "yes", "seen": "no",
        });
        assert_eq!(json, expected);
    }
}
