//! One trial: a fresh server is loaded by a fresh client phase by phase, watched
//! from outside. Whatever goes wrong with the subject becomes the
//! trial's result; everything that was started is stopped and reaped.

mod counted;
mod inside;
mod origin;
mod phases;
mod sight;
mod stand;

use crate::doctor::{Demand, Limits};
use crate::driver::{Clients, Patience, client_command};
use crate::lines::one_line;
use crate::observe::{CounterFiles, LocalObserver, counters};
use crate::ports;
use crate::progress::note;
use crate::root::Root;
use crate::run::examine::Admission;
use crate::run::footprint;
use crate::run::id::Utc;
use crate::run::interrupt::Interrupt;
use crate::run::options::Options;
use crate::run::pilot::Pilots;
use crate::run::processes::{Count, Processes};
use crate::run::setup;
use crate::run::verdict;
use crate::server::{ServerSpec, StopReport, numbered};
use crate::subject::Subject;
use anyhow::Context as _;
pub use counted::count as count_syscalls;
use inside::Inside;
use phases::{Guard, Phases};
use sight::Sight;
pub use stand::Stand;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use wsbench_schema::mark::UNVERIFIED;
use wsbench_schema::{
    CpuMap, HistogramError, Load, Machine, Outcome, Phase, PhaseReport, SCHEMA_VERSION,
    TrialRecord, hlog, metric,
};

/// Servers under test listen here.
pub const HOST: &str = "127.0.0.1";
/// How long a server may take until it listens.
const START_TIMEOUT: Duration = Duration::from_secs(15);

/// What all trials of a run have in common.
pub struct Bench<'a> {
    /// The project.
    pub root: &'a Root,
    /// The run's name.
    pub run: &'a str,
    /// Where its records go.
    pub folder: &'a Path,
    /// Where the output of its servers and clients goes.
    pub logs: PathBuf,
    /// This machine.
    pub machine: Machine,
    /// Who runs where.
    pub cpus: CpuMap,
    /// Revision of the harness.
    pub harness: String,
    /// Servers that `wsbench serve` runs at the same time; empty for none.
    pub beside: &'a str,
    /// What the user chose.
    pub options: &'a Options,
    /// What its subjects take of the machine.
    pub pilots: Pilots,
    /// Whether the user wants to stop.
    pub interrupt: &'a Interrupt,
}

impl Bench<'_> {
    /// How a subject is started, as so many processes for so many connections.
    ///
    /// # Errors
    /// If its program is not there, or there are too few free ports.
    pub fn server(
        &self,
        subject: &Subject,
        processes: u32,
        connections: u32,
        log: PathBuf,
    ) -> anyhow::Result<ServerSpec> {
        let argv = subject.command(self.root)?;
        let ports = u32::from(self.options.ports) * processes;
        let count = u16::try_from(ports)
            .with_context(|| format!("{ports} ports are more than there are"))?;
        Ok(ServerSpec {
            name: subject.name.clone(),
            argv,
            folder: subject.folder.clone(),
            host: HOST.into(),
            ports: ports::free_ports(count, HOST)?,
            cpus: match subject.is_direct() {
                // Where the origin stands behind a relay.
                true => self.cpus.client.clone(),
                false => self.cpus.server.clone(),
            },
            nodelay: self.options.nodelay,
            max_message: None,
            extra_args: self.options.buffer_args(subject),
            counters: subject.counts().then(|| counters::place(&log)),
            log,
            start_timeout: START_TIMEOUT,
            connections,
        })
    }
}

/// One trial to make.
#[derive(Clone)]
pub struct Job<'a> {
    /// Who is measured.
    pub subject: &'a Subject,
    /// Its version.
    pub version: &'a str,
    /// Under what: the steps of a ramp, or a single load.
    pub loads: &'a [Load],
    /// From 1.
    pub round: u32,
    /// From 1.
    pub attempt: u32,
    /// Of its random choices.
    pub seed: u64,
    /// Stands in front of notes: `axum  round 1/3`.
    pub title: String,
    /// Stands in front of progress and results, one for each load.
    pub titles: Vec<String>,
    /// Whether it may be timed.
    pub admission: Admission,
    /// What the pass in which nothing is timed has counted of the only load.
    pub counted: BTreeMap<String, u64>,
    /// Whether this is that pass.
    pub is_counting: bool,
}

