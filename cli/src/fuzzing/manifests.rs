//! Files that people write, and the files of running servers.

use super::assert_one_line;
use super::edit::edited;
use crate::profile::Profile;
use crate::runfile::RunFile;
use crate::strict;
use crate::subject::{Kind, Lock, RustBuild, Subject, check_name, foreign, rust};
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
            let again = rust::parse("alpha", Path::new("/nowhere"), &rewritten(text));
            assert_eq!(format!("{again:?}"), format!("Ok({subjects:?})"));
            for subject in &subjects {
                match &subject.variant {
                    None => assert_eq!(subject.name, "alpha"),
                    Some(variant) => assert!(subject.name.ends_with(variant)),
                }
                // It becomes the name of files.
                assert_eq!(check_name(&subject.name), Ok(()));
                let settings = subject.settings();
                assert!(settings.values().all(|value| !value.contains('\0')));
                let Kind::Rust(build) = &subject.kind else {
                    panic!("it is {subject:?}")
                };
                let names = [&build.crate_name, &subject.role, &subject.about];
                names
                    .into_iter()
                    .flatten()
                    .for_each(|name| assert_one_line(name));
            }
        }
    }
}

/// The same, written by a program: order, spacing and quotes differ.
fn rewritten(text: &str) -> String {
    let table: toml::Table = toml::from_str(text).expect("it was read before");
    toml::to_string(&table).expect("a table can be written")
}

fn bench_toml(text: &str) {
    let read = |text: &str| foreign::parse("beta", Path::new("/nowhere"), text);
    let subjects = match read(text) {
        Err(error) => return assert_one_line(&error),
        Ok(subjects) => subjects,
    };
    let again = read(&rewritten(text));
    assert_eq!(format!("{again:?}"), format!("Ok({subjects:?})"));
    assert!(subjects[0].variant.is_none(), "the folder itself");
    subjects.iter().for_each(foreign_subject);
}

fn foreign_subject(subject: &Subject) {
    let Subject {
        name,
        variant,
        kind: Kind::Foreign(manifest),
        language,
        about,
        role,
        ..
    } = subject
    else {
        panic!("it is {subject:?}")
    };
    assert_eq!(check_name(name), Ok(()));
    if let Some(variant) = variant {
        assert_eq!(name, &format!("beta-{variant}"));
    }
    assert_one_line(language);
    about
        .iter()
        .chain(role)
        .for_each(|text| assert_one_line(text));
    assert!(subject.descriptors > 0);
    let asked = manifest.version_command.as_slice();
    match &manifest.version {
        Some(version) => {
            assert!(asked.is_empty(), "two versions");
            assert_eq!(&subject.version(), version);
            assert_one_line(version);
        }
        None => assert_eq!(asked.len(), 1),
    }
    for command in manifest.build.iter().chain([&manifest.run]).chain(asked) {
        assert!(!command[0].is_empty(), "a program");
        assert!(!command.iter().any(|word| word.contains('\0')));
    }
}

fn lock_file(text: &str) {
    let Some(lock) = Lock::parse(text) else {
        return;
    };
    let again = Lock::parse(&rewritten(text)).expect("the same, written by a program");
    let written: toml::Table = toml::from_str(text).expect("it was read before");
    let packages = written.get("package").and_then(|all| all.as_array());
    let packages: Vec<_> = packages.into_iter().flatten().collect();
    let of = |name: &str| {
        let text = |entry: &toml::Value, key: &str| entry.get(key)?.as_str().map(str::to_owned);
        let named = packages
            .iter()
            .filter(|entry| text(entry, "name").as_deref() == Some(name));
        let about = named.map(|entry| (text(entry, "version"), entry.get("source").is_some()));
        about.collect::<Vec<_>>()
    };
    let own = of("alpha").iter().any(|(_, has_source)| !has_source);
    assert_eq!((lock.has_own("alpha"), again.has_own("alpha")), (own, own));
    for crate_name in [None, Some("tungstenite"), Some("other")] {
        let build = RustBuild {
            package: "alpha".into(),
            crate_name: crate_name.map(str::to_owned),
            ..RustBuild::default()
        };
        let said = lock.version(&build);
        assert_eq!(again.version(&build), said);
        assert_one_line(&said);
        let named = crate_name.unwrap_or("alpha");
        let said = said.strip_prefix(named).and_then(|s| s.strip_prefix(' '));
        let said = said.expect("it begins with the name");
        let versions: Vec<String> = of(named)
            .into_iter()
            .filter_map(|(version, _)| version)
            .collect();
        // A version may have a plus itself: so what is joined is looked for whole.
        let of_these = versions
            .iter()
            .any(|version| said.contains(version.as_str()));
        assert!(
            of_these || said == "(not in Cargo.lock)",
            "{said}: {versions:?}"
        );
        if let [only] = &versions[..] {
            assert!(
                said == only || said == "(not in Cargo.lock)",
                "{said}: {only}"
            );
        }
    }
}

fn profile(text: &str) {
    match Profile::parse("p", text) {
        Err(error) => assert_one_line(&error),
        Ok(profile) => {
            assert_eq!(Profile::parse("p", &rewritten(text)).as_ref(), Ok(&profile));
            assert_one_line(&profile.description);
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
        let count = file.ports.count();
        assert_eq!(file.ports.iter().filter(|port| *port > 0).count(), count);
        file.is_stale();
        file.client_host();
    }
}
