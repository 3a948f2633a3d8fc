//! What a measured phase says about the trial: whether it counts as failed, the
//! marks of its row, and the short result that is shown at once.

use crate::cpus;
use std::collections::BTreeMap;
use wsbench_schema::mark::{
    CLIENT_BOUND, CONNECTIONS_LOST, InFlight, LITTLES_LAW, NOISY, NOT_AS_ASKED, Noise, SHARED_CPUS,
    client_bound, client_busy_permille, server_busy_permille, too_little_sent_percent,
};
use wsbench_schema::{Outcome, Phase, PhaseReport, TrialRecord, decode_histogram, metric};

/// Causes for which it was the server who ended a connection; for all others the
/// client gave it up.
const CLOSINGS: [&str; 2] = ["closed", "reset"];

/// Why a phase in which nothing succeeded makes the trial a failure.
pub fn nothing_succeeded(phase: Phase, report: &PhaseReport) -> Option<String> {
    let count = |name: &str| report.metrics.get(name).copied().unwrap_or(0);
    // Transfers that the end of their time cut off have moved what they have moved.
    if count(metric::SUCCEEDED) > 0 || count(metric::UNFINISHED) > 0 {
        return None;
    }
    if phase != Phase::Connect && count(metric::CONNECTIONS) == 0 {
        return Some("no connection was left to carry a message".into());
    }
    // Nothing became due, so nothing could succeed.
    if report.metrics.get(metric::PLANNED) == Some(&0) {
        return None;
    }
    let what = match phase {
        Phase::Connect => "connection",
        Phase::Warmup | Phase::Echo => "echo",
        Phase::Rate => "message",
        Phase::Bulk => "transfer",
        Phase::Release => "close",
    };
    let causes = failures(report);
    let (failed, planned) = (count(metric::FAILED), count(metric::PLANNED));
    Some(format!(
        "no {what} succeeded: {failed} of {planned} failed{causes}"
    ))
}

/// The metrics `<before><cause>_count`, the commonest first.
fn causes<'a>(metrics: &'a BTreeMap<String, u64>, before: &str) -> Vec<(&'a str, u64)> {
    let mut causes: Vec<(&str, u64)> = metrics
        .iter()
        .filter_map(|(name, count)| {
            let cause = name.strip_prefix(before)?.strip_suffix("_count")?;
            (*count > 0).then_some((cause, *count))
        })
        .collect();
    causes.sort_by_key(|(cause, count)| (u64::MAX - count, *cause));
    causes
}

/// ` (timed_out 3, refused 1)`, why messages or dials of a phase failed; nothing if
/// none did.
pub fn failures(report: &PhaseReport) -> String {
    in_brackets(&causes(&report.metrics, "failed_"))
}

/// ` (timed_out 3, refused 1)`; nothing if there is no cause.
fn in_brackets(causes: &[(&str, u64)]) -> String {
    let each = causes
        .iter()
        .map(|(cause, count)| format!("{cause} {count}"));
    let each: Vec<String> = each.collect();
    match each.is_empty() {
        true => String::new(),
        false => format!(" ({})", each.join(", ")),
    }
}

/// Phases of which speed and cost are shown.
const MEASURED: [Phase; 3] = [Phase::Echo, Phase::Rate, Phase::Bulk];

/// Adds the marks that the figures and the CPU map call for.
pub fn add_marks(record: &mut TrialRecord) {
    if record.cpus.shared {
        let reason = format!(
            "server on {}, client on {}",
            cpus::format_list(&record.cpus.server),
            cpus::format_list(&record.cpus.client)
        );
        record.marks.insert(SHARED_CPUS.into(), reason);
    }
    let bound: Vec<String> = [Phase::Echo, Phase::Rate]
        .into_iter()
        .filter(|phase| client_bound(&record.metrics, *phase) == Some(true))
        .map(|phase| {
            let client = client_busy_permille(&record.metrics, phase).unwrap_or(0);
            let server = server_busy_permille(&record.metrics, phase).unwrap_or(0);
            let percent = |permille: u64| format!("{}.{} %", permille / 10, permille % 10);
            let (client, server) = (percent(client), percent(server));
            format!("{phase}: client CPUs {client} busy, server CPUs {server}")
        })
        .collect();
    if !bound.is_empty() {
        record.marks.insert(CLIENT_BOUND.into(), bound.join("; "));
    }
    if let Some(reason) = noise(record) {
        record.marks.insert(NOISY.into(), reason);
    }
    if let Some(reason) = connections_lost(record) {
        record.marks.insert(CONNECTIONS_LOST.into(), reason);
    }
    if let Some(reason) = littles_law(record) {
        record.marks.insert(LITTLES_LAW.into(), reason);
    }
    if let Some(percent) = too_little_sent_percent(&record.metrics) {
        let reason = format!("rate: {percent:.1} % of what was due was sent");
        record.marks.insert(NOT_AS_ASKED.into(), reason);
    }
}

