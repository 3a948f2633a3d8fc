//! What a reader sees, pinned: a change here is a change of the report.

use crate::{Report, block, example};
use insta::assert_snapshot;
use wsbench_schema::Level::Should;
use wsbench_schema::{
    Examination, Finding, Phase, RunPlan, Suite, TrialRecord, Verdict, mark, metric,
};

/// Three subjects and a floor over three rounds: one clean, one with a failed
/// round and lost echoes, one that never started.
fn run() -> (RunPlan, Vec<TrialRecord>) {
    let subjects = ["axum", "fastwebsockets", "broken", "actix_web", "floor"];
    let plan = example::plan(&subjects, 3);
    let mut records = Vec::new();
    for round in 1..=3 {
        let pace = [100, 104, 98][round as usize - 1];
        records.push(example::paced("axum", round, pace));
        records.push(example::paced("floor", round, pace * 6 / 10));
        let reason = "no listener on 10001-10010 after 10s | see `broken.log`";
        records.push(example::failed("broken", round, "start", reason));
    }
    let mut lossy = example::paced("fastwebsockets", 1, 90);
    for (name, value) in [
        (metric::SUCCEEDED, 99_988),
        (metric::FAILED, 12),
        ("failed_lost_count", 8),
        ("failed_wrong_payload_count", 4),
        (metric::CONNECTIONS_LOST, 12),
        ("connections_lost_lost_count", 8),
        ("connections_lost_wrong_payload_count", 4),
    ] {
        lossy.metrics.insert(Phase::Echo.metric(name), value);
    }
    lossy
        .marks
        .insert(mark::SHARED_CPUS.into(), "CPU 1 for both".into());
    records.push(lossy);
    records.push(example::paced("fastwebsockets", 2, 91));
    records.push(example::failed(
        "fastwebsockets",
        3,
        "echo",
        "the server died of signal 11",
    ));
    (plan, records)
}

/// One passes everything, one fails a should, one leaves things out, and one was
/// not examined.
fn examinations() -> Vec<Examination> {
    let mut lax = example::examination("fastwebsockets");
    lax.findings.push(Finding {
        expected: "a close with 1002".into(),
        seen: Some("`pong` | a pong\n| of **126** bytes |".into()),
        ..example::finding("control", "ping of 126 bytes", Should, Verdict::Fail)
    });
    let mut floor = example::examination("floor");
    for name in ["2 fragments", "10 fragments"] {
        floor.findings.push(example::finding(
            "fragmentation",
            name,
            Should,
            Verdict::Omitted,
        ));
    }
    vec![example::examination("axum"), lax, floor]
}

pub fn report() -> Report {
    let (plan, records) = run();
    let report = Report::new(&plan, &records).unwrap();
    report.with_examinations(examinations())
}

#[test]
fn markdown_of_a_run_with_every_kind_of_row() {
    assert_snapshot!(report().markdown());
}

#[test]
fn figures_of_a_run_with_every_kind_of_row() {
    let tidy = crate::csv::document(&report().document());
    assert_snapshot!(tidy.replace("\r\n", "\n"));
}

#[test]
fn terminal_in_a_fixed_layout() {
    assert_snapshot!(report().terminal(None));
}

