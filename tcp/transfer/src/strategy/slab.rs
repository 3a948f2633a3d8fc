//! A `BytesMut` a connection: each read is split off, written and dropped, and `reserve` takes its place back.

use std::io;
use std::net::TcpListener;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wsbench_server_kit::Result;

use super::Strategy;
use crate::counters::{Served, count_read};
use crate::options::Options;
use crate::tasks;

pub const STRATEGY: Strategy = Strategy {
    name: "slab",
    about: "a task a connection, each read split off a bytes::BytesMut whose memory is used again",
    run,
};

fn run(options: &Options, listeners: Vec<TcpListener>) -> Result<()> {
    let bytes = options.buffer;
    tasks::serve(options, listeners, move |stream| echo(stream, bytes))
}

async fn echo(mut stream: TcpStream, bytes: usize) -> io::Result<()> {
    let _served = Served::begin();
    let mut slab = BytesMut::with_capacity(bytes);
    loop {
        // Free of cost once what was split off is dropped: then all of the memory is its own again.
        slab.reserve(bytes);
        let length = stream.read_buf(&mut slab).await?;
        if length == 0 {
            return stream.shutdown().await;
        }
        count_read(length);
        stream.write_all_buf(&mut slab.split().freeze()).await?;
    }
}
