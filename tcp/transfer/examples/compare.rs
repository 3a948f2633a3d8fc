//! CPU time a GiB of each strategy, measured by a small client: for work on this folder, not for results.
//!
//! The server runs on the first CPU and the client on the last. Strategies and programs take turns, and each
//! is compared with the first of its round, so that what the machine does meanwhile tells less.
//!
//!     cargo build --release && cargo run --release --example compare -- target/release/transfer

#[allow(dead_code)] // some of the slots
#[path = "../src/counters/layout.rs"]
mod layout;
#[path = "../src/counters/reader.rs"]
mod reader;

use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Arg, value_parser};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::layout::Slot;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const GIB: f64 = (1_u64 << 30) as f64;
const LIMIT: Duration = Duration::from_secs(60);

struct Load {
    connections: usize,
    bytes: usize,
    buffer: String,
}

/// One run of one strategy.
struct Figures {
    cpu_s: f64,
    duration_s: f64,
    rss_kib: u64,
    counters: reader::Counters,
}

fn main() -> Result<()> {
    let number = |name: &'static str, default: &'static str| {
        Arg::new(name)
            .long(name)
            .default_value(default)
            .value_parser(value_parser!(usize))
    };
    let flags = clap::Command::new("compare")
        .arg(number("rounds", "5"))
        .arg(number("connections", "500"))
        .arg(number("bytes", "2000000"))
        .arg(Arg::new("buffer").long("buffer").default_value("32768"))
        .arg(
            Arg::new("strategies")
                .long("strategies")
                .value_delimiter(',')
                .default_value(
                    "heap,stack,pool,task,per_read,thread_local,pool_threads,provided,slab",
                ),
        )
        .arg(
            Arg::new("programs")
                .required(true)
                .num_args(1..)
                .value_parser(value_parser!(PathBuf)),
        )
        .get_matches();
    let count = |name: &str| flags.get_one::<usize>(name).copied().unwrap_or(1);
    let load = Load {
        connections: count("connections"),
        bytes: count("bytes"),
        buffer: flags
            .get_one::<String>("buffer")
            .cloned()
            .unwrap_or_default(),
    };
    let strategies: Vec<&String> = flags.get_many("strategies").unwrap_or_default().collect();
    let programs: Vec<&PathBuf> = flags.get_many("programs").unwrap_or_default().collect();
    let subjects: Vec<(&str, &Path)> = strategies
        .iter()
        .flat_map(|name| {
            programs
                .iter()
                .map(|program| (name.as_str(), program.as_path()))
        })
        .collect();

    let mut runs: Vec<Vec<Figures>> = subjects.iter().map(|_| Vec::new()).collect();
    for round in 0..count("rounds") {
        for turn in 0..subjects.len() {
            // Another goes first in each round.
            let index = (turn + round) % subjects.len();
            let (strategy, program) = subjects[index];
            runs[index].push(run(program, strategy, &load)?);
        }
    }
    println!(
        "{:<14} cpu_s_a_gib  ratio (least to most)   wall_s  rss_mib  reads  alloc_calls  kept  program",
        "strategy"
    );
    for ((strategy, program), figures) in subjects.iter().zip(&runs) {
        let gib = (load.connections * load.bytes) as f64 / GIB;
        let of = |value: fn(&Figures) -> f64| median(figures.iter().map(value).collect());
        let mut ratios: Vec<f64> = figures
            .iter()
            .zip(&runs[0])
            .map(|(own, first)| own.cpu_s / first.cpu_s)
            .collect();
        ratios.sort_by(f64::total_cmp);
        println!(
            "{strategy:<14} {:>11.3}  {:>5.3} ({:.3} to {:.3})  {:>7.2}  {:>7.1}  {:>6.0}  {:>9.0}  {:>6.0}  {}",
            of(|run| run.cpu_s) / gib,
            median(ratios.clone()),
            ratios[0],
            ratios[ratios.len() - 1],
            of(|run| run.duration_s),
            of(|run| run.rss_kib as f64) / 1024.0,
            of(|run| run.counters.get(Slot::Reads) as f64),
            of(|run| run.counters.get(Slot::AllocCalls) as f64),
            of(|run| run.counters.get(Slot::KeptCalls) as f64),
            program.display(),
        );
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Ends with its owner.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run(program: &Path, strategy: &str, load: &Load) -> Result<Figures> {
    let all = sched_getaffinity(None)?;
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| all.is_set(cpu));
    let first = cpus.next().ok_or("no CPU")?;
    let last = cpus.next_back().unwrap_or(first);
    let counters = PathBuf::from(format!("/dev/shm/transfer-compare-{}", std::process::id()));
    // A child inherits it.
    stay_on(first)?;
    let child = Command::new(program)
        .args([
            "--host",
            "127.99.99.99",
            "--ports",
            "10001",
            "--strategy",
            strategy,
        ])
        .args(["--buffer", &load.buffer, "--counters"])
        .arg(&counters)
        .spawn()?;
    let server = Server(child);
    stay_on(last)?;
    let figures = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async { timeout(LIMIT, transfer(&server, &counters, load)).await? });
    fs::remove_file(&counters)?;
    sched_setaffinity(None, &all)?;
    figures
}

