//! A ramp: loads with more and more connections to one server, beside those
//! that are open.

mod util;

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use util::{answer, echoes, expect, metric, server};
use wsbench_client::Engine;
use wsbench_schema::{Load, Part, Phase, PhaseReport};

fn step(after: u32, connections: u32) -> Load {
    Load {
        after_connections: after,
        ..echoes(connections, 64, 300)
    }
}

fn run(engine: &mut Engine, phase: Phase) -> PhaseReport {
    let stop = AtomicBool::new(false);
    engine.run(phase, None, &stop, &mut |_| {}).unwrap()
}

#[test]
fn each_step_dials_only_what_it_adds_and_uses_all_that_are_open() {
    let used: Arc<Mutex<BTreeSet<std::net::SocketAddr>>> = Arc::default();
    let peers = Arc::clone(&used);
    let target = server(move |stream, _, first, payload| {
        peers.lock().unwrap().insert(stream.peer_addr().unwrap());
        answer(stream, first, payload)
    });
    let mut engine = Engine::prepare_part(step(0, 3), 31, &target, 1, Part::WHOLE).unwrap();
    let mut before = 0;
    for connections in [3, 10, 31] {
        if before > 0 {
            engine.extend(step(before, connections)).unwrap();
        }
        let connect = run(&mut engine, Phase::Connect);
        let added = u64::from(connections - before);
        assert_eq!(metric(&connect, "planned_count"), added);
        assert_eq!(metric(&connect, "succeeded_count"), added);
        used.lock().unwrap().clear();
        let echo = run(&mut engine, Phase::Echo);
        expect(&echo, 300, &[]);
        assert_eq!(metric(&echo, "connections_count"), u64::from(connections));
        assert_eq!(used.lock().unwrap().len(), connections as usize);
        before = connections;
    }
}

#[test]
fn a_step_that_does_not_go_on_is_refused_with_its_reason() {
    let target = server(|stream, _, first, payload| answer(stream, first, payload));
    let mut engine = Engine::prepare_part(step(0, 3), 10, &target, 1, Part::WHOLE).unwrap();
    let longer = Load {
        payload_bytes: 65,
        ..step(3, 10)
    };
    for (load, reason) in [
        (
            step(2, 10),
            "begins with 2 connections, but 3 were asked for",
        ),
        (step(3, 11), "11 connections, but there is room for 10"),
        (step(3, 3), "each step of a ramp must open more"),
        (longer, "other messages"),
    ] {
        let error = engine.extend(load).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    engine.extend(step(3, 10)).unwrap();
}
