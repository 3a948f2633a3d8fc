//! A buffer is taken from a shared pool when bytes have come and given back when they are written.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use tokio::io::{AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use wsbench_server_kit::Result;

use super::Strategy;
use crate::counters::{Served, count_read};
use crate::kept::Kept;
use crate::options::Options;
use crate::pool::{Lease, PATIENCE, Pool, bound};
use crate::tasks::{self, read_now, readable, writable, write_now};

pub const STRATEGY: Strategy = Strategy {
    name: "pool",
    about: "a task a connection, a buffer from a shared bounded pool while bytes are at hand",
    run,
};

fn run(options: &Options, listeners: Vec<TcpListener>) -> Result<()> {
    let pool = Arc::new(Pool::new(bound(options.threads), options.buffer));
    tasks::serve(options, listeners, move |stream| echo(stream, pool.clone()))
}

async fn echo(mut stream: TcpStream, pool: Arc<Pool>) -> io::Result<()> {
    let _served = Served::begin();
    loop {
        readable(&stream).await?;
        let mut buffer = pool.take().await?;
        let length = match read_now(&mut stream, &mut ReadBuf::new(&mut buffer)).await? {
            None => continue,
            Some(0) => break,
            Some(length) => length,
        };
        count_read(length);
        write(&mut stream, &pool, buffer, length).await?;
    }
    stream.shutdown().await
}

/// Writes the buffer out, or gives it back sooner where a peer takes nothing and others wait.
async fn write(
    stream: &mut TcpStream,
    pool: &Pool,
    buffer: Lease<'_>,
    length: usize,
) -> io::Result<()> {
    let mut sent = 0;
    loop {
        sent += write_now(stream, &buffer[sent..length]).await?;
        if sent == length {
            return Ok(());
        }
        match timeout(PATIENCE, writable(stream)).await {
            Ok(writable) => writable?,
            Err(_) if pool.is_empty() => break,
            Err(_) => {}
        }
    }
    let rest = Kept::copy(&buffer[sent..length]);
    drop(buffer);
    stream.write_all(&rest).await
}
