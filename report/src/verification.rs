//! What the examination found: a figure in each row, and below the tables which
//! cases failed and what was not asked. Its texts are the servers', in part.

use crate::text::shortened;
use std::collections::BTreeMap;
use wsbench_schema::{Examination, Finding, Level, Suite};

/// What stands above the section's list: who was asked, and what the levels mean.
pub fn about(suite: Suite) -> String {
    let (who, must, should) = match suite {
        Suite::Websocket => (
            "server",
            "what an echo needs",
            "what RFC 6455 requires beyond that",
        ),
        Suite::Relay => (
            "relay",
            "bytes whole and in order, ends behind them, a stalled connection that harms nobody",
            "what relays in wide use differ in: a reset passed on as a reset, an end that no byte \
             came before, nothing kept for later",
        ),
        Suite::Transfer => (
            "server",
            "every byte back, whole and in order, and a stalled connection that harms nobody",
            "the end of a connection that carried nothing, slow reads when all has ended, nothing \
             kept for later",
        ),
    };
    format!(
        "Each {who} was asked once, before its first trial, on a process of its own. must: {must}; \
         who fails it is not timed, or marked. should: {should}. note: worth knowing."
    )
}

/// Longer texts of a case are in the file of the examination.
const LONGEST: usize = 200;

/// A line of the list, and those that stand under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Who, and how many cases passed.
    pub title: String,
    /// A failing case each, a must first; then what was omitted.
    pub lines: Vec<String>,
}

/// Those who passed everything, in one line; then an item for each other. Of whom
/// nothing is asked, as of the client without a relay, nothing is told.
#[must_use]
pub fn items(examinations: &[Examination]) -> Vec<Item> {
    let asked = examinations
        .iter()
        .filter(|found| !found.findings.is_empty());
    let is_clean = |found: &&Examination| lines(found).is_empty();
    let title = |found: &Examination| format!("{} {}", found.subject.name, found.verified());
    let clean: Vec<String> = asked.clone().filter(is_clean).map(title).collect();
    let mut items = Vec::new();
    if !clean.is_empty() {
        items.push(Item {
            title: format!("passed everything: {}", clean.join(", ")),
            lines: Vec::new(),
        });
    }
    let others = asked.filter(|found| !is_clean(found));
    items.extend(others.map(|found| Item {
        title: title(found),
        lines: lines(found),
    }));
    items
}

fn lines(examination: &Examination) -> Vec<String> {
    let mut failures: Vec<&Finding> = examination.failures().collect();
    failures.sort_by_key(|finding| finding.level);
    let mut lines: Vec<String> = failures.into_iter().map(failure).collect();
    lines.extend(omitted(examination));
    lines
}

fn failure(finding: &Finding) -> String {
    let level = match finding.level {
        Level::Must => "must",
        Level::Should => "should",
        Level::Note => "note",
    };
    let case = finding.path();
    let expected = shortened(&finding.expected, LONGEST);
    let seen = shortened(finding.seen.as_deref().unwrap_or("nothing"), LONGEST);
    format!("{level}: {case}: expected {expected}; saw {seen}")
}

/// `omitted: fragmentation (2 fragments, 10 fragments), close (no code)`.
fn omitted(examination: &Examination) -> Option<String> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for finding in examination.omitted() {
        groups
            .entry(&finding.group)
            .or_default()
            .push(&finding.name);
    }
    let texts: Vec<String> = groups
        .iter()
        .map(|(group, names)| format!("{group} ({})", names.join(", ")))
        .collect();
    (!texts.is_empty()).then(|| format!("omitted: {}", texts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{examination, finding};
    use wsbench_schema::Verdict::{Fail, Omitted, Pass};

    #[test]
    fn a_must_stands_first_and_what_is_omitted_last() {
        let mut floor = examination("floor");
        floor.findings = vec![
            finding("close", "no code", Level::Should, Omitted),
            finding("handshake", "wrong version", Level::Should, Fail),
            finding("close", "invalid code", Level::Should, Omitted),
            finding("echo", "text of 0 bytes", Level::Must, Fail),
            finding("echo", "text of 1 byte", Level::Must, Pass),
        ];
        let [item] = &items(&[floor])[..] else {
            panic!("not one item");
        };
        assert_eq!(item.title, "floor 1/3 (2 omitted)");
        assert_eq!(
            item.lines,
            [
                "must: echo/text of 0 bytes: expected a right answer; saw a wrong one",
                "should: handshake/wrong version: expected a right answer; saw a wrong one",
                "omitted: close (no code, invalid code)",
            ]
        );
    }

    #[test]
    fn the_levels_are_those_of_the_suite() {
        let of_websocket = about(Suite::Websocket);
        assert!(
            of_websocket.contains("what RFC 6455 requires"),
            "{of_websocket}"
        );
        for suite in [Suite::Relay, Suite::Transfer] {
            let about = about(suite);
            assert!(!about.contains("RFC 6455"), "{about}");
            assert!(about.contains("whole and in order"), "{about}");
        }
    }

    #[test]
    fn who_passed_everything_is_one_line_and_long_texts_are_cut() {
        let mut chatty = examination("chatty");
        chatty.findings[0] = Finding {
            seen: Some("x".repeat(10_000)),
            ..finding("echo", "one", Level::Must, Fail)
        };
        let items = items(&[examination("axum"), chatty, examination("b")]);
        assert_eq!(items[0].title, "passed everything: axum 2/2, b 2/2");
        assert_eq!(items.len(), 2);
        assert!(items[1].lines[0].chars().count() < 300);
        assert_eq!(super::items(&[]), []);
    }
}
