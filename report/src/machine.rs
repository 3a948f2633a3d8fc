//! What stands above the tables: where, when, with what and how it was
//! measured, and what of it is not as a comparison needs it.

use crate::tcp;
use crate::units::{self, Unit, date, ranges};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wsbench_schema::{
    BulkLoad, CpuMap, EchoLoad, Load, MessageKind, Outcome, RateLoad, ReleaseLoad, RunPlan,
    Transport, TrialRecord, mark, setting,
};

/// Facts, and warnings that come before them.
#[derive(Clone, Debug)]
pub struct Heading {
    /// What a reader must know first, a sentence each.
    pub warnings: Vec<String>,
    /// Names and what they are.
    pub facts: Vec<(String, String)>,
}

impl Heading {
    /// From the plan and the trials that count.
    #[must_use]
    pub fn new(plan: &RunPlan, trials: &[&TrialRecord]) -> Self {
        let mut facts = Vec::new();
        let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
        fact("Run", plan.run.clone());
        fact("Started", date(plan.started_unix_s));
        fact("Trials", count(plan, trials));
        fact("Rounds", plan.rounds.to_string());
        if plan.settings.contains_key("noisy_again") {
            fact("Measured again", measured_again(trials));
        }
        fact("Profile", plan.profile.clone());
        fact("Seed", plan.seed.to_string());
        for (name, value) in machines(trials) {
            fact(name, value);
        }
        fact("CPUs", cpu_maps(plan, trials));
        if let Some(processes) = processes(trials) {
            fact("Processes", processes);
        }
        fact("Subjects", versions(trials));
        fact("Harness", joined(trials, |trial| trial.harness.clone()));
        let settings = settings(plan, trials);
        if !settings.is_empty() {
            fact("Settings", settings);
        }
        Self {
            warnings: warnings(plan, trials),
            facts,
        }
    }
}

fn count(plan: &RunPlan, trials: &[&TrialRecord]) -> String {
    let all: BTreeSet<String> = plan.loads.iter().map(Load::hash).collect();
    let last = last_steps(plan);
    let (done, planned) = progress(plan, trials, &last);
    // A ramp that failed at a step failed at the last one too.
    let failed = trials
        .iter()
        .filter(|trial| last.contains(&trial.load_hash) || !all.contains(&trial.load_hash))
        .filter(|trial| trial.outcome != Outcome::Completed)
        .count();
    let count = match failed {
        0 => format!("{done} of {planned}"),
        _ => format!("{done} of {planned}, {failed} of them failed"),
    };
    match all.len() == last.len() {
        true => count,
        false => {
            let (done, planned) = progress(plan, trials, &all);
            format!("{count} ({done} of {planned} records)")
        }
    }
}

/// Of a run that repeats what others disturbed.
fn measured_again(trials: &[&TrialRecord]) -> String {
    let again = trials.iter().filter(|trial| trial.attempt > 1).count();
    let noisy = trials
        .iter()
        .filter(|trial| trial.marks.contains_key(mark::NOISY));
    format!(
        "{again} of {} records, because others disturbed the first attempt; {} of all are still marked N",
        trials.len(),
        noisy.count()
    )
}

/// The loads with which a trial ends: all, but for the steps of a ramp before its last.
fn last_steps(plan: &RunPlan) -> BTreeSet<String> {
    let is_last = |index: usize| {
        let next = plan.loads.get(index + 1);
        next.is_none_or(|next| next.after_connections == 0)
    };
    let loads = plan.loads.iter().enumerate();
    loads
        .filter(|(index, _)| is_last(*index))
        .map(|(_, load)| load.hash())
        .collect()
}

/// Records of these loads, and how many the plan has of them.
fn progress(plan: &RunPlan, trials: &[&TrialRecord], loads: &BTreeSet<String>) -> (usize, usize) {
    let done = trials.iter().filter(|trial| {
        loads.contains(&trial.load_hash)
            && plan.subjects.contains(&trial.subject.name)
            && (1..=plan.rounds).contains(&trial.round)
    });
    let rounds = usize::try_from(plan.rounds).unwrap_or(usize::MAX);
    let planned = loads.len().saturating_mul(plan.subjects.len());
    (done.count(), planned.saturating_mul(rounds))
}

