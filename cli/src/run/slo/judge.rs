//! Whether a stage held its objective, and if not, whether it was the server.

use wsbench_schema::mark::{
    client_bound, client_busy_permille, server_busy_permille, too_little_sent_percent,
};
use wsbench_schema::{
    Bound, HistogramError, Objective, Outcome, Phase, StageVerdict, TrialRecord, decode_histogram,
    metric,
};

/// Of what was due so much must be answered, in percent.
const ANSWERED_PERCENT: u64 = 99;

/// Judges a stage by its record.
///
/// # Errors
/// If its latencies cannot be read.
pub fn judge(objective: &Objective, record: &TrialRecord) -> Result<StageVerdict, HistogramError> {
    let Some(reason) = missed(objective, record)? else {
        return Ok(StageVerdict::Held);
    };
    // Whoever lost a connection or died did so by himself.
    let is_loads = record.outcome == Outcome::Completed && lost(record).is_none();
    if is_loads && client_bound(&record.metrics, Phase::Rate) == Some(true) {
        let percent = |permille: Option<u64>| {
            let permille = permille.unwrap_or(0);
            format!("{}.{} %", permille / 10, permille % 10)
        };
        let client = percent(client_busy_permille(&record.metrics, Phase::Rate));
        let server = percent(server_busy_permille(&record.metrics, Phase::Rate));
        return Ok(StageVerdict::ClientBound {
            reason: format!("client CPUs {client} busy, server CPUs {server}; {reason}"),
        });
    }
    Ok(StageVerdict::Missed { reason })
}

/// Why the objective was not held; the gravest first.
fn missed(objective: &Objective, record: &TrialRecord) -> Result<Option<String>, HistogramError> {
    if let Outcome::Failed { stage, reason } = &record.outcome {
        return Ok(Some(format!("failed at {stage}: {reason}")));
    }
    if let Some(reason) = lost(record) {
        return Ok(Some(reason));
    }
    let count = |name: &str| record.metric(Phase::Rate, name).unwrap_or(0);
    let (due, answered) = (count(metric::PLANNED), count(metric::SUCCEEDED));
    let failed = count(metric::FAILED);
    if failed > 0 {
        return Ok(Some(format!("{failed} of {due} messages failed")));
    }
    if let Some(percent) = too_little_sent_percent(&record.metrics) {
        return Ok(Some(format!("{percent:.1} % of what was due was sent")));
    }
    if u128::from(answered) * 100 < u128::from(due) * u128::from(ANSWERED_PERCENT) {
        return Ok(Some(format!("{answered} of {due} messages were answered")));
    }
    let needs = objective.needs();
    if answered < needs {
        return Ok(Some(format!(
            "{answered} messages are too few to judge {objective} by ({needs} are needed)"
        )));
    }
    let name = Phase::Rate.metric(metric::INTENDED_LATENCY);
    let Some(text) = record.histograms.get(&name) else {
        return Ok(Some("no latency was measured".to_owned()));
    };
    let latencies = decode_histogram(text)?;
    let above = objective.0.iter().filter_map(|bound| {
        let found = match bound.permille {
            Bound::MAX.. => latencies.max(),
            permille => latencies.value_at_quantile(permille as f64 / 1000.0),
        };
        let name = bound.name();
        (found >= bound.below_ns).then(|| format!("{name} was {}", spoken(found)))
    });
    let above: Vec<String> = above.collect();
    Ok((!above.is_empty()).then(|| above.join(", ")))
}

/// Connections that were lost, or never there.
fn lost(record: &TrialRecord) -> Option<String> {
    for phase in [Phase::Connect, Phase::Echo, Phase::Rate] {
        let lost = record.metric(phase, metric::CONNECTIONS_LOST).unwrap_or(0);
        if lost > 0 {
            return Some(format!("{lost} connections were lost in {phase}"));
        }
    }
    let wanted = u64::from(record.load.connections);
    let there = record.metric(Phase::Rate, metric::CONNECTIONS)?;
    (there < wanted).then(|| format!("only {there} of {wanted} connections were there"))
}

