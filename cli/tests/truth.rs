//! Whether what is reported is what happened: servers that know what they did,
//! measured as a user measures, and the records compared with that. These tests
//! need a machine that does nothing else.

mod util;

use std::sync::atomic::{AtomicBool, Ordering};

use util::{
    add_wrong, alone_at_rest, expect_exit_code, failed, failure, figure, is_client_bound, log,
    measure, measure_faulty, project, quantile_ns, record,
};
use wsbench_schema::mark::{
    LITTLES_LAW, NOISY, NOT_AS_ASKED, Noise, UNVERIFIED, client_busy_permille, server_busy_permille,
};
use wsbench_schema::metric::{
    ACTUAL_LATENCY, CONNECTIONS, CONNECTIONS_LOST, DIAL_LATENCY, DRAIN, ECHO_LATENCY, ELAPSED,
    FAILED, INTENDED_LATENCY, LISTEN_DROPS, LISTEN_OVERFLOWS, NOT_SENT, PLANNED, RETRIED, SENT,
    SERVER_CPU, SERVER_RSS_END, SERVER_RSS_SERIES, SERVER_RSS_START, SHORTFALL, SUCCEEDED,
};
use wsbench_schema::{Phase, TrialRecord};

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLISECOND;

#[test]
fn the_median_is_at_most_300_us_above_what_a_sleeping_server_slept() {
    let _alone = alone_at_rest();
    let project = project();
    let path = project.path("slept");
    let switches = format!("--sleep-us 2000 --log {}", path.display());
    add_wrong(&project, "sleeper", &switches);
    let record = measure(&project, "sleeper", "-c 8 -n 8000");
    let mut slept = log(&project, "slept");
    assert_eq!(slept.len(), 8000);
    slept.sort_unstable();
    let median = slept[slept.len() / 2];
    let measured = quantile_ns(&record, Phase::Echo, ECHO_LATENCY, 0.5);
    println!("slept {median} ns, measured {measured} ns");
    assert!(
        (median..median + 300_000).contains(&measured),
        "slept {median} ns, measured {measured} ns"
    );
}

#[test]
fn memory_that_a_server_holds_is_in_its_record() {
    let _alone = alone_at_rest();
    let project = project();
    add_wrong(&project, "holder", "--hold-bytes 300000000");
    add_wrong(&project, "plain", "");
    let load = "-n 600 --echo-limit 1000";
    expect_exit_code(0, &project, &format!("run holder plain {load}"));
    let (holder, plain) = (record(&project, "holder"), record(&project, "plain"));
    for name in [SERVER_RSS_START, SERVER_RSS_END] {
        let held = figure(&holder, Phase::Echo, name);
        assert!((300_000_000..315_000_000).contains(&held), "{name} {held}");
        // What it takes besides is not part of the three hundred.
        let more = held - figure(&plain, Phase::Echo, name);
        println!("{name}: {held}, {more} more than without");
        assert!((299_000_000..301_000_000).contains(&more), "{name} {more}");
    }
    let series = &holder.series[&Phase::Echo.metric(SERVER_RSS_SERIES)];
    assert!(series.values.len() >= 2, "{series:?}");
    let within = |rss: &u64| (300_000_000..315_000_000).contains(rss);
    assert!(series.values.iter().all(within), "{series:?}");
}

#[test]
fn cpu_time_that_a_server_burns_in_the_echo_phase_is_in_its_record_to_one_percent() {
    let _alone = alone_at_rest();
    let project = project();
    let path = project.path("burnt");
    // It burns from the fifth of 80 echoes on and ends long before the last,
    // in a thread that is gone by then. What the echoes cost while it burns is
    // in what it logs; what the others cost is far below one percent.
    let switches = format!(
        "--burn-ns 2000000000 --burn-after-echoes 5 --log {}",
        path.display()
    );
    add_wrong(&project, "burner", &switches);
    add_wrong(&project, "plain", "");
    let load = "-n 80 --echo-limit 20";
    expect_exit_code(0, &project, &format!("run burner plain {load}"));
    let burnt = log(&project, "burnt")[0];
    assert!(
        (2 * SECOND..2 * SECOND + 2 * MILLISECOND).contains(&burnt),
        "{burnt}"
    );
    let cpu = |name| figure(&record(&project, name), Phase::Echo, SERVER_CPU);
    let (burner, plain) = (cpu("burner"), cpu("plain"));
    println!("burnt {burnt} ns, recorded {burner} ns, without burning {plain} ns");
    assert!(plain < burnt / 100, "echoes alone cost {plain} ns");
    assert!(
        burner.abs_diff(burnt) < burnt / 100,
        "burnt {burnt} ns, recorded {burner} ns"
    );
}