/// Why a trial was not measured to its end.
enum Stop {
    /// The subject's result.
    Failed { stage: String, reason: String },
    /// The user's wish; there is no result.
    Interrupted,
    /// The harness cannot go on, which is no result of the subject.
    Broken(anyhow::Error),
}

impl Stop {
    /// The reason becomes one line.
    fn failed(stage: &str, reason: &str) -> Self {
        Self::Failed {
            stage: stage.into(),
            reason: one_line(reason),
        }
    }

    fn error(stage: &str, error: &anyhow::Error) -> Self {
        Self::failed(stage, &format!("{error:#}"))
    }
}

impl Job<'_> {
    /// What the first step begins with.
    fn first(&self) -> &Load {
        &self.loads[0]
    }

    /// What the last step ends with: the most connections.
    fn largest(&self) -> &Load {
        &self.loads[self.loads.len() - 1]
    }
}

/// Takes each record as soon as it is saved, with the title of its load.
pub type Told = Box<dyn FnMut(&str, &TrialRecord)>;

/// Makes a trial, and saves and tells its records, one a load, each as soon as it is
/// measured; false if the user interrupted it.
pub fn run(bench: &Bench<'_>, job: &Job<'_>, told: Told) -> anyhow::Result<bool> {
    let mut steps = Steps::new(bench, job, told);
    match admitted(bench, job, &mut steps) {
        Ok(()) => {}
        Err(Stop::Interrupted) => return Ok(false),
        Err(Stop::Broken(error)) => return Err(error),
        Err(Stop::Failed { stage, reason }) => {
            let outcome = Outcome::Failed { stage, reason };
            steps.current.outcome = outcome.clone();
            // The steps behind it cannot be reached.
            for load in &job.loads[steps.done + 1..] {
                steps.next(load)?;
                steps.current.outcome = outcome.clone();
            }
        }
    }
    steps.finish()?;
    Ok(true)
}

/// Makes a trial of one load and saves nothing of it; `None` if the user interrupted it.
///
/// # Errors
/// If the harness cannot go on.
pub fn observe(bench: &Bench<'_>, job: &Job<'_>) -> anyhow::Result<Option<TrialRecord>> {
    let mut steps = Steps::new(bench, job, Box::new(|_, _| ()));
    match admitted(bench, job, &mut steps) {
        Ok(()) => {}
        Err(Stop::Interrupted) => return Ok(None),
        Err(Stop::Broken(error)) => return Err(error),
        Err(Stop::Failed { stage, reason }) => {
            steps.current.outcome = Outcome::Failed { stage, reason };
        }
    }
    verdict::add_marks(&mut steps.current);
    Ok(Some(steps.current))
}

/// Measures who may be measured.
fn admitted(bench: &Bench<'_>, job: &Job<'_>, steps: &mut Steps) -> Result<(), Stop> {
    match &job.admission {
        Admission::Admitted => measure(bench, job, steps),
        Admission::Unverified(reason) => {
            let marks = &mut steps.current.marks;
            marks.insert(UNVERIFIED.into(), reason.clone());
            measure(bench, job, steps)
        }
        Admission::Refused { stage, reason } => Err(Stop::failed(stage, reason)),
    }
}

