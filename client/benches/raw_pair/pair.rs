//! What an echo costs at the least: the raw server and the raw client.

use crate::load::{Load, Server, median, print_distance, raw_client};
use anyhow::Result;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Args {
    /// All of them have a message in flight.
    #[arg(long, value_delimiter = ',', default_value = "64,10000")]
    connections: Vec<usize>,
    #[arg(long, default_value_t = 500_000)]
    messages: u64,
    #[arg(long, default_value_t = 1024)]
    bytes: usize,
    /// Medians are told.
    #[arg(long, default_value_t = 5)]
    runs: usize,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    print_distance()?;
    println!("connections  messages/s  server us/message  client us/message");
    for &connections in &args.connections {
        let load = Load {
            connections,
            messages: args.messages,
            bytes: args.bytes,
            batch: 1,
        };
        let (mut rates, mut servers, mut clients) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..args.runs.max(1) {
            let server = Server::raw()?;
            let outcome = raw_client(&server, load, false)?;
            let messages = outcome.messages as f64;
            rates.push(messages * 1e9 / outcome.elapsed_ns as f64);
            servers.push(outcome.server_cpu_ns as f64 / 1e3 / messages);
            clients.push(outcome.cpu_ns as f64 / 1e3 / messages);
        }
        println!(
            "{connections:>11}  {:>10.0}  {:>17.2}  {:>17.2}",
            median(rates),
            median(servers),
            median(clients)
        );
    }
    print_distance()?;
    Ok(ExitCode::SUCCESS)
}
