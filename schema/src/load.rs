//! What a client does to a server. Two results are compared only if their
//! loads hash to the same value.

use crate::bulk::{BulkLoad, Transport};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A whole load: connections, then the phases that are asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Connections to open.
    pub connections: u32,
    /// Of these, opened by the loads before on the same server: a step of a ramp.
    /// Zero where a load begins with a fresh server.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub after_connections: u32,
    /// What messages are carried by. It is left out of the text, and so of the hash,
    /// where it is WebSocket.
    #[serde(default, skip_serializing_if = "Transport::is_websocket")]
    pub transport: Transport,
    /// Payload of a message, without framing; of a bulk load, what is written at once.
    pub payload_bytes: u32,
    /// Type of the messages sent, and expected back. Over plain TCP only what they
    /// consist of: random bytes or ASCII.
    pub message: MessageKind,
    /// Compare every echoed byte with what was sent (opcode and length are
    /// compared always).
    pub check: bool,
    /// How connections are opened.
    pub dial: DialLoad,
    /// The closed loop, if it is run.
    pub echo: Option<EchoLoad>,
    /// The open loop, if it is run.
    pub rate: Option<RateLoad>,
    /// Transfers of many bytes, if they are made: alone, and over plain TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulk: Option<BulkLoad>,
    /// What is closed at the end, if anything is. It is left out of the text, and so of
    /// the hash, where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<ReleaseLoad>,
    /// Work added to the client for each message, to prove that the
    /// client-bound mark tells the truth. Zero in every honest load.
    pub client_burn_ns: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Type of a WebSocket data message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// Opcode 2.
    Binary,
    /// Opcode 1; the payload is ASCII.
    Text,
}

/// How connections are opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DialLoad {
    /// Dials in flight at once.
    pub concurrency: u32,
    /// From `connect` to a verified handshake, for each attempt.
    pub timeout_ms: u64,
    /// Attempts after the first.
    pub retries: u32,
    /// Pause before an attempt is repeated.
    pub retry_interval_ms: u64,
}

/// Closed loop: each echo in flight is followed by the next when it is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EchoLoad {
    /// Echoes in all.
    pub echoes: u64,
    /// Stop after this long even if not all echoes were sent.
    pub duration_ms: Option<u64>,
    /// Echoes in flight; 0 means one on every connection.
    pub concurrency: u32,
    /// Echoes a second over the whole run; 0 means no limit.
    pub limit_per_s: u64,
    /// An echo unanswered for this long is lost.
    pub timeout_ms: u64,
    /// Echoes before the measured ones, excluded from every figure.
    pub warmup_echoes: u64,
}

/// Open loop: messages are sent when they are due, answered or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLoad {
    /// Connections that send; 0 means all, and never more than are open.
    pub connections: u32,
    /// How long messages are due.
    pub duration_ms: u64,
    /// Messages a second on each connection.
    pub per_connection_per_s: u32,
    /// Bytes written to a connection at once: whole frames, at least one.
    pub batch_bytes: u32,
    /// Messages in flight on a connection; 0 means 16 batches.
    pub window: u32,
    /// Messages a second in all; 0 means no limit. It lowers the intended rate.
    pub limit_per_s: u64,
    /// How long answers are waited for after the last message was due, and how
    /// long a message may stay unanswered.
    pub timeout_ms: u64,
}

/// The end: some of the connections are closed, spread evenly over all that are open,
/// so that what the server keeps of them shows in its memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseLoad {
    /// Of the open connections.
    pub percent: u32,
    /// Time for the server after the last of them is closed, before its memory is read.
    pub settle_ms: u64,
    /// A close that the server did not complete after this long is given up.
    pub timeout_ms: u64,
}

impl ReleaseLoad {
    /// An hour: more is a mistake.
    pub const TIME_MAX_MS: u64 = 3_600_000;

    fn validate(&self, load: &Load) -> Result<(), String> {
        if load.transport == Transport::Stream {
            return Err("release is for WebSocket servers (leave it out)".into());
        }
        if !(1..=100).contains(&self.percent) {
            let percent = self.percent;
            return Err(format!("release percent is {percent}; it must be 1 to 100"));
        }
        for (name, ms) in [("settle", self.settle_ms), ("timeout", self.timeout_ms)] {
            if ms > Self::TIME_MAX_MS {
                let most = Self::TIME_MAX_MS;
                return Err(format!(
                    "release {name} is {ms} ms; it must be at most {most}"
                ));
            }
        }
        match self.timeout_ms {
            0 => Err("release timeout is 0; it must be at least 1".into()),
            _ => Ok(()),
        }
    }
}

