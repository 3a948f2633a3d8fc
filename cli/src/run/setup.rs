//! What a run is about to do: who, under what, on which CPUs; new, or as an
//! interrupted run had it.

use crate::cpus;
use crate::machine;
use crate::patch;
use crate::progress::note;
use crate::root::Root;
use crate::run::id::{self, Utc};
use crate::run::options::{OptionArgs, Options};
use crate::run::resume::{self, Finished};
use crate::run::saved;
use crate::run::slo::SloArgs;
use crate::subject::{Catalog, Subject, Variants};
use anyhow::{Context as _, bail};
use std::collections::BTreeMap;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wsbench_schema::{Examination, Load, Machine, RunPlan, SCHEMA_VERSION, Suite};

/// What the user asks for.
#[derive(Debug)]
pub struct Request {
    /// Subjects; all if empty.
    pub names: Vec<String>,
    /// Whether variants are meant where they are not named.
    pub variants: Variants,
    /// Whose subjects are measured.
    pub suite: Suite,
    /// Name of the profile, and the loads that it and the flags make.
    pub profile: String,
    /// See `profile`.
    pub loads: Vec<Load>,
    /// Whether any flag says something about the load, so that a resumed run
    /// must agree with it.
    pub loads_are_said: bool,
    /// Whether the profile is named, so that a resumed run must have the same.
    pub profile_is_said: bool,
    /// Options that the profile decides where the user says nothing.
    pub of_profile: Options,
    /// Trials of each subject under each load, of the profile.
    pub profile_rounds: u32,
    /// Those that the user said.
    pub rounds: Option<u32>,
    /// See `rounds`.
    pub sample_interval: Option<Duration>,
    /// Of the order and of all random choices.
    pub seed: Option<u64>,
    /// What is searched for.
    pub slo: SloArgs,
    /// Everything else.
    pub options: OptionArgs,
    /// The run to take up, or [`resume::LATEST`].
    pub resume: Option<String>,
}

/// A run that can begin.
#[derive(Debug)]
pub struct Setup {
    /// What is planned.
    pub plan: RunPlan,
    /// Where the records go.
    pub folder: PathBuf,
    /// In the plan's order.
    pub subjects: Vec<Subject>,
    /// Of the subjects, in the same order, once the programs are read.
    pub versions: Vec<String>,
    /// Everything that the user chose.
    pub options: Options,
    /// This machine.
    pub machine: Machine,
    /// Revision of the harness.
    pub harness: String,
    /// What is done already.
    pub finished: Finished,
}

impl Setup {
    /// Decides everything. Nothing is started or written.
    pub fn new(root: &Root, request: &Request) -> anyhow::Result<Self> {
        let saved = match &request.resume {
            Some(wanted) => {
                let folder = resume::find(&root.results(), wanted)?;
                Some((RunPlan::load(&folder)?, folder))
            }
            None => None,
        };
        let (options, names) = match &saved {
            Some((plan, _)) => (Options::of(plan)?, &plan.subjects),
            None => (request.of_profile.clone(), &request.names),
        };
        let mut options = request.options.over(options);
        options.slo = request.slo.over(options.slo)?;
        if let Some(interval) = request.sample_interval {
            options.sample_interval = interval;
        }
        let names = match request.names.is_empty() {
            true => names,
            false => &request.names,
        };
        let catalog = Catalog::discover(root)?;
        if names.is_empty() {
            for broken in &catalog.broken {
                note(format_args!(
                    "{} is left out: {}",
                    broken.name, broken.reason
                ));
            }
        }
        let variants = match &saved {
            // Its plan names each of them.
            Some(_) if request.names.is_empty() => Variants::Named,
            _ => request.variants,
        };
        let suite = match &saved {
            // It was one suite's when it began.
            Some((plan, _)) => catalog.suite_of(&without_patched(&plan.subjects))?,
            None => request.suite,
        };
        let names = match &saved {
            Some(_) => without_patched(names),
            None => names.clone(),
        };
        let selected = catalog.select_of(suite, &names, variants)?;
        let subjects: Vec<Subject> = selected.into_iter().cloned().collect();
        let subjects = patch::beside(root, subjects, &options.patches)?;
        let machine = machine::describe();
        let plan = planned(
            request,
            &options,
            &subjects,
            &machine,
            &saved,
            &root.results(),
        )?;
        let harness = machine::harness_revision(root);
        let (folder, finished) = match saved {
            Some((saved, folder)) => {
                refuse_another(&saved, &plan)?;
                let finished = Finished::read(&folder)?;
                if finished.is_all(&plan) {
                    let run = &plan.run;
                    note(format_args!(
                        "nothing was left to do: run {run} is complete and reported again"
                    ));
                }
                (folder.clone(), finished)
            }
            None => (root.results().join(&plan.run), Finished::default()),
        };
        Ok(Self {
            plan,
            folder,
            subjects,
            versions: Vec::new(),
            options,
            machine,
            harness,
            finished,
        })
    }

