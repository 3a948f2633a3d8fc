//! Named loads: `profiles/NAME.toml`. The command line stands above them (see
//! `args::load`).

use crate::args::units;
use crate::root::Root;
use crate::strict;
use crate::subject::check_name;
use anyhow::{Context as _, bail};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::fs;
use std::time::Duration;
use wsbench_schema::{
    BulkLoad, DialLoad, Direction, EchoLoad, Load, MessageKind, RateLoad, ReleaseLoad, Suite,
    Transport,
};

/// What is done to a server, how often, and how closely it is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The file's name without `.toml`.
    pub name: String,
    /// For people, in one line.
    pub description: String,
    /// Whose load it is.
    pub suite: Suite,
    /// Trials of each server under each load.
    pub rounds: u32,
    /// Between two readings of CPU and memory.
    pub sample_interval: Duration,
    /// Subjects that are measured if none is named; all of the suite if empty.
    pub subjects: Vec<String>,
    /// Buffer that the servers of the TCP suites are asked for.
    pub buffer_bytes: Option<u32>,
    /// Whether the servers' system calls are counted, in a pass of its own.
    pub syscalls: bool,
    /// Whether trials that others disturbed are measured again.
    pub noisy_again: bool,
    /// The tables `load`: each is one load or several alike.
    pub matrices: Vec<Matrix>,
}

/// Loads that differ in connections and payload only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Connections of each load; with the payloads they make the matrix.
    pub connections: Vec<u32>,
    /// Payload bytes of each load.
    pub payloads_bytes: Vec<u32>,
    /// Everything else of every load. Its connections, payload and warm-up are
    /// to be filled in.
    pub load: Load,
    /// Warm-up echoes, if not the original's rule.
    pub warmup_echoes: Option<u64>,
}

/// The file of the profile that is used if none is named.
const DEFAULT: &str = include_str!("../../profiles/default.toml");

impl Profile {
    /// Used by `run` of WebSocket servers if none is named.
    pub const DEFAULT_NAME: &str = "default";
    /// Of each server under each load.
    pub const ROUNDS_MAX: u32 = 1000;
    /// Of a run.
    pub const LOADS_MAX: usize = 1000;
    /// Below this the share of a CPU that the system reports is wrong.
    pub const SAMPLE_INTERVAL_MIN: Duration = Duration::from_millis(200);

    /// Reads `profiles/NAME.toml`.
    ///
    /// # Errors
    /// If there is none of that name, with the nearest name and a list; or if
    /// the file is wrong, with its line and the nearest valid key.
    pub fn load(root: &Root, name: &str) -> anyhow::Result<Self> {
        let path = root.profiles().join(format!("{name}.toml"));
        let names = names(root)?;
        if !names.iter().any(|known| known == name) {
            let meant = strict::suggestion(name, names.iter().map(String::as_str));
            let all = names.join(", ");
            bail!("no profile is named `{name}`{meant} (there are: {all})");
        }
        let text =
            strict::text_of(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(name, &text).map_err(|reason| anyhow::anyhow!("{}: {reason}", path.display()))
    }

    /// From the text of a file.
    ///
    /// # Errors
    /// One line: what is wrong, and where.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        Self::checked(name, text).map_err(strict::escaped)
    }

    fn checked(name: &str, text: &str) -> Result<Self, String> {
        let profile = strict::from_toml::<File>(text)?.into_profile(name);
        strict::one_line("description", &profile.description)?;
        let mut subjects = profile.subjects.iter();
        subjects.try_for_each(|name| check_name(name))?;
        let (rounds, most) = (profile.rounds, Self::ROUNDS_MAX);
        if !(1..=most).contains(&rounds) {
            return Err(format!("rounds is {rounds}; it must be 1 to {most}"));
        }
        let (interval, least) = (profile.sample_interval, Self::SAMPLE_INTERVAL_MIN);
        if interval < least {
            return Err(format!(
                "sample-interval is {interval:?}; it must be at least {least:?}, \
                 since the system's share of CPU is wrong below"
            ));
        }
        let is_empty =
            |matrix: &Matrix| matrix.connections.is_empty() || matrix.payloads_bytes.is_empty();
        if profile.matrices.iter().any(is_empty) {
            return Err("connections and payload need at least one value each".into());
        }
        if profile.matrices.is_empty() {
            return Err("there is no load (write a table [load], or several [[load]])".into());
        }
        profile.check_count()?;
        profile.loads().iter().try_for_each(Load::validate)?;
        Ok(profile)
    }

