//! Starts the shards of a client, by what carries the messages of its load.

use super::dial::Route;
use super::orders::{self, RatePlan};
use super::shard::Shard;
use super::worker::{self, Run, Worker};
use crate::EngineError;
use crate::protocol::Protocol;
use crate::protocol::stream::Messages;
use crate::protocol::stream::pieces::Pieces;
use crate::protocol::stream::ring::Ring;
use crate::protocol::template::Templates;
use crate::protocol::websocket::WebSocket;
use rustix::thread::{CpuSet, sched_getaffinity};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use wsbench_schema::{Load, Target, Transport, split};

/// A shard on each allowed CPU, with room for so many connections in all, and the
/// bytes of a message as they send it.
///
/// # Errors
/// If the system has no descriptor or thread left.
pub fn start(
    load: &Load,
    room: u32,
    target: &Target,
    route: &Route,
    seed: u64,
    stop: &Arc<AtomicBool>,
) -> Result<(usize, Vec<Worker>), EngineError> {
    let mut cpus = allowed_cpus()?;
    // A shard without a connection would only wait.
    cpus.truncate(load.connections as usize);
    let (payload, check) = (load.payload_bytes as usize, load.check);
    match (load.transport, &load.bulk) {
        (Transport::Websocket, _) => {
            let pool = |batch| Templates::new(load.message, payload, batch, seed);
            let (frame_bytes, pool) = pool_for(load, pool);
            let socket = |_| {
                let (host, path) = (target.host.clone(), target.path.clone());
                WebSocket::new(Arc::clone(&pool), check, host, path)
            };
            let workers = shards(&cpus, room, stop, worker::run_messages, socket)?;
            Ok((frame_bytes, workers))
        }
        (Transport::Stream, None) => {
            let pool = |batch| Templates::bare(load.message, payload, batch, seed);
            let (frame_bytes, pool) = pool_for(load, pool);
            let stream = |_| Messages::new(Arc::clone(&pool), check);
            let workers = shards(&cpus, room, stop, worker::run_messages, stream)?;
            Ok((frame_bytes, workers))
        }
        (Transport::Stream, Some(bulk)) => {
            let ring = Arc::new(Ring::new(load.payload_bytes));
            let (pieces, first) = (orders::pieces(load, bulk), route.first());
            let stream = |number: u32| {
                let number = first.wrapping_add(number);
                Pieces::new(Arc::clone(&ring), bulk.direction, pieces, number)
            };
            let workers = shards(&cpus, room, stop, worker::run_transfers, stream)?;
            Ok((payload, workers))
        }
    }
}

/// The CPUs that this process may use.
pub(crate) fn allowed_cpus() -> Result<Vec<usize>, EngineError> {
    let set = sched_getaffinity(None)
        .map_err(|error| EngineError::System("read the CPU affinity".into(), error.into()))?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .collect())
}

/// Bytes of a message as it is sent, and the pool for the longest batch of a load.
fn pool_for(load: &Load, pool: impl Fn(u32) -> Templates) -> (usize, Arc<Templates>) {
    let of_one = pool(1);
    let frame_bytes = of_one.sent_len();
    let pool = match &load.rate {
        Some(rate) => pool(RatePlan::longest_batch(rate, frame_bytes)),
        None => of_one,
    };
    (frame_bytes, Arc::new(pool))
}

/// A shard on each of these CPUs, with room for so many connections in all. Each has
/// its own `protocol`, by the number of its first connection.
fn shards<P: Protocol>(
    cpus: &[usize],
    room: u32,
    stop: &Arc<AtomicBool>,
    run: Run<P>,
    protocol: impl Fn(u32) -> P,
) -> Result<Vec<Worker>, EngineError> {
    let mut workers = Vec::new();
    let mut first_number = 0;
    for (index, cpu) in cpus.iter().enumerate() {
        let room = split::share(room.into(), cpus.len(), index) as u32;
        let shard = Shard::new(protocol(first_number), room)
            .map_err(|error| EngineError::System("make an epoll".into(), error))?;
        let stop = Arc::clone(stop);
        workers.push(Worker::start(shard, run, *cpu, room, first_number, stop)?);
        first_number += room;
    }
    Ok(workers)
}
