//! A task a connection, on tokio's runtime.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::Poll;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use wsbench_server_kit::{Result, pause_after_accept_error};

use crate::counters::{Slot, add, count_read, subtract};
use crate::options::Options;

/// Serves each connection by the future that `connection` makes of it.
pub fn serve<F>(
    options: &Options,
    listeners: Vec<std::net::TcpListener>,
    connection: impl Fn(TcpStream) -> F + Clone + Send + 'static,
) -> Result<()>
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let runtime = runtime(options)?;
    let _in_runtime = runtime.enter();
    let mut acceptors = Vec::new();
    for listener in listeners {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        acceptors.push(runtime.spawn(accept(listener, connection.clone())));
    }
    runtime.block_on(async {
        for acceptor in acceptors {
            acceptor.await?;
        }
        Ok(())
    })
}

/// On one CPU there is no other thread to steal work from: the current one is enough.
fn runtime(options: &Options) -> io::Result<Runtime> {
    let mut builder = if options.threads == 1 {
        Builder::new_current_thread()
    } else {
        Builder::new_multi_thread()
    };
    builder
        .worker_threads(options.threads)
        // A future of `--buffer` bytes passes over the stack of the thread that spawns it, more than once.
        .thread_stack_size((2 << 20) + 4 * options.buffer)
        .on_thread_start(|| add(Slot::Threads, 1))
        .on_thread_stop(|| subtract(Slot::Threads, 1))
        .enable_all()
        .build()
}

async fn accept<F>(listener: TcpListener, connection: impl Fn(TcpStream) -> F)
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    loop {
        match listener.accept().await {
            // How one connection ended is its own affair, and its peer's.
            Ok((stream, _)) => drop(tokio::spawn(connection(stream))),
            Err(error) => {
                if let Some(pause) = pause_after_accept_error(&error) {
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }
}

/// Echoes through one buffer until the peer has ended.
pub async fn echo_through(stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<()> {
    loop {
        let length = stream.read(buffer).await?;
        if length == 0 {
            return stream.shutdown().await;
        }
        count_read(length);
        stream.write_all(&buffer[..length]).await?;
    }
}

/// Waits for something to read.
///
/// Not `stream.readable()`, which takes no part in tokio's turns: where a task has had its turn, reading
/// finds nothing and `readable` at once says that there is something, for ever.
pub async fn readable(stream: &TcpStream) -> io::Result<()> {
    poll_fn(|context| stream.poll_read_ready(context)).await
}

/// Waits for room to write; of `stream.writable()` the same is true.
pub async fn writable(stream: &TcpStream) -> io::Result<()> {
    poll_fn(|context| stream.poll_write_ready(context)).await
}

/// Reads without waiting: `None` if nothing is there.
///
/// Unlike `try_read` it takes a read that leaves room as the last for now, and so saves the one that fails.
pub async fn read_now(
    stream: &mut TcpStream,
    buffer: &mut ReadBuf<'_>,
) -> io::Result<Option<usize>> {
    let before = buffer.filled().len();
    poll_fn(|context| {
        Poll::Ready(match Pin::new(&mut *stream).poll_read(context, buffer) {
            Poll::Ready(Ok(())) => Ok(Some(buffer.filled().len() - before)),
            Poll::Ready(Err(error)) => Err(error),
            Poll::Pending => Ok(None),
        })
    })
    .await
}

/// Writes without waiting, and says how much the socket took.
pub async fn write_now(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    poll_fn(|context| {
        Poll::Ready(match Pin::new(&mut *stream).poll_write(context, bytes) {
            Poll::Ready(result) => result,
            Poll::Pending => Ok(0),
        })
    })
    .await
}