    /// Decides how many processes there are: a process can hold so many connections
    /// here. A resumed run keeps the number that it began with.
    pub fn hold(&mut self, each_most: u32) {
        self.options.each_most.get_or_insert(each_most);
        self.plan.settings.extend(self.options.settings());
    }

    /// Files that a connection takes in a server process at most: of the subject that
    /// needs fewest, and of the one that needs most.
    pub fn descriptors(&self) -> RangeInclusive<u32> {
        let each = || self.subjects.iter().map(|subject| subject.descriptors);
        each().min().unwrap_or(1)..=each().max().unwrap_or(1)
    }

    /// Makes the run's folder and writes its plan, so that a folder that cannot
    /// be written is known before anything starts.
    pub fn save(&self) -> anyhow::Result<()> {
        let folder = self.folder.display();
        fs::create_dir_all(&self.folder)
            .with_context(|| format!("cannot make the results folder {folder}"))?;
        self.plan
            .save(&self.folder)
            .with_context(|| format!("cannot write to the results folder {folder}"))
    }

    /// Removes the folder of a run in which nothing was measured, so that nobody
    /// takes it for the newest result. One with anything else in it stays.
    pub fn forget(&self) -> anyhow::Result<()> {
        let cannot = || format!("cannot remove {}", self.folder.display());
        for entry in fs::read_dir(&self.folder).with_context(cannot)? {
            let name = entry.with_context(cannot)?.file_name();
            if name != RunPlan::FILE_NAME && name != Examination::FOLDER {
                return Ok(());
            }
        }
        fs::remove_dir_all(&self.folder).with_context(cannot)
    }

    /// Reads what the programs are, once everything is built that is built.
    ///
    /// # Errors
    /// If the run was begun with another program of a subject.
    pub fn read_programs(&mut self, root: &Root) -> anyhow::Result<()> {
        self.versions.clear();
        let mut differences = Vec::new();
        for subject in &self.subjects {
            let version = subject.program_version(root);
            let facts = [
                (VERSION, Some(version.clone())),
                (PROGRAM, subject.program_hash(root)),
            ];
            self.versions.push(version);
            for (what, now) in facts {
                let Some(now) = now else { continue };
                let setting = format!("{what}.{}", subject.name);
                let saved = self.plan.settings.insert(setting, now.clone());
                if let Some(saved) = saved.filter(|saved| *saved != now) {
                    let name = &subject.name;
                    differences.push(format!("the {what} of {name} was {saved}, is {now}"));
                }
            }
        }
        refuse(&self.plan.run, &differences)
    }
}

/// Those of a plan that are folders. Its patched subjects are made of them again, and
/// if they cannot be, the run is another.
fn without_patched(names: &[String]) -> Vec<String> {
    let folders = names.iter().filter(|name| !patch::is_name(name));
    folders.cloned().collect()
}

/// Name of the setting of a record that holds its program's hash; in a plan,
/// `binary.<subject>`.
pub const PROGRAM: &str = "binary";
/// `version.<subject>` in a plan.
const VERSION: &str = "version";

/// What the plan of an interrupted run says about the programs that were
/// measured. How they are now is only known when they are built.
fn programs(saved: &RunPlan) -> impl Iterator<Item = (String, String)> {
    let settings = saved.settings.iter();
    let of_programs = settings.filter(|(name, _)| {
        let what = name.split_once('.').map(|(what, _)| what);
        what == Some(PROGRAM) || what == Some(VERSION) || *name == resume::COMMAND
    });
    of_programs.map(|(name, value)| (name.clone(), value.clone()))
}

