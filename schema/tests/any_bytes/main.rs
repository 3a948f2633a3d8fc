//! Any bytes in files and lines, cut anywhere: no panic, no memory beyond a few
//! times the text, nothing that is cut short taken for whole.

mod check;
mod edit;
mod samples;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use check::json;
use proptest::collection::vec;
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use wsbench_schema::record::read_json;
use wsbench_schema::{
    ClientCommand, ClientEvent, Examination, RunPlan, TrialRecord, decode_histogram,
};

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        // What was found once is kept in fuzz/regressions.
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_can_be_read_reads_back_as_it_was_written(program in vec(any::<u8>(), 0..40)) {
        check::any(&program);
    }

    #[test]
    fn reading_takes_a_few_times_the_memory_of_the_text(program in vec(any::<u8>(), 0..40)) {
        let record = edit::edited(&json(&samples::record()), &program);
        let histogram = edit::edited(samples::histogram().as_bytes(), &program);
        let event = edit::edited(&json(&samples::events()[3]), &program);
        let within = |text: &[u8], constant: u64, read: &mut dyn FnMut()| {
            let used = allocation_counter::measure(read);
            let most = constant + 50 * text.len() as u64;
            assert!(used.bytes_max <= most, "{used:?} for {} bytes", text.len());
        };
        within(&record, 4096, &mut || drop(TrialRecord::parse(Path::new("r"), &record)));
        within(&event, 4096, &mut || drop(serde_json::from_slice::<ClientEvent>(&event)));
        let text = String::from_utf8_lossy(&histogram);
        // Its range and precision are always the same.
        within(&histogram, 1 << 20, &mut || drop(decode_histogram(&text)));
    }
}

#[test]
fn what_is_cut_short_is_never_taken_for_whole() {
    let record = json(&samples::record());
    let texts = [json(&samples::plan()), json(&samples::examination())];
    let lines = samples::commands().into_iter().map(|line| json(&line));
    let events = samples::events().into_iter().map(|line| json(&line));
    let path = Path::new("cut.json");
    for end in 0..record.len() {
        assert!(TrialRecord::parse(path, &record[..end]).is_err(), "{end}");
    }
    for text in texts.into_iter().chain(lines).chain(events) {
        for end in 0..text.len() {
            let text = &text[..end];
            assert!(serde_json::from_slice::<RunPlan>(text).is_err());
            assert!(serde_json::from_slice::<Examination>(text).is_err());
            assert!(serde_json::from_slice::<ClientCommand>(text).is_err());
            assert!(serde_json::from_slice::<ClientEvent>(text).is_err());
        }
    }
    let whole = samples::histogram();
    for end in (0..whole.len()).filter(|end| end % 4 == 0) {
        assert!(decode_histogram(&whole[..end]).is_err(), "{end}");
    }
}

#[test]
fn a_length_that_a_histogram_claims_takes_no_memory() {
    let mut bytes = STANDARD.decode(samples::histogram()).unwrap();
    bytes[4..8].copy_from_slice(&(1u32 << 29).to_be_bytes());
    let text = STANDARD.encode(bytes);
    let used = allocation_counter::measure(|| assert!(decode_histogram(&text).is_err()));
    assert!(used.bytes_max < 1 << 20, "{used:?}");
}

#[test]
fn a_pipe_or_a_device_is_no_record() {
    let error = read_json::<RunPlan>(Path::new("/dev/zero")).unwrap_err();
    assert_eq!(error.to_string(), "/dev/zero: not a regular file");
}

#[test]
fn a_record_of_another_version_says_so_whatever_else_is_in_it() {
    let error = |text: &str| {
        let parsed = TrialRecord::parse(Path::new("r.json"), text.as_bytes());
        parsed.unwrap_err().to_string()
    };
    assert!(error(r#"{"new":[1],"schema":9}"#).starts_with("r.json: schema version 9,"));
    assert!(error(r#"{"schema":1,"new":1}"#).contains("unknown field `new`"));
    assert!(error(r#"{"schema":"1"}"#).contains("not a valid record"));
}

#[test]
fn what_fuzzing_found_once_stays_found() {
    let folder = Path::new("../fuzz/regressions/records");
    for entry in fs::read_dir(folder).into_iter().flatten() {
        check::any(&fs::read(entry.unwrap().path()).unwrap());
    }
}
