//! The load on the command line, of `client` and `run`. Every flag may be left
//! out: then the profile's value stands.

use super::units::{boolean, whole_millis};
use crate::profile::{Matrix, Profile, default_echo, millis, release};
use anyhow::{Context as _, bail};
use clap::Args;
use std::time::Duration;
use wsbench_schema::{BulkLoad, Direction, EchoLoad, Load, MessageKind, RateLoad, ReleaseLoad};

const CONNECTIONS: &str = "Connections";
const ECHO: &str = "Echo: closed loop";
const RATE: &str = "Rate: open loop";
const BULK: &str = "Bulk transfers, of a profile that has them";
const RELEASE: &str = "Release: connections closed at the end";
const SAMPLING: &str = "Sampling";

/// What to do to a server. The defaults named are those of `client` without a
/// profile; `run` and `doctor` take the profile's.
#[derive(Args, Clone, Debug, Default)]
pub struct LoadArgs {
    /// Connections to open; for `run` also a list: 1000,10000 [default: 10000]
    #[arg(short = 'c', long, value_name = "COUNT", value_delimiter = ',', help_heading = CONNECTIONS)]
    pub connections: Vec<u32>,
    /// Payload of a message in bytes; for `run` also a list: 128,1024 [default: 1024]
    #[arg(short = 'b', long, value_name = "BYTES", value_delimiter = ',', help_heading = CONNECTIONS)]
    pub payload: Vec<u32>,
    /// Send text messages instead of binary ones [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean, help_heading = CONNECTIONS)]
    pub text: Option<bool>,
    /// Compare every byte that comes back [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean, help_heading = CONNECTIONS)]
    pub check: Option<bool>,
    /// Dials in flight at once [default: 2000]
    #[arg(long, value_name = "COUNT", help_heading = CONNECTIONS)]
    pub dial_concurrency: Option<u32>,
    /// Time for an attempt, from connect to a verified handshake [default: 5s]
    #[arg(long, value_name = "DURATION", value_parser = whole_millis, help_heading = CONNECTIONS)]
    pub dial_timeout: Option<Duration>,
    /// Attempts after the first [default: 5]
    #[arg(long, value_name = "COUNT", help_heading = CONNECTIONS)]
    pub dial_retries: Option<u32>,
    /// Pause before an attempt is repeated [default: 100ms]
    #[arg(long, value_name = "DURATION", value_parser = whole_millis, help_heading = CONNECTIONS)]
    pub dial_retry_interval: Option<Duration>,

    /// Whether to run the closed loop [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean, help_heading = ECHO)]
    pub echo: Option<bool>,
    /// Echoes in all [default: 2000000]
    #[arg(short = 'n', long, value_name = "COUNT", help_heading = ECHO)]
    pub echoes: Option<u64>,
    /// Stop after this time even if not all were sent; 0: no limit [default: 0]
    #[arg(long, value_name = "DURATION", value_parser = whole_millis, help_heading = ECHO)]
    pub echo_duration: Option<Duration>,
    /// Echoes in flight; 0: one on every connection [default: 0]
    #[arg(long, value_name = "COUNT", help_heading = ECHO)]
    pub echo_concurrency: Option<u32>,
    /// Echoes a second in all; 0: no limit [default: 0]
    #[arg(long, value_name = "PER_SECOND", help_heading = ECHO)]
    pub echo_limit: Option<u64>,
    /// An echo unanswered for this time is lost [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = whole_millis, help_heading = ECHO)]
    pub echo_timeout: Option<Duration>,
    /// Echoes before the measured ones [default: 5 a connection, at most 2000000]
    #[arg(long, value_name = "COUNT", help_heading = ECHO)]
    pub warmup: Option<u64>,