impl Request {
    /// Whether nothing was said about the load that the plan of an interrupted run has
    /// not: its loads are as they were, even if the profile's file has changed since.
    fn may_keep(&self, plan: &RunPlan) -> bool {
        let is_another = self.profile_is_said && self.profile != plan.profile;
        !self.loads_are_said && !is_another
    }
}

fn planned(
    request: &Request,
    options: &Options,
    subjects: &[Subject],
    machine: &Machine,
    saved: &Option<(RunPlan, PathBuf)>,
    results: &Path,
) -> anyhow::Result<RunPlan> {
    let now = Utc::now();
    let saved = saved.as_ref().map(|(plan, _)| plan);
    let (profile, loads) = match saved {
        Some(plan) if request.may_keep(plan) => (&plan.profile, &plan.loads),
        _ => (&request.profile, &request.loads),
    };
    let rounds = request.rounds.or(saved.map(|plan| plan.rounds));
    let seed = request.seed.or(saved.map(|plan| plan.seed));
    let mut settings = options.settings();
    settings.extend(saved.into_iter().flat_map(programs));
    settings.extend(machine_settings(machine)?);
    match saved {
        // What schema version 1 did not tell cannot be compared.
        Some(plan) if !plan.settings.contains_key(HOST) => _ = settings.remove(HOST),
        Some(_) => {}
        None => _ = settings.insert(resume::COMMAND.into(), saved::command_line()),
    }
    let is_taken = |name: &str| results.join(name).exists();
    let new_run = || id::new_run(now, &machine.host, profile, is_taken);
    Ok(RunPlan {
        schema: SCHEMA_VERSION,
        run: saved.map_or_else(new_run, |plan| plan.run.clone()),
        started_unix_s: saved.map_or(now.unix_s, |plan| plan.started_unix_s),
        seed: seed.unwrap_or_else(id::new_seed),
        rounds: rounds.unwrap_or(request.profile_rounds),
        subjects: subjects
            .iter()
            .map(|subject| subject.name.clone())
            .collect(),
        loads: loads.clone(),
        profile: profile.clone(),
        cpus: cpus::plan(
            options.server_cpus.as_deref(),
            options.client_cpus.as_deref(),
        )?,
        settings,
    })
}

/// Of the settings of a machine the one that names it.
const HOST: &str = "machine.host";

/// What must be equal for trials to stand in one table.
fn machine_settings(machine: &Machine) -> anyhow::Result<BTreeMap<String, String>> {
    let value = serde_json::to_value(machine).context("cannot describe the machine")?;
    let fields = value.as_object().into_iter().flatten();
    Ok(fields
        // How many files may be open decides whether a load runs, not how fast.
        .filter(|(name, _)| *name != "nofile_hard_count")
        .map(|(name, value)| {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            (format!("machine.{name}"), text)
        })
        .collect())
}

fn refuse_another(saved: &RunPlan, now: &RunPlan) -> anyhow::Result<()> {
    refuse(&saved.run, &resume::differences(saved, now))
}

