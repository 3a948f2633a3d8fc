//! Adding a framework is adding one folder: with the real server for axum, built
//! by the real profile. Slow, because it compiles; what was compiled before by
//! `wsbench build` is used.

mod util;

use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use util::{Ended, Project, Running, alone, figure, project, record};
use wsbench_schema::metric::{FAILED, SUCCEEDED};
use wsbench_schema::{Outcome, Phase};

/// A version of axum that no server here uses.
const OTHER_AXUM: &str = "0.8.8";

/// A project that shares everything with this one but `frameworks/`, in which
/// there is a copy of axum.
fn with_axum() -> Project {
    let project = project();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let shared = [
        "Cargo.toml",
        "Cargo.lock",
        "cli",
        "client",
        "sampler",
        "report",
        "schema",
        "server-kit",
    ];
    for name in shared {
        symlink(repository.join(name), project.path(name)).unwrap();
    }
    // One target folder for all, so that dependencies are compiled once.
    let test = std::env::current_exe().unwrap();
    let target = test.ancestors().nth(3).unwrap().display().to_string();
    let config = fs::read_to_string(repository.join(".cargo/config.toml")).unwrap();
    let shared = config.replace(
        "target-dir = \"target\"",
        &format!("target-dir = {target:?}"),
    );
    assert_ne!(config, shared);
    fs::create_dir(project.path(".cargo")).unwrap();
    fs::write(project.path(".cargo/config.toml"), shared).unwrap();
    copy(
        &repository.join("frameworks/axum"),
        &project.path("frameworks/axum"),
    );
    project
}

/// `cp -r`, as the guide for contributors says.
fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-r").args([from, to]).status();
    assert!(copied.unwrap().success());
}

/// Changes a file by hand.
#[track_caller]
fn edit(project: &Project, path: &str, from: &str, to: &str) {
    let path = project.path(path);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "no `{from}` in {text}");
    fs::write(path, text.replace(from, to)).unwrap();
}

/// Runs `wsbench` for as long as compiling takes.
#[track_caller]
fn wsbench(project: &Project, arguments: &str) -> Ended {
    let ended = Running::start(project, arguments).expect_end(Duration::from_secs(1200));
    let (stdout, stderr) = (&ended.stdout, &ended.stderr);
    assert_eq!(ended.code, Some(0), "{arguments}: {stdout}{stderr}");
    ended
}

/// The row of a server in `wsbench list`.
#[track_caller]
fn listed(project: &Project, name: &str) -> Value {
    let rows: Value = serde_json::from_str(&wsbench(project, "list --json").stdout).unwrap();
    let rows = rows.as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == name);
    row.unwrap_or_else(|| panic!("no {name}: {rows:?}")).clone()
}

#[test]
fn a_copied_a_new_a_broken_and_an_older_folder_live_side_by_side() {
    let _alone = alone();
    let project = with_axum();
    wsbench(&project, "build axum");
    let axum = listed(&project, "axum");
    assert_eq!(axum["state"], "built");
    let files = ["frameworks/axum/Cargo.lock", "output/bin/axum"];
    let before = files.map(|file| fs::read(project.path(file)).unwrap());

    let folder = |name: &str| project.path("frameworks").join(name);
    copy(&folder("axum"), &folder("mine"));
    let own_name = "name = \"axum\"";
    edit(
        &project,
        "frameworks/mine/Cargo.toml",
        own_name,
        "name = \"mine\"",
    );
    copy(&folder("axum"), &folder("older"));
    let older = "frameworks/older/Cargo.toml";
    edit(&project, older, own_name, "name = \"older\"");
    let version = listed(&project, "axum")["version"]
        .as_str()
        .unwrap()
        .to_owned();
    let current = version.strip_prefix("axum ").unwrap();
    edit(
        &project,
        older,
        &format!("version = \"{current}\""),
        &format!("version = \"={OTHER_AXUM}\""),
    );
    wsbench(&project, "new fresh");
    copy(&folder("axum"), &folder("broken"));
    edit(
        &project,
        "frameworks/broken/Cargo.toml",
        "[dependencies]",
        "[dependencies",
    );

    let broken = listed(&project, "broken");
    assert_eq!(broken["state"], "broken", "{broken}");
    assert!(
        broken["detail"].as_str().unwrap().contains("Cargo.toml"),
        "{broken}"
    );
    let names = ["axum", "mine", "older", "fresh"];
    for name in &names[1..] {
        assert_eq!(listed(&project, name)["state"], "not_built");
    }

    // The one run builds, examines and measures all that can be.
    let ended = wsbench(&project, "run -c 100 -n 5000");
    assert!(
        ended.stderr.contains("broken is left out"),
        "{}",
        ended.stderr
    );
    let report = fs::read_to_string(project.path("output/report/report.md")).unwrap();
    for name in names {
        let record = record(&project, name);
        assert_eq!(record.outcome, Outcome::Completed, "{name}");
        let count = |metric| figure(&record, Phase::Echo, metric);
        assert_eq!((count(SUCCEEDED), count(FAILED)), (5000, 0), "{name}");
        assert!(report.contains(&format!("| {name} ")), "{report}");
    }
    let version = |name| record(&project, name).subject.version;
    assert_eq!(version("mine"), version("axum"));
    assert_eq!(version("older"), format!("axum {OTHER_AXUM}"));
    assert!(
        version("fresh").starts_with("tokio-tungstenite "),
        "{}",
        version("fresh")
    );
    let examined = wsbench(&project, "verify mine fresh older").stdout;
    assert_eq!(examined.matches(" passed").count(), 3, "{examined}");

    assert_eq!(listed(&project, "axum"), axum, "nothing changed for axum");
    for (file, before) in files.iter().zip(before) {
        assert!(
            fs::read(project.path(file)).unwrap() == before,
            "{file} changed"
        );
    }
}
