//! Many connections at once: each gets its own bytes, and those that are full
//! harm nobody, neither while they last nor when they are gone.

use super::Kind;
use super::ask::Question;
use super::flow::{self, Flow};
use super::scene::{Link, Scene, Way, reset};
use super::upstream::Role;
use crate::verify::case::{Case, Group, Outcome, Wrong};
use wsbench_client::limits::allow_connections;
use wsbench_schema::Level;

/// Bytes of a round trip: differs from one to the next.
const ROUND_TRIP_MOST_BYTES: u64 = 4000;
/// More than a relay with the largest pipes holds between two ends with small buffers.
const FULL_BYTES: u64 = 2 << 20;

pub fn cases(kind: Kind) -> Vec<Case<Question>> {
    let mut group = Group::new("many");
    let (crowd, stalled) = match kind {
        Kind::Relay => ("2000", "300"),
        Kind::Echo => ("1000", "300"),
    };
    group.ask(
        Level::Must,
        "at once",
        format!("{crowd} connections at once, on each a round trip of its own bytes"),
        |scene| {
            let links = open(scene, Role::Plain, scene.scale.crowd)?;
            round_trips(scene, &links)
        },
    );
    group.ask(
        Level::Must,
        "full at once",
        format!(
            "{stalled} connections full of bytes at once, another served, then all of their bytes"
        ),
        full_at_once,
    );
    group.ask(
        Level::Must,
        "reset when full",
        format!("nothing of {stalled} connections that were reset when full in as many new ones"),
        |scene| {
            let links = open(scene, Role::Narrow, scene.scale.stalled)?;
            fill(scene, &links)?;
            // Half of them by the client.
            for (link, way) in links.iter().zip(Way::BOTH.into_iter().cycle()) {
                reset(link.source(way))?;
            }
            drop(links);
            let links = open(scene, Role::Narrow, scene.scale.stalled)?;
            round_trips(scene, &links)
        },
    );
    group.cases()
}

/// With leave to have as many sockets.
fn open<'a>(scene: &Scene<'a>, role: Role, count: usize) -> Outcome<Vec<Link<'a>>> {
    // A socket at each end.
    let sockets = u32::try_from(2 * count).unwrap_or(u32::MAX);
    let refused = |error| Wrong::new(format!("the examiner {error}"));
    allow_connections(sockets).map_err(refused)?;
    scene.open_many(role, count)
}

/// To the origin on all of them, then back on all.
fn round_trips(scene: &Scene<'_>, links: &[Link<'_>]) -> Outcome {
    for way in Way::of(scene.upstream.is_some()) {
        let lengths = (1..=ROUND_TRIP_MOST_BYTES).rev().step_by(7).cycle();
        let flows = links.iter().zip(lengths);
        let mut flows: Vec<_> = flows
            .map(|(link, length)| link.flow(*way, length))
            .collect();
        flow::run(&mut flows, scene.patience)?;
    }
    Ok(())
}

/// Half of them each way, until nothing more is taken.
fn fill<'l>(scene: &Scene<'_>, links: &'l [Link<'_>]) -> Outcome<Vec<Flow<'l>>> {
    let flows = links.iter().zip(Way::BOTH.into_iter().cycle());
    let mut flows: Vec<_> = flows
        .map(|(link, way)| link.flow(way, FULL_BYTES))
        .collect();
    flow::fill(&mut flows, scene.scale.quiet, scene.patience)?;
    flows.iter_mut().for_each(Flow::cut);
    Ok(flows)
}

fn full_at_once(scene: &Scene<'_>) -> Outcome {
    let links = open(scene, Role::Narrow, scene.scale.stalled)?;
    let mut flows = fill(scene, &links)?;
    let other = scene.open(Role::Plain)?;
    flow::run(&mut other.flows(1000), scene.patience)?;
    flow::run(&mut flows, scene.patience)
}