    /// The load of `wsbench client` if no profile is named: the original's,
    /// except that answers are checked.
    pub fn client() -> Self {
        Self {
            name: "client".into(),
            description: "The original's client without flags".into(),
            suite: Suite::Websocket,
            rounds: 1,
            sample_interval: SAMPLE_INTERVAL,
            subjects: Vec::new(),
            buffer_bytes: None,
            syscalls: false,
            noisy_again: false,
            matrices: vec![Matrix {
                connections: vec![10_000],
                payloads_bytes: vec![1024],
                load: Load {
                    connections: 0,
                    payload_bytes: 0,
                    message: MessageKind::Binary,
                    check: true,
                    dial: DialLoad::default(),
                    echo: Some(default_echo()),
                    rate: None,
                    after_connections: 0,
                    bulk: None,
                    release: None,
                    transport: Transport::Websocket,
                    client_burn_ns: 0,
                },
                warmup_echoes: None,
            }],
        }
    }

    /// The profile of a suite that `run` uses if none is named.
    #[must_use]
    pub fn default_name(suite: Suite) -> &'static str {
        match suite {
            Suite::Websocket => Self::DEFAULT_NAME,
            Suite::Relay | Suite::Transfer => suite.name(),
        }
    }

    /// The rate that is used where it is asked for and a profile has none.
    ///
    /// # Errors
    /// If the default profile that is built in is wrong.
    pub fn default_rate() -> anyhow::Result<RateLoad> {
        let profile = Self::parse(Self::DEFAULT_NAME, DEFAULT).map_err(anyhow::Error::msg)?;
        let mut rates = profile.matrices.into_iter().map(|matrix| matrix.load.rate);
        let rate = rates.next().flatten();
        rate.context("the default profile has no rate")
    }

    /// Whether the matrix can be made at all: two lists that fit a screen are a
    /// million loads.
    ///
    /// # Errors
    /// One line: how many there are, and how many there may be.
    pub fn check_count(&self) -> Result<(), String> {
        let counts = self.matrices.iter().map(Matrix::count);
        let (count, most) = (counts.fold(0, usize::saturating_add), Self::LOADS_MAX);
        match count > most {
            true => Err(format!(
                "connections and payload make {count} loads; at most {most} are measured in one run"
            )),
            false => Ok(()),
        }
    }

    /// Every load, once.
    pub fn loads(&self) -> Vec<Load> {
        let mut loads: Vec<Load> = Vec::new();
        for load in self.matrices.iter().flat_map(Matrix::loads) {
            // Flags that stand above the profile may have made two tables equal.
            if !loads.contains(&load) {
                loads.push(load);
            }
        }
        loads
    }
}

impl Matrix {
    fn count(&self) -> usize {
        let (connections, payloads) = (self.connections.len(), self.payloads_bytes.len());
        connections.saturating_mul(payloads)
    }

    /// Each number of connections with each payload.
    fn loads(&self) -> Vec<Load> {
        let mut loads = Vec::new();
        for &connections in &self.connections {
            for &payload_bytes in &self.payloads_bytes {
                let mut load = Load {
                    connections,
                    payload_bytes,
                    ..self.load.clone()
                };
                if let Some(echo) = &mut load.echo {
                    let rule = || EchoLoad::default_warmup(connections);
                    echo.warmup_echoes = self.warmup_echoes.unwrap_or_else(rule);
                }
                loads.push(load);
            }
        }
        loads
    }
}

