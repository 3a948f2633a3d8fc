//! The formulas, each from one trial and one phase. `None` where something that
//! the formula needs was not measured, or where it would divide by zero.

use wsbench_schema::{Phase, TrialRecord, metric};

/// A formula.
pub type Stat = fn(&TrialRecord, Phase) -> Option<f64>;

/// A metric as it stands in the record.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "reports show fewer digits")]
pub fn metric(trial: &TrialRecord, phase: Phase, name: &str) -> Option<f64> {
    trial.metric(phase, name).map(|value| value as f64)
}

pub(crate) fn quotient(dividend: f64, divisor: f64) -> Option<f64> {
    (divisor != 0.0).then(|| dividend / divisor)
}

/// Successes a second: succeeded / elapsed.
#[must_use]
pub fn tps(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    let succeeded = metric(trial, phase, metric::SUCCEEDED)?;
    quotient(succeeded * 1e9, metric(trial, phase, metric::ELAPSED)?)
}

/// Average CPU of the server in percent of one CPU, from the exact edges.
#[must_use]
pub fn cpu_avg(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    let cpu = metric(trial, phase, metric::SERVER_CPU)?;
    quotient(cpu * 100.0, metric(trial, phase, metric::SERVER_WINDOW)?)
}

/// Average CPU of the client in percent of one CPU.
#[must_use]
pub fn client_cpu_avg(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    let cpu = metric(trial, phase, metric::CLIENT_CPU)?;
    quotient(cpu * 100.0, metric(trial, phase, metric::CLIENT_WINDOW)?)
}

/// Successes for each hundredth of a second of the server's CPU. TPS / CPU Avg
/// is the same where both cover the same time; they do not where the phase ends
/// with waiting for what was lost, and waiting is no matter of efficiency.
#[must_use]
pub fn eer(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    let succeeded = metric(trial, phase, metric::SUCCEEDED)?;
    quotient(succeeded * 1e7, metric(trial, phase, metric::SERVER_CPU)?)
}

/// The readings of a series; none if it was not kept.
#[expect(clippy::cast_precision_loss, reason = "reports show fewer digits")]
pub(crate) fn readings<'a>(
    trial: &'a TrialRecord,
    phase: Phase,
    name: &str,
) -> impl Iterator<Item = f64> + 'a + use<'a> {
    let series = trial.series.get(&phase.metric(name));
    series
        .into_iter()
        .flat_map(|series| &series.values)
        .map(|value| *value as f64)
}

fn cpu_readings(trial: &TrialRecord, phase: Phase) -> impl Iterator<Item = f64> {
    readings(trial, phase, metric::SERVER_CPU_SERIES).map(|millipercent| millipercent / 1000.0)
}

/// The least busy reading of the series or the average if that is less, in
/// percent of one CPU: few readings can miss what the edges saw.
#[must_use]
pub fn cpu_min(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    let lowest = cpu_readings(trial, phase).reduce(f64::min)?;
    Some(cpu_avg(trial, phase).map_or(lowest, |average| average.min(lowest)))
}

/// The busiest reading of the series or the average if that is more, in percent
/// of one CPU.
#[must_use]
pub fn cpu_max(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    let highest = cpu_readings(trial, phase).reduce(f64::max)?;
    Some(cpu_avg(trial, phase).map_or(highest, |average| average.max(highest)))
}

/// Resident memory: the readings of the series and both edges.
fn memory_readings(trial: &TrialRecord, phase: Phase) -> impl Iterator<Item = f64> {
    let edges = [metric::SERVER_RSS_START, metric::SERVER_RSS_END];
    edges
        .into_iter()
        .filter_map(move |name| metric(trial, phase, name))
        .chain(readings(trial, phase, metric::SERVER_RSS_SERIES))
}

/// The least resident memory, in bytes.
#[must_use]
pub fn mem_min(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    memory_readings(trial, phase).reduce(f64::min)
}

/// The mean of the readings of resident memory, in bytes.
#[must_use]
pub fn mem_avg(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    let (count, sum) = memory_readings(trial, phase)
        .fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    quotient(sum, count)
}

/// The most resident memory, in bytes.
#[must_use]
pub fn mem_max(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    memory_readings(trial, phase).reduce(f64::max)
}

