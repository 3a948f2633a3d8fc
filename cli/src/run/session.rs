//! A run from its first line to its report: builds, measures trial by trial,
//! and shows what was found, however it ended.

use crate::commands::publish::PublishArgs;
use crate::compile;
use crate::cpus;
use crate::doctor::{self, Demand};
use crate::progress::{Spinner, note, say};
use crate::root::Root;
use crate::run::again;
use crate::run::estimate::{Estimate, History, spoken};
use crate::run::examine::{Admission, Examinations};
use crate::run::interrupt::{EXIT_CODE, Interrupt};
use crate::run::limits;
use crate::run::lock::RunLock;
use crate::run::options::Options;
use crate::run::pilot::Pilots;
use crate::run::plan::{self, Planned};
use crate::run::processes;
use crate::run::ramp;
use crate::run::resume::Finished;
use crate::run::room;
use crate::run::saved::Saved;
use crate::run::setup::{Request, Setup};
use crate::run::slo;
use crate::run::syscalls;
use crate::run::trial::{self, Bench, Job};
use crate::run::verdict;
use crate::runfile::RunFile;
use crate::subject::State;
use anyhow::Context as _;
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::process::ExitCode;
use wsbench_report::terminal_width;
use wsbench_report::units::counted;
use wsbench_schema::{CpuMap, Load, Machine, Outcome, SloOutcome, SloRecord, Suite, TrialRecord};

/// What is done around the trials.
pub struct Around<'a> {
    /// Build what is not built.
    pub build: bool,
    /// In front of the reports' file names.
    pub prefix: &'a str,
    /// Behind them.
    pub suffix: &'a str,
    /// Where else the report goes.
    pub publish: &'a PublishArgs,
}

/// Before anything is started: what the machine would refuse half-way.
fn refuse_what_cannot_be_held(
    loads: &[Load],
    options: &Options,
    descriptors: u32,
    found: &doctor::Limits,
) -> anyhow::Result<()> {
    let Some(load) = loads.last() else {
        return Ok(());
    };
    let processes = options.processes(load.connections, descriptors);
    processes.check(load.connections, descriptors, found.nofile_hard)?;
    let demand = Demand::of(load, options.ports, processes);
    let demand = demand.with_descriptors(descriptors);
    doctor::refuse(&doctor::limits(found, &demand), &demand)?;
    // Too little to share is better said now than once for every trial.
    for load in loads {
        processes.check_share(load.connections)?;
        load.shares(processes.client).map_err(anyhow::Error::msg)?;
    }
    Ok(())
}

/// Runs, or goes on with a run, and reports it.
pub fn run(root: &Root, request: &Request, around: &Around<'_>) -> anyhow::Result<ExitCode> {
    let lock = RunLock::take(&root.output("run"))?;
    let interrupt = Interrupt::install()?;
    let mut setup = Setup::new(root, request)?;
    lock.tell(&format!("run {}", setup.plan.run))
        .context("cannot say in the lock who holds it")?;
    let connections = setup.plan.loads.iter().map(|load| load.connections);
    limits::raise_files(connections.max().unwrap_or(0));
    let found = doctor::Limits::read()?;
    setup.hold(processes::each_most(found.nofile_hard));
    let chains = ramp::chains(&setup.plan.loads);
    for chain in &chains {
        let loads = &setup.plan.loads[chain.clone()];
        let descriptors = *setup.descriptors().end();
        refuse_what_cannot_be_held(loads, &setup.options, descriptors, &found)?;
    }
    let todo = todo(&setup, &chains);
    let estimate = estimate(root, &setup, &todo);
    let interval = setup.options.sample_interval;
    let records = todo.iter().map(|trial| trial.loads.len()).sum();
    room::check(&setup.folder, records, estimate.total, interval)?;
    setup.save()?;
    for reason in &setup.finished.put_aside {
        note(format_args!("put aside, to be measured again: {reason}"));
    }
    say(format_args!(
        "{}",
        heading(&setup.machine, &setup.plan.cpus)
    ));
    announce(&setup, &chains, &todo, &estimate);
    let beside = beside(root)?;
    let unbuilt = build(root, &setup, &todo, around.build, &interrupt);
    let measured = if interrupt.pressed() {
        Ok(false)
    } else {
        setup.read_programs(root)?;
        setup.save()?;
        measure(root, &setup, &todo, &unbuilt, &beside, &interrupt)
    };
    conclude(root, &setup, around, measured)
}