/// The profiles there are.
fn names(root: &Root) -> anyhow::Result<Vec<String>> {
    let folder = root.profiles();
    let unreadable = || format!("cannot read the folder {}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).with_context(unreadable)? {
        let path = entry.with_context(unreadable)?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        if let Some(stem) = stem.filter(|_| path.extension().is_some_and(|ext| ext == "toml")) {
            names.push(stem.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// The original's `-pi`.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
/// The original's `-rbs`.
const BATCH_BYTES: u32 = 16_384;
/// Long enough for a million connections with all of them in flight.
const ECHO_TIMEOUT: Duration = Duration::from_secs(30);

/// Long enough for the tasks of closed connections to end.
const RELEASE_SETTLE: Duration = Duration::from_secs(1);
/// For the close handshakes of many connections at once.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(10);

/// The end of a load that closes so many of a hundred connections.
pub fn release(percent: u32) -> ReleaseLoad {
    ReleaseLoad {
        percent,
        settle_ms: millis(RELEASE_SETTLE),
        timeout_ms: millis(RELEASE_TIMEOUT),
    }
}

/// The original's closed loop.
pub fn default_echo() -> EchoLoad {
    EchoLoad {
        echoes: 2_000_000,
        duration_ms: None,
        concurrency: 0,
        limit_per_s: 0,
        timeout_ms: millis(ECHO_TIMEOUT),
        warmup_echoes: 0,
    }
}

/// Whole milliseconds; a load is not timed more finely, and what is read for it
/// has no parts of one.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// One value or several.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a number or a list of numbers")]
enum OneOrMany {
    One(u32),
    Many(Vec<u32>),
}

impl OneOrMany {
    fn into_vec(self) -> Vec<u32> {
        match self {
            OneOrMany::One(one) => vec![one],
            OneOrMany::Many(many) => many,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    description: String,
    #[serde(default)]
    suite: Suite,
    rounds: u32,
    #[serde(default = "sample_interval", deserialize_with = "duration")]
    sample_interval: Duration,
    #[serde(default)]
    subjects: Vec<String>,
    buffer: Option<u32>,
    #[serde(default)]
    syscalls: bool,
    #[serde(default)]
    noisy_again: bool,
    load: Tables,
}

/// `[load]`, or several `[[load]]`.
struct Tables(Vec<LoadTable>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct LoadTable {
    connections: OneOrMany,
    payload: OneOrMany,
    #[serde(default)]
    text: bool,
    #[serde(default = "yes")]
    check: bool,
    #[serde(default)]
    dial: DialTable,
    echo: Option<EchoTable>,
    rate: Option<RateTable>,
    bulk: Option<BulkTable>,
    release: Option<ReleaseTable>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct DialTable {
    concurrency: Option<u32>,
    #[serde(deserialize_with = "some_duration")]
    timeout: Option<Duration>,
    retries: Option<u32>,
    #[serde(deserialize_with = "some_duration")]
    retry_interval: Option<Duration>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct EchoTable {
    echoes: u64,
    #[serde(default, deserialize_with = "some_duration")]
    duration: Option<Duration>,
    #[serde(default)]
    concurrency: u32,
    #[serde(default)]
    limit: u64,
    #[serde(deserialize_with = "duration")]
    timeout: Duration,
    warmup: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct BulkTable {
    bytes: u64,
    #[serde(default = "both")]
    direction: Direction,
    #[serde(default)]
    window: u64,
    #[serde(default)]
    slow_readers_percent: u32,
    #[serde(default)]
    slow_bytes_per_s: u64,
    #[serde(default, deserialize_with = "some_duration")]
    duration: Option<Duration>,
    #[serde(deserialize_with = "duration")]
    timeout: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ReleaseTable {
    percent: u32,
    #[serde(default, deserialize_with = "some_duration")]
    settle: Option<Duration>,
    #[serde(default, deserialize_with = "some_duration")]
    timeout: Option<Duration>,
}

fn both() -> Direction {
    Direction::Both
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RateTable {
    #[serde(default)]
    connections: u32,
    #[serde(deserialize_with = "duration")]
    duration: Duration,
    per_connection: u32,
    #[serde(default = "batch_bytes")]
    batch_bytes: u32,
    #[serde(default)]
    window: u32,
    #[serde(default)]
    limit: u64,
    #[serde(deserialize_with = "duration")]
    timeout: Duration,
}

fn sample_interval() -> Duration {
    SAMPLE_INTERVAL
}

fn batch_bytes() -> u32 {
    BATCH_BYTES
}

fn yes() -> bool {
    true
}

fn duration<'de, D: Deserializer<'de>>(input: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(input)?;
    units::whole_millis(&text).map_err(serde::de::Error::custom)
}

fn some_duration<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Duration>, D::Error> {
    duration(input).map(Some)
}

impl<'de> Deserialize<'de> for Tables {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct OneOrSeveral;

        // By hand, since an untagged enum forgets where a mistake is.
        impl<'de> Visitor<'de> for OneOrSeveral {
            type Value = Tables;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table [load], or several [[load]]")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Tables, A::Error> {
                let table = LoadTable::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Tables(vec![table]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, tables: A) -> Result<Tables, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(tables)).map(Tables)
            }
        }

        input.deserialize_any(OneOrSeveral)
    }
}

impl File {
    fn into_profile(self, name: &str) -> Profile {
        let transport = match self.suite {
            Suite::Websocket => Transport::Websocket,
            Suite::Relay | Suite::Transfer => Transport::Stream,
        };
        let tables = self.load.0.into_iter();
        Profile {
            name: name.to_owned(),
            description: self.description,
            suite: self.suite,
            rounds: self.rounds,
            sample_interval: self.sample_interval,
            subjects: self.subjects,
            buffer_bytes: self.buffer,
            syscalls: self.syscalls,
            noisy_again: self.noisy_again,
            matrices: tables.map(|load| load.into_matrix(transport)).collect(),
        }
    }
}

impl LoadTable {
    fn into_matrix(self, transport: Transport) -> Matrix {
        let load = self;
        let standard = DialLoad::default();
        let dial = DialLoad {
            concurrency: load.dial.concurrency.unwrap_or(standard.concurrency),
            timeout_ms: load.dial.timeout.map_or(standard.timeout_ms, millis),
            retries: load.dial.retries.unwrap_or(standard.retries),
            retry_interval_ms: load
                .dial
                .retry_interval
                .map_or(standard.retry_interval_ms, millis),
        };
        let bulk = load.bulk.map(|bulk| BulkLoad {
            bytes_per_connection: bulk.bytes,
            direction: bulk.direction,
            window_bytes: bulk.window,
            slow_readers_percent: bulk.slow_readers_percent,
            slow_bytes_per_s: bulk.slow_bytes_per_s,
            duration_ms: bulk.duration.map(millis),
            timeout_ms: millis(bulk.timeout),
        });
        let release = load.release.map(|release| ReleaseLoad {
            percent: release.percent,
            settle_ms: millis(release.settle.unwrap_or(RELEASE_SETTLE)),
            timeout_ms: millis(release.timeout.unwrap_or(RELEASE_TIMEOUT)),
        });
        let rate = load.rate.map(|rate| RateLoad {
            connections: rate.connections,
            duration_ms: millis(rate.duration),
            per_connection_per_s: rate.per_connection,
            batch_bytes: rate.batch_bytes,
            window: rate.window,
            limit_per_s: rate.limit,
            timeout_ms: millis(rate.timeout),
        });
        Matrix {
            connections: load.connections.into_vec(),
            payloads_bytes: load.payload.into_vec(),
            warmup_echoes: load.echo.as_ref().and_then(|echo| echo.warmup),
            load: Load {
                connections: 0,
                payload_bytes: 0,
                message: if load.text {
                    MessageKind::Text
                } else {
                    MessageKind::Binary
                },
                check: load.check,
                dial,
                echo: load.echo.map(|echo| EchoLoad {
                    echoes: echo.echoes,
                    duration_ms: echo.duration.map(millis),
                    concurrency: echo.concurrency,
                    limit_per_s: echo.limit,
                    timeout_ms: millis(echo.timeout),
                    warmup_echoes: 0,
                }),
                rate,
                after_connections: 0,
                bulk,
                release,
                transport,
                client_burn_ns: 0,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::testing::Project;

    use std::path::Path;

    const SMALL: &str =
        "description = \"d\"\nrounds = 2\n[load]\nconnections = [1, 2]\npayload = [3, 4]\n";

    /// The project's own profiles.
    fn shipped(name: &str) -> Profile {
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let root = Root::at(&project).unwrap();
        Profile::load(&root, name).unwrap()
    }

    fn error(text: &str) -> String {
        Profile::parse("small", text).unwrap_err()
    }

    #[test]
    fn lists_make_a_matrix() {
        let loads = Profile::parse("small", SMALL).unwrap().loads();
        let pairs: Vec<_> = loads
            .iter()
            .map(|load| (load.connections, load.payload_bytes))
            .collect();
        assert_eq!(pairs, [(1, 3), (1, 4), (2, 3), (2, 4)]);
        assert_eq!(loads[0].echo, None);
        assert_eq!(loads[0].rate, None);
        assert!(loads[0].check);
        assert_eq!(loads[0].dial, DialLoad::default());
    }

    #[test]
    fn a_profile_of_a_tcp_suite_has_streams_and_may_have_transfers() {
        let text = "description = \"d\"\nrounds = 1\nsuite = \"transfer\"\nbuffer = 4096\nsyscalls = true\n\
             subjects = [\"stack\", \"pool\"]\n\
             [load]\nconnections = 1\npayload = 32_768\n[load.bulk]\nbytes = 65_536\ntimeout = \"5s\"\n";
        let profile = Profile::parse("p", text).unwrap();
        assert_eq!((profile.buffer_bytes, profile.syscalls), (Some(4096), true));
        assert_eq!(profile.subjects, ["stack", "pool"]);
        let loads = profile.loads();
        assert_eq!(loads[0].transport, Transport::Stream);
        let bulk = loads[0].bulk.clone().unwrap();
        assert_eq!(
            (bulk.bytes_per_connection, bulk.direction),
            (65_536, Direction::Both)
        );
        let websocket = text.replace("transfer", "websocket");
        let bad = error(&websocket);
        assert!(bad.starts_with("bulk transfers need plain TCP"), "{bad}");
    }

    #[test]
    fn several_tables_are_several_loads_and_equal_ones_are_one() {
        let tables = "description = \"d\"\nrounds = 1\nsuite = \"relay\"\n\
             [[load]]\nconnections = 1\npayload = [2, 3]\n[[load]]\nconnections = [4, 1]\npayload = 3\n";
        let profile = Profile::parse("p", tables).unwrap();
        assert_eq!(profile.suite, Suite::Relay);
        let pairs: Vec<_> = profile
            .loads()
            .iter()
            .map(|load| (load.connections, load.payload_bytes))
            .collect();
        assert_eq!(pairs, [(1, 2), (1, 3), (4, 3)]);
        // A mistake in the second is found where it is.
        let bad = error(&format!("{tables}cheque = true\n"));
        assert_eq!(bad, "line 10: unknown key `cheque` (did you mean `check`?)");
        let bad = error("description = \"d\"\nrounds = 1\nload = 3\n");
        assert!(
            bad.contains("expected a table [load], or several [[load]]"),
            "{bad}"
        );
        let bad = error("description = \"d\"\nrounds = 1\nload = []\n");
        assert!(bad.starts_with("there is no load"), "{bad}");
    }

    #[test]
    fn every_setting_of_the_file_arrives() {
        let text = format!(
            "sample-interval = \"300ms\"\n{SMALL}text = true\ncheck = false\n\
             [load.dial]\nconcurrency = 1\ntimeout = \"2s\"\nretries = 3\nretry-interval = \"4ms\"\n\
             [load.echo]\nechoes = 5\nduration = \"6s\"\nconcurrency = 7\nlimit = 8\ntimeout = \"9s\"\nwarmup = 10\n\
             [load.rate]\nconnections = 11\nduration = \"12s\"\nper-connection = 13\nbatch-bytes = 14\nwindow = 15\nlimit = 16\ntimeout = \"17s\"\n"
        );
        let profile = Profile::parse("small", &text).unwrap();
        assert_eq!(profile.sample_interval, Duration::from_millis(300));
        assert_eq!(profile.rounds, 2);
        let expected = Load {
            connections: 1,
            payload_bytes: 3,
            message: MessageKind::Text,
            check: false,
            dial: DialLoad {
                concurrency: 1,
                timeout_ms: 2000,
                retries: 3,
                retry_interval_ms: 4,
            },
            echo: Some(EchoLoad {
                echoes: 5,
                duration_ms: Some(6000),
                concurrency: 7,
                limit_per_s: 8,
                timeout_ms: 9000,
                warmup_echoes: 10,
            }),
            rate: Some(RateLoad {
                connections: 11,
                duration_ms: 12000,
                per_connection_per_s: 13,
                batch_bytes: 14,
                window: 15,
                limit_per_s: 16,
                timeout_ms: 17000,
            }),
            after_connections: 0,
            bulk: None,
            release: None,
            transport: wsbench_schema::Transport::Websocket,
            client_burn_ns: 0,
        };
        assert_eq!(profile.loads()[0], expected);
    }

    #[test]
    fn mistakes_name_the_line_and_the_nearest_key() {
        assert_eq!(
            error(&format!("{SMALL}[load.echo]\nechos = 1\n")),
            "line 7: unknown key `echos` (did you mean `echoes`?)"
        );
        let bad = error(&format!(
            "{SMALL}[load.echo]\nechoes = 1\ntimeout = \"5\"\n"
        ));
        assert!(bad.contains("`5` has no unit (write 5s or 5ms)"), "{bad}");
        let bad = error(&format!(
            "{SMALL}[load.echo]\nechoes = 1\ntimeout = \"500us\"\n"
        ));
        assert!(bad.contains("line 8"), "{bad}");
        assert!(bad.contains("write whole milliseconds"), "{bad}");
        let bad = error(&SMALL.replace("[1, 2]", "\"many\""));
        assert!(bad.contains("a number or a list of numbers"), "{bad}");
        assert_eq!(
            error(&SMALL.replace("= 2\n", "= 0\n")),
            "rounds is 0; it must be 1 to 1000"
        );
        assert_eq!(
            error(&SMALL.replace("= 2\n", "= 1001\n")),
            "rounds is 1001; it must be 1 to 1000"
        );
        for rounds in [1, 1000] {
            let text = SMALL.replace("= 2\n", &format!("= {rounds}\n"));
            assert_eq!(Profile::parse("small", &text).unwrap().rounds, rounds);
        }
        assert_eq!(
            error(&format!("sample-interval = \"199ms\"\n{SMALL}")),
            "sample-interval is 199ms; it must be at least 200ms, since the system's share of CPU is wrong below"
        );
        let least = format!("sample-interval = \"200ms\"\n{SMALL}");
        assert!(Profile::parse("small", &least).is_ok());
        assert_eq!(
            error(&SMALL.replace("[1, 2]", "[1, 0]")),
            "connections is 0; it must be at least 1"
        );
        let bad = error(&SMALL.replace("[1, 2]", "[]"));
        assert_eq!(bad, "connections and payload need at least one value each");
        let many = format!("{:?}", [1; 501]);
        assert_eq!(
            error(&SMALL.replace("[1, 2]", &many)),
            "connections and payload make 1002 loads; at most 1000 are measured in one run"
        );
    }

    #[test]
    fn an_unknown_profile_is_answered_with_the_nearest() {
        let project = Project::new();
        project.write("profiles/small.toml", SMALL);
        project.write("profiles/broken.toml", "rounds = 1\nround = 1\n");
        assert_eq!(Profile::load(&project.root, "small").unwrap().name, "small");
        assert_eq!(
            Profile::load(&project.root, "smal")
                .unwrap_err()
                .to_string(),
            "no profile is named `smal` (did you mean `small`?) (there are: broken, small)"
        );
        project.write("profiles/none.toml", &SMALL.replace("= 2\n", "= 0\n"));
        let error = Profile::load(&project.root, "none")
            .unwrap_err()
            .to_string();
        assert!(
            error.ends_with("profiles/none.toml: rounds is 0; it must be 1 to 1000"),
            "{error}"
        );
        let error = Profile::load(&project.root, "broken")
            .unwrap_err()
            .to_string();
        assert!(
            error.ends_with(
                "profiles/broken.toml: line 2: unknown key `round` (did you mean `rounds`?)"
            ),
            "{error}"
        );
    }

    #[test]
    fn the_shipped_profiles_are_valid_and_as_announced() {
        let default = shipped("default");
        let rate = default.loads()[0].rate.clone().unwrap();
        assert_eq!(rate, Profile::default_rate().unwrap());
        assert_eq!(rate.limit_per_s, 50_000);
        assert_eq!(
            default.loads()[0].echo.as_ref().unwrap().warmup_echoes,
            50_000
        );
        let original = shipped("original").loads();
        let (echo, rate) = (
            original[0].echo.clone().unwrap(),
            original[0].rate.clone().unwrap(),
        );
        assert_eq!((echo.echoes, echo.concurrency), (2_000_000, 10_000));
        assert_eq!((rate.per_connection_per_s, rate.batch_bytes), (200, 16_384));
        let million = shipped("1m").loads();
        assert_eq!((million.len(), million[0].connections), (1, 1_000_000));
        assert_eq!(
            (shipped("sweep").loads().len(), shipped("smoke").rounds),
            (9, 1)
        );
    }

    #[test]
    fn the_profiles_of_the_tcp_suites_are_theirs_and_ask_for_what_can_be_done() {
        for (name, suite) in [
            ("relay", Suite::Relay),
            ("relay-full", Suite::Relay),
            ("transfer", Suite::Transfer),
            ("transfer-full", Suite::Transfer),
        ] {
            let profile = shipped(name);
            assert_eq!(profile.suite, suite, "{name}");
            let loads = profile.loads();
            assert!(!loads.is_empty(), "{name}");
            for load in loads {
                assert_eq!(load.transport, Transport::Stream, "{name}");
                assert_eq!(load.validate(), Ok(()), "{name}");
            }
        }
    }

    /// Measuring alone, without starting and stopping.
    #[test]
    fn seven_servers_fit_the_time_of_their_profile() {
        let at_most_ms = |name: &str| {
            let profile = shipped(name);
            let one: u64 = profile
                .loads()
                .iter()
                .map(|load| {
                    let echo = load
                        .echo
                        .as_ref()
                        .and_then(|echo| echo.duration_ms)
                        .unwrap();
                    echo + load.rate.as_ref().map_or(0, |rate| rate.duration_ms)
                })
                .sum();
            7 * u64::from(profile.rounds) * one
        };
        assert!(at_most_ms("default") <= 300_000);
        assert!(at_most_ms("smoke") <= 30_000);
    }
}
