//! What `connect` costs as the tuples that a route plans fill up: the cliff that
//! one source address has at half the local ports must not be there.

use crate::load::Server;
use crate::machine::{raise_open_files, thread_cpu_ns};
use anyhow::{Context as _, Result};
use wsbench_client::engine::dial::Route;
use wsbench_schema::{Part, PortRange, Target};

/// Microseconds of CPU for each `connect` of the first, the middle and the last
/// hundredth of `connections` to one port.
pub fn measure(connections: u32) -> Result<[f64; 3]> {
    raise_open_files()?;
    let server = Server::raw()?;
    let target = |port| Target {
        host: "127.0.0.1".into(),
        ports: PortRange {
            first: port,
            last: port,
        },
        path: Target::DEFAULT_PATH.into(),
    };
    let ports = server.port_range();
    let hundredth = connections / 100;
    // The caches are warm when it counts.
    let warm = Route::plan(&target(*ports.end()), hundredth, Part::WHOLE)?;
    let mut sockets = Vec::with_capacity(connections as usize);
    for number in 0..hundredth {
        sockets.push(warm.connect(number)?);
    }
    sockets.clear();
    let route = Route::plan(&target(*ports.start()), connections, Part::WHOLE)?;
    let mut stretch = |from: u32, to: u32| -> Result<f64> {
        let cpu_ns = thread_cpu_ns();
        for number in from..to {
            let socket = route.connect(number);
            sockets.push(socket.with_context(|| format!("connection {number}"))?);
        }
        let us = (thread_cpu_ns() - cpu_ns) as f64 / 1e3;
        Ok(us / f64::from(to - from))
    };
    let half = connections / 2;
    let first = stretch(0, hundredth)?;
    stretch(hundredth, half - hundredth)?;
    let middle = stretch(half - hundredth, half)?;
    stretch(half, connections - hundredth)?;
    let last = stretch(connections - hundredth, connections)?;
    Ok([first, middle, last])
}