/// However the trials ended, what they found is shown.
fn conclude(
    root: &Root,
    setup: &Setup,
    around: &Around<'_>,
    measured: anyhow::Result<bool>,
) -> anyhow::Result<ExitCode> {
    let run = &setup.plan.run;
    let saved = Saved::read(&setup.folder)?;
    if saved.is_empty() && !matches!(measured, Ok(true)) {
        setup.forget()?;
        measured?;
        note("interrupted before anything was measured: there is nothing to report");
        return Ok(ExitCode::from(EXIT_CODE));
    }
    let reported = report(root, around, &saved);
    let completed = match measured {
        Ok(completed) => completed,
        Err(error) => {
            if let Err(report) = reported {
                note(format_args!("wsbench: no report was written: {report:#}"));
            }
            return Err(error.context(format!(
                "the run ends here, and what was saved before is kept (go on with: wsbench run --resume={run})"
            )));
        }
    };
    let failed = reported?;
    if !completed {
        note(format_args!(
            "interrupted: what was measured is kept (go on with: wsbench run --resume={run})"
        ));
        return Ok(ExitCode::from(EXIT_CODE));
    }
    Ok(match failed {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

/// Servers that `wsbench serve` runs here: idle they cost nothing, but whoever
/// loads one from another host disturbs the run, and nobody would know.
fn beside(root: &Root) -> anyhow::Result<String> {
    let mut served = RunFile::all(root)?;
    served.retain(|file| !file.is_stale());
    let names: Vec<&str> = served.iter().map(|file| file.name.as_str()).collect();
    let names = names.join(" ");
    if !names.is_empty() {
        note(format_args!(
            "{names}: served here meanwhile, which the records say; whoever loads it disturbs \
             this run (stop it: wsbench kill)"
        ));
    }
    Ok(names)
}

/// The trials that are not done yet, in order.
fn todo(setup: &Setup, chains: &[Range<usize>]) -> Vec<Planned> {
    let plan = &setup.plan;
    let mut trials = plan::order(plan.seed, chains, plan.subjects.len(), plan.rounds);
    trials.retain(|trial| {
        let subject = &plan.subjects[trial.subject];
        if setup.options.slo.is_some() {
            return !setup.finished.is_searched(subject, trial.round);
        }
        let mut loads = plan.loads[trial.loads.clone()].iter();
        // A ramp that was interrupted is climbed again from its foot.
        loads.any(|load| {
            let record = setup.finished.record(&load.hash(), subject, trial.round);
            record.is_none()
        }) || (setup.options.noisy_again && again::is_due(plan, trial, &setup.finished))
    });
    trials
}

/// Machine and CPU map.
fn heading(machine: &Machine, cpus: &CpuMap) -> String {
    let shared = match cpus.shared {
        true => " (server and client share cores: rows are marked)",
        false => "",
    };
    format!(
        "{}, {}, {} CPUs, {:.1} GiB; governor {}, congestion control {}\n\
         CPUs: server {}, client {}, runner and sampler {}{shared}",
        machine.kernel,
        machine.cpu_model,
        machine.cpus_count,
        machine.memory_bytes as f64 / f64::from(1 << 30),
        machine.governor,
        machine.congestion_control,
        cpus::format_list(&cpus.server),
        cpus::format_list(&cpus.client),
        cpus::format_list(&cpus.runner),
    )
}

fn estimate(root: &Root, setup: &Setup, todo: &[Planned]) -> Estimate {
    let plan = &setup.plan;
    if let Some(slo) = &setup.options.slo {
        let (_, total) = slo::announced(slo, todo.len());
        let basis = "assuming stages of the usual number".into();
        return Estimate { total, basis };
    }
    let history = History::read(&root.results(), &plan.loads, &plan.cpus);
    let steps = todo.iter().flat_map(|trial| {
        let subject = plan.subjects[trial.subject].as_str();
        let loads = &plan.loads[trial.loads.clone()];
        loads.iter().map(move |load| (subject, load))
    });
    history.estimate(steps)
}

fn announce(setup: &Setup, chains: &[Range<usize>], todo: &[Planned], estimate: &Estimate) {
    let plan = &setup.plan;
    let all = plan.subjects.len() * chains.len() * plan.rounds as usize;
    let done = match all - todo.len() {
        0 => String::new(),
        done => format!(", {done} of them done already"),
    };
    say(format_args!(
        "run {}, profile {}, seed {}: {}{done}",
        plan.run,
        plan.profile,
        plan.seed,
        size(
            plan.subjects.len(),
            chains.len(),
            plan.loads.len(),
            plan.rounds
        ),
    ));
    let descriptors = setup.descriptors();
    for chain in chains {
        let load = &plan.loads[chain.end - 1];
        let of = |descriptors| setup.options.processes(load.connections, descriptors);
        let (fewest, most) = (of(*descriptors.start()), of(*descriptors.end()));
        if most.are_several() {
            let connections = counted(load.connections.into(), "connection");
            let some_have_more = match fewest == most {
                true => String::new(),
                false => format!(", of those that open more files {most}"),
            };
            say(format_args!(
                "{connections}: {fewest}{some_have_more} (client x server)"
            ));
        }
    }
    if let Some(slo) = &setup.options.slo {
        say(slo::announced(slo, todo.len()).0);
    }
    if !todo.is_empty() {
        say(format_args!(
            "about {} without building ({})",
            spoken(estimate.total),
            estimate.basis
        ));
    }
}

/// How many trials there are, and why. A ramp is one trial, with a record for each step.
fn size(subjects: usize, chains: usize, loads: usize, rounds: u32) -> String {
    let trials = subjects * chains * rounds as usize;
    let (subjects, chains, loads) = (subjects as u64, chains as u64, loads as u64);
    let servers = counted(subjects, "server");
    let rounds_said = counted(rounds.into(), "round");
    let trials = counted(trials as u64, "trial");
    if chains == loads {
        let loads = counted(loads, "load");
        return format!("{servers} x {loads} x {rounds_said} = {trials}");
    }
    let steps = match chains {
        1 => format!("1 ramp of {}", counted(loads, "step")),
        _ => format!("{chains} ramps ({loads} steps in all)"),
    };
    let records = counted(subjects * loads * u64::from(rounds), "record");
    format!("{servers} x {steps} x {rounds_said} = {trials} ({records})")
}

/// Builds every subject that is still to be measured; those that could not be,
/// with the reason.
fn build(
    root: &Root,
    setup: &Setup,
    todo: &[Planned],
    wanted: bool,
    interrupt: &Interrupt,
) -> BTreeMap<usize, String> {
    let mut unbuilt = BTreeMap::new();
    if !wanted {
        note_stale(root, setup, todo);
        return unbuilt;
    }
    for (index, subject) in setup.subjects.iter().enumerate() {
        if interrupt.pressed() {
            break;
        }
        if !todo.iter().any(|trial| trial.subject == index) {
            continue;
        }
        let mut spinner = Spinner::new(format!("building {}", subject.name));
        let built = compile::build(root, subject, &mut |event| match event {
            compile::Event::Crate { done, name } => {
                let crates = counted(done as u64, "crate");
                spinner.update(&format!("{name} ({crates})"));
            }
            compile::Event::Notice(text) => spinner.update(text),
        });
        drop(spinner);
        if let Err(error) = built {
            if interrupt.pressed() {
                break;
            }
            let reason = format!("{error:#}");
            note(format_args!("{} cannot be built: {reason}", subject.name));
            unbuilt.insert(index, reason);
        }
    }
    unbuilt
}

/// Whoever does not want to build may not know what that leaves.
fn note_stale(root: &Root, setup: &Setup, todo: &[Planned]) {
    for (index, subject) in setup.subjects.iter().enumerate() {
        let is_measured = todo.iter().any(|trial| trial.subject == index);
        if is_measured && subject.state(root) == State::Stale {
            note(format_args!(
                "{} is older than its sources and measured as it is ({})",
                subject.name,
                subject.how_to_build()
            ));
        }
    }
}

/// Makes the trials; false if the user interrupted them.
fn measure(
    root: &Root,
    setup: &Setup,
    todo: &[Planned],
    unbuilt: &BTreeMap<usize, String>,
    beside: &str,
    interrupt: &Interrupt,
) -> anyhow::Result<bool> {
    if todo.is_empty() {
        return Ok(true);
    }
    let plan = &setup.plan;
    let logs = root.output("log").join(&plan.run);
    fs::create_dir_all(&logs).with_context(|| format!("cannot make {}", logs.display()))?;
    // After building, which may use every CPU.
    cpus::pin_self(&plan.cpus.runner)?;
    let bench = Bench {
        root,
        run: &plan.run,
        folder: &setup.folder,
        logs,
        machine: setup.machine.clone(),
        cpus: plan.cpus.clone(),
        harness: setup.harness.clone(),
        beside,
        options: &setup.options,
        pilots: Pilots::default(),
        interrupt,
    };
    let mut examinations = Examinations::default();
    // All of them first: who is wrong is known before hours of measuring, and the
    // examiner's work warms no trial's machine.
    for (index, subject) in setup.subjects.iter().enumerate() {
        let is_measured = todo.iter().any(|trial| trial.subject == index);
        if !is_measured || unbuilt.contains_key(&index) {
            continue;
        }
        let version = &setup.versions[index];
        let admission = examinations.admit(&bench, subject, version)?;
        if interrupt.pressed() || admission.is_none() {
            return Ok(false);
        }
    }
    let mut pass = Pass {
        setup,
        bench: &bench,
        unbuilt,
        examinations,
        counts: setup.options.syscalls && can_count(),
    };
    if !pass.run(todo, &setup.finished)? {
        return Ok(false);
    }
    if setup.options.noisy_again {
        return measure_again(&mut pass);
    }
    Ok(true)
}

/// Measures what others disturbed once more, until nothing is left of it or it was
/// measured often enough; false if the user interrupted it.
fn measure_again(pass: &mut Pass<'_>) -> anyhow::Result<bool> {
    let plan = &pass.setup.plan;
    let chains = ramp::chains(&plan.loads);
    let all = plan::order(plan.seed, &chains, plan.subjects.len(), plan.rounds);
    loop {
        let finished = Finished::read(&pass.setup.folder)?;
        let is_due = |trial: &&Planned| again::is_due(plan, trial, &finished);
        let due: Vec<Planned> = all.iter().filter(is_due).cloned().collect();
        if due.is_empty() {
            return Ok(true);
        }
        say(format_args!(
            "others disturbed {} of {}: measured again",
            due.len(),
            counted(all.len() as u64, "trial")
        ));
        if !pass.run(&due, &finished)? {
            return Ok(false);
        }
    }
}

/// One after the other, the trials that are due.
struct Pass<'a> {
    setup: &'a Setup,
    bench: &'a Bench<'a>,
    unbuilt: &'a BTreeMap<usize, String>,
    examinations: Examinations,
    /// Whether system calls are counted.
    counts: bool,
}

impl Pass<'_> {
    /// Makes these trials; `finished` is what was measured before. False if the user
    /// interrupted it.
    fn run(&mut self, todo: &[Planned], finished: &Finished) -> anyhow::Result<bool> {
        let Self { setup, bench, .. } = *self;
        let plan = &setup.plan;
        let width = plan.subjects.iter().map(String::len).max().unwrap_or(0);
        for trial in todo {
            if bench.interrupt.pressed() {
                return Ok(false);
            }
            let loads = &plan.loads[trial.loads.clone()];
            let name = &plan.subjects[trial.subject];
            let title = format!("{name:width$}  round {}/{}", trial.round, plan.rounds);
            let title_of = |loads: &[Load]| match plan.loads.len() {
                1 => title.clone(),
                _ => format!("{title}  {}", described(loads)),
            };
            let attempts = loads
                .iter()
                .map(|load| finished.next_attempt(&load.hash(), name, trial.round));
            let (subject, version) = (
                &setup.subjects[trial.subject],
                &setup.versions[trial.subject],
            );
            let admission = match self.unbuilt.get(&trial.subject) {
                Some(reason) => Admission::unbuilt(reason),
                None => match self.examinations.admit(bench, subject, version)? {
                    Some(admission) => admission,
                    None => return Ok(false),
                },
            };
            let mut job = Job {
                subject,
                version,
                loads,
                round: trial.round,
                attempt: attempts.max().unwrap_or(1),
                seed: plan::trial_seed(plan.seed, trial.round),
                title: title_of(loads),
                titles: loads.chunks(1).map(title_of).collect(),
                admission,
                counted: BTreeMap::new(),
                is_counting: false,
            };
            if let Some(slo) = &setup.options.slo {
                if !slo::run(bench, &job, slo)? {
                    return Ok(false);
                }
                continue;
            }
            if self.counts && trial.round == 1 && loads.len() == 1 && job.admission.is_measured() {
                match trial::count_syscalls(bench, &job)? {
                    Some(counted) => job.counted = counted,
                    None => return Ok(false),
                }
            }
            let tell = |title: &str, record: &TrialRecord| {
                say(format_args!("{title}  {}", result(record)));
                if record.suite == Suite::Transfer {
                    say(wsbench_report::block::block(record, true));
                }
            };
            if !trial::run(bench, &job, Box::new(tell))? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether system calls can be counted; if not, why, once.
fn can_count() -> bool {
    let checked = syscalls::check();
    if let Err(reason) = &checked {
        note(format_args!("system calls are not counted: {reason:#}"));
    }
    checked.is_ok()
}

/// What distinguishes one load of a run, or one ramp, from another.
fn described(loads: &[Load]) -> String {
    let connections: Vec<String> = loads
        .iter()
        .map(|load| load.connections.to_string())
        .collect();
    let payload = loads.first().map_or(0, |load| load.payload_bytes);
    let what = match &connections[..] {
        [one] if one == "1" => "connection",
        _ => "connections",
    };
    format!("{} {what} x {payload} B", connections.join(", "))
}

fn result(record: &TrialRecord) -> String {
    let short = verdict::short(record);
    match &record.outcome {
        Outcome::Completed => short,
        Outcome::Failed { stage, reason } => {
            let separator = if short.is_empty() { "" } else { "  " };
            format!("{short}{separator}FAILED at {stage}: {reason}")
        }
    }
}

/// Shows and writes the report of all records there are, and says whether a
/// subject failed.
fn report(root: &Root, around: &Around<'_>, saved: &Saved) -> anyhow::Result<bool> {
    let report = saved.report(root)?;
    say(format_args!(
        "\n{}",
        report.terminal(terminal_width()).trim_end()
    ));
    let mut files = report.write(&root.output("report"), around.prefix, around.suffix)?;
    files.extend(around.publish.publish(&report)?);
    say("");
    for file in files {
        say(format_args!("{}", file.display()));
    }
    say(format_args!(
        "{} ({})",
        saved.folder.display(),
        counted(
            (saved.records.len() + saved.searches.len()) as u64,
            "record"
        )
    ));
    let is_failed = |search: &SloRecord| matches!(search.outcome, SloOutcome::Failed { .. });
    Ok(saved.records.iter().any(verdict::is_at_fault) || saved.searches.iter().any(is_failed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::testing;

    #[test]
    fn a_run_says_how_many_trials_and_records_it_makes() {
        for (subjects, chains, loads, rounds, expected) in [
            (1, 1, 1, 1, "1 server x 1 load x 1 round = 1 trial"),
            (3, 2, 2, 3, "3 servers x 2 loads x 3 rounds = 18 trials"),
            (
                2,
                1,
                6,
                3,
                "2 servers x 1 ramp of 6 steps x 3 rounds = 6 trials (36 records)",
            ),
            (
                3,
                2,
                4,
                1,
                "3 servers x 2 ramps (4 steps in all) x 1 round = 6 trials (12 records)",
            ),
        ] {
            assert_eq!(size(subjects, chains, loads, rounds), expected);
        }
    }

    #[test]
    fn a_load_is_described_by_what_differs() {
        let of = |connections| Load {
            connections,
            payload_bytes: 8,
            ..testing::load()
        };
        assert_eq!(described(&[of(1)]), "1 connection x 8 B");
        assert_eq!(described(&[of(1), of(9)]), "1, 9 connections x 8 B");
    }
}
