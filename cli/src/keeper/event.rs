//! What a keeper tells the runner: a line of JSON each.

use crate::process;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A line of a keeper's standard output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    /// The server's process exists and runs its program.
    Spawned {
        /// Its process id.
        pid: u32,
    },
    /// There is no server: its program cannot be run.
    Failed {
        /// Why.
        message: String,
    },
    /// The server's process has ended; what it started may still be there.
    Exited(Exit),
    /// The keeper ends. The last line.
    Gone {
        /// Names of the programs that had to be killed.
        killed: Vec<String>,
        /// Processes that survived even that (the kernel holds them).
        left: u32,
    },
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exit {
    /// Its exit code, if it ended by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

impl Event {
    /// Without the line's end.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exited with code {code}"),
            (None, Some(signal)) => {
                write!(f, "was ended by {}", process::describe_signal(signal))
            }
            (None, None) => f.write_str("ended in an unknown way"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_read_back() {
        let exit = Exit {
            code: None,
            signal: Some(9),
        };
        let event = Event::Exited(exit);
        assert_eq!(event.to_line(), r#"{"event":"exited","signal":9}"#);
        assert_eq!(
            serde_json::from_str::<Event>(&event.to_line()).ok(),
            Some(event)
        );
        let unknown = r#"{"event":"exited","signal":9,"core":true}"#;
        assert!(serde_json::from_str::<Event>(unknown).is_err());
        let text = exit.to_string();
        assert!(
            text.starts_with("was ended by signal 9 (SIGKILL: "),
            "{text}"
        );
    }
}