#[test]
fn a_stall_is_in_the_latency_from_the_intended_time_and_not_in_that_from_the_actual_time() {
    let _alone = alone_at_rest();
    let project = project();
    let stall = "--stall-after-ms 3000 --stall-once-ms 1500";
    add_wrong(&project, "staller", stall);
    let record = measure(
        &project,
        "staller",
        "-c 50 --echo=false --rate --rate-duration 10s --rate-per-connection 200 --rate-window 1",
    );
    let count = |name| figure(&record, Phase::Rate, name);
    assert_eq!((count(PLANNED), count(SUCCEEDED)), (100_000, 100_000));
    assert_eq!((count(FAILED), count(SHORTFALL)), (0, 0));
    assert!(!record.marks.contains_key(NOT_AS_ASKED), "all was sent");
    let intended = quantile_ns(&record, Phase::Rate, INTENDED_LATENCY, 0.99);
    let actual = quantile_ns(&record, Phase::Rate, ACTUAL_LATENCY, 0.99);
    println!("TP99: {intended} ns from the intended, {actual} ns from the actual time");
    assert!(
        (1_300 * MILLISECOND..=1_600 * MILLISECOND).contains(&intended),
        "TP99 from the intended time: {intended} ns"
    );
    assert!(
        actual < 20 * MILLISECOND,
        "TP99 from the actual time: {actual} ns"
    );
    // One message of each connection was under way.
    let longest = quantile_ns(&record, Phase::Rate, ACTUAL_LATENCY, 1.0);
    assert!(longest > 1_400 * MILLISECOND, "{longest} ns");
}

#[test]
fn one_corrupt_echo_in_a_thousand_is_exactly_so_many_failures_of_that_cause() {
    let _alone = alone_at_rest();
    let project = project();
    add_wrong(&project, "corrupter", "--corrupt-every 1000");
    let record = measure_faulty(&project, "corrupter", "-c 64 -n 20000");
    let count = |name| figure(&record, Phase::Echo, name);
    assert_eq!((count(PLANNED), count(SUCCEEDED)), (20_000, 19_980));
    assert_eq!((count(FAILED), count(NOT_SENT)), (20, 0));
    assert_eq!(failed(&record, Phase::Echo, "wrong_payload"), 20);
    assert_eq!(count(CONNECTIONS_LOST), 20);
}

#[test]
fn every_wrong_echo_is_counted_once_under_its_own_cause() {
    let _alone = alone_at_rest();
    let project = project();
    let wrongs = [
        ("typist", "--wrong-opcode-every", "wrong_opcode"),
        ("cutter", "--wrong-length-every", "wrong_length"),
        ("closer", "--close-every", "closed"),
    ];
    for (name, switch, _) in wrongs {
        add_wrong(&project, name, &format!("{switch} 1000"));
    }
    expect_exit_code(1, &project, "run -c 64 -n 10000");
    for (name, _, cause) in wrongs {
        let record = record(&project, name);
        let count = |name| figure(&record, Phase::Echo, name);
        assert_eq!((count(SUCCEEDED), count(FAILED)), (9_990, 10), "{name}");
        assert_eq!(failed(&record, Phase::Echo, cause), 10, "{name}");
        assert_eq!(count(CONNECTIONS_LOST), 10, "{name}");
    }
}

#[test]
fn a_refused_handshake_is_a_failed_connection_with_its_cause() {
    let _alone = alone_at_rest();
    let project = project();
    let wrongs = [
        ("refuser", "--status 503", "handshake_status_503"),
        ("forger", "--bad-accept", "handshake_accept"),
    ];
    for (name, switches, _) in wrongs {
        add_wrong(&project, name, switches);
    }
    let dial = "--dial-retries 2 --dial-retry-interval 10ms";
    expect_exit_code(1, &project, &format!("run --unverified -c 4 {dial}"));
    for (name, _, cause) in wrongs {
        let record = record(&project, name);
        let count = |name| figure(&record, Phase::Connect, name);
        assert_eq!((count(SUCCEEDED), count(FAILED)), (0, 4), "{name}");
        assert_eq!(failed(&record, Phase::Connect, cause), 4, "{name}");
        assert_eq!(count(RETRIED), 8, "{name}");
        let (stage, reason) = failure(&record);
        assert_eq!(stage, "connect");
        assert!(reason.contains(&format!("{cause} 4")), "{reason}");
        assert!(record.marks.contains_key(UNVERIFIED), "{name}");
    }
}

