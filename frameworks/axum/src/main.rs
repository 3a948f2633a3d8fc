//! Echo server on axum: `axum::serve` on each port, one route, one task a connection.

use std::process::ExitCode;

use axum::Router;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::routing::any;
use axum::serve::ListenerExt;
use futures_util::{FutureExt, SinkExt, StreamExt};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use wsbench_server_kit::{Options, Result, run, subject};

/// What tungstenite's documentation advises for many connections. Its default of
/// 128 KiB is allocated for every one, and zeroed for every read.
const READ_BUFFER_BYTES: usize = 4 << 10;

fn main() -> ExitCode {
    run(subject!("axum"), serve)
}

fn serve(options: &Options) -> Result<()> {
    let runtime = runtime(options.threads)?;
    let _in_runtime = runtime.enter();
    let mut servers = Vec::new();
    for listener in options.listen()? {
        listener.set_nonblocking(true)?;
        let nodelay = options.nodelay;
        let listener = TcpListener::from_std(listener)?.tap_io(move |stream| {
            // It fails only on a connection that is gone already.
            let _ = stream.set_nodelay(nodelay);
        });
        servers
            .push(runtime.spawn(axum::serve(listener, router(options.max_message)).into_future()));
    }
    runtime.block_on(async {
        for server in servers {
            server.await??;
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

fn router(max_message: usize) -> Router {
    let upgrade = async move |upgrade: WebSocketUpgrade| {
        upgrade
            .read_buffer_size(READ_BUFFER_BYTES)
            .max_message_size(max_message)
            .max_frame_size(max_message)
            .on_upgrade(echo)
    };
    Router::new().route("/ws", any(upgrade))
}

/// Echoes until the peer has closed. What has already arrived is answered with one write.
async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.next().await {
        let mut arrived = Some(message);
        while let Some(message) = arrived {
            // Pings and the close handshake are answered by axum while it reads.
            let answer = matches!(message, Message::Text(_) | Message::Binary(_));
            if answer && socket.feed(message).await.is_err() {
                return;
            }
            // An error is not lost: what came before it is sent first, then the stream has ended.
            arrived = socket.next().now_or_never().flatten().and_then(Result::ok);
        }
        if socket.flush().await.is_err() {
            return;
        }
    }
}