/// `echo: 7.3 % of the CPUs used by others, ...`, for each phase that was disturbed.
fn noise(record: &TrialRecord) -> Option<String> {
    let loud = MEASURED.iter().filter_map(|phase| {
        let noise = Noise::of(&record.metrics, *phase)?;
        noise.is_too_much().then(|| format!("{phase}: {noise}"))
    });
    let loud: Vec<String> = loud.collect();
    (!loud.is_empty()).then(|| loud.join("; "))
}

/// Why TPS and latency of the echo phase do not fit each other, if so.
fn littles_law(record: &TrialRecord) -> Option<String> {
    let name = Phase::Echo.metric(metric::ECHO_LATENCY);
    // One that cannot be read is an error of the report.
    let latency = decode_histogram(record.histograms.get(&name)?).ok()?;
    let load = record.load.echo.as_ref()?;
    let in_flight = InFlight::of(&record.metrics, load, latency.mean())?;
    let InFlight { found, least, most } = in_flight;
    (!in_flight.holds()).then(|| {
        format!(
            "echo: TPS x mean latency is {found:.1} in flight, where {least:.1} to {most:.1} should be"
        )
    })
}

/// `rate: 20 of 20 connections lost (bad_frame 15, closed 5)`, for each phase that
/// lost any; `closed by the server` if there was no other cause.
fn connections_lost(record: &TrialRecord) -> Option<String> {
    let lost = Phase::ALL.iter().filter_map(|phase| {
        let lost = record.metric(*phase, metric::CONNECTIONS_LOST)?;
        let all = match phase {
            Phase::Connect => metric::SUCCEEDED,
            Phase::Warmup | Phase::Echo | Phase::Rate | Phase::Bulk | Phase::Release => {
                metric::CONNECTIONS
            }
        };
        let of = match record.metric(*phase, all) {
            Some(all) if all >= lost => format!(" of {all}"),
            _ => String::new(),
        };
        let causes = causes(&record.metrics, &phase.metric("connections_lost_"));
        let closed = causes.iter().filter(|(cause, _)| CLOSINGS.contains(cause));
        let closed: u64 = closed.map(|(_, count)| count).sum();
        let how = match closed == lost {
            true => "closed by the server",
            false => "lost",
        };
        let causes = in_brackets(&causes);
        (lost > 0).then(|| format!("{phase}: {lost}{of} connections {how}{causes}"))
    });
    let lost: Vec<String> = lost.collect();
    (!lost.is_empty()).then(|| lost.join("; "))
}

/// Whether `run` or `client` must not end with exit code 0: the trial did not run
/// to its end, a connection or message of it failed or was never sent, or a
/// connection was lost.
pub fn is_at_fault(record: &TrialRecord) -> bool {
    let faults = |phase: &Phase| {
        [metric::FAILED, metric::NOT_SENT, metric::CONNECTIONS_LOST]
            .iter()
            .any(|name| record.metric(*phase, name).is_some_and(|count| count > 0))
    };
    record.outcome != Outcome::Completed || Phase::ALL.iter().any(faults)
}

