//! One file a trial in `results/<run>/`, and `run.json` beside them.

use crate::upgrade;
use crate::{CpuMap, Edge, Load, Machine, Phase, PhaseReport, Sample, Series, Suite, metric};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Of a file while it is written, in place of `json`. One that a writer left behind
/// when it was killed is nothing, and may be removed.
pub const PARTIAL_EXTENSION: &str = "json.partial";

/// Of every file that this crate writes. It reads earlier ones too (see
/// [`crate::upgrade`]), and none that is newer.
pub const SCHEMA_VERSION: u32 = 2;

/// Who was measured.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubjectId {
    /// The folder's name, with `-<variant>` behind it for a variant.
    pub name: String,
    /// The variant's name, if the subject is one.
    pub variant: Option<String>,
    /// Name and version of what is measured, as `--version` prints it.
    pub version: String,
    /// Programming language.
    pub language: String,
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Outcome {
    /// All phases ran to their end. Failed echoes, if any, are in the metrics.
    Completed,
    /// The subject could not be built, started, verified or measured to the end.
    Failed {
        /// `build`, `start`, `verify`, or the phase.
        stage: String,
        /// What happened, in one line.
        reason: String,
    },
}

/// One trial of one subject under one load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialRecord {
    /// [`SCHEMA_VERSION`].
    pub schema: u32,
    /// Identifier of the run, which is also its folder's name.
    pub run: String,
    /// From 1.
    pub round: u32,
    /// From 1; a trial that was measured again has a higher one.
    pub attempt: u32,
    /// What kind of server was measured.
    pub suite: Suite,
    /// Who was measured.
    pub subject: SubjectId,
    /// Server processes that the figures are summed over.
    pub server_processes: u32,
    /// Client processes that the figures are summed over.
    pub client_processes: u32,
    /// Revision of the harness.
    pub harness: String,
    /// Of every random choice in the trial.
    pub seed: u64,
    /// Seconds since 1970, UTC.
    pub started_unix_s: u64,
    /// Where.
    pub machine: Machine,
    /// On which CPUs.
    pub cpus: CpuMap,
    /// Settings that matter and are not part of the load: ports, no-delay, ...
    pub settings: BTreeMap<String, String>,
    /// What was done.
    pub load: Load,
    /// [`Load::hash`] of it.
    pub load_hash: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Names in [`crate::metric`]; integers in the unit that ends the name.
    pub metrics: BTreeMap<String, u64>,
    /// HdrHistogram V2, base64.
    pub histograms: BTreeMap<String, String>,
    /// Readings over time.
    pub series: BTreeMap<String, Series>,
    /// Names in [`crate::mark`], each with its reason.
    pub marks: BTreeMap<String, String>,
}

/// What a run set out to do, so that it can be resumed and its report made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunPlan {
    /// [`SCHEMA_VERSION`].
    pub schema: u32,
    /// Identifier of the run, which is also its folder's name.
    pub run: String,
    /// Seconds since 1970, UTC.
    pub started_unix_s: u64,
    /// The shuffled order of the trials comes from it.
    pub seed: u64,
    /// Trials of each subject under each load.
    pub rounds: u32,
    /// Names of the subjects, in the order of the table.
    pub subjects: Vec<String>,
    /// The loads, in the order of the report's sections.
    pub loads: Vec<Load>,
    /// Name of the profile that the loads came from.
    pub profile: String,
    /// On which CPUs.
    pub cpus: CpuMap,
    /// Everything else that a resumed run must keep.
    pub settings: BTreeMap<String, String>,
}

/// A file of this crate that cannot be written or read.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The file system refused.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The file ends in the middle.
    #[error("{}: truncated: {cause} (remove it, and what it was about can be measured again)", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Where.
        cause: serde_json::Error,
    },
    /// The file is not what it should be.
    #[error("{}: not a valid record: {cause} (use the revision that wrote it, or remove it)", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Where and why.
        cause: serde_json::Error,
    },
    /// The file is of a version that is not known here.
    #[error(
        "{}: schema version {found}, this program reads 1 to {SCHEMA_VERSION} (use the revision that wrote it, or a newer one)",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
    /// The load was altered after the record was written.
    #[error("{}: load_hash is {found} but the load hashes to {expected} (it was altered after it was written: restore it, or remove it)", path.display())]
    Hash {
        /// The file.
        path: PathBuf,
        /// What stands there.
        found: String,
        /// What should.
        expected: String,
    },
}

impl TrialRecord {
    /// The file's name within the run's folder.
    #[must_use]
    pub fn file_name(&self) -> String {
        let (subject, round, attempt) = (&self.subject.name, self.round, self.attempt);
        format!("{}-{subject}-r{round}-a{attempt}.json", self.load_hash)
    }

