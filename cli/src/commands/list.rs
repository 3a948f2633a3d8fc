//! `wsbench list`.

use crate::root::Root;
use crate::subject::{Catalog, State, Subject};
use crate::table;
use serde::Serialize;
use std::process::ExitCode;
use wsbench_schema::Suite;

/// Lists the servers: name, version, language, state.
///
/// State is `built`, `stale` (a source is newer than the program), `not built`,
/// `needs X` (the program X is not on PATH) or `broken` (its manifest has a mistake).
#[derive(clap::Args)]
pub struct Args {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// A row. Of a broken folder nothing is known but the reason.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Row {
    name: String,
    variant: Option<String>,
    suite: Option<Suite>,
    about: Option<String>,
    version: Option<String>,
    language: Option<String>,
    folder: Option<String>,
    state: &'static str,
    /// What is needed, or why it is broken.
    detail: Option<String>,
}

impl Row {
    fn new(subject: &Subject, root: &Root) -> Self {
        let state = subject.state(root);
        Self {
            name: subject.name.clone(),
            variant: subject.variant.clone(),
            suite: Some(subject.suite),
            about: subject.about.clone(),
            version: Some(subject.version()),
            language: Some(subject.language.clone()),
            folder: Some(subject.folder.display().to_string()),
            state: word(&state),
            detail: match state {
                State::Needs(program) => Some(program),
                State::Built | State::NotBuilt | State::Stale => None,
            },
        }
    }

    fn cells(&self) -> [String; 5] {
        let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
        let state = match (&self.detail, self.state) {
            (Some(program), "needs") => format!("needs {program}"),
            (_, state) => state.replace('_', " "),
        };
        [
            self.name.clone(),
            self.suite.map_or("-".into(), |suite| suite.to_string()),
            or_dash(&self.version),
            or_dash(&self.language),
            state,
        ]
    }
}

fn word(state: &State) -> &'static str {
    match state {
        State::Built => "built",
        State::NotBuilt => "not_built",
        State::Stale => "stale",
        State::Needs(_) => "needs",
    }
}

fn rows(root: &Root) -> anyhow::Result<Vec<Row>> {
    let catalog = Catalog::discover(root)?;
    let subjects = catalog
        .subjects
        .iter()
        .map(|subject| Row::new(subject, root));
    let broken = catalog.broken.iter().map(|broken| Row {
        name: broken.name.clone(),
        variant: None,
        suite: None,
        about: None,
        version: None,
        language: None,
        folder: None,
        state: "broken",
        detail: Some(broken.reason.clone()),
    });
    Ok(subjects.chain(broken).collect())
}

fn text(rows: &[Row]) -> String {
    let cells = rows.iter().map(Row::cells).collect();
    let mut text = table::render(["Subject", "Suite", "Version", "Language", "State"], cells);
    for row in rows.iter().filter(|row| row.state == "broken") {
        let reason = row.detail.as_deref().unwrap_or_default();
        text.push_str(&format!("\n{}: {reason}", row.name));
    }
    text
}

pub fn run(Args { json }: Args) -> anyhow::Result<ExitCode> {
    let rows = rows(&Root::find()?)?;
    table::print(&match json {
        true => serde_json::to_string_pretty(&rows)?,
        false => text(&rows),
    })?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::testing::Project;

    #[test]
    fn every_folder_has_a_row_with_its_state() {
        let project = Project::new();
        project.rust("alpha");
        let lock = "[[package]]\nname = \"alpha\"\nversion = \"0.1.0\"\n";
        project.write("frameworks/alpha/Cargo.lock", lock);
        project.write("frameworks/bad/Cargo.toml", "[package]\nname = \"worse\"\n");
        let foreign =
            "language = \"Go\"\nversion = \"gws 1.8\"\nneeds = [\"no-such-go\"]\nrun = [\"./x\"]\n";
        project.write("frameworks/foreign/gws/bench.toml", foreign);
        let rows = rows(&project.root).unwrap();
        let cells: Vec<[String; 5]> = rows.iter().map(Row::cells).collect();
        let expected = [
            ["alpha", "websocket", "alpha 0.1.0", "Rust", "not built"],
            ["gws", "websocket", "gws 1.8", "Go", "needs no-such-go"],
            ["bad", "-", "-", "-", "broken"],
        ];
        assert_eq!(cells, expected.map(|row| row.map(str::to_owned)));
        let text = text(&rows);
        let last = text.lines().last().unwrap();
        assert!(
            last.starts_with("bad: ") && last.contains("(set name = \"bad\")"),
            "{last}"
        );
        let json = serde_json::to_value(&rows).unwrap();
        assert_eq!(json[1]["state"], "needs");
        assert_eq!(json[1]["detail"], "no-such-go");
        assert_eq!(json[2]["version"], serde_json::Value::Null);
    }
}
