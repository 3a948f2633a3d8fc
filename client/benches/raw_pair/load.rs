//! Servers and clients as processes of their own, each on its own CPU.

use crate::machine::{cache_line_ns, on_cpus};
use crate::raw_client::Outcome;
use anyhow::{Context as _, Result, bail, ensure};
use socket2::SockRef;
use std::env;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Enough of them for 10,000 connections from one address.
const PORTS: u16 = 10;
/// Below the range that the kernel takes clients' ports from.
const FIRST_PORTS: Range<u16> = 24_000..32_000;
pub const SERVER_CPU: usize = 0;
pub const CLIENT_CPU: usize = 1;

/// Where the programs are that are measured unless it is said otherwise: `cargo bench`
/// runs in the package's folder.
const FLOOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../output/bin/floor");
const WSBENCH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/release/wsbench");

/// What takes part beside the raw programs.
#[derive(clap::Args)]
pub struct Programs {
    /// The program of the subject `floor`; built by `wsbench build floor`.
    #[arg(long, default_value = FLOOR)]
    pub floor: PathBuf,
    /// The program `wsbench`; built by `cargo build --release -p wsbench`.
    #[arg(long, default_value = WSBENCH)]
    pub client: PathBuf,
}

/// What both clients are asked to do.
#[derive(Clone, Copy)]
pub struct Load {
    pub connections: usize,
    pub messages: u64,
    pub bytes: usize,
    /// Messages that are written at once, and in flight on a connection.
    pub batch: usize,
}

/// Says what kind of neighbours the two CPUs are just now.
pub fn print_distance() -> Result<()> {
    let distance_ns = cache_line_ns(SERVER_CPU, CLIENT_CPU)?;
    println!(
        "server on CPU {SERVER_CPU}, client on CPU {CLIENT_CPU}; \
         a cache line takes {distance_ns:.0} ns from one to the other"
    );
    Ok(())
}

/// A server, killed when dropped.
pub struct Server {
    child: Child,
    first_port: u16,
}

impl Server {
    /// Adds the contract's flag for its ports to the command.
    pub fn start(command: Command) -> Result<Self> {
        Self::start_on(&[SERVER_CPU], command)
    }

    /// The same on these CPUs.
    pub fn start_on(cpus: &[usize], mut command: Command) -> Result<Self> {
        let first_port = free_ports()?;
        command.args(["--ports", &range(first_port)]);
        let name = format!("{command:?}");
        let child = on_cpus(cpus, || {
            command
                .stdin(Stdio::null())
                .spawn()
                .with_context(|| format!("cannot start {name}"))
        })?;
        let mut server = Self { child, first_port };
        let deadline = Instant::now() + Duration::from_secs(5);
        let last_port = first_port + PORTS - 1;
        while !listens(last_port) {
            if let Some(status) = server.child.try_wait()? {
                bail!("{name} ended before it listened: {status}");
            }
            ensure!(Instant::now() < deadline, "{name} does not listen");
            thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    /// The raw one.
    pub fn raw() -> Result<Self> {
        let mut command = Command::new(env::current_exe()?);
        command.arg("server");
        Self::start(command)
    }

    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// FIRST-LAST.
    pub fn ports(&self) -> String {
        range(self.first_port)
    }

    pub fn port_range(&self) -> RangeInclusive<u16> {
        self.first_port..=self.first_port + PORTS - 1
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It cannot fail in a way that matters: a server that is gone is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks by a connection that is closed by a reset, so that none lingers in TIME_WAIT.
fn listens(port: u16) -> bool {
    let connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
    connection.is_ok_and(|connection| {
        SockRef::from(&connection)
            .set_linger(Some(Duration::ZERO))
            .is_ok()
    })
}

/// Runs the raw client to its end.
pub fn raw_client(server: &Server, load: Load, upgrade: bool) -> Result<Outcome> {
    let mut command = Command::new(env::current_exe()?);
    command
        .args(["client", "--ports", &server.ports(), "--pid", &server.pid()])
        .args(["--connections", &load.connections.to_string()])
        .args(["--messages", &load.messages.to_string()])
        .args(["--bytes", &load.bytes.to_string()])
        .args(["--batch", &load.batch.to_string()]);
    if upgrade {
        command.arg("--upgrade");
    }
    outcome_of(command)
}

/// Runs the raw dialler to its end.
pub fn raw_dials(server: &Server, connections: u32, in_flight: u32) -> Result<Outcome> {
    let mut command = Command::new(env::current_exe()?);
    command
        .args(["dial", "--ports", &server.ports(), "--pid", &server.pid()])
        .args(["--connections", &connections.to_string()])
        .args(["--in-flight", &in_flight.to_string()]);
    outcome_of(command)
}

fn outcome_of(command: Command) -> Result<Outcome> {
    let line = output_of(command)?;
    serde_json::from_str(&line).with_context(|| format!("not an outcome: {line}"))
}

/// Runs a client to its end and returns what it printed.
pub fn output_of(mut command: Command) -> Result<String> {
    let name = format!("{command:?}");
    let output = on_cpus(&[CLIENT_CPU], || {
        command
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot run {name}"))
    })?;
    ensure!(output.status.success(), "{name}: {}", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("{name} prints no text"))
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) {
        (values[middle - 1] + values[middle]) / 2.0
    } else {
        values[middle]
    }
}

/// The first of as many free ports as a server gets.
fn free_ports() -> Result<u16> {
    let free = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    FIRST_PORTS
        .step_by(usize::from(PORTS))
        .find(|&first| (first..first + PORTS).all(free))
        .context("no free ports below the ephemeral range")
}

fn range(first_port: u16) -> String {
    format!("{first_port}-{}", first_port + PORTS - 1)
}
