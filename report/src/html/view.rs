//! What the template shows, piece by piece, as texts that are not escaped yet.

use super::{SCRIPT, STYLE, policy};
use crate::chart::{Chart, palette, printable};
use crate::document::{self, Block, Document, Log, Part, PartKind};
use crate::files::Names;
use crate::row::{Cell, Place};
use crate::table::Grid;
use crate::verification::Item;
use crate::{answer, text, units};
use askama::Template;
use std::collections::HashMap;
use wsbench_schema::Suite;

/// All of it.
#[derive(Template)]
#[template(path = "report.html")]
pub struct Page {
    title: String,
    heading: &'static str,
    lead: String,
    policy: String,
    style: String,
    script: &'static str,
    warnings: Vec<String>,
    chapters: Vec<Chapter>,
}

/// A part of the document.
struct Chapter {
    id: String,
    /// In the list of all chapters.
    short: String,
    title: String,
    load_hash: Option<String>,
    pieces: Vec<Piece>,
}

/// See [`prose`].
type Prose = Vec<(bool, String)>;

/// What a chapter is made of.
enum Piece {
    Answers(Vec<Answer>),
    Heading(String),
    Paragraph(Prose),
    /// What columns mean.
    Definitions(Vec<Prose>),
    /// What a load is.
    About(Vec<Item>),
    List(Vec<Item>),
    Notes(Vec<String>),
    Table(Table),
    Pictures(Vec<Picture>),
    Facts(Vec<(String, String)>),
    Code(String),
    Links(Vec<Link>),
}

/// Who is best in something.
struct Answer {
    what: String,
    who: String,
    value: String,
    rest: Vec<String>,
}

struct Table {
    id: String,
    /// Where the chapter does not say it already.
    heading: Option<String>,
    title: String,
    /// The chapter's, for those who hear the table by itself.
    of: String,
    /// Columns that name a row.
    names: usize,
    columns: Vec<Column>,
    rows: Vec<Row>,
    notes: Vec<String>,
}

struct Column {
    name: String,
    is_words: bool,
    unit: &'static str,
}

struct Row {
    id: String,
    subject: Option<String>,
    /// A word for each cell; see the script.
    words: String,
    name: String,
    cells: Vec<Shown>,
}

struct Shown {
    class: &'static str,
    text: String,
}

struct Picture {
    id: String,
    title: String,
    /// None of one that is but linked: see [`inlined`].
    svg: Option<String>,
    link: String,
}

struct Link {
    href: String,
    text: String,
}

/// The pictures that stand in the page, by the names of their files.
type Inlined = HashMap<String, String>;

/// Bytes of pictures in a page at most: whole pages of 40 subjects under ten loads are
/// to be sent to others.
const MOST_PICTURES: usize = 600_000;

/// As many as there is room for: the first of every load, then the second, and so on. The
/// others are linked.
fn inlined(document: &Document) -> Inlined {
    let mut charts: Vec<(usize, &Chart)> = Vec::new();
    for part in &document.parts {
        let of_part = part.blocks.iter().filter_map(|block| match block {
            Block::Chart(chart) => Some(chart),
            _ => None,
        });
        charts.extend(of_part.enumerate());
    }
    charts.sort_by_key(|(place, _)| *place);
    let mut room = MOST_PICTURES;
    let mut inlined = HashMap::new();
    for (_, chart) in charts {
        let svg = chart.svg_without_style();
        let Some(left) = room.checked_sub(svg.len()) else {
            break;
        };
        room = left;
        inlined.insert(chart.file.clone(), svg);
    }
    inlined
}

/// Written with every report, beside this file.
const FILES: [(&str, &str, &str); 4] = [
    ("report", "md", "The same in markdown"),
    ("report", "xlsx", "The tables as a workbook"),
    ("report", "csv", "Every figure on a line of its own"),
    ("report", "json", "The same for programs"),
];