#[test]
fn terminal_of_80_columns() {
    let text = report().terminal(Some(80));
    assert_snapshot!(text);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn a_failure_is_never_shown_as_none() {
    let text = report().markdown();
    let row = |from: &str, name: &str| -> Vec<String> {
        let table = &text[text.find(from).unwrap()..];
        let prefix = format!("| {name} ");
        let row = table.lines().find(|line| line.starts_with(&prefix));
        row.unwrap()
            .split('|')
            .map(|c| c.trim().to_owned())
            .collect()
    };
    let lossy = row("### Compact", "fastwebsockets");
    assert_eq!(lossy[3..6], ["200000", "199988", "12"]);
    assert!(text.contains("fastwebsockets: 12 failed (lost 8, wrong payload 4)."));
    let broken = row("### BenchEcho", "broken");
    assert!(broken[2].starts_with("FAILED (start: no listener"));
    assert!(broken[4..].iter().all(|cell| cell != "0"));
}

#[test]
fn a_table_has_as_many_cells_in_every_line() {
    let text = report().markdown();
    let count = |line: &str| line.replace("\\|", "").matches('|').count();
    let lines: Vec<&str> = text.lines().collect();
    let mut tables = 0;
    for pair in lines.windows(2).filter(|pair| pair[1].starts_with('|')) {
        if pair[0].starts_with('|') {
            assert_eq!(count(pair[0]), count(pair[1]), "{}", pair[1]);
        } else {
            tables += 1;
        }
    }
    assert_eq!(tables, 6);
}

#[test]
fn a_servers_text_cannot_leave_its_line() {
    let text = report().markdown();
    let section = &text[text.find("## Verification").unwrap()..];
    let lines: Vec<&str> = section.lines().collect();
    let failure = lines.iter().position(|line| line.contains("126 bytes"));
    let line = lines[failure.unwrap()];
    assert!(
        line.starts_with("  - should: control/ping of 126"),
        "{line}"
    );
    assert!(line.ends_with(r"\| of \*\*126\*\* bytes \|"), "{line}");
}

#[test]
fn a_report_without_examinations_says_so_and_another_program_is_warned_of() {
    let plan = example::plan(&["axum"], 1);
    let mut trial = example::trial("axum", 1);
    trial.settings.insert("binary".into(), "aa".into());
    let report = Report::new(&plan, &[trial]).unwrap();
    let text = report.markdown();
    assert!(text.contains("\nNo server was examined.\n"), "{text}");
    assert!(!report.terminal(None).contains("Verification"));
    let mut found = example::examination("axum");
    let warning = "axum was examined as another program than was measured.";
    for (binary, warned) in [("aa", false), ("bb", true)] {
        found.binary = Some(binary.into());
        let report = report.clone().with_examinations(vec![found.clone()]);
        assert_eq!(report.markdown().contains(warning), warned, "{binary}");
    }
}

#[test]
fn who_fails_everything_fills_no_terminal() {
    let plan = example::plan(&["axum"], 1);
    let mut found = example::examination("axum");
    let failing = example::finding("echo", "one", Should, Verdict::Fail);
    found.findings = vec![failing; 60];
    let report = Report::new(&plan, &[example::trial("axum", 1)]).unwrap();
    let report = report.with_examinations(vec![found]);
    let shown = |text: &str| text.matches("should: echo/one").count();
    assert_eq!(shown(&report.markdown()), 60);
    let text = report.terminal(None);
    assert_eq!(shown(&text), 8);
    assert!(text.contains("\n  and 52 more: see report.md\n"), "{text}");
}

#[test]
fn block_of_a_trial() {
    let trial = example::trial("axum", 1);
    assert_snapshot!(block(&trial, true));
    assert!(!block(&trial, false).contains("TP50"));
}

/// 50,000 messages were due in 10 s; the last answer came after 9.5 s.
#[test]
fn an_early_last_answer_is_no_speed() {
    let mut early = example::trial("axum", 1);
    let elapsed = Phase::Rate.metric(metric::ELAPSED);
    early.metrics.insert(elapsed, 9_500_000_000);
    let text = block(&early, false);
    assert!(text.contains("ACHIEVED : 5000\n"), "{text}");
    let plan = example::plan(&["axum"], 1);
    let text = Report::new(&plan, &[early]).unwrap().markdown();
    let table = &text[text.find("### BenchRate").unwrap()..];
    let cells = |prefix: &str| -> Vec<&str> {
        let line = table.lines().find(|line| line.starts_with(prefix));
        line.unwrap().split('|').map(str::trim).collect()
    };
    let names = cells("| Framework");
    let column = names.iter().position(|name| *name == "Achieved msg/s");
    assert_eq!(cells("| axum")[column.unwrap()], "5000");
}

#[test]
fn block_of_a_trial_that_died() {
    let mut died = example::trial("axum", 1);
    let failed = example::failed("axum", 1, "echo", "the server died\nof signal 11");
    died.outcome = failed.outcome;
    died.metrics.retain(|name, _| name.starts_with("connect."));
    died.histograms
        .retain(|name, _| name.starts_with("connect."));
    assert_snapshot!(block(&died, true));
}

#[test]
fn block_of_a_trial_without_figures() {
    let never = example::failed("axum", 1, "build", "no such crate");
    assert_snapshot!(block(&never, true));
}

/// Four relays and the client without one, over three rounds under two loads of
/// round trips and one of transfers: one fails a round, one was stopped half way.
pub fn relays() -> Report {
    let mut records = Vec::new();
    let bulk = |name: &str, round: u32, pace: u64| TrialRecord {
        suite: Suite::Relay,
        ..example::transferred(name, round, pace)
    };
    for (name, usual) in [
        ("splice", 90),
        ("io_copy", 100),
        ("bufio", 130),
        ("sendfile", 170),
        ("direct", 60),
    ] {
        for (round, pace) in [(1, usual), (2, usual + 4), (3, usual - 2)] {
            let small = example::relayed(name, round, pace);
            let mut large = small.clone();
            large.load.payload_bytes = 65_536;
            large.load_hash = large.load.hash();
            let mut trials = vec![small, large, bulk(name, round, pace)];
            if name == "direct" {
                trials = trials.into_iter().map(example::as_direct).collect();
            }
            if (name, round) == ("bufio", 3) {
                let verified = Phase::Bulk.metric(metric::VERIFIED_BYTES);
                trials[2].metrics.insert(verified, 800_000_000);
                let failed = example::failed(name, round, "echo", "the relay | died");
                trials[0].outcome = failed.outcome;
            }
            records.extend(trials);
        }
    }
    let loads = records[..3].iter().map(|trial| trial.load.clone());
    let plan = RunPlan {
        loads: loads.collect(),
        ..example::plan(&["splice", "io_copy", "bufio", "sendfile", "direct"], 3)
    };
    Report::new(&plan, &records).unwrap()
}

/// Two strategies at two levels over three rounds: one loses dials and is cut off, one
/// dies in every round of the second level.
pub fn transfers() -> Report {
    let mut records = Vec::new();
    for (name, usual) in [("stack", 110), ("pool", 100)] {
        for (round, pace) in [(1, usual), (2, usual + 6), (3, usual - 4)] {
            let mut first = example::transferred(name, round, pace);
            let mut second = first.clone();
            second.load.connections = 1000;
            second.load_hash = second.load.hash();
            let change = |trial: &mut TrialRecord, phase: Phase, name: &str, value: u64| {
                trial.metrics.insert(phase.metric(name), value);
            };
            change(&mut second, Phase::Bulk, metric::SERVER_RSS_PEAK, 61 << 20);
            if name == "stack" {
                change(&mut first, Phase::Bulk, metric::VERIFIED_BYTES, 800_000_000);
                for name in [metric::FAILED, "failed_timed_out_count"] {
                    change(&mut first, Phase::Connect, name, 3);
                }
                let died = example::failed(name, round, "bulk", "the server died of signal 9");
                change(
                    &mut second,
                    Phase::Bulk,
                    metric::VERIFIED_BYTES,
                    100_000_000 * u64::from(round),
                );
                second.outcome = died.outcome;
            }
            records.extend([first, second]);
        }
    }
    let loads = records[..2].iter().map(|trial| trial.load.clone());
    let plan = RunPlan {
        loads: loads.collect(),
        ..example::plan(&["stack", "pool"], 3)
    };
    Report::new(&plan, &records).unwrap()
}

#[test]
fn markdown_of_relays() {
    assert_snapshot!(relays().markdown());
}

#[test]
fn terminal_of_relays() {
    assert_snapshot!(relays().terminal(Some(100)));
}

#[test]
fn markdown_of_transfers() {
    assert_snapshot!(transfers().markdown());
}

#[test]
fn block_of_a_transfer() {
    let mut trial = example::transferred("pool", 1, 100);
    assert_snapshot!(block(&trial, true));
    let verified = Phase::Bulk.metric(metric::VERIFIED_BYTES);
    trial.metrics.insert(verified, 800_000_000);
    let text = block(&trial, true);
    assert!(text.contains("\nTotal data : 1.6 of 2.0 GB\n"), "{text}");
    assert!(text.contains("\nNOTE : P (pool): partial: "), "{text}");
}

/// What is measured as the server of the client without a relay is the origin.
#[test]
fn the_origin_is_not_shown_as_a_relay() {
    let text = relays().markdown();
    let rows: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("| direct (no relay)"))
        .collect();
    assert_eq!(rows.len(), 3);
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        // CPU (ms) and CPU/msg, or CPU s/GiB and CPU (ms).
        assert_eq!(cells[3..5], ["-", "-"], "{row}");
    }
    assert!(!text.contains("direct | Server CPU/msg"), "{text}");
}

