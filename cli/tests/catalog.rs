//! list, new, build, verify and clean as a user runs them, in a project of its own.

#[path = "lifecycle/project.rs"]
mod project;

use project::Project;
use serde_json::Value;
use std::fs;
use std::process::Command;
use std::time::{Duration, SystemTime};

/// Adds a package without dependencies that prints `said`.
fn package(project: &Project, name: &str, metadata: &str, said: &str) {
    let folder = project.path("frameworks").join(name);
    fs::create_dir_all(folder.join("src")).unwrap();
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"1.2.3\"\nedition = \"2024\"\n[workspace]\n{metadata}"
    );
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::write(
        folder.join("src/main.rs"),
        format!("fn main() {{ println!({said}); }}\n"),
    )
    .unwrap();
}

fn states(project: &Project) -> Vec<(String, String)> {
    let rows: Value = serde_json::from_str(&project.run("list --json").expect_success()).unwrap();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| (text(row, "name"), text(row, "state")))
        .collect()
}

#[track_caller]
fn expect_state(project: &Project, name: &str, state: &str) {
    let states = states(project);
    let found = states.iter().find(|(of, _)| of == name);
    assert_eq!(
        found.map(|(_, state)| state.as_str()),
        Some(state),
        "{states:?}"
    );
}

fn says(project: &Project, name: &str) -> String {
    let output = Command::new(project.path("output/bin").join(name))
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_copied_and_renamed_folder_is_all_it_takes() {
    let project = Project::new();
    package(&project, "alpha", "", "\"one\"");
    expect_state(&project, "alpha", "not_built");
    project.run("build alpha").expect_success();
    expect_state(&project, "alpha", "built");
    assert_eq!(says(&project, "alpha"), "one");

    // As `cp -r` and an editor leave it: the lock file is still alpha's.
    let (alpha, mine) = (
        project.path("frameworks/alpha"),
        project.path("frameworks/mine"),
    );
    fs::create_dir_all(mine.join("src")).unwrap();
    for file in ["Cargo.toml", "Cargo.lock", "src/main.rs"] {
        let text = fs::read_to_string(alpha.join(file)).unwrap();
        let text = if file == "Cargo.toml" {
            text.replace("alpha", "mine")
        } else {
            text
        };
        fs::write(mine.join(file), text).unwrap();
    }
    let built = project.run("build");
    assert!(
        built
            .stderr
            .contains("mine: its Cargo.lock was of another package; renewed"),
        "{}",
        built.stderr
    );
    let table = built.expect_success();
    assert!(table.contains("mine") && table.contains("alpha"), "{table}");
    assert_eq!(says(&project, "mine"), "one");
    let again = project.run("build");
    assert!(!again.stderr.contains("renewed"), "{}", again.stderr);

    let later = SystemTime::now() + Duration::from_secs(2);
    fs::write(
        mine.join("src/main.rs"),
        "fn main() { println!(\"two\"); }\n",
    )
    .unwrap();
    let main = fs::File::options()
        .write(true)
        .open(mine.join("src/main.rs"))
        .unwrap();
    main.set_modified(later).unwrap();
    expect_state(&project, "mine", "stale");
    expect_state(&project, "alpha", "built");
    project.run("build mine").expect_success();
    assert_eq!(
        (says(&project, "mine"), says(&project, "alpha")),
        ("two".into(), "one".into())
    );
}

#[test]
fn each_variant_has_a_binary_of_its_own() {
    let project = Project::new();
    let metadata = "[features]\ndefault = [\"plain\"]\nplain = []\nfast = []\n\
        [package.metadata.wsbench]\nvariants = [{ name = \"fast\", features = [\"fast\"], default-features = false }]\n";
    let said = "\"plain {} fast {}\", cfg!(feature = \"plain\"), cfg!(feature = \"fast\")";
    package(&project, "alpha", metadata, said);
    for _ in 0..2 {
        project.run("build --variants all").expect_success();
        assert_eq!(says(&project, "alpha"), "plain true fast false");
        assert_eq!(says(&project, "alpha-fast"), "plain false fast true");
    }
}

#[test]
fn a_broken_folder_is_shown_and_stops_nobody() {
    let project = Project::new();
    package(&project, "alpha", "", "\"one\"");
    package(&project, "wrong", "", "missing");
    fs::create_dir_all(project.path("frameworks/broken")).unwrap();
    fs::write(project.path("frameworks/broken/Cargo.toml"), "[package\n").unwrap();
    let built = project.run("build");
    assert_eq!(built.code, Some(1));
    assert!(built.stdout.contains("FAILED"), "{}", built.stdout);
    for part in [
        "broken: left out: ",
        "format argument must be a string literal",
        "output/log/build-wrong.log",
    ] {
        assert!(built.stderr.contains(part), "{part}: {}", built.stderr);
    }
    assert_eq!(says(&project, "alpha"), "one");
    expect_state(&project, "broken", "broken");
    let error = project.run("build broken").expect_failure();
    assert!(error.contains("broken/Cargo.toml: line 1: "), "{error}");
    let error = project.run("build -f=alfa").expect_failure();
    assert!(
        error.contains("no framework is named `alfa` (did you mean `alpha`?)"),
        "{error}"
    );
}

#[test]
fn new_writes_a_folder_that_is_listed_and_never_overwrites() {
    let project = Project::new();
    let said = project.run("new zebra").expect_success();
    assert!(said.contains("wsbench build zebra"), "{said}");
    expect_state(&project, "zebra", "not_built");
    assert!(
        project
            .run("new zebra")
            .expect_failure()
            .contains("exists already")
    );
    assert!(
        project
            .run("new Zebra")
            .expect_failure()
            .contains("other than a-z")
    );
}

#[test]
fn verify_passes_the_right_and_fails_the_wrong() {
    let project = Project::new();
    project.misbehave("right", "");
    project.misbehave("corrupt", "--corrupt-every 3");
    project.misbehave("handshake", "--bad-accept");
    project.misbehave("mortal", "--die-after 3");
    project.misbehave("absent", "--exit-at-start");
    let right = project.run("verify right").expect_success();
    assert!(
        right.contains("right 1.0") && right.contains("passed"),
        "{right}"
    );

    let all = project.run("verify --json");
    assert_eq!(all.code, Some(1), "{}", all.stderr);
    let rows: Value = serde_json::from_str(&all.stdout).unwrap();
    let passed: Vec<_> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (
                row["name"].as_str().unwrap(),
                row["passed"].as_bool().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("absent", false),
        ("corrupt", false),
        ("handshake", false),
        ("mortal", false),
        ("right", true),
    ];
    assert_eq!(passed, expected);
    assert!(
        rows[0]["error"]
            .as_str()
            .unwrap()
            .contains("exited with code 1"),
        "{}",
        rows[0]
    );
    let of_mortal = rows[3]["findings"].as_array().unwrap();
    let ended = |case: &&Value| case["group"] == "server" && case["name"] != "TCP_NODELAY";
    let died = of_mortal.iter().find(ended);
    let died = died.unwrap_or_else(|| panic!("{of_mortal:?}"));
    assert_eq!(died["seen"], "server exited with code 1", "{died}");
    let of_right = rows[4]["findings"].as_array().unwrap();
    assert!(!of_right.iter().any(|case| ended(&case)));
    let table = project.run("verify corrupt handshake").stdout;
    assert!(table.contains("corrupt: echo/"), "{table}");
    assert!(
        table.contains("saw a handshake with Sec-WebSocket-Accept: "),
        "{table}"
    );
    project.expect_nothing_left(Duration::from_secs(5));
}

#[test]
fn clean_waits_for_nobody_and_takes_nothing_from_a_server() {
    let project = Project::new();
    project.misbehave("right", "");
    fs::create_dir_all(project.path("results/run")).unwrap();
    let mut serve = project.serve("right");
    let error = project.run("clean").expect_failure();
    assert!(
        error.contains("right: still served (stop first: wsbench kill right)"),
        "{error}"
    );
    assert!(project.run_file("right").is_some());
    serve.signal("INT");
    serve.expect_exit();
    let said = project.run("clean").expect_success();
    assert!(said.starts_with("output: removed, "), "{said}");
    assert!(!project.path("output").exists());
    assert!(
        project.path("results/run").exists(),
        "nobody asked for that"
    );
    let said = project.run("clean --results --builds").expect_success();
    assert!(
        said.contains("output: nothing there\nresults: removed, 0"),
        "{said}"
    );
    assert!(!project.path("results").exists());
    assert!(project.path("frameworks/foreign/right/bench.toml").exists());
}
