//! A buffer is allocated for each read and freed when it is written: none while nothing comes.

use std::io;
use std::net::TcpListener;

use tokio::io::{AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use wsbench_server_kit::Result;

use super::Strategy;
use crate::counters::{Served, count_read};
use crate::options::Options;
use crate::tasks::{self, read_now, readable};

pub const STRATEGY: Strategy = Strategy {
    name: "per_read",
    about: "a task a connection, a fresh buffer a read",
    run,
};

fn run(options: &Options, listeners: Vec<TcpListener>) -> Result<()> {
    let bytes = options.buffer;
    tasks::serve(options, listeners, move |stream| echo(stream, bytes))
}

async fn echo(mut stream: TcpStream, bytes: usize) -> io::Result<()> {
    let _served = Served::begin();
    loop {
        readable(&stream).await?;
        // Not zeroed: a read fills it.
        let mut memory = Box::new_uninit_slice(bytes);
        let mut buffer = ReadBuf::uninit(&mut memory);
        match read_now(&mut stream, &mut buffer).await? {
            None => {}
            Some(0) => return stream.shutdown().await,
            Some(length) => {
                count_read(length);
                stream.write_all(buffer.filled()).await?;
            }
        }
    }
}
