//! What the examination finds of the servers of this repository is what their
//! READMEs say. What was compiled before by `wsbench build` is used.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;

/// Of relays and bulk servers, one of each mechanism: their examination moves many
/// bytes, and every run examines those that it measures.
const OF_TCP: [&str; 5] = ["io_copy", "splice", "io_uring", "stack", "pool"];

/// Servers that are examined at a time: an examination mostly waits.
const AT_ONCE: usize = 3;

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn wsbench(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wsbench"));
    command.args(arguments).current_dir(repository());
    command.output().unwrap()
}

fn json(output: &Output) -> Vec<Value> {
    let told = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {told}"))
}

/// Names of cases in code font, `group/case`, and first words of several.
fn named_in(readme: &str, groups: &BTreeSet<String>) -> Vec<String> {
    let code = readme.split('`').skip(1).step_by(2);
    // A line may end within a name.
    let code = code.map(|code| code.split_whitespace().collect::<Vec<_>>().join(" "));
    code.filter(|code| {
        code.split_once('/')
            .is_some_and(|(group, _)| groups.contains(group))
    })
    .collect()
}

fn is_named(path: &str, name: &str) -> bool {
    let rest = path.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ':']))
}

/// The README of each server, by its name: that of its folder.
fn readmes(listed: &[Value]) -> BTreeMap<&str, String> {
    let named = listed.iter().filter_map(|row| {
        let (name, folder) = (row["name"].as_str()?, row["folder"].as_str()?);
        let readme = Path::new(folder).join("README.md");
        Some((name, fs::read_to_string(readme).unwrap_or_default()))
    });
    named.collect()
}

/// What is not as the README says.
fn complaints(row: &Value, readmes: &BTreeMap<&str, String>) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = text(&row["name"]);
    let Some(findings) = row["findings"].as_array().filter(|all| !all.is_empty()) else {
        return vec![format!("{name} was not examined: {}", row["error"])];
    };
    let path = |finding: &Value| format!("{}/{}", text(&finding["group"]), text(&finding["name"]));
    let groups = findings.iter().map(|finding| text(&finding["group"]));
    let readme = readmes.get(name.as_str()).map_or("", String::as_str);
    let named = named_in(readme, &groups.collect());
    let failed = |finding: &&Value| finding["verdict"] == "fail";
    let untold = findings
        .iter()
        .filter(failed)
        .filter(|finding| !named.iter().any(|name| is_named(&path(finding), name)))
        .map(|finding| format!("{name}: not in its README: {finding}"));
    let unfound = named.iter().filter_map(|told| {
        let mut meant = findings
            .iter()
            .filter(|finding| is_named(&path(finding), told));
        // A note may hang on who is faster.
        let found = meant.any(|finding| finding["verdict"] == "fail" || finding["level"] == "note");
        (!found).then(|| format!("{name}: passes `{told}`, which its README says it does not"))
    });
    untold.chain(unfound).collect()
}

#[test]
fn the_readmes_name_every_case_that_is_not_passed() {
    let listed = json(&wsbench(&["list", "--json"]));
    let names: Vec<&str> = listed
        .iter()
        .filter_map(|row| Some((row["suite"].as_str()?, row["name"].as_str()?)))
        .filter(|(suite, name)| *suite == "websocket" || OF_TCP.contains(name))
        .map(|(_, name)| name)
        .collect();
    let expected = OF_TCP.iter().chain(&["floor"]);
    let missing = expected.filter(|name| !names.contains(name));
    assert_eq!(missing.count(), 0, "{names:?}");
    let shares = (0..AT_ONCE).map(|first| {
        let share: Vec<&str> = names.iter().skip(first).step_by(AT_ONCE).copied().collect();
        share.join(",")
    });
    let shares: Vec<String> = shares.filter(|share| !share.is_empty()).collect();
    let rows: Vec<Value> = thread::scope(|scope| {
        let examined: Vec<_> = shares
            .iter()
            .map(|share| scope.spawn(|| json(&wsbench(&["verify", "--json", share]))))
            .collect();
        let rows = examined.into_iter().flat_map(|share| share.join().unwrap());
        rows.collect()
    });
    assert_eq!(rows.len(), names.len());
    let readmes = readmes(&listed);
    let complaints: Vec<String> = rows
        .iter()
        .flat_map(|row| complaints(row, &readmes))
        .collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    let musts = rows.iter().filter(|row| row["passed"] != true);
    assert_eq!(musts.count(), 0);
}

#[test]
fn names_are_read_from_code_font_over_the_end_of_a_line() {
    let groups = BTreeSet::from(["close".to_owned()]);
    let readme = "A `setting`, src/main.rs and `close/forbidden\n  code`, `other/thing`.";
    assert_eq!(named_in(readme, &groups), ["close/forbidden code"]);
    assert!(is_named("close/forbidden code 999", "close/forbidden code"));
    assert!(!is_named("close/code 1000", "close/co"));
}