/// Every value that occurs, in order.
fn distinct<T: Ord>(trials: &[&TrialRecord], read: impl Fn(&TrialRecord) -> T) -> BTreeSet<T> {
    trials.iter().map(|trial| read(trial)).collect()
}

fn joined(trials: &[&TrialRecord], read: impl Fn(&TrialRecord) -> String) -> String {
    let values: Vec<String> = distinct(trials, read).into_iter().collect();
    if values.is_empty() {
        return "not known, as no trial has a record".to_owned();
    }
    values.join("; ")
}

/// A fact of the machine; several values of one mean several machines.
fn machines(trials: &[&TrialRecord]) -> Vec<(&'static str, String)> {
    let of = |read: fn(&TrialRecord) -> String| joined(trials, read);
    vec![
        ("Host", of(|t| t.machine.host.clone())),
        ("Kernel", of(|t| t.machine.kernel.clone())),
        (
            "CPU",
            of(|t| format!("{}, {} CPUs", t.machine.cpu_model, t.machine.cpus_count)),
        ),
        ("Memory", of(|t| memory(t.machine.memory_bytes))),
        ("Governor", of(|t| t.machine.governor.clone())),
        (
            "Congestion control",
            of(|t| t.machine.congestion_control.clone()),
        ),
        ("Ephemeral ports", of(|t| t.machine.ephemeral_ports.clone())),
        (
            "Open files (hard limit)",
            of(|t| t.machine.nofile_hard_count.to_string()),
        ),
        ("Compiler", of(|t| t.machine.rustc.clone())),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "two decimals are shown")]
fn memory(bytes: u64) -> String {
    Unit::Bytes.show(bytes as f64)
}

fn cpu_map(cpus: &CpuMap) -> String {
    let (server, client) = (ranges(&cpus.server), ranges(&cpus.client));
    let shared = if cpus.shared { " (shared)" } else { "" };
    let runner = ranges(&cpus.runner);
    format!("server {server}, client {client}{shared}, runner and sampler {runner}")
}

fn cpu_maps(plan: &RunPlan, trials: &[&TrialRecord]) -> String {
    if trials.is_empty() {
        return cpu_map(&plan.cpus);
    }
    joined(trials, |trial| cpu_map(&trial.cpus))
}

/// `3 x 2 processes (client x server)`, if any trial was of more than one a side.
/// A trial that never began has none.
fn processes(trials: &[&TrialRecord]) -> Option<String> {
    let counts = |trial: &TrialRecord| (trial.client_processes, trial.server_processes);
    let known = distinct(trials, counts)
        .into_iter()
        .filter(|(_, server)| *server > 0);
    let known: Vec<_> = known.collect();
    let are_several = known.iter().any(|counts| *counts != (1, 1));
    let shown = known
        .iter()
        .map(|(client, server)| format!("{client} x {server} processes"));
    let shown: Vec<_> = shown.collect();
    are_several.then(|| format!("{} (client x server)", shown.join("; ")))
}

/// Each subject with the version that was measured, in full where the version
/// does not begin with the subject's name.
fn versions(trials: &[&TrialRecord]) -> String {
    joined(trials, |trial| {
        let (name, version) = (&trial.subject.name, trial.subject.version.trim());
        match version.strip_prefix(name.as_str()) {
            Some(rest) if rest.is_empty() || rest.starts_with(' ') => version.to_owned(),
            _ => format!("{name}: {version}"),
        }
    })
}

/// Of the plan, then of the trials; a setting that is not the same in all of
/// them (such as ports) is left to the records. The programs of subjects and the
/// machine, which a plan holds for its resumption, stand above these.
fn settings(plan: &RunPlan, trials: &[&TrialRecord]) -> String {
    let mut settings: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let all = trials.iter().flat_map(|trial| &trial.settings);
    let stands_above = |name: &str| {
        // The hash of a program is for resuming and for checking, not for reading; a
        // role is one subject's, and stands in its row.
        // A patch stands in its subject's version.
        let hidden = ["version.", "machine.", "binary.", setting::PATCHED];
        matches!(name, "binary" | "role" | "command" | setting::PATCH_OF)
            || hidden.iter().any(|prefix| name.starts_with(prefix))
    };
    let all = plan.settings.iter().chain(all);
    for (name, value) in all.filter(|(name, _)| !stands_above(name)) {
        settings.entry(name).or_default().insert(value);
    }
    let texts: Vec<String> = settings
        .into_iter()
        .map(|(name, values)| match values.first() {
            Some(value) if values.len() == 1 => format!("{name} = {value}"),
            _ => format!("{name} differs (see the records)"),
        })
        .collect();
    texts.join(", ")
}

