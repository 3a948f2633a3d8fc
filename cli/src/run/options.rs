//! What the user chooses for a run besides its load, and how that is kept in
//! the run's plan and in each record.

use crate::args::units::boolean;
use crate::patch::{Patch, PatchArgs};
use crate::profile::Profile;
use crate::run::processes::{Count, Processes};
use crate::run::slo::Slo;
use crate::subject::Subject;
use anyhow::{Context as _, bail};
use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;
use wsbench_schema::{RunPlan, setting as names};

/// The flags, absent where the user said nothing.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct OptionArgs {
    /// CPUs of the server, as in 0-3,8 [default: the first half of the cores]
    #[arg(
        long,
        value_name = "LIST",
        env = "SERVER_CPUS",
        help_heading = "Machine"
    )]
    pub server_cpus: Option<String>,
    /// CPUs of the client [default: the cores that the server has not]
    #[arg(long, value_name = "LIST", help_heading = "Machine")]
    pub client_cpus: Option<String>,
    /// Ports that each server process listens on [default: 10]
    #[arg(long, value_name = "COUNT", help_heading = "Server",
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub ports: Option<u16>,
    /// Servers set TCP_NODELAY [default: true]
    #[arg(long, value_name = "BOOL", help_heading = "Server",
          num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_parser = boolean)]
    pub nodelay: Option<bool>,
    /// Processes that the server runs as, each with its own ports, or auto: one where
    /// it may open enough files, else as many as it takes [default: auto]
    #[arg(long, value_name = "COUNT", help_heading = "Machine")]
    pub server_processes: Option<Count>,
    /// The same of the client [default: auto]
    #[arg(long, value_name = "COUNT", help_heading = "Machine")]
    pub client_processes: Option<Count>,
    /// Connections above which a subject is first looked at with a few [default: 50000]
    #[arg(long, hide = true, value_name = "COUNT")]
    pub pilot_above: Option<u32>,
    /// Buffer of a relay or transfer server for each direction of a connection
    /// [default: the server's own]
    #[arg(long, value_name = "BYTES", help_heading = "Server",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub buffer: Option<u32>,
    /// Count the server's system calls, in a pass that is not timed [default: the profile's]
    #[arg(long, value_name = "BOOL", help_heading = "Server",
          num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_parser = boolean)]
    pub syscalls: Option<bool>,
    /// See `--rounds auto`.
    #[arg(skip)]
    pub noisy_again: bool,
    #[command(flatten)]
    pub patches: PatchArgs,
    /// Measure servers that fail verification too; their rows are marked
    #[arg(long, help_heading = "Server")]
    pub unverified: bool,
}

/// The same, decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `--server-cpus`, if given.
    pub server_cpus: Option<String>,
    /// `--client-cpus`, if given.
    pub client_cpus: Option<String>,
    /// Ports of each server process.
    pub ports: u16,
    /// `--server-processes`.
    pub server_processes: Count,
    /// `--client-processes`.
    pub client_processes: Count,
    /// Connections that a process can hold on the machine where the run began, so that a
    /// resumed run has as many processes. Not known before the run begins.
    pub each_most: Option<u32>,
    /// Connections above which what a trial needs of the machine is predicted and watched.
    /// Says nothing about what is measured, so it is not kept.
    pub pilot_above: u32,
    /// Whether servers set TCP_NODELAY.
    pub nodelay: bool,
    /// `--buffer` for the server, if given.
    pub buffer_bytes: Option<u32>,
    /// Whether system calls are counted.
    pub syscalls: bool,
    /// Whether trials that others disturbed are measured again.
    pub noisy_again: bool,
    /// Crates that subjects take from elsewhere.
    pub patches: Vec<Patch>,
    /// Whether servers that fail verification are measured.
    pub unverified: bool,
    /// Between readings of the series.
    pub sample_interval: Duration,
    /// What is searched for, if the trials are searches.
    pub slo: Option<Slo>,
}