fn stay_on(cpu: usize) -> Result<()> {
    let mut one = CpuSet::new();
    one.set(cpu);
    Ok(sched_setaffinity(None, &one)?)
}

async fn transfer(server: &Server, counters: &Path, load: &Load) -> Result<Figures> {
    let address = SocketAddr::from(([127, 99, 99, 99], 10_001));
    while TcpStream::connect(address).await.is_err() {
        sleep(Duration::from_millis(5)).await;
    }
    let bytes: Arc<[u8]> = (0..load.bytes)
        .map(|index| (index ^ (index >> 8) ^ (index >> 16)) as u8)
        .collect();
    let mut streams = Vec::new();
    for _ in 0..load.connections {
        streams.push(TcpStream::connect(address).await?);
    }
    let pid = server.0.id();
    let (cpu_s, start) = (cpu_s(pid)?, Instant::now());
    let transfers: Vec<_> = streams
        .into_iter()
        .map(|stream| tokio::spawn(exchange(stream, bytes.clone())))
        .collect();
    let mut open = Vec::new();
    for transfer in transfers {
        open.push(transfer.await??);
    }
    let figures = Figures {
        duration_s: start.elapsed().as_secs_f64(),
        cpu_s: self::cpu_s(pid)? - cpu_s,
        rss_kib: peak_rss_kib(pid)?,
        counters: reader::read(counters)?,
    };
    // Until now: a thread that has ended is no part of what was asked.
    drop(open);
    Ok(figures)
}

async fn exchange(mut stream: TcpStream, bytes: Arc<[u8]>) -> std::io::Result<TcpStream> {
    let (mut input, mut output) = stream.split();
    let read = async {
        let (mut came, mut rest) = (vec![0; 64 << 10], &bytes[..]);
        while !rest.is_empty() {
            let most = came.len().min(rest.len());
            let length = input.read(&mut came[..most]).await?;
            if length == 0 || came[..length] != rest[..length] {
                return Err(std::io::Error::other("another byte came back, or none"));
            }
            rest = &rest[length..];
        }
        Ok(())
    };
    let (written, read) = tokio::join!(output.write_all(&bytes), read);
    written?;
    read?;
    Ok(stream)
}

/// CPU time of the process, in steps of a clock tick.
fn cpu_s(pid: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').ok_or("no stat")?;
    let ticks: Vec<u64> = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(str::parse)
        .collect::<std::result::Result<_, _>>()?;
    Ok(ticks.iter().sum::<u64>() as f64 / rustix::param::clock_ticks_per_second() as f64)
}

fn peak_rss_kib(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