    /// Whether to run the open loop [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean, help_heading = RATE)]
    pub rate: Option<bool>,
    /// Connections that send; 0: all [default: 0]
    #[arg(long, value_name = "COUNT", help_heading = RATE)]
    pub rate_connections: Option<u32>,
    /// How long messages are due [default: 5s]
    #[arg(long, value_name = "DURATION", value_parser = whole_millis, help_heading = RATE)]
    pub rate_duration: Option<Duration>,
    /// Messages a second on each connection [default: 5, at most 50000 in all]
    #[arg(long, value_name = "PER_SECOND", help_heading = RATE)]
    pub rate_per_connection: Option<u32>,
    /// Bytes written to a connection at once, in whole frames [default: 16384]
    #[arg(long, value_name = "BYTES", help_heading = RATE)]
    pub rate_batch_bytes: Option<u32>,
    /// Messages in flight on a connection; 0: 16 batches [default: 0]
    #[arg(long, value_name = "COUNT", help_heading = RATE)]
    pub rate_window: Option<u32>,
    /// Messages that become due a second in all; 0: no limit [default: 50000, or 0 with --rate-per-connection]
    #[arg(long, value_name = "PER_SECOND", help_heading = RATE)]
    pub rate_limit: Option<u64>,
    /// How long an answer is waited for [default: 10s]
    #[arg(long, value_name = "DURATION", value_parser = whole_millis, help_heading = RATE)]
    pub rate_timeout: Option<Duration>,

    /// Bytes that each connection transfers, a multiple of the payload [default: the profile's]
    #[arg(long, value_name = "BYTES", help_heading = BULK)]
    pub bulk_bytes: Option<u64>,
    /// Where they go: both (there and back again), up or down [default: the profile's]
    #[arg(long, value_name = "DIRECTION", value_parser = direction, help_heading = BULK)]
    pub bulk_direction: Option<Direction>,
    /// Bytes of a connection that were sent and have not come back, at most; 0: no bound [default: the profile's]
    #[arg(long, value_name = "BYTES", help_heading = BULK)]
    pub bulk_window: Option<u64>,
    /// Of a hundred connections, how many read slowly [default: the profile's]
    #[arg(long, value_name = "PERCENT", help_heading = BULK)]
    pub slow_readers: Option<u32>,
    /// What each of those reads in a second [default: the profile's]
    #[arg(long, value_name = "BYTES", help_heading = BULK)]
    pub slow_bytes_per_s: Option<u64>,
    /// End after this time, whatever was transferred; 0: no limit [default: the profile's]
    #[arg(long, value_name = "DURATION", value_parser = whole_millis, help_heading = BULK)]
    pub bulk_duration: Option<Duration>,
    /// A transfer of which nothing has come for this time is lost [default: the profile's]
    #[arg(long, value_name = "DURATION", value_parser = whole_millis, help_heading = BULK)]
    pub bulk_timeout: Option<Duration>,

    /// Close so many of a hundred connections at the end, and read the server's memory; 0: none [default: 0]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(..=100), help_heading = RELEASE)]
    pub release: Option<u32>,
    /// Time for the server after that, before its memory is read [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = whole_millis, help_heading = RELEASE)]
    pub release_settle: Option<Duration>,
    /// A close that the server did not complete after this time is given up [default: 10s]
    #[arg(long, value_name = "DURATION", value_parser = whole_millis, help_heading = RELEASE)]
    pub release_timeout: Option<Duration>,

    /// Between two readings of CPU and memory, at least 200ms [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = sample_interval, help_heading = SAMPLING)]
    pub sample_interval: Option<Duration>,

    /// Work added to the client for each message, in nanoseconds, to prove the client-bound mark.
    #[arg(long, hide = true, value_name = "NS")]
    pub client_burn_ns: Option<u64>,
}

fn direction(text: &str) -> Result<Direction, String> {
    match text {
        "both" => Ok(Direction::Both),
        "up" => Ok(Direction::Up),
        "down" => Ok(Direction::Down),
        _ => Err("write both, up or down".into()),
    }
}

fn sample_interval(text: &str) -> Result<Duration, String> {
    let interval = whole_millis(text)?;
    let least = Profile::SAMPLE_INTERVAL_MIN;
    if interval < least {
        return Err(format!(
            "{text} is too short: the system's share of CPU is wrong below {least:?}"
        ));
    }
    Ok(interval)
}

/// A value of the command line over one of the profile.
fn set<T>(value: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *value = given;
    }
}

impl LoadArgs {
    /// The loads of `run`: each number of connections with each payload.
    ///
    /// # Errors
    /// If a load cannot be run: which setting, and what is allowed.
    pub fn loads(&self, profile: &Profile) -> anyhow::Result<Vec<Load>> {
        let mut merged = profile.clone();
        for matrix in &mut merged.matrices {
            self.override_matrix(matrix)?;
        }
        merged.check_count().map_err(anyhow::Error::msg)?;
        let loads = merged.loads();
        for load in &loads {
            load.validate().map_err(anyhow::Error::msg)?;
        }
        Ok(loads)
    }

