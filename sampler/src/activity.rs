//! What the kernel had to do for processes: page faults and context switches.

use crate::SamplerError;
use crate::procfs;
use std::collections::BTreeMap;

/// Cumulative counts of processes, from their start on. Take one at each end of a
/// phase; what grew between them is of the phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Pages that were mapped without reading, by all threads there ever were.
    minor_faults: u64,
    /// Pages that had to be read, by all threads there ever were.
    major_faults: u64,
    /// Of the threads that live now: how often each went to sleep, and was made to wait.
    switches: BTreeMap<Thread, (u64, u64)>,
}

/// Process and thread.
type Thread = (u32, u32);

/// What was added between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grown {
    /// Pages that were mapped without reading.
    pub minor_faults: u64,
    /// Pages that had to be read.
    pub major_faults: u64,
    /// How often a thread went to sleep, and how often one was made to wait. `None` if a
    /// thread of the first reading has ended: it took its count with it.
    pub switches: Option<(u64, u64)>,
}

impl Activity {
    /// Of these processes together. One that has ended counts nothing. Reads a file
    /// for each thread, about 10 us.
    ///
    /// # Errors
    /// If `/proc` cannot be read.
    pub fn of(pids: &[u32]) -> Result<Self, SamplerError> {
        let mut all = Self::default();
        let mut buffer = Vec::new();
        for pid in pids {
            if let Some(faults) = procfs::faults(*pid, &mut buffer)? {
                all.minor_faults += faults.minor;
                all.major_faults += faults.major;
            }
            for thread in procfs::threads(*pid)? {
                if let Some(switches) = procfs::switches(*pid, thread, &mut buffer)? {
                    all.switches.insert((*pid, thread), switches);
                }
            }
        }
        Ok(all)
    }

    /// What was added since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Grown {
        let all_live = earlier
            .switches
            .keys()
            .all(|id| self.switches.contains_key(id));
        let grown = self.switches.iter().map(|(id, now)| {
            let before = earlier.switches.get(id).copied().unwrap_or_default();
            (
                now.0.saturating_sub(before.0),
                now.1.saturating_sub(before.1),
            )
        });
        let sum = grown.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        Grown {
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            switches: all_live.then_some(sum),
        }
    }
}
