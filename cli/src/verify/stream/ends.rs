//! An end is passed on as what it is, behind the bytes before it, and takes nothing
//! else with it.

use super::Kind;
use super::ask::Question;
use super::flow::{self, End};
use super::scene::{Link, Scene, Way, reset};
use super::upstream::Role;
use crate::verify::case::{Case, Group, Outcome, Wrong};
use wsbench_schema::Level;

/// More than what one buffer holds.
const BYTES: u64 = 100_000;
/// More than all that is between a client and an origin with small buffers.
const OFFERED_BYTES: u64 = 8 << 20;
const SMALL_READ_BYTES: usize = 4096;

pub fn cases(kind: Kind) -> Vec<Case<Question>> {
    let mut group = Group::new("ends");
    match kind {
        Kind::Relay => Way::BOTH
            .into_iter()
            .for_each(|way| relayed(&mut group, way)),
        Kind::Echo => echoed(&mut group),
    }
    group.cases()
}

fn relayed(group: &mut Group<Question>, way: Way) {
    let (from, to) = (way.from(), way.to());
    group.ask(
        Level::Must,
        format!("{from} ends first"),
        format!(
            "the end (FIN) passed on behind {BYTES} bytes, and {BYTES} bytes of the {to} after it"
        ),
        move |scene| {
            let link = scene.open(Role::Plain)?;
            flow::run(&mut [link.flow(way, BYTES).last()], scene.patience)?;
            flow::run(&mut [link.flow(way.back(), BYTES).last()], scene.patience)
        },
    );
    group.ask(
        Level::Must,
        format!("{from} ends while the {to} does not read"),
        "all that was sent before the end (FIN), then the end, then bytes the other way",
        move |scene| {
            let link = scene.open(Role::Narrow)?;
            end_when_full(scene, &link, way)?;
            flow::run(&mut [link.flow(way.back(), 1000).last()], scene.patience)
        },
    );
    group.ask(
        Level::Must,
        format!("{from} resets"),
        format!("the {to}'s connection ended or reset"),
        move |scene| after_reset(scene, way).map(drop),
    );
    group.ask(
        Level::Should,
        format!("{from} resets: passed on"),
        format!("the {to}'s connection reset"),
        move |scene| is_reset(after_reset(scene, way)?),
    );
    group.ask(
        Level::Must,
        format!("{from} resets with bytes under way"),
        format!("right bytes as far as they come, then the {to}'s connection ended or reset"),
        move |scene| reset_when_full(scene, way).map(drop),
    );
    group.ask(
        Level::Should,
        format!("{from} resets with bytes under way: passed on"),
        format!("the {to}'s connection reset: what came is not to be taken for all"),
        move |scene| is_reset(reset_when_full(scene, way)?),
    );
    group.ask(
        Level::Must,
        format!("{from} resets after the {to} has ended"),
        format!("the {to}'s connection ended or reset"),
        move |scene| {
            let link = scene.open(Role::Plain)?;
            flow::run(&mut [link.flow(way.back(), 1000).last()], scene.patience)?;
            reset(link.source(way))?;
            link.flow(way, 0).end(scene.patience).map(drop)
        },
    );
}

fn echoed(group: &mut Group<Question>) {
    group.ask(
        Level::Must,
        "client ends while it does not read",
        "all that was sent before the end (FIN), then the end",
        |scene| {
            let link = scene.open(Role::Narrow)?;
            end_when_full(scene, &link, Way::ToOrigin)
        },
    );
    group.ask(
        Level::Must,
        "client resets",
        "the next client served, five times",
        |scene| {
            others_after(scene, |link| {
                flow::run(&mut link.flows(1000), scene.patience)
            })
        },
    );
    group.ask(
        Level::Must,
        "client resets with bytes under way",
        "the next client served, five times",
        |scene| {
            others_after(scene, |link| {
                let mut flow = [link.flow(Way::ToOrigin, OFFERED_BYTES)];
                flow::fill(&mut flow, scene.scale.quiet, scene.patience)
            })
        },
    );
}

/// The next client is served after one was reset.
fn others_after(scene: &Scene<'_>, begin: impl Fn(&Link<'_>) -> Outcome) -> Outcome {
    for _ in 0..5 {
        let link = scene.open(Role::Narrow)?;
        begin(&link)?;
        reset(&link.near)?;
        let next = scene.open(Role::Plain)?;
        flow::run(&mut next.flows(1000), scene.patience)?;
    }
    Ok(())
}

/// Fills everything on that way, ends it, and only then reads.
fn end_when_full(scene: &Scene<'_>, link: &Link<'_>, way: Way) -> Outcome {
    let mut flow = [link.flow(way, OFFERED_BYTES).read_by(SMALL_READ_BYTES)];
    flow::fill(&mut flow, scene.scale.quiet, scene.patience)?;
    flow[0].cut();
    flow[0].is_last = true;
    flow[0].write()?;
    flow::run(&mut flow, scene.patience)
}

fn after_reset(scene: &Scene<'_>, way: Way) -> Outcome<End> {
    let link = scene.open(Role::Plain)?;
    flow::run(&mut link.flows(1000), scene.patience)?;
    reset(link.source(way))?;
    link.flow(way, 0).end(scene.patience)
}

fn reset_when_full(scene: &Scene<'_>, way: Way) -> Outcome<End> {
    let link = scene.open(Role::Narrow)?;
    let mut flow = [link.flow(way, OFFERED_BYTES)];
    flow::fill(&mut flow, scene.scale.quiet, scene.patience)?;
    reset(link.source(way))?;
    flow[0].end(scene.patience)
}

fn is_reset(end: End) -> Outcome {
    match end {
        End::Reset => Ok(()),
        End::Whole => Err(Wrong::new(end.name())),
    }
}
