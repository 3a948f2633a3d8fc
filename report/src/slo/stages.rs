//! Every stage of every search, one a line: nothing that was measured is left out.

use super::{
    Subject, client_busy, figure, heading, latencies, number, percentile, permilles, server_busy,
};
use crate::row::Cell;
use crate::table::{Grid, Line};
use crate::units::Unit;
use wsbench_schema::mark::NOISY;
use wsbench_schema::{Objective, SloRecord, SloStage, StageVerdict, metric};

/// Messages answered a second, over the time in which they were due or as long as the last
/// answer took.
fn achieved(stage: &SloStage) -> Option<f64> {
    let elapsed = figure(stage, metric::ELAPSED)?.max(figure(stage, metric::DURATION)?);
    (elapsed > 0.0).then_some(figure(stage, metric::SUCCEEDED)? * 1e9 / elapsed)
}

/// The table.
pub(super) fn grid(objective: &Objective, subjects: &[Subject<'_>]) -> Grid {
    let permilles = permilles(objective);
    let mut header = ["Framework", "Round", "Stage", "For", "Rate", "Achieved"]
        .map(str::to_owned)
        .to_vec();
    header.extend(permilles.iter().map(|permille| heading(*permille)));
    header.extend(["Failed", "Server busy", "Client busy", "Verdict"].map(str::to_owned));
    let mut rows = Vec::new();
    for subject in subjects {
        for round in &subject.rounds {
            for (index, stage) in round.stages.iter().enumerate() {
                rows.push(row(subject, round, index, stage, &permilles));
            }
        }
    }
    Grid {
        file: "slo-stages".to_owned(),
        title: "Stages of the searches".to_owned(),
        names: 3,
        header,
        rows,
        notes: vec![
            "Achieved: messages answered a second. Each stage has a fresh server process and fresh connections, warmed up by a second of echoes at most that is not shown.".to_owned(),
        ],
    }
}

fn row(
    subject: &Subject<'_>,
    round: &SloRecord,
    index: usize,
    stage: &SloStage,
    permilles: &[u64],
) -> Line {
    let again = if stage.is_repeat { " again" } else { "" };
    let mut cells = vec![
        Cell::Text(subject.name.to_owned()),
        Cell::Number(round.round.into(), Unit::Count),
        Cell::Number(number(index as u64 + 1), Unit::Count),
        Cell::Text(format!("{}{again}", stage.kind)),
        Cell::Number(number(stage.rate_per_s), Unit::PerSecond),
        Cell::of(achieved(stage), Unit::PerSecond),
    ];
    let found = latencies(stage);
    cells.extend(permilles.iter().map(|permille| {
        let latency = found
            .as_ref()
            .and_then(|found| percentile(found, *permille));
        Cell::of(latency, Unit::Duration)
    }));
    cells.extend([
        Cell::of(figure(stage, metric::FAILED), Unit::Count),
        Cell::of(server_busy(stage), Unit::Percent),
        Cell::of(client_busy(stage), Unit::Percent),
        Cell::Text(verdict(stage)),
    ]);
    Line::of(subject.name, cells)
}

fn verdict(stage: &SloStage) -> String {
    let verdict = match &stage.verdict {
        StageVerdict::Held => "held".to_owned(),
        StageVerdict::Missed { reason } => format!("missed: {reason}"),
        StageVerdict::ClientBound { reason } => format!("client-bound: {reason}"),
    };
    match stage.marks.get(NOISY) {
        Some(noise) => format!("{verdict} (disturbed: {noise})"),
        None => verdict,
    }
}
