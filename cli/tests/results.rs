//! Verbs that read what runs left: `cmp`, `rank` and `history`, on folders made from a
//! record of a real run. No server is started.

mod util;

use std::fs;
use std::path::Path;
use util::{Project, expect_exit_code, project};
use wsbench_schema::{Outcome, RunPlan, SCHEMA_VERSION, TrialRecord};

const ROUNDS: u32 = 10;
/// What rounds of the same server scatter by, in permille.
const SCATTER: [u64; 10] = [1000, 1012, 985, 1007, 991, 1003, 1019, 996, 989, 1009];

fn real() -> TrialRecord {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schema/tests/versions/2");
    TrialRecord::load(&schema.join("trial.json")).unwrap()
}

/// A folder of results: of each of these, so many rounds that took so many percent.
fn run(project: &Project, name: &str, subjects: &[(&str, u32, u64)]) {
    run_of(project, name, subjects, |_| {});
}

fn run_of(
    project: &Project,
    name: &str,
    subjects: &[(&str, u32, u64)],
    change: impl Fn(&mut TrialRecord),
) {
    let folder = project.path("results").join(name);
    fs::create_dir_all(&folder).unwrap();
    let mut real = real();
    real.run = name.to_owned();
    change(&mut real);
    let plan = RunPlan {
        schema: SCHEMA_VERSION,
        run: name.to_owned(),
        started_unix_s: real.started_unix_s,
        seed: 1,
        rounds: ROUNDS,
        subjects: subjects.iter().map(|(name, ..)| (*name).into()).collect(),
        loads: vec![real.load.clone()],
        profile: "default".into(),
        cpus: real.cpus.clone(),
        settings: real.settings.clone(),
    };
    plan.save(&folder).unwrap();
    for (subject, rounds, percent) in subjects {
        for (round, scatter) in (1..=*rounds).zip(SCATTER) {
            let mut trial = real.clone();
            trial.subject.name = (*subject).to_owned();
            trial.round = round;
            for (metric, value) in &mut trial.metrics {
                if metric.ends_with("cpu_ns") || metric.ends_with("elapsed_ns") {
                    *value = *value / 1000 * scatter * percent / 100;
                }
            }
            trial.save(&folder).unwrap();
        }
    }
}

fn fail(trial: &mut TrialRecord) {
    trial.outcome = Outcome::Failed {
        stage: "echo".into(),
        reason: "died".into(),
    };
}

#[track_caller]
fn expect_said(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "no `{part}` in {said}");
    }
}

