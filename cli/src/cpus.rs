//! Which CPUs the server, the client and the runner use.

use anyhow::{Context as _, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::BTreeSet;
use std::fs;
use wsbench_schema::CpuMap;

/// Splits the CPUs that this process may use. By default the first half of the
/// physical cores is the server's and the rest the client's. `server` and
/// `client` say otherwise, as lists like `0-3,8`; if only one is said, the other
/// side has what remains. The runner uses what the user left to nobody, else the
/// client's CPUs.
///
/// `shared` is true if both sides have a CPU in common, or hyper-threads of
/// the same core.
pub fn plan(server: Option<&str>, client: Option<&str>) -> anyhow::Result<CpuMap> {
    let allowed = allowed()?;
    let server = server.map(parse_list).transpose()?;
    let client = client.map(parse_list).transpose()?;
    split(&allowed, siblings, server, client)
}

/// Keeps this thread, and those that it starts from now on, on these CPUs.
pub fn pin_self(cpus: &[u32]) -> anyhow::Result<()> {
    let set = cpu_set(cpus)?;
    sched_setaffinity(None, &set)
        .with_context(|| format!("cannot run on CPUs {}", format_list(cpus)))
}

/// The CPUs that this process may use.
pub fn allowed() -> anyhow::Result<Vec<u32>> {
    let set = sched_getaffinity(None)
        .context("cannot read which CPUs this process may use (more than 1024 CPUs?)")?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .filter_map(|cpu| u32::try_from(cpu).ok())
        .collect())
}

/// For system calls.
pub fn cpu_set(cpus: &[u32]) -> anyhow::Result<CpuSet> {
    if cpus.is_empty() {
        bail!("a list of CPUs is empty");
    }
    let mut set = CpuSet::new();
    for cpu in cpus {
        let index = usize::try_from(*cpu).unwrap_or(usize::MAX);
        if index >= CpuSet::MAX_CPU {
            bail!(
                "CPU {cpu} is beyond the {} that are supported",
                CpuSet::MAX_CPU
            );
        }
        set.set(index);
    }
    Ok(set)
}

/// Reads `0-3,8`.
pub fn parse_list(text: &str) -> anyhow::Result<Vec<u32>> {
    let mut cpus = BTreeSet::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let ends = (first.trim().parse::<u32>(), last.trim().parse::<u32>());
        match ends {
            (Ok(first), Ok(last)) if first <= last && (last as usize) < CpuSet::MAX_CPU => {
                cpus.extend(first..=last);
            }
            _ => bail!(
                "`{text}` is not a list of CPUs: write numbers and ranges below {}, as in 0-3,8",
                CpuSet::MAX_CPU
            ),
        }
    }
    Ok(cpus.into_iter().collect())
}

/// Writes `0-3,8`.
pub fn format_list(cpus: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &cpu in &cpus.iter().copied().collect::<BTreeSet<u32>>() {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let texts: Vec<String> = ranges
        .iter()
        .map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        })
        .collect();
    texts.join(",")
}

/// The hyper-threads of a CPU's core, itself included; itself alone where the kernel does not say.
fn siblings(cpu: u32) -> Vec<u32> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    fs::read_to_string(path)
        .ok()
        .and_then(|text| parse_list(&text).ok())
        .unwrap_or_else(|| vec![cpu])
}

fn split(
    allowed: &[u32],
    siblings: impl Fn(u32) -> Vec<u32>,
    server: Option<Vec<u32>>,
    client: Option<Vec<u32>>,
) -> anyhow::Result<CpuMap> {
    for (side, cpus) in [("server", &server), ("client", &client)] {
        let refused = cpus.iter().flatten().find(|cpu| !allowed.contains(cpu));
        if let Some(cpu) = refused {
            bail!(
                "the {side} cannot have CPU {cpu}: this process may use {} (see: taskset -p $$)",
                format_list(allowed)
            );
        }
    }
    let without = |taken: &[u32]| -> Vec<u32> {
        allowed
            .iter()
            .copied()
            .filter(|cpu| !taken.contains(cpu))
            .collect()
    };
    // Nothing left: both use the same.
    let rest_of = |taken: &[u32]| match without(taken) {
        rest if rest.is_empty() => taken.to_vec(),
        rest => rest,
    };
    let (server, client) = match (server, client) {
        (Some(server), Some(client)) => (server, client),
        (Some(server), None) => {
            let client = rest_of(&server);
            (server, client)
        }
        (None, Some(client)) => (rest_of(&client), client),
        (None, None) => halves(allowed, &siblings),
    };
    let left: Vec<u32> = without(&server)
        .into_iter()
        .filter(|cpu| !client.contains(cpu))
        .collect();
    let cores = |cpus: &[u32]| -> BTreeSet<u32> {
        cpus.iter()
            .flat_map(|cpu| siblings(*cpu))
            .chain(cpus.iter().copied())
            .collect()
    };
    let shared = !cores(&server).is_disjoint(&cores(&client));
    let runner = if left.is_empty() {
        client.clone()
    } else {
        left
    };
    Ok(CpuMap {
        server,
        client,
        runner,
        shared,
    })
}

