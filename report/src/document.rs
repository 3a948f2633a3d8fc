//! What a report says, in order and without any format: markdown, HTML, spreadsheet
//! and JSON are made of this and of nothing else, so that a table or a picture that
//! is added here is in all of them.
//!
//! Texts are as they came, and those of servers (names, reasons, logs) may hold
//! anything: whoever writes a format escapes them. Only what is documented as
//! *our own words* is known to be harmless, and has code between backticks.

use crate::chart::Chart;
use crate::machine::describe;
use crate::section::Section;
use crate::table::{Grid, Table};
use crate::tcp::{self, least};
use crate::units::counted;
use crate::verification::{self, Item};
use crate::{Report, answer, differences, notes, patched, pictures, rank, scaling, slo, tables};
use std::collections::HashMap;
use std::path::PathBuf;
use wsbench_schema::{Phase, Suite};

/// A report.
#[derive(Clone, Debug)]
pub struct Document {
    /// What kind of servers were measured.
    pub suite: Suite,
    /// The run's identifier.
    pub run: String,
    /// What a reader must know first, a sentence each.
    pub warnings: Vec<String>,
    /// Names and what they are: the environment, and what was run.
    pub facts: Vec<(String, String)>,
    /// What makes the same run and the same report, a command line each.
    pub commands: Vec<String>,
    /// Everything else, in the order in which it is read.
    pub parts: Vec<Part>,
    /// Files that the run left, to be kept beside the report.
    pub files: Vec<Attachment>,
}

/// A chapter.
#[derive(Clone, Debug)]
pub struct Part {
    /// The same in every report that has this part: letters, digits and `-`.
    pub id: String,
    /// What stands above it.
    pub title: String,
    /// Which one.
    pub kind: PartKind,
    /// From top to bottom.
    pub blocks: Vec<Block>,
}

/// What a chapter is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// Who is best in what under a load; its picture is that load's first.
    Answer {
        /// `Load::hash` of it.
        load_hash: String,
    },
    /// Several loads, side by side.
    Across,
    /// One load.
    Load {
        /// `Load::hash` of it.
        hash: String,
        /// What it is called among others, in a few words.
        short: String,
    },
    /// What the examinations found.
    Verification,
    /// What the servers that failed wrote last.
    Logs,
    /// Other files that belong to the report.
    Files,
    /// What the columns mean.
    Definitions,
}

/// A piece of a chapter.
#[derive(Clone, Debug)]
pub enum Block {
    /// Our own words.
    Paragraph(String),
    /// A list of one level or two.
    List(Vec<Item>),
    /// A table.
    Grid(Grid),
    /// A table that this load has not.
    Absent {
        /// [`Grid::file`] of it.
        file: String,
        /// What would stand above it; our own words.
        title: String,
        /// Why not; our own words.
        reason: String,
        /// Whether it is of interest only where the table is looked for by itself.
        is_silent: bool,
    },
    /// A picture.
    Chart(Chart),
    /// What the columns of a table mean.
    Definitions {
        /// [`Grid::file`] of it.
        file: String,
        /// What stands above them; our own words.
        title: String,
        /// A sentence each; our own words.
        lines: Vec<String>,
    },
    /// What a server wrote.
    Log(Log),
    /// A file beside the report that is worth a link.
    File(Attachment),
}

/// The last lines that a server wrote in a round that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Whose.
    pub subject: String,
    /// `Load::hash` of the load.
    pub load_hash: String,
    /// Of which round.
    pub round: u32,
    /// As they were written, but for control characters.
    pub lines: Vec<String>,
    /// Whether there were others before them.
    pub is_cut: bool,
}

/// What a file beside a report is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttachmentKind {
    /// An interval log of HdrHistogram's form V2.
    IntervalLog,
    /// A flame graph in SVG.
    FlameGraph,
}

/// A file that the run left, and that is kept with the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// What it is.
    pub kind: AttachmentKind,
    /// Whose, if it is one subject's.
    pub subject: Option<String>,
    /// Under which load, if one.
    pub load_hash: Option<String>,
    /// What it shows.
    pub title: String,
    /// Where the run left it. Beside the report it has a name of its own: see
    /// [`crate::files::Names::attachment`].
    pub source: PathBuf,
}

