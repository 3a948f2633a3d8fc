//! The buffer is allocated with the connection and freed with it.

use std::io;
use std::net::TcpListener;

use tokio::net::TcpStream;
use wsbench_server_kit::Result;

use super::Strategy;
use crate::counters::Served;
use crate::options::Options;
use crate::tasks;

pub const STRATEGY: Strategy = Strategy {
    name: "heap",
    about: "a task a connection, a buffer allocated for its life",
    run,
};

fn run(options: &Options, listeners: Vec<TcpListener>) -> Result<()> {
    let bytes = options.buffer;
    tasks::serve(options, listeners, move |stream| echo(stream, bytes))
}

async fn echo(mut stream: TcpStream, bytes: usize) -> io::Result<()> {
    let _served = Served::begin();
    let mut buffer = vec![0; bytes];
    tasks::echo_through(&mut stream, &mut buffer).await
}
