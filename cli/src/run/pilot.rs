//! A look at a subject with few connections before it gets many: what it
//! takes of memory and threads, so that a trial that the machine cannot hold is
//! a failed row with its numbers rather than a killed machine.

use crate::driver::{Clients, Halt, Patience, client_command};
use crate::run::footprint::Footprint;
use crate::run::trial::{Bench, HOST, Stand, remove_empty};
use crate::run::verdict;
use crate::subject::Subject;
use anyhow::anyhow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use wsbench_sampler::Tree;
use wsbench_schema::{EchoLoad, Edge, Load, Target};

/// Connections of the first look and of the second, which is made with those of the
/// first still there: what the second adds is free of what the first needed once.
const CONNECTIONS: [u32; 2] = [1_000, 2_000];
/// Nothing depends on what is sent.
const SEED: u64 = 1;
/// Buffers that a server makes for the first message count too.
const ECHOES_A_CONNECTION: u64 = 2;

/// What is known of the subjects of a run.
#[derive(Debug, Default)]
pub struct Pilots(RefCell<BTreeMap<(String, u32), Footprint>>);

impl Pilots {
    /// Of a subject under a load like this; looked at once a run. `None` if the user interrupted.
    ///
    /// # Errors
    /// If the server or the client cannot be started, or nothing works.
    pub fn footprint(
        &self,
        bench: &Bench<'_>,
        subject: &Subject,
        load: &Load,
    ) -> anyhow::Result<Option<Footprint>> {
        let key = (subject.name.clone(), load.payload_bytes);
        let known = self.0.borrow().get(&key).copied();
        if known.is_some() {
            return Ok(known);
        }
        let footprint = look(bench, subject, load)?;
        if let Some(footprint) = footprint {
            self.0.borrow_mut().insert(key, footprint);
        }
        Ok(footprint)
    }
}

/// A load of so many connections, with the messages of `load`.
fn small(load: &Load, connections: u32) -> Load {
    let echo = load.echo.as_ref().map(|echo| EchoLoad {
        echoes: u64::from(connections) * ECHOES_A_CONNECTION,
        duration_ms: None,
        concurrency: 0,
        limit_per_s: 0,
        warmup_echoes: 0,
        ..echo.clone()
    });
    Load {
        connections,
        echo,
        rate: None,
        ..load.clone()
    }
}

fn look(bench: &Bench<'_>, subject: &Subject, load: &Load) -> anyhow::Result<Option<Footprint>> {
    let log = |extension: &str| bench.logs.join(format!("{}.{extension}", subject.name));
    let server_log = log("pilot.log");
    let connections = CONNECTIONS.iter().sum();
    let stand = Stand::start(bench, subject, 1, connections, server_log, |_| ())?;
    let target = Target {
        host: HOST.into(),
        ports: stand.ports(),
        path: Target::DEFAULT_PATH.into(),
    };
    let client_log = log("pilot.client.log");
    let mut tree = Tree::of_all(&stand.servers.pids())?;
    let mut clients = Vec::new();
    let mut edges = [tree.edge()?; 3];
    for (step, connections) in CONNECTIONS.into_iter().enumerate() {
        let load = small(load, connections);
        match connect(bench, &load, &target, client_log.clone())? {
            Some(client) => clients.push(client),
            None => return Ok(None),
        }
        edges[step + 1] = tree.edge()?;
    }
    let pids: Vec<u32> = clients.iter().flat_map(Clients::pids).collect();
    let client_bytes = Tree::of_all(&pids)?.edge()?.rss_bytes / pids.len() as u64;
    clients.into_iter().for_each(Clients::stop);
    stand.stop()?;
    remove_empty(&client_log);
    Ok(Some(footprint(edges, client_bytes)))
}

/// A client that has opened its connections, echoed on them, and holds them.
fn connect(
    bench: &Bench<'_>,
    load: &Load,
    target: &Target,
    log: PathBuf,
) -> anyhow::Result<Option<Clients>> {
    let command = client_command();
    let mut clients = Clients::start(
        vec![(command, log)],
        &bench.cpus.client,
        Patience::default(),
    )?;
    let mut watch = || match bench.interrupt.pressed() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let mut all = || {
        let whole = std::slice::from_ref(load);
        clients.prepare(whole, whole, target, SEED)?;
        while let Some(phase) = clients.next_phase(&mut watch)? {
            for report in clients.go(phase, &mut watch, &mut |_| ())? {
                if let Some(reason) = verdict::nothing_succeeded(phase, &report) {
                    return Err(Halt::Client(reason));
                }
            }
        }
        Ok(())
    };
    match all() {
        Ok(()) => Ok(Some(clients)),
        Err(Halt::Client(reason)) => Err(anyhow!(reason)),
        Err(Halt::Abandoned) => Ok(None),
    }
}

/// From the edges without connections, after the first and after the second step.
fn footprint([idle, first, second]: [Edge; 3], client_bytes: u64) -> Footprint {
    let [before, added] = CONNECTIONS.map(u64::from);
    // Rounded up: what is predicted must be enough.
    let each = |first: u64, second: u64, scale: u64| {
        (second.saturating_sub(first) * scale).div_ceil(added)
    };
    let connection_bytes = each(first.rss_bytes, second.rss_bytes, 1);
    let threads_a_thousand = each(first.threads.into(), second.threads.into(), 1000);
    let grown = before * connection_bytes;
    Footprint {
        server_bytes: first.rss_bytes.saturating_sub(grown).max(idle.rss_bytes),
        connection_bytes,
        server_threads: idle.threads.into(),
        threads_a_thousand,
        client_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::testing;

    fn edge(rss_bytes: u64, threads: u32) -> Edge {
        Edge {
            at_ns: 0,
            cpu_ns: 0,
            rss_bytes,
            processes: 1,
            threads,
            listen_queue: None,
        }
    }

    #[test]
    fn what_a_server_needs_once_is_not_what_a_connection_costs() {
        // 2 MB idle, 3 MB once it is warm, 5 kB and a thread a connection.
        let edges = [
            edge(2_000_000, 3),
            edge(8_000_000, 1_003),
            edge(18_000_000, 3_003),
        ];
        let expected = Footprint {
            server_bytes: 3_000_000,
            connection_bytes: 5_000,
            server_threads: 3,
            threads_a_thousand: 1_000,
            client_bytes: 9,
        };
        assert_eq!(footprint(edges, 9), expected);
        // One that shrinks costs nothing, and never less.
        let shrunk = footprint([edge(9, 1), edge(9, 1), edge(5, 1)], 0);
        assert_eq!((shrunk.server_bytes, shrunk.connection_bytes), (9, 0));
    }

    #[test]
    fn a_look_echoes_what_the_load_echoes() {
        let load = small(&testing::load(), 1_000);
        load.validate().unwrap();
        let echo = load.echo.unwrap();
        assert_eq!(
            (load.connections, echo.echoes, echo.warmup_echoes),
            (1_000, 2_000, 0)
        );
        assert_eq!(load.payload_bytes, testing::load().payload_bytes);
    }
}
