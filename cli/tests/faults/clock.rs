//! The wall clock is set while a run is under way.

use crate::util::{BOUND, Running, add_wrong, figure, project, quantile_ns, record};
use std::time::{SystemTime, UNIX_EPOCH};
use wsbench_schema::metric::{
    ACTUAL_LATENCY, DURATION, ECHO_LATENCY, ELAPSED, FAILED, INTENDED_LATENCY, PLANNED,
    SERVER_RSS_SERIES, SERVER_WINDOW, SUCCEEDED,
};
use wsbench_schema::{Outcome, Phase};

const SECOND: u64 = 1_000_000_000;

/// Ten times a second, by hours, forwards and backwards.
#[test]
fn a_wall_clock_that_jumps_changes_no_duration_rate_latency_or_timeout() {
    let project = project();
    add_wrong(&project, "good", "");
    let test = std::env::current_exe().unwrap();
    let shim = test.ancestors().nth(2).unwrap();
    let shim = shim.join("examples/libclock_steps.so");
    let script = format!("export LD_PRELOAD={}; exec \"$@\"", shim.display());
    let load = "run good -c 4 -n 100000000 --echo-duration 1s \
                --rate --rate-per-connection 100 --rate-duration 1s";
    let mut run = Running::in_shell(&project, &script, load);
    let ended = run.expect_end(BOUND);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let good = record(&project, "good");
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let off = now.abs_diff(good.started_unix_s);
    assert!(off > 3600, "the clock did not jump: {off} s");

    assert_eq!(good.outcome, Outcome::Completed);
    let whole = u64::try_from(ended.took.as_nanos()).unwrap();
    let figure = |phase, name| figure(&good, phase, name);
    for phase in [Phase::Echo, Phase::Rate] {
        assert_eq!(figure(phase, FAILED), 0, "{phase}");
        assert!(figure(phase, SUCCEEDED) > 100, "{phase}");
        assert!(
            (SECOND / 2..whole).contains(&figure(phase, ELAPSED)),
            "{phase}"
        );
        assert!(
            (SECOND..whole).contains(&figure(phase, SERVER_WINDOW)),
            "{phase}"
        );
    }
    // What becomes due, and when, is the clock's whole business. 100 a second on each of
    // four connections, in batches of 16.
    let planned = figure(Phase::Rate, PLANNED);
    assert!((400 - 64..=400 + 64).contains(&planned), "{planned}");
    assert_eq!(figure(Phase::Rate, SUCCEEDED), planned);
    assert_eq!(figure(Phase::Rate, DURATION), SECOND);
    for (phase, name) in [
        (Phase::Echo, ECHO_LATENCY),
        (Phase::Rate, ACTUAL_LATENCY),
        (Phase::Rate, INTENDED_LATENCY),
    ] {
        let slowest = quantile_ns(&good, phase, name, 1.0);
        assert!(slowest < whole, "{phase} {name}: {slowest} ns");
    }
    let samples = good.series[&Phase::Echo.metric(SERVER_RSS_SERIES)]
        .offsets_ns
        .clone();
    assert!(
        samples.is_sorted() && (2..=6).contains(&samples.len()),
        "{samples:?}"
    );
    assert!(samples.iter().all(|at| *at < whole), "{samples:?}");
}