impl AttachmentKind {
    /// Where such files are, within the report's folder.
    #[must_use]
    pub fn folder(self) -> &'static str {
        match self {
            Self::IntervalLog => "hlog",
            Self::FlameGraph => "flames",
        }
    }

    /// The ending of such a file.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::IntervalLog => "hlog",
            Self::FlameGraph => "svg",
        }
    }
}

impl Document {
    /// Everything that a report says.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        let tables = tables::of(report.suite());
        let mut parts: Vec<Part> = answered(report).into_iter().collect();
        let is_answered = !parts.is_empty();
        parts.extend(searches(report));
        let looks = pictures::Looks::of(&report.sections);
        parts.extend(overview(report, &looks));
        let loads = report.sections.iter();
        parts.extend(loads.map(|section| load(section, &tables, &looks)));
        parts.extend(scalings(report));
        parts.push(verification(report));
        parts.extend(logs(report));
        parts.extend(files(report));
        parts.extend(definitions(report, &tables, is_answered));
        number(&mut parts);
        Self {
            suite: report.suite(),
            run: report.run.clone(),
            warnings: report.heading.warnings.clone(),
            facts: report.heading.facts.clone(),
            commands: report.commands.clone(),
            parts,
            files: report.attachments.clone(),
        }
    }

    /// All tables, each with the part that it stands in.
    pub fn grids(&self) -> impl Iterator<Item = (&Part, &Grid)> {
        self.parts.iter().flat_map(|part| {
            let grids = part.blocks.iter().filter_map(|block| match block {
                Block::Grid(grid) => Some(grid),
                _ => None,
            });
            grids.map(move |grid| (part, grid))
        })
    }

    /// All pictures, each with the part that it stands in.
    pub fn charts(&self) -> impl Iterator<Item = (&Part, &Chart)> {
        self.parts.iter().flat_map(|part| {
            let charts = part.blocks.iter().filter_map(|block| match block {
                Block::Chart(chart) => Some(chart),
                _ => None,
            });
            charts.map(move |chart| (part, chart))
        })
    }
}

impl Part {
    fn new(id: &str, title: &str, kind: PartKind, blocks: Vec<Block>) -> Self {
        Self {
            id: id.to_owned(),
            title: title.to_owned(),
            kind,
            blocks,
        }
    }

    /// `Load::hash` of the load that it is about, if it is one.
    #[must_use]
    pub fn load_hash(&self) -> Option<&str> {
        match &self.kind {
            PartKind::Load { hash, .. } => Some(hash),
            _ => None,
        }
    }

    /// Where a table of this part is found in the report: `load-<hash>-echo`.
    #[must_use]
    pub fn grid_id(&self, grid: &Grid) -> String {
        match self.id == grid.file {
            true => self.id.clone(),
            false => format!("{}-{}", self.id, grid.file),
        }
    }

    /// What stands above a piece of it; nothing where the chapter says it already.
    #[must_use]
    pub fn heading_of<'a>(&self, title: &'a str) -> Option<&'a str> {
        (title != self.title).then_some(title)
    }
}

/// Where each row of a table is found in the report: `<id of the table>-<subject>`.
/// No two are the same.
#[must_use]
pub fn row_ids(grid_id: &str, grid: &Grid) -> Vec<String> {
    let mut used = HashMap::new();
    let mut ids = Vec::with_capacity(grid.rows.len());
    for row in &grid.rows {
        let slug = row.subject.as_deref().map_or_else(String::new, slug);
        let slug = if slug.is_empty() { "row" } else { &slug };
        let id = format!("{grid_id}-{slug}");
        let times = used.entry(id.clone()).or_insert(0_u32);
        *times += 1;
        ids.push(match *times {
            1 => id,
            // Two dots are in no slug.
            times => format!("{id}..{times}"),
        });
    }
    ids
}

/// A name as a part of an anchor or of a file's name: letters, digits, `-`, `_`, `+`
/// and `.`, of everything else a `-`.
#[must_use]
pub fn slug(name: &str) -> String {
    let mut slug = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '+' => slug.push(character),
            '.' if !slug.ends_with('.') => slug.push('.'),
            _ if !slug.ends_with('-') => slug.push('-'),
            _ => {}
        }
    }
    slug.trim_matches(['-', '.']).to_owned()
}