/// Warm-up echoes for each connection, and the most there ever are.
pub const WARMUP_ECHOES_PER_CONNECTION: u64 = 5;
/// See [`WARMUP_ECHOES_PER_CONNECTION`].
pub const WARMUP_ECHOES_MAX: u64 = 2_000_000;

impl EchoLoad {
    /// The warm-up of the original: five echoes a connection, at most two million.
    #[must_use]
    pub fn default_warmup(connections: u32) -> u64 {
        (u64::from(connections) * WARMUP_ECHOES_PER_CONNECTION).min(WARMUP_ECHOES_MAX)
    }
}

impl Default for DialLoad {
    fn default() -> Self {
        Self {
            concurrency: 2000,
            timeout_ms: 5000,
            retries: 5,
            retry_interval_ms: 100,
        }
    }
}

impl Load {
    /// The most a payload may be: what a frame of the client can carry and the
    /// servers are asked to accept.
    pub const PAYLOAD_MAX_BYTES: u32 = 64 << 20;

    /// Attempts after the first, at most.
    pub const RETRIES_MAX: u16 = u16::MAX;
    /// Messages a second on one connection, at most: beyond what any loop sends.
    pub const RATE_MAX_PER_S: u32 = 1_000_000;
    /// A day.
    pub const RATE_DURATION_MAX_MS: u64 = 86_400_000;
    /// Messages of one connection in a phase, at most: a client counts them in 32 bits.
    pub const RATE_MAX_MESSAGES: u64 = 4_000_000_000;

    /// Connections that this load itself opens.
    #[must_use]
    pub fn dials(&self) -> u32 {
        self.connections.saturating_sub(self.after_connections)
    }

    /// Sixteen hexadecimal digits; equal loads, and only those, share them.
    #[must_use]
    pub fn hash(&self) -> String {
        let json = serde_json::to_vec(self).expect("a load is always valid JSON");
        Sha256::digest(json)
            .iter()
            .take(8)
            .map(|b| format!("{b:02x}"))
            .collect()
    }

