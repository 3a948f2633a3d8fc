//! How near `wsbench client` comes to the raw client on the same server. The
//! two take turns and who begins alternates, so that a drift of the machine
//! favours neither; each turn has a fresh server.

use crate::load::{Load, Programs, Server, median, output_of, print_distance, raw_client};
use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::process::{Command, ExitCode};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    programs: Programs,
    /// All of them have a message in flight.
    #[arg(long, value_delimiter = ',', default_value = "64,10000")]
    connections: Vec<usize>,
    #[arg(long, default_value_t = 500_000)]
    messages: u64,
    #[arg(long, default_value_t = 1024)]
    bytes: usize,
    /// Turns of each client.
    #[arg(long, default_value_t = 5)]
    pairs: usize,
    /// Exit with code 1 if the ratio of the rates is below it.
    #[arg(long, default_value_t = 0.85)]
    at_least: f64,
}

/// The part of the JSON of `wsbench client` that is read.
#[derive(Deserialize)]
struct Printed {
    metrics: BTreeMap<String, u64>,
}

/// What one turn took.
struct Turn {
    messages_per_s: f64,
    client_us: f64,
    server_us: f64,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    print_distance()?;
    let mut enough = true;
    for &connections in &args.connections {
        let load = Load {
            connections,
            messages: args.messages,
            bytes: args.bytes,
            batch: 1,
        };
        let (mut raw, mut wsbench) = (Vec::new(), Vec::new());
        for pair in 0..args.pairs.max(1) {
            if pair % 2 == 0 {
                raw.push(raw_turn(args, load)?);
                wsbench.push(wsbench_turn(args, load)?);
            } else {
                wsbench.push(wsbench_turn(args, load)?);
                raw.push(raw_turn(args, load)?);
            }
        }
        println!(
            "{connections} connections, all in flight, medians of {} turns each:",
            raw.len()
        );
        println!("                    raw client  wsbench client  ratio");
        let rate = print("messages/s", 0, &raw, &wsbench, |turn| turn.messages_per_s);
        print("client us/message", 2, &raw, &wsbench, |turn| {
            turn.client_us
        });
        print("server us/message", 2, &raw, &wsbench, |turn| {
            turn.server_us
        });
        if rate < args.at_least {
            println!("below {:.2} of the raw client's rate", args.at_least);
            enough = false;
        }
    }
    Ok(if enough {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Returns the ratio of the medians.
fn print(
    name: &str,
    decimals: usize,
    raw: &[Turn],
    wsbench: &[Turn],
    figure: impl Fn(&Turn) -> f64,
) -> f64 {
    let raw = median(raw.iter().map(&figure).collect());
    let wsbench = median(wsbench.iter().map(&figure).collect());
    let ratio = wsbench / raw;
    println!("{name:<18}  {raw:>10.decimals$}  {wsbench:>14.decimals$}  {ratio:>5.3}");
    ratio
}

fn floor(args: &Args) -> Result<Server> {
    let mut command = Command::new(&args.programs.floor);
    command.args(["--host", "127.0.0.1"]);
    Server::start(command)
}

fn raw_turn(args: &Args, load: Load) -> Result<Turn> {
    let server = floor(args)?;
    let outcome = raw_client(&server, load, true)?;
    Ok(turn(
        outcome.messages,
        outcome.elapsed_ns,
        outcome.cpu_ns,
        outcome.server_cpu_ns,
    ))
}

fn wsbench_turn(args: &Args, load: Load) -> Result<Turn> {
    let server = floor(args)?;
    let mut command = Command::new(&args.programs.client);
    command
        .arg("client")
        .args(["--url", &format!("ws://127.0.0.1:{}/ws", server.ports())])
        .args(["--pid", &server.pid()])
        .arg(format!("-c={}", load.connections))
        .arg(format!("-ec={}", load.connections))
        .arg(format!("-n={}", load.messages))
        .arg(format!("-b={}", load.bytes))
        .arg("--json");
    let text = output_of(command)?;
    let Printed { metrics } =
        serde_json::from_str(&text).with_context(|| format!("not a result: {text}"))?;
    let metric = |name: &str| {
        metrics
            .get(name)
            .copied()
            .with_context(|| format!("no metric `{name}` in {text}"))
    };
    let succeeded = metric("echo.succeeded_count")?;
    ensure!(
        succeeded == load.messages,
        "{succeeded} of {} echoes succeeded",
        load.messages
    );
    Ok(turn(
        succeeded,
        metric("echo.elapsed_ns")?,
        metric("echo.client_cpu_ns")?,
        metric("echo.server_cpu_ns")?,
    ))
}

fn turn(messages: u64, elapsed_ns: u64, client_cpu_ns: u64, server_cpu_ns: u64) -> Turn {
    let messages = messages as f64;
    Turn {
        messages_per_s: messages * 1e9 / elapsed_ns as f64,
        client_us: client_cpu_ns as f64 / 1e3 / messages,
        server_us: server_cpu_ns as f64 / 1e3 / messages,
    }
}
