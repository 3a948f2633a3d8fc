//! One load by several client and server processes: nothing is lost in the
//! split, and one that is lost is named.

mod util;

use std::fs;
use std::thread;
use std::time::{Duration, Instant};
use util::{
    Project, Running, add_wrong, alone, descendants, expect_exit_code, expect_nothing_left,
    failure, figure, measure, project, records, signal,
};
use wsbench_schema::metric::{
    CLIENT_CPU, CLIENT_CPUS, CONCURRENCY, CONNECTIONS, DIAL_LATENCY, ECHO_LATENCY, FAILED,
    NOT_SENT, PLANNED, SENT, SERVER_PROCESSES, SUCCEEDED,
};
use wsbench_schema::{Phase, PortRange, TrialRecord, decode_histogram, metric};

const BOUND: Duration = Duration::from_secs(60);
const REAPED: Duration = Duration::from_secs(5);

#[test]
fn three_clients_and_two_servers_share_a_load_to_the_last_echo() {
    let _alone = alone();
    let project = project();
    add_wrong(&project, "good", "");
    let record = measure(
        &project,
        "good",
        "-c 31 -n 1001 --warmup 67 --echo-concurrency 29 --dial-concurrency 7 --ports 3 \
         --client-processes 3 --server-processes 2 --rate --rate-duration 1s --rate-per-connection 3",
    );
    assert_eq!((record.client_processes, record.server_processes), (3, 2));
    let count = |phase, name| figure(&record, phase, name);
    for (phase, all) in [
        (Phase::Connect, 31),
        (Phase::Warmup, 67),
        (Phase::Echo, 1001),
    ] {
        assert_eq!(count(phase, PLANNED), all, "{phase}");
        assert_eq!(count(phase, SUCCEEDED), all, "{phase}");
        assert_eq!(count(phase, FAILED), 0, "{phase}");
        assert_eq!(count(phase, SERVER_PROCESSES), 2);
    }
    assert_eq!(count(Phase::Connect, CONCURRENCY), 7);
    assert_eq!(count(Phase::Echo, CONCURRENCY), 29);
    for phase in [Phase::Warmup, Phase::Echo, Phase::Rate] {
        assert_eq!(count(phase, CONNECTIONS), 31, "{phase}");
    }
    assert_eq!(count(Phase::Echo, NOT_SENT), 0);
    assert_eq!(count(Phase::Rate, SUCCEEDED), count(Phase::Rate, SENT));
    assert!(count(Phase::Rate, SENT) > 0);
    // All three run on the same CPUs, and each used some.
    let cpus = record.cpus.client.len() as u64;
    assert_eq!(count(Phase::Echo, CLIENT_CPUS), cpus);
    assert!(count(Phase::Echo, CLIENT_CPU) > 0);
    let samples = |phase: Phase, name| {
        let text = &record.histograms[&phase.metric(name)];
        decode_histogram(text).unwrap().len()
    };
    assert_eq!(samples(Phase::Connect, DIAL_LATENCY), 31);
    assert_eq!(samples(Phase::Echo, ECHO_LATENCY), 1001);
    let ports: PortRange = record.settings["ports"].parse().unwrap();
    assert_eq!(ports.count(), 6);
    let report = fs::read_to_string(project.path("output/report/report.md")).unwrap();
    assert!(report.contains("3 x 2 processes"), "{report}");
    expect_nothing_left(&project, REAPED);
}

/// Process ids of the project's servers.
fn servers(project: &Project) -> Vec<u32> {
    pids(project, |words| words[0].ends_with("/misbehave"))
}

/// Process ids of the project's clients.
fn clients(project: &Project) -> Vec<u32> {
    pids(project, |words| words.get(1) == Some(&"client-process"))
}

fn pids(project: &Project, is_meant: fn(&[&str]) -> bool) -> Vec<u32> {
    let mut all = descendants(project);
    all.retain(|(_, line)| is_meant(&line.split(' ').collect::<Vec<_>>()));
    all.iter().map(|(pid, _)| *pid).collect()
}

