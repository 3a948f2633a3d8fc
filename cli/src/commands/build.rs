//! `wsbench build`.

use crate::compile::{self, Event};
use crate::patch::{self, PatchArgs};
use crate::progress::note;
use crate::root::Root;
use crate::run::interrupt::{self, EXIT_CODE, Interrupt};
use crate::run::lock;
use crate::subject::{Catalog, State, Subject, Variants};
use crate::table;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal as _, stderr};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Builds servers, each with its own lock file.
///
/// Goes on after a failure; the log of each build is output/log/build-NAME.log.
/// Exit code: 0, or 1 if one cannot be built, or 130 if interrupted.
#[derive(clap::Args)]
pub struct Args {
    /// Servers to build [default: all whose needs are there]
    #[arg(value_name = "NAME", value_delimiter = ',')]
    names: Vec<String>,
    /// Variants of the servers' folders: only those that are named, or all
    #[arg(long, value_enum, value_name = "WHICH", default_value_t)]
    variants: Variants,
    #[command(flatten)]
    patches: PatchArgs,
}

/// What became of one subject.
enum Fate {
    Built,
    Failed(String),
    /// Only if nobody asked for it by name.
    LeftOut(String),
}

struct Row {
    name: String,
    fate: Fate,
    took: Duration,
}

impl Row {
    fn cells(&self) -> [String; 3] {
        let result = match &self.fate {
            Fate::Built => "built".into(),
            Fate::Failed(_) => "FAILED".into(),
            Fate::LeftOut(reason) => format!("left out: {reason}"),
        };
        let took = format!("{:.1}s", self.took.as_secs_f64());
        [self.name.clone(), result, took]
    }
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Args {
        names,
        variants,
        patches,
    } = args;
    let root = Root::find()?;
    lock::refuse_while_measuring(&root.output("run"))?;
    let catalog = Catalog::discover(&root)?;
    let subjects = catalog.select(&names, variants)?;
    let by_name = !names.is_empty();
    if !by_name {
        for broken in &catalog.broken {
            note(format_args!("{}: left out: {}", broken.name, broken.reason));
        }
    }
    let interrupt = Interrupt::install()?;
    let subjects = subjects.into_iter().cloned().collect();
    let subjects = patch::beside(&root, subjects, &patches.patch)?;
    let subjects: Vec<&Subject> = subjects.iter().collect();
    let rows = build_all(&root, &subjects, by_name);
    let cells = rows.iter().map(Row::cells).collect();
    table::print(&table::render(["Framework", "Result", "Time"], cells))?;
    if interrupt.pressed() {
        return Ok(ExitCode::from(EXIT_CODE));
    }
    let mut failed = false;
    for row in &rows {
        if let Fate::Failed(reason) = &row.fate {
            failed = true;
            note(format_args!("wsbench: {}: {reason}", row.name));
        }
    }
    Ok(match failed {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

fn build_all(root: &Root, subjects: &[&Subject], by_name: bool) -> Vec<Row> {
    let show = Show::new(subjects.len());
    let mut rows = Vec::new();
    for subject in subjects {
        if interrupt::pressed() {
            break;
        }
        let begin = Instant::now();
        show.begins(&subject.name);
        let fate = match subject.state(root) {
            State::Needs(program) if !by_name => Fate::LeftOut(format!("needs {program}")),
            _ => match compile::build(root, subject, &mut |event| show.event(&subject.name, event))
            {
                Ok(_) => Fate::Built,
                Err(error) => Fate::Failed(format!("{error:#}")),
            },
        };
        let row = Row {
            name: subject.name.clone(),
            fate,
            took: begin.elapsed(),
        };
        show.ends(&row);
        rows.push(row);
    }
    rows
}

/// A bar on a terminal; elsewhere a line when a subject begins and one when it ends.
struct Show {
    bar: Option<ProgressBar>,
}

impl Show {
    fn new(subjects: usize) -> Self {
        let bar = stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("[{bar:20}] {pos}/{len} {msg}, {elapsed}")
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("=> ");
            let bar =
                ProgressBar::with_draw_target(Some(subjects as u64), ProgressDrawTarget::stderr());
            bar.set_style(style);
            bar.enable_steady_tick(Duration::from_millis(500));
            bar
        });
        Self { bar }
    }

    fn begins(&self, name: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(name.to_owned()),
            None => note(format_args!("building {name} ...")),
        }
    }

    fn event(&self, name: &str, event: Event<'_>) {
        match (event, &self.bar) {
            (Event::Crate { done, name: last }, Some(bar)) => {
                bar.set_message(format!("{name}: {done} crates, {last}"));
            }
            (Event::Crate { .. }, None) => {}
            (Event::Notice(text), Some(bar)) => bar.println(format!("{name}: {text}")),
            (Event::Notice(text), None) => note(format_args!("{name}: {text}")),
        }
    }

    fn ends(&self, row: &Row) {
        match &self.bar {
            Some(bar) => bar.inc(1),
            None => {
                let [name, result, took] = row.cells();
                note(format_args!("{name}: {result} in {took}"));
            }
        }
    }
}

impl Drop for Show {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::testing::Project;

    fn foreign(project: &Project, name: &str, rest: &str) {
        let text = format!("language = \"sh\"\nversion = \"1\"\nrun = [\"sh\"]\n{rest}");
        project.write(&format!("frameworks/foreign/{name}/bench.toml"), &text);
    }

    #[test]
    fn a_failure_stops_nobody_else_and_needs_fail_only_by_name() {
        let project = Project::new();
        foreign(&project, "a", "build = [[\"false\"]]\n");
        foreign(&project, "b", "build = [[\"true\"]]\n");
        foreign(&project, "c", "needs = [\"no-such-program\"]\n");
        let catalog = project.catalog();
        let results = |by_name| -> Vec<String> {
            let subjects = catalog.select(&[], Variants::Named).unwrap();
            let rows = build_all(&project.root, &subjects, by_name);
            rows.iter().map(|row| row.cells()[1].clone()).collect()
        };
        assert_eq!(
            results(false),
            ["FAILED", "built", "left out: needs no-such-program"]
        );
        assert_eq!(results(true), ["FAILED", "built", "FAILED"]);
    }
}
