//! What the methods on tokio share: its runtime, a task that accepts a port, and a
//! task a connection, which copies until both directions ended.

use std::future::Future;
use std::io;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use wsbench_server_kit::pause_after_accept_error;

use crate::relay::{Relay, reset};

/// How a method copies between two streams of tokio.
pub trait Copy: Send + Sync + 'static {
    /// Copies both ways until both directions ended, passes each end of a stream on as
    /// it comes, and after an error resets both: see [`close`].
    fn copy(&self, client: TcpStream, upstream: TcpStream) -> impl Future<Output = ()> + Send;
}

/// Closes both sides of a connection that has ended, or resets both.
pub fn close<T>(copied: &io::Result<T>, client: TcpStream, upstream: TcpStream) {
    if copied.is_err() {
        reset(client);
        reset(upstream);
    }
}

/// Serves for ever.
pub fn run<C: Copy>(relay: &'static Relay, copy: C) -> io::Result<()> {
    let runtime = runtime(relay.threads)?;
    let _in_runtime = runtime.enter();
    let seats = Arc::new(Semaphore::new(relay.connections));
    let copy = Arc::new(copy);
    let mut acceptors = Vec::new();
    for (port, listener) in relay.listeners.iter().enumerate() {
        let listener = listener.try_clone()?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        acceptors.push(runtime.spawn(accept(relay, port, listener, seats.clone(), copy.clone())));
    }
    runtime.block_on(async {
        for acceptor in acceptors {
            acceptor.await.map_err(io::Error::other)?;
        }
        Ok(())
    })
}

/// On one CPU there is no other thread to steal work from: the current one is enough.
fn runtime(threads: usize) -> io::Result<Runtime> {
    if threads == 1 {
        Builder::new_current_thread().enable_all().build()
    } else {
        Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_all()
            .build()
    }
}

async fn accept<C: Copy>(
    relay: &'static Relay,
    port: usize,
    listener: TcpListener,
    seats: Arc<Semaphore>,
    copy: Arc<C>,
) {
    // It is never closed, so there is a seat in the end.
    while let Ok(seat) = seats.clone().acquire_owned().await {
        let client = loop {
            match listener.accept().await {
                Ok((client, _)) => break client,
                Err(error) => {
                    if let Some(pause) = pause_after_accept_error(&error) {
                        tokio::time::sleep(pause).await;
                    }
                }
            }
        };
        let copy = copy.clone();
        tokio::spawn(async move {
            let _seat = seat;
            match connect(relay, port).await {
                Err(_) => reset(client),
                Ok(upstream) => copy.copy(client, upstream).await,
            }
        });
    }
}

async fn connect(relay: &Relay, port: usize) -> io::Result<TcpStream> {
    let upstream = TcpStream::connect(relay.upstream(port)).await?;
    if relay.nodelay {
        upstream.set_nodelay(true)?;
    }
    Ok(upstream)
}
