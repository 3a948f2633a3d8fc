//! The protocol between a driver and a client process: a line of JSON each way.
//!
//! ```text
//! driver                         client
//!   prepare {load, target, seed, part, most_connections}
//!                                  prepared {shards}
//!                                  ready {phase: connect}
//!   go {phase: connect}
//!                                  progress {phase, done, total} ...
//!                                  done {phase, report}
//!                                  ready {phase: warmup} ...
//!                                  finished
//!   extend {load}                  (more connections; its phases follow)
//!   stop                           (the client closes its connections and exits 0)
//! ```
//!
//! Between `ready` and `go` the client does nothing, so that the driver can
//! sample while nothing moves. End of input means `stop`. The client reports a
//! fault as `failed` and exits non-zero.

use crate::{Intervals, Load, Phase, Series, Target};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// From the driver to a client process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum ClientCommand {
    /// The first line.
    Prepare {
        /// What to do.
        load: Box<Load>,
        /// To whom.
        target: Target,
        /// Of every random choice: payloads, keys, phases of senders.
        seed: u64,
        /// Which of the client's processes this is: `load` is its share.
        part: Part,
        /// Connections of this process at most, in this load and those that extend it.
        most_connections: u32,
    },
    /// After all phases: the next load of a ramp, with more connections to the
    /// same server. Its phases follow, beginning with connect.
    Extend {
        /// `after_connections` is what the load before had.
        load: Box<Load>,
    },
    /// Begin the phase that the client said it is ready for.
    Go {
        /// That phase.
        phase: Phase,
        /// `CLOCK_MONOTONIC` at which to begin, for clients in step; at once if absent.
        at_ns: Option<u64>,
    },
    /// Close the connections and exit.
    Stop,
}

/// One of the processes that a client consists of. All of them get about as many
/// connections (the same number, or one more), and none uses a source
/// address and port that another one may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// From 0; below `of`.
    pub index: u32,
    /// The number of processes; at least 1.
    pub of: u32,
}

impl Part {
    /// The only process of its client.
    pub const WHOLE: Self = Self { index: 0, of: 1 };
}

/// From a client process to the driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub enum ClientEvent {
    /// Frames are made, limits are checked.
    Prepared {
        /// One for each CPU that the client may use.
        shards: u32,
    },
    /// The next phase waits for `go`; after the last one there is no `ready`.
    Ready {
        /// The phase that `go` will begin.
        phase: Phase,
    },
    /// About once a second.
    Progress(Progress),
    /// The phase is over and nothing is in flight.
    Done {
        /// The phase that ended.
        phase: Phase,
        /// What was measured.
        report: Box<PhaseReport>,
    },
    /// All phases of the load are done.
    Finished,
    /// The client cannot go on.
    Failed {
        /// For the user: cause and remedy.
        message: String,
    },
}

/// How far a phase has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// The phase.
    pub phase: Phase,
    /// Connections established, echoes or messages answered; of transfers their bytes.
    pub done: u64,
    /// Connections, echoes, messages or transfers that failed.
    pub failed: u64,
    /// What is planned, in the unit of `done`.
    pub total: u64,
}

/// What a client measured in one phase. Names are in [`crate::metric`], without
/// the phase's prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseReport {
    /// Integers in the unit that ends the name.
    pub metrics: BTreeMap<String, u64>,
    /// HdrHistogram V2, base64; see [`crate::histogram`].
    pub histograms: BTreeMap<String, String>,
    /// Readings over time since the phase began.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, Series>,
    /// Latencies by interval, under the names of `histograms`; together they are those.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub intervals: BTreeMap<String, Intervals>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_read_back_and_unknown_ones_are_rejected() {
        let line = r#"{"op":"go","phase":"echo","at_ns":null}"#;
        let command: ClientCommand = serde_json::from_str(line).unwrap();
        assert_eq!(
            command,
            ClientCommand::Go {
                phase: Phase::Echo,
                at_ns: None
            }
        );
        assert_eq!(serde_json::to_string(&command).unwrap(), line);
        assert!(serde_json::from_str::<ClientCommand>(r#"{"op":"halt"}"#).is_err());
        let progress = Progress {
            phase: Phase::Echo,
            done: 1,
            failed: 0,
            total: 2,
        };
        let text = serde_json::to_string(&ClientEvent::Progress(progress)).unwrap();
        assert_eq!(
            text,
            r#"{"event":"progress","phase":"echo","done":1,"failed":0,"total":2}"#
        );
        let back: ClientEvent = serde_json::from_str(&text).unwrap();
        assert_eq!(back, ClientEvent::Progress(progress));
    }
}