    /// Adds what the client measured in a phase.
    pub fn add_client(&mut self, phase: Phase, report: &PhaseReport) {
        for (name, value) in &report.metrics {
            self.metrics.insert(phase.metric(name), *value);
        }
        for (name, text) in &report.histograms {
            self.histograms.insert(phase.metric(name), text.clone());
        }
        for (name, series) in &report.series {
            self.series.insert(phase.metric(name), series.clone());
        }
    }

    /// Adds what the observer of the server saw in a phase.
    pub fn add_server(&mut self, phase: Phase, start: &Edge, end: &Edge, samples: &[Sample]) {
        let figures = [
            (metric::SERVER_CPU, end.cpu_ns.saturating_sub(start.cpu_ns)),
            (metric::SERVER_WINDOW, end.at_ns.saturating_sub(start.at_ns)),
            (metric::SERVER_RSS_START, start.rss_bytes),
            (metric::SERVER_RSS_END, end.rss_bytes),
            (metric::SERVER_PROCESSES, end.processes.into()),
            (metric::SERVER_THREADS_START, start.threads.into()),
            (metric::SERVER_THREADS, end.threads.into()),
            (metric::SERVER_CPUS, self.cpus.server.len() as u64),
        ];
        for (name, value) in figures {
            self.metrics.insert(phase.metric(name), value);
        }
        if let (Phase::Connect, Some(before), Some(after)) =
            (phase, start.listen_queue, end.listen_queue)
        {
            let since = |before: u64, after: u64| after.saturating_sub(before);
            for (name, value) in [
                (
                    metric::LISTEN_OVERFLOWS,
                    since(before.overflows, after.overflows),
                ),
                (metric::LISTEN_DROPS, since(before.drops, after.drops)),
            ] {
                self.metrics.insert(phase.metric(name), value);
            }
        }
        let cpu = Series::of(samples, |sample| sample.cpu_millipercent);
        let rss = Series::of(samples, |sample| sample.rss_bytes);
        self.series
            .insert(phase.metric(metric::SERVER_CPU_SERIES), cpu);
        self.series
            .insert(phase.metric(metric::SERVER_RSS_SERIES), rss);
    }

    /// A metric of a phase, if it was measured.
    #[must_use]
    pub fn metric(&self, phase: Phase, name: &str) -> Option<u64> {
        self.metrics.get(&phase.metric(name)).copied()
    }

    /// Writes the record into the run's folder: never half of it.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn save(&self, folder: &Path) -> Result<PathBuf, RecordError> {
        let path = folder.join(self.file_name());
        write_json(&path, self)?;
        Ok(path)
    }

    /// Reads a record.
    ///
    /// # Errors
    /// If the file cannot be read, is of another version, has unknown fields or
    /// a load that does not fit its hash.
    pub fn load(path: &Path) -> Result<Self, RecordError> {
        Self::parse(path, &read(path)?)
    }

    /// Reads a record from the text of its file.
    ///
    /// # Errors
    /// As [`TrialRecord::load`].
    pub fn parse(path: &Path, text: &[u8]) -> Result<Self, RecordError> {
        let record: Self = parse_json(path, text)?;
        let expected = record.load.hash();
        if record.load_hash != expected {
            return Err(RecordError::Hash {
                path: path.into(),
                found: record.load_hash,
                expected,
            });
        }
        Ok(record)
    }

    /// Reads every record of a run's folder, in order of load, subject and round.
    /// One that cannot be read is a problem, and costs none of the others.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn load_all(folder: &Path) -> Result<Loaded<Self>, RecordError> {
        let is_record = |path: &Path| {
            let is_plan = path.file_name().is_some_and(|n| n == RunPlan::FILE_NAME);
            path.extension().is_some_and(|kind| kind == "json") && !is_plan
        };
        let mut loaded = Loaded::read(folder, is_record, Self::load)?;
        loaded.files.sort_by(|a, b| {
            let key = |r: &Self| (r.round, r.attempt);
            let by_load = a.load_hash.cmp(&b.load_hash);
            by_load
                .then_with(|| a.subject.name.cmp(&b.subject.name))
                .then_with(|| key(a).cmp(&key(b)))
        });
        Ok(loaded)
    }
}

/// What could be read of a folder, and what could not.
#[derive(Debug)]
pub struct Loaded<T> {
    /// Those that were read.
    pub files: Vec<T>,
    /// Why the others were not, each with its file, by name.
    pub problems: Vec<RecordError>,
}

impl<T: Send> Loaded<T> {
    /// Reads the files of a folder for which `is_one` holds, on all CPUs that there are.
    ///
    /// # Errors
    /// If the folder itself cannot be read.
    pub fn read(
        folder: &Path,
        is_one: impl Fn(&Path) -> bool,
        read: impl Fn(&Path) -> Result<T, RecordError> + Sync,
    ) -> Result<Self, RecordError> {
        let io = |cause| RecordError::Io {
            path: folder.into(),
            cause,
        };
        let entries = fs::read_dir(folder).map_err(io)?;
        let paths: io::Result<Vec<PathBuf>> = entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect();
        let mut paths = paths.map_err(io)?;
        paths.retain(|path| is_one(path));
        paths.sort();
        let (mut files, mut problems) = (Vec::with_capacity(paths.len()), Vec::new());
        for result in on_all_cpus(&paths, &read) {
            match result {
                Ok(file) => files.push(file),
                Err(problem) => problems.push(problem),
            }
        }
        Ok(Self { files, problems })
    }
}

