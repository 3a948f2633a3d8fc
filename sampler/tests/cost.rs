//! What the sampling itself costs. Alone in this file, as it reads the CPU
//! time of the whole test process.

mod util;

use std::thread;
use std::time::{Duration, Instant};
use util::Subject;
use wsbench_sampler::{SeriesSampler, Tree, own_cpu_ns};

const THREADS: u32 = 10_000;

#[test]
fn subject() {
    util::obey();
}

#[test]
fn a_series_of_ten_thousand_threads_costs_under_two_percent_of_a_cpu() {
    let mut subject = Subject::start();
    subject.ask(&format!("threads {THREADS}"));
    let edge = Tree::of(subject.pid()).unwrap().edge().unwrap();
    assert!(edge.threads > THREADS, "{edge:?}");
    let series = SeriesSampler::start(subject.pid(), Duration::from_secs(1)).unwrap();
    let (wall, cpu) = (Instant::now(), own_cpu_ns());
    thread::sleep(Duration::from_millis(4_500));
    let used_ns = own_cpu_ns() - cpu;
    let percent = used_ns as f64 * 100.0 / wall.elapsed().as_nanos() as f64;
    let samples = series.stop().unwrap();
    assert_eq!(samples.len(), 4);
    println!("{} us a sample, {percent:.2} % of one CPU", used_ns / 4_000);
    assert!(percent < 2.0, "{percent:.2} % of one CPU");
}
