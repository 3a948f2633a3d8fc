//! What a bulk transfer costs the client, beside blocking loops that only write and
//! read. Both have the same origin, whose CPU time is told too, and take turns.

use crate::load::{CLIENT_CPU, Programs, Server, median, print_distance};
use crate::machine::{on_cpus, own_cpu_ns, process_cpu_ns};
use crate::process::{Process, figure};
use anyhow::{Context as _, Result, anyhow};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Instant;
use wsbench_client::protocol::stream::opening::Opening;
use wsbench_client::protocol::stream::pieces::{GO, LAST_WORD};
use wsbench_client::protocol::stream::ring::Ring;
use wsbench_schema::{BulkLoad, DialLoad, Direction, Load, MessageKind, Phase, Transport, metric};

const READ_BYTES: usize = 64 << 10;
const GIB: f64 = (1_u64 << 30) as f64;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    programs: Programs,
    #[arg(long, default_value_t = 8)]
    connections: u32,
    /// Bytes of each.
    #[arg(long, default_value_t = 128 << 20)]
    bytes: u64,
    /// Bytes that are written at once.
    #[arg(long, default_value_t = 64 << 10)]
    piece: u32,
    /// Turns of each client.
    #[arg(long, default_value_t = 5)]
    pairs: usize,
}

/// What one turn took, for a GiB in one direction.
struct Turn {
    client_ms: f64,
    origin_ms: f64,
    gib_per_s: f64,
}

pub fn run(args: &Args) -> Result<()> {
    print_distance()?;
    let Args {
        connections,
        bytes,
        piece,
        pairs,
        ..
    } = *args;
    println!(
        "{connections} connections of {bytes} bytes, written by {piece}; medians of {pairs} turns:"
    );
    println!("                      raw loops  wsbench client  ratio");
    for direction in [Direction::Both, Direction::Up, Direction::Down] {
        let (mut raw, mut wsbench) = (Vec::new(), Vec::new());
        for pair in 0..pairs.max(1) {
            let server = origin(args)?;
            if pair % 2 == 0 {
                raw.push(raw_turn(args, direction, &server)?);
                wsbench.push(wsbench_turn(args, direction, &server)?);
            } else {
                wsbench.push(wsbench_turn(args, direction, &server)?);
                raw.push(raw_turn(args, direction, &server)?);
            }
        }
        let of =
            |turns: &[Turn], figure: fn(&Turn) -> f64| median(turns.iter().map(figure).collect());
        let print = |name: &str, figure: fn(&Turn) -> f64| {
            let (raw, wsbench) = (of(&raw, figure), of(&wsbench, figure));
            let ratio = wsbench / raw;
            let name = format!("{direction:?} {name}").to_lowercase();
            println!("{name:<20}  {raw:>9.2}  {wsbench:>14.2}  {ratio:>5.3}");
        };
        print("client ms/GiB", |turn| turn.client_ms);
        print("origin ms/GiB", |turn| turn.origin_ms);
        print("GiB/s", |turn| turn.gib_per_s);
    }
    Ok(())
}

fn origin(args: &Args) -> Result<Server> {
    let mut command = Command::new(&args.programs.client);
    command.args(["origin", "--host", "127.0.0.1"]);
    Server::start(command)
}

fn turn(args: &Args, server: &Server, client: impl FnOnce() -> Result<(f64, f64)>) -> Result<Turn> {
    let pid = server.pid().parse()?;
    let before = process_cpu_ns(pid)?;
    let (cpu_ns, elapsed_ns) = client()?;
    let origin_ns = (process_cpu_ns(pid)? - before) as f64;
    let gib = u64::from(args.connections) as f64 * args.bytes as f64 / GIB;
    Ok(Turn {
        client_ms: cpu_ns / 1e6 / gib,
        origin_ms: origin_ns / 1e6 / gib,
        gib_per_s: gib * 1e9 / elapsed_ns,
    })
}