impl Page {
    /// The document in the order in which a page is read.
    pub fn of(document: &Document, names: &Names<'_>) -> Self {
        let mut chapters = Vec::new();
        let inlined = inlined(document);
        let mut parts = document.parts.iter().peekable();
        // What comes before the first part that is about no figures.
        let is_of_figures = |part: &&Part| {
            matches!(
                part.kind,
                PartKind::Answer { .. } | PartKind::Across | PartKind::Load { .. }
            )
        };
        while let Some(part) = parts.next_if(is_of_figures) {
            chapters.push(chapter(document, part, names, &inlined));
        }
        chapters.push(environment(document));
        for part in parts {
            chapters.push(chapter(document, part, names, &inlined));
        }
        if !document
            .parts
            .iter()
            .any(|part| part.kind == PartKind::Files)
        {
            chapters.push(Chapter {
                id: "files".to_owned(),
                short: "Files".to_owned(),
                title: "Files beside this report".to_owned(),
                load_hash: None,
                pieces: vec![Piece::Links(files(names))],
            });
        }
        let heading = heading(document.suite);
        Self {
            title: format!("{heading}: run {}", text::one_line(&document.run)),
            heading,
            lead: lead(document),
            policy: policy(),
            style: format!("{STYLE}{}\n", palette::STYLE),
            script: SCRIPT,
            warnings: lines(&document.warnings),
            chapters,
        }
    }
}

fn heading(suite: Suite) -> &'static str {
    match suite {
        Suite::Websocket => "WebSocket servers compared",
        Suite::Relay => "TCP relays compared",
        Suite::Transfer => "TCP transfer servers compared",
    }
}

/// Our own words in pieces, and whether each is code.
fn prose(text: &str) -> Prose {
    let pieces = text.split('`').enumerate();
    pieces
        .map(|(index, piece)| (index % 2 == 1, piece.to_owned()))
        .collect()
}

fn lines(texts: &[String]) -> Vec<String> {
    texts.iter().map(|line| text::one_line(line)).collect()
}

/// When, what and where, in a line.
fn lead(document: &Document) -> String {
    let wanted = ["Run", "Started", "Profile", "Trials", "Rounds", "CPU"];
    let facts = wanted.iter().filter_map(|wanted| {
        let found = document.facts.iter().find(|(name, _)| name == wanted)?;
        let value = text::one_line(&found.1);
        Some(match *wanted {
            "Started" | "CPU" => value,
            name => format!("{} {value}", name.to_lowercase()),
        })
    });
    facts.collect::<Vec<_>>().join(" · ")
}

fn environment(document: &Document) -> Chapter {
    let facts = document.facts.iter();
    let facts = facts.map(|(name, value)| (text::one_line(name), text::one_line(value)));
    let mut pieces = vec![Piece::Facts(facts.collect())];
    if !document.commands.is_empty() {
        pieces.push(Piece::Heading("To do it again".to_owned()));
        pieces.push(Piece::Code(lines(&document.commands).join("\n")));
    }
    Chapter {
        id: "environment".to_owned(),
        short: "Environment".to_owned(),
        title: "Environment".to_owned(),
        load_hash: None,
        pieces,
    }
}

fn files(names: &Names<'_>) -> Vec<Link> {
    let links = FILES.iter().map(|(name, ending, about)| {
        let file = names.file(name, ending);
        Link {
            href: names.path(&file),
            text: format!("{about}: {file}"),
        }
    });
    links.collect()
}

/// What a chapter is called in the list of all.
fn short(part: &Part) -> String {
    match &part.kind {
        PartKind::Answer { .. } => answer::TITLE.to_owned(),
        PartKind::Load { short, .. } => short.clone(),
        PartKind::Logs => "Logs".to_owned(),
        PartKind::Files => "Files".to_owned(),
        _ => part.title.clone(),
    }
}

