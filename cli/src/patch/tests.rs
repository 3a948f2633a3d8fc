use super::*;
use crate::compile;
use crate::subject::State;
use crate::subject::testing::Project;
use std::fs;
use std::io::ErrorKind;
use std::process::Command;

/// A project with a subject `alpha` that prints what its dependency `tiny` says, which is
/// of a registry that is a folder: no network is asked.
fn project() -> Project {
    let project = Project::new();
    project.write(
        ".cargo/config.toml",
        "[build]\ntarget-dir = \"target\"\n[source.crates-io]\nreplace-with = \"here\"\n[source.here]\ndirectory = \"registry\"\n",
    );
    krate(&project, "registry/tiny", "1.2.3", "registry");
    let checksums = "{\"files\":{},\"package\":\"00\"}";
    project.write("registry/tiny/.cargo-checksum.json", checksums);
    project.rust("alpha");
    let rest = "[dependencies]\ntiny = \"1.2\"\n[package.metadata.wsbench]\ncrate = \"tiny\"\n";
    project.append("frameworks/alpha/Cargo.toml", rest);
    let main = "fn main() {\n    println!(\"tiny says {}\", tiny::says());\n}\n";
    project.write("frameworks/alpha/src/main.rs", main);
    let lock = "version = 4\n\n[[package]]\nname = \"alpha\"\nversion = \"0.1.0\"\ndependencies = [\n \"tiny\",\n]\n\n\
         [[package]]\nname = \"tiny\"\nversion = \"1.2.3\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"00\"\n";
    project.write("frameworks/alpha/Cargo.lock", lock);
    project
}

fn krate(project: &Project, folder: &str, version: &str, says: &str) -> PathBuf {
    let manifest =
        format!("[package]\nname = \"tiny\"\nversion = \"{version}\"\nedition = \"2024\"\n");
    let manifest = project.write(&format!("{folder}/Cargo.toml"), &manifest);
    let lib = format!("pub fn says() -> &'static str {{ \"{says}\" }}\n");
    project.write(&format!("{folder}/src/lib.rs"), &lib);
    manifest.with_file_name("")
}

fn patched(project: &Project, folder: &Path) -> anyhow::Result<Vec<Subject>> {
    let patch = Patch::from_str(&format!("tiny={}", folder.display())).map_err(anyhow::Error::msg);
    beside(&project.root, project.catalog().subjects, &[patch?])
}

fn says(project: &Project, subject: &Subject) -> String {
    let program = compile::build(&project.root, subject, &mut |_| {}).unwrap();
    // While another test's thread forks, its child holds the new program open for writing.
    let output = loop {
        match Command::new(&program).output() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {}
            output => break output.unwrap(),
        }
    };
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_patched_subject_is_built_of_the_folder_and_its_own_is_left_as_it_is() {
    let project = project();
    let mine = krate(&project, "My Branch", "1.2.3", "branch");
    let [own, with] = &patched(&project, &mine).unwrap()[..] else {
        panic!("not two")
    };
    assert_eq!(
        (own.name.as_str(), with.name.as_str()),
        ("alpha", "alpha+tiny@my-branch")
    );
    assert_eq!(says(&project, own), "tiny says registry");
    assert_eq!(says(&project, with), "tiny says branch");
    let settings = with.settings();
    assert_eq!(settings["patch_of"], "alpha");
    assert_eq!(settings["patched.tiny"], "1.2.3+path");
    assert_eq!(with.version(), "tiny 1.2.3+path");
    let state = || with.state(&project.root);
    assert_eq!(state(), State::Built);
    krate(&project, "My Branch", "1.2.3", "later");
    assert_eq!(state(), State::Stale);
    assert_eq!(says(&project, with), "tiny says later");
    // Made again for the next run: nothing of it is newer than the program.
    patched(&project, &mine).unwrap();
    assert_eq!(state(), State::Built);
    let kept = fs::read_to_string(own.folder.join("Cargo.lock")).unwrap();
    assert!(kept.contains("source = \"registry"), "{kept}");
}

#[test]
fn another_version_that_fits_is_used_and_one_that_does_not_is_an_error() {
    let project = project();
    let older = krate(&project, "older", "1.2.0", "older");
    let subjects = patched(&project, &older).unwrap();
    assert_eq!(subjects[1].version(), "tiny 1.2.0+path");
    let newer = krate(&project, "newer", "2.0.0", "newer");
    let error = format!("{:#}", patched(&project, &newer).unwrap_err());
    for part in [
        "alpha cannot be patched: it depends on tiny 1.2.3",
        "newer is version 2.0.0, which does not fit",
        "take the sources of a version that fits 1.2.3",
    ] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_folder_in_git_is_named_by_its_revision_and_by_whether_it_is_dirty() {
    let project = project();
    let mine = krate(&project, "mine", "1.2.3", "mine");
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(&mine);
        command.args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"]);
        assert!(command.args(args).output().unwrap().status.success());
    };
    assert_eq!(state::revision(&mine), None);
    git(&["init", "-q"]);
    assert_eq!(state::revision(&mine), None, "git does not keep it");
    git(&["add", "."]);
    git(&["commit", "-qm", "first"]);
    let clean = state::revision(&mine).unwrap();
    assert!(clean.starts_with("git ") && clean.len() == 16, "{clean}");
    krate(&project, "mine", "1.2.3", "edited");
    assert_eq!(state::revision(&mine).unwrap(), format!("{clean}, dirty"));
}

