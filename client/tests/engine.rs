//! The engine against real sockets: what it sends when, and what it counts.
//! Servers that go wrong in every way are in `hostile`.

mod util;

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use util::{
    answer, causes, echo, echoes, expect, in_time_wait, load, messages, metric, run, server,
};
use wsbench_client::Engine;
use wsbench_schema::{
    EchoLoad, MessageKind, Phase, PortRange, ReleaseLoad, Target, decode_histogram,
    latency_histogram,
};

#[test]
fn every_echo_of_an_honest_server_counts_once() {
    for payload in [0, 1, 125, 126, 1024, 65_536, 300_000] {
        let reports = run(echoes(7, payload, 300), &server(echo));
        assert_eq!(metric(&reports[&Phase::Connect], "succeeded_count"), 7);
        expect(&reports[&Phase::Echo], 300, &[]);
        let histogram = decode_histogram(&reports[&Phase::Echo].histograms["latency_ns"]).unwrap();
        assert_eq!(histogram.len(), 300);
        let dials = decode_histogram(&reports[&Phase::Connect].histograms["dial_ns"]).unwrap();
        assert_eq!(dials.len(), 7);
    }
}

#[test]
fn text_comes_back_as_text() {
    let as_text = || Load {
        message: MessageKind::Text,
        ..echoes(2, 100, 20)
    };
    use wsbench_schema::Load;
    expect(&run(as_text(), &server(echo))[&Phase::Echo], 20, &[]);
    let binary = server(|stream, _, _, payload| answer(stream, 0x82, payload));
    expect(
        &run(as_text(), &binary)[&Phase::Echo],
        0,
        &[("wrong_opcode", 2)],
    );
}

#[test]
fn fewer_in_flight_than_connections_still_uses_every_connection() {
    let most = Arc::new(AtomicU64::new(0));
    let used = Arc::clone(&most);
    let target = server(move |stream, number, first, payload| {
        used.fetch_max(number + 1, Ordering::Relaxed);
        answer(stream, first, payload)
    });
    let mut load = echoes(50, 64, 500);
    load.echo.as_mut().unwrap().concurrency = 5;
    let reports = run(load, &target);
    expect(&reports[&Phase::Echo], 500, &[]);
    // In FIFO order each of 50 connections gets its tenth of 500 echoes.
    let busiest = most.load(Ordering::Relaxed);
    assert!((10..=14).contains(&busiest), "{busiest}");
    assert_eq!(metric(&reports[&Phase::Echo], "concurrency_count"), 5);
}

#[test]
fn warm_up_is_not_measured() {
    let seen = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&seen);
    let target = server(move |stream, _, first, payload| {
        counter.fetch_add(1, Ordering::Relaxed);
        answer(stream, first, payload)
    });
    let mut load = echoes(4, 64, 40);
    load.echo.as_mut().unwrap().warmup_echoes = 20;
    let reports = run(load, &target);
    expect(&reports[&Phase::Warmup], 20, &[]);
    expect(&reports[&Phase::Echo], 40, &[]);
    assert_eq!(seen.load(Ordering::Relaxed), 60);
}

#[test]
fn a_corrupted_echo_fails_and_its_connection_is_not_used_again() {
    let target = server(|stream, number, first, payload| {
        let mut payload = payload.to_vec();
        if number == 9 {
            payload[50] ^= 1;
        }
        assert!(number < 10, "a failed connection was used again");
        answer(stream, first, &payload)
    });
    let reports = run(echoes(5, 64, 1000), &target);
    let echo = &reports[&Phase::Echo];
    expect(echo, 45, &[("wrong_payload", 5)]);
    assert_eq!(metric(echo, "not_sent_count"), 950);
    assert_eq!(metric(echo, "connections_lost_count"), 5);
    assert_eq!(metric(echo, "planned_count"), 1000);
}

