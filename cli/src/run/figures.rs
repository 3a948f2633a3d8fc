//! A record as one JSON object for programs: the metrics under their own names
//! and units, and the percentiles that are otherwise packed in histograms.

use anyhow::Context as _;
use serde_json::{Map, Value, json};
use wsbench_schema::{Outcome, TrialRecord, decode_histogram};

/// Names and quantiles of what is shown of a histogram.
const QUANTILES: [(&str, f64); 6] = [
    ("p50_ns", 0.5),
    ("p75_ns", 0.75),
    ("p90_ns", 0.9),
    ("p95_ns", 0.95),
    ("p99_ns", 0.99),
    ("p999_ns", 0.999),
];

/// One line. Latencies are left out if `percentiles` is false.
pub fn json(record: &TrialRecord, percentiles: bool) -> anyhow::Result<String> {
    let failed = match &record.outcome {
        Outcome::Completed => Value::Null,
        Outcome::Failed { stage, reason } => json!({"stage": stage, "reason": reason}),
    };
    let mut object = json!({
        "subject": record.subject,
        "load": record.load,
        "seed": record.seed,
        "settings": record.settings,
        "failed": failed,
        "metrics": record.metrics,
        "marks": record.marks,
    });
    if percentiles {
        let mut latencies = Map::new();
        for (name, text) in &record.histograms {
            latencies.insert(name.clone(), latency(text).with_context(|| name.clone())?);
        }
        object["latencies"] = latencies.into();
    }
    Ok(object.to_string())
}

fn latency(text: &str) -> anyhow::Result<Value> {
    let histogram = decode_histogram(text)?;
    let mut figures = Map::new();
    figures.insert("count".into(), histogram.len().into());
    if !histogram.is_empty() {
        figures.insert("min_ns".into(), histogram.min().into());
        figures.insert("mean_ns".into(), histogram.mean().into());
        figures.insert("max_ns".into(), histogram.max().into());
        for (name, quantile) in QUANTILES {
            figures.insert(name.into(), histogram.value_at_quantile(quantile).into());
        }
    }
    Ok(figures.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::testing::{plan, record};
    use wsbench_schema::{encode_histogram, latency_histogram};

    #[test]
    fn metrics_and_percentiles_are_one_line() {
        let mut trial = record(&plan("a"), "axum", 1);
        let mut histogram = latency_histogram();
        for latency in 1..=1000 {
            histogram.record(latency).unwrap();
        }
        let name = "echo.latency_ns";
        trial
            .histograms
            .insert(name.into(), encode_histogram(&histogram));
        let text = json(&trial, true).unwrap();
        assert!(!text.contains('\n'));
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["metrics"]["echo.succeeded_count"], 1000);
        assert_eq!(value["latencies"][name]["count"], 1000);
        assert_eq!(value["latencies"][name]["p50_ns"], 500);
        assert_eq!(value["failed"], Value::Null);
        let without: Value = serde_json::from_str(&json(&trial, false).unwrap()).unwrap();
        assert!(without.get("latencies").is_none());
    }

    #[test]
    fn a_damaged_histogram_is_named() {
        let mut trial = record(&plan("a"), "axum", 1);
        trial.histograms.insert("rate.x".into(), "%".into());
        let error = format!("{:#}", json(&trial, true).unwrap_err());
        assert!(error.starts_with("rate.x: "), "{error}");
    }
}
