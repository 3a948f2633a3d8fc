//! Echo server on blocking tungstenite: a thread a connection.

use std::net::TcpStream;
use std::process::ExitCode;
use std::thread::{self, JoinHandle};

use tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tungstenite::http::StatusCode;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, Message, accept_hdr_with_config};
use wsbench_server_kit::{Options, Result, accept_forever, complain, run, subject};

/// What tungstenite's documentation advises for many connections. Its default of
/// 128 KiB is allocated for every one, and zeroed for every read.
const READ_BUFFER_BYTES: usize = 4 << 10;
/// The handshake goes deepest, and needs a fraction of it. Untouched pages cost nothing,
/// but ten thousand default stacks of 2 MiB are 20 GiB of addresses.
const STACK_BYTES: usize = 64 << 10;

fn main() -> ExitCode {
    run(subject!("tungstenite"), serve)
}

fn serve(options: &Options) -> Result<()> {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .max_message_size(Some(options.max_message))
        .max_frame_size(Some(options.max_message));
    let nodelay = options.nodelay;
    let mut acceptors: Vec<JoinHandle<()>> = Vec::new();
    for listener in options.listen()? {
        acceptors.push(thread::Builder::new().spawn(move || {
            accept_forever(&listener, |stream, _| {
                let connection = move || {
                    // How one connection ended is its own affair, and its peer's.
                    let _ = echo(stream, nodelay, config);
                };
                let builder = thread::Builder::new().stack_size(STACK_BYTES);
                if let Err(error) = builder.spawn(connection) {
                    complain(format_args!(
                        "cannot start a thread: {error} (connection closed; limits: ulimit -u, \
                         kernel.threads-max, kernel.pid_max, vm.max_map_count)"
                    ));
                }
            })
        })?);
    }
    for acceptor in acceptors {
        acceptor
            .join()
            .map_err(|_| "an accepting thread has panicked")?;
    }
    Ok(())
}

/// Echoes until the peer has closed.
fn echo(stream: TcpStream, nodelay: bool, config: WebSocketConfig) -> Result<(), Error> {
    stream.set_nodelay(nodelay)?;
    let Ok(mut socket) = accept_hdr_with_config(stream, only_ws, Some(config)) else {
        return Ok(());
    };
    loop {
        // Pings and the close handshake are answered by tungstenite while it reads.
        let message = socket.read()?;
        if matches!(message, Message::Text(_) | Message::Binary(_)) {
            socket.send(message)?;
        }
    }
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