fn pictures_of(section: &crate::section::Section) -> Vec<crate::chart::Chart> {
    let looks = crate::pictures::Looks::of(std::slice::from_ref(section));
    crate::pictures::of_section(section, &looks)
}

/// The picture of a relay's table and that of transfers over time, as they are written.
#[test]
fn pictures_of_relays_and_transfers() {
    let charts = pictures_of(&relays().sections[0]);
    assert_snapshot!(charts[0].svg());
    let charts = pictures_of(&transfers().sections[0]);
    assert_snapshot!(charts[0].svg());
}

/// Figures that are all zero, all absent, all there but damaged, all huge:
/// whatever a record holds, something readable comes of it.
#[test]
fn no_record_breaks_a_report() {
    let plan = example::plan(&["axum", "floor"], 1);
    let all = |mut trial: TrialRecord, figure: u64| {
        trial.metrics.values_mut().for_each(|value| *value = figure);
        let series = trial.series.values_mut();
        series.for_each(|series| series.values.fill(figure));
        trial
    };
    let zero = all(example::trial("axum", 1), 0);
    let mut huge = all(example::trial("floor", 1), u64::MAX);
    huge.started_unix_s = u64::MAX;
    let tcp = |figure| {
        let direct = example::as_direct(example::relayed("floor", 1, 100));
        [
            vec![
                all(example::relayed("axum", 1, 100), figure),
                all(direct, figure),
            ],
            vec![
                all(example::transferred("axum", 1, 100), figure),
                example::transferred("floor", 1, 100),
            ],
        ]
    };
    let websocket = [
        vec![],
        vec![zero.clone()],
        vec![huge.clone()],
        vec![zero, huge],
        vec![example::empty("axum", 1), example::empty("floor", 1)],
    ];
    for records in websocket.into_iter().chain(tcp(0)).chain(tcp(u64::MAX)) {
        let report = Report::new(&plan, &records).unwrap();
        let blocks = records.iter().map(|record| block(record, true));
        let charts = report.sections.iter().flat_map(pictures_of);
        let charts = charts.map(|chart| chart.svg());
        let texts = [report.markdown(), report.terminal(Some(20))];
        for text in blocks.chain(charts).chain(texts) {
            for wrong in ["NaN", "inf,", "inf%", " inf ", "e+", "e1"] {
                assert!(!text.contains(wrong), "{wrong}: {text}");
            }
        }
    }
}

