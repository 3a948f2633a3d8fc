//! Any bytes from a server, cut anywhere: no panic, no standstill, no memory
//! that grows, and the verdict of tungstenite.

mod agreement;
mod cut;
mod ours;
mod plain;
mod stream;
mod theirs;
mod welcome;
#[path = "../../../schema/tests/any_bytes/words.rs"]
mod words;

use ours::{Client, Seen};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::fs;
use std::path::Path;
use stream::Case;
use wsbench_client::Cause;

/// Bytes that a client may hold at most while it reads frames: the state of one
/// message, and a pong.
const MEMORY_MAX_BYTES: u64 = 1024;

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        // What was found once is kept in fuzz/regressions.
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Instructions that write right echoes, whole or in fragments, and control frames.
fn right_program() -> impl Strategy<Value = Vec<u8>> {
    let settings = any::<u8>().prop_map(|settings| settings & !4);
    // What is not taken as an operand is an instruction, and such a one too.
    let byte = (0u8..16, 0u8..10).prop_map(|(high, low)| high << 4 | low);
    (settings, vec(byte, 1..60)).prop_map(|(settings, mut program)| {
        program.insert(0, settings);
        program
    })
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    vec(any::<usize>(), 0..6)
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn any_stream_is_judged_as_tungstenite_judges_it(program in vec(any::<u8>(), 0..200), cuts in cuts()) {
        agreement::check(&stream::case(&program), &cuts);
    }

    #[test]
    fn what_follows_right_echoes_is_judged_as_tungstenite_judges_it(
        right in right_program(),
        rest in vec(any::<u8>(), 0..60),
        cuts in cuts(),
    ) {
        agreement::check(&stream::case(&[right, rest].concat()), &cuts);
    }

    #[test]
    fn a_breach_of_the_protocol_among_right_echoes_is_a_bad_frame(
        right in right_program(),
        place in any::<prop::sample::Index>(),
        breach in any::<prop::sample::Index>(),
        cuts in cuts(),
    ) {
        breached(stream::case(&right), place, breach, &cuts);
    }

    #[test]
    fn a_stream_is_right_until_its_first_wrong_byte(program in vec(any::<u8>(), 0..30), cuts in cuts()) {
        plain::check(&program, &cuts);
    }

    #[test]
    fn reading_holds_no_more_than_one_frames_state(program in vec(any::<u8>(), 0..200), size in 1usize..5000) {
        let case = stream::case(&program);
        let client = Client::of(&case);
        let used = allocation_counter::measure(|| {
            client.each(case.bytes.chunks(size), |_, _| {});
        });
        prop_assert!(used.bytes_max <= MEMORY_MAX_BYTES, "{used:?}");
    }

    #[test]
    fn any_answer_to_the_request_is_judged_wherever_it_is_cut(program in vec(any::<u8>(), 0..100), cuts in cuts()) {
        welcome::check(&program, &cuts);
    }
}

/// Each breach that the frame at `place` can be made to commit, one at a time.
fn breached(
    mut case: Case,
    place: prop::sample::Index,
    breach: prop::sample::Index,
    cuts: &[usize],
) {
    let place = place.index(case.frames.len());
    let at = case.frames[place];
    let mut before = Client::of(&case).read([&case.bytes[..at]]);
    let opcode = case.bytes[at] & 0x0F;
    let mut firsts = vec![0x10, 0x20, 0x40]
        .into_iter()
        .map(|bit| case.bytes[at] | bit)
        .collect::<Vec<_>>();
    firsts.extend((3..8).chain(11..16).map(|reserved| 0x80 | reserved));
    match opcode {
        0 => firsts.extend([0x01, 0x02, 0x81, 0x82]),
        1 | 2 => firsts.extend([0x00, 0x80]),
        _ => firsts.push(opcode),
    }
    match breach.index(firsts.len() + 1) {
        choice if choice < firsts.len() => case.bytes[at] = firsts[choice],
        _ => {
            let header = at + [2, 4, 10][usize::from(case.bytes[at + 1].saturating_sub(125))];
            case.bytes[at + 1] |= 0x80;
            case.bytes.splice(header..header, [1, 2, 3, 4]);
        }
    }
    agreement::check(&case, cuts);
    before.push(Seen::Fault(Cause::BadFrame));
    assert_eq!(Client::of(&case).read([case.bytes.as_slice()]), before);
    assert_eq!(theirs::read(&case.bytes).1, theirs::End::Broken);
}

#[test]
fn a_right_program_writes_what_both_find_right() {
    TestRunner::new(cases(100))
        .run(&(right_program(), cuts()), |(program, cuts)| {
            let case = stream::case(&program);
            agreement::check(&case, &cuts);
            let seen = Client::of(&case).read([case.bytes.as_slice()]);
            let answers = seen.iter().filter(|seen| **seen == Seen::Answer).count();
            prop_assert_eq!(answers, case.echoes as usize);
            prop_assert_eq!(theirs::read(&case.bytes).1, theirs::End::Open);
            Ok(())
        })
        .unwrap();
}

#[test]
fn what_fuzzing_found_once_stays_found() {
    for (folder, check) in [
        ("frames", frames as fn(&[u8])),
        ("handshakes", |input| welcome::check(input, &[1, 7, 100])),
    ] {
        let folder = Path::new("../fuzz/regressions").join(folder);
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            check(&fs::read(entry.unwrap().path()).unwrap());
        }
    }
}

fn frames(program: &[u8]) {
    agreement::check(&stream::case(program), &[1, 7, 100]);
}