    /// Says what cannot be run, naming the setting.
    ///
    /// # Errors
    /// A sentence for the user: which setting, its value, what is allowed.
    pub fn validate(&self) -> Result<(), String> {
        let positive = |name: &str, value: u64| {
            if value == 0 {
                Err(format!("{name} is 0; it must be at least 1"))
            } else {
                Ok(())
            }
        };
        positive("connections", self.connections.into())?;
        if self.after_connections >= self.connections {
            let (have, before) = (self.connections, self.after_connections);
            return Err(format!(
                "{have} connections after {before}; each step of a ramp must open more"
            ));
        }
        if self.payload_bytes > Self::PAYLOAD_MAX_BYTES {
            let (have, most) = (self.payload_bytes, Self::PAYLOAD_MAX_BYTES);
            return Err(format!(
                "payload is {have} bytes; at most {most} are supported"
            ));
        }
        positive("dial concurrency", self.dial.concurrency.into())?;
        positive("dial timeout", self.dial.timeout_ms)?;
        let at_most = |name: &str, value: u64, most: u64| match value > most {
            true => Err(format!("{name} is {value}; it must be at most {most}")),
            false => Ok(()),
        };
        at_most(
            "dial retries",
            self.dial.retries.into(),
            Self::RETRIES_MAX.into(),
        )?;
        if let Some(echo) = &self.echo {
            positive("echoes", echo.echoes)?;
            positive("echo timeout", echo.timeout_ms)?;
            if echo.duration_ms == Some(0) {
                return Err("echo duration is 0; leave it out or make it positive".into());
            }
        }
        if let Some(rate) = &self.rate {
            positive("rate duration", rate.duration_ms)?;
            positive(
                "rate messages a second a connection",
                rate.per_connection_per_s.into(),
            )?;
            positive("rate timeout", rate.timeout_ms)?;
            at_most(
                "rate duration in ms",
                rate.duration_ms,
                Self::RATE_DURATION_MAX_MS,
            )?;
            at_most(
                "rate messages a second a connection",
                rate.per_connection_per_s.into(),
                Self::RATE_MAX_PER_S.into(),
            )?;
            at_most(
                "rate messages a connection in all",
                rate.duration_ms * u64::from(rate.per_connection_per_s) / 1000,
                Self::RATE_MAX_MESSAGES,
            )?;
        }
        if self.transport == Transport::Stream && self.payload_bytes == 0 {
            return Err("payload is 0 bytes; a stream carries none (use at least 1)".into());
        }
        if let Some(release) = &self.release {
            release.validate(self)?;
        }
        match &self.bulk {
            Some(bulk) => bulk.validate(self),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load() -> Load {
        Load {
            connections: 10,
            payload_bytes: 1024,
            message: MessageKind::Binary,
            check: true,
            dial: DialLoad::default(),
            echo: None,
            rate: None,
            bulk: None,
            release: None,
            transport: Transport::Websocket,
            after_connections: 0,
            client_burn_ns: 0,
        }
    }

    #[test]
    fn equal_loads_and_only_those_share_a_hash() {
        assert_eq!(load().hash(), load().hash());
        assert_ne!(
            load().hash(),
            Load {
                payload_bytes: 1025,
                ..load()
            }
            .hash()
        );
        assert_eq!(load().hash().len(), 16);
    }

    /// Records that are on disk must stay comparable with new ones.
    #[test]
    fn what_was_added_to_a_load_later_does_not_change_the_hash_of_those_without_it() {
        assert_eq!(load().hash(), "95c1d9f97c10fbd6");
        let stream = Load {
            transport: Transport::Stream,
            ..load()
        };
        assert_ne!(stream.hash(), load().hash());
        let json = serde_json::to_string(&load()).unwrap();
        assert_eq!(serde_json::from_str::<Load>(&json).unwrap(), load());
    }

    #[test]
    fn a_load_that_cannot_run_names_its_setting() {
        let error = Load {
            connections: 0,
            ..load()
        }
        .validate()
        .unwrap_err();
        assert_eq!(error, "connections is 0; it must be at least 1");
        let error = Load {
            payload_bytes: u32::MAX,
            ..load()
        }
        .validate()
        .unwrap_err();
        assert!(error.starts_with("payload is 4294967295 bytes"), "{error}");
        let mut load = load();
        load.dial.retries = 65_536;
        let error = load.validate().unwrap_err();
        assert_eq!(error, "dial retries is 65536; it must be at most 65535");
        load.dial.retries = 0;
        load.rate = Some(RateLoad {
            connections: 0,
            duration_ms: Load::RATE_DURATION_MAX_MS,
            per_connection_per_s: 100_000,
            batch_bytes: 0,
            window: 0,
            limit_per_s: 0,
            timeout_ms: 1,
        });
        let error = load.validate().unwrap_err();
        assert!(
            error.starts_with("rate messages a connection in all is 8640000000;"),
            "{error}"
        );
    }

    #[test]
    fn a_release_names_what_it_cannot_do() {
        let of = |percent, settle_ms, timeout_ms| ReleaseLoad {
            percent,
            settle_ms,
            timeout_ms,
        };
        let reason = |release, transport| {
            let load = Load {
                release: Some(release),
                transport,
                ..load()
            };
            load.validate().err()
        };
        let websocket = |release| reason(release, Transport::Websocket);
        assert_eq!(websocket(of(50, 0, 1)), None);
        for (release, starts) in [
            (of(0, 0, 1), "release percent is 0;"),
            (of(101, 0, 1), "release percent is 101;"),
            (of(50, 3_600_001, 1), "release settle is 3600001 ms;"),
            (of(50, 0, 0), "release timeout is 0;"),
        ] {
            let reason = websocket(release).unwrap();
            assert!(reason.starts_with(starts), "{reason}");
        }
        let stream = reason(of(50, 0, 1), Transport::Stream).unwrap();
        assert!(stream.starts_with("release is for WebSocket"), "{stream}");
    }

    #[test]
    fn warmup_is_five_a_connection_and_bounded() {
        assert_eq!(EchoLoad::default_warmup(10_000), 50_000);
        assert_eq!(EchoLoad::default_warmup(1_000_000), 2_000_000);
    }

    #[test]
    fn unknown_fields_are_rejected() {
        let mut json = serde_json::to_value(load()).unwrap();
        json["payload"] = 3.into();
        assert!(serde_json::from_value::<Load>(json).is_err());
    }
}
