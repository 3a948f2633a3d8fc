//! `wsbench cmp`.

use crate::commands::report::find;
use crate::progress::note;
use crate::root::Root;
use crate::run::saved::Saved;
use crate::table;
use anyhow::{Context as _, bail};
use std::path::Path;
use std::process::ExitCode;
use wsbench_report::cmp::{self, Comparison, Side};
use wsbench_report::{markdown, terminal, terminal_width, text};
use wsbench_schema::{RunPlan, SCHEMA_VERSION, TrialRecord};

/// Says what got better or worse from one result to another.
///
/// Compares each figure of each subject by its rounds (rank sum test, decided together at
/// 5 %), under loads that must be the same. Exit code: 0; 1 if something got significantly
/// worse by more than the threshold, or fails that did not; 2 if the two cannot be compared,
/// or have too few rounds to show any difference.
#[derive(clap::Args)]
pub struct Args {
    /// The older run: its name or how that begins, its folder, or a record's file
    old: String,
    /// The newer one
    new: String,
    /// By how much a figure may get worse
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = percent)]
    threshold: f64,
    /// Compare the loads that both have, where not all are the same
    #[arg(long)]
    common: bool,
    /// Print markdown, as for a comment under a change
    #[arg(long)]
    markdown: bool,
}

/// Exit code of what cannot be compared.
const INCOMPARABLE: u8 = 2;

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => Err("write a percentage, as in 5%".into()),
    }
}

pub fn run(
    Args {
        old,
        new,
        threshold,
        common,
        markdown,
    }: Args,
) -> anyhow::Result<ExitCode> {
    Ok(match compare([&old, &new], threshold, common) {
        Ok((old, new, found)) => {
            table::print(&told([&old, &new], threshold, markdown, &found))?;
            match (found.worse.is_empty(), found.blind) {
                (false, _) => ExitCode::FAILURE,
                (true, Some(_)) => ExitCode::from(INCOMPARABLE),
                (true, None) => ExitCode::SUCCESS,
            }
        }
        Err(error) => {
            note(format_args!("wsbench: {error:#}"));
            ExitCode::from(INCOMPARABLE)
        }
    })
}

/// With the names that the two have.
fn compare(
    wanted: [&str; 2],
    threshold_percent: f64,
    only_common: bool,
) -> anyhow::Result<(String, String, Comparison)> {
    let root = Root::find()?;
    let [old, new] = wanted.map(|name| read(&root, name));
    let (old, new) = (old?, new?);
    for saved in [&old, &new] {
        for problem in &saved.problems {
            note(format_args!("warning: {problem}"));
        }
    }
    let names = [&old, &new].map(|saved| saved.plan.run.clone());
    // The same run twice, or records of one, are still two results.
    let [mut first, mut second] = names;
    if first == second {
        (first, second) = (format!("{first} (old)"), format!("{second} (new)"));
    }
    let side = |name, saved| side(name, saved);
    let found = cmp::compare(
        side(&first, &old),
        side(&second, &new),
        threshold_percent,
        only_common,
    )
    .with_context(|| format!("{} and {} cannot be compared", wanted[0], wanted[1]))?;
    Ok((first, second, found))
}

fn side<'a>(name: &'a str, saved: &'a Saved) -> Side<'a> {
    Side {
        name,
        plan: &saved.plan,
        records: &saved.records,
    }
}

/// A run's folder, or a single record.
fn read(root: &Root, name: &str) -> anyhow::Result<Saved> {
    let path = Path::new(name);
    if !path.is_file() {
        let saved = Saved::read(&find(&root.results(), Some(path))?)?;
        if saved.records.is_empty() && !saved.searches.is_empty() {
            bail!(
                "{name} is a run of searches (--slo), which has no trials to compare (see: wsbench report {name})"
            );
        }
        return Ok(saved);
    }
    let is_report = path.file_name().is_some_and(|name| {
        let name = name.to_string_lossy();
        name.contains("report") && name.ends_with(".json")
    });
    if is_report {
        bail!(
            "{name} is a report, which does not hold each round's figures (name the run or its folder instead)"
        );
    }
    let record = TrialRecord::load(path)?;
    Ok(Saved {
        folder: path.parent().unwrap_or(Path::new(".")).to_owned(),
        plan: RunPlan {
            schema: SCHEMA_VERSION,
            run: record.run.clone(),
            started_unix_s: record.started_unix_s,
            seed: record.seed,
            rounds: 1,
            subjects: vec![record.subject.name.clone()],
            loads: vec![record.load.clone()],
            profile: String::new(),
            cpus: record.cpus.clone(),
            settings: record.settings.clone(),
        },
        records: vec![record],
        searches: Vec::new(),
        examinations: Vec::new(),
        problems: Vec::new(),
    })
}

fn told(
    [old, new]: [&str; 2],
    threshold_percent: f64,
    is_markdown: bool,
    found: &Comparison,
) -> String {
    let mut text = Vec::new();
    match is_markdown {
        true => {
            let [old, new] = [old, new].map(text::markdown);
            let lines = |of: &[String]| {
                of.iter()
                    .map(|line| text::markdown(line))
                    .collect::<Vec<_>>()
            };
            text.push(format!("## {old} against {new}\n"));
            text.extend(
                lines(&found.warnings)
                    .iter()
                    .map(|line| format!("> **{line}**\n")),
            );
            text.extend(lines(&found.facts).iter().map(|line| format!("- {line}")));
            text.extend(found.grids.iter().map(|grid| {
                let title = text::markdown(&grid.title);
                format!("\n### {title}\n\n{}", markdown::table(grid))
            }));
        }
        false => {
            text.push(format!("old: {old}\nnew: {new}"));
            text.extend(found.warnings.iter().map(|line| format!("WARNING: {line}")));
            text.extend(found.facts.iter().cloned());
            let grids = found.grids.iter();
            text.extend(grids.map(|grid| terminal::table(grid, terminal_width())));
        }
    }
    let worse = match (found.worse.is_empty(), found.blind) {
        (true, Some(needed)) => format!(
            "so few rounds cannot show any difference: {needed} of each can (wsbench run --rounds {needed})"
        ),
        (true, None) => "nothing got significantly worse".to_owned(),
        (false, _) => format!("worse: {}", found.worse.join("; ")),
    };
    let worse = match is_markdown {
        true => text::markdown(&worse),
        false => worse,
    };
    let few = match (found.too_few, found.blind) {
        (0, _) | (_, Some(_)) => String::new(),
        (few, None) => format!(
            "; {few} of {} figures have too few rounds to tell",
            found.compared
        ),
    };
    text.push(format!("\n{worse} (threshold {threshold_percent}%){few}"));
    text.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_a_percentage() {
        assert_eq!(percent("5%"), Ok(5.0));
        assert_eq!(percent("0"), Ok(0.0));
        assert_eq!(percent("2.5 %"), Ok(2.5));
        for wrong in ["", "%", "-1%", "five", "nan", "inf%"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }
}
