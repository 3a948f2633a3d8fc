//! The kinds of server that are compared with each other.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a subject does, and so which subjects can be compared.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Suite {
    /// Echoes WebSocket messages.
    #[default]
    Websocket,
    /// Copies bytes between the client's TCP connections and those to an upstream.
    Relay,
    /// Echoes the bytes of TCP connections in bulk.
    Transfer,
}

impl Suite {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 3] = [Self::Websocket, Self::Relay, Self::Transfer];

    /// As it stands in records and manifests.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Websocket => "websocket",
            Self::Relay => "relay",
            Self::Transfer => "transfer",
        }
    }

    /// Whether it is the usual one, which files leave out.
    #[must_use]
    pub fn is_websocket(&self) -> bool {
        *self == Self::Websocket
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_is_written_by_its_name() {
        for suite in Suite::ALL {
            let json = serde_json::to_value(suite).unwrap();
            assert_eq!(json, suite.name());
            assert_eq!(serde_json::from_value::<Suite>(json).unwrap(), suite);
        }
    }
}