#[test]
fn a_damaged_histogram_is_told_in_the_block() {
    let mut damaged = example::trial("axum", 1);
    let name = Phase::Echo.metric(metric::ECHO_LATENCY);
    damaged.histograms.insert(name, "damaged".into());
    let text = block(&damaged, true);
    assert!(text.contains("TPS : 100000\n"), "{text}");
    assert!(
        text.contains(
            "NOTE : H (axum): what is read from echo.latency_ns is not shown: histogram is not "
        ),
        "{text}"
    );
}

#[test]
fn several_loads_are_several_sections_of_one_file() {
    let mut plan = example::plan(&["axum"], 1);
    let mut other = example::trial("axum", 1);
    other.load.payload_bytes = 64;
    other.load.rate = None;
    other.load_hash = other.load.hash();
    plan.loads.push(other.load.clone());
    let report = Report::new(&plan, &[example::trial("axum", 1), other]).unwrap();
    let text = report.markdown();
    assert_eq!(text.matches("\n## Load ").count(), 2);
    assert_eq!(text.matches("This load has no rate phase.").count(), 1);
    assert_eq!(text.matches("explained").count(), 5);
}

#[test]
fn files_are_named_with_prefix_and_suffix_and_all_written() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("output/report");
    let paths = report().write(&output, "a_", "_b").unwrap();
    let names: Vec<_> = paths
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "a_report_b.md",
            "a_compact_b.md",
            "a_connections_b.md",
            "a_echo_b.md",
            "a_rate_b.md",
            "a_memory_b.md",
            "a_report_b.html",
            "a_report_b.csv",
            "a_report_b.xlsx",
            "a_report_b.json",
            "charts"
        ]
    );
    let echo = std::fs::read_to_string(&paths[3]).unwrap();
    assert!(echo.starts_with("# BenchEcho: run example\n"));
    assert!(!echo.contains("Connections"), "{echo}");
    let error = report().write(&output, "../", "").unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("`../` in a report's file name")
    );
}

#[test]
fn memory_is_told_idle_after_traffic_and_after_connections_were_closed() {
    let released = |name: &str, idle, after, closed, failed| {
        let mut trial = example::trial(name, 1);
        trial.load.release = Some(wsbench_schema::ReleaseLoad {
            percent: 50,
            settle_ms: 1000,
            timeout_ms: 10_000,
        });
        trial.load_hash = trial.load.hash();
        for (phase, metric, value) in [
            (Phase::Connect, metric::SUCCEEDED, 1000),
            (Phase::Connect, metric::SERVER_RSS_START, 4_000_000),
            (Phase::Connect, metric::SERVER_RSS_END, idle),
            (Phase::Release, metric::CONNECTIONS, 1000),
            (Phase::Release, metric::PLANNED, 500),
            (Phase::Release, metric::SUCCEEDED, 500 - failed),
            (Phase::Release, metric::FAILED, failed),
            (Phase::Release, "failed_lost_count", failed),
            (Phase::Release, metric::SERVER_RSS_START, after),
            (Phase::Release, metric::SERVER_RSS_END, closed),
        ] {
            trial.metrics.insert(phase.metric(metric), value);
        }
        trial
    };
    let trials = [
        released("hoarder", 20_000_000, 150_000_000, 149_000_000, 3),
        released("tidy", 10_000_000, 12_000_000, 8_000_000, 0),
    ];
    let plan = RunPlan {
        loads: vec![trials[0].load.clone()],
        ..example::plan(&["hoarder", "tidy"], 1)
    };
    let report = Report::new(&plan, &trials).unwrap();
    let table = crate::tables::of(Suite::Websocket).pop().unwrap();
    let names = crate::files::Names::default();
    assert_snapshot!(crate::markdown::single(&report.document(), &table, &names));
}
