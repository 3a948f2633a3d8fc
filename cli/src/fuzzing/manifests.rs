//! Files that people write, and the files of running servers.

use super::assert_one_line;
use super::edit::edited;
use crate::profile::Profile;
use crate::runfile::RunFile;
use crate::strict;
use crate::subject::{Lock, check_name, foreign, rust};
use std::path::Path;
use wsbench_schema::record::parse_json;

const CARGO_TOML: &str = r#"[package]
name = "alpha"
version = "0.1.0"
[package.metadata.docs]
x = 1
[package.metadata.wsbench]
crate = "a-crate"
args = ["--threads", "1"]
omits = ["control"]
variants = [
    { name = "one", args = ["-x"], features = ["fast"], default-features = false },
    { name = "two" },
]
"#;

const BENCH_TOML: &str = r#"language = "Go"
version = "beta 1"
needs = ["go"]
build = [["go", "build"], ["true"]]
run = ["./server", "-x"]
"#;

const CARGO_LOCK: &str = r#"version = 4
[[package]]
name = "alpha"
version = "0.1.0"
dependencies = ["tungstenite 0.29.0", "other"]
[[package]]
name = "tungstenite"
version = "0.29.0"
source = "registry"
[[package]]
name = "tungstenite"
version = "0.30.0"
source = "registry"
"#;

const PROFILE: &str = r#"description = "all of it"
rounds = 3
sample-interval = "500ms"
[load]
connections = [64, 512]
payload = 125
text = true
[load.dial]
concurrency = 100
timeout = "2s"
[load.echo]
echoes = 200_000
duration = "5s"
timeout = "10s"
[load.rate]
per-connection = 20
duration = "5s"
timeout = "10s"
"#;

const RUN_FILE: &str = r#"{
  "schema": 1,
  "name": "axum",
  "server": { "pid": 17, "start_ticks": 3 },
  "supervisor": { "pid": 4294967295, "start_ticks": 4 },
  "host": "0.0.0.0",
  "ports": "10001-10010",
  "control": "[::1]:9",
  "token_file": null
}"#;

/// A file by the first byte of the program, with the edits that the rest says.
pub fn check(program: &[u8]) {
    let Some((kind, program)) = program.split_first() else {
        return;
    };
    let raw = kind & 0x80 != 0;
    let text = |sample: &str| match raw {
        true => String::from_utf8_lossy(program).into_owned(),
        false => String::from_utf8_lossy(&edited(sample.as_bytes(), program)).into_owned(),
    };
    match kind % 5 {
        0 => cargo_toml(&text(CARGO_TOML)),
        1 => bench_toml(&text(BENCH_TOML)),
        2 => lock_file(&text(CARGO_LOCK)),
        3 => profile(&text(PROFILE)),
        _ => run_file(&text(RUN_FILE)),
    }
}

fn cargo_toml(text: &str) {
    match rust::parse("alpha", Path::new("/nowhere"), text) {
        Err(error) => assert_one_line(&error),
        Ok(subjects) => {
            assert_eq!(subjects[0].name, "alpha");
            for subject in &subjects {
                // It becomes the name of files.
                assert_eq!(check_name(&subject.name), Ok(()));
                drop(subject.settings());
            }
        }
    }
}

fn bench_toml(text: &str) {
    if let Err(error) = foreign::parse("beta", Path::new("/nowhere"), text) {
        assert_one_line(&error);
    }
}

fn lock_file(text: &str) {
    if let Some(lock) = Lock::parse(text) {
        lock.has_own("alpha");
    }
}

fn profile(text: &str) {
    match Profile::parse("p", text) {
        Err(error) => assert_one_line(&error),
        Ok(profile) => {
            let loads = profile.loads();
            assert!((1..=Profile::LOADS_MAX).contains(&loads.len()));
            assert!(loads.iter().all(|load| load.validate().is_ok()));
            assert!(profile.sample_interval >= Profile::SAMPLE_INTERVAL_MIN);
        }
    }
    strict::nearest(text, ["rounds", "load"].into_iter());
}

fn run_file(text: &str) {
    let read = |text: &str| parse_json::<RunFile>(Path::new("r.json"), text.as_bytes());
    if let Ok(file) = read(text) {
        let back = serde_json::to_string(&file).unwrap_or_default();
        assert_eq!(read(&back).ok().as_ref(), Some(&file));
        file.is_stale();
        file.client_host();
    }
}
