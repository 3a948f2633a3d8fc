//! What earlier versions wrote is read, and what cannot be read costs nothing else.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use wsbench_schema::record::read_json;
use wsbench_schema::{Examination, Phase, RunPlan, SCHEMA_VERSION, TrialRecord, metric};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/versions")
}

#[test]
fn one_file_of_each_kind_and_version_is_read() {
    for version in 1..=SCHEMA_VERSION {
        let of = |name: &str| folder().join(version.to_string()).join(name);
        let trial = TrialRecord::load(&of("trial.json")).unwrap();
        assert_eq!(trial.schema, SCHEMA_VERSION);
        let echoes = trial.metric(Phase::Echo, metric::SUCCEEDED);
        assert_eq!(echoes, Some(200), "version {version}");
        assert_eq!(trial.machine.host == "unknown", version == 1);
        let plan: RunPlan = read_json(&of("run.json")).unwrap();
        assert_eq!((plan.subjects, plan.run), (vec!["floor".into()], trial.run));
        let examination: Examination = read_json(&of("examination.json")).unwrap();
        assert_eq!(examination.subject, trial.subject);
        assert!(examination.passed());
    }
}

/// The name of a file, and how it is made of the text of a good one.
type Made<'a> = (&'a str, &'a dyn Fn(&str) -> String);

/// A folder with the newest record under one name, and others made of it.
fn records(others: &[Made<'_>]) -> tempfile::TempDir {
    let folder_of_run = tempfile::tempdir().unwrap();
    let file = folder().join(format!("{SCHEMA_VERSION}/trial.json"));
    let text = fs::read_to_string(file).unwrap();
    fs::write(folder_of_run.path().join("good.json"), &text).unwrap();
    for (name, made) in others {
        fs::write(folder_of_run.path().join(name), made(&text)).unwrap();
    }
    folder_of_run
}

fn edited(text: &str, edit: impl Fn(&mut Value)) -> String {
    let mut value = serde_json::from_str(text).unwrap();
    edit(&mut value);
    value.to_string()
}

#[test]
fn each_file_that_cannot_be_read_is_a_line_and_costs_none_of_the_others() {
    let folder = records(&[
        ("a-truncated.json", &|text| {
            text[..text.len() / 2].to_owned()
        }),
        ("b-unknown.json", &|text| {
            edited(text, |file| file["colour"] = "red".into())
        }),
        ("c-newer.json", &|text| {
            edited(text, |file| {
                file["schema"] = (SCHEMA_VERSION + 1).into();
                file["colour"] = "red".into();
            })
        }),
        ("d-altered.json", &|text| {
            edited(text, |file| file["load"]["connections"] = 5.into())
        }),
        ("e-empty.json", &|_| String::new()),
        ("f-zero.json", &|text| {
            edited(text, |file| file["schema"] = 0.into())
        }),
    ]);
    let loaded = TrialRecord::load_all(folder.path()).unwrap();
    assert_eq!(loaded.files.len(), 1);
    let lines: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
    let newer = format!(
        "schema version {}, this program reads 1 to",
        SCHEMA_VERSION + 1
    );
    for (line, expected) in lines.iter().zip([
        "a-truncated.json: truncated: EOF while parsing",
        "b-unknown.json: not a valid record: unknown field `colour`",
        &format!("c-newer.json: {newer}"),
        "d-altered.json: load_hash is ",
        "e-empty.json: truncated: ",
        "f-zero.json: schema version 0, ",
    ]) {
        assert!(line.contains(expected), "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");
    }
    assert_eq!(lines.len(), 6, "{lines:?}");
}
