//! Transfers of many bytes over plain TCP, and what a load's messages are carried by.

use crate::Load;
use serde::{Deserialize, Serialize};

/// What messages are carried by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// WebSocket messages, behind an opening handshake.
    #[default]
    Websocket,
    /// The bytes of the messages and nothing else, on a TCP connection.
    Stream,
}

impl Transport {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    pub(crate) fn is_websocket(&self) -> bool {
        *self == Self::Websocket
    }
}

/// Where the bytes of a transfer go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// To the server and back again: any server does that echoes.
    Both,
    /// To the server, which counts those that are right and tells at the end.
    Up,
    /// From the server.
    Down,
}

/// One transfer on every connection, all at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BulkLoad {
    /// Bytes that each connection transfers, a multiple of the load's payload. In
    /// direction `both` so many go to the server and so many come back.
    pub bytes_per_connection: u64,
    /// Where they go.
    pub direction: Direction,
    /// Bytes of a connection that were sent and have not come back, at most, in direction
    /// `both`; 0 is no bound but the kernel's.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub window_bytes: u64,
    /// Of a hundred connections, how many read slowly; which ones is the same for
    /// all subjects.
    pub slow_readers_percent: u32,
    /// What each of those reads in a second at most.
    pub slow_bytes_per_s: u64,
    /// End after this long; what was transferred until then is told.
    pub duration_ms: Option<u64>,
    /// A transfer of which nothing has come for this long is lost.
    pub timeout_ms: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

impl BulkLoad {
    /// Bytes of a transfer at most: a tebibyte.
    pub const BYTES_MAX: u64 = 1 << 40;
    /// Pieces of the load's payload in a transfer at most: they are counted in 32 bits.
    pub const PIECES_MAX: u64 = 4_000_000_000;

    /// How often each byte of a transfer crosses: once, or there and back.
    #[must_use]
    pub fn crossings(&self) -> u64 {
        match self.direction {
            Direction::Both => 2,
            Direction::Up | Direction::Down => 1,
        }
    }