#[test]
fn a_mute_server_loses_every_echo_by_timeout_and_the_phase_ends() {
    let target = server(|_, _, _, _| true);
    let mut load = echoes(20, 64, 1000);
    load.echo.as_mut().unwrap().timeout_ms = 400;
    let began = Instant::now();
    let echo = run(load, &target).remove(&Phase::Echo).unwrap();
    expect(&echo, 0, &[("lost", 20)]);
    assert_eq!(metric(&echo, "not_sent_count"), 980);
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn nobody_listening_is_refused() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let ports = PortRange {
        first: port,
        last: port,
    };
    let target = Target {
        host: "127.0.0.1".into(),
        ports,
        path: "/ws".into(),
    };
    let connect = run(load(3, 64), &target).remove(&Phase::Connect).unwrap();
    expect(&connect, 0, &[("refused", 3)]);
}

#[test]
fn a_limit_of_echoes_a_second_holds() {
    let mut load = echoes(10, 64, 300);
    load.echo.as_mut().unwrap().limit_per_s = 300;
    let echo = run(load, &server(echo)).remove(&Phase::Echo).unwrap();
    expect(&echo, 300, &[]);
    let elapsed = metric(&echo, "elapsed_ns") as f64 / 1e9;
    assert!(
        (0.98..1.2).contains(&elapsed),
        "{elapsed} s for one second's worth"
    );
}

#[test]
fn a_duration_ends_the_echoes_and_nothing_counts_as_unsent() {
    let mut load = echoes(4, 64, u64::MAX / 2);
    load.echo.as_mut().unwrap().duration_ms = Some(300);
    let began = Instant::now();
    let echo = run(load, &server(echo)).remove(&Phase::Echo).unwrap();
    assert!(began.elapsed() < Duration::from_secs(2));
    assert_eq!(metric(&echo, "not_sent_count"), 0);
    assert_eq!(
        metric(&echo, "planned_count"),
        metric(&echo, "succeeded_count")
    );
    assert!(metric(&echo, "succeeded_count") > 100);
}

#[test]
fn every_message_that_is_due_is_sent_and_answered() {
    let rate = run(messages(10, 50, 0), &server(echo))
        .remove(&Phase::Rate)
        .unwrap();
    expect(&rate, 500, &[]);
    assert_eq!(metric(&rate, "planned_count"), 500);
    assert_eq!(metric(&rate, "shortfall_count"), 0);
    let elapsed = metric(&rate, "elapsed_ns");
    assert!((950_000_000..1_300_000_000).contains(&elapsed), "{elapsed}");
}

#[test]
fn batches_go_out_whole_at_the_same_rate() {
    let mut load = messages(10, 50, 0);
    load.rate.as_mut().unwrap().batch_bytes = 70 * 5;
    let rate = run(load, &server(echo)).remove(&Phase::Rate).unwrap();
    assert_eq!(metric(&rate, "batch_count"), 5);
    expect(&rate, 500, &[]);
}

#[test]
fn a_limit_lowers_the_intended_rate() {
    let mut load = messages(10, 50, 0);
    load.rate.as_mut().unwrap().limit_per_s = 100;
    let rate = run(load, &server(echo)).remove(&Phase::Rate).unwrap();
    expect(&rate, 100, &[]);
}

#[test]
fn a_stall_shows_in_intended_time_and_not_in_actual_time() {
    let began = Arc::new(std::sync::Mutex::new(None));
    let target = server(move |stream, _, first, payload| {
        let began = *began.lock().unwrap().get_or_insert_with(Instant::now);
        let (stall, resume) = (Duration::from_millis(200), Duration::from_millis(600));
        let since = began.elapsed();
        if (stall..resume).contains(&since) {
            sleep(resume - since);
        }
        answer(stream, first, payload)
    });
    let rate = run(messages(20, 200, 1), &target)
        .remove(&Phase::Rate)
        .unwrap();
    let percentile = |name: &str| {
        decode_histogram(&rate.histograms[name])
            .unwrap()
            .value_at_quantile(0.99) as f64
            / 1e6
    };
    let (intended, actual) = (
        percentile("intended_latency_ns"),
        percentile("actual_latency_ns"),
    );
    assert!((300.0..500.0).contains(&intended), "{intended} ms");
    assert!(actual < 50.0, "{actual} ms");
    assert!(metric(&rate, "late_count") > 500, "{:?}", rate.metrics);
}

