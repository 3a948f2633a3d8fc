//! `wsbench rank`.

use crate::commands::report::find;
use crate::progress::note;
use crate::root::Root;
use crate::run::saved::Saved;
use crate::table;
use anyhow::bail;
use std::path::PathBuf;
use std::process::ExitCode;
use wsbench_report::quantity::{self, Quantity};
use wsbench_report::{rank, terminal, terminal_width};

/// Ranks the servers of a run by one figure, a table a load.
///
/// Servers of whom no difference is shown by the rank sum test over rounds share a rank.
#[derive(clap::Args)]
pub struct Args {
    /// The run: its name or how that begins, or a path [default: the newest in results/]
    run: Option<PathBuf>,
    /// By what: cpu, tps, tp99, cpu-rate, tp99-rate, memory; of bulk transfers cpu-gib,
    /// throughput, peak-memory [default: cpu, or cpu-gib]
    #[arg(long, value_name = "FIGURE", value_parser = by)]
    by: Option<Quantity>,
}

/// What is asked for on a command line.
pub fn by(text: &str) -> Result<Quantity, String> {
    Quantity::of_key(text).ok_or_else(|| {
        let keys: Vec<&str> = quantity::ALL.iter().map(|quantity| quantity.key).collect();
        format!("write one of {}", keys.join(", "))
    })
}

pub fn run(Args { run, by }: Args) -> anyhow::Result<ExitCode> {
    let root = Root::find()?;
    let saved = Saved::read(&find(&root.results(), run.as_deref())?)?;
    for problem in &saved.problems {
        note(format_args!("warning: {problem}"));
    }
    // Without a wish whatever of the two was measured.
    let wishes = match by {
        Some(quantity) => vec![quantity],
        None => ["cpu", "cpu-gib"]
            .into_iter()
            .filter_map(Quantity::of_key)
            .collect(),
    };
    let mut grids = Vec::new();
    for quantity in &wishes {
        grids.extend(rank::by(&saved.plan, &saved.records, *quantity)?);
    }
    if grids.is_empty() {
        let names: Vec<&str> = wishes.iter().map(|wish| wish.name).collect();
        bail!(
            "{} has no {} of anybody",
            saved.plan.run,
            names.join(" and no ")
        );
    }
    let mut text = vec![format!("run {}", saved.plan.run)];
    text.extend(
        grids
            .iter()
            .map(|grid| terminal::table(grid, terminal_width())),
    );
    table::print(&text.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}
