//! Exact cumulative CPU time and memory of processes and all their descendants.

use crate::clock::{monotonic_ns, process_cpu_ns};
use crate::procfs::{self, Stat};
use crate::{SamplerError, clock};
use std::collections::{BTreeMap, HashMap};
use wsbench_schema::observe::Edge;

/// Processes (mostly one) and all their descendants, those born later included.
///
/// Descendants are found by the parent of every process of the machine.
/// `/proc/PID/task/TID/children` is not used: the kernel may lack it, it skips
/// children while one of them exits, and it is one file for each thread. A descendant, once seen,
/// stays a member when its parent dies and it is given to another one. A
/// process is its number and its start time, so a reused number is a stranger.
#[derive(Debug)]
pub struct Tree {
    roots: Vec<Identity>,
    members: BTreeMap<Identity, Member>,
    /// CPU time of members that are no more. Never falls.
    dead_ns: u64,
    buffer: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Identity {
    pub pid: u32,
    start: u64,
}

impl Identity {
    fn of(stat: &Stat) -> Self {
        Self {
            pid: stat.pid,
            start: stat.start,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Member {
    /// Its own CPU time when an edge last read it.
    cpu_ns: u64,
}

impl Tree {
    /// The tree below a process that runs now.
    ///
    /// # Errors
    /// [`SamplerError::Gone`] if it does not, or if `/proc` cannot be read.
    pub fn of(root_pid: u32) -> Result<Self, SamplerError> {
        Self::of_all(&[root_pid])
    }

    /// The trees below several processes that run now, as one: its figures are
    /// their sums, and it costs hardly more than one of them.
    ///
    /// # Errors
    /// As [`Tree::of`], if any of them does not run.
    pub fn of_all(root_pids: &[u32]) -> Result<Self, SamplerError> {
        let mut buffer = Vec::new();
        let mut roots = Vec::new();
        for pid in root_pids {
            match procfs::stat(*pid, &mut buffer)? {
                Some(stat) if !stat.is_dead() => roots.push(Identity::of(&stat)),
                _ => return Err(SamplerError::Gone { pid: *pid }),
            }
        }
        let mut tree = Self {
            roots,
            members: BTreeMap::new(),
            dead_ns: 0,
            buffer,
        };
        tree.members = tree
            .discover()?
            .iter()
            .map(|stat| (Identity::of(stat), Member::default()))
            .collect();
        Ok(tree)
    }

    /// The tree's figures now.
    ///
    /// `cpu_ns` is the sum of the members' CPU clocks, exact to the nanosecond
    /// while the kernel accounts that finely, plus that of children which members have waited for,
    /// which the kernel tells in ticks of 10 ms for each parent. From one edge
    /// of a tree to the next it never falls: of a member that vanished, at
    /// least what it had used at its last edge stays in the sum, even if nobody
    /// waited for it. `at_ns` is read just before the clocks. `rss_bytes` counts a page shared by
    /// two members twice. A member that vanishes during the reading is left out.
    /// `listen_queue` is that of the first root's network namespace.
    ///
    /// # Errors
    /// [`SamplerError::Gone`] if a root has ended, or if `/proc` cannot be read.
    pub fn edge(&mut self) -> Result<Edge, SamplerError> {
        // Waited-for time before the clocks: a member that dies in between is
        // then in neither, and `settle` adds it. The other way round it could be in both.
        let found = self.discover()?;
        let at_ns = monotonic_ns();
        let mut members = BTreeMap::new();
        let mut edge = Edge {
            at_ns,
            cpu_ns: 0,
            rss_bytes: 0,
            processes: 0,
            threads: 0,
            listen_queue: None,
        };
        let mut reaped_ticks = 0;
        for stat in &found {
            let Some(cpu_ns) = process_cpu_ns(stat.pid)? else {
                continue;
            };
            members.insert(Identity::of(stat), Member { cpu_ns });
            reaped_ticks += stat.reaped_ticks;
            edge.cpu_ns += cpu_ns;
            edge.processes += 1;
            edge.threads += stat.threads;
        }
        self.all_roots_in(|root| members.contains_key(root))?;
        let page_bytes = rustix::param::page_size() as u64;
        for member in members.keys() {
            let pages = procfs::resident_pages(member.pid, &mut self.buffer)?;
            edge.rss_bytes += pages.unwrap_or(0) * page_bytes;
        }
        edge.cpu_ns += self.settle(members, clock::ticks_ns(reaped_ticks));
        if let Some(root) = self.roots.first() {
            edge.listen_queue = procfs::listen_queue(root.pid, &mut self.buffer)?;
        }
        Ok(edge)
    }

    /// The members at the last edge, the roots among them.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        self.members.keys().map(|member| member.pid).collect()
    }

    /// Looks for new members and forgets vanished ones without reading their clocks.
    pub(crate) fn refresh(&mut self) -> Result<Vec<Identity>, SamplerError> {
        let found: Vec<Identity> = self.discover()?.iter().map(Identity::of).collect();
        self.members = found
            .iter()
            .map(|member| (*member, Member::default()))
            .collect();
        Ok(found)
    }

    /// Replaces the members and returns the CPU time of all that are no more.
    ///
    /// A vanished member's time is part of what its parent has reaped, or of
    /// nothing if nobody waited for it. Either way at least what it had at its last
    /// edge was used, and the reaped time that members tell never exceeds the truth.
    /// So the larger of both is a lower bound, and the best one.
    fn settle(&mut self, members: BTreeMap<Identity, Member>, reaped_ns: u64) -> u64 {
        let vanished_ns: u64 = self
            .members
            .iter()
            .filter(|(identity, _)| !members.contains_key(identity))
            .map(|(_, member)| member.cpu_ns)
            .sum();
        self.dead_ns = (self.dead_ns + vanished_ns).max(reaped_ns);
        self.members = members;
        self.dead_ns
    }

    /// The roots, the members still alive, and all that descends from them.
    fn discover(&mut self) -> Result<Vec<Stat>, SamplerError> {
        let all = procfs::all(&mut self.buffer)?;
        let mut children: HashMap<u32, Vec<&Stat>> = HashMap::new();
        let mut found: BTreeMap<Identity, Stat> = BTreeMap::new();
        let mut open = Vec::new();
        for stat in &all {
            children.entry(stat.parent).or_default().push(stat);
            let identity = Identity::of(stat);
            let is_root = self.roots.contains(&identity);
            if is_root && stat.is_dead() {
                return Err(SamplerError::Gone { pid: stat.pid });
            }
            if is_root || self.members.contains_key(&identity) {
                open.push(stat);
            }
        }
        while let Some(stat) = open.pop() {
            if found.insert(Identity::of(stat), *stat).is_none()
                && let Some(born) = children.get(&stat.pid)
            {
                open.extend(born);
            }
        }
        self.all_roots_in(|root| found.contains_key(root))?;
        Ok(found.into_values().collect())
    }

    fn all_roots_in(&self, found: impl Fn(&Identity) -> bool) -> Result<(), SamplerError> {
        match self.roots.iter().find(|root| !found(root)) {
            Some(root) => Err(SamplerError::Gone { pid: root.pid }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn tree() -> Tree {
        Tree {
            roots: vec![id(1, 1)],
            members: BTreeMap::new(),
            dead_ns: 0,
            buffer: Vec::new(),
        }
    }

    fn id(pid: u32, start: u64) -> Identity {
        Identity { pid, start }
    }

    fn members(list: &[(Identity, u64)]) -> BTreeMap<Identity, Member> {
        list.iter()
            .map(|&(identity, cpu_ns)| (identity, Member { cpu_ns }))
            .collect()
    }

    #[test]
    fn a_reaped_child_counts_once() {
        let mut tree = tree();
        assert_eq!(
            tree.settle(members(&[(id(1, 1), 5), (id(2, 1), 70 * MS)]), 0),
            0
        );
        // It used 10 ms more, died and was waited for.
        assert_eq!(tree.settle(members(&[(id(1, 1), 5)]), 80 * MS), 80 * MS);
        assert_eq!(tree.settle(members(&[(id(1, 1), 5)]), 80 * MS), 80 * MS);
    }

    #[test]
    fn a_child_that_nobody_waited_for_stays_in_the_sum() {
        let mut tree = tree();
        tree.settle(members(&[(id(1, 1), 5), (id(2, 1), 70 * MS)]), 0);
        assert_eq!(tree.settle(members(&[(id(1, 1), 5)]), 0), 70 * MS);
    }

    #[test]
    fn many_short_children_do_not_add_up_the_ticks_that_were_cut_off() {
        let mut tree = tree();
        let mut used = 0;
        for child in 0..100 {
            tree.settle(
                members(&[(id(1, 1), 5), (id(2, child), 4 * MS)]),
                used / (10 * MS) * 10 * MS,
            );
            used += 5 * MS;
            let dead = tree.settle(members(&[(id(1, 1), 5)]), used / (10 * MS) * 10 * MS);
            assert!(dead <= used, "{dead} ns of {used} ns");
            assert!(dead + 10 * MS > used, "{dead} ns of {used} ns");
        }
    }

    #[test]
    fn a_reused_number_is_another_process() {
        let mut tree = tree();
        tree.settle(members(&[(id(1, 1), 5), (id(2, 1), 70 * MS)]), 0);
        let dead = tree.settle(members(&[(id(1, 1), 5), (id(2, 9), MS)]), 0);
        assert_eq!(dead, 70 * MS);
    }
}
