//! What a subject says it does not implement, by the names of groups and cases.

use super::case::Case;
use super::stream;
use std::collections::BTreeSet;
use wsbench_schema::{Level, Suite};

/// Cases that are not asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Omits(BTreeSet<String>);

impl Omits {
    /// Reads `omits` of a manifest: names of its suite's groups, and of cases as
    /// `group/case` or by their first words, `group/invalid UTF-8`.
    ///
    /// # Errors
    /// If nothing has such a name, or a `must` is among what it names.
    pub fn read(suite: Suite, names: &[String]) -> Result<Self, String> {
        // Most subjects leave nothing out.
        if names.is_empty() {
            return Ok(Self::default());
        }
        match suite {
            Suite::Websocket => Self::of(names, &super::cases()),
            Suite::Relay => Self::of(names, &stream::Kind::Relay.cases()),
            Suite::Transfer => Self::of(names, &stream::Kind::Echo.cases()),
        }
    }

    fn of<Q>(names: &[String], cases: &[Case<Q>]) -> Result<Self, String> {
        for name in names {
            let mut named = cases.iter().filter(|case| has_name(case, name)).peekable();
            if named.peek().is_none() {
                return Err(format!("`omits` has `{name}`, {}", unknown(name, cases)));
            }
            if let Some(must) = named.find(|case| case.level == Level::Must) {
                let of = match must.name.as_str() {
                    case if name.ends_with(case) => String::new(),
                    case => format!("`{case}` of "),
                };
                return Err(format!(
                    "`omits` has `{name}`, and {of}it is a must (only should and note can be left out)"
                ));
            }
        }
        Ok(Self(names.iter().cloned().collect()))
    }

    /// Whether the case is left out.
    pub(super) fn has<Q>(&self, case: &Case<Q>) -> bool {
        self.0.iter().any(|name| has_name(case, name))
    }
}

fn has_name<Q>(case: &Case<Q>, name: &str) -> bool {
    match name.split_once('/') {
        None => case.group == name,
        Some((group, words)) => {
            let rest = case.name.strip_prefix(words);
            let whole_words =
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ':']));
            case.group == group && whole_words
        }
    }
}

/// What to write instead of a name that nothing has.
fn unknown<Q>(name: &str, cases: &[Case<Q>]) -> String {
    let groups = cases.iter().map(|case| case.group.to_owned());
    let names = cases
        .iter()
        .map(|case| format!("{}/{}", case.group, case.name));
    let nearest = groups
        .chain(names)
        .min_by_key(|have| strsim::levenshtein(have, name))
        .unwrap_or_default();
    match strsim::levenshtein(&nearest, name) <= 3 + name.len() / 4 {
        true => format!("which is no group and no case (did you mean `{nearest}`?)"),
        false => "which is no group and no case (`wsbench verify --json` names all)".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::Group;
    use super::*;

    fn cases() -> Vec<Case> {
        let mut echo = Group::new("echo");
        echo.add(Level::Must, "text", "", |_| Ok(()));
        echo.add(Level::Note, "16 MiB", "", |_| Ok(()));
        let mut control = Group::new("control");
        control.add(Level::Should, "empty ping", "", |_| Ok(()));
        control.add(Level::Note, "pong / twice", "", |_| Ok(()));
        [echo.cases(), control.cases()]
            .into_iter()
            .flatten()
            .collect()
    }

    fn of(names: &[&str]) -> Result<Vec<String>, String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let cases = cases();
        let omits = Omits::of(&names, &cases)?;
        let left_out = cases.iter().filter(|case| omits.has(case));
        Ok(left_out.map(|case| case.name.clone()).collect())
    }

    #[test]
    fn a_group_or_a_case_is_left_out_by_its_name() {
        assert_eq!(of(&[]).unwrap(), Vec::<String>::new());
        assert_eq!(of(&["control"]).unwrap(), ["empty ping", "pong / twice"]);
        let two = ["echo/16 MiB", "control/pong / twice"];
        assert_eq!(of(&two).unwrap(), ["16 MiB", "pong / twice"]);
        assert_eq!(of(&["control/empty"]).unwrap(), ["empty ping"]);
        assert!(of(&["control/emp"]).is_err(), "whole words");
    }

    #[test]
    fn a_must_cannot_be_left_out_and_a_wrong_name_is_told() {
        assert_eq!(
            of(&["echo"]).unwrap_err(),
            "`omits` has `echo`, and `text` of it is a must (only should and note can be left out)"
        );
        assert_eq!(
            of(&["echo/text"]).unwrap_err(),
            "`omits` has `echo/text`, and it is a must (only should and note can be left out)"
        );
        assert_eq!(
            of(&["control/emptyping"]).unwrap_err(),
            "`omits` has `control/emptyping`, which is no group and no case (did you mean `control/empty ping`?)"
        );
        let far = of(&["compression"]).unwrap_err();
        assert!(
            far.ends_with("(`wsbench verify --json` names all)"),
            "{far}"
        );
    }
}
