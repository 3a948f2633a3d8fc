//! tokio's `BufReader` and `BufWriter` around both halves of each stream.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, BufWriter};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

use crate::method::{Files, Method};
use crate::relay::Relay;
use crate::tasks::{self, Copy, close};

pub const METHOD: Method = Method {
    name: "bufio",
    about: "tokio's BufReader and BufWriter",
    files: Files::Sockets,
    run,
};

fn run(relay: &'static Relay) -> io::Result<()> {
    tasks::run(relay, Bufio(relay.buffer_bytes))
}

struct Bufio(usize);

impl Copy for Bufio {
    async fn copy(&self, mut client: TcpStream, mut upstream: TcpStream) {
        let (client_reader, client_writer) = client.split();
        let (upstream_reader, upstream_writer) = upstream.split();
        let copied = tokio::try_join!(
            flow(client_reader, upstream_writer, self.0),
            flow(upstream_reader, client_writer, self.0),
        );
        close(&copied, client, upstream);
    }
}

/// Not `tokio::io::copy_buf`: it flushes at the end only, and a request that is shorter
/// than the buffer would wait there for an answer that never comes.
async fn flow(
    source: ReadHalf<'_>,
    destination: WriteHalf<'_>,
    buffer_bytes: usize,
) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(buffer_bytes, source);
    let mut writer = BufWriter::with_capacity(buffer_bytes, destination);
    loop {
        let bytes = reader.fill_buf().await?;
        if bytes.is_empty() {
            return writer.shutdown().await;
        }
        writer.write_all(bytes).await?;
        let length = bytes.len();
        reader.consume(length);
        if reader.buffer().is_empty() {
            writer.flush().await?;
        }
    }
}