#[test]
fn a_git_revision_is_built_without_a_folder() {
    let project = project();
    let mine = krate(&project, "repository", "1.2.3", "git");
    for args in [
        &["init", "-q"][..],
        &["add", "."],
        &["commit", "-qm", "1"],
        &["tag", "v1"],
    ] {
        let mut command = Command::new("git");
        command.arg("-C").arg(&mine);
        command.args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"]);
        assert!(command.args(args).output().unwrap().status.success());
    }
    let url = format!("tiny=git+file://{}#v1", mine.display());
    let patch = Patch::from_str(&url).unwrap();
    let subjects = beside(&project.root, project.catalog().subjects, &[patch]).unwrap();
    assert_eq!(subjects[1].name, "alpha+tiny@v1");
    let version = subjects[1].version();
    assert!(version.starts_with("tiny 1.2.3+git ("), "{version}");
}

#[test]
fn what_cannot_be_a_patch_is_told_with_its_remedy() {
    let project = project();
    let tiny = krate(&project, "mine", "1.2.3", "mine");
    project.write("all/Cargo.toml", "[workspace]\nmembers = []\n");
    let all = project.root.path().join("all");
    let table = [
        ("tiny".to_owned(), "`tiny` has no `=`"),
        ("../x=y".into(), "`../x` cannot be the name of a crate"),
        ("tiny=".into(), "no folder is named"),
        ("tiny=/no/such/folder".into(), "/no/such/folder: "),
        (
            format!("tini={}", tiny.display()),
            "this is the crate `tiny`",
        ),
        (
            format!("tiny={}", all.display()),
            "this is a workspace and no crate",
        ),
        ("tiny=git+host/path".into(), "`host/path` is no URL"),
        (
            "tiny=git+https://host/path#".into(),
            "nothing behind the `#`",
        ),
    ];
    for (text, expected) in table {
        let error = Patch::from_str(&text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let patch = |name: &str| Patch {
        crate_name: name.into(),
        place: Place::Folder(tiny.clone()),
    };
    let refused = |patches: &[Patch]| {
        let subjects = project.catalog().subjects;
        beside(&project.root, subjects, patches)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refused(&[patch("tinny")]),
        "no Cargo.lock of alpha has a crate `tinny` of a registry (did you mean `tiny`?)"
    );
    assert!(refused(&[patch("tiny"), patch("tiny")]).contains("names `tiny` twice"));
}

#[test]
fn a_tag_is_short_and_safe_as_the_name_of_a_file() {
    let tag = |place: Place| {
        Patch {
            crate_name: "t".into(),
            place,
        }
        .tag()
    };
    let folder = |name: &str| tag(Place::Folder(name.into()));
    assert_eq!(folder("/x/My Fork/"), "t@my-fork");
    assert_eq!(folder("/x/a;b'\u{1b}é"), "t@a-b---");
    assert_eq!(folder(&format!("/{}", "x".repeat(300))).len(), 42);
    let git = |revision: Option<&str>| {
        tag(Place::Git {
            url: "https://host/owner/fork.git".into(),
            revision: revision.map(str::to_owned),
        })
    };
    assert_eq!(git(Some("0123456789abcdef")), "t@0123456789ab");
    assert_eq!(git(Some("feature/x")), "t@feature-x");
    assert_eq!(git(None), "t@fork");
    assert!(is_name("axum+t@my") && !is_name("axum-fast") && !is_name("a+b"));
}

#[test]
fn what_else_changed_in_a_lock_file_is_told() {
    let package = |name: &str, version: &str| {
        format!(
            "[[package]]\nname = \"{name}\"\nversion = \"{version}\"\nsource = \"registry+x\"\n"
        )
    };
    let lock = |packages: &[(&str, &str)]| {
        let text: String = packages.iter().map(|(n, v)| package(n, v)).collect();
        Locked::parse(&text).unwrap()
    };
    let before = lock(&[
        ("t", "1.0.0"),
        ("a", "1.0.0"),
        ("b", "1.0.0"),
        ("c", "1.0.0"),
    ]);
    let after = lock(&[
        ("t", "2.0.0"),
        ("a", "1.1.0"),
        ("b", "1.0.0"),
        ("d", "0.1.0"),
    ]);
    assert_eq!(
        after.other_changes(&before, &["t"]),
        ["a 1.1.0 instead of 1.0.0", "no c 1.0.0", "d 0.1.0"]
    );
    assert!(before.other_changes(&before, &["t"]).is_empty());
    assert!(
        after.brought(&before, "t").is_none(),
        "the registry's is no patch"
    );
}
