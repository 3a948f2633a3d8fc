//! An origin that is not there, is late, or goes away: the client is told, and
//! others are served.

use super::Kind;
use super::ask::{Ask, Question};
use super::flow::{self, End, Pieces};
use super::scene::{Link, Scene, Way, reset};
use super::upstream::Role;
use crate::verify::case::{Case, Group, Outcome, Wrong};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use wsbench_schema::Level;

/// Connections that are refused one after another.
const REFUSED: usize = 20;
/// More than a pipe has places.
const SINGLE_BYTES: u64 = 600;
/// For how long the slow one answers nobody.
const SLOW: Duration = Duration::from_millis(200);
/// The kernel asks a silent host again after a second, and then after two more.
const SLOW_SILENCE: Duration = Duration::from_secs(4);
/// What an origin reads before it goes.
const READ_BYTES: u64 = 10_000;

pub fn cases(kind: Kind) -> Vec<Case<Question>> {
    let mut group = Group::new("origin");
    if kind == Kind::Echo {
        return group.cases();
    }
    group.ask(
        Level::Must,
        "refused",
        "the client's connection ended or reset",
        |scene| scene.refused().map(drop),
    );
    group.ask(
        Level::Should,
        "refused: passed on",
        "the client's connection reset",
        |scene| match scene.refused()? {
            End::Reset => Ok(()),
            End::Whole => Err(Wrong::new(End::Whole.name())),
        },
    );
    group.ask(
        Level::Must,
        "refused: others",
        format!("another client served after {REFUSED} whose origin was not there"),
        |scene| {
            for _ in 0..REFUSED {
                scene.refused()?;
            }
            let link = scene.open(Role::Plain)?;
            flow::run(&mut link.flows(1000), scene.patience)
        },
    );
    let aside: Ask = Box::new(slow);
    group.put(
        Level::Must,
        "late",
        format!(
            "{SINGLE_BYTES} segments of one byte, sent before the origin takes the connection, \
             then the end (FIN), then bytes of the origin"
        ),
        Question {
            ask: aside,
            aside: true,
        },
    );
    group.ask(
        Level::Must,
        "closes while the client writes",
        "the client's connection reset soon",
        |scene| goes(scene, close),
    );
    group.ask(
        Level::Must,
        "resets while the client writes",
        "the client's connection reset soon",
        |scene| goes(scene, |link| link.far.as_ref().map_or(Ok(()), reset)),
    );
    group.cases()
}

fn slow(scene: &Scene<'_>) -> Outcome {
    let scene = scene.patient(SLOW_SILENCE);
    let Some(upstream) = scene.upstream else {
        return Ok(());
    };
    let cannot = |error| Wrong::new(format!("the examiner cannot be slow: {error:#}"));
    upstream.hold_back().map_err(cannot)?;
    let mut link = scene.half_open(Role::Slow)?;
    let mut early = [link
        .flow(Way::ToOrigin, SINGLE_BYTES)
        .in_pieces(Pieces::Singles(Arc::clone(scene.scatter)))];
    flow::fill(&mut early, SLOW, scene.patience)?;
    let sent = early[0].sent;
    thread::sleep(SLOW);
    upstream.relent();
    link.far = Some(upstream.accept(Role::Slow, scene.patience)?);
    let mut late = link.flow(Way::ToOrigin, SINGLE_BYTES).last();
    late.sent = sent;
    flow::run(&mut [late], scene.patience)?;
    flow::run(&mut [link.flow(Way::ToClient, 1000).last()], scene.patience)
}

/// Closed politely: nothing that came is unread.
fn close(link: &mut Link<'_>) -> Outcome {
    drop(link.far.take());
    Ok(())
}

/// Has the origin go while the client goes on to write.
fn goes(scene: &Scene<'_>, go: impl Fn(&mut Link<'_>) -> Outcome) -> Outcome {
    let mut link = scene.open(Role::Plain)?;
    let mut read = [link.flow(Way::ToOrigin, READ_BYTES)];
    flow::run(&mut read, scene.patience)?;
    go(&mut link)?;
    link.flow(Way::ToOrigin, scene.scale.offered_bytes)
        .write_until_reset(scene.patience)
}