/// One half of the connections answers at once, the other after 10 ms. Each of the
/// client's two threads has half of the echoes, so most of the time only one of two is in flight.
#[test]
fn a_loop_that_was_half_empty_is_marked_and_a_full_one_is_not() {
    let _alone = alone_at_rest();
    let project = project();
    let halves = "first=${4%-*}; last=${4#*-}\n\
                  \"$MISBEHAVE\" --ports \"$first\" & quick=$!\n\
                  \"$MISBEHAVE\" --ports \"$last\" --only-bytes 1000 --sleep-us 10000 & slow=$!\n\
                  trap 'kill $quick $slow' TERM\n\
                  wait; wait";
    project.script("uneven", halves);
    add_wrong(&project, "even", "--sleep-us 10000");
    let load = "--ports 2 -c 2 -n 240 --client-cpus 0,1";
    expect_exit_code(0, &project, &format!("run uneven even {load}"));
    let (uneven, even) = (record(&project, "uneven"), record(&project, "even"));
    assert!(!even.marks.contains_key(LITTLES_LAW), "{:?}", even.marks);
    let elapsed = figure(&uneven, Phase::Echo, ELAPSED);
    assert!(elapsed > 1_200 * MILLISECOND, "{elapsed} ns");
    let reason = &uneven.marks[LITTLES_LAW];
    assert!(
        reason.starts_with("echo: TPS x mean latency is 1."),
        "{reason}"
    );
}

#[test]
fn dials_that_a_full_listen_queue_dropped_are_told() {
    let _alone = alone_at_rest();
    let project = project();
    add_wrong(&project, "deaf", "--backlog 1 --accept-stall-ms 300");
    add_wrong(&project, "plain", "");
    expect_exit_code(0, &project, "run deaf plain --ports 1 -c 6 -n 60");
    let count = |name, metric| figure(&record(&project, name), Phase::Connect, metric);
    assert!(count("deaf", LISTEN_OVERFLOWS) >= 1);
    assert!(count("deaf", LISTEN_DROPS) >= count("deaf", LISTEN_OVERFLOWS));
    assert_eq!(count("plain", LISTEN_OVERFLOWS), 0);
    assert_eq!(count("deaf", SUCCEEDED), 6);
    let slowest = quantile_ns(&record(&project, "deaf"), Phase::Connect, DIAL_LATENCY, 1.0);
    assert!(slowest > 900 * MILLISECOND, "{slowest} ns");
    let report = project.path("output/report/connections.md");
    let report = std::fs::read_to_string(report).unwrap();
    assert!(
        report.contains("deaf: the listen queue overflowed "),
        "{report}"
    );
    assert!(!report.contains("plain: the listen queue"), "{report}");
}

#[test]
fn limits_a_second_hold_over_the_whole_run() {
    let _alone = alone_at_rest();
    let project = project();
    add_wrong(&project, "plain", "");
    let echo = "-c 50 -n 3000 --echo-limit 1000";
    let rate = "--rate --rate-duration 3s --rate-per-connection 200 --rate-limit 1000";
    // A message at once: a batch is all due or not at all.
    let load = format!("{echo} {rate} --rate-batch-bytes 1");
    let record = measure(&project, "plain", &load);
    let elapsed = figure(&record, Phase::Echo, ELAPSED);
    // Never faster; slower only by what a busy machine takes away.
    let allowed = 3 * SECOND - SECOND / 20..6 * SECOND;
    assert!(allowed.contains(&elapsed), "{elapsed} ns");
    let planned = figure(&record, Phase::Rate, PLANNED);
    assert!((2_970..=3_030).contains(&planned), "{planned}");
    assert_eq!(figure(&record, Phase::Rate, SUCCEEDED), planned);
}

