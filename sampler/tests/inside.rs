//! What is read of a process besides CPU time and memory now.

mod util;

use std::fs;
use std::thread;
use std::time::Duration;
use util::Subject;
use wsbench_sampler::{Activity, PeakSampler, Tree, stack_bytes};

const MIB: u64 = 1 << 20;

#[test]
fn subject() {
    util::obey();
}

/// `Rss` of `smaps_rollup`, which the kernel counts page by page.
fn rollup_bytes(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Rss:"));
    let kilobytes = line.unwrap().trim().strip_suffix(" kB").unwrap();
    kilobytes.trim().parse::<u64>().unwrap() * 1024
}

#[test]
fn memory_is_what_the_kernel_counts_page_by_page() {
    let mut subject = Subject::start();
    for held in [0, 8 * MIB, 100 * MIB] {
        subject.ask(&format!("hold {held}"));
        let rss = Tree::of(subject.pid()).unwrap().edge().unwrap().rss_bytes;
        let exact = rollup_bytes(subject.pid());
        let allowed = (exact / 20).max(512 << 10);
        assert!(rss.abs_diff(exact) <= allowed, "{rss} against {exact}");
    }
}

#[test]
fn a_peak_that_is_over_is_seen_and_looking_for_it_costs_under_a_hundredth_of_a_core() {
    let mut subject = Subject::start();
    let before = rollup_bytes(subject.pid());
    let pids = [subject.pid()];
    let peak = PeakSampler::start(&pids, Duration::from_millis(10)).unwrap();
    subject.ask(&format!("hold {}", 64 * MIB));
    let exact = rollup_bytes(subject.pid());
    // Some readings while it is held.
    thread::sleep(Duration::from_millis(900));
    subject.ask("free");
    assert!(rollup_bytes(subject.pid()) < before + 8 * MIB);
    thread::sleep(Duration::from_millis(100));
    let peak = peak.stop().unwrap();
    let allowed = (exact / 20).max(512 << 10);
    assert!(
        peak.rss_bytes.abs_diff(exact) <= allowed,
        "{peak:?}, {exact}"
    );
    assert!(peak.readings > 10, "{peak:?}");
    // Beside whatever else runs: the time of its own thread.
    let each_ns = peak.own_cpu_ns / peak.readings;
    println!(
        "{each_ns} ns a reading, {:.2} % of a core",
        each_ns as f64 / 1e5
    );
    assert!(each_ns < 100_000, "{peak:?}");
}

#[test]
fn stacks_are_found_thread_by_thread() {
    let mut subject = Subject::start();
    let pids = [subject.pid()];
    let before = stack_bytes(&pids).unwrap();
    subject.ask(&format!("stacks 50 {}", 256 << 10));
    // Each has told, and goes to sleep.
    let grown = || stack_bytes(&pids).unwrap() - before;
    let least = 50 * (256 << 10);
    for _ in 0..200 {
        if grown() >= least {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    let grown = grown();
    assert!(grown >= least, "{grown}");
    // What a thread of std itself uses, and no heap: its frames besides ours.
    assert!(grown < least + 50 * (64 << 10), "{grown}");
    subject.ask(&format!("hold {}", 64 * MIB));
    assert!(stack_bytes(&pids).unwrap() - before < least + 50 * (64 << 10));
}

#[test]
fn faults_and_switches_are_counted_between_two_readings() {
    let mut subject = Subject::start();
    let pids = [subject.pid()];
    let before = Activity::of(&pids).unwrap();
    subject.ask(&format!("hold {}", 16 * MIB));
    for _ in 0..20 {
        subject.ask("burn 1000");
        // So that it finds nothing to do, and sleeps.
        thread::sleep(Duration::from_millis(5));
    }
    let grown = Activity::of(&pids).unwrap().since(&before);
    // A fault for each page, or fewer where pages are huge; it sleeps before most orders.
    assert!(grown.minor_faults >= 8, "{grown:?}");
    assert!(
        grown.switches.is_some_and(|(slept, _)| slept >= 10),
        "{grown:?}"
    );
    let nobody = Activity::of(&[u32::MAX]).unwrap();
    assert_eq!(nobody, Activity::default());
    // Of threads that have ended nobody can tell: that is no zero.
    let before = Activity::of(&pids).unwrap();
    assert_eq!(nobody.since(&before).switches, None);
}
