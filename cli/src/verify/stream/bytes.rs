//! Bytes arrive whole and in order, whatever their number and however they are cut.

use super::Kind;
use super::ask::Question;
use super::flow::{self, Flow, Pieces};
use super::scene::{Scene, Way};
use super::upstream::Role;
use crate::verify::case::{Case, Group, Outcome};
use std::sync::Arc;
use wsbench_schema::{Level, SplitMix64};

/// Nothing, little, and what is next to a buffer's size.
const SIZES: [u64; 10] = [
    0,
    1,
    2,
    32_767,
    32_768,
    32_769,
    65_535,
    65_536,
    65_537,
    1 << 20,
];
const SEGMENTED_BYTES: u64 = 512 << 10;
const SEGMENT_MOST_BYTES: usize = 20_000;
/// More of them than a pipe has places for, which are 16 without a size asked for
/// and 256 in one of 1 MiB.
const SINGLE_BYTES: u64 = 600;
/// More than the largest pipe.
const LARGE_BYTES: u64 = 3 << 20;
const SMALL_READ_BYTES: usize = 1000;

pub fn cases(kind: Kind) -> Vec<Case<Question>> {
    let mut group = Group::new("bytes");
    let where_to = match kind {
        Kind::Relay => "each way",
        Kind::Echo => "there and back",
    };
    for size in SIZES {
        let expected = format!("{size} bytes {where_to}, whole and in order, then the end (FIN)");
        // How a connection ends that carried nothing is not about bytes.
        let level = match size {
            0 => Level::Should,
            _ => Level::Must,
        };
        group.ask(level, format!("{size} bytes"), expected, move |scene| {
            exchange(scene, Role::Plain, size, |flow| flow)
        });
    }
    group.ask(
        Level::Must,
        "random segments",
        format!("{SEGMENTED_BYTES} bytes {where_to} in segments of 1 to {SEGMENT_MOST_BYTES} bytes, three times"),
        |scene| {
            (0..3).try_for_each(|seed| {
                exchange(scene, Role::Plain, SEGMENTED_BYTES, |flow| {
                    flow.in_pieces(Pieces::Random(SplitMix64::new(seed), SEGMENT_MOST_BYTES))
                })
            })
        },
    );
    group.ask(
        Level::Must,
        "segments of one byte",
        format!("{SINGLE_BYTES} bytes {where_to}, each in a segment of its own"),
        |scene| {
            exchange(scene, Role::Plain, SINGLE_BYTES, |flow| {
                flow.in_pieces(Pieces::Singles(Arc::clone(scene.scatter)))
            })
        },
    );
    group.ask(
        Level::Must,
        "burst of segments of one byte",
        format!("{SINGLE_BYTES} bytes {where_to}, each in a segment, all sent before one is read"),
        burst,
    );
    group.ask(
        Level::Must,
        "small reads of large writes",
        format!("{LARGE_BYTES} bytes {where_to}, read {SMALL_READ_BYTES} at a time"),
        |scene| {
            exchange(scene, Role::Narrow, LARGE_BYTES, |flow| {
                flow.read_by(SMALL_READ_BYTES)
            })
        },
    );
    // HAProxy now and then resets what others have not read yet once both have ended.
    group.ask(
        Level::Should,
        "small reads when all has ended",
        format!(
            "{LARGE_BYTES} bytes {where_to} and the end (FIN), read {SMALL_READ_BYTES} at a time"
        ),
        |scene| {
            let link = scene.open(Role::Narrow)?;
            let flows = link.flows(LARGE_BYTES).into_iter();
            let flows = flows.map(|flow| flow.read_by(SMALL_READ_BYTES).last());
            flow::run(&mut flows.collect::<Vec<_>>(), scene.patience)
        },
    );
    group.ask(
        Level::Must,
        "long stream",
        match kind {
            Kind::Relay => "64 MiB to the origin, whole and in order",
            Kind::Echo => "64 MiB there and back, whole and in order",
        },
        |scene| {
            let link = scene.open(Role::Plain)?;
            let flow = link.flow(Way::ToOrigin, scene.scale.bulk_bytes).last();
            flow::run(&mut [flow], scene.patience)
        },
    );
    if kind == Kind::Relay {
        group.ask(
            Level::Must,
            "long streams both ways",
            "16 MiB each way at once, whole and in order",
            |scene| exchange(scene, Role::Plain, scene.scale.bulk_bytes / 4, |flow| flow),
        );
        group.ask(
            Level::Must,
            "origin speaks first",
            "bytes of the origin before the client has sent any",
            |scene| {
                let link = scene.open(Role::Plain)?;
                flow::run(&mut [link.flow(Way::ToClient, 1000)], scene.patience)?;
                flow::run(&mut [link.flow(Way::ToOrigin, 1000)], scene.patience)
            },
        );
    }
    group.cases()
}

/// So many bytes every way at once, and when all have come the end (FIN), behind
/// which nothing may come.
fn exchange(
    scene: &Scene<'_>,
    role: Role,
    bytes: u64,
    shape: impl Fn(Flow<'_>) -> Flow<'_>,
) -> Outcome {
    let link = scene.open(role)?;
    let mut flows: Vec<_> = link.flows(bytes).into_iter().map(shape).collect();
    flow::run(&mut flows, scene.patience)?;
    flows.iter_mut().for_each(|flow| flow.is_last = true);
    flow::run(&mut flows, scene.patience)
}

fn burst(scene: &Scene<'_>) -> Outcome {
    let link = scene.open(Role::Plain)?;
    let flows = link.flows(SINGLE_BYTES).into_iter();
    let mut flows: Vec<_> = flows
        .map(|flow| flow.in_pieces(Pieces::Singles(Arc::clone(scene.scatter))))
        .collect();
    flow::fill(&mut flows, scene.scale.quiet, scene.patience)?;
    flow::run(&mut flows, scene.patience)
}
