//! What the client costs, each figure beside its limit. Whatever is compared with
//! something takes turns with it, a pair of turns a round, and who begins alternates; a
//! ratio is the median of the pairs' ratios, so that a drift of the machine favours neither.

use crate::connect_cost;
use crate::load::{CLIENT_CPU, Load as RawLoad, SERVER_CPU, Server, median, print_distance};
use crate::load::{Programs, raw_client, raw_dials};
use crate::machine::{in_time_wait, process_cpu_ns};
use crate::process::{Process, figure};
use anyhow::{Result, ensure};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};
use wsbench_client::engine::dial::{local_ports, ports_of_one_source};
use wsbench_schema::{DialLoad, EchoLoad, Load, MessageKind, Phase, RateLoad, metric};

/// Dials in flight at once.
const DIALS_IN_FLIGHT: u32 = 100;
/// Messages in flight on a connection of the figures with batches.
const BATCH: u32 = 16;
/// Connections of the figures with batches and of those with shards.
const FEW: u32 = 64;
const SOME: u32 = 1_000;
/// The dials that are timed, and the echoes that are made with all in flight.
const MANY: u32 = 10_000;
/// As many as a process may hold where its limit is 20,000.
const MOST: u32 = 19_000;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    programs: Programs,
    /// Pairs of turns.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// A smoke of it: a round of a tenth of the messages.
    #[arg(long)]
    quick: bool,
    /// Only figures whose name has this in it.
    #[arg(long, default_value = "")]
    only: String,
}

/// What a figure must be.
#[derive(Clone, Copy)]
enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

impl Limit {
    fn holds(self, value: f64) -> bool {
        match self {
            Limit::AtMost(most) => value <= most,
            Limit::AtLeast(least) => value >= least,
        }
    }
}

/// All that was measured, in the order in which it is first named.
#[derive(Default)]
struct Figures {
    only: String,
    names: Vec<(String, Limit, &'static str)>,
    values: BTreeMap<String, Vec<f64>>,
    /// What a ratio is of: the client's side and the other's.
    sides: BTreeMap<String, Vec<(f64, f64)>>,
}

impl Figures {
    fn wants(&self, name: &str) -> bool {
        name.contains(&self.only)
    }

    fn add(&mut self, name: &str, unit: &'static str, limit: Limit, value: f64) {
        if !self.values.contains_key(name) {
            self.names.push((name.to_owned(), limit, unit));
        }
        self.values.entry(name.to_owned()).or_default().push(value);
    }

    fn add_ratio(&mut self, name: &str, limit: Limit, (ours, other): (f64, f64)) {
        self.add(name, "x", limit, ours / other);
        let sides = self.sides.entry(name.to_owned()).or_default();
        sides.push((ours, other));
    }