fn alone(grid: Grid) -> Part {
    let (id, title) = (grid.file.clone(), grid.title.clone());
    Part::new(&id, &title, PartKind::Across, vec![Block::Grid(grid)])
}

/// Of several chapters with one table each of the same kind, as of loads against
/// connections with messages of two sizes, the second and later ones are numbered.
fn number(parts: &mut [Part]) {
    let mut used = HashMap::new();
    for part in parts {
        let times = used.entry(part.id.clone()).or_insert(0_u32);
        *times += 1;
        if *times > 1 {
            part.id = format!("{}-{times}", part.id);
            for block in &mut part.blocks {
                if let Block::Grid(grid) = block {
                    grid.file = format!("{}-{times}", grid.file);
                }
            }
        }
    }
}

fn answered(report: &Report) -> Option<Part> {
    let found = answer::of(&report.sections)?;
    let load_hash = found.load_hash;
    let section = report.sections.iter().find(|s| s.load_hash == load_hash)?;
    let title = match report.sections.len() {
        1 => answer::TITLE.to_owned(),
        _ => format!("{}: {}", answer::TITLE, tcp::short(&section.load)),
    };
    let kind = PartKind::Answer { load_hash };
    let blocks = vec![Block::Grid(Grid {
        title: title.clone(),
        ..found.grid
    })];
    Some(Part::new(answer::FILE, &title, kind, blocks))
}

fn searches(report: &Report) -> Option<Part> {
    let blocks = slo::blocks(&report.searches);
    let is_there = !blocks.is_empty();
    is_there.then(|| Part::new(slo::FILE, slo::TITLE, PartKind::Across, blocks))
}

fn overview(report: &Report, looks: &pictures::Looks) -> Vec<Part> {
    let grids = tcp::overview(&report.sections);
    let summary = rank::summary(&report.sections).filter(|_| report.suite().is_websocket());
    let mut parts: Vec<Part> = grids.into_iter().chain(summary).map(alone).collect();
    let charts = pictures::across(&report.sections, looks);
    if !charts.is_empty() {
        let blocks = charts.into_iter().map(Block::Chart).collect();
        let title = "Loads side by side";
        parts.push(Part::new("across", title, PartKind::Across, blocks));
    }
    parts
}

fn scalings(report: &Report) -> impl Iterator<Item = Part> {
    scaling::grids(&report.sections).into_iter().map(alone)
}

fn plain(lines: impl IntoIterator<Item = String>) -> Block {
    let items = lines.into_iter().map(|title| Item {
        title,
        lines: Vec::new(),
    });
    Block::List(items.collect())
}

fn load(section: &Section, tables: &[Table], looks: &pictures::Looks) -> Part {
    let about = describe(&section.load).into_iter();
    let mut blocks = vec![plain(about.chain(notes::of_section(section)))];
    for table in tables {
        blocks.push(match table.applies_to(&section.load) {
            true => Block::Grid(table.fill(section)),
            false => Block::Absent {
                file: table.file.to_owned(),
                title: table.title.to_owned(),
                reason: format!("This load has no {} phase.", table.phase),
                // The tables of relays are of one kind of load or of another, and few
                // loads close connections.
                is_silent: section.suite != Suite::Websocket || table.phase == Phase::Release,
            },
        });
    }
    let more = patched::grid(section).into_iter();
    let more = more.chain(least::grid(section));
    let more = more.chain(differences::grid(section));
    blocks.extend(more.map(Block::Grid));
    let charts = pictures::of_section(section, looks).into_iter();
    blocks.extend(charts.map(Block::Chart));
    let hash = section.load_hash.clone();
    Part::new(
        &format!("load-{hash}"),
        &format!("Load {hash}"),
        PartKind::Load {
            hash,
            short: tcp::short(&section.load),
        },
        blocks,
    )
}

fn verification(report: &Report) -> Part {
    let items = verification::items(&report.examinations);
    let blocks = match items.is_empty() {
        true => vec![Block::Paragraph("No server was examined.".to_owned())],
        false => vec![
            Block::Paragraph(verification::about(report.suite())),
            Block::List(items),
        ],
    };
    let title = "Verification";
    Part::new("verification", title, PartKind::Verification, blocks)
}

