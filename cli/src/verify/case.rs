//! A case: what a server is asked, and how the answer is told.

use super::connection::Peer;
use wsbench_schema::Level;

/// What was seen in place of what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// In words.
    pub seen: String,
    /// It was waiting that ended: a right server on a loaded machine may be late.
    pub late: bool,
}

impl Wrong {
    /// A wrong answer.
    pub fn new(seen: impl Into<String>) -> Self {
        let seen = seen.into();
        Self { seen, late: false }
    }

    /// No answer in time.
    pub fn late(seen: impl Into<String>) -> Self {
        let seen = seen.into();
        Self { seen, late: true }
    }

    /// The same in other words.
    pub fn told(self, tell: impl FnOnce(String) -> String) -> Self {
        let seen = tell(self.seen);
        Self { seen, ..self }
    }
}

/// As expected, or what was seen instead.
pub type Outcome<T = ()> = Result<T, Wrong>;

/// What is asked, on connections that it opens itself.
pub type Question = Box<dyn Fn(&Peer<'_>) -> Outcome + Send + Sync>;

/// One thing that a server is asked to do, as the examination of its suite asks it.
pub struct Case<Q = Question> {
    pub group: &'static str,
    /// Unique within the group.
    pub name: String,
    pub level: Level,
    /// In words: "a binary message of 125 bytes, as it was sent".
    pub expected: String,
    pub ask: Q,
}

/// Names of the groups, in their order.
pub fn groups<Q>(cases: &[Case<Q>]) -> Vec<&'static str> {
    let mut groups: Vec<_> = cases.iter().map(|case| case.group).collect();
    groups.dedup();
    groups
}

/// A group's cases as they are written down.
pub struct Group<Q = Question> {
    name: &'static str,
    cases: Vec<Case<Q>>,
}

impl<Q> Group<Q> {
    /// One without cases.
    pub fn new(name: &'static str) -> Self {
        let cases = Vec::new();
        Self { name, cases }
    }

    /// Adds a case behind the others.
    pub fn put(
        &mut self,
        level: Level,
        name: impl Into<String>,
        expected: impl Into<String>,
        ask: Q,
    ) {
        self.cases.push(Case {
            group: self.name,
            name: name.into(),
            level,
            expected: expected.into(),
            ask,
        });
    }

    /// All of them.
    pub fn cases(self) -> Vec<Case<Q>> {
        self.cases
    }
}

impl Group {
    /// Adds a case behind the others.
    pub fn add(
        &mut self,
        level: Level,
        name: impl Into<String>,
        expected: impl Into<String>,
        ask: impl Fn(&Peer<'_>) -> Outcome + Send + Sync + 'static,
    ) {
        self.put(level, name, expected, Box::new(ask));
    }
}