    /// True if every limit holds.
    fn print(&self) -> bool {
        println!("{:<60} {:>10} {:>10} {:>10}", "figure", "is", "limit", "");
        let mut all_hold = true;
        for (name, limit, unit) in &self.names {
            let value = median(self.values[name].clone());
            let holds = limit.holds(value);
            all_hold &= holds;
            let bound = match limit {
                Limit::AtMost(bound) => format!("<= {bound}"),
                Limit::AtLeast(bound) => format!(">= {bound}"),
            };
            let sides = self.sides.get(name).map_or(String::new(), |sides| {
                let side = |of: fn(&(f64, f64)) -> f64| median(sides.iter().map(of).collect());
                format!(
                    "  ({:.3} : {:.3})",
                    side(|side| side.0),
                    side(|side| side.1)
                )
            });
            println!(
                "{name:<60} {:>10} {bound:>10} {:>10}{sides}",
                format!("{value:.3} {unit}"),
                if holds { "pass" } else { "MISSED" },
            );
        }
        all_hold
    }
}

pub fn run(args: &Args) -> Result<ExitCode> {
    for (program, remedy) in [
        (&args.programs.floor, "wsbench build floor"),
        (&args.programs.client, "cargo build --release -p wsbench"),
    ] {
        let missing = || format!("{} does not exist (run: {remedy})", program.display());
        ensure!(program.exists(), missing());
    }
    let start = Instant::now();
    print_distance()?;
    let bench = Bench {
        floor: &args.programs.floor,
        client: &args.programs.client,
        shrink: if args.quick { 10 } else { 1 },
    };
    let rounds = if args.quick { 1 } else { args.rounds.max(1) };
    let mut figures = Figures {
        only: args.only.clone(),
        ..Figures::default()
    };
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        bench.compare(&mut figures, round % 2 == 0)?;
    }
    eprintln!("dials, idle connections and memory");
    bench.connect_cost(&mut figures)?;
    bench.idle(&mut figures)?;
    bench.memory(&mut figures)?;
    let all_hold = figures.print();
    print_distance()?;
    println!("in {:.0} s", start.elapsed().as_secs_f64());
    Ok(if all_hold {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

struct Bench<'a> {
    floor: &'a Path,
    client: &'a Path,
    /// Messages are so many times fewer.
    shrink: u64,
}

/// Does both, the first one first if `in_order`.
fn both<A, B>(
    in_order: bool,
    first: impl FnOnce() -> Result<A>,
    second: impl FnOnce() -> Result<B>,
) -> Result<(A, B)> {
    if in_order {
        let first = first()?;
        Ok((first, second()?))
    } else {
        let second = second()?;
        Ok((first()?, second))
    }
}

impl Bench<'_> {
    fn floor(&self, cpus: &[usize]) -> Result<Server> {
        let mut command = Command::new(self.floor);
        command.args(["--host", "127.0.0.1"]);
        Server::start_on(cpus, command)
    }

    fn start(&self, server: &Server, load: Load) -> Result<Process> {
        Process::start(self.client, &[CLIENT_CPU], server, load)
    }

    /// One pair of turns of everything that is compared with something.
    fn compare(&self, figures: &mut Figures, in_order: bool) -> Result<()> {
        for (connections, messages) in [(FEW, 300_000), (MANY, 300_000)] {
            let name = format!("CPU an echo, 1 KiB, {connections} in flight, of raw epoll's");
            if figures.wants(&name) {
                let raw = || self.raw_us(connections, messages, 1024, 1);
                let ours = || self.echo_us(connections, messages);
                let ratio = both(in_order, ours, raw)?;
                figures.add_ratio(&name, Limit::AtMost(1.15), ratio);
            }
        }
        for (bytes, messages) in [(125, 2_000_000), (1024, 600_000)] {
            let name = format!("CPU a message, {bytes} B, batches of {BATCH}, of raw epoll's");
            if figures.wants(&name) {
                // The raw client is always first: its rate says what is more than can be sent.
                let raw = self.raw(FEW, messages, bytes, BATCH)?;
                let ours = self.batch_us(raw.0, bytes)?;
                figures.add_ratio(&name, Limit::AtMost(1.3), (ours, raw.1));
            }
        }
        let name = "echoes a second with 2 shards, of those with 1";
        if figures.wants(name) {
            let two = || self.shared_rate(&[SERVER_CPU, CLIENT_CPU]);
            let one = || self.shared_rate(&[CLIENT_CPU]);
            let ratio = both(in_order, two, one)?;
            figures.add_ratio(name, Limit::AtLeast(1.0), ratio);
        }
        let name = "dials a second, of raw epoll's";
        if figures.wants(name) {
            let raw = || {
                let outcome = raw_dials(&self.floor(&[SERVER_CPU])?, MANY, DIALS_IN_FLIGHT)?;
                Ok(outcome.messages as f64 * 1e6 / outcome.elapsed_ns as f64)
            };
            let ratio = both(in_order, || self.dial_rate(), raw)?;
            figures.add_ratio(name, Limit::AtLeast(0.8), ratio);
        }
        Ok(())
    }

    /// The raw client's messages a second and microseconds of CPU a message.
    fn raw(&self, connections: u32, messages: u64, bytes: u32, batch: u32) -> Result<(f64, f64)> {
        let load = RawLoad {
            connections: connections as usize,
            messages: messages / self.shrink,
            bytes: bytes as usize,
            batch: batch as usize,
        };
        let outcome = raw_client(&self.floor(&[SERVER_CPU])?, load, true)?;
        let messages = outcome.messages as f64;
        let per_s = messages * 1e9 / outcome.elapsed_ns as f64;
        Ok((per_s, outcome.cpu_ns as f64 / 1e3 / messages))
    }

    fn raw_us(&self, connections: u32, messages: u64, bytes: u32, batch: u32) -> Result<f64> {
        Ok(self.raw(connections, messages, bytes, batch)?.1)
    }

    fn echo_us(&self, connections: u32, echoes: u64) -> Result<f64> {
        let server = self.floor(&[SERVER_CPU])?;
        let load = with_echoes(load(connections), echoes / self.shrink);
        let mut process = self.start(&server, load)?;
        process.run(Phase::Connect)?;
        process.run(Phase::Warmup)?;
        let report = process.run(Phase::Echo)?;
        us_a_message(&report)
    }

    /// Batches are due more often than they can be answered, so that each goes out
    /// when the one before it is answered, as those of the raw client.
    fn batch_us(&self, raw_per_s: f64, bytes: u32) -> Result<f64> {
        let server = self.floor(&[SERVER_CPU])?;
        let per_connection_per_s = (1.5 * raw_per_s / f64::from(FEW)) as u32 + 1;
        let rate = RateLoad {
            connections: 0,
            duration_ms: 1_000 / self.shrink,
            per_connection_per_s,
            batch_bytes: (bytes + 14) * BATCH,
            window: BATCH,
            limit_per_s: 0,
            timeout_ms: 10_000,
        };
        let load = Load {
            payload_bytes: bytes,
            rate: Some(rate),
            ..load(FEW)
        };
        let mut process = self.start(&server, load)?;
        process.run(Phase::Connect)?;
        let report = process.run(Phase::Rate)?;
        let batch = figure(&report, metric::BATCH)?;
        ensure!(batch == f64::from(BATCH), "batches of {batch}");
        us_a_message(&report)
    }

    /// Thousands of echoes a second of a client on these CPUs, the server on both.
    fn shared_rate(&self, cpus: &[usize]) -> Result<f64> {
        let server = self.floor(&[SERVER_CPU, CLIENT_CPU])?;
        let load = with_echoes(load(SOME), 300_000 / self.shrink);
        let mut process = Process::start(self.client, cpus, &server, load)?;
        process.run(Phase::Connect)?;
        process.run(Phase::Warmup)?;
        let report = process.run(Phase::Echo)?;
        let shards = figure(&report, metric::CLIENT_CPUS)?;
        ensure!(shards == cpus.len() as f64, "{shards} shards");
        let echoes = figure(&report, metric::SUCCEEDED)?;
        Ok(echoes * 1e6 / figure(&report, metric::ELAPSED)?)
    }

    /// Thousands of dials a second.
    fn dial_rate(&self) -> Result<f64> {
        let server = self.floor(&[SERVER_CPU])?;
        let mut process = self.start(&server, load(MANY))?;
        let report = process.run(Phase::Connect)?;
        Ok(f64::from(MANY) * 1e6 / figure(&report, metric::ELAPSED)?)
    }

    /// A plan that uses every port it may of one source, and one with several sources.
    fn connect_cost(&self, figures: &mut Figures) -> Result<()> {
        for (sources, connections) in [
            ("one source", ports_of_one_source(local_ports())),
            ("several", MOST),
        ] {
            let name = |percent| {
                format!("connect at {percent} % of the tuples of {sources}, of that at 1 %")
            };
            if !figures.wants(&name(50)) {
                continue;
            }
            let [first, half, full] = connect_cost::measure(connections.min(MOST))?;
            let limit = Limit::AtMost(2.0);
            figures.add_ratio(&name(50), limit, (half, first));
            figures.add_ratio(&name(100), limit, (full, first));
        }
        Ok(())
    }

    /// What connections cost on which nothing happens, and what closing them does.
    fn idle(&self, figures: &mut Figures) -> Result<()> {
        if !figures.wants("idle") {
            return Ok(());
        }
        let server = self.floor(&[SERVER_CPU])?;
        // Not shorter in a smoke: what the phase's begin costs would be most of it.
        let lasts_ms = 3_000;
        let mut load = load(MOST);
        // One echo a second on one connection, so that the phase lasts.
        load.echo = Some(EchoLoad {
            echoes: u64::MAX,
            duration_ms: Some(lasts_ms),
            concurrency: 1,
            limit_per_s: 1,
            timeout_ms: 5_000,
            warmup_echoes: 0,
        });
        let mut process = self.start(&server, load)?;
        process.run(Phase::Connect)?;
        let cpu_ns = process_cpu_ns(process.pid())?;
        let start = Instant::now();
        thread::sleep(Duration::from_millis(lasts_ms));
        let idle_ns = (process_cpu_ns(process.pid())? - cpu_ns) as f64;
        let percent = 100.0 * idle_ns / start.elapsed().as_nanos() as f64;
        let limit = Limit::AtMost(0.1);
        figures.add(
            "idle: CPU of 19,000 connections between phases",
            "%",
            limit,
            percent,
        );
        let report = process.run(Phase::Echo)?;
        let (cpu_ns, window_ns) = (
            figure(&report, metric::CLIENT_CPU)?,
            figure(&report, metric::CLIENT_WINDOW)?,
        );
        let percent = 100.0 * cpu_ns / window_ns;
        figures.add(
            "idle: the same within a phase, one echo a second",
            "%",
            limit,
            percent,
        );
        let closing = process.stop()?.as_secs_f64();
        figures.add("idle: closing them all", "s", Limit::AtMost(1.0), closing);
        let waiting = in_time_wait(&server.port_range())? as f64;
        figures.add(
            "idle: sockets left in TIME_WAIT",
            "",
            Limit::AtMost(0.0),
            waiting,
        );
        Ok(())
    }

    /// Anonymous memory, the most that was seen in a run of each size.
    fn memory(&self, figures: &mut Figures) -> Result<()> {
        let run = |connections: u32, rate: bool| -> Result<f64> {
            let server = self.floor(&[SERVER_CPU])?;
            let mut load = with_echoes(load(connections), 4 * u64::from(connections));
            if rate {
                load.rate = Some(RateLoad {
                    connections: 0,
                    duration_ms: 2_000,
                    per_connection_per_s: 2,
                    batch_bytes: 0,
                    window: BATCH,
                    limit_per_s: 0,
                    timeout_ms: 10_000,
                });
            }
            let mut process = self.start(&server, load)?;
            for phase in [Phase::Connect, Phase::Warmup, Phase::Echo] {
                process.run(phase)?;
            }
            if rate {
                process.run(Phase::Rate)?;
            }
            Ok(process.anonymous_bytes as f64)
        };
        for (name, rate, limit) in [
            ("memory a connection, connect and echo", false, 96.0),
            (
                "memory a connection, rate with a window of 16",
                true,
                96.0 + 8.0 * 16.0,
            ),
        ] {
            if !figures.wants(name) {
                continue;
            }
            let (few, most) = (run(SOME, rate)?, run(MOST, rate)?);
            let each = (most - few) / f64::from(MOST - SOME);
            figures.add(name, "B", Limit::AtMost(limit), each);
            if !rate {
                let name = "memory in all at 1,000 connections";
                figures.add(name, "MiB", Limit::AtMost(12.0), few / f64::from(1 << 20));
            }
        }
        Ok(())
    }
}

/// Connections only.
fn load(connections: u32) -> Load {
    Load {
        connections,
        payload_bytes: 1024,
        message: MessageKind::Binary,
        check: true,
        dial: DialLoad {
            concurrency: DIALS_IN_FLIGHT,
            ..DialLoad::default()
        },
        echo: None,
        rate: None,
        after_connections: 0,
        bulk: None,
        release: None,
        transport: wsbench_schema::Transport::Websocket,
        client_burn_ns: 0,
    }
}

/// With so many echoes, one in flight on each connection.
fn with_echoes(load: Load, echoes: u64) -> Load {
    let echo = EchoLoad {
        echoes,
        duration_ms: None,
        concurrency: 0,
        limit_per_s: 0,
        timeout_ms: 10_000,
        warmup_echoes: EchoLoad::default_warmup(load.connections),
    };
    Load {
        echo: Some(echo),
        ..load
    }
}

fn us_a_message(report: &wsbench_schema::PhaseReport) -> Result<f64> {
    let messages = figure(report, metric::SUCCEEDED)?;
    Ok(figure(report, metric::CLIENT_CPU)? / 1e3 / messages)
}
