//! What must hold of whatever is read.

use super::edit::edited;
use super::samples;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::path::Path;
use wsbench_schema::record::{RecordError, parse_json};
use wsbench_schema::{
    ClientCommand, ClientEvent, Examination, Intervals, PhaseReport, RunPlan, Target, TrialRecord,
    decode_histogram, encode_histogram,
};

/// One kind of text, by the first byte of the program, with the edits that the
/// rest says. What is read, reads back after it was written.
pub fn any(program: &[u8]) {
    let Some((kind, program)) = program.split_first() else {
        return;
    };
    let choose = |count: usize| usize::from(kind / 8) % count;
    match kind % 8 {
        0 => record(&edited(&json(&samples::record()), program)),
        1 => file::<RunPlan>(&edited(&json(&samples::plan()), program)),
        2 => file::<Examination>(&edited(&json(&samples::examination()), program)),
        3 => {
            let commands = samples::commands();
            let command = &commands[choose(commands.len())];
            line::<ClientCommand>(&edited(&json(command), program));
        }
        4 => {
            let events = samples::events();
            line::<ClientEvent>(&edited(&json(&events[choose(events.len())]), program));
        }
        5 => histogram(&edited(samples::histogram().as_bytes(), program)),
        6 => target(&edited(b"ws://[::1]:10001-10010/ws?a=b", program)),
        _ => {
            record(program);
            line::<ClientEvent>(program);
            histogram(program);
            target(program);
        }
    }
}

pub fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap()
}

fn record(text: &[u8]) {
    let path = Path::new("r.json");
    if let Ok(record) = TrialRecord::parse(path, text) {
        assert_eq!(TrialRecord::parse(path, &json(&record)).unwrap(), record);
        for text in record.histograms.values() {
            histogram(text.as_bytes());
        }
    }
}

fn file<T: Serialize + DeserializeOwned + PartialEq + Debug>(text: &[u8]) {
    let read = |text: &[u8]| -> Result<T, RecordError> { parse_json(Path::new("f.json"), text) };
    if let Ok(value) = read(text) {
        assert_eq!(read(&json(&value)).unwrap(), value);
    }
}

fn line<T: Serialize + DeserializeOwned + PartialEq + Debug>(text: &[u8]) {
    if let Ok(value) = serde_json::from_slice::<T>(text) {
        let back = serde_json::to_string(&value).unwrap();
        assert!(!back.contains('\n'), "a line is one line");
        assert_eq!(serde_json::from_str::<T>(&back).unwrap(), value);
    }
}

/// Also the figures are taken from it that a report takes, and it is merged.
fn histogram(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let Ok(histogram) = decode_histogram(text) else {
        return;
    };
    assert_eq!(
        decode_histogram(&encode_histogram(&histogram)).unwrap(),
        histogram
    );
    let median = histogram.value_at_quantile(0.5);
    assert!(histogram.is_empty() || (histogram.min()..=histogram.max()).contains(&median));
    let report = PhaseReport {
        metrics: [("succeeded_count".to_owned(), u64::MAX)].into(),
        histograms: [("latency_ns".to_owned(), text.to_owned())].into(),
        series: [].into(),
        intervals: [(
            "latency_ns".to_owned(),
            Intervals {
                interval_ns: 1,
                histograms: vec![text.to_owned()],
            },
        )]
        .into(),
    };
    // Too much is an error or the most there is.
    let _ = PhaseReport::merge(&[report.clone(), report]);
}

fn target(text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    if let Ok(target) = text.parse::<Target>() {
        assert_eq!(target.to_string().parse(), Ok(target));
    }
}
