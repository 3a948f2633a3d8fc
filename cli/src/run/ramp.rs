//! A ramp: loads that open more and more connections to the same server process.
//! In a plan each step is a load of its own, behind the step that it goes on from.

use anyhow::bail;
use std::ops::Range;
use wsbench_schema::Load;

/// Shares of the connections at which a ramp stops, in percent, where the user names no steps.
const STEPS_PERCENT: [u64; 6] = [1, 5, 10, 20, 50, 100];

/// Makes steps of loads that differ in their connections; a load that has no
/// others like it is cut into steps.
///
/// # Errors
/// If there are too few connections for steps.
pub fn steps(loads: Vec<Load>) -> anyhow::Result<Vec<Load>> {
    let mut groups: Vec<Vec<Load>> = Vec::new();
    for load in loads {
        let group = groups.iter_mut().find(|group| is_alike(&group[0], &load));
        match group {
            Some(group) => group.push(load),
            None => groups.push(vec![load]),
        }
    }
    let mut all = Vec::new();
    for group in groups {
        let mut group = match &group[..] {
            [one] => cut(one),
            _ => group,
        };
        group.sort_by_key(|load| load.connections);
        group.dedup_by_key(|load| load.connections);
        if group.len() < 2 {
            bail!(
                "a ramp from {0} to {0} connections has no steps (name them: --ramp -c 1000,10000)",
                group[0].connections
            );
        }
        // A step that closed connections could not be followed by another.
        let last = group.len() - 1;
        for load in &mut group[..last] {
            load.release = None;
        }
        let mut before = 0;
        for load in &mut group {
            load.after_connections = before;
            before = load.connections;
        }
        all.extend(group);
    }
    Ok(all)
}

fn is_alike(one: &Load, other: &Load) -> bool {
    // A warm-up that was not said follows from the connections.
    let plain = |load: &Load| {
        let mut plain = Load {
            connections: 1,
            ..load.clone()
        };
        if let Some(echo) = &mut plain.echo {
            echo.warmup_echoes = 0;
        }
        plain
    };
    plain(one) == plain(other)
}

fn cut(load: &Load) -> Vec<Load> {
    let step = |percent: u64| {
        let connections = (u64::from(load.connections) * percent / 100).max(1);
        Load {
            connections: u32::try_from(connections).unwrap_or(u32::MAX),
            ..load.clone()
        }
    };
    STEPS_PERCENT.into_iter().map(step).collect()
}

/// The loads that one server process goes through, by their places in the plan:
/// a single one each, but for ramps.
pub fn chains(loads: &[Load]) -> Vec<Range<usize>> {
    let mut chains: Vec<Range<usize>> = Vec::new();
    for (index, load) in loads.iter().enumerate() {
        match chains.last_mut() {
            Some(chain) if load.after_connections > 0 => chain.end = index + 1,
            _ => chains.push(index..index + 1),
        }
    }
    chains
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::testing;

    fn of(connections: u32, payload_bytes: u32) -> Load {
        let mut load = Load {
            connections,
            payload_bytes,
            ..testing::load()
        };
        if let Some(echo) = &mut load.echo {
            echo.warmup_echoes = connections.into();
        }
        load
    }

    fn numbers(loads: &[Load]) -> Vec<(u32, u32, u32)> {
        let number = |load: &Load| (load.payload_bytes, load.after_connections, load.connections);
        loads.iter().map(number).collect()
    }

    #[test]
    fn a_list_of_connections_becomes_steps_in_order_for_each_payload() {
        let loads = vec![of(100, 8), of(10, 8), of(10, 9), of(100, 8), of(50, 9)];
        let steps = steps(loads).unwrap();
        let expected = [(8, 0, 10), (8, 10, 100), (9, 0, 10), (9, 10, 50)];
        assert_eq!(numbers(&steps), expected);
        assert_eq!(chains(&steps), [0..2, 2..4]);
        assert!(steps.iter().all(|load| load.validate().is_ok()));
    }

    #[test]
    fn a_single_number_is_cut_into_steps() {
        let ends = |connections| -> anyhow::Result<Vec<u32>> {
            let steps = steps(vec![of(connections, 8)])?;
            Ok(steps.iter().map(|load| load.connections).collect())
        };
        let million = ends(1_000_000).unwrap();
        assert_eq!(
            million,
            [10_000, 50_000, 100_000, 200_000, 500_000, 1_000_000]
        );
        assert_eq!(ends(2).unwrap(), [1, 2]);
        let error = ends(1).unwrap_err().to_string();
        assert!(
            error.contains("from 1 to 1 connections has no steps"),
            "{error}"
        );
    }

    #[test]
    fn only_the_last_step_closes_connections() {
        let load = Load {
            release: Some(crate::profile::release(50)),
            ..of(100, 8)
        };
        let steps = steps(vec![load]).unwrap();
        let releases: Vec<bool> = steps.iter().map(|load| load.release.is_some()).collect();
        assert_eq!(releases, [false, false, false, false, false, true]);
    }

    #[test]
    fn without_a_ramp_each_load_has_a_server_of_its_own() {
        assert_eq!(
            chains(&[of(10, 8), of(100, 8), of(10, 9)]),
            [0..1, 1..2, 2..3]
        );
        assert!(chains(&[]).is_empty());
    }
}