/// `echo 118,204 TPS  0 failed`, for each measured phase; connections alone if
/// there is no other.
pub fn short(record: &TrialRecord) -> String {
    let loops = [Phase::Echo, Phase::Rate, Phase::Bulk];
    let measured = |phase: &Phase| record.metric(*phase, metric::SUCCEEDED).is_some();
    let mut phases: Vec<Phase> = loops.into_iter().filter(measured).collect();
    if phases.is_empty() && measured(&Phase::Connect) {
        phases.push(Phase::Connect);
    }
    let shown = phases.into_iter().map(|phase| {
        let count = |name: &str| record.metric(phase, name).unwrap_or(0);
        let elapsed = count(metric::ELAPSED);
        // Answers cannot come faster than messages are due, however early the last one is.
        let time = match phase {
            Phase::Rate => elapsed.max(count(metric::DURATION)),
            Phase::Connect | Phase::Warmup | Phase::Echo | Phase::Bulk | Phase::Release => elapsed,
        };
        // Of a second; of transfers it is bytes, told in millions.
        let (done, unit_ns) = match &record.load.bulk {
            Some(bulk) if phase == Phase::Bulk => {
                (count(metric::VERIFIED_BYTES) * bulk.crossings(), 1_000)
            }
            _ => (count(metric::SUCCEEDED), 1_000_000_000),
        };
        let speed = match u128::from(done) * unit_ns / u128::from(time.max(1)) {
            // Without a time there is no speed.
            _ if elapsed == 0 => "-".into(),
            speed => grouped(speed),
        };
        let failed = grouped(count(metric::FAILED).into());
        format!("{phase} {speed} {}  {failed} failed", unit(phase))
    });
    shown.collect::<Vec<_>>().join("  ")
}

fn unit(phase: Phase) -> &'static str {
    match phase {
        Phase::Connect => "connections/s",
        Phase::Warmup | Phase::Echo => "TPS",
        Phase::Rate => "messages/s",
        Phase::Bulk => "MB/s",
        Phase::Release => "closes/s",
    }
}

