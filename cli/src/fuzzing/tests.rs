//! The parsers of the command, given anything.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::fs;
use std::panic::{catch_unwind, resume_unwind};
use std::path::Path;

/// Of text that is some hundred bytes long; `clap` takes most of it for the help
/// of all flags.
const MEMORY_MAX_BYTES: u64 = 4 << 20;

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        // What was found once is kept in fuzz/regressions.
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn bounded(check: fn(&[u8]), program: &[u8]) {
    // A panic would leave the counter counting, until it has no room for another.
    let mut checked = Ok(());
    let used = allocation_counter::measure(|| {
        checked = catch_unwind(|| check(program));
    });
    if let Err(panic) = checked {
        resume_unwind(panic);
    }
    assert!(used.bytes_max <= MEMORY_MAX_BYTES, "{used:?}");
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn any_manifest_profile_and_run_file_is_read_or_refused_in_one_line(program in vec(any::<u8>(), 0..60)) {
        bounded(manifests, &program);
    }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn any_command_line_is_understood_or_refused_in_one_line(program in vec(0u8..60, 0..20)) {
        bounded(flags, &program);
    }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn any_request_of_the_control_api_is_answered_alike_however_it_is_cut(program in vec(0u8..40, 0..20)) {
        bounded(control, &program);
    }
}

#[test]
fn what_fuzzing_found_once_stays_found() {
    for (folder, check) in [
        ("manifests", manifests as fn(&[u8])),
        ("flags", flags),
        ("control", control),
    ] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/regressions");
        for entry in fs::read_dir(root.join(folder)).into_iter().flatten() {
            check(&fs::read(entry.unwrap().path()).unwrap());
        }
    }
}