/// Whether the trials ran on more than one machine. Of trials of schema version 1 the
/// host's name is not known.
fn are_several(trials: &[&TrialRecord]) -> bool {
    let is_known = |host: &&String| *host != "unknown";
    let hosts = trials.iter().map(|trial| &trial.machine.host);
    let hosts: BTreeSet<&String> = hosts.filter(is_known).collect();
    let without_host = |trial: &TrialRecord| {
        let mut machine = trial.machine.clone();
        machine.host.clear();
        format!("{machine:?}")
    };
    hosts.len() > 1 || distinct(trials, without_host).len() > 1
}

fn warnings(plan: &RunPlan, trials: &[&TrialRecord]) -> Vec<String> {
    let mut warnings = Vec::new();
    let (done, planned) = progress(plan, trials, &last_steps(plan));
    if done < planned {
        let planned = units::counted(planned as u64, "trial");
        warnings.push(format!("This run is incomplete: {done} of {planned}."));
    }
    let several = |read: fn(&TrialRecord) -> String| distinct(trials, read).len() > 1;
    if are_several(trials) {
        warnings.push(
            "The trials ran on machines that differ, or on one that was changed: do not compare them."
                .to_owned(),
        );
    }
    if several(|trial| trial.harness.clone()) {
        warnings.push("The trials were measured by different revisions of the harness.".to_owned());
    }
    if several(|trial| cpu_map(&trial.cpus)) {
        warnings.push("The trials had different CPUs: do not compare them.".to_owned());
    }
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for trial in trials {
        let subject = &trial.subject;
        versions
            .entry(&subject.name)
            .or_default()
            .insert(&subject.version);
    }
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        let versions: Vec<&str> = versions.iter().copied().collect();
        let versions = versions.join(" and ");
        warnings.push(format!(
            "{name} was measured in several versions: {versions}."
        ));
    }
    warnings
}

/// What was done, a line for each phase.
#[must_use]
pub fn describe(load: &Load) -> Vec<String> {
    let kind = match load.message {
        MessageKind::Binary => "binary",
        MessageKind::Text => "text",
    };
    let check = match (load.check, load.transport) {
        (true, _) => "every echoed byte compared",
        (false, Transport::Websocket) => "opcode and length compared, bytes not",
        (false, Transport::Stream) => "length compared, bytes not",
    };
    let over = match load.transport {
        Transport::Websocket => "",
        Transport::Stream => " over plain TCP",
    };
    let (connections, payload) = (load.connections, load.payload_bytes);
    let dial = &load.dial;
    let after = match load.after_connections {
        0 => String::new(),
        open => format!(", {open} of them open already"),
    };
    let mut lines = vec![
        match &load.bulk {
            None => format!(
                "{connections} connections{over}{after}, {kind} messages of {payload} bytes, {check}"
            ),
            Some(bulk) => format!(
                "{connections} connections{over}, each transfers {} {} in pieces of {payload} {kind} bytes, \
                 every byte compared",
                tcp::size(bulk.bytes_per_connection),
                tcp::direction(bulk.direction),
            ),
        },
        format!(
            "dial: {} in flight, timeout {}, {} retries {} apart",
            dial.concurrency,
            millis(dial.timeout_ms),
            dial.retries,
            millis(dial.retry_interval_ms),
        ),
    ];
    lines.extend(load.echo.as_ref().map(describe_echo));
    lines.extend(load.rate.as_ref().map(describe_rate));
    lines.extend(load.bulk.as_ref().map(describe_bulk));
    lines.extend(load.release.as_ref().map(describe_release));
    if load.client_burn_ns > 0 {
        let burn = load.client_burn_ns;
        lines.push(format!(
            "the client was slowed by {burn} ns a message on purpose: no figure is honest"
        ));
    }
    lines
}