/// `118,204`.
fn grouped(number: u128) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::testing::{plan, record};
    use wsbench_schema::metric::{failed_by, lost_by};
    use wsbench_schema::{encode_histogram, latency_histogram};

    fn report(metrics: &[(String, u64)]) -> PhaseReport {
        PhaseReport {
            metrics: metrics.iter().cloned().collect(),
            ..PhaseReport::default()
        }
    }

    #[test]
    fn a_phase_without_success_names_its_causes() {
        let failing = [
            (metric::PLANNED.to_owned(), 9),
            (metric::SUCCEEDED.to_owned(), 0),
            (metric::FAILED.to_owned(), 8),
            (failed_by("refused"), 2),
            (failed_by("timed_out"), 6),
            (failed_by("corrupt"), 0),
        ];
        assert_eq!(
            nothing_succeeded(Phase::Connect, &report(&failing)).unwrap(),
            "no connection succeeded: 8 of 9 failed (timed_out 6, refused 2)"
        );
        assert_eq!(
            nothing_succeeded(Phase::Echo, &report(&failing)).unwrap(),
            "no connection was left to carry a message"
        );
        let one = [(metric::SUCCEEDED.to_owned(), 1)];
        assert_eq!(nothing_succeeded(Phase::Echo, &report(&one)), None);
        assert!(nothing_succeeded(Phase::Echo, &report(&[])).is_some());
        let idle = [
            (metric::PLANNED.to_owned(), 0),
            (metric::CONNECTIONS.to_owned(), 5),
        ];
        assert_eq!(nothing_succeeded(Phase::Rate, &report(&idle)), None);
    }

    #[test]
    fn one_failed_or_unsent_message_or_lost_connection_is_a_fault_of_the_run() {
        let mut trial = record(&plan("a"), "axum", 1);
        assert!(!is_at_fault(&trial));
        for name in [metric::FAILED, metric::NOT_SENT, metric::CONNECTIONS_LOST] {
            let mut trial = trial.clone();
            trial.metrics.insert(Phase::Echo.metric(name), 1);
            assert!(is_at_fault(&trial), "{name}");
        }
        let (stage, reason) = ("start".into(), "it exited".into());
        trial.outcome = Outcome::Failed { stage, reason };
        assert!(is_at_fault(&trial));
    }

    #[test]
    fn a_busy_client_and_shared_cpus_are_marked() {
        let mut trial = record(&plan("a"), "axum", 1);
        add_marks(&mut trial);
        assert!(trial.marks.is_empty());
        trial.cpus.shared = true;
        for (name, value) in [
            (metric::CLIENT_CPU, 981),
            (metric::ELAPSED, 1000),
            (metric::CLIENT_CPUS, 1),
            (metric::SERVER_CPU, 450),
            (metric::SERVER_CPUS, 1),
        ] {
            trial.metrics.insert(Phase::Echo.metric(name), value);
        }
        add_marks(&mut trial);
        assert_eq!(
            trial.marks[CLIENT_BOUND],
            "echo: client CPUs 98.1 % busy, server CPUs 45.0 %"
        );
        assert!(trial.marks.contains_key(SHARED_CPUS));
    }

    #[test]
    fn lost_connections_are_marked_in_the_phase_that_lost_them_with_their_causes() {
        let mut trial = record(&plan("a"), "axum", 1);
        for (phase, name, value) in [
            (Phase::Echo, metric::CONNECTIONS_LOST, 0),
            (Phase::Rate, metric::CONNECTIONS, 20),
            (Phase::Rate, metric::CONNECTIONS_LOST, 20),
            (Phase::Rate, &lost_by("closed"), 15),
            (Phase::Rate, &lost_by("reset"), 5),
        ] {
            trial.metrics.insert(phase.metric(name), value);
        }
        add_marks(&mut trial);
        assert_eq!(
            trial.marks[CONNECTIONS_LOST],
            "rate: 20 of 20 connections closed by the server (closed 15, reset 5)"
        );
        // No message failed, and yet it was not the server who closed them all.
        for (name, value) in [
            (metric::CONNECTIONS, 100),
            (metric::CONNECTIONS_LOST, 11),
            (metric::FAILED, 0),
            (&lost_by("bad_frame"), 10),
            (&lost_by("closed"), 1),
        ] {
            trial.metrics.insert(Phase::Warmup.metric(name), value);
        }
        add_marks(&mut trial);
        assert_eq!(
            trial.marks[CONNECTIONS_LOST],
            "warmup: 11 of 100 connections lost (bad_frame 10, closed 1); \
             rate: 20 of 20 connections closed by the server (closed 15, reset 5)"
        );
    }

    #[test]
    fn a_loop_that_was_not_full_is_marked() {
        let mut trial = record(&plan("a"), "axum", 1);
        // 1,000 echoes in 10 s: 100 in flight if each takes a second.
        let concurrency = Phase::Echo.metric(metric::CONCURRENCY);
        trial.metrics.insert(concurrency, 100);
        for (latency_ns, marked) in [(1_000_000_000, false), (500_000_000, true)] {
            let mut latencies = latency_histogram();
            latencies.record_n(latency_ns, 1000).unwrap();
            let name = Phase::Echo.metric(metric::ECHO_LATENCY);
            let text = encode_histogram(&latencies);
            trial.histograms.insert(name, text);
            add_marks(&mut trial);
            assert_eq!(trial.marks.contains_key(LITTLES_LAW), marked);
        }
        assert_eq!(
            trial.marks[LITTLES_LAW],
            "echo: TPS x mean latency is 50.0 in flight, where 95.0 to 100.0 should be"
        );
    }

    #[test]
    fn a_rate_phase_that_sent_too_little_is_marked() {
        let mut trial = record(&plan("a"), "axum", 1);
        for (unsent, reason) in [
            (2500, None),
            (171_079, Some("rate: 31.6 % of what was due was sent")),
        ] {
            for (name, value) in [(metric::PLANNED, 250_013), (metric::SHORTFALL, unsent)] {
                trial.metrics.insert(Phase::Rate.metric(name), value);
            }
            add_marks(&mut trial);
            assert_eq!(trial.marks.get(NOT_AS_ASKED).map(String::as_str), reason);
        }
    }

    #[test]
    fn the_short_result_is_speed_and_failures() {
        let mut trial = record(&plan("a"), "axum", 1);
        assert_eq!(short(&trial), "echo 100 TPS  0 failed");
        let succeeded = Phase::Echo.metric(metric::SUCCEEDED);
        trial.metrics.insert(succeeded, 1_182_043);
        assert_eq!(short(&trial), "echo 118,204 TPS  0 failed");
        trial.metrics.clear();
        assert_eq!(short(&trial), "");
        // The last answer came after 0.98 s of a phase of 1 s, then after 1.25 s.
        for (elapsed, shown) in [(980_000_000, "980"), (1_250_000_000, "784")] {
            for (name, value) in [
                (metric::SUCCEEDED, 980),
                (metric::ELAPSED, elapsed),
                (metric::DURATION, 1_000_000_000),
            ] {
                trial.metrics.insert(Phase::Rate.metric(name), value);
            }
            let expected = format!("rate {shown} messages/s  0 failed");
            assert_eq!(short(&trial), expected);
        }
        trial.metrics.clear();
        let connected = Phase::Connect.metric(metric::SUCCEEDED);
        trial.metrics.insert(connected, 5);
        assert_eq!(short(&trial), "connect - connections/s  0 failed");
    }
}
