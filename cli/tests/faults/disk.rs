//! A results folder that cannot be written, and a disk that has no room or runs out
//! of it. Each has a file system of its own, in a mount namespace of its own.

use crate::util::{
    BOUND, Ended, Project, Running, add_wrong, alone, expect_exit_code, once_examined, project,
};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use wsbench_schema::{Examination, RunPlan, TrialRecord};

/// `wsbench` with another file system mounted on `results/`; what is in there
/// at the end is copied to `kept/`. `None` where that is not allowed.
fn run_on(project: &Project, mount: &str, arguments: &str) -> Option<Ended> {
    let ways = [["unshare", "-m"].as_slice(), &["unshare", "-rm"]];
    let allowed = |way: &&&[&str]| {
        let mut unshare = Command::new(way[0]);
        let mount = ["mount", "-t", "tmpfs", "none", "/mnt"];
        unshare.args(&way[1..]).args(mount).stderr(Stdio::null());
        unshare.status().is_ok_and(|status| status.success())
    };
    let Some(way) = ways.iter().find(allowed) else {
        println!("skipped: this user may not mount in a namespace of its own");
        return None;
    };
    fs::create_dir_all(project.path("results")).unwrap();
    let script = format!(
        "exec {} sh -c 'mount -t tmpfs -o {mount} none \"$WSBENCH_ROOT/results\" || exit 99; \"$@\"; \
         code=$?; cp -r \"$WSBENCH_ROOT/results\" \"$WSBENCH_ROOT/kept\"; exit $code' sh \"$@\"",
        way.join(" ")
    );
    let mut run = Running::in_shell(project, &script, arguments);
    Some(run.expect_end(BOUND))
}

/// The files that were left in the only run's folder.
fn kept(project: &Project) -> Vec<PathBuf> {
    let mut runs = fs::read_dir(project.path("kept")).unwrap();
    let run = runs.find_map(|entry| Some(entry.unwrap().path()).filter(|path| path.is_dir()));
    let Some(run) = run else { return Vec::new() };
    let files = fs::read_dir(run).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// In one line, before anything was measured.
#[track_caller]
fn expect_refused(project: &Project, mount: &str, arguments: &str, words: &[&str]) {
    let Some(ended) = run_on(project, mount, arguments) else {
        return;
    };
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    for word in words {
        assert!(ended.stderr.contains(word), "no `{word}`: {}", ended.stderr);
    }
    assert_eq!(ended.stdout, "");
    assert!(kept(project).is_empty());
    // The next run has another folder: a link in the place of this one is no help.
    let remedy = format!("in the place of {})", project.path("results").display());
    assert!(ended.stderr.contains(&remedy), "{}", ended.stderr);
    fs::remove_dir_all(project.path("kept")).unwrap();
}

#[test]
fn a_results_folder_that_takes_nothing_is_told_before_anything_starts() {
    let project = project();
    add_wrong(&project, "good", "");
    let refusals = [
        // One that is full as well.
        ("ro,size=4k", ["cannot write to ", "Read-only file system"]),
        (
            "size=1M",
            ["the records of 1 trial may take", "has 1.00M left"],
        ),
        (
            "nr_inodes=5",
            ["there may be 21 files more", "has room for 4"],
        ),
    ];
    for (mount, words) in &refusals {
        expect_refused(&project, mount, "run good", words);
    }
    assert!(!project.path("output/log").exists());
    // The same for one server that runs already.
    let _serve = project.serve("good");
    for (mount, words) in &refusals {
        expect_refused(&project, mount, "client -f good -c 2 -n 9", words);
    }
}

/// The folder can be written to, and the record cannot all the same.
#[test]
fn what_client_measured_is_shown_even_if_it_cannot_be_kept() {
    let _alone = alone();
    let project = project();
    add_wrong(&project, "good", "");
    let _serve = project.serve("good");
    let client = "client -f good -c 2 -n 90";
    expect_exit_code(0, &project, client);
    let mut standing = fs::read_dir(project.path("results")).unwrap();
    let standing = standing.next().unwrap().unwrap().path();
    // In the way of what is done before a record is written.
    fs::create_dir(standing.join("half.json.partial")).unwrap();
    let ended = expect_exit_code(1, &project, client);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("\nSUCCESS : 90, 100"), "{said}");
    let last = ended.stderr.lines().last().unwrap();
    for words in ["is shown, but not kept: ", "half.json.partial"] {
        assert!(last.contains(words), "no `{words}`: {said}");
    }
    assert_eq!(TrialRecord::load_all(&standing).unwrap().files.len(), 1);
}

/// It fills up while the second of two servers is measured.
#[test]
fn a_disk_that_fills_up_ends_the_run_and_what_was_saved_before_is_whole() {
    let project = project();
    add_wrong(&project, "good", "");
    let fill = "head -c 100M /dev/zero > \"$WSBENCH_ROOT/results/big\"";
    project.script("filler", &once_examined(fill, ""));
    let arguments = "run good filler -n 100 --seed 1";
    let Some(ended) = run_on(&project, "size=8M", arguments) else {
        return;
    };
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.code, Some(1), "{said}");
    for words in [
        "cannot save the record of filler, round 1",
        "No space left on device",
        "what was saved before is kept (go on with: wsbench run --resume=",
    ] {
        assert!(ended.stderr.contains(words), "no `{words}`: {said}");
    }
    // The report is of what there is.
    assert!(ended.stdout.contains("not measured: filler"), "{said}");
    let files = kept(&project);
    let names: Vec<_> = files
        .iter()
        .filter_map(|file| file.file_name()?.to_str())
        .collect();
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(names[0].ends_with("-good-r1-a1-echo.hlog"), "{names:?}");
    assert_eq!(names[2..], [Examination::FOLDER, RunPlan::FILE_NAME]);
    let record = TrialRecord::load(&files[1]).unwrap();
    assert_eq!(record.subject.name, "good");
    RunPlan::load(files[0].parent().unwrap()).unwrap();
}
