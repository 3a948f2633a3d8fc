//! One thread that answers on all control addresses. A client that stalls
//! costs a connection for a few seconds and keeps nobody waiting.

use super::api::{self, Served};
use anyhow::Context as _;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// For the head of a request.
const HEAD_MOST: Duration = Duration::from_secs(5);
/// For a whole connection, which carries one request.
const CONNECTION_MOST: Duration = Duration::from_secs(20);
const CONNECTIONS_MOST: usize = 256;
const HEAD_MOST_BYTES: usize = 16 << 10;

/// Answers from now on, until this process ends, on a thread that uses the CPUs of this one.
pub fn answer(listeners: Vec<(TcpListener, Arc<Served>)>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .context("cannot start the control API")?;
    let mut ready = Vec::new();
    for (listener, served) in listeners {
        listener
            .set_nonblocking(true)
            .context("cannot make the control socket non-blocking")?;
        let guard = runtime.enter();
        let listener =
            tokio::net::TcpListener::from_std(listener).context("cannot use the control socket")?;
        drop(guard);
        ready.push((listener, served));
    }
    thread::Builder::new()
        .name("control".into())
        .spawn(move || {
            runtime.block_on(async {
                for (listener, served) in ready {
                    tokio::spawn(accept(listener, served));
                }
                std::future::pending::<()>().await;
            });
        })
        .context("cannot start a thread")?;
    Ok(())
}

async fn accept(listener: tokio::net::TcpListener, served: Arc<Served>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MOST));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let served = Arc::clone(&served);
                tokio::spawn(async move {
                    // Whoever takes longer is cut off; there is nobody to tell.
                    let _ = timeout(CONNECTION_MOST, connection(stream, served)).await;
                    drop(place);
                });
            }
            // Out of file descriptors, or the peer has gone already: not for ever.
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Answers the request that comes on the stream.
pub async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    served: Arc<Served>,
) {
    let service = TowerToHyperService::new(api::router(served));
    // A client that breaks off is its own affair.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_MOST)
        .max_buf_size(HEAD_MOST_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