/// The server's CPU time for each success, in nanoseconds.
#[must_use]
pub fn server_cpu_per_message(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    let cpu = metric(trial, phase, metric::SERVER_CPU)?;
    quotient(cpu, metric(trial, phase, metric::SUCCEEDED)?)
}

/// The client's CPU time for each success, in nanoseconds.
#[must_use]
pub fn client_cpu_per_message(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    let cpu = metric(trial, phase, metric::CLIENT_CPU)?;
    quotient(cpu, metric(trial, phase, metric::SUCCEEDED)?)
}

/// Resident memory that the connect phase added, for each connection that it
/// established, in bytes. Of the connect phase whatever phase is asked for.
#[must_use]
pub fn memory_per_connection(trial: &TrialRecord, _phase: Phase) -> Option<f64> {
    let [start, end, established] = [
        metric::SERVER_RSS_START,
        metric::SERVER_RSS_END,
        metric::SUCCEEDED,
    ]
    .map(|name| metric(trial, Phase::Connect, name));
    quotient(end? - start?, established?)
}

/// Resident memory with all connections open and nothing sent yet, in bytes.
#[must_use]
pub fn memory_idle(trial: &TrialRecord, _phase: Phase) -> Option<f64> {
    metric(trial, Phase::Connect, metric::SERVER_RSS_END)
}

/// Resident memory when all traffic is over and before any connection is closed, in bytes.
#[must_use]
pub fn memory_after_traffic(trial: &TrialRecord, _phase: Phase) -> Option<f64> {
    metric(trial, Phase::Release, metric::SERVER_RSS_START)
}

/// Resident memory some time after connections were closed, in bytes.
#[must_use]
pub fn memory_after_release(trial: &TrialRecord, _phase: Phase) -> Option<f64> {
    metric(trial, Phase::Release, metric::SERVER_RSS_END)
}

/// What the server's memory has grown by since it had no connection, for each that is
/// open when all traffic is over, in bytes.
#[must_use]
pub fn memory_per_connection_after_traffic(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    let open = metric(trial, Phase::Release, metric::CONNECTIONS)?;
    quotient(grown(trial, memory_after_traffic(trial, phase)?)?, open)
}

/// Of what its memory has grown by, what the server gave back when connections were
/// closed, in percent: as many as were closed if it keeps nothing of them.
#[must_use]
pub fn memory_given_back(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    let before = memory_after_traffic(trial, phase)?;
    let given = before - memory_after_release(trial, phase)?;
    let grown = grown(trial, before)?;
    (grown > 0.0).then_some(given * 100.0 / grown)
}

fn grown(trial: &TrialRecord, to: f64) -> Option<f64> {
    Some(to - metric(trial, Phase::Connect, metric::SERVER_RSS_START)?)
}

/// Messages that became due a second, while messages were due.
#[must_use]
pub fn intended_rate(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    let due = metric(trial, phase, metric::PLANNED)?;
    quotient(due * 1e9, metric(trial, phase, metric::DURATION)?)
}

/// Messages answered rightly a second, while messages were due or until the last
/// answer, whichever took longer: an early last answer is no speed.
#[must_use]
pub fn achieved_rate(trial: &TrialRecord, phase: Phase) -> Option<f64> {
    let succeeded = metric(trial, phase, metric::SUCCEEDED)?;
    let elapsed = metric(trial, phase, metric::ELAPSED)?;
    let due = metric(trial, phase, metric::DURATION)?;
    quotient(succeeded * 1e9, elapsed.max(due))
}