fn logs(report: &Report) -> Option<Part> {
    let logs = report.logs.iter().cloned().map(Block::Log);
    let title = "What the servers that failed wrote last";
    let part = Part::new("logs", title, PartKind::Logs, logs.collect());
    (!part.blocks.is_empty()).then_some(part)
}

fn files(report: &Report) -> Option<Part> {
    let (logs, others): (Vec<&Attachment>, Vec<_>) =
        (report.attachments.iter()).partition(|file| file.kind == AttachmentKind::IntervalLog);
    let mut blocks = Vec::new();
    if !logs.is_empty() {
        // One for each trial and phase: thousands, perhaps.
        blocks.push(Block::Paragraph(format!(
            "{} in `{}/`, one for each trial and phase: latencies by interval, as HdrHistogram's own tools read them.",
            counted(logs.len() as u64, "file"),
            AttachmentKind::IntervalLog.folder(),
        )));
    }
    blocks.extend(others.into_iter().cloned().map(Block::File));
    let title = "Files beside this report";
    (!blocks.is_empty()).then(|| Part::new("files", title, PartKind::Files, blocks))
}

fn definitions(report: &Report, tables: &[Table], is_answered: bool) -> Option<Part> {
    let is_shown =
        |table: &&Table| (report.sections.iter()).any(|found| table.applies_to(&found.load));
    let shown = tables.iter().filter(is_shown);
    let explained = |file: &str, title: &str, lines: &[&str]| Block::Definitions {
        file: file.to_owned(),
        title: format!("{title} explained"),
        lines: lines.iter().map(|line| (*line).to_owned()).collect(),
    };
    let answered = explained(answer::FILE, answer::TITLE, &answer::DEFINITIONS);
    let answered = is_answered.then_some(answered).into_iter();
    let searched = explained(slo::FILE, slo::TITLE, &slo::DEFINITIONS);
    let searched = (!report.searches.is_empty()).then_some(searched);
    let answered = answered.chain(searched);
    let blocks =
        answered.chain(shown.map(|table| explained(table.file, table.title, table.definitions)));
    let title = "How to read it";
    let part = Part::new(
        "how-to-read",
        title,
        PartKind::Definitions,
        blocks.collect(),
    );
    (!part.blocks.is_empty()).then_some(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use crate::table::Line;

    fn grid(subjects: &[&str]) -> Grid {
        Grid {
            file: "echo".to_owned(),
            title: "BenchEcho".to_owned(),
            names: 1,
            header: vec!["Framework".to_owned()],
            rows: subjects
                .iter()
                .map(|name| Line::of(name, Vec::new()))
                .collect(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn every_row_has_an_anchor_of_its_own_whatever_its_name() {
        let ids = row_ids(
            "load-1-echo",
            &grid(&["axum", "a<b>", "a b", "\"", "axum+t@0.1..2"]),
        );
        let expected = ["axum", "a-b", "a-b..2", "row", "axum+t-0.1.-2"];
        assert_eq!(ids, expected.map(|id| format!("load-1-echo-{id}")));
    }

    #[test]
    fn every_chapter_and_every_table_has_an_anchor_of_its_own() {
        let mut trials = Vec::new();
        for (payload, connections) in [(8, 10), (8, 100), (64, 10), (64, 100)] {
            let mut trial = example::trial("axum", 1);
            trial.load.payload_bytes = payload;
            trial.load.connections = connections;
            trial.load_hash = trial.load.hash();
            trials.push(trial);
        }
        let plan = wsbench_schema::RunPlan {
            loads: Vec::new(),
            ..example::plan(&["axum"], 1)
        };
        let document = Report::new(&plan, &trials).unwrap().document();
        let tables = document.grids().map(|(part, grid)| part.grid_id(grid));
        let mut ids: Vec<String> = tables.collect();
        assert!(ids.contains(&"against-connections-2".to_owned()), "{ids:?}");
        let count = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count);
        let mut parts: Vec<&str> = document.parts.iter().map(|part| &*part.id).collect();
        parts.sort_unstable();
        parts.dedup();
        assert_eq!(parts.len(), document.parts.len());
    }
}