fn millis(ms: u64) -> String {
    format!("{:?}", Duration::from_millis(ms))
}

fn limit(per_s: u64) -> String {
    match per_s {
        0 => String::new(),
        _ => format!(", at most {per_s} a second in all"),
    }
}

fn describe_release(release: &ReleaseLoad) -> String {
    format!(
        "release: {} % of the connections closed at the end, memory read {} later, timeout {}",
        release.percent,
        millis(release.settle_ms),
        millis(release.timeout_ms),
    )
}

fn describe_echo(echo: &EchoLoad) -> String {
    let concurrency = match echo.concurrency {
        0 => "one in flight on every connection".to_owned(),
        count => format!("{count} in flight"),
    };
    let duration = echo.duration_ms.map(millis);
    let duration = duration.map_or(String::new(), |text| format!(" or {text}"));
    format!(
        "echo: {}{duration}, {concurrency}{}, timeout {}, after {} to warm up",
        echo.echoes,
        limit(echo.limit_per_s),
        millis(echo.timeout_ms),
        echo.warmup_echoes,
    )
}

fn describe_rate(rate: &RateLoad) -> String {
    let connections = match rate.connections {
        0 => "every connection".to_owned(),
        count => format!("each of {count} connections"),
    };
    let window = match rate.window {
        0 => "16 batches".to_owned(),
        count => format!("{count} messages"),
    };
    format!(
        "rate: {} messages a second on {connections} for {}{}, in batches of up to {} bytes, \
         at most {window} in flight on a connection, timeout {}",
        rate.per_connection_per_s,
        millis(rate.duration_ms),
        limit(rate.limit_per_s),
        rate.batch_bytes,
        millis(rate.timeout_ms),
    )
}

