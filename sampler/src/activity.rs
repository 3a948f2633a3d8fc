//! What the kernel had to do for processes: page faults and context switches.

use crate::SamplerError;
use crate::procfs;

/// Cumulative counts of processes, from their start on. Take one at each end of a
/// phase; what grew between them is of the phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Pages that were mapped without reading, by all threads there ever were.
    pub minor_faults: u64,
    /// Pages that had to be read, by all threads there ever were.
    pub major_faults: u64,
    /// Times that a thread went to sleep: of the threads that live now.
    pub voluntary_switches: u64,
    /// Times that a thread was made to wait: of the threads that live now.
    pub involuntary_switches: u64,
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
                let switches = procfs::switches(*pid, thread, &mut buffer)?;
                if let Some((voluntary, involuntary)) = switches {
                    all.voluntary_switches += voluntary;
                    all.involuntary_switches += involuntary;
                }
            }
        }
        Ok(all)
    }

    /// What was added since an earlier reading. Threads that have ended since took
    /// their switches with them.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            voluntary_switches: self
                .voluntary_switches
                .saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(earlier.involuntary_switches),
        }
    }
}