fn wsbench_turn(args: &Args, direction: Direction, server: &Server) -> Result<Turn> {
    let bulk = BulkLoad {
        bytes_per_connection: args.bytes,
        direction,
        window_bytes: 0,
        slow_readers_percent: 0,
        slow_bytes_per_s: 0,
        duration_ms: None,
        timeout_ms: 10_000,
    };
    let load = Load {
        connections: args.connections,
        after_connections: 0,
        transport: Transport::Stream,
        payload_bytes: args.piece,
        message: MessageKind::Binary,
        check: true,
        dial: DialLoad::default(),
        echo: None,
        rate: None,
        bulk: Some(bulk),
        release: None,
        client_burn_ns: 0,
    };
    let mut process = Process::start(&args.programs.client, &[CLIENT_CPU], server, load)?;
    process.run(Phase::Connect)?;
    turn(args, server, || {
        let report = process.run(Phase::Bulk)?;
        let elapsed_ns = figure(&report, metric::ELAPSED)?;
        Ok((figure(&report, metric::CLIENT_CPU)?, elapsed_ns))
    })
}

fn raw_turn(args: &Args, direction: Direction, server: &Server) -> Result<Turn> {
    let ring = Ring::new(args.piece);
    let ports = server.port_range();
    let streams: Result<Vec<TcpStream>> = (0..args.connections)
        .zip(ports.cycle())
        .map(|(_, port)| open(args, direction, port))
        .collect();
    let streams = streams?;
    turn(args, server, || {
        let (cpu, began) = (own_cpu_ns(), Instant::now());
        on_cpus(&[CLIENT_CPU], || {
            thread::scope(|scope| {
                let transfers: Vec<_> = streams
                    .iter()
                    .map(|stream| scope.spawn(|| transfer(args, direction, stream, &ring)))
                    .collect();
                for transfer in transfers {
                    let result = transfer.join();
                    result.map_err(|_| anyhow!("a transfer panicked"))??;
                }
                Ok(())
            })
        })?;
        let elapsed_ns = began.elapsed().as_nanos() as f64;
        Ok(((own_cpu_ns() - cpu) as f64, elapsed_ns))
    })
}

fn open(args: &Args, direction: Direction, port: u16) -> Result<TcpStream> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_nodelay(true)?;
    let opening = Opening {
        mode: direction.into(),
        piece_bytes: args.piece,
        pieces: (args.bytes / u64::from(args.piece)).try_into()?,
        first: 0,
    };
    stream.write_all(&opening.to_bytes(1))?;
    stream.read_exact(&mut [0; Opening::BYTES])?;
    Ok(stream)
}

fn transfer(args: &Args, direction: Direction, mut stream: &TcpStream, ring: &Ring) -> Result<()> {
    let pieces = (args.bytes / u64::from(args.piece)) as u32;
    let write = |mut stream: &TcpStream| -> Result<()> {
        let pieces = (0..pieces).map(|piece| ring.piece(piece % Ring::BYTES));
        pieces
            .into_iter()
            .try_for_each(|piece| stream.write_all(piece))?;
        Ok(())
    };
    match direction {
        Direction::Both => thread::scope(|scope| {
            let writing = scope.spawn(|| write(stream));
            read(stream, args.bytes)?;
            writing.join().map_err(|_| anyhow!("a writer panicked"))?
        }),
        Direction::Up => {
            write(stream)?;
            stream.read_exact(&mut [0; 8])?;
            stream.write_all(&LAST_WORD)?;
            Ok(())
        }
        Direction::Down => {
            stream.write_all(&GO)?;
            read(stream, args.bytes)
        }
    }?;
    // As in a transfer of the engine, the other end says FIN first where it can.
    stream
        .shutdown(Shutdown::Write)
        .context("cannot end a transfer")
}

fn read(mut stream: &TcpStream, bytes: u64) -> Result<()> {
    let (mut buffer, mut left) = (vec![0; READ_BYTES], bytes);
    while left > 0 {
        match stream.read(&mut buffer)? as u64 {
            0 => return Err(anyhow!("{left} bytes did not come")),
            read => left = left.saturating_sub(read),
        }
    }
    Ok(())
}