#[test]
fn cmp_says_with_its_exit_code_what_became_worse() {
    let project = project();
    run(&project, "old", &[("a", ROUNDS, 100), ("b", ROUNDS, 100)]);
    run(
        &project,
        "slower",
        &[("a", ROUNDS, 110), ("b", ROUNDS, 100)],
    );
    run(&project, "few", &[("a", 3, 100), ("b", 3, 100)]);
    run(&project, "fewer", &[("a", 3, 300), ("b", 3, 100)]);
    run(&project, "gone", &[("a", ROUNDS, 100)]);
    run_of(
        &project,
        "dead",
        &[("a", ROUNDS, 100), ("b", ROUNDS, 100)],
        fail,
    );
    run_of(&project, "other", &[("a", ROUNDS, 100)], |trial| {
        trial.load.payload_bytes += 1;
        trial.load_hash = trial.load.hash();
    });
    run_of(
        &project,
        "elsewhere",
        &[("a", ROUNDS, 100), ("b", ROUNDS, 100)],
        |trial| {
            trial.machine.host = "other\u{1b}[2J".into();
        },
    );
    let nothing = "nothing got significantly worse (threshold 5%)";
    for (code, arguments, parts) in [
        (0, "old old", &[nothing, "the same program"][..]),
        (
            1,
            "old slower",
            &["worse: a: ", "+10.00%", "(threshold 5%)"],
        ),
        (0, "slower old", &[nothing, "better"]),
        (
            0,
            "old slower --threshold 20%",
            &["worse, within the threshold"],
        ),
        (
            2,
            "few fewer",
            &["so few rounds cannot show any difference"],
        ),
        (
            0,
            "old gone",
            &["WARNING: b is not compared: in old, and not in gone"],
        ),
        (
            1,
            "old dead",
            &[
                "a: 10 rounds failed, none did before",
                "b: 10 rounds failed",
            ],
        ),
        (
            2,
            "dead dead",
            &["no figure is in both", "0 completed trials of 20"],
        ),
        (
            2,
            "old other",
            &["the loads are not the same: payload_bytes"],
        ),
        (2, "old other --common", &["no load is in both"]),
        (
            0,
            "old elsewhere",
            &["WARNING: the machine differs: ", "other [2J"],
        ),
        (
            0,
            "old elsewhere --markdown",
            &["## old against elsewhere", "> **the machine", "other \\[2J"],
        ),
        (2, "old absent", &["no run `absent`"]),
        (
            2,
            "old slower --threshold five",
            &["write a percentage, as in 5%"],
        ),
    ] {
        let ended = expect_exit_code(code, &project, &format!("cmp {arguments}"));
        let said = format!("{}{}", ended.stdout, ended.stderr);
        expect_said(&said, parts);
        assert!(!said.contains('\u{1b}'), "{said}");
    }
    // A file that cannot be read is told, and costs no other.
    let folder = project.path("results/slower");
    let mut files = fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let record = files
        .find(|path| !path.ends_with(RunPlan::FILE_NAME))
        .unwrap();
    fs::write(&record, "{\"schema\": 2,").unwrap();
    let ended = expect_exit_code(1, &project, "cmp old slower");
    let name = record.file_name().unwrap().to_string_lossy();
    expect_said(&ended.stderr, &["warning: ", &name]);
}

#[test]
fn rank_gives_ties_one_rank_and_none_to_whom_a_round_says_nothing_about() {
    let project = project();
    let subjects = [
        ("slow", ROUNDS, 130),
        ("a", ROUNDS, 100),
        ("b", ROUNDS, 100),
        ("one", 1, 500),
    ];
    run(&project, "run", &subjects);
    let ended = expect_exit_code(0, &project, "rank run --by cpu");
    let ranks: Vec<(&str, &str)> = ended
        .stdout
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let name = words
                .next()
                .filter(|name| subjects.iter().any(|of| of.0 == *name))?;
            Some((name, words.next()?))
        })
        .collect();
    assert_eq!(ranks, [("a", "1"), ("b", "1"), ("slow", "3"), ("one", "-")]);
    expect_said(&ended.stdout, &["and so no rank: one"]);
    let ended = expect_exit_code(1, &project, "rank run --by throughput");
    expect_said(&ended.stderr, &["run has no Throughput of anybody"]);
    expect_exit_code(2, &project, "rank run --by beauty");
}

#[test]
fn history_sets_runs_one_below_the_other_and_says_what_changed() {
    let project = project();
    for (day, (name, percent)) in [("first", 100), ("second", 100), ("third", 120)]
        .into_iter()
        .enumerate()
    {
        run_of(&project, name, &[("axum", ROUNDS, percent)], |trial| {
            trial.started_unix_s += 86_400 * day as u64;
            trial.subject.version = format!("axum {}", 1 + day / 2);
            trial.cpus.server = vec![u32::from(day > 0)];
        });
    }
    let ended = expect_exit_code(0, &project, "history axum --by cpu");
    let rows: Vec<&str> = (ended.stdout.lines())
        .filter(|line| {
            ["first", "second", "third"]
                .iter()
                .any(|run| line.trim_start().starts_with(run))
        })
        .collect();
    assert_eq!(rows.len(), 3, "{}", ended.stdout);
    expect_said(rows[1], &["axum 1", "~", "other CPU map"]);
    expect_said(rows[2], &["axum 2 (new)", "worse"]);
    expect_said(&ended.stdout, &["▁▁█"]);
    let ended = expect_exit_code(1, &project, "history axun");
    expect_said(&ended.stderr, &["`axun` is in no result of ", "axum"]);
}