fn describe_bulk(bulk: &BulkLoad) -> String {
    let slow = match bulk.slow_readers_percent {
        0 => String::new(),
        percent => format!(
            ", {percent} % of the connections read {} a second at most",
            tcp::size(bulk.slow_bytes_per_s)
        ),
    };
    let duration = bulk.duration_ms.map(millis);
    let duration = duration.map_or(String::new(), |text| format!(", for at most {text}"));
    format!(
        "bulk: all at once{slow}{duration}, timeout {}",
        millis(bulk.timeout_ms)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    fn value(heading: &Heading, name: &str) -> String {
        let found = heading.facts.iter().find(|(known, _)| known == name);
        found.expect(name).1.clone()
    }

    #[test]
    fn one_machine_is_told_once() {
        let trials = [example::trial("axum", 1), example::trial("floor", 1)];
        let trials: Vec<_> = trials.iter().collect();
        let heading = Heading::new(&example::plan(&["axum", "floor"], 1), &trials);
        assert_eq!(heading.warnings, [""; 0]);
        assert_eq!(value(&heading, "Trials"), "2 of 2");
        assert_eq!(value(&heading, "CPU"), "Example CPU, 2 CPUs");
        assert_eq!(value(&heading, "Memory"), "8.00G");
        assert_eq!(value(&heading, "Subjects"), "axum 1.2.3; floor 1.2.3");
        assert_eq!(
            value(&heading, "CPUs"),
            "server 0, client 1, runner and sampler 0-1"
        );
        assert_eq!(value(&heading, "Settings"), "nodelay = true");
    }

    #[test]
    fn an_incomplete_run_says_so_and_needs_no_record() {
        let plan = example::plan(&["axum", "floor"], 3);
        let heading = Heading::new(&plan, &[]);
        assert_eq!(heading.warnings, ["This run is incomplete: 0 of 6 trials."]);
        assert!(value(&heading, "Kernel").starts_with("not known"));
    }

    #[test]
    fn records_outside_the_plan_do_not_complete_it() {
        let extra = [example::trial("other", 1), example::trial("axum", 2)];
        let trials: Vec<_> = extra.iter().collect();
        let heading = Heading::new(&example::plan(&["axum"], 1), &trials);
        assert_eq!(value(&heading, "Trials"), "0 of 1");
    }

    #[test]
    fn a_ramp_is_one_trial_with_a_record_for_each_step() {
        let step = |after, connections| {
            let mut trial = example::trial("axum", 1);
            trial.load.after_connections = after;
            trial.load.connections = connections;
            trial.load_hash = trial.load.hash();
            trial
        };
        let (first, mut last) = (step(0, 10), step(10, 100));
        let plan = RunPlan {
            loads: vec![first.load.clone(), last.load.clone()],
            ..example::plan(&["axum"], 1)
        };
        let told = |trials: &[&TrialRecord]| {
            let heading = Heading::new(&plan, trials);
            let complete = heading.warnings.is_empty();
            (value(&heading, "Trials").to_owned(), complete)
        };
        assert_eq!(told(&[&first]), ("0 of 1 (1 of 2 records)".into(), false));
        assert_eq!(
            told(&[&first, &last]),
            ("1 of 1 (2 of 2 records)".into(), true)
        );
        last.outcome = example::failed("axum", 1, "connect", "no memory").outcome;
        let failed = "1 of 1, 1 of them failed (2 of 2 records)";
        assert_eq!(told(&[&first, &last]), (failed.into(), true));
    }

    #[test]
    fn what_differs_between_trials_is_a_warning() {
        let mut other = example::trial("axum", 2);
        other.machine.kernel = "Linux 6.19.0".into();
        other.harness = "0.1.0 (other)".into();
        other.subject.version = "axum 2.0.0".into();
        other.cpus.server = vec![2];
        other.settings.insert("ports".into(), "10001-10010".into());
        let mut first = example::trial("axum", 1);
        first.settings.insert("ports".into(), "10011-10020".into());
        first.settings.insert("version.axum".into(), "axum".into());
        first.settings.insert("binary".into(), "0123".into());
        let hash = "binary.axum".to_owned();
        first.settings.insert(hash, "0123".into());
        let kernel = "machine.kernel".to_owned();
        first.settings.insert(kernel, "Linux 6.18.0".into());
        let heading = Heading::new(&example::plan(&["axum"], 2), &[&first, &other]);
        assert_eq!(heading.warnings.len(), 4, "{:?}", heading.warnings);
        assert_eq!(
            heading.warnings[3],
            "axum was measured in several versions: axum 1.2.3 and axum 2.0.0."
        );
        assert_eq!(value(&heading, "Kernel"), "Linux 6.18.0; Linux 6.19.0");
        assert_eq!(
            value(&heading, "Settings"),
            "nodelay = true, ports differs (see the records)"
        );
    }

    #[test]
    fn a_version_that_names_something_else_is_told_in_full() {
        let mut trial = example::trial("mine", 1);
        trial.subject.version = "axum 0.8.9".into();
        assert_eq!(versions(&[&trial]), "mine: axum 0.8.9");
    }

    #[test]
    fn a_load_is_told_with_everything_that_was_set() {
        let mut load = example::load();
        assert_eq!(
            describe(&load),
            [
                "1000 connections, binary messages of 1024 bytes, every echoed byte compared",
                "dial: 2000 in flight, timeout 5s, 5 retries 100ms apart",
                "echo: 100000, one in flight on every connection, timeout 5s, after 5000 to warm up",
                "rate: 5 messages a second on every connection for 10s, in batches of up to 16384 bytes, \
                 at most 16 batches in flight on a connection, timeout 5s",
            ]
        );
        let bulk = example::transferred("pool", 1, 100).load;
        let lines = describe(&bulk);
        let first = "500 connections over plain TCP, each transfers 2 MB both ways in pieces of 20000 binary bytes, every byte compared";
        assert_eq!(
            [&*lines[0], &*lines[2]],
            [first, "bulk: all at once, timeout 5s"]
        );
        let echo = load.echo.as_mut().unwrap();
        (echo.duration_ms, echo.concurrency, echo.limit_per_s) = (Some(1500), 64, 9000);
        load.rate = None;
        load.client_burn_ns = 20;
        let lines = describe(&load);
        assert_eq!(
            lines[2],
            "echo: 100000 or 1.5s, 64 in flight, at most 9000 a second in all, timeout 5s, after 5000 to warm up"
        );
        assert!(lines[3].contains("slowed by 20 ns"));
    }
}