    fn override_matrix(&self, matrix: &mut Matrix) -> anyhow::Result<()> {
        if !self.connections.is_empty() {
            matrix.connections.clone_from(&self.connections);
        }
        if !self.payload.is_empty() {
            matrix.payloads_bytes.clone_from(&self.payload);
        }
        let load = &mut matrix.load;
        if let Some(text) = self.text {
            load.message = if text {
                MessageKind::Text
            } else {
                MessageKind::Binary
            };
        }
        set(&mut load.check, self.check);
        set(&mut load.client_burn_ns, self.client_burn_ns);
        set(&mut load.dial.concurrency, self.dial_concurrency);
        set(&mut load.dial.timeout_ms, self.dial_timeout.map(millis));
        set(&mut load.dial.retries, self.dial_retries);
        set(
            &mut load.dial.retry_interval_ms,
            self.dial_retry_interval.map(millis),
        );
        load.echo = self.echo_load(load.echo.take());
        load.rate = self.rate_load(load.rate.take())?;
        load.release = self.release_load(load.release.take());
        if let Some(bulk) = &mut load.bulk {
            self.override_bulk(bulk);
        }
        if self.warmup.is_some() {
            matrix.warmup_echoes = self.warmup;
        }
        Ok(())
    }

    fn override_bulk(&self, bulk: &mut BulkLoad) {
        set(&mut bulk.bytes_per_connection, self.bulk_bytes);
        set(&mut bulk.direction, self.bulk_direction);
        set(&mut bulk.window_bytes, self.bulk_window);
        set(&mut bulk.slow_readers_percent, self.slow_readers);
        set(&mut bulk.slow_bytes_per_s, self.slow_bytes_per_s);
        set(&mut bulk.timeout_ms, self.bulk_timeout.map(millis));
        if let Some(duration) = self.bulk_duration {
            bulk.duration_ms = (!duration.is_zero()).then(|| millis(duration));
        }
    }

    /// The load of `client`; without a profile, the original's.
    ///
    /// # Errors
    /// As [`LoadArgs::loads`], or if there are several loads.
    pub fn single(&self, profile: Option<&Profile>) -> anyhow::Result<Load> {
        let loads = match profile {
            Some(profile) => self.loads(profile)?,
            None => self.loads(&Profile::client())?,
        };
        let count = loads.len();
        let first = loads
            .into_iter()
            .next()
            .context("the profile has no load")?;
        if count > 1 {
            bail!(
                "{count} loads for one client (give one value to --connections and --payload, or use: wsbench run)"
            );
        }
        Ok(first)
    }

    /// Between two readings of CPU and memory.
    pub fn interval(&self, profile: Option<&Profile>) -> Duration {
        let of_profile = || {
            profile
                .cloned()
                .unwrap_or_else(Profile::client)
                .sample_interval
        };
        self.sample_interval.unwrap_or_else(of_profile)
    }

    /// What the user should know about how the flags were understood, a line each.
    ///
    /// # Errors
    /// As [`LoadArgs::loads`].
    pub fn notes(&self, profile: Option<&Profile>) -> anyhow::Result<Vec<String>> {
        let client = Profile::client();
        let profile = profile.unwrap_or(&client);
        let mut notes = Vec::new();
        let mut idle = |given: &[(&str, bool)], loop_flag: &str| {
            let names: Vec<_> = given
                .iter()
                .filter(|(_, given)| *given)
                .map(|(name, _)| *name)
                .collect();
            if !names.is_empty() {
                let (names, have) = (
                    names.join(", "),
                    if names.len() == 1 { "has" } else { "have" },
                );
                notes.push(format!("{names} {have} no effect without {loop_flag}"));
            }
        };
        let of_profile = |is: fn(&Load) -> bool| profile.matrices.iter().any(|of| is(&of.load));
        let has_rate = of_profile(|load| load.rate.is_some());
        if !self.rate.unwrap_or(has_rate) {
            idle(&self.rate_flags(), "--rate");
        }
        if !self.echo.unwrap_or(of_profile(|load| load.echo.is_some())) {
            idle(&self.echo_flags(), "--echo");
        }
        let has_release = of_profile(|load| load.release.is_some());
        if !self.release.map_or(has_release, |percent| percent > 0) {
            idle(&self.release_flags(), "--release");
        }
        if !of_profile(|load| load.bulk.is_some()) {
            idle(&self.bulk_flags(), "a profile that has bulk transfers");
        }
        let rates = self.loads(profile)?.into_iter().find_map(|load| load.rate);
        if let (Some(rate), false, true) = (rates, has_rate, self.rate_per_connection.is_none()) {
            let all = match rate.limit_per_s {
                0 => String::new(),
                limit => format!(", at most {limit} in all"),
            };
            notes.push(format!(
                "rate: {} messages/s a connection{all} (the original's: --rate-per-connection 200)",
                rate.per_connection_per_s
            ));
        }
        Ok(notes)
    }