#[test]
fn a_limit_is_of_what_is_due_and_what_a_stall_held_up_is_sent_behind_it() {
    let began = Arc::new(std::sync::Mutex::new(None));
    let target = server(move |stream, _, first, payload| {
        let began = *began.lock().unwrap().get_or_insert_with(Instant::now);
        let (stall, resume) = (Duration::from_millis(100), Duration::from_millis(600));
        let since = began.elapsed();
        if (stall..resume).contains(&since) {
            sleep(resume - since);
        }
        answer(stream, first, payload)
    });
    let mut load = messages(10, 50, 2);
    let rate = load.rate.as_mut().unwrap();
    (rate.limit_per_s, rate.timeout_ms) = (100, 5000);
    let rate = run(load, &target).remove(&Phase::Rate).unwrap();
    expect(&rate, 100, &[]);
    assert_eq!(metric(&rate, "shortfall_count"), 0);
    // Fifty were due during the stall, of which twenty were in the windows.
    assert!(metric(&rate, "late_count") >= 15, "{:?}", rate.metrics);
}

#[test]
fn what_a_mute_server_leaves_unsent_is_a_shortfall() {
    let rate = run(messages(5, 100, 2), &server(|_, _, _, _| true))
        .remove(&Phase::Rate)
        .unwrap();
    assert_eq!(metric(&rate, "planned_count"), 500);
    assert_eq!(
        metric(&rate, "sent_count"),
        10,
        "a window of two on five connections"
    );
    assert_eq!(metric(&rate, "shortfall_count"), 490);
    assert_eq!(metric(&rate, "failed_count"), 10);
}

#[test]
fn a_stop_ends_a_phase_at_once_with_what_was_measured() {
    let target = server(echo);
    let slow = EchoLoad {
        limit_per_s: 100,
        ..echoes(4, 64, 100_000).echo.unwrap()
    };
    let load = wsbench_schema::Load {
        echo: Some(slow),
        ..load(4, 64)
    };
    let mut engine = Engine::prepare(load, &target, 1).unwrap();
    let stop = AtomicBool::new(false);
    engine
        .run(Phase::Connect, None, &stop, &mut |_| {})
        .unwrap();
    let began = Instant::now();
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            sleep(Duration::from_millis(500));
            stop.store(true, Ordering::Relaxed);
        });
        engine.run(Phase::Echo, None, &stop, &mut |_| {}).unwrap()
    });
    // At a hundred a second the phase would last a quarter of an hour.
    assert!(began.elapsed() < Duration::from_secs(4));
    assert!(metric(&report, "succeeded_count") > 10 && causes(&report).is_empty());
    assert!(engine.run(Phase::Echo, None, &stop, &mut |_| {}).is_err());
}

#[test]
fn a_window_that_is_no_multiple_of_the_batch_keeps_every_send_time() {
    // Each third answer of a connection is half a second late.
    let target = server(|stream, number, first, payload| {
        if number % 3 == 2 {
            sleep(Duration::from_millis(500));
        }
        answer(stream, first, payload)
    });
    let tp75 = |window| {
        let mut load = messages(1, 30, window);
        let rate = load.rate.as_mut().unwrap();
        (rate.batch_bytes, rate.duration_ms, rate.timeout_ms) = (70 * 3, 2000, 5000);
        let rate = run(load, &target).remove(&Phase::Rate).unwrap();
        assert_eq!(metric(&rate, "batch_count"), 3);
        let histogram = decode_histogram(&rate.histograms["actual_latency_ns"]).unwrap();
        histogram.value_at_quantile(0.75) as f64 / 1e6
    };
    // Two batches are in flight either way, so answers wait for the one before: a
    // second in all. With the send time of the next batch it would be half of that.
    let (multiple, other) = (tp75(6), tp75(4));
    assert!(
        multiple > 750.0 && other > 750.0,
        "{multiple} ms, {other} ms"
    );
}

