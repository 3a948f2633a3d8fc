//! Who does not read is not read for: what waits for it is bounded, arrives when it
//! reads again, and stops nobody else.

use super::Kind;
use super::ask::Question;
use super::flow::{self, Flow, Pieces};
use super::scene::{Link, Scene, Way};
use super::upstream::Role;
use crate::verify::case::{Case, Group, Outcome, Wrong};
use std::sync::Arc;
use wsbench_schema::Level;

/// More than all that is between two ends with small buffers, so that they are full.
const FULL_BYTES: u64 = 8 << 20;
/// What a stalled connection may add to the memory of a subject.
const MEMORY_MOST_BYTES: u64 = 16 << 20;
/// Connections that stall while memory is looked at.
const LOOKED_AT: usize = 4;
/// More than the places of the largest pipe.
const SINGLE_BYTES: u64 = 1000;
const SMALL_READ_BYTES: usize = 1000;

pub fn cases(kind: Kind) -> Vec<Case<Question>> {
    let mut group = Group::new("stall");
    let ways = match kind {
        Kind::Relay => &Way::BOTH[..],
        Kind::Echo => &Way::BOTH[1..],
    };
    for way in ways {
        of_way(&mut group, kind, *way);
    }
    group.ask(
        Level::Must,
        "memory",
        format!(
            "no more than {} MiB of memory for {LOOKED_AT} connections that are offered 64 MiB each and not read from",
            MEMORY_MOST_BYTES >> 20
        ),
        memory,
    );
    group.cases()
}

fn of_way(group: &mut Group<Question>, kind: Kind, way: Way) {
    let reader = way.to();
    group.ask(
        Level::Must,
        format!("{reader} does not read"),
        "not all of 64 MiB taken from who writes",
        move |scene| {
            let link = scene.open(Role::Narrow)?;
            let mut flow = [link.flow(way, scene.scale.offered_bytes)];
            flow::fill(&mut flow, scene.scale.quiet, scene.patience)?;
            match flow[0].sent < flow[0].content.length {
                true => Ok(()),
                false => Err(Wrong::new(format!("all {} bytes taken", flow[0].sent))),
            }
        },
    );
    group.ask(
        Level::Must,
        format!("{reader} reads again"),
        "all that was taken, whole and in order, and what is written then",
        move |scene| {
            let link = scene.open(Role::Narrow)?;
            let mut flow = [full(scene, &link, way)?];
            flow[0].content.length = flow[0].sent + FULL_BYTES;
            flow::run(&mut flow, scene.patience)
        },
    );
    group.ask(
        Level::Must,
        format!("{reader} reads slowly what comes in segments of one byte"),
        format!("all of it, and {SINGLE_BYTES} segments of one byte behind what fills everything"),
        move |scene| {
            let link = scene.open(Role::Narrow)?;
            let mut flow = [full(scene, &link, way)?
                .read_by(SMALL_READ_BYTES)
                .in_pieces(Pieces::Singles(Arc::clone(scene.scatter)))];
            flow[0].content.length = flow[0].sent + SINGLE_BYTES;
            flow::run(&mut flow, scene.patience)
        },
    );
    group.ask(
        Level::Must,
        format!("{reader} does not read: other connections"),
        "ten others, on the same port and another, served as before",
        move |scene| {
            let link = scene.open(Role::Narrow)?;
            full(scene, &link, way)?;
            [Role::Plain, Role::Narrow]
                .into_iter()
                .try_for_each(|role| {
                    (0..5).try_for_each(|_| {
                        let other = scene.open(role)?;
                        flow::run(&mut other.flows(1000), scene.patience)
                    })
                })
        },
    );
    if kind == Kind::Relay {
        group.ask(
            Level::Must,
            format!("{reader} does not read: the other way"),
            "bytes the other way on the same connection",
            move |scene| {
                let link = scene.open(Role::Narrow)?;
                full(scene, &link, way)?;
                flow::run(&mut [link.flow(way.back(), 200_000)], scene.patience)
            },
        );
    }
}

/// A flow that is not read from, until nothing more is taken.
fn full<'l>(scene: &Scene<'_>, link: &'l Link<'_>, way: Way) -> Outcome<Flow<'l>> {
    let mut flow = [link.flow(way, FULL_BYTES)];
    flow::fill(&mut flow, scene.scale.quiet, scene.patience)?;
    let [mut flow] = flow;
    flow.cut();
    Ok(flow)
}

fn memory(scene: &Scene<'_>) -> Outcome {
    let links = scene.open_many(Role::Narrow, LOOKED_AT)?;
    let before = scene.held()?.rss_bytes;
    let ways = Way::BOTH.into_iter().cycle();
    let flows = links.iter().zip(ways);
    let mut flows: Vec<_> = flows
        .map(|(link, way)| link.flow(way, scene.scale.offered_bytes))
        .collect();
    flow::fill(&mut flows, scene.scale.quiet, scene.patience)?;
    let grown = scene.held()?.rss_bytes.saturating_sub(before);
    match grown <= MEMORY_MOST_BYTES {
        true => Ok(()),
        false => Err(Wrong::new(format!("{} MiB more than before", grown >> 20))),
    }
}
