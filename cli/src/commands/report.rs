//! `wsbench report`.

use crate::commands::publish::PublishArgs;
use crate::root::Root;
use crate::run::resume;
use crate::run::saved::Saved;
use crate::table;
use anyhow::{Context as _, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wsbench_report::terminal_width;
use wsbench_schema::RunPlan;

/// Runs that are named when the one that was asked for is not there.
const NEWEST: usize = 5;

/// Makes the report of a run from its saved records.
///
/// Prints the tables and writes them: report.md and report.html with everything,
/// report.csv with a line a figure, report.xlsx with a sheet a table, report.json for
/// programs, one markdown file a table (compact.md, connections.md, echo.md, rate.md; relays
/// and transfers have tables of their own), pictures in charts/, and what the run left in
/// hlog/ (latencies by interval) and flames/ (profiles). What an earlier report wrote under
/// the same names is replaced.
#[derive(clap::Args)]
pub struct Args {
    /// The run: its name or how that begins, or a path [default: the newest in results/]
    run: Option<PathBuf>,
    /// Put before the name of every file
    #[arg(
        long,
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    prefix: String,
    /// Put behind the name of every file, before `.md`
    #[arg(
        long,
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    suffix: String,
    /// With whom everybody is compared [default: floor, or the first of the run]
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,
    /// Folder of the files [default: output/report]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    publish: PublishArgs,
}

impl Args {
    /// Of the newest run, as `wsbench run -r` makes it.
    pub fn newest(prefix: String, suffix: String, publish: PublishArgs) -> Self {
        Self {
            run: None,
            prefix,
            suffix,
            baseline: None,
            output: None,
            publish,
        }
    }
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    args.publish.check()?;
    let root = Root::find()?;
    let folder = find(&root.results(), args.run.as_deref())?;
    let mut report = Saved::read(&folder)?.report(&root)?;
    if let Some(name) = &args.baseline {
        report = report.with_baseline(name)?;
    }
    let output = args.output.unwrap_or_else(|| root.output("report"));
    let mut written = report.write(&output, &args.prefix, &args.suffix)?;
    written.extend(args.publish.publish(&report)?);
    let mut text = report.terminal(terminal_width());
    text.push('\n');
    for path in written {
        text.push_str(&format!("written: {}\n", path.display()));
    }
    table::print(text.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

/// The folder of the run that is meant; the newest if none is named.
pub fn find(results: &Path, wanted: Option<&Path>) -> anyhow::Result<PathBuf> {
    let mut runs = resume::runs(results);
    let Some(wanted) = wanted else {
        return runs.pop().with_context(|| {
            let results = results.display();
            format!("no run in {results} yet (measure something: wsbench run)")
        });
    };
    let is_run = |path: &PathBuf| path.join(RunPlan::FILE_NAME).is_file();
    let places = [results.join(wanted), wanted.to_owned()];
    if let Some(folder) = places.into_iter().find(is_run) {
        return Ok(folder);
    }
    if let Some(folder) = resume::named(&runs, &wanted.to_string_lossy())? {
        return Ok(folder.clone());
    }
    let newest: Vec<_> = runs
        .iter()
        .rev()
        .take(NEWEST)
        .filter_map(|path| path.file_name())
        .map(|name| name.to_string_lossy())
        .collect();
    let newest = match newest.len() {
        0 => format!("{} has no run yet: wsbench run", results.display()),
        _ => format!("the newest of {}: {}", results.display(), newest.join(", ")),
    };
    bail!(
        "no run `{}`: neither a run's name nor a folder with a {} ({newest})",
        wanted.display(),
        RunPlan::FILE_NAME,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::testing::{plan, record};
    use crate::subject::testing::Project;
    use std::fs;

    /// A folder of results with one record in each run.
    fn results(runs: &[&str]) -> tempfile::TempDir {
        let results = tempfile::tempdir().unwrap();
        for name in runs {
            let folder = results.path().join(name);
            fs::create_dir(&folder).unwrap();
            let plan = plan(name);
            plan.save(&folder).unwrap();
            record(&plan, "axum", 1).save(&folder).unwrap();
        }
        results
    }

    #[test]
    fn a_run_is_found_by_name_by_path_and_as_the_newest() {
        let results = results(&["20261130-0900", "20261130-1000"]);
        let old = results.path().join("20261130-0900");
        let found = |wanted: Option<&Path>| find(results.path(), wanted).unwrap();
        assert_eq!(found(Some(Path::new("20261130-0900"))), old);
        assert_eq!(found(Some(&old)), old);
        assert_eq!(found(None), results.path().join("20261130-1000"));
        assert_eq!(found(Some(Path::new("20261130-09"))), old);
        let both = find(results.path(), Some(Path::new("20261130-"))).unwrap_err();
        assert!(both.to_string().starts_with("the names of 2 runs begin"));
    }

    #[test]
    fn a_missing_run_is_an_error_that_names_the_newest() {
        let names: Vec<String> = (0..7).map(|hour| format!("20261130-0{hour}00")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let results = results(&names);
        let wanted = Some(Path::new("20261131-0900"));
        let error = find(results.path(), wanted).unwrap_err().to_string();
        assert!(error.starts_with("no run `20261131-0900`: "), "{error}");
        assert!(
            error.contains(": 20261130-0600, 20261130-0500, "),
            "{error}"
        );
        assert!(!error.contains("20261130-0100"), "{error}");
    }

    #[test]
    fn without_any_run_the_remedy_is_told() {
        let empty = tempfile::tempdir().unwrap();
        let none = empty.path().join("results");
        for wanted in [None, Some(Path::new("x"))] {
            let error = find(&none, wanted).unwrap_err().to_string();
            assert!(error.contains("wsbench run"), "{error}");
        }
    }

    #[test]
    fn a_report_is_made_of_what_is_there() {
        let results = results(&["20261130-0900"]);
        let folder = results.path().join("20261130-0900");
        let project = Project::new();
        let load = || Saved::read(&folder).unwrap().report(&project.root);
        let text = load().unwrap().markdown();
        assert!(text.contains("incomplete: 1 of 4 trials"), "{text}");
        // 1,000 echoes answered in 10 s.
        assert!(text.contains("| axum "), "{text}");
        let broken = folder.join("examinations/axum.json");
        fs::create_dir(broken.parent().unwrap()).unwrap();
        fs::write(&broken, "{").unwrap();
        fs::write(folder.join("x.json"), "{").unwrap();
        let text = load().unwrap().markdown();
        for told in [
            "> **Not in this report: examinations/axum.json: truncated",
            "> **Not in this report: x.json: truncated",
        ] {
            assert!(text.contains(told), "{text}");
        }
        assert!(text.contains("| axum "), "{text}");
    }
}
