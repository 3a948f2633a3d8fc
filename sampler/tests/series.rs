//! The series, against the exact figures of the same stretch of time.

mod util;

use std::thread;
use std::time::{Duration, Instant};
use util::Subject;
use wsbench_sampler::{MIN_INTERVAL, SamplerError, SeriesSampler, Tree};

#[test]
fn subject() {
    util::obey();
}

/// Runs `order` for more than four intervals under both instruments: the
/// series' mean must be what the exact clocks say, also where other programs
/// leave it only a part of a CPU.
#[track_caller]
fn expect_series_agrees(subject: &mut Subject, order: &str) {
    let mut tree = Tree::of(subject.pid()).unwrap();
    subject.begin(order);
    let series = SeriesSampler::start(subject.pid(), MIN_INTERVAL).unwrap();
    let before = tree.edge().unwrap();
    thread::sleep(MIN_INTERVAL * 4 + MIN_INTERVAL / 2);
    let after = tree.edge().unwrap();
    let samples = series.stop().unwrap();
    subject.wait();
    assert!((3..=4).contains(&samples.len()), "{samples:?}");
    let exact = (after.cpu_ns - before.cpu_ns) as f64 / (after.at_ns - before.at_ns) as f64;
    assert!(exact > 0.08, "it spins: {before:?} {after:?}");
    let sum: u64 = samples.iter().map(|sample| sample.cpu_millipercent).sum();
    let mean = sum as f64 / samples.len() as f64 / 100_000.0;
    assert!(
        (mean - exact).abs() < 0.03 + 0.25 * exact,
        "series {mean}, exact {exact}: {samples:?}"
    );
    for pair in samples.windows(2) {
        assert!(pair[1].offset_ns - pair[0].offset_ns >= MIN_INTERVAL.as_nanos() as u64);
    }
    for sample in &samples {
        assert!(sample.cpu_millipercent < 130_000, "one thread: {samples:?}");
        assert!(sample.rss_bytes > 1_000_000, "{samples:?}");
    }
}

#[test]
fn a_spinning_process_shows_what_it_used() {
    let mut subject = Subject::start();
    expect_series_agrees(&mut subject, "burn 1000000000");
}

#[test]
fn a_spinning_grandchild_shows_too() {
    let mut subject = Subject::start();
    subject.ask("spawn");
    subject.ask("tell spawn");
    expect_series_agrees(&mut subject, "tell tell burn 1000000000");
}

#[test]
fn a_child_born_later_is_added() {
    let mut subject = Subject::start();
    let series = SeriesSampler::start(subject.pid(), MIN_INTERVAL).unwrap();
    thread::sleep(MIN_INTERVAL + MIN_INTERVAL / 2);
    subject.ask("spawn");
    subject.ask("tell hold 100000000");
    thread::sleep(MIN_INTERVAL * 2);
    let samples = series.stop().unwrap();
    let (first, last) = (samples[0], samples[samples.len() - 1]);
    assert!(last.rss_bytes - first.rss_bytes > 95_000_000, "{samples:?}");
}

#[test]
fn stop_returns_at_once_and_drops_the_partial_interval() {
    let subject = Subject::start();
    let series = SeriesSampler::start(subject.pid(), Duration::from_secs(60)).unwrap();
    thread::sleep(Duration::from_millis(50));
    let asked = Instant::now();
    assert_eq!(series.stop().unwrap(), Vec::new());
    assert!(asked.elapsed() < Duration::from_secs(2));
}

#[test]
fn a_series_of_a_process_that_ends_keeps_what_it_had() {
    let subject = Subject::start();
    let series = SeriesSampler::start(subject.pid(), MIN_INTERVAL).unwrap();
    thread::sleep(MIN_INTERVAL + MIN_INTERVAL / 2);
    subject.end();
    thread::sleep(MIN_INTERVAL * 2);
    assert_eq!(series.stop().unwrap().len(), 1);
}

#[test]
fn a_process_that_is_not_there_is_refused_at_once() {
    let subject = Subject::start();
    let pid = subject.pid();
    subject.end();
    let error = SeriesSampler::start(pid, MIN_INTERVAL).unwrap_err();
    assert!(
        matches!(error, SamplerError::Gone { pid: gone } if gone == pid),
        "{error}"
    );
}