#[test]
fn what_could_not_be_sent_when_it_was_due_is_shortfall_and_what_was_sent_is_waited_for() {
    let _alone = alone_at_rest();
    let project = project();
    // Still silent two seconds after the last message was due.
    add_wrong(
        &project,
        "staller",
        "--stall-after-ms 1000 --stall-once-ms 3000",
    );
    let record = measure(
        &project,
        "staller",
        "-c 50 --echo=false --rate --rate-duration 2s --rate-per-connection 200 --rate-window 1",
    );
    let count = |name| figure(&record, Phase::Rate, name);
    let (sent, shortfall) = (count(SENT), count(SHORTFALL));
    assert_eq!((count(PLANNED), sent + shortfall), (20_000, 20_000));
    assert_eq!((count(SUCCEEDED), count(FAILED)), (sent, 0));
    // About a second's worth.
    assert!((8_000..=16_000).contains(&shortfall), "{shortfall}");
    assert!(
        record.marks.contains_key(NOT_AS_ASKED),
        "{:?}",
        record.marks
    );
    let drain = count(DRAIN);
    assert!(
        (SECOND * 3 / 2..SECOND * 5 / 2).contains(&drain),
        "{drain} ns"
    );
}

/// Of a trial that others disturbed.
const ATTEMPTS_MORE: usize = 3;

/// One trial of a second: how busy both sides were, in thousandths, and whether
/// it is marked.
fn bound(server_burn_ns: u64, client_burn_ns: u64) -> (u64, u64, bool) {
    let measured = || {
        let project = project();
        let burn = format!("--burn-each-ns {server_burn_ns}");
        add_wrong(&project, "server", &burn);
        let load = "-c 32 -n 1000000 --echo-duration 1s --client-burn-ns";
        measure(&project, "server", &format!("{load} {client_burn_ns}"))
    };
    let mut record: TrialRecord = measured();
    // Where others use the CPUs nobody can be the limit.
    for _ in 0..ATTEMPTS_MORE {
        let noise = Noise::of(&record.metrics, Phase::Echo);
        if !noise.is_some_and(Noise::is_too_much) {
            break;
        }
        record = measured();
    }
    assert!(!record.cpus.shared, "this needs a CPU for each side");
    let server = server_busy_permille(&record.metrics, Phase::Echo).unwrap();
    let client = client_busy_permille(&record.metrics, Phase::Echo).unwrap();
    println!("burnt {server_burn_ns} {client_burn_ns} ns: busy {server} {client} of 1000");
    (server, client, is_client_bound(&record))
}

#[test]
fn work_added_to_the_client_sets_the_client_bound_mark() {
    let _alone = alone_at_rest();
    let (server, client, marked) = bound(200_000, 0);
    assert!(!marked && server > 950, "server {server}, client {client}");
    let (server, client, marked) = bound(200_000, 1_000_000);
    assert!(
        marked && client >= 950,
        "server {server}, client {client} of 1000"
    );
}

#[test]
fn work_added_to_the_server_takes_the_client_bound_mark_away() {
    let _alone = alone_at_rest();
    let (server, client, marked) = bound(0, 200_000);
    assert!(
        marked && client >= 950,
        "server {server}, client {client} of 1000"
    );
    let (server, client, marked) = bound(1_000_000, 200_000);
    assert!(!marked && server > 950, "server {server}, client {client}");
}

#[test]
fn what_the_server_keeps_of_closed_connections_is_read_after_they_are_closed() {
    let project = project();
    add_wrong(&project, "plain", "");
    let load = "-c 50 -n 500 --release 50 --release-settle 100ms";
    let record = measure(&project, "plain", load);
    let count = |name| figure(&record, Phase::Release, name);
    assert_eq!((count(CONNECTIONS), count(PLANNED)), (50, 25));
    assert_eq!((count(SUCCEEDED), count(FAILED)), (25, 0));
    assert!(count(SERVER_RSS_START) > 0 && count(SERVER_RSS_END) > 0);
    let window = figure(&record, Phase::Release, "server_window_ns");
    assert!(window >= 100 * MILLISECOND, "{window} ns");
    let report = project.path("output/report/memory.md");
    let report = std::fs::read_to_string(report).unwrap();
    assert!(report.contains("| plain "), "{report}");
}

#[test]
fn whoever_works_beside_a_trial_is_told() {
    let _alone = alone_at_rest();
    let project = project();
    add_wrong(&project, "plain", "");
    let over = AtomicBool::new(false);
    let record = std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let record = measure(&project, "plain", "-c 8 -n 1000000 --echo-duration 1s");
        over.store(true, Ordering::Relaxed);
        record
    });
    let reason = record.marks.get(NOISY).expect("a noisy trial");
    assert!(reason.starts_with("echo: "), "{reason}");
    let noise = Noise::of(&record.metrics, Phase::Echo).unwrap();
    assert!(noise.foreign > 200, "{noise}");
    let report = project.path("output/report/echo.md");
    let report = std::fs::read_to_string(report).unwrap();
    assert!(report.contains("N (plain): noisy: at worst "), "{report}");
}
