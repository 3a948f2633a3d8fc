//! Subjects with a patched crate, each compared with the one without. It is what such a
//! run is made for, so these comparisons are decided apart from all others, of which
//! there may be many.

use crate::compare::{self, Answer, LEVEL, Question, ratio};
use crate::differences::{self, Difference, MEASURES};
use crate::row::Cell;
use crate::section::{Section, Subject};
use crate::table::{Grid, Line};
use crate::tables;
use crate::units::Unit;
use wsbench_schema::setting;

/// A row for each of them and figure, whoever lies between the two. `None` if none is
/// patched, or it has no figures.
#[must_use]
pub fn grid(section: &Section) -> Option<Grid> {
    let (mut pairs, mut questions) = (Vec::new(), Vec::new());
    for measure in MEASURES {
        let ranked = differences::ranked(&section.subjects, measure);
        for (subject, of) in &ranked {
            let own = patch_of(subject).and_then(|own| {
                let mut others = ranked.iter();
                others.find(|(other, _)| other.name == own)
            });
            if let Some((own, to)) = own {
                pairs.push((measure, subject.name.clone(), own.name.clone()));
                questions.push(Question {
                    of: of.clone(),
                    to: to.clone(),
                });
            }
        }
    }
    if pairs.is_empty() {
        return None;
    }
    let answers = compare::decide(&questions);
    let asked = pairs.into_iter().zip(questions.into_iter().zip(answers));
    let told = |((measure, subject, to), (rounds, answer)): (_, (Question, Answer))| {
        line(&Difference {
            load_hash: section.load_hash.clone(),
            measure,
            subject,
            to,
            interval: ratio::interval(&rounds.of, &rounds.to),
            rounds,
            answer,
            is_next: false,
        })
    };
    Some(Grid {
        file: "patched".to_owned(),
        title: "Patched against not patched".to_owned(),
        names: 1,
        header: [
            tables::subject_is_a(section.suite),
            "Figure",
            "Against",
            "Ratio",
            "95 % interval",
            "Verdict",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: asked.map(told).collect(),
        notes: vec![format!(
            "Two programs that differ in the patched crates only, measured in turn: ratio of the medians over rounds, with a \
             bootstrap interval. Decided together, and apart from all other comparisons, at {} % (rank sum test, \
             Benjamini-Hochberg). ~ means that no difference is shown, which does not prove that there is none.",
            LEVEL * 100.0,
        )],
    })
}

/// The subject that this one is compared with, if it is a patched one.
fn patch_of(subject: &Subject) -> Option<&str> {
    let trial = subject.completed.first()?;
    trial.settings.get(setting::PATCH_OF).map(String::as_str)
}

fn line(difference: &Difference) -> Line {
    let cells = vec![
        Cell::Text(difference.subject.clone()),
        Cell::Text(difference.measure.name.to_owned()),
        Cell::Text(difference.to.clone()),
        Cell::of(difference.answer.ratio, Unit::Ratio),
        difference.interval.map_or(Cell::Missing, |(low, high)| {
            Cell::Span(low, high, Unit::Ratio)
        }),
        Cell::Text(difference.verdict()),
    ];
    Line::of(&difference.subject, cells)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use wsbench_schema::TrialRecord;

    /// Rounds in which everything took these percentages of the usual time.
    fn rounds(name: &str, paces: std::ops::Range<u64>) -> Vec<TrialRecord> {
        let paces = (1..).zip(paces);
        paces
            .map(|(round, pace)| example::paced(name, round, pace))
            .collect()
    }

    fn patched(name: &str, paces: std::ops::Range<u64>) -> Vec<TrialRecord> {
        let mut trials = rounds(name, paces);
        for trial in &mut trials {
            (trial.settings).insert(setting::PATCH_OF.into(), "axum".into());
        }
        trials
    }

    fn rows(records: &[TrialRecord]) -> Option<Vec<String>> {
        let report = crate::Report::new(&example::plan(&[], 3), records).unwrap();
        let document = report.document();
        let mut grids = document.grids();
        let (_, grid) = grids.find(|(_, grid)| grid.file == "patched")?;
        let rows = grid.rows.iter().map(|row| {
            let cells = row.cells.iter().map(crate::text::cell);
            cells.collect::<Vec<_>>().join(" ")
        });
        Some(rows.collect())
    }

    #[test]
    fn a_patched_subject_is_told_against_its_own_whoever_lies_between() {
        let records = [
            rounds("axum", 100..106),
            rounds("between", 115..121),
            patched("axum+t@my", 130..136),
        ]
        .concat();
        let rows = rows(&records).unwrap();
        assert_eq!(rows.len(), 3, "{rows:?}");
        let cpu = "axum+t@my Server CPU/msg axum 1.29 ";
        assert!(
            rows[0].starts_with(cpu) && rows[0].ends_with(" worse"),
            "{rows:?}"
        );
        let tps = "axum+t@my TPS axum 0.77 ";
        assert!(
            rows[1].starts_with(tps) && rows[1].ends_with(" worse"),
            "{rows:?}"
        );
    }

    #[test]
    fn one_that_is_as_fast_is_not_said_to_differ_and_few_rounds_say_so() {
        let same = [rounds("axum", 100..106), patched("axum+t@my", 100..106)].concat();
        let told = rows(&same).unwrap();
        assert!(told.iter().all(|row| row.ends_with(" ~")), "{told:?}");
        let few = [rounds("axum", 100..103), patched("axum+t@my", 200..203)].concat();
        let told = rows(&few).unwrap();
        let says = |row: &String| row.ends_with("too few rounds (5 needed)");
        assert!(told.iter().all(says), "{told:?}");
    }

    #[test]
    fn nothing_is_told_where_none_is_patched_or_its_own_is_not_there() {
        assert_eq!(rows(&rounds("axum", 100..104)), None);
        assert_eq!(rows(&patched("axum+t@my", 100..104)), None);
    }
}
