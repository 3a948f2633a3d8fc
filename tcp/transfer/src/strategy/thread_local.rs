//! One buffer a worker thread, which no connection may keep while it waits.
//!
//! So what the socket does not take at once is copied aside, into memory of exactly that length that the
//! connection has until it is sent, and is counted.

use std::cell::RefCell;
use std::io;
use std::net::TcpListener;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use wsbench_server_kit::Result;

use super::Strategy;
use crate::counters::{Served, count_read};
use crate::kept::Kept;
use crate::options::Options;
use crate::tasks;

pub const STRATEGY: Strategy = Strategy {
    name: "thread_local",
    about: "a task a connection, one buffer a worker thread; what the socket does not take is copied aside",
    run,
};

fn run(options: &Options, listeners: Vec<TcpListener>) -> Result<()> {
    let bytes = options.buffer;
    tasks::serve(options, listeners, move |stream| echo(stream, bytes))
}

/// What reading and writing once came to.
enum Turn {
    Sent,
    Kept(Kept),
    Ended,
}

async fn echo(mut stream: TcpStream, bytes: usize) -> io::Result<()> {
    let _served = Served::begin();
    loop {
        match std::future::poll_fn(|context| turn(&mut stream, bytes, context)).await? {
            Turn::Sent => {}
            Turn::Kept(rest) => stream.write_all(&rest).await?,
            Turn::Ended => return stream.shutdown().await,
        }
    }
}

/// Reads and writes within one poll: until it returns nobody else is on this thread.
fn turn(stream: &mut TcpStream, bytes: usize, context: &mut Context<'_>) -> Poll<io::Result<Turn>> {
    thread_local! { static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) } }
    BUFFER.with_borrow_mut(|buffer| {
        buffer.resize(bytes, 0);
        let mut buffer = ReadBuf::new(buffer);
        ready!(Pin::new(&mut *stream).poll_read(context, &mut buffer))?;
        let came = buffer.filled();
        if came.is_empty() {
            return Poll::Ready(Ok(Turn::Ended));
        }
        count_read(came.len());
        let taken = match Pin::new(stream).poll_write(context, came) {
            Poll::Ready(taken) => taken?,
            Poll::Pending => 0,
        };
        Poll::Ready(Ok(match &came[taken..] {
            [] => Turn::Sent,
            rest => Turn::Kept(Kept::copy(rest)),
        }))
    })
}