fn refuse(run: &str, differences: &[String]) -> anyhow::Result<()> {
    if !differences.is_empty() {
        bail!(
            "run {run} cannot be resumed, because it would not be the same run: {} \
             (start a new one: wsbench run)",
            differences.join("; ")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::processes::Count;
    use crate::run::testing::{load, record};
    use crate::subject::testing::Project;

    fn request() -> Request {
        Request {
            variants: Variants::Named,
            names: Vec::new(),
            suite: Suite::Websocket,
            profile: "default".into(),
            loads: vec![load()],
            loads_are_said: false,
            profile_is_said: false,
            of_profile: Options::new(Duration::from_secs(1)),
            profile_rounds: 2,
            rounds: None,
            sample_interval: None,
            seed: None,
            slo: SloArgs::default(),
            options: OptionArgs::default(),
            resume: None,
        }
    }

    fn resumed() -> Request {
        Request {
            resume: Some(resume::LATEST.into()),
            // Those of the default profile: the saved run's own stand.
            of_profile: Options::new(Duration::from_secs(9)),
            profile_rounds: 9,
            loads: Vec::new(),
            ..request()
        }
    }

    fn project() -> Project {
        let project = Project::new();
        project.rust("alpha");
        project.rust("beta");
        project
    }

    #[test]
    fn a_resumed_run_is_the_saved_one_and_skips_what_is_done() {
        let project = project();
        let first = Setup::new(&project.root, &request()).unwrap();
        first.save().unwrap();
        let done = record(&first.plan, "alpha", 1);
        done.save(&first.folder).unwrap();
        let again = Setup::new(&project.root, &resumed()).unwrap();
        assert_eq!(again.plan, first.plan);
        assert_eq!(again.folder, first.folder);
        let hash = done.load_hash;
        assert!(again.finished.record(&hash, "alpha", 1).is_some());
        assert!(again.finished.record(&hash, "beta", 1).is_none());
    }

    #[test]
    fn a_resumed_run_has_as_many_processes_as_it_began_with() {
        let project = project();
        let mut first = Setup::new(&project.root, &request()).unwrap();
        first.hold(30);
        let counts = first.options.processes(100, 1);
        assert_eq!((counts.client, counts.server), (4, 4));
        first.save().unwrap();
        let mut again = Setup::new(&project.root, &resumed()).unwrap();
        // Where it is resumed, a process may open more files than where it began.
        again.hold(1_000);
        assert_eq!(again.options.processes(100, 1), counts);
        assert_eq!(again.plan, first.plan);
        let mut other = resumed();
        other.options.client_processes = Some(Count::Fixed(5));
        let error = format!("{:#}", Setup::new(&project.root, &other).unwrap_err());
        assert!(error.contains("client_processes was auto, is 5"), "{error}");
    }

    #[test]
    fn a_run_that_would_be_another_is_refused_and_says_why() {
        let project = project();
        let first = Setup::new(&project.root, &request()).unwrap();
        first.save().unwrap();
        let refusal = |request: &Request| {
            let error = Setup::new(&project.root, request).unwrap_err();
            format!("{error:#}")
        };
        let mut other = resumed();
        other.names = vec!["alpha".into()];
        let error = refusal(&other);
        assert!(
            error.contains("subjects was alpha beta, is alpha"),
            "{error}"
        );
        let mut other = resumed();
        other.seed = Some(first.plan.seed + 1);
        assert!(refusal(&other).contains("seed was"));
        let mut other = resumed();
        other.loads = vec![Load {
            connections: 7,
            ..load()
        }];
        other.loads_are_said = true;
        assert!(refusal(&other).contains("load 1: connections was 100, is 7"));
        let mut other = resumed();
        other.options.ports = Some(77);
        assert!(refusal(&other).contains("ports_count was 10, is 77"));
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named_before_anything_starts() {
        let project = project();
        project.write("results", "a file in the folder's place");
        let setup = Setup::new(&project.root, &request()).unwrap();
        let error = format!("{:#}", setup.save().unwrap_err());
        assert!(
            error.starts_with("cannot make the results folder"),
            "{error}"
        );
    }

    #[test]
    fn every_run_has_its_own_name_and_the_machine_in_its_plan() {
        let project = project();
        let first = Setup::new(&project.root, &request()).unwrap();
        assert!(first.plan.settings.contains_key("machine.kernel"));
        assert!(
            !first
                .plan
                .settings
                .contains_key("machine.nofile_hard_count")
        );
    }

    #[test]
    fn a_run_is_not_resumed_with_another_program_of_a_subject() {
        let project = project();
        project.script("output/bin/alpha", "echo alpha 9");
        let read = |request: &Request| {
            let mut setup = Setup::new(&project.root, request)?;
            setup.read_programs(&project.root)?;
            anyhow::Ok(setup)
        };
        let first = read(&request()).unwrap();
        assert_eq!(first.versions, ["alpha 9", "beta (no Cargo.lock)"]);
        assert_eq!(first.plan.settings["version.alpha"], "alpha 9");
        assert_eq!(first.plan.settings["binary.alpha"].len(), 16);
        assert!(!first.plan.settings.contains_key("binary.beta"));
        first.save().unwrap();
        assert_eq!(read(&resumed()).unwrap().plan, first.plan);
        // Of the same version, as it says, but another program.
        project.script("output/bin/alpha", "echo alpha 9; exit 0");
        let error = read(&resumed()).unwrap_err().to_string();
        assert!(error.contains("cannot be resumed"), "{error}");
        let was = &first.plan.settings["binary.alpha"];
        let expected = format!("the binary of alpha was {was}, is ");
        assert!(error.contains(&expected), "{error}");
        assert!(!error.contains("version"), "{error}");
        assert!(!error.contains("beta"), "{error}");
    }
}
