//! Servers and clients as processes of their own, each on its own CPU.

use crate::machine::on_cpu;
use crate::raw_client::Outcome;
use anyhow::{Context as _, Result, bail, ensure};
use std::env;
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Below the range that the kernel takes clients' ports from; enough of them for 10,000
/// connections from one address.
pub const PORTS: &str = "22000-22009";
const FIRST_PORT: u16 = 22_000;
const SERVER_CPU: usize = 0;
const CLIENT_CPU: usize = 1;

/// What both clients are asked to do.
#[derive(Clone, Copy)]
pub struct Load {
    pub connections: usize,
    pub messages: u64,
    pub bytes: usize,
}

/// A server, killed when dropped.
pub struct Server(Child);

impl Server {
    pub fn start(mut command: Command) -> Result<Self> {
        let name = format!("{command:?}");
        ensure!(!accepts(), "something listens on port {FIRST_PORT} already");
        let child = on_cpu(SERVER_CPU, || {
            command
                .stdin(Stdio::null())
                .spawn()
                .with_context(|| format!("cannot start {name}"))
        })?;
        let mut server = Self(child);
        let deadline = Instant::now() + Duration::from_secs(5);
        while !accepts() {
            if let Some(status) = server.0.try_wait()? {
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
        command.args(["server", "--ports", PORTS]);
        Self::start(command)
    }

    pub fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It cannot fail in a way that matters: a server that is gone is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the raw client to its end.
pub fn raw_client(server: &Server, load: Load, upgrade: bool) -> Result<Outcome> {
    let mut command = Command::new(env::current_exe()?);
    command
        .args(["client", "--ports", PORTS, "--pid", &server.pid()])
        .args(["--connections", &load.connections.to_string()])
        .args(["--messages", &load.messages.to_string()])
        .args(["--bytes", &load.bytes.to_string()]);
    if upgrade {
        command.arg("--upgrade");
    }
    let line = output_of(command)?;
    serde_json::from_str(&line).with_context(|| format!("not an outcome: {line}"))
}

/// Runs a client to its end and returns what it printed.
pub fn output_of(mut command: Command) -> Result<String> {
    let name = format!("{command:?}");
    let output = on_cpu(CLIENT_CPU, || {
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

fn accepts() -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, FIRST_PORT)).is_ok()
}