/// Files that are worth a thread.
const FILES_A_THREAD: usize = 16;

/// Reads files, in their order.
fn on_all_cpus<T: Send>(paths: &[PathBuf], read: &(impl Fn(&Path) -> T + Sync)) -> Vec<T> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let share = paths.len().div_ceil(cpus).max(FILES_A_THREAD);
    let read_all = |paths: &[PathBuf]| -> Vec<T> { paths.iter().map(|path| read(path)).collect() };
    let mut shares = paths.chunks(share);
    let Some(first) = shares.next() else {
        return Vec::new();
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = shares
            .map(|paths| scope.spawn(move || read_all(paths)))
            .collect();
        let mut all = read_all(first);
        for other in others {
            match other.join() {
                Ok(files) => all.extend(files),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    })
}

impl RunPlan {
    /// Beside the trials, in the run's folder.
    pub const FILE_NAME: &str = "run.json";

    /// Writes the plan into the run's folder.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn save(&self, folder: &Path) -> Result<(), RecordError> {
        write_json(&folder.join(Self::FILE_NAME), self)
    }

    /// Reads the plan of a run's folder.
    ///
    /// # Errors
    /// If the file cannot be read, is of another version or has unknown fields.
    pub fn load(folder: &Path) -> Result<Self, RecordError> {
        read_json(&folder.join(Self::FILE_NAME))
    }
}

/// Writes, syncs and renames, so that the file is there whole or not at all.
///
/// # Errors
/// If the file system refuses.
///
/// # Panics
/// Never for the types of this crate, which are all valid JSON.
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), RecordError> {
    let io = |cause| RecordError::Io {
        path: path.into(),
        cause,
    };
    let mut text = serde_json::to_vec_pretty(value).expect("disk types are valid JSON");
    text.push(b'\n');
    let partial = path.with_extension(PARTIAL_EXTENSION);
    let written = File::create(&partial)
        .and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&partial, path));
    if let Err(cause) = written {
        // What was written of it takes room on a disk that may just have none.
        let _ = fs::remove_file(&partial);
        return Err(io(cause));
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))
        .and_then(|folder| folder.sync_all())
        .map_err(io)
}

/// A file of this crate at most: a day's series, ten times over.
const FILE_MAX_BYTES: u64 = 256 << 20;

/// Reads a file with a `schema` field.
///
/// # Errors
/// If the file cannot be read, is of another version or has unknown fields.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, RecordError> {
    parse_json(path, &read(path)?)
}

/// Reads the text of a file with a `schema` field.
///
/// # Errors
/// If it is of a newer version, truncated, or has unknown fields.
pub fn parse_json<T: DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T, RecordError> {
    #[derive(Deserialize)]
    struct Version {
        schema: u64,
    }
    // The version first: in a record of another one, the fields prove nothing.
    let newest = format!("{{\n  \"schema\": {SCHEMA_VERSION},");
    let found = match text.starts_with(newest.as_bytes()) {
        // As this program writes it, which need not be looked through twice.
        true => SCHEMA_VERSION.into(),
        false => match serde_json::from_slice(text) {
            Ok(Version { schema }) => schema,
            Err(_) => SCHEMA_VERSION.into(),
        },
    };
    let parsed = match u32::try_from(found) {
        Ok(SCHEMA_VERSION) => serde_json::from_slice(text),
        Ok(earlier @ 1..SCHEMA_VERSION) => serde_json::from_slice(text)
            .and_then(|value| serde_json::from_value(upgrade::upgraded(value, earlier))),
        _ => {
            let path = path.into();
            return Err(RecordError::Version { path, found });
        }
    };
    parsed.map_err(|cause| {
        let path = path.into();
        match cause.is_eof() {
            true => RecordError::Truncated { path, cause },
            false => RecordError::Json { path, cause },
        }
    })
}

/// The bytes of a file: of a pipe or a device there might be no end.
fn read(path: &Path) -> Result<Vec<u8>, RecordError> {
    let refuse = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
    let read = || {
        if !fs::metadata(path)?.is_file() {
            return Err(refuse("not a regular file"));
        }
        let mut text = Vec::new();
        File::open(path)?
            .take(FILE_MAX_BYTES + 1)
            .read_to_end(&mut text)?;
        match text.len() as u64 > FILE_MAX_BYTES {
            true => Err(refuse("longer than any record (256 MiB)")),
            false => Ok(text),
        }
    };
    read().map_err(|cause| RecordError::Io {
        path: path.into(),
        cause,
    })
}
