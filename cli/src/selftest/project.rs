//! The scratch project of a self-test: a folder in which servers are entered as
//! any user enters them, and a command line that measures them as any user does.

use crate::process;
use crate::profile::millis;
use crate::root::Root;
use crate::verify;
use anyhow::{Context as _, bail};
use rustix::process::Signal;
use serde::Serialize;
use std::env;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use wsbench_report::{Difference, Report};
use wsbench_schema::{RunPlan, TrialRecord};

/// Bytes of a message: a length that no case of the examination has, so that a
/// server can be told to do its additional work for no others.
pub const PAYLOAD: u32 = 1000;
const CONNECTIONS: u32 = 64;
/// The only one of the project.
const PROFILE: &str = "selftest";

/// A program to enter.
#[derive(Clone, Debug)]
pub struct Program {
    /// With its first arguments; the flags of the contract come behind.
    pub command: Vec<OsString>,
    /// Name and version.
    pub version: String,
    /// Of its source.
    pub language: String,
}

/// The folder.
#[derive(Debug)]
pub struct Project(PathBuf);

/// `bench.toml`, as it is written.
#[derive(Serialize)]
struct Manifest<'a> {
    language: &'a str,
    version: &'a str,
    run: Vec<&'a str>,
    omits: Vec<String>,
}

impl Project {
    /// An empty one, in the place of any before.
    pub fn new(root: &Root) -> anyhow::Result<Self> {
        let folder = root.output("selftest");
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        let project = Self(folder);
        project.write("frameworks/README.md", "Of `wsbench selftest`.\n")?;
        Ok(project)
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let path = self.path(name);
        let written = match path.parent() {
            Some(folder) => fs::create_dir_all(folder).and_then(|()| fs::write(&path, text)),
            None => fs::write(&path, text),
        };
        written.with_context(|| format!("cannot write {}", path.display()))
    }

    /// Enters a server, or enters it anew. It is examined for nothing but what
    /// decides whether it is timed.
    pub fn enter(&self, name: &str, program: &Program) -> anyhow::Result<()> {
        let run = program.command.iter().map(|word| {
            let word = word.to_str();
            word.with_context(|| format!("{:?} is no UTF-8", program.command))
        });
        let manifest = Manifest {
            language: &program.language,
            version: &program.version,
            run: run.collect::<Result<_, _>>()?,
            omits: verify::optional(),
        };
        let text = toml::to_string(&manifest).context("cannot write a bench.toml")?;
        self.write(&format!("frameworks/foreign/{name}/bench.toml"), &text)
    }

    /// How long the echo phase of a trial lasts from now on.
    pub fn set_trial(&self, echo: Duration) -> anyhow::Result<()> {
        let echo_ms = millis(echo);
        let text = format!(
            "description = \"wsbench selftest\"\nrounds = 1\nsample-interval = \"200ms\"\n\n\
             [load]\nconnections = {CONNECTIONS}\npayload = {PAYLOAD}\n\n\
             [load.echo]\nechoes = 100_000_000\nduration = \"{echo_ms}ms\"\ntimeout = \"10s\"\n"
        );
        self.write(&format!("profiles/{PROFILE}.toml"), &text)
    }

    /// `wsbench run` of these servers.
    ///
    /// # Errors
    /// If it does not end with exit code 0: with the end of what it said.
    pub fn run(&self, servers: &[&str], rounds: u32) -> anyhow::Result<Run> {
        let log = self.path("run.log");
        let output = OpenOptions::new().create(true).append(true).open(&log);
        let output = output.with_context(|| format!("cannot write {}", log.display()))?;
        let program = env::current_exe().context("cannot find this program's file")?;
        let before = self.runs()?;
        let mut command = Command::new(program);
        command
            // Whether they answer rightly is not in question here, and a machine
            // too busy for the largest messages may still count CPU time.
            .args(["run", "--no-build", "--unverified", "--profile", PROFILE])
            .args(["--rounds", &rounds.to_string()])
            .args(servers)
            .current_dir(&self.0)
            .env("WSBENCH_ROOT", &self.0)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        // However this process ends, what it started is asked to end in order.
        process::end_with_us(&mut command, Signal::TERM);
        let status = command.status().context("cannot start wsbench run")?;
        if !status.success() {
            bail!(
                "wsbench run {}: {status}{} (whole log: {})",
                servers.join(" "),
                reason(&log),
                log.display()
            );
        }
        let mut new = self.runs()?;
        new.retain(|run| !before.contains(run));
        match &new[..] {
            [folder] => Run::read(folder),
            _ => bail!("{} new runs in {}", new.len(), self.0.display()),
        }
    }