/// The value in the middle; the mean of the two middle ones of an even number.
#[must_use]
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        length if length % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    const EVERY: [Stat; 19] = [
        tps,
        achieved_rate,
        cpu_avg,
        client_cpu_avg,
        eer,
        cpu_min,
        cpu_max,
        mem_min,
        mem_avg,
        mem_max,
        server_cpu_per_message,
        client_cpu_per_message,
        memory_per_connection,
        memory_idle,
        memory_after_traffic,
        memory_after_release,
        memory_per_connection_after_traffic,
        memory_given_back,
        intended_rate,
    ];

    /// 1,000 of 1,002 echoes in 0.5 s; the server used 0.8 s of CPU in a window
    /// of 1 s, the client 0.25 s in 0.5 s.
    fn trial() -> TrialRecord {
        let mut trial = example::trial("axum", 1);
        trial.metrics.clear();
        trial.series.clear();
        let figures = [
            (Phase::Echo, metric::PLANNED, 1002),
            (Phase::Echo, metric::SUCCEEDED, 1000),
            (Phase::Echo, metric::ELAPSED, 500_000_000),
            (Phase::Echo, metric::SERVER_CPU, 800_000_000),
            (Phase::Echo, metric::SERVER_WINDOW, 1_000_000_000),
            (Phase::Echo, metric::CLIENT_CPU, 250_000_000),
            (Phase::Echo, metric::CLIENT_WINDOW, 500_000_000),
            (Phase::Echo, metric::SERVER_RSS_START, 1000),
            (Phase::Echo, metric::SERVER_RSS_END, 4000),
            (Phase::Connect, metric::SERVER_RSS_START, 1_000_000),
            (Phase::Connect, metric::SERVER_RSS_END, 1_600_000),
            (Phase::Connect, metric::SUCCEEDED, 100),
            (Phase::Release, metric::CONNECTIONS, 100),
            (Phase::Release, metric::SERVER_RSS_START, 2_000_000),
            (Phase::Release, metric::SERVER_RSS_END, 1_750_000),
            (Phase::Rate, metric::PLANNED, 500),
            (Phase::Rate, metric::DURATION, 2_000_000_000),
            (Phase::Rate, metric::SUCCEEDED, 500),
            (Phase::Rate, metric::ELAPSED, 1_950_000_000),
            (Phase::Rate, metric::SERVER_CPU, 200_000_000),
            (Phase::Rate, metric::SERVER_WINDOW, 2_000_000_000),
        ];
        for (phase, name, value) in figures {
            trial.metrics.insert(phase.metric(name), value);
        }
        example::series(
            &mut trial,
            Phase::Echo,
            &[(79_000, 2500), (81_000, 4500), (80_000, 3000)],
        );
        trial
    }

    fn expect(stat: Stat, phase: Phase, expected: f64) {
        expect_of(&trial(), stat, phase, expected);
    }

    fn expect_of(trial: &TrialRecord, stat: Stat, phase: Phase, expected: f64) {
        let value = stat(trial, phase).expect("measured");
        assert!(
            (value - expected).abs() < 1e-9 * expected.abs(),
            "{value} is not {expected}"
        );
    }

    #[test]
    fn each_formula_gives_what_is_computed_by_hand() {
        expect(tps, Phase::Echo, 2000.0);
        expect(cpu_avg, Phase::Echo, 80.0);
        expect(client_cpu_avg, Phase::Echo, 50.0);
        expect(eer, Phase::Echo, 12.5); // 1,000 / 0.8 s / 100
        expect(eer, Phase::Rate, 25.0); // 500 / 0.2 s / 100
        expect(cpu_min, Phase::Echo, 79.0);
        expect(cpu_max, Phase::Echo, 81.0);
        expect(server_cpu_per_message, Phase::Echo, 800_000.0);
        expect(client_cpu_per_message, Phase::Echo, 250_000.0);
        expect(memory_per_connection, Phase::Echo, 6000.0);
        expect(memory_idle, Phase::Release, 1_600_000.0);
        expect(memory_after_traffic, Phase::Release, 2_000_000.0);
        expect(memory_after_release, Phase::Release, 1_750_000.0);
        expect(
            memory_per_connection_after_traffic,
            Phase::Release,
            10_000.0,
        );
        expect(memory_given_back, Phase::Release, 25.0);
        expect(intended_rate, Phase::Rate, 250.0);
    }

    #[test]
    fn without_an_idle_tail_eer_is_tps_by_cpu_avg() {
        let mut trial = trial();
        let name = Phase::Echo.metric(metric::SERVER_WINDOW);
        trial.metrics.insert(name, 500_000_000);
        // 2,000 TPS / 160 %
        expect_of(&trial, tps, Phase::Echo, 2000.0);
        expect_of(&trial, cpu_avg, Phase::Echo, 160.0);
        expect_of(&trial, eer, Phase::Echo, 12.5);
    }

    #[test]
    fn waiting_for_a_lost_echo_changes_no_efficiency() {
        let mut trial = trial();
        for window_ns in [500_000_000, 5_500_000_000] {
            for phase in [Phase::Echo, Phase::Rate] {
                let name = phase.metric(metric::SERVER_WINDOW);
                trial.metrics.insert(name, window_ns);
            }
            expect_of(&trial, eer, Phase::Echo, 12.5);
            expect_of(&trial, eer, Phase::Rate, 25.0);
        }
    }

    #[test]
    fn answers_are_not_faster_than_messages_were_due() {
        let mut trial = trial();
        // The last of 500 answers after 1.95 s of 2 s: 250 a second were due.
        expect_of(&trial, achieved_rate, Phase::Rate, 250.0);
        let name = Phase::Rate.metric(metric::ELAPSED);
        trial.metrics.insert(name.clone(), 2_500_000_000);
        expect_of(&trial, achieved_rate, Phase::Rate, 200.0);
        trial.metrics.remove(&name);
        assert_eq!(achieved_rate(&trial, Phase::Rate), None);
    }

    #[test]
    fn the_average_lies_between_the_extremes() {
        let mut trial = trial();
        let name = Phase::Echo.metric(metric::SERVER_CPU);
        for (cpu_ns, lowest, highest) in [
            (770_000_000, 77.0, 81.0),
            (830_000_000, 79.0, 83.0),
            (800_000_000, 79.0, 81.0),
        ] {
            trial.metrics.insert(name.clone(), cpu_ns);
            expect_of(&trial, cpu_min, Phase::Echo, lowest);
            expect_of(&trial, cpu_max, Phase::Echo, highest);
        }
    }

    #[test]
    fn without_readings_there_are_no_extremes_and_without_an_average_only_readings() {
        let mut trial = trial();
        let name = Phase::Echo.metric(metric::SERVER_CPU);
        trial.metrics.remove(&name);
        expect_of(&trial, cpu_min, Phase::Echo, 79.0);
        expect_of(&trial, cpu_max, Phase::Echo, 81.0);
        let mut trial = self::trial();
        trial.series.clear();
        expect_of(&trial, cpu_avg, Phase::Echo, 80.0);
        assert_eq!(cpu_min(&trial, Phase::Echo), None);
        assert_eq!(cpu_max(&trial, Phase::Echo), None);
    }

    #[test]
    fn memory_counts_both_edges_beside_the_series() {
        expect(mem_min, Phase::Echo, 1000.0);
        expect(mem_max, Phase::Echo, 4500.0);
        expect(mem_avg, Phase::Echo, 3000.0); // (1000 + 4000 + 2500 + 4500 + 3000) / 5
    }

    #[test]
    fn memory_that_shrank_is_negative_and_not_huge() {
        let mut trial = trial();
        let name = Phase::Connect.metric(metric::SERVER_RSS_END);
        trial.metrics.insert(name, 900_000);
        assert_eq!(memory_per_connection(&trial, Phase::Echo), Some(-1000.0));
    }

    #[test]
    fn what_was_not_measured_is_missing() {
        let empty = example::empty("axum", 1);
        for stat in EVERY {
            for phase in Phase::ALL {
                assert_eq!(stat(&empty, phase), None);
            }
        }
    }

    #[test]
    fn nothing_is_divided_by_zero() {
        let mut zero = trial();
        for value in zero.metrics.values_mut() {
            *value = 0;
        }
        for stat in EVERY {
            let value = stat(&zero, Phase::Echo);
            assert!(value.is_none_or(f64::is_finite), "{value:?}");
        }
        assert_eq!(tps(&zero, Phase::Echo), None);
        assert_eq!(server_cpu_per_message(&zero, Phase::Echo), None);
    }

    #[test]
    fn no_success_is_a_rate_of_zero_and_no_cost_a_message() {
        let mut trial = trial();
        let name = Phase::Echo.metric(metric::SUCCEEDED);
        trial.metrics.insert(name, 0);
        assert_eq!(tps(&trial, Phase::Echo), Some(0.0));
        assert_eq!(eer(&trial, Phase::Echo), Some(0.0));
        assert_eq!(server_cpu_per_message(&trial, Phase::Echo), None);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median([7.0]), Some(7.0));
        assert_eq!(median([]), None);
    }
}