impl Options {
    /// Of a run for which the user said nothing.
    pub fn new(sample_interval: Duration) -> Self {
        Self {
            server_cpus: None,
            client_cpus: None,
            ports: crate::ports::DEFAULT_PORTS,
            server_processes: Count::Auto,
            client_processes: Count::Auto,
            each_most: None,
            pilot_above: PILOT_ABOVE,
            nodelay: true,
            buffer_bytes: None,
            syscalls: false,
            noisy_again: false,
            patches: Vec::new(),
            unverified: false,
            sample_interval,
            slo: None,
        }
    }
}

impl Options {
    /// Of a run of this profile for which the user said nothing.
    pub fn of_profile(profile: &Profile) -> Self {
        Self {
            buffer_bytes: profile.buffer_bytes,
            syscalls: profile.syscalls,
            noisy_again: profile.noisy_again,
            ..Self::new(profile.sample_interval)
        }
    }
}

impl OptionArgs {
    /// What the user said, and `base` where nothing was said.
    pub fn over(&self, base: Options) -> Options {
        Options {
            server_cpus: self.server_cpus.clone().or(base.server_cpus),
            client_cpus: self.client_cpus.clone().or(base.client_cpus),
            ports: self.ports.unwrap_or(base.ports),
            server_processes: self.server_processes.unwrap_or(base.server_processes),
            client_processes: self.client_processes.unwrap_or(base.client_processes),
            each_most: base.each_most,
            pilot_above: self.pilot_above.unwrap_or(base.pilot_above),
            nodelay: self.nodelay.unwrap_or(base.nodelay),
            buffer_bytes: self.buffer.or(base.buffer_bytes),
            syscalls: self.syscalls.unwrap_or(base.syscalls),
            noisy_again: self.noisy_again || base.noisy_again,
            patches: match self.patches.patch.is_empty() {
                true => base.patches,
                false => self.patches.patch.clone(),
            },
            unverified: self.unverified || base.unverified,
            sample_interval: base.sample_interval,
            slo: base.slo,
        }
    }
}

/// Fewer connections are no matter for any machine.
const PILOT_ABOVE: u32 = 50_000;
/// Names of settings.
const EACH_MOST: &str = "process_connections_count";
const BUFFER: &str = "buffer_bytes";
const SYSCALLS: &str = "syscalls";
const NOISY_AGAIN: &str = "noisy_again";

impl Options {
    /// How many processes carry so many connections, each of which takes so many files in
    /// a server.
    pub fn processes(&self, connections: u32, descriptors: u32) -> Processes {
        let each_most = self.each_most.unwrap_or(u32::MAX);
        let (client, server) = (self.client_processes, self.server_processes);
        Processes::of(connections, client, server, each_most, descriptors)
    }

    /// `--buffer` for the servers that know it.
    pub fn buffer_args(&self, subject: &Subject) -> Vec<String> {
        let is_asked = self.buffer_bytes.filter(|_| subject.takes_buffer());
        let args = is_asked.map(|bytes| ["--buffer".to_owned(), bytes.to_string()]);
        args.into_iter().flatten().collect()
    }

    /// How many origins stand behind a relay with so many connections.
    pub fn origins(&self, connections: u32) -> u32 {
        let each_most = self.each_most.unwrap_or(u32::MAX);
        Processes::of(connections, Count::Auto, Count::Auto, each_most, 1).client
    }