#[test]
fn one_killed_process_of_several_is_the_trials_failure_with_its_number() {
    let _alone = alone();
    let project = project();
    add_wrong(&project, "good", "");
    let mut run = Running::start(
        &project,
        "run good -c 20 -n 100000000 --client-processes 2 --server-processes 3 --rounds 2",
    );
    let mut killed = Vec::new();
    // A trial each. The servers of the second are new ones.
    for whose in [servers, clients] {
        let start = Instant::now();
        loop {
            let servers = servers(&project);
            let is_new = servers.iter().all(|server| !killed.contains(server));
            if clients(&project).len() == 2 && servers.len() == 3 && is_new {
                // Their connections too, as far as that can be told from outside.
                thread::sleep(Duration::from_millis(300));
                killed = servers;
                signal(whose(&project)[1], "KILL");
                break;
            }
            assert!(start.elapsed() < BOUND, "never began: {}", run.said());
            thread::sleep(Duration::from_millis(10));
        }
    }
    let ended = run.expect_end(BOUND);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    let records = records(&project);
    let reasons: Vec<&str> = records.iter().map(|record| failure(record).1).collect();
    let [server, client] = reasons[..] else {
        panic!("{reasons:?}");
    };
    let is_named = |reason: &str, side: &str, of: u32| {
        let names = (1..=of).map(|number| format!("{side} process {number} of {of} was "));
        names.into_iter().any(|name| reason.starts_with(&name)) && reason.contains("signal 9")
    };
    assert!(is_named(server, "server", 3), "{server}");
    assert!(is_named(client, "client", 2), "{client}");
    // What the clients saw of the dying server is kept; of a dead client nothing is.
    // On a busy machine it may not have come as far as the echoes.
    let counted = |record: &TrialRecord| {
        let count = |name| record.metric(Phase::Echo, name);
        (count(SUCCEEDED), count(FAILED))
    };
    if failure(&records[0]).0 == "echo" {
        let (Some(succeeded), Some(failed)) = counted(&records[0]) else {
            panic!("nothing of it is kept: {server}");
        };
        let expected = format!("; until then {succeeded} echoes right, {failed} failed");
        assert!(server.contains(&expected), "{server}");
    }
    assert_eq!(counted(&records[1]), (None, None), "{client}");
    assert!(!client.contains("until then"), "{client}");
    expect_nothing_left(&project, REAPED);
}

#[test]
fn a_ramp_opens_more_and_more_connections_to_one_server_and_measures_at_each_step() {
    let _alone = alone();
    let project = project();
    add_wrong(&project, "good", "");
    let flags = "run good --ramp -c 6,40,15 -n 120 --client-processes 2 --server-processes 2";
    expect_exit_code(0, &project, flags);
    let mut steps = records(&project);
    steps.sort_by_key(|step| step.load.connections);
    let [first, second, third] = &steps[..] else {
        panic!("{} records", steps.len());
    };
    for (step, before, connections) in [(first, 0, 6), (second, 6, 15), (third, 15, 40)] {
        assert_eq!(step.load.after_connections, before);
        assert_eq!(step.load.connections, connections);
        let figure = |phase, name| step.metric(phase, name);
        let dialled = u64::from(connections - before);
        assert_eq!(figure(Phase::Connect, metric::SUCCEEDED), Some(dialled));
        assert_eq!(figure(Phase::Echo, metric::SUCCEEDED), Some(120));
        let open = u64::from(connections);
        assert_eq!(figure(Phase::Echo, metric::CONNECTIONS), Some(open));
    }
    // The same processes: what they used until the first step is not used again.
    assert_eq!(first.settings["ports"], third.settings["ports"]);
    let report = std::fs::read_to_string(project.path("output/report/report.md")).unwrap();
    let table = report.split("## Against connections").nth(1).unwrap();
    let rows: Vec<&str> = table
        .lines()
        .filter(|line| line.contains("| good"))
        .collect();
    assert_eq!(rows.len(), 3, "{table}");
    // Nothing is left to be done, and nothing is done to a run that nobody named.
    let ended = expect_exit_code(1, &project, "run --resume --no-build");
    let name = &first.run;
    let complete = format!("no run was interrupted (the newest, {name}, is complete)");
    assert!(ended.stderr.contains(&complete), "{}", ended.stderr);
    let arguments = format!("run --resume={name} --no-build");
    let ended = expect_exit_code(0, &project, &arguments);
    let done = format!("nothing was left to do: run {name} is complete");
    assert!(ended.stderr.contains(&done), "{}", ended.stderr);
    assert_eq!(records(&project).len(), 3);
}
