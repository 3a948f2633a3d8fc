//! `wsbench history`.

use crate::commands::rank::by;
use crate::progress::note;
use crate::root::Root;
use crate::run::resume;
use crate::strict;
use crate::table;
use anyhow::{Context as _, bail};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wsbench_report::history::{self, sparkline};
use wsbench_report::quantity::Quantity;
use wsbench_report::{terminal, terminal_width};
use wsbench_schema::TrialRecord;
use wsbench_schema::record::Loaded;

/// Shows what became of a server's figures over all results that were kept.
///
/// A table for each load and machine, a row a run, each compared with the one before by the
/// rank sum test over rounds.
#[derive(clap::Args)]
pub struct Args {
    /// The server, or the variant
    name: String,
    /// By what: cpu, tps, tp99, cpu-rate, tp99-rate, memory; of bulk transfers cpu-gib,
    /// throughput, peak-memory; may be repeated [default: cpu and tps, or cpu-gib and throughput]
    #[arg(long, value_name = "FIGURE", value_parser = by)]
    by: Vec<Quantity>,
    /// Draw the first of these figures, too
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let root = Root::find()?;
    let runs = resume::runs(&root.results());
    let (mut records, mut names) = (Vec::new(), BTreeSet::new());
    for run in &runs {
        let loaded = of_subject(run, &args.name, &mut names)?;
        for problem in &loaded.problems {
            note(format_args!("warning: left out: {problem}"));
        }
        records.extend(loaded.files);
    }
    if records.is_empty() {
        let meant = strict::suggestion(&args.name, names.iter().map(String::as_str));
        bail!(
            "`{}` is in no result of {}{meant}",
            args.name,
            root.results().display()
        );
    }
    let wishes = match args.by.is_empty() {
        true => ["cpu", "tps", "cpu-gib", "throughput"]
            .into_iter()
            .filter_map(Quantity::of_key)
            .collect(),
        false => args.by,
    };
    let mut text = Vec::new();
    let mut picture = None;
    for quantity in wishes {
        let courses = history::of(&records, quantity);
        if !courses.is_empty() {
            picture.get_or_insert_with(|| history::chart(&args.name, quantity, &courses));
        }
        for course in courses {
            text.push(format!(
                "\n{}  {}{}",
                course.title,
                sparkline(&course.medians),
                terminal::table(&course.grid, terminal_width()).trim_end_matches('\n')
            ));
        }
    }
    if text.is_empty() {
        bail!("nothing of the kind was ever measured of `{}`", args.name);
    }
    if let Some((picture, path)) = picture.zip(args.svg) {
        std::fs::write(&path, picture.svg())
            .with_context(|| format!("cannot write {}", path.display()))?;
        text.push(format!("\nwritten: {}", path.display()));
    }
    table::print(text.join("\n").trim_start())?;
    Ok(ExitCode::SUCCESS)
}

/// The records of a subject in a run's folder: only its files are read. `names` gathers
/// who else is there.
fn of_subject(
    folder: &Path,
    name: &str,
    names: &mut BTreeSet<String>,
) -> anyhow::Result<Loaded<TrialRecord>> {
    let mut files: BTreeSet<PathBuf> = BTreeSet::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(subject) = subject_of(&file) {
            names.insert(subject.to_owned());
            if subject == name {
                files.insert(path.clone());
            }
        }
    }
    Ok(Loaded::read(
        folder,
        |path| files.contains(path),
        TrialRecord::load,
    )?)
}

/// Of `<hash>-<subject>-r<round>-a<attempt>.json`.
fn subject_of(file: &str) -> Option<&str> {
    let stem = file.strip_suffix(".json")?;
    let (_, rest) = stem.split_once('-')?;
    let (rest, attempt) = rest.rsplit_once("-a")?;
    let (subject, round) = rest.rsplit_once("-r")?;
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    (is_number(attempt) && is_number(round)).then_some(subject)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_a_record_is_stands_in_the_name_of_its_file() {
        for (file, subject) in [
            ("0123-axum-r1-a1.json", Some("axum")),
            ("0123-axum-r1-a1-r12-a3.json", Some("axum-r1-a1")),
            ("0123-axum+t@x-1-r1-a1.json", Some("axum+t@x-1")),
            ("0123-axum-r1-a1-echo.hlog", None),
            ("run.json", None),
            ("0123-axum-rx-a1.json", None),
        ] {
            assert_eq!(subject_of(file), subject, "{file}");
        }
    }
}