fn spoken(ns: u64) -> String {
    wsbench_report::units::Unit::Duration.show(ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::slo::ask::objective;
    use crate::run::testing;
    use wsbench_schema::{encode_histogram, latency_histogram};

    /// A stage in which 10,000 messages were due and all went well in 1 ms, but for what
    /// is said.
    fn stage(more: &[(&str, u64)]) -> TrialRecord {
        let mut record = testing::record(&testing::plan("a"), "axum", 1);
        let figures = [
            (metric::PLANNED, 10_000),
            (metric::SHORTFALL, 0),
            (metric::SUCCEEDED, 10_000),
            (metric::FAILED, 0),
            (metric::CONNECTIONS, 100),
        ];
        for (name, value) in figures.iter().chain(more) {
            record.metrics.insert(Phase::Rate.metric(name), *value);
        }
        let mut latencies = latency_histogram();
        latencies.record_n(1_000_000, 9_950).unwrap();
        latencies.record_n(20_000_000, 50).unwrap();
        let name = Phase::Rate.metric(metric::INTENDED_LATENCY);
        record.histograms.insert(name, encode_histogram(&latencies));
        record
    }

    fn reason(text: &str, record: &TrialRecord) -> Option<String> {
        match judge(&objective(text).unwrap(), record).unwrap() {
            StageVerdict::Held => None,
            StageVerdict::Missed { reason } => Some(reason),
            StageVerdict::ClientBound { reason } => Some(format!("client-bound: {reason}")),
        }
    }

    #[test]
    fn every_bound_must_be_held() {
        let good = stage(&[]);
        assert_eq!(reason("tp99<2ms", &good), None);
        assert_eq!(reason("tp50<2ms,tp99<2ms", &good), None);
        assert_eq!(reason("tp99<1ms", &good).unwrap(), "tp99 was 1.00ms");
        let both = reason("tp50<1us,max<20ms", &good).unwrap();
        assert!(both.starts_with("tp50 was 1.00ms, max was 20."), "{both}");
    }

    #[test]
    fn fast_answers_do_not_help_where_messages_or_connections_are_missing() {
        for (figure, expected) in [
            ((metric::FAILED, 1), "1 of 10000 messages failed"),
            ((metric::SHORTFALL, 101), "99.0 % of what was due was sent"),
            (
                (metric::SUCCEEDED, 9_899),
                "9899 of 10000 messages were answered",
            ),
            (
                (metric::CONNECTIONS, 99),
                "only 99 of 100 connections were there",
            ),
            (
                (metric::CONNECTIONS_LOST, 1),
                "1 connections were lost in rate",
            ),
        ] {
            assert_eq!(reason("tp99<2ms", &stage(&[figure])).unwrap(), expected);
        }
        let few = stage(&[(metric::PLANNED, 999), (metric::SUCCEEDED, 999)]);
        let few = reason("tp99<2ms", &few).unwrap();
        assert!(few.starts_with("999 messages are too few"), "{few}");
        let mut dead = stage(&[]);
        dead.outcome = Outcome::Failed {
            stage: "rate".into(),
            reason: "exited with code 1 during rate".into(),
        };
        let dead = reason("tp99<2ms", &dead).unwrap();
        assert_eq!(dead, "failed at rate: exited with code 1 during rate");
    }

    #[test]
    fn a_busy_client_is_not_the_servers_fault_but_a_lost_connection_is() {
        let busy = [
            (metric::CLIENT_CPU, 980),
            (metric::ELAPSED, 1000),
            (metric::CLIENT_CPUS, 1),
            (metric::SERVER_CPU, 450),
            (metric::SERVER_CPUS, 1),
        ];
        let bound = stage(&busy);
        assert_eq!(reason("tp99<2ms", &bound), None);
        let told = reason("tp99<1ms", &bound).unwrap();
        let expected = "client-bound: client CPUs 98.0 % busy, server CPUs 45.0 %; tp99 was 1.00ms";
        assert_eq!(told, expected);
        let mut lost = stage(&busy);
        let name = Phase::Rate.metric(metric::CONNECTIONS_LOST);
        lost.metrics.insert(name, 3);
        let lost = reason("tp99<1ms", &lost).unwrap();
        assert_eq!(lost, "3 connections were lost in rate");
    }
}
