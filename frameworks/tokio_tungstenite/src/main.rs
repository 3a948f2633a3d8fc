//! Echo server on tokio-tungstenite: a task a connection, on tokio's own runtime.

use std::process::ExitCode;

use futures_util::{FutureExt, SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio_tungstenite::accept_hdr_async_with_config;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use wsbench_server_kit::{Options, Result, pause_after_accept_error, run, subject};

/// What tungstenite's documentation advises for many connections. Its default of
/// 128 KiB is allocated for every one, and zeroed for every read.
const READ_BUFFER_BYTES: usize = 4 << 10;

fn main() -> ExitCode {
    run(subject!("tokio-tungstenite"), serve)
}

fn serve(options: &Options) -> Result<()> {
    let runtime = runtime(options.threads)?;
    let _in_runtime = runtime.enter();
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .max_message_size(Some(options.max_message))
        .max_frame_size(Some(options.max_message));
    let mut acceptors = Vec::new();
    for listener in options.listen()? {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        acceptors.push(runtime.spawn(accept(listener, options.nodelay, config)));
    }
    runtime.block_on(async {
        for acceptor in acceptors {
            acceptor.await?;
        }
        Ok(())
    })
}

/// On one CPU there is no other thread to steal work from: the current one is enough.
fn runtime(threads: usize) -> std::io::Result<Runtime> {
    if threads == 1 {
        Builder::new_current_thread().enable_all().build()
    } else {
        Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_all()
            .build()
    }
}

async fn accept(listener: TcpListener, nodelay: bool, config: WebSocketConfig) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(async move {
                    // How one connection ended is its own affair, and its peer's.
                    let _ = echo(stream, nodelay, config).await;
                });
            }
            Err(error) => {
                if let Some(pause) = pause_after_accept_error(&error) {
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }
}

/// Echoes until the peer has closed. What has already arrived is answered with one write.
async fn echo(stream: TcpStream, nodelay: bool, config: WebSocketConfig) -> Result<(), Error> {
    stream.set_nodelay(nodelay)?;
    let mut socket = accept_hdr_async_with_config(stream, only_ws, Some(config)).await?;
    while let Some(message) = socket.next().await {
        let mut arrived = Some(message?);
        while let Some(message) = arrived {
            // Pings and the close handshake are answered by tungstenite while it reads.
            if matches!(message, Message::Text(_) | Message::Binary(_)) {
                socket.feed(message).await?;
            }
            // An error is not lost: what came before it is sent first, then the stream has ended.
            arrived = socket.next().now_or_never().flatten().and_then(Result::ok);
        }
        socket.flush().await?;
    }
    Ok(())
}

// The callback's type is tungstenite's, and it has its error by value.
#[allow(clippy::result_large_err)]
fn only_ws(request: &Request, response: Response) -> Result<Response, ErrorResponse> {
    if request.uri().path() == "/ws" {
        return Ok(response);
    }
    let mut refusal = ErrorResponse::new(None);
    *refusal.status_mut() = StatusCode::NOT_FOUND;
    Err(refusal)
}