/// The records of a trial.
struct Steps {
    folder: PathBuf,
    /// One for each load.
    titles: Vec<String>,
    /// Of the load that is being measured.
    current: TrialRecord,
    /// Interval logs of the load that is being measured: what each is called, and its text.
    logs: Vec<(&'static str, Vec<u8>)>,
    /// Loads whose records are saved.
    done: usize,
    told: Told,
}

impl Steps {
    fn new(bench: &Bench<'_>, job: &Job<'_>, told: Told) -> Self {
        Self {
            folder: bench.folder.to_owned(),
            titles: job.titles.clone(),
            current: blank(bench, job),
            logs: Vec::new(),
            done: 0,
            told,
        }
    }

    /// Of the load that is being measured.
    fn title(&self) -> &str {
        self.titles.get(self.done).map_or("", String::as_str)
    }

    /// Saves the current record and goes on to the next step of a ramp.
    fn next(&mut self, load: &Load) -> anyhow::Result<()> {
        let mut marks = self.current.marks.clone();
        marks.retain(|mark, _| mark == UNVERIFIED);
        let next = TrialRecord {
            load: load.clone(),
            load_hash: load.hash(),
            started_unix_s: Utc::now().unix_s,
            outcome: Outcome::Completed,
            metrics: BTreeMap::new(),
            histograms: BTreeMap::new(),
            series: BTreeMap::new(),
            marks,
            ..self.current.clone()
        };
        let finished = std::mem::replace(&mut self.current, next);
        self.save(finished)
    }

    fn save(&mut self, mut record: TrialRecord) -> anyhow::Result<()> {
        verdict::add_marks(&mut record);
        // Before the record, which is the sign that all of a trial is there.
        let stem = Path::new(&record.file_name()).with_extension("");
        let (name, round) = (&record.subject.name, record.round);
        let cannot = || format!("cannot save the record of {name}, round {round}");
        for (log, text) in self.logs.drain(..) {
            let path = self
                .folder
                .join(format!("{}-{log}.{}", stem.display(), hlog::EXTENSION));
            write_synced(&path, &text)
                .with_context(|| path.display().to_string())
                .with_context(cannot)?;
        }
        record.save(&self.folder).with_context(cannot)?;
        let title = self.title().to_owned();
        (self.told)(&title, &record);
        self.done += 1;
        Ok(())
    }

    /// Keeps the latencies of a phase by interval.
    fn keep_intervals(
        &mut self,
        phase: Phase,
        began: SystemTime,
        report: &PhaseReport,
    ) -> Result<(), HistogramError> {
        let elapsed = report.metrics.get(metric::ELAPSED).copied();
        let elapsed = Duration::from_nanos(elapsed.unwrap_or(0));
        let (subject, round) = (&self.current.subject, self.current.round);
        let of = format!("{} ({}), round {round}", subject.name, subject.version);
        for (latency, intervals) in &report.intervals {
            if let Some(name) = hlog::name(phase, latency) {
                let about = format!("{of}: {name}, latencies in nanoseconds");
                let text = hlog::text(intervals, began, elapsed, &about)?;
                self.logs.push((name, text));
            }
        }
        Ok(())
    }

