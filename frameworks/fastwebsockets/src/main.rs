//! Echo server on fastwebsockets, upgraded by hyper: a task a connection, on tokio's own runtime.

mod message;

use std::convert::Infallible;
use std::future::ready;
use std::process::ExitCode;

use fastwebsockets::upgrade::{UpgradeFut, is_upgrade_request, upgrade};
use fastwebsockets::{Frame, OpCode, WebSocketError};
use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use wsbench_server_kit::{Options, Result, pause_after_accept_error, run, subject};

use crate::message::Fragments;

fn main() -> ExitCode {
    run(subject!("fastwebsockets"), serve)
}

fn serve(options: &Options) -> Result<()> {
    let runtime = runtime(options.threads)?;
    let _in_runtime = runtime.enter();
    let mut acceptors = Vec::new();
    for listener in options.listen()? {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        acceptors.push(runtime.spawn(accept(listener, options.nodelay, options.max_message)));
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

async fn accept(listener: TcpListener, nodelay: bool, max_message: usize) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(async move {
                    // How one connection ended is its own affair, and its peer's.
                    let _ = upgrade_at_ws(stream, nodelay, max_message).await;
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

async fn upgrade_at_ws(stream: TcpStream, nodelay: bool, max_message: usize) -> Result<()> {
    stream.set_nodelay(nodelay)?;
    let answer =
        service_fn(move |request| ready(Ok::<_, Infallible>(answer(request, max_message))));
    http1::Builder::new()
        .serve_connection(TokioIo::new(stream), answer)
        .with_upgrades()
        .await?;
    Ok(())
}

fn answer(mut request: Request<Incoming>, max_message: usize) -> Response<Empty<Bytes>> {
    let status = if request.uri().path() != "/ws" {
        StatusCode::NOT_FOUND
    } else if request.method() != Method::GET {
        StatusCode::METHOD_NOT_ALLOWED
    } else if request.version() != Version::HTTP_11 {
        StatusCode::HTTP_VERSION_NOT_SUPPORTED
    } else if !is_upgrade_request(&request) {
        StatusCode::UPGRADE_REQUIRED
    } else if let Ok((response, upgraded)) = upgrade(&mut request) {
        tokio::spawn(async move {
            // It ends with an error whenever a peer leaves without a close frame.
            let _ = echo(upgraded, max_message).await;
        });
        return response;
    } else {
        StatusCode::BAD_REQUEST
    };
    let mut refusal = Response::new(Empty::new());
    *refusal.status_mut() = status;
    refusal
}

/// Echoes until the peer has closed, one write a message: there is no other way here.
async fn echo(upgraded: UpgradeFut, max_message: usize) -> Result<(), WebSocketError> {
    let mut socket = upgraded.await?;
    // It refuses what is as long as this.
    socket.set_max_message_size(max_message.saturating_add(1));
    let mut fragments = Fragments::new(max_message);
    loop {
        // Pings and the close handshake are answered by fastwebsockets while it reads.
        let frame = socket.read_frame().await?;
        match frame.opcode {
            OpCode::Close => return Ok(()),
            OpCode::Ping | OpCode::Pong => {}
            OpCode::Text | OpCode::Binary | OpCode::Continuation => {
                if let Some((opcode, payload)) = fragments.collect(frame)? {
                    socket
                        .write_frame(Frame::new(true, opcode, None, payload))
                        .await?;
                }
            }
        }
    }
}
