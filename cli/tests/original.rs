//! What a user of the original types works as they know it.

mod util;

use std::time::Duration;
use util::project::is_running;
use util::{add_wrong, alone, expect_exit_code, expect_nothing_left, project};

#[test]
fn client_prints_the_block_of_the_original_for_a_server_that_is_served_until_killed() {
    let _alone = alone();
    let project = project();
    add_wrong(&project, "echo_server", "");
    expect_exit_code(0, &project, "serve --detach echo_server");
    let server = project.server_pid("echo_server");
    let client = "client -f=echo_server -c=100 -n=5000 -b=1024";
    let ended = expect_exit_code(0, &project, client);
    expect_block_of_the_original(&ended.stdout);
    expect_exit_code(0, &project, "kill");
    assert!(!is_running(server));
    expect_nothing_left(&project, Duration::ZERO);
}

#[test]
fn every_flag_of_the_original_is_understood_or_said_to_mean_nothing() {
    let _alone = alone();
    let project = project();
    add_wrong(&project, "echo_server", "");
    let server = "-nodelay=true -b=4096 -mrb=4096 -mb=10000 -m=4294967296 -reuseport=true";
    let served = format!("serve --detach -f=echo_server {server}");
    let notices = expect_exit_code(0, &project, &served).stderr;
    for flag in ["-b", "-mrb", "-mb", "-m", "-reuseport"] {
        let notice = format!("wsbench: {flag} is ignored: ");
        assert!(notices.contains(&notice), "{flag}: {notices}");
    }
    let echo = "-c=20 -dc=10 -dt=5s -dr=1 -dri=10ms -b=128 -check=true -pi=500 -tpn=true \
                -en=500 -ec=10 -el=2000 -ep=true -epd=5";
    let rate = "-rate=true -rc=10 -rd=1 -rr=20 -rbs=100 -rl=100 -rp=false -rpd=5";
    let files = "-preffix=a -suffix=b -m=4294967296";
    let client = format!("client -f=echo_server {echo} {rate} {files}");
    let ended = expect_exit_code(0, &project, &client);
    for flag in ["-ep", "-epd", "-rpd", "-m"] {
        let notice = format!("wsbench: {flag} is ignored: ");
        assert!(ended.stderr.contains(&notice), "{flag}: {}", ended.stderr);
    }
    for line in [
        "Connections: echo_server",
        "Concurrency : 10",
        "TOTAL : 20 times",
        "Benchmark: echo_server",
        "TOTAL : 500 times",
        "BenchRate: echo_server",
        "DURATION : 1.00s",
        "PACKET SENT : 100",
    ] {
        let mut lines = ended.stdout.lines();
        assert!(lines.any(|other| other == line), "{line}: {}", ended.stdout);
    }
    expect_exit_code(0, &project, "kill");
    // The client's own result, not a report, and it needs no server.
    let again = expect_exit_code(0, &project, "client -f echo_server -r");
    assert_eq!(again.stdout, ended.stdout);
}

/// What ORIGINAL prints stands first, under its names and in its order.
fn expect_block_of_the_original(stdout: &str) {
    let start = stdout.find("Benchmark: echo_server").expect(stdout);
    let block = &stdout[start..];
    let lines: Vec<(&str, &str)> = block
        .lines()
        .take_while(|line| !line.starts_with("---"))
        .map(|line| line.split_once(':').expect(line))
        .map(|(name, value)| (name.trim(), value.trim()))
        .collect();
    let names: Vec<&str> = lines.iter().map(|(name, _)| *name).collect();
    let expected = [
        "Benchmark",
        "Conns",
        "Payload",
        "TOTAL",
        "SUCCESS",
        "FAILED",
        "TPS",
        "TIME USED",
        "MIN USED",
        "AVG USED",
        "MAX USED",
        "TP50",
        "TP75",
        "TP90",
        "TP95",
        "TP99",
        "CPU MIN",
        "CPU AVG",
        "CPU MAX",
        "MEM MIN",
        "MEM AVG",
        "MEM MAX",
    ];
    assert_eq!(names[..expected.len()], expected, "{block}");
    let value = |name: &str| lines[names.iter().position(|other| *other == name).unwrap()].1;
    for (name, expected) in [
        ("Conns", "100"),
        ("Payload", "1024"),
        ("TOTAL", "5000 times"),
        ("SUCCESS", "5000, 100.00%"),
        ("FAILED", "0, 0.00%"),
    ] {
        assert_eq!(value(name), expected, "{block}");
    }
    assert!(value("TPS").parse::<u64>().unwrap() > 0, "{block}");
    for name in [
        "TIME USED",
        "MIN USED",
        "AVG USED",
        "MAX USED",
        "TP50",
        "TP99",
    ] {
        expect_number(value(name), &["ns", "us", "ms", "s"]);
    }
    expect_number(value("CPU AVG"), &["%"]);
    expect_number(value("MEM AVG"), &["K", "M", "G"]);
    assert!(
        stdout.contains(&format!("\n{}\n", "-".repeat(25))),
        "{stdout}"
    );
}

/// `1.91G`: a number with two decimals and one of the units.
#[track_caller]
fn expect_number(text: &str, units: &[&str]) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let decimals = number.split_once('.').map(|(_, decimals)| decimals.len());
    assert_eq!(decimals, Some(2), "{text}");
    assert!(units.contains(&unit), "{text}");
    assert!(number.parse::<f64>().unwrap() > 0.0, "{text}");
}