    fn finish(mut self) -> anyhow::Result<()> {
        let last = self.current.clone();
        self.save(last)
    }
}

fn write_synced(path: &Path, text: &[u8]) -> io::Result<()> {
    let written = File::create(path).and_then(|mut file| {
        file.write_all(text)?;
        file.sync_all()
    });
    if written.is_err() {
        // Half of it is worth nothing, and takes room on a disk that may just have none.
        let _ = fs::remove_file(path);
    }
    written
}

/// A record in which nothing is measured yet.
pub fn blank(bench: &Bench<'_>, job: &Job<'_>) -> TrialRecord {
    let subject = job.subject;
    let mut settings = bench.options.settings();
    settings.extend(subject.settings());
    if !bench.beside.is_empty() {
        settings.insert("served_beside".into(), bench.beside.into());
    }
    // Of the program that is about to be started, whatever was built before.
    let program = subject.program_hash(bench.root);
    if let Some(hash) = program.filter(|_| !job.admission.is_unbuilt()) {
        settings.insert(setup::PROGRAM.into(), hash);
    }
    TrialRecord {
        schema: SCHEMA_VERSION,
        run: bench.run.into(),
        round: job.round,
        attempt: job.attempt,
        suite: subject.suite,
        subject: subject.id(job.version.into()),
        server_processes: 0,
        client_processes: 1,
        harness: bench.harness.clone(),
        seed: job.seed,
        started_unix_s: Utc::now().unix_s,
        machine: bench.machine.clone(),
        cpus: bench.cpus.clone(),
        settings,
        load: job.first().clone(),
        load_hash: job.first().hash(),
        outcome: Outcome::Completed,
        metrics: job.counted.clone(),
        histograms: BTreeMap::new(),
        series: BTreeMap::new(),
        marks: BTreeMap::new(),
    }
}

/// From the start of a server to its end.
fn measure(bench: &Bench<'_>, job: &Job<'_>, steps: &mut Steps) -> Result<(), Stop> {
    interruptible(bench)?;
    let stage = "start";
    let connections = job.largest().connections;
    let descriptors = job.subject.descriptors;
    let processes = bench.options.processes(connections, descriptors);
    let processes = match connections > bench.options.pilot_above {
        true => fitting(bench, job, processes)?,
        false => processes,
    };
    let log = log(bench, &steps.current, "log");
    // Not the subject's fault, if the disk is full.
    File::create(&log)
        .with_context(|| format!("cannot write the log {}", log.display()))
        .map_err(Stop::Broken)?;
    let settings = &mut steps.current.settings;
    let told = |spec: &ServerSpec| _ = settings.insert("ports".into(), spec.ports.to_string());
    let stand = Stand::start(bench, job.subject, processes.server, connections, log, told);
    let mut stand = stand.map_err(|error| Stop::error(stage, &error))?;
    let result = load(bench, job, &mut stand, processes, steps);
    match stand.stop() {
        Ok(reports) => tell_killed(&job.title, &reports),
        Err(error) => note(format_args!(
            "{}: cannot stop the server: {error:#}",
            job.title
        )),
    }
    result
}

/// Predicts what the trial takes of the machine, and refuses it if that is not
/// there. A server that needs more processes than its files do gets them.
fn fitting(bench: &Bench<'_>, job: &Job<'_>, wanted: Processes) -> Result<Processes, Stop> {
    let stage = "start";
    let footprint = bench.pilots.footprint(bench, job.subject, job.largest());
    let footprint = footprint.map_err(|error| {
        let error = error.context("with a few connections, to see what it takes");
        Stop::error(stage, &error)
    })?;
    let footprint = footprint.ok_or(Stop::Interrupted)?;
    let found = Limits::read().map_err(|error| Stop::error(stage, &error))?;
    let mut processes = wanted;
    if bench.options.server_processes == Count::Auto {
        let least = footprint.least_servers(job.largest().connections.into(), &found);
        processes.server = processes.server.max(least);
    }
    let demand = Demand::of(job.largest(), bench.options.ports, processes);
    let demand = demand.with_descriptors(job.subject.descriptors);
    let peak = footprint.peak(&demand);
    let memory = bench.machine.memory_bytes;
    note(format_args!(
        "{}: {processes}, {} of memory predicted, {} available",
        job.title,
        footprint::shown(peak.bytes),
        footprint::shown(found.available_bytes.unwrap_or(0)),
    ));
    match footprint::shortage(&peak, &found, memory, footprint::threads_running()) {
        Some(reason) => Err(Stop::failed(stage, &reason)),
        None => Ok(processes),
    }
}

fn tell_killed(title: &str, reports: &[StopReport]) {
    let mut killed: Vec<&str> = reports
        .iter()
        .flat_map(|report| report.killed.iter().map(String::as_str))
        .collect();
    killed.sort_unstable();
    killed.dedup();
    if !killed.is_empty() {
        let killed = killed.join(", ");
        note(format_args!(
            "{title}: killed, did not leave on SIGTERM: {killed}"
        ));
    }
}

/// All phases, by clients that are gone afterwards.
fn load(
    bench: &Bench<'_>,
    job: &Job<'_>,
    stand: &mut Stand,
    processes: Processes,
    steps: &mut Steps,
) -> Result<(), Stop> {
    let first = Phase::Connect.name();
    let broken = |error: anyhow::Error| Stop::error(first, &error);
    let interval = bench.options.sample_interval;
    let pids = stand.servers.pids();
    let observer = LocalObserver::new(pids, bench.cpus.server.clone(), interval);
    let counters = CounterFiles::take(&stand.servers.counters()).map_err(broken)?;
    let inside = Inside::of(job.subject.suite, counters);
    let perf = job.is_counting.then(|| bench.logs.join("perf"));
    let sight = Sight::new(observer.map_err(broken)?, inside, perf, &bench.cpus);
    let log = log(bench, &steps.current, "client.log");
    let logs: Vec<PathBuf> = (0..processes.client)
        .map(|index| numbered(&log, index, processes.client))
        .collect();
    let commands = logs.iter().map(|log| (client_command(), log.clone()));
    let patience = Patience::for_connections(job.largest().connections);
    let clients = Clients::start(commands.collect(), &bench.cpus.client, patience);
    let clients = clients.map_err(broken)?;
    let mut trial = Phases {
        bench,
        job,
        stand,
        sight,
        clients,
        steps,
        guard: Guard::of(bench, job.largest()),
    };
    trial.steps.current.client_processes = trial.clients.count();
    let result = trial.all();
    let Phases { clients, .. } = trial;
    // A client that is at fault is not asked to leave: it is killed when dropped.
    if result.is_ok() {
        clients.stop();
    }
    logs.iter().for_each(|log| remove_empty(log));
    result
}

/// A log in which nothing stands tells nothing.
pub fn remove_empty(log: &Path) {
    if fs::metadata(log).is_ok_and(|log| log.len() == 0) {
        let _ = fs::remove_file(log);
    }
}

fn interruptible(bench: &Bench<'_>) -> Result<(), Stop> {
    match bench.interrupt.pressed() {
        true => Err(Stop::Interrupted),
        false => Ok(()),
    }
}

/// Named like the trial's record.
fn log(bench: &Bench<'_>, record: &TrialRecord, extension: &str) -> PathBuf {
    let name = Path::new(&record.file_name()).with_extension(extension);
    bench.logs.join(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::testing;
    use std::cell::RefCell;
    use std::rc::Rc;

    #[test]
    fn each_step_of_a_ramp_is_told_when_it_is_saved_and_not_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let lines = Rc::new(RefCell::new(Vec::new()));
        let heard = Rc::clone(&lines);
        let plan = testing::plan("a");
        let first = testing::record(&plan, "axum", 1);
        let next = Load {
            connections: first.load.connections + 1,
            after_connections: first.load.connections,
            ..first.load.clone()
        };
        let mut steps = Steps {
            folder: folder.path().to_owned(),
            titles: vec!["axum, few".into(), "axum, more".into()],
            current: first,
            logs: vec![("echo", b"#log\n".to_vec())],
            done: 0,
            told: Box::new(move |title, record| {
                let line = (title.to_owned(), record.load.after_connections > 0);
                heard.borrow_mut().push(line);
            }),
        };
        assert_eq!(steps.title(), "axum, few");
        steps.next(&next).unwrap();
        assert_eq!(*lines.borrow(), [("axum, few".to_owned(), false)]);
        assert_eq!(steps.title(), "axum, more");
        let stem = testing::record(&plan, "axum", 1).file_name();
        let log = folder.path().join(stem.replace(".json", "-echo.hlog"));
        assert_eq!(fs::read(log).unwrap(), b"#log\n");
        steps.finish().unwrap();
        assert_eq!(lines.borrow()[1], ("axum, more".to_owned(), true));
        assert_eq!(TrialRecord::load_all(folder.path()).unwrap().files.len(), 2);
    }
}