    /// What `load`, whose bulk this is, asks for that cannot be done.
    pub(crate) fn validate(&self, load: &Load) -> Result<(), String> {
        let bytes = self.bytes_per_connection;
        let (piece, percent) = (u64::from(load.payload_bytes), self.slow_readers_percent);
        let refused = [
            (
                load.transport != Transport::Stream,
                "bulk transfers need plain TCP (of a profile: suite = \"relay\" or \"transfer\")"
                    .to_owned(),
            ),
            (
                load.echo.is_some() || load.rate.is_some(),
                "bulk transfers share no load with echo or rate (make them two loads)".into(),
            ),
            (
                load.after_connections > 0,
                "bulk transfers are not made in the steps of a ramp".into(),
            ),
            (
                !load.check,
                "bulk transfers are always checked byte for byte; check cannot be off".into(),
            ),
            (
                !(1..=Self::BYTES_MAX).contains(&bytes),
                format!(
                    "bulk bytes a connection is {bytes}; it must be from 1 to {}",
                    Self::BYTES_MAX
                ),
            ),
            (
                !bytes.is_multiple_of(piece),
                format!(
                    "bulk bytes a connection is {bytes}; it must be a multiple of the payload ({piece})"
                ),
            ),
            (
                bytes / piece.max(1) > Self::PIECES_MAX,
                format!(
                    "bulk bytes a connection is {bytes}; at most {} payloads of {piece} bytes \
                     (use a larger payload)",
                    Self::PIECES_MAX
                ),
            ),
            (
                (1..piece).contains(&self.window_bytes),
                format!(
                    "bulk window is {} bytes; it must hold a payload ({piece})",
                    self.window_bytes
                ),
            ),
            (
                self.window_bytes > 0 && self.direction != Direction::Both,
                "a bulk window is of what comes back, which is nothing but in direction both"
                    .into(),
            ),
            (
                percent > 100,
                format!("slow readers is {percent} percent; it must be at most 100"),
            ),
            (
                percent > 0 && self.slow_bytes_per_s == 0,
                "slow readers read 0 bytes a second; it must be at least 1".into(),
            ),
            (
                percent > 0 && self.direction == Direction::Up,
                "slow readers have nothing to read in direction up".into(),
            ),
            (
                self.duration_ms == Some(0),
                "bulk duration is 0; leave it out or make it positive".into(),
            ),
            (
                self.timeout_ms == 0,
                "bulk timeout is 0; it must be at least 1".into(),
            ),
        ];
        match refused.into_iter().find(|(is_so, _)| *is_so) {
            Some((_, why)) => Err(why),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DialLoad, EchoLoad, MessageKind};

    fn load() -> Load {
        let bulk = BulkLoad {
            bytes_per_connection: 1 << 20,
            direction: Direction::Both,
            window_bytes: 0,
            slow_readers_percent: 0,
            slow_bytes_per_s: 0,
            duration_ms: None,
            timeout_ms: 5000,
        };
        Load {
            connections: 10,
            payload_bytes: 32 << 10,
            message: MessageKind::Binary,
            check: true,
            dial: DialLoad::default(),
            echo: None,
            rate: None,
            bulk: Some(bulk),
            release: None,
            transport: Transport::Stream,
            after_connections: 0,
            client_burn_ns: 0,
        }
    }

    #[test]
    fn a_bulk_load_that_cannot_run_says_why() {
        type Change<'a> = &'a dyn Fn(&mut Load);
        load().validate().unwrap();
        let bulk = |load: &mut Load, change: fn(&mut BulkLoad)| change(load.bulk.as_mut().unwrap());
        let cases: [(&str, Change<'_>); 12] = [
            ("need plain TCP", &|load| {
                load.transport = Transport::Websocket;
            }),
            ("echo or rate", &|load| {
                load.echo = Some(EchoLoad {
                    echoes: 1,
                    duration_ms: None,
                    concurrency: 0,
                    limit_per_s: 0,
                    timeout_ms: 1,
                    warmup_echoes: 0,
                });
            }),
            ("steps of a ramp", &|load| load.after_connections = 1),
            ("always checked", &|load| load.check = false),
            ("from 1 to", &|load| {
                bulk(load, |bulk| bulk.bytes_per_connection = 0);
            }),
            ("multiple of the payload (1000)", &|load| {
                load.payload_bytes = 1000;
            }),
            ("payload is 0 bytes", &|load| load.payload_bytes = 0),
            ("larger payload", &|load| {
                load.payload_bytes = 1;
                bulk(load, |bulk| bulk.bytes_per_connection = 1 << 32);
            }),
            ("101 percent", &|load| {
                bulk(load, |bulk| bulk.slow_readers_percent = 101);
            }),
            ("0 bytes a second", &|load| {
                bulk(load, |bulk| bulk.slow_readers_percent = 1);
            }),
            ("duration is 0", &|load| {
                bulk(load, |bulk| bulk.duration_ms = Some(0));
            }),
            ("timeout is 0", &|load| {
                bulk(load, |bulk| bulk.timeout_ms = 0);
            }),
        ];
        for (expected, change) in cases {
            let mut load = load();
            change(&mut load);
            let error = load.validate().unwrap_err();
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }

    #[test]
    fn what_is_echoed_crosses_twice() {
        let crossings = |direction| {
            let bulk = load().bulk.unwrap();
            BulkLoad { direction, ..bulk }.crossings()
        };
        let directions = [Direction::Both, Direction::Up, Direction::Down];
        assert_eq!(directions.map(crossings), [2, 1, 1]);
    }

    #[test]
    fn each_process_makes_the_transfers_of_its_connections() {
        let shares = load().shares(3).unwrap();
        let connections: Vec<u32> = shares.iter().map(|share| share.connections).collect();
        assert_eq!(connections, [4, 3, 3]);
        for share in shares {
            share.validate().unwrap();
            assert_eq!(
                (share.bulk, share.transport),
                (load().bulk, Transport::Stream)
            );
        }
    }
}
