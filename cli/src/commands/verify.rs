//! `wsbench verify`.

use crate::compile;
use crate::patch::{self, PatchArgs};
use crate::ports;
use crate::progress::note;
use crate::root::Root;
use crate::run::lock;
use crate::server::ServerSpec;
use crate::subject::{Catalog, Subject, Variants};
use crate::table;
use crate::verify;
use serde::Serialize;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};
use wsbench_schema::{Examination, Finding, Suite};

const HOST: &str = "127.0.0.1";
/// How long a server may take until it listens.
const START_WITHIN: Duration = Duration::from_secs(15);

/// Examines servers: right echoes, and what RFC 6455 asks beyond them; of relays and
/// bulk servers, that bytes, ends and stalls are carried as TCP does.
///
/// Builds what is not built, starts one server after another, and asks each the
/// cases of the examination. A server that fails a `must` case is not measured; a
/// failed `should` or `note` is told and no more.
#[derive(clap::Args)]
pub struct Args {
    /// Servers to examine [default: all]
    #[arg(value_name = "NAME", value_delimiter = ',')]
    names: Vec<String>,
    /// Variants of the servers' folders: only those that are named, or all
    #[arg(long, value_enum, value_name = "WHICH", default_value_t)]
    variants: Variants,
    #[command(flatten)]
    patches: PatchArgs,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// What became of one subject.
#[derive(Serialize)]
struct Row {
    name: String,
    suite: Suite,
    version: String,
    /// No `must` failed.
    passed: bool,
    /// Cases passed of those asked; absent if it could not be examined.
    summary: Option<String>,
    /// Why it could not be examined.
    error: Option<String>,
    elapsed_ns: Option<u64>,
    findings: Vec<Finding>,
    #[serde(skip)]
    examination: Option<Examination>,
}

impl Row {
    fn new(root: &Root, subject: &Subject, examined: anyhow::Result<Examination>) -> Self {
        let mut row = Self {
            name: subject.name.clone(),
            suite: subject.suite,
            version: subject.program_version(root),
            passed: false,
            summary: None,
            error: None,
            elapsed_ns: None,
            findings: Vec::new(),
            examination: None,
        };
        match examined {
            Ok(examination) => {
                row.passed = examination.passed();
                row.summary = Some(examination.summary());
                row.elapsed_ns = Some(examination.elapsed_ns);
                row.findings = examination.findings.clone();
                row.examination = Some(examination);
            }
            Err(error) => row.error = Some(format!("{error:#}")),
        }
        row
    }

    fn summary(&self) -> &str {
        self.summary.as_deref().unwrap_or("-")
    }

    fn result(&self) -> &'static str {
        if self.passed { "passed" } else { "FAILED" }
    }

    /// `axum: 118/121 passed in 1.8 s`
    fn progress(&self) -> String {
        let (name, summary, result) = (&self.name, self.summary(), self.result());
        let time = self
            .elapsed_ns
            .map(|ns| Duration::from_nanos(ns).as_secs_f64());
        let time = time.map_or(String::new(), |s| format!(" in {s:.1} s"));
        format!("{name}: {summary} {result}{time}")
    }

    fn cells(&self, groups: &[&str]) -> Vec<String> {
        let mut cells = vec![self.name.clone(), self.version.clone()];
        cells.extend(groups.iter().map(|group| {
            let examination = self.examination.as_ref();
            examination.map_or("-".into(), |found| found.group_summary(group))
        }));
        cells.extend([self.summary().to_owned(), self.result().to_owned()]);
        cells
    }

    /// A line for each thing that is wrong, and one for what was left out.
    fn details(&self) -> Vec<String> {
        let name = &self.name;
        let mut lines: Vec<String> = Vec::new();
        lines.extend(self.error.iter().map(|error| format!("{name}: {error}")));
        if let Some(found) = &self.examination {
            lines.extend(
                found
                    .failures()
                    .map(|case| format!("{name}: {}", case.line())),
            );
            let omitted: Vec<String> = found.omitted().map(Finding::path).collect();
            if !omitted.is_empty() {
                lines.push(format!("{name}: not asked: {}", omitted.join(", ")));
            }
        }
        lines
    }
}

pub fn run(
    Args {
        names,
        variants,
        patches,
        json,
    }: Args,
) -> anyhow::Result<ExitCode> {
    let root = Root::find()?;
    lock::refuse_while_measuring(&root.output("run"))?;
    let catalog = Catalog::discover(&root)?;
    let subjects = catalog.select(&names, variants)?;
    if names.is_empty() {
        for broken in &catalog.broken {
            note(format_args!("{}: left out: {}", broken.name, broken.reason));
        }
    }
    let subjects = subjects.into_iter().cloned().collect();
    let mut rows = Vec::new();
    for subject in patch::beside(&root, subjects, &patches.patch)? {
        let row = Row::new(&root, &subject, examine(&root, &subject));
        if !json {
            note(row.progress());
        }
        rows.push(row);
    }
    table::print(&match json {
        true => serde_json::to_string_pretty(&rows)?,
        false => text(&rows),
    })?;
    Ok(match rows.iter().all(|row| row.passed) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// A table a suite, then what is wrong.
fn text(rows: &[Row]) -> String {
    let mut parts = Vec::new();
    for suite in Suite::ALL {
        let of_suite: Vec<&Row> = rows.iter().filter(|row| row.suite == suite).collect();
        if of_suite.is_empty() {
            continue;
        }
        let groups = verify::groups(suite);
        let cells = of_suite.iter().map(|row| row.cells(&groups)).collect();
        let header = [&["Framework", "Version"][..], &groups, &["Cases", "Result"]].concat();
        parts.push(table::render(header, cells));
    }
    parts.extend(rows.iter().flat_map(Row::details));
    parts.join("\n")
}

/// Starts the server, asks it everything, and stops it.
fn examine(root: &Root, subject: &Subject) -> anyhow::Result<Examination> {
    let name = &subject.name;
    compile::ensure_built(root, subject)?;
    let spec = ServerSpec {
        name: name.clone(),
        argv: subject.command(root)?,
        folder: subject.folder.clone(),
        host: HOST.into(),
        ports: ports::free_ports(1, HOST)?,
        cpus: Vec::new(),
        nodelay: true,
        max_message: None,
        extra_args: Vec::new(),
        counters: None,
        log: root.output("log").join(format!("verify-{name}.log")),
        start_timeout: START_WITHIN,
        connections: 0,
    };
    let id = subject.id(subject.program_version(root));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let mut examination = Examination::blank(id, subject.program_hash(root), now.as_secs());
    verify::server::start_and_examine(subject, spec, &mut examination)?.stop()?;
    Ok(examination)
}