#[test]
fn no_connection_is_left_in_time_wait_however_it_ended() {
    // Every fifth connection ends by a fault, the others with the client.
    let connections = Arc::new(AtomicU64::new(0));
    let target = server(move |stream, number, first, payload| {
        let is_first = number == 0;
        if is_first
            && connections
                .fetch_add(1, Ordering::Relaxed)
                .is_multiple_of(5)
        {
            return answer(stream, first, b"not what was sent");
        }
        answer(stream, first, payload)
    });
    let reports = run(echoes(50, 64, 500), &target);
    assert_eq!(metric(&reports[&Phase::Echo], "connections_lost_count"), 10);
    assert_eq!(in_time_wait(target.ports.first), 0);
    // The check sees one: here the client closes first, and politely.
    let polite = std::net::TcpStream::connect(("127.0.0.1", target.ports.first)).unwrap();
    polite.shutdown(std::net::Shutdown::Both).unwrap();
    drop(polite);
    let deadline = Instant::now() + Duration::from_secs(20);
    while in_time_wait(target.ports.first) == 0 {
        assert!(Instant::now() < deadline, "TIME_WAIT is not seen");
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_release_closes_its_share_and_leaves_the_others_open() {
    let mut load = echoes(9, 64, 90);
    load.release = Some(ReleaseLoad {
        percent: 50,
        settle_ms: 20,
        timeout_ms: 5000,
    });
    let target = server(echo);
    let mut engine = Engine::prepare(load.clone(), &target, 1).unwrap();
    let stop = AtomicBool::new(false);
    let shards = engine.shards();
    assert_eq!(engine.phases().last(), Some(&Phase::Release));
    let mut released = None;
    for phase in engine.phases() {
        let began = Instant::now();
        let report = engine.run(phase, None, &stop, &mut |_| {}).unwrap();
        assert!(phase != Phase::Release || began.elapsed() >= Duration::from_millis(20));
        released = Some(report);
    }
    let released = released.unwrap();
    // Each shard rounds down.
    let closed = match shards {
        1 => 4,
        _ => metric(&released, "planned_count"),
    };
    assert!((3..=4).contains(&closed), "{closed}");
    expect(&released, closed, &[]);
    assert_eq!(metric(&released, "connections_count"), 9);
    assert_eq!(metric(&released, "connections_lost_count"), 0);
    assert_eq!(u64::from(engine.open()), 9 - closed);
    let refused = engine.extend(load).unwrap_err().to_string();
    assert!(refused.contains("no step can follow"), "{refused}");
}

#[test]
fn a_close_that_the_server_never_completes_is_given_up_and_counted() {
    let mut load = echoes(6, 64, 60);
    load.release = Some(ReleaseLoad {
        percent: 100,
        settle_ms: 0,
        timeout_ms: 100,
    });
    // It reads the close frame and says nothing.
    let deaf = server(|stream, _, first, payload| match first & 0x0F {
        8 => true,
        _ => answer(stream, first, payload),
    });
    let reports = run(load, &deaf);
    expect(&reports[&Phase::Release], 0, &[("lost", 6)]);
}

#[test]
fn what_is_told_by_interval_is_the_whole() {
    let mut load = messages(20, 100, 0);
    load.echo = echoes(20, 64, 3000).echo;
    let reports = run(load, &server(echo));
    for (phase, names) in [
        (Phase::Echo, &["latency_ns"][..]),
        (Phase::Rate, &["intended_latency_ns", "actual_latency_ns"]),
    ] {
        let report = &reports[&phase];
        let names_told: Vec<_> = report.intervals.keys().collect();
        assert_eq!(names_told.len(), names.len(), "{names_told:?}");
        for name in names {
            let mut sum = latency_histogram();
            for part in report.intervals[*name].decoded().unwrap() {
                sum.add(part).unwrap();
            }
            assert_eq!(sum, decode_histogram(&report.histograms[*name]).unwrap());
        }
        let series = &report.series["succeeded_count"];
        let succeeded = metric(report, "succeeded_count");
        assert_eq!(series.values.last(), Some(&succeeded));
        assert!(series.values.is_sorted(), "{series:?}");
        let elapsed = metric(report, "elapsed_ns");
        assert_eq!(series.offsets_ns.last(), Some(&elapsed));
    }
}
