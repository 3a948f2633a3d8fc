//! The exact figures, against processes whose use of CPU and memory is known.

mod util;

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use util::Subject;
use wsbench_sampler::{SamplerError, Tree};

const MS: u64 = 1_000_000;

#[test]
fn subject() {
    util::obey();
}

#[track_caller]
fn expect_within_percent(measured: u64, truth: u64, percent: u64) {
    assert!(
        measured.abs_diff(truth) * 100 <= truth * percent,
        "measured {measured}, but it was {truth}"
    );
}

#[test]
fn burnt_cpu_time_is_seen_within_one_percent() {
    let mut subject = Subject::start();
    let mut tree = Tree::of(subject.pid()).unwrap();
    let before = tree.edge().unwrap();
    let burnt = subject.ask("burn 500000000");
    let after = tree.edge().unwrap();
    expect_within_percent(after.cpu_ns - before.cpu_ns, burnt, 1);
    assert!(
        after.at_ns - before.at_ns >= burnt,
        "wall time is at least CPU time of one thread"
    );
}

#[test]
fn an_idle_process_uses_nothing() {
    let subject = Subject::start();
    let mut tree = Tree::of(subject.pid()).unwrap();
    let before = tree.edge().unwrap();
    thread::sleep(Duration::from_millis(100));
    let after = tree.edge().unwrap();
    assert!(after.cpu_ns - before.cpu_ns < MS);
    assert_eq!(after.processes, 1);
}

#[test]
fn held_memory_is_seen_within_five_percent() {
    let mut subject = Subject::start();
    let mut tree = Tree::of(subject.pid()).unwrap();
    let before = tree.edge().unwrap();
    subject.ask("hold 300000000");
    let after = tree.edge().unwrap();
    expect_within_percent(after.rss_bytes - before.rss_bytes, 300_000_000, 5);
}

#[test]
fn threads_are_counted() {
    let mut subject = Subject::start();
    let mut tree = Tree::of(subject.pid()).unwrap();
    let before = tree.edge().unwrap();
    subject.ask("threads 50");
    assert_eq!(tree.edge().unwrap().threads, before.threads + 50);
}

#[test]
fn a_grandchild_born_between_edges_counts() {
    let mut subject = Subject::start();
    let mut tree = Tree::of(subject.pid()).unwrap();
    let before = tree.edge().unwrap();
    let child = subject.ask("spawn");
    let grandchild = subject.ask("tell spawn");
    let burnt = subject.ask("tell tell burn 300000000");
    subject.ask("tell tell hold 50000000");
    let after = tree.edge().unwrap();
    assert_eq!((before.processes, after.processes), (1, 3));
    let mut pids = tree.pids().into_iter().map(u64::from).collect::<Vec<_>>();
    pids.sort_unstable();
    let mut expected = vec![u64::from(subject.pid()), child, grandchild];
    expected.sort_unstable();
    assert_eq!(pids, expected);
    // Starting two processes costs some milliseconds too.
    let used = after.cpu_ns - before.cpu_ns;
    assert!(
        used >= burnt && used < burnt + 100 * MS,
        "{used} of {burnt}"
    );
    assert!(after.rss_bytes - before.rss_bytes > 50_000_000);
}

#[test]
fn a_child_that_ended_unseen_counts_by_reaped_time() {
    let mut subject = Subject::start();
    let mut tree = Tree::of(subject.pid()).unwrap();
    let before = tree.edge().unwrap();
    subject.ask("spawn");
    let burnt = subject.ask("tell burn 300000000");
    subject.ask("reap");
    let after = tree.edge().unwrap();
    assert_eq!(after.processes, 1);
    let used = after.cpu_ns - before.cpu_ns;
    assert!(
        used + 20 * MS >= burnt && used < burnt + 100 * MS,
        "{used} of {burnt}"
    );
}

#[test]
fn a_child_that_ended_between_edges_neither_turns_time_back_nor_counts_twice() {
    let mut subject = Subject::start();
    let mut tree = Tree::of(subject.pid()).unwrap();
    subject.ask("spawn");
    let before = tree.edge().unwrap();
    let burnt = subject.ask("tell burn 300000000");
    let alive = tree.edge().unwrap();
    subject.ask("reap");
    let after = tree.edge().unwrap();
    assert_eq!((alive.processes, after.processes), (2, 1));
    expect_within_percent(alive.cpu_ns - before.cpu_ns, burnt, 3);
    assert!(after.cpu_ns >= alive.cpu_ns, "{alive:?} {after:?}");
    assert!(after.cpu_ns - alive.cpu_ns < 30 * MS, "{alive:?} {after:?}");
}

#[test]
fn an_orphan_stays_in_the_tree() {
    // The process in the middle leaves after 0.3 s; its child gets another parent.
    let mut root = Command::new("sh")
        .args(["-c", "(sleep 20 & echo $!; sleep 0.3); exec cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(root.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    let orphan: u32 = line.trim().parse().unwrap();
    let mut tree = Tree::of(root.id()).unwrap();
    let family = tree.edge().unwrap();
    thread::sleep(Duration::from_millis(600));
    let edge = tree.edge().unwrap();
    let kept = tree.pids().contains(&orphan);
    Command::new("kill").arg(line.trim()).status().unwrap();
    drop(root.stdin.take());
    root.wait().unwrap();
    assert!(family.processes >= 3, "{family:?}");
    assert_eq!(edge.processes, 2, "the root and the orphan: {edge:?}");
    assert!(kept, "{edge:?} has no {orphan}");
}

#[test]
fn several_trees_are_summed_and_each_of_them_must_live() {
    let mut first = Subject::start();
    let mut second = first.start_beside();
    let mut tree = Tree::of_all(&[first.pid(), second.pid()]).unwrap();
    let before = tree.edge().unwrap();
    let burnt = first.ask("burn 200000000") + second.ask("burn 300000000");
    second.ask("threads 5");
    second.ask("hold 100000000");
    let after = tree.edge().unwrap();
    expect_within_percent(after.cpu_ns - before.cpu_ns, burnt, 20);
    expect_within_percent(after.rss_bytes - before.rss_bytes, 100_000_000, 10);
    assert_eq!((after.processes, after.threads), (2, before.threads + 5));
    let pid = second.pid();
    second.end();
    let error = tree.edge().unwrap_err();
    assert!(
        matches!(error, SamplerError::Gone { pid: gone } if gone == pid),
        "{error}"
    );
}

#[test]
fn a_vanished_root_is_an_error_that_names_it() {
    let subject = Subject::start();
    let pid = subject.pid();
    let mut tree = Tree::of(pid).unwrap();
    tree.edge().unwrap();
    subject.end();
    for error in [tree.edge().unwrap_err(), Tree::of(pid).unwrap_err()] {
        assert!(
            matches!(error, SamplerError::Gone { pid: gone } if gone == pid),
            "{error}"
        );
        assert!(error.to_string().contains(&pid.to_string()), "{error}");
    }
}

#[test]
fn a_root_that_is_a_zombie_has_vanished() {
    let mut subject = Subject::start();
    let mut tree = Tree::of(subject.pid()).unwrap();
    subject.end_without_waiting();
    let deadline = Instant::now() + Duration::from_secs(5);
    while tree.edge().is_ok() {
        assert!(Instant::now() < deadline, "a zombie counts as alive");
        thread::sleep(Duration::from_millis(10));
    }
    let error = tree.edge().unwrap_err();
    assert!(matches!(error, SamplerError::Gone { .. }), "{error}");
}