fn chapter(document: &Document, part: &Part, names: &Names<'_>, inlined: &Inlined) -> Chapter {
    let mut pieces = Vec::new();
    let mut charts = Vec::new();
    let mut links = match part.kind {
        PartKind::Files => files(names),
        _ => Vec::new(),
    };
    let is_load = matches!(part.kind, PartKind::Load { .. });
    for block in &part.blocks {
        match block {
            Block::Paragraph(text) => pieces.push(Piece::Paragraph(prose(text))),
            Block::List(items) if is_load => pieces.push(Piece::About(items.clone())),
            Block::List(items) => pieces.push(Piece::List(items.clone())),
            Block::Grid(grid) if matches!(part.kind, PartKind::Answer { .. }) => {
                pieces.push(Piece::Answers(
                    grid.rows.iter().filter_map(answered).collect(),
                ));
                pieces.push(Piece::Notes(lines(&grid.notes)));
            }
            Block::Grid(grid) => pieces.push(Piece::Table(table(part, grid))),
            Block::Absent { is_silent, .. } if *is_silent => {}
            Block::Absent { title, reason, .. } => {
                pieces.push(Piece::Heading(title.clone()));
                pieces.push(Piece::Paragraph(prose(reason)));
            }
            Block::Chart(chart) => charts.push(chart),
            Block::Definitions { title, lines, .. } => {
                pieces.push(Piece::Heading(title.clone()));
                pieces.push(Piece::Definitions(
                    lines.iter().map(|line| prose(line)).collect(),
                ));
            }
            Block::Log(log) => pieces.extend(logged(log)),
            Block::File(file) => links.push(Link {
                href: names.path(&names.attachment(file)),
                text: text::one_line(&file.title),
            }),
        }
    }
    // The picture of the answer is its load's first: it is shown once.
    if let PartKind::Answer { load_hash } = &part.kind {
        charts.extend(headline(document, load_hash));
    } else if let Some(first) = part
        .load_hash()
        .and_then(|hash| answered_by(document, hash))
    {
        charts.retain(|chart| chart.file != first.file);
    }
    if !links.is_empty() {
        pieces.push(Piece::Links(links));
    }
    if !charts.is_empty() {
        let charts = charts
            .iter()
            .map(|chart| picture(chart, names, inlined))
            .collect();
        // Pictures first: they are what is looked at.
        let after = pieces
            .iter()
            .take_while(|piece| matches!(piece, Piece::About(_) | Piece::Answers(_)));
        pieces.insert(after.count(), Piece::Pictures(charts));
    }
    let title = match &part.kind {
        PartKind::Load { short, .. } => short.clone(),
        _ => part.title.clone(),
    };
    Chapter {
        id: part.id.clone(),
        short: text::one_line(&short(part)),
        title: text::one_line(&title),
        load_hash: part.load_hash().map(str::to_owned),
        pieces,
    }
}

/// The picture that shows what a load is about.
fn headline<'a>(document: &'a Document, load_hash: &str) -> Option<&'a Chart> {
    let mut charts = document.charts();
    let first = charts.find(|(part, _)| part.load_hash() == Some(load_hash));
    first.map(|(_, chart)| chart)
}

/// That picture, if it stands above all loads.
fn answered_by<'a>(document: &'a Document, load_hash: &str) -> Option<&'a Chart> {
    let is_answer =
        |part: &Part| matches!(&part.kind, PartKind::Answer { load_hash: of } if of == load_hash);
    let is_answered = document.parts.iter().any(is_answer);
    headline(document, load_hash).filter(|_| is_answered)
}