/// The server gets the first half of the cores; an odd one more is the client's,
/// since a client that is too slow would hide what the server can do. A single core
/// is divided by its threads; a single CPU is used by both.
fn halves(allowed: &[u32], siblings: &impl Fn(u32) -> Vec<u32>) -> (Vec<u32>, Vec<u32>) {
    let mut cores: Vec<Vec<u32>> = Vec::new();
    for &cpu in allowed {
        let family = siblings(cpu);
        match cores.iter_mut().find(|core| family.contains(&core[0])) {
            Some(core) => core.push(cpu),
            None => cores.push(vec![cpu]),
        }
    }
    if cores.len() == 1 {
        cores = allowed.iter().map(|cpu| vec![*cpu]).collect();
    }
    if cores.len() == 1 {
        return (allowed.to_vec(), allowed.to_vec());
    }
    let client = cores.split_off(cores.len() / 2);
    let flat = |cores: Vec<Vec<u32>>| {
        let mut cpus = cores.concat();
        cpus.sort_unstable();
        cpus
    };
    (flat(cores), flat(client))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(cpu: u32) -> Vec<u32> {
        vec![cpu]
    }

    /// Four cores, of which the threads are n and n + 4.
    fn pairs(cpu: u32) -> Vec<u32> {
        vec![cpu % 4, cpu % 4 + 4]
    }

    fn map(server: &[u32], client: &[u32], runner: &[u32], shared: bool) -> CpuMap {
        CpuMap {
            server: server.to_vec(),
            client: client.to_vec(),
            runner: runner.to_vec(),
            shared,
        }
    }

    #[test]
    fn the_first_half_of_the_cores_is_the_servers() {
        let found = split(&[0, 1, 2, 3], alone, None, None).unwrap();
        assert_eq!(found, map(&[0, 1], &[2, 3], &[2, 3], false));
        let found = split(&[2, 5, 7], alone, None, None).unwrap();
        assert_eq!(found, map(&[2], &[5, 7], &[5, 7], false));
    }

    #[test]
    fn hyper_threads_of_a_core_stay_together() {
        let found = split(&[0, 1, 2, 3, 4, 5, 6, 7], pairs, None, None).unwrap();
        let expected = map(&[0, 1, 4, 5], &[2, 3, 6, 7], &[2, 3, 6, 7], false);
        assert_eq!(found, expected);
    }

    #[test]
    fn one_cpu_or_one_core_is_marked_as_shared() {
        let found = split(&[3], alone, None, None).unwrap();
        assert_eq!(found, map(&[3], &[3], &[3], true));
        let found = split(&[0, 4], pairs, None, None).unwrap();
        assert_eq!(found, map(&[0], &[4], &[4], true));
    }

    #[test]
    fn the_runner_uses_what_the_user_left() {
        let found = split(&[0, 1, 2, 3], alone, Some(vec![0]), Some(vec![1, 2])).unwrap();
        assert_eq!(found, map(&[0], &[1, 2], &[3], false));
        let found = split(&[0, 1, 2, 3], alone, Some(vec![3]), None).unwrap();
        assert_eq!(found, map(&[3], &[0, 1, 2], &[0, 1, 2], false));
        let found = split(&[0, 1], alone, None, Some(vec![0, 1])).unwrap();
        assert_eq!(found, map(&[0, 1], &[0, 1], &[0, 1], true));
    }

    #[test]
    fn lists_that_share_a_cpu_or_a_core_are_marked() {
        let found = split(&[0, 1, 2], alone, Some(vec![0, 1]), Some(vec![1, 2])).unwrap();
        assert!(found.shared);
        let all = [0, 1, 2, 3, 4, 5, 6, 7];
        let found = split(&all, pairs, Some(vec![0, 1]), Some(vec![4, 5])).unwrap();
        assert!(found.shared, "0 and 4 are threads of one core");
    }

    #[test]
    fn a_cpu_that_is_not_allowed_is_named_with_those_that_are() {
        let error = split(&[0, 1, 2, 5], alone, None, Some(vec![1, 4]))
            .unwrap_err()
            .to_string();
        assert!(error.contains("the client cannot have CPU 4"), "{error}");
        assert!(error.contains("0-2,5"), "{error}");
    }

    #[test]
    fn lists_are_read_and_written() {
        assert_eq!(parse_list("0-3,8").unwrap(), [0, 1, 2, 3, 8]);
        assert_eq!(parse_list("3,1-2\n").unwrap(), [1, 2, 3]);
        assert_eq!(format_list(&[8, 0, 1, 2, 3]), "0-3,8");
        for wrong in ["", "a", "3-1", "1,", "-2", "0-4000000000", "1024"] {
            let error = parse_list(wrong).unwrap_err().to_string();
            assert!(error.contains("0-3,8"), "{error}");
        }
    }

    #[test]
    fn a_pinned_thread_may_use_only_those_cpus() {
        let last = *allowed().unwrap().last().unwrap();
        std::thread::spawn(move || {
            pin_self(&[last]).unwrap();
            assert_eq!(allowed().unwrap(), [last]);
        })
        .join()
        .unwrap();
        assert!(pin_self(&[]).is_err());
    }
}