    fn echo_load(&self, profile: Option<EchoLoad>) -> Option<EchoLoad> {
        if !self.echo.unwrap_or(profile.is_some()) {
            return None;
        }
        let mut echo = profile.unwrap_or_else(default_echo);
        set(&mut echo.echoes, self.echoes);
        if let Some(duration) = self.echo_duration {
            echo.duration_ms = (!duration.is_zero()).then(|| millis(duration));
        }
        set(&mut echo.concurrency, self.echo_concurrency);
        set(&mut echo.limit_per_s, self.echo_limit);
        set(&mut echo.timeout_ms, self.echo_timeout.map(millis));
        Some(echo)
    }

    fn rate_load(&self, profile: Option<RateLoad>) -> anyhow::Result<Option<RateLoad>> {
        if !self.rate.unwrap_or(profile.is_some()) {
            return Ok(None);
        }
        let mut rate = match profile {
            Some(rate) => rate,
            None => Profile::default_rate()?,
        };
        if let Some(per_connection) = self.rate_per_connection {
            rate.per_connection_per_s = per_connection;
            // The profile's limit belongs to the profile's rate.
            rate.limit_per_s = 0;
        }
        set(&mut rate.limit_per_s, self.rate_limit);
        set(&mut rate.connections, self.rate_connections);
        set(&mut rate.duration_ms, self.rate_duration.map(millis));
        set(&mut rate.batch_bytes, self.rate_batch_bytes);
        set(&mut rate.window, self.rate_window);
        set(&mut rate.timeout_ms, self.rate_timeout.map(millis));
        Ok(Some(rate))
    }

    fn release_load(&self, profile: Option<ReleaseLoad>) -> Option<ReleaseLoad> {
        let mut release = match self.release {
            Some(0) => None,
            Some(percent) => Some(ReleaseLoad {
                percent,
                ..profile.unwrap_or_else(|| release(percent))
            }),
            None => profile,
        }?;
        set(&mut release.settle_ms, self.release_settle.map(millis));
        set(&mut release.timeout_ms, self.release_timeout.map(millis));
        Some(release)
    }

