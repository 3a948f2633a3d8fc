//! `wsbench verify`.

use crate::compile;
use crate::ports;
use crate::root::Root;
use crate::server::{Server, ServerSpec};
use crate::subject::{Catalog, Subject};
use crate::table;
use crate::verify::{self, Examination, Finding, Level, Verdict};
use anyhow::Context as _;
use serde::Serialize;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;
use wsbench_schema::Target;

const HOST: &str = "127.0.0.1";
/// How long a server may take until it listens.
const START_WITHIN: Duration = Duration::from_secs(15);

/// Checks that servers answer rightly, before their figures mean anything.
///
/// Builds what is not built, starts one server after another, and sends each
/// the cases of the examination.
#[derive(clap::Args)]
pub struct Args {
    /// Servers to examine [default: all]
    #[arg(value_name = "NAME", value_delimiter = ',')]
    names: Vec<String>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// What became of one subject.
#[derive(Serialize)]
struct Row {
    name: String,
    version: String,
    passed: bool,
    /// Cases passed of all; absent if it could not be examined.
    summary: Option<String>,
    /// Why it could not be examined.
    error: Option<String>,
    findings: Vec<Finding>,
}

impl Row {
    fn new(root: &Root, subject: &Subject, examined: anyhow::Result<Examination>) -> Self {
        let (name, version) = (subject.name.clone(), subject.program_version(root));
        match examined {
            Ok(examination) => Self {
                name,
                version,
                passed: examination.passed(),
                summary: Some(examination.summary()),
                error: None,
                findings: examination.findings,
            },
            Err(error) => Self {
                name,
                version,
                passed: false,
                summary: None,
                error: Some(format!("{error:#}")),
                findings: Vec::new(),
            },
        }
    }

    fn cells(&self) -> [String; 4] {
        let result = if self.passed { "passed" } else { "FAILED" };
        let cases = self.summary.clone().unwrap_or_else(|| "-".into());
        [
            self.name.clone(),
            self.version.clone(),
            cases,
            result.into(),
        ]
    }

    /// A line for each thing that is wrong.
    fn details(&self) -> Vec<String> {
        let error = self
            .error
            .iter()
            .map(|error| format!("{}: {error}", self.name));
        let failures = self.findings.iter().filter_map(|finding| {
            let Verdict::Fail { expected, seen } = &finding.verdict else {
                return None;
            };
            let level = match finding.level {
                Level::Must => "",
                Level::Should => " (should)",
                Level::Note => " (note)",
            };
            let (name, group, case) = (&self.name, finding.group, &finding.name);
            Some(format!(
                "{name}: {group}, {case}{level}: expected {expected}; saw {seen}"
            ))
        });
        error.chain(failures).collect()
    }
}

pub fn run(Args { names, json }: Args) -> anyhow::Result<ExitCode> {
    let root = Root::find()?;
    let catalog = Catalog::discover(&root)?;
    let subjects = catalog.select(&names)?;
    if names.is_empty() {
        for broken in &catalog.broken {
            eprintln!("{}: left out: {}", broken.name, broken.reason);
        }
    }
    let mut rows = Vec::new();
    for subject in subjects {
        let row = Row::new(&root, subject, examine(&root, subject));
        if !json {
            eprintln!("{}: {}", row.name, row.cells()[2..].join(" "));
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

fn text(rows: &[Row]) -> String {
    let cells = rows.iter().map(Row::cells).collect();
    let mut text = table::render(["Framework", "Version", "Cases", "Result"], cells);
    for line in rows.iter().flat_map(Row::details) {
        text.push('\n');
        text.push_str(&line);
    }
    text
}

/// Starts the server, asks it everything, and stops it.
fn examine(root: &Root, subject: &Subject) -> anyhow::Result<Examination> {
    let name = &subject.name;
    compile::ensure_built(root, subject)?;
    let server = Server::start(ServerSpec {
        name: name.clone(),
        argv: subject.command(root)?,
        folder: subject.folder.clone(),
        host: HOST.into(),
        ports: ports::free_ports(1, HOST)?,
        cpus: Vec::new(),
        nodelay: true,
        max_message: None,
        extra_args: Vec::new(),
        log: root.output("log").join(format!("verify-{name}.log")),
        start_timeout: START_WITHIN,
    })?;
    let address = format!("{HOST}:{}", server.ports().first);
    let address: SocketAddr = address.parse().context("address of the server")?;
    let examination = verify::examine(address, Target::DEFAULT_PATH);
    server.stop()?;
    Ok(examination)
}
