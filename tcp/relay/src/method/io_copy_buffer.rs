//! The loop of `tokio::io::copy`, with a buffer that is taken from a pool when there is
//! something to read and given back when it has been written: an idle connection has none.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::{Poll, ready};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

use crate::buffers::Buffers;
use crate::method::{Files, Method};
use crate::relay::Relay;
use crate::tasks::{self, Copy, close};

pub const METHOD: Method = Method {
    name: "io_copy_buffer",
    about: "a loop of read and write_all on tokio, with a pooled buffer",
    files: Files::Sockets,
    run,
};

fn run(relay: &'static Relay) -> io::Result<()> {
    tasks::run(relay, IoCopyBuffer(relay.buffer_bytes))
}

struct IoCopyBuffer(usize);

impl Copy for IoCopyBuffer {
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

async fn flow(
    mut source: ReadHalf<'_>,
    mut destination: WriteHalf<'_>,
    buffer_bytes: usize,
) -> io::Result<()> {
    loop {
        let bytes = read(&mut source, buffer_bytes).await?;
        if bytes.is_empty() {
            return destination.shutdown().await;
        }
        destination.write_all(&bytes).await?;
        give(bytes);
    }
}

/// Waits for something to read without a buffer, and reads with one.
async fn read(source: &mut ReadHalf<'_>, buffer_bytes: usize) -> io::Result<Vec<u8>> {
    poll_fn(|context| {
        ready!(source.as_ref().poll_read_ready(context))?;
        let mut buffer = take(buffer_bytes);
        // Not `try_read`: this one takes note of a read that left room, and the next is
        // not tried in vain.
        let read = pin!(source.read_buf(&mut buffer)).poll(context);
        match read {
            Poll::Ready(Ok(_)) => Poll::Ready(Ok(buffer)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                give(buffer);
                Poll::Pending
            }
        }
    })
    .await
}

thread_local! {
    /// Of the worker: a task that moved to another between take and give moves a buffer.
    static BUFFERS: RefCell<Option<Buffers>> = const { RefCell::new(None) };
}

fn take(buffer_bytes: usize) -> Vec<u8> {
    BUFFERS.with_borrow_mut(|buffers| {
        buffers
            .get_or_insert_with(|| Buffers::new(buffer_bytes))
            .take()
    })
}

fn give(buffer: Vec<u8>) {
    BUFFERS.with_borrow_mut(|buffers| {
        if let Some(buffers) = buffers {
            buffers.give(buffer);
        }
    });
}