    fn release_flags(&self) -> [(&'static str, bool); 2] {
        [
            ("--release-settle", self.release_settle.is_some()),
            ("--release-timeout", self.release_timeout.is_some()),
        ]
    }

    fn echo_flags(&self) -> [(&'static str, bool); 6] {
        [
            ("--echoes", self.echoes.is_some()),
            ("--echo-duration", self.echo_duration.is_some()),
            ("--echo-concurrency", self.echo_concurrency.is_some()),
            ("--echo-limit", self.echo_limit.is_some()),
            ("--echo-timeout", self.echo_timeout.is_some()),
            ("--warmup", self.warmup.is_some()),
        ]
    }

    fn bulk_flags(&self) -> [(&'static str, bool); 7] {
        [
            ("--bulk-bytes", self.bulk_bytes.is_some()),
            ("--bulk-direction", self.bulk_direction.is_some()),
            ("--bulk-window", self.bulk_window.is_some()),
            ("--slow-readers", self.slow_readers.is_some()),
            ("--slow-bytes-per-s", self.slow_bytes_per_s.is_some()),
            ("--bulk-duration", self.bulk_duration.is_some()),
            ("--bulk-timeout", self.bulk_timeout.is_some()),
        ]
    }

    fn rate_flags(&self) -> [(&'static str, bool); 7] {
        [
            ("--rate-connections", self.rate_connections.is_some()),
            ("--rate-duration", self.rate_duration.is_some()),
            ("--rate-per-connection", self.rate_per_connection.is_some()),
            ("--rate-batch-bytes", self.rate_batch_bytes.is_some()),
            ("--rate-window", self.rate_window.is_some()),
            ("--rate-limit", self.rate_limit.is_some()),
            ("--rate-timeout", self.rate_timeout.is_some()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        load: LoadArgs,
        names: Vec<String>,
    }

    fn args(line: &str) -> LoadArgs {
        parse(line).unwrap().load
    }

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once("x").chain(line.split_whitespace()))
    }

    fn single(line: &str) -> Load {
        args(line).single(None).unwrap()
    }

    #[test]
    fn without_flags_the_client_does_what_the_original_does() {
        let load = single("");
        assert_eq!(
            (load.connections, load.payload_bytes, load.check),
            (10_000, 1024, true)
        );
        let echo = load.echo.unwrap();
        assert_eq!(
            (echo.echoes, echo.concurrency, echo.warmup_echoes),
            (2_000_000, 0, 50_000)
        );
        assert_eq!(echo.duration_ms, None);
        assert_eq!(load.rate, None);
    }

    #[test]
    fn every_flag_arrives() {
        let load = single(
            "-c 1 -b 2 --text --check=false --dial-concurrency 3 --dial-timeout 4s --dial-retries 5 \
             --dial-retry-interval 6ms -n 7 --echo-duration 8s --echo-concurrency 9 --echo-limit 10 \
             --echo-timeout 11s --warmup 12 --rate --rate-connections 13 --rate-duration 14s \
             --rate-per-connection 15 --rate-batch-bytes 16 --rate-window 17 --rate-limit 18 \
             --rate-timeout 19s --release 21 --release-settle 22s --release-timeout 23s --client-burn-ns 20",
        );
        let expected = Load {
            connections: 1,
            payload_bytes: 2,
            message: MessageKind::Text,
            check: false,
            dial: wsbench_schema::DialLoad {
                concurrency: 3,
                timeout_ms: 4000,
                retries: 5,
                retry_interval_ms: 6,
            },
            echo: Some(EchoLoad {
                echoes: 7,
                duration_ms: Some(8000),
                concurrency: 9,
                limit_per_s: 10,
                timeout_ms: 11_000,
                warmup_echoes: 12,
            }),
            rate: Some(RateLoad {
                connections: 13,
                duration_ms: 14_000,
                per_connection_per_s: 15,
                batch_bytes: 16,
                window: 17,
                limit_per_s: 18,
                timeout_ms: 19_000,
            }),
            after_connections: 0,
            bulk: None,
            release: Some(ReleaseLoad {
                percent: 21,
                settle_ms: 22_000,
                timeout_ms: 23_000,
            }),
            transport: wsbench_schema::Transport::Websocket,
            client_burn_ns: 20,
        };
        assert_eq!(load, expected);
    }

    #[test]
    fn flags_stand_above_the_profile_and_lists_make_a_matrix() {
        let mut profile = Profile::client();
        profile.matrices[0].load.check = false;
        profile.matrices[0].load.rate = Some(RateLoad {
            limit_per_s: 7,
            ..Profile::default_rate().unwrap()
        });
        let loads = args("-c 1,2 --payload=3,4 -n 5").loads(&profile).unwrap();
        let pairs: Vec<_> = loads
            .iter()
            .map(|load| (load.connections, load.payload_bytes))
            .collect();
        assert_eq!(pairs, [(1, 3), (1, 4), (2, 3), (2, 4)]);
        assert_eq!(loads[3].echo.as_ref().unwrap().warmup_echoes, 10);
        assert!(!loads[0].check);
        assert_eq!(loads[0].rate.as_ref().unwrap().limit_per_s, 7);
        let loads = args("--rate=false --echo=false").loads(&profile).unwrap();
        assert_eq!((&loads[0].echo, &loads[0].rate), (&None, &None));
        let error = args("-c 1,2").single(None).unwrap_err().to_string();
        assert!(error.starts_with("2 loads for one client"), "{error}");
    }

    #[test]
    fn flags_for_transfers_change_those_of_the_profile_and_make_none() {
        let mut profile = Profile::client();
        let flags = args(
            "-b 4 --echo=false --bulk-bytes 8 --bulk-direction both --bulk-window 6 --slow-readers 5 \
             --slow-bytes-per-s 6 --bulk-duration 7s --bulk-timeout 9s",
        );
        assert_eq!(flags.loads(&profile).unwrap()[0].bulk, None);
        let notes = flags.notes(Some(&profile)).unwrap();
        assert!(
            notes[0].ends_with("without a profile that has bulk transfers"),
            "{notes:?}"
        );
        let of_profile = BulkLoad {
            bytes_per_connection: 1,
            direction: Direction::Both,
            window_bytes: 0,
            slow_readers_percent: 0,
            slow_bytes_per_s: 0,
            duration_ms: None,
            timeout_ms: 1,
        };
        profile.matrices[0].load.bulk = Some(of_profile);
        profile.matrices[0].load.transport = wsbench_schema::Transport::Stream;
        let expected = BulkLoad {
            bytes_per_connection: 8,
            direction: Direction::Both,
            window_bytes: 6,
            slow_readers_percent: 5,
            slow_bytes_per_s: 6,
            duration_ms: Some(7000),
            timeout_ms: 9000,
        };
        let loads = flags.loads(&profile).unwrap();
        assert_eq!(loads[0].bulk, Some(expected));
        assert!(parse("--bulk-direction sideways").is_err());
    }

    #[test]
    fn the_rate_is_the_default_profiles_until_the_user_sets_it() {
        let rate = single("--rate").rate.unwrap();
        assert_eq!((rate.per_connection_per_s, rate.limit_per_s), (5, 50_000));
        assert_eq!(
            args("--rate").notes(None).unwrap(),
            [
                "rate: 5 messages/s a connection, at most 50000 in all (the original's: --rate-per-connection 200)"
            ]
        );
        let explicit = args("--rate --rate-per-connection 200");
        let rate = explicit.single(None).unwrap().rate.unwrap();
        assert_eq!((rate.per_connection_per_s, rate.limit_per_s), (200, 0));
        assert!(explicit.notes(None).unwrap().is_empty());
        let rate = single("--rate --rate-per-connection 200 --rate-limit 9")
            .rate
            .unwrap();
        assert_eq!(rate.limit_per_s, 9);
    }

    #[test]
    fn a_flag_without_effect_is_told() {
        let notes = args("--rate-duration 1s --rate-window 3")
            .notes(None)
            .unwrap();
        assert_eq!(
            notes,
            ["--rate-duration, --rate-window have no effect without --rate"]
        );
        let notes = args("--echo=false --echoes 3").notes(None).unwrap();
        assert_eq!(notes, ["--echoes has no effect without --echo"]);
        assert!(args("-c 3 -n 3").notes(None).unwrap().is_empty());
    }

    #[test]
    fn a_switch_does_not_swallow_what_follows() {
        let cli = parse("--rate axum --check=0 floor").unwrap();
        assert_eq!(cli.names, ["axum", "floor"]);
        assert_eq!((cli.load.rate, cli.load.check), (Some(true), Some(false)));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let error = args("-c 0").single(None).unwrap_err().to_string();
        assert_eq!(error, "connections is 0; it must be at least 1");
        for (line, part) in [
            ("--dial-timeout 5", "has no unit"),
            ("-c ten", "invalid digit"),
            ("--check=maybe", "neither true nor false"),
            ("--sample-interval 50ms", "wrong below 200ms"),
            ("--dial-timeout 500us", "write whole milliseconds"),
            ("--dial-retry-interval 500us", "write whole milliseconds"),
            ("--echo-duration 500us", "write whole milliseconds"),
            ("--echo-timeout 500us", "write whole milliseconds"),
            ("--rate-duration 500us", "write whole milliseconds"),
            ("--rate-timeout 500us", "write whole milliseconds"),
            ("--sample-interval 300.5ms", "write whole milliseconds"),
        ] {
            let error = parse(line)
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default();
            assert!(error.contains(part), "{line}: {error}");
        }
        assert_eq!(
            args("--sample-interval 300ms").interval(None),
            Duration::from_millis(300)
        );
        assert_eq!(args("").interval(None), Duration::from_secs(1));
    }

    #[test]
    fn every_flag_says_its_default_and_heading() {
        use clap::CommandFactory as _;
        for arg in Cli::command()
            .get_arguments()
            .filter(|arg| !arg.is_hide_set() && arg.get_long() != Some("help"))
        {
            let Some(long) = arg.get_long() else { continue };
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("[default: "), "{long}: {help}");
            assert!(
                arg.get_help_heading().is_some(),
                "{long} stands in no group"
            );
        }
    }
}
