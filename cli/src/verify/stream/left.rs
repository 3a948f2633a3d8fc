//! Nothing is left of connections that are over: asked last, of the subject's
//! process and of the kernel.

use super::Kind;
use super::ask::Question;
use super::flow::{self, Flow};
use super::resources::Held;
use super::scene::{Scene, Way, reset};
use super::upstream::Role;
use crate::verify::case::{Case, Group, Outcome, Wrong};
use crate::{process, sockets};
use wsbench_schema::{Level, PortRange};

/// Connections of each kind that are opened and over.
const EACH: usize = 25;
/// Connections that are closed at both ends, which leaves as many in TIME_WAIT.
const POLITE: usize = 10;
/// Descriptors and threads that may be more after doing the same once more.
const MORE_MOST: usize = 20;
/// Descriptors other than sockets that may be kept for later use.
const KEPT_MOST: usize = 64;
/// Memory that may be kept for later use.
const MEMORY_KEPT_MOST_BYTES: u64 = 64 << 20;

pub fn cases(kind: Kind) -> Vec<Case<Question>> {
    let mut group = Group::new("left");
    group.ask(
        Level::Must,
        "connections",
        format!(
            "no socket of the subject's ports, in CLOSE_WAIT or another state, after {POLITE} \
             connections were closed (FIN) at both ends"
        ),
        move |scene| {
            let ways = Way::of(kind == Kind::Relay).iter().cycle();
            ways.take(POLITE).try_for_each(|way| {
                let link = scene.open(Role::Plain)?;
                flow::run(&mut link.flows(1000), scene.patience)?;
                link.close(*way, scene.patience)
            })?;
            connections(scene)
        },
    );
    group.ask(
        Level::Must,
        "sockets",
        "no more sockets than before the first case",
        |scene| {
            eventually(scene, |now, before| {
                let more = now.sockets.saturating_sub(before.sockets);
                (more > 0).then(|| format!("{more} sockets more than before"))
            })
        },
    );
    group.ask(
        Level::Must,
        "the same again",
        format!(
            "no more than {MORE_MOST} descriptors and threads more after {EACH} connections \
             of each way to end than after as many before them"
        ),
        move |scene| the_same_again(scene, kind),
    );
    group.ask(
        Level::Should,
        "other descriptors",
        format!("no more than {KEPT_MOST} pipes and other files more than before the first case"),
        |scene| {
            eventually(scene, |now, before| {
                let more = now.other_files.saturating_sub(before.other_files);
                (more > KEPT_MOST).then(|| format!("{more} more than before"))
            })
        },
    );
    group.ask(
        Level::Should,
        "memory",
        format!(
            "no more than {} MiB more memory than before the first case",
            MEMORY_KEPT_MOST_BYTES >> 20
        ),
        |scene| {
            eventually(scene, |now, before| {
                let more = now.rss_bytes.saturating_sub(before.rss_bytes);
                (more > MEMORY_KEPT_MOST_BYTES)
                    .then(|| format!("{} MiB more than before", more >> 20))
            })
        },
    );
    group.cases()
}

/// Waits until there is nothing to say against what is held now.
fn eventually(scene: &Scene<'_>, against: impl Fn(Held, Held) -> Option<String>) -> Outcome {
    let mut said = Ok(None);
    process::wait_until(scene.patience.silence, || {
        said = scene.held().map(|now| against(now, scene.before));
        !matches!(said, Ok(Some(_)))
    });
    said?.map_or(Ok(()), |said| Err(Wrong::late(said)))
}

fn connections(scene: &Scene<'_>) -> Outcome {
    let mut seen = Ok(None);
    process::wait_until(scene.patience.silence, || {
        seen = alive(scene);
        !matches!(seen, Ok(Some(_)))
    });
    let cannot = |error| Wrong::new(format!("the examiner cannot see sockets: {error:#}"));
    let seen = seen.map_err(cannot)?;
    seen.map_or(Ok(()), |seen| Err(Wrong::late(seen)))
}

/// `3 sockets, 2 of them in CLOSE_WAIT`, if there are any.
fn alive(scene: &Scene<'_>) -> anyhow::Result<Option<String>> {
    let (mut all, mut half_closed) = (0, 0);
    for address in scene.addresses {
        let Some(port) = PortRange::starting_at(address.port(), 1) else {
            continue;
        };
        for socket in sockets::alive(port)? {
            all += usize::from(!socket.is_listening());
            half_closed += usize::from(socket.is_half_closed());
        }
    }
    Ok((all > 0).then(|| format!("{all} sockets, {half_closed} of them in CLOSE_WAIT")))
}

fn the_same_again(scene: &Scene<'_>, kind: Kind) -> Outcome {
    let after = |kind| {
        every_end(scene, kind)?;
        // What ends takes its time.
        connections(scene)?;
        scene.held()
    };
    let first = after(kind)?;
    let files = |held: Held| held.sockets + held.other_files;
    let mut said = Ok(None);
    let second = after(kind)?;
    let against = |now: Held| {
        let more = files(now).saturating_sub(files(first));
        let threads = now.threads.saturating_sub(first.threads);
        let said = format!("{more} descriptors and {threads} threads more");
        (more > MORE_MOST || threads > MORE_MOST).then_some(said)
    };
    if against(second).is_some() {
        process::wait_until(scene.patience.silence, || {
            said = scene.held().map(against);
            !matches!(said, Ok(Some(_)))
        });
    }
    said?.map_or(Ok(()), |said| Err(Wrong::late(said)))
}

/// Connections that end in all the ways that there are, with bytes under way.
fn every_end(scene: &Scene<'_>, kind: Kind) -> Outcome {
    let links = scene.open_many(Role::Narrow, EACH)?;
    let flows = links.iter().flat_map(|link| link.flows(1000));
    let mut flows: Vec<_> = flows.map(Flow::last).collect();
    flow::run(&mut flows, scene.patience)?;
    drop(flows);
    drop(links);
    for way in Way::of(kind == Kind::Relay) {
        let links = scene.open_many(Role::Narrow, EACH)?;
        let mut flows: Vec<_> = links.iter().map(|link| link.flow(*way, 1 << 20)).collect();
        flow::fill(&mut flows, scene.scale.quiet, scene.patience)?;
        links.iter().try_for_each(|link| reset(link.source(*way)))?;
    }
    if kind == Kind::Relay {
        for _ in 0..EACH {
            scene.refused()?;
        }
    }
    Ok(())
}