    /// As they are kept.
    pub fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = BTreeMap::new();
        let mut set = |name: &str, value: String| settings.insert(name.to_owned(), value);
        set("ports_count", self.ports.to_string());
        set("server_processes", self.server_processes.to_string());
        set("client_processes", self.client_processes.to_string());
        if let Some(each_most) = self.each_most {
            set(EACH_MOST, each_most.to_string());
        }
        set("nodelay", self.nodelay.to_string());
        // Those that say something of the TCP suites only stand in their plans only.
        if let Some(bytes) = self.buffer_bytes {
            set(BUFFER, bytes.to_string());
        }
        if self.syscalls {
            set(SYSCALLS, "true".into());
        }
        if self.noisy_again {
            set(NOISY_AGAIN, "true".into());
        }
        for patch in &self.patches {
            let name = format!("{}{}", names::PATCH, patch.crate_name);
            set(&name, patch.place.to_string());
        }
        set("unverified", self.unverified.to_string());
        set(
            "sample_interval_ms",
            self.sample_interval.as_millis().to_string(),
        );
        for (name, value) in self.slo.iter().flat_map(Slo::settings) {
            set(name, value);
        }
        for (name, value) in [
            ("server_cpus", &self.server_cpus),
            ("client_cpus", &self.client_cpus),
        ] {
            if let Some(value) = value {
                set(name, value.clone());
            }
        }
        settings
    }

    /// Those that a saved run was made with.
    pub fn of(plan: &RunPlan) -> anyhow::Result<Self> {
        let text = |name: &str| plan.settings.get(name).cloned();
        Ok(Self {
            server_cpus: text("server_cpus"),
            client_cpus: text("client_cpus"),
            ports: setting(plan, "ports_count")?,
            server_processes: setting(plan, "server_processes")?,
            client_processes: setting(plan, "client_processes")?,
            each_most: some_setting(plan, EACH_MOST)?,
            pilot_above: PILOT_ABOVE,
            nodelay: setting(plan, "nodelay")?,
            buffer_bytes: some_setting(plan, BUFFER)?,
            syscalls: some_setting(plan, SYSCALLS)?.unwrap_or(false),
            noisy_again: some_setting(plan, NOISY_AGAIN)?.unwrap_or(false),
            patches: patches(plan)?,
            unverified: setting(plan, "unverified")?,
            sample_interval: Duration::from_millis(setting(plan, "sample_interval_ms")?),
            slo: Slo::of(text)?,
        })
    }
}

/// Those of the plan; a folder that is gone since is told.
fn patches(plan: &RunPlan) -> anyhow::Result<Vec<Patch>> {
    let named = plan.settings.iter().filter_map(|(name, place)| {
        let name = name.strip_prefix(names::PATCH)?;
        Some(format!("{name}={place}"))
    });
    let patches = named.map(|text| text.parse().map_err(anyhow::Error::msg));
    patches
        .collect::<anyhow::Result<_>>()
        .with_context(|| format!("run {} has a patched crate", plan.run))
}

/// One that not every plan has.
fn some_setting<T: FromStr>(plan: &RunPlan, name: &str) -> anyhow::Result<Option<T>> {
    match plan.settings.contains_key(name) {
        true => setting(plan, name).map(Some),
        false => Ok(None),
    }
}

fn setting<T: FromStr>(plan: &RunPlan, name: &str) -> anyhow::Result<T> {
    let run = &plan.run;
    let text = plan.settings.get(name);
    let text = text.with_context(|| format!("the plan of run {run} has no setting `{name}`"))?;
    match text.parse() {
        Ok(value) => Ok(value),
        Err(_) => bail!("the plan of run {run} has `{text}` as its setting `{name}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::testing::plan;

    #[test]
    fn options_read_back_from_the_plan() {
        let chosen = Options {
            client_cpus: Some("1".into()),
            ports: 3,
            client_processes: Count::Fixed(5),
            each_most: Some(19_800),
            nodelay: false,
            buffer_bytes: Some(4096),
            syscalls: true,
            noisy_again: true,
            unverified: true,
            ..Options::new(Duration::from_millis(250))
        };
        let mut saved = plan("a");
        saved.settings = chosen.settings();
        assert_eq!(Options::of(&saved).unwrap(), chosen);
        assert_eq!(OptionArgs::default().over(chosen.clone()), chosen);
        let flags = OptionArgs {
            ports: Some(4),
            ..OptionArgs::default()
        };
        assert_eq!(flags.over(chosen).ports, 4);
    }

    #[test]
    fn a_plan_without_a_setting_is_named() {
        let error = Options::of(&plan("a")).unwrap_err().to_string();
        assert_eq!(error, "the plan of run a has no setting `ports_count`");
    }
}