/// See [`answer::of`] for the columns.
fn answered(row: &crate::table::Line) -> Option<Answer> {
    let shown: Vec<String> = row
        .cells
        .iter()
        .map(|cell| text::one_line(&text::cell(cell)))
        .collect();
    let [what, who, value, span, next, its, sure] = shown.as_slice() else {
        return None;
    };
    let is_there = |text: &&String| text.as_str() != units::MISSING;
    let mut rest = Vec::new();
    rest.extend(
        Some(span)
            .filter(is_there)
            .map(|span| format!("rounds {span}")),
    );
    rest.extend(
        Some(next)
            .filter(is_there)
            .map(|next| format!("next: {next}, {its}")),
    );
    rest.extend(Some(sure).filter(is_there).cloned());
    Some(Answer {
        what: what.clone(),
        who: who.clone(),
        value: value.clone(),
        rest,
    })
}

fn logged(log: &Log) -> [Piece; 2] {
    let Log {
        subject,
        load_hash,
        round,
        ..
    } = log;
    let heading = format!(
        "{}, round {round}, load {load_hash}",
        text::one_line(subject)
    );
    let cut = log.is_cut.then(|| "...".to_owned());
    let lines: Vec<String> = cut.into_iter().chain(lines(&log.lines)).collect();
    [Piece::Heading(heading), Piece::Code(lines.join("\n"))]
}

fn picture(chart: &Chart, names: &Names<'_>, inlined: &Inlined) -> Picture {
    Picture {
        id: format!("chart-{}", chart.file),
        title: text::one_line(&chart.title),
        svg: inlined.get(&chart.file).cloned(),
        link: names.link(chart),
    }
}

fn table(part: &Part, grid: &Grid) -> Table {
    let id = part.grid_id(grid);
    let is_words = |column: usize| {
        let mut cells = grid.rows.iter().filter_map(|row| row.cells.get(column));
        column < grid.words() || cells.all(|cell| cell.unit().is_none())
    };
    let columns: Vec<Column> = (grid.header.iter().enumerate())
        .map(|(index, name)| Column {
            name: text::one_line(name),
            is_words: is_words(index),
            unit: grid.unit(index).map_or("", units::Unit::base),
        })
        .collect();
    let ids = document::row_ids(&id, grid);
    let rows = grid.rows.iter().zip(ids).map(|(row, id)| {
        let words: Vec<String> = row.cells.iter().map(word).collect();
        let mut cells = (row.cells.iter().zip(&columns)).map(|(cell, column)| Shown {
            class: class(cell, column),
            text: text::one_line(&text::cell(cell)),
        });
        Row {
            id,
            // As pictures name whom a mark is of.
            subject: row.subject.as_deref().map(printable),
            words: words.join(" "),
            name: cells.next().map_or_else(String::new, |cell| cell.text),
            cells: cells.collect(),
        }
    });
    Table {
        heading: part.heading_of(&grid.title).map(str::to_owned),
        title: grid.title.clone(),
        of: part.title.clone(),
        names: grid.names,
        rows: rows.collect(),
        notes: lines(&grid.notes),
        columns,
        id,
    }
}

fn class(cell: &Cell, column: &Column) -> &'static str {
    match cell {
        Cell::Failed { .. } => "failed",
        Cell::Placed(_, _, Place::First) => "first",
        _ if column.is_words => "words",
        _ => "",
    }
}

/// A cell as the script reads it, in base units and in full.
fn word(cell: &Cell) -> String {
    let figures = match cell {
        Cell::Number(value, _) | Cell::Placed(value, _, _) => vec![*value],
        Cell::Span(a, b, _) | Cell::Change(a, b, _) | Cell::Part(a, b, _) => vec![*a, *b],
        Cell::Missing | Cell::Text(_) | Cell::Failed { .. } => Vec::new(),
    };
    let separator = match cell {
        Cell::Text(_) => return ".".to_owned(),
        Cell::Failed { .. } => return "!".to_owned(),
        Cell::Part(..) => "/",
        Cell::Change(..) => ">",
        _ => ":",
    };
    if figures.is_empty() || figures.iter().any(|value| !value.is_finite()) {
        return units::MISSING.to_owned();
    }
    let figures: Vec<String> = figures.iter().map(f64::to_string).collect();
    figures.join(separator)
}