    fn runs(&self) -> anyhow::Result<Vec<PathBuf>> {
        let results = self.path("results");
        if !results.exists() {
            return Ok(Vec::new());
        }
        let entries = fs::read_dir(&results);
        let entries = entries.with_context(|| format!("cannot read {}", results.display()))?;
        let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| Ok(entry?.path())).collect();
        let paths = paths.map_err(|error: std::io::Error| error);
        let mut paths = paths.with_context(|| format!("cannot read {}", results.display()))?;
        paths.retain(|path| path.join(RunPlan::FILE_NAME).is_file());
        Ok(paths)
    }
}

/// What went wrong according to the log, to stand behind an error.
fn reason(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let tells = |line: &&str| line.contains("FAILED at ") || line.starts_with("wsbench: ");
    let line = text.lines().rfind(tells);
    line.map_or_else(String::new, |line| format!(": {}", line.trim()))
}

/// What a run found.
#[derive(Debug)]
pub struct Run {
    /// Its name.
    pub name: String,
    report: Report,
}

impl Run {
    fn read(folder: &Path) -> anyhow::Result<Self> {
        let loaded = TrialRecord::load_all(folder)?;
        // What this very program has just written.
        if let Some(problem) = loaded.problems.into_iter().next() {
            return Err(problem.into());
        }
        Self::new(&RunPlan::load(folder)?, &loaded.files)
    }

    /// Of these records.
    pub fn new(plan: &RunPlan, records: &[TrialRecord]) -> anyhow::Result<Self> {
        Ok(Self {
            name: plan.run.clone(),
            report: Report::new(plan, records)?,
        })
    }

    /// Everything that its report says of these two.
    pub fn pair(&self, one: &str, other: &str) -> Vec<&Difference> {
        let about = |difference: &&Difference| {
            let names = [difference.subject.as_str(), difference.to.as_str()];
            names == [one, other] || names == [other, one]
        };
        self.report.differences().filter(about).collect()
    }
}

/// The rounds of one of the two that a difference is about.
pub fn rounds_of<'a>(difference: &'a Difference, name: &str) -> &'a [f64] {
    match difference.subject == name {
        true => &difference.rounds.of,
        false => &difference.rounds.to,
    }
}

#[cfg(test)]
pub mod testing {
    use super::Run;
    use crate::run::testing::{plan, record};
    use wsbench_schema::{Phase, metric};

    /// A run of two servers, each with its CPU time a message in every round, in
    /// nanoseconds.
    pub fn run(of: [(&str, &[u64]); 2]) -> Run {
        let plan = plan("a");
        let mut records = Vec::new();
        for (name, rounds) in of {
            for (round, cpu_ns) in (1..).zip(rounds) {
                let mut record = record(&plan, name, round);
                // It has 1,000 echoes.
                let cpu = Phase::Echo.metric(metric::SERVER_CPU);
                record.metrics.insert(cpu, cpu_ns * 1000);
                records.push(record);
            }
        }
        Run::new(&plan, &records).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::testing::Project as Real;
    use crate::subject::{Catalog, Kind};

    #[test]
    fn what_is_entered_is_found_and_what_was_there_before_is_gone() {
        let real = Real::new();
        let old = real.write("output/selftest/frameworks/foreign/old/bench.toml", "");
        let project = Project::new(&real.root).unwrap();
        assert!(!old.exists());
        let script = "exec \"$0\" 'a b'\n$PWD";
        let program = Program {
            command: ["sh", "-c", script].map(Into::into).into(),
            version: "floor 1".into(),
            language: "sh".into(),
        };
        project.enter("twin-a", &program).unwrap();
        project.set_trial(Duration::from_millis(200)).unwrap();
        let root = Root::at(&project.path("")).unwrap();
        let catalog = Catalog::discover(&root).unwrap();
        let subject = catalog.find("twin-a").unwrap();
        let Kind::Foreign(manifest) = &subject.kind else {
            panic!("not foreign")
        };
        assert_eq!(manifest.run, ["sh", "-c", script]);
        assert_eq!(subject.version(), "floor 1");
        let profile = crate::profile::Profile::load(&root, PROFILE).unwrap();
        let [load] = &profile.loads()[..] else {
            panic!("one load")
        };
        assert_eq!(load.payload_bytes, PAYLOAD);
        assert_eq!(load.echo.as_ref().unwrap().duration_ms, Some(200));
    }
}
