//! Everything that is written to disk or sent between processes, and its units.
//!
//! Disk and wire types only: no I/O beyond reading and writing one file, no
//! clocks, no sockets. Integers are in base units and carry the unit in their
//! name (`latency_ns`, `rss_bytes`); percentages and "1.91G" exist only in the
//! report. Unknown fields are rejected, so that a typo or a record of another
//! version is an error and never a silently missing number.

pub mod bulk;
pub mod examination;
pub mod histogram;
pub mod hlog;
pub mod intervals;
pub mod load;
pub mod machine;
pub mod mark;
pub mod merge;
pub mod metric;
pub mod observe;
pub mod random;
pub mod record;
pub mod setting;
pub mod share;
pub mod slo;
pub mod split;
pub mod suite;
pub mod target;
pub mod upgrade;
pub mod wire;

pub use bulk::{BulkLoad, Direction, Transport};
pub use examination::{Examination, Finding, Level, Verdict};
pub use histogram::{HistogramError, decode_histogram, encode_histogram, latency_histogram};
pub use intervals::Intervals;
pub use load::{DialLoad, EchoLoad, Load, MessageKind, RateLoad, ReleaseLoad};
pub use machine::{CpuMap, Machine};
pub use merge::MergeError;
pub use metric::Phase;
pub use observe::{Edge, ListenQueue, Sample, Series};
pub use random::SplitMix64;
pub use record::{Loaded, Outcome, RecordError, RunPlan, SCHEMA_VERSION, SubjectId, TrialRecord};
pub use slo::{Bound, Limit, Objective, SloOutcome, SloRecord, SloStage, StageKind, StageVerdict};
pub use suite::Suite;
pub use target::{PortRange, PortRangeError, Target, TargetError};
pub use wire::{ClientCommand, ClientEvent, Part, PhaseReport, Progress};
