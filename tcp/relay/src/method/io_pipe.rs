//! Through `tokio::io::duplex`, a pipe in memory: a task copies between the client and
//! one end of it, another between its other end and the upstream.

use std::io;
use std::sync::Arc;

use tokio::io::{DuplexStream, copy_bidirectional_with_sizes, duplex};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::method::{Files, Method};
use crate::relay::{Relay, reset};
use crate::tasks::{self, Copy};

pub const METHOD: Method = Method {
    name: "io_pipe",
    about: "tokio::io::duplex, a pipe in memory between two tasks",
    files: Files::Sockets,
    run,
};

fn run(relay: &'static Relay) -> io::Result<()> {
    tasks::run(relay, IoPipe(relay.buffer_bytes))
}

struct IoPipe(usize);

impl Copy for IoPipe {
    async fn copy(&self, client: TcpStream, upstream: TcpStream) {
        let (near, far) = duplex(self.0);
        let failed = Arc::new(Notify::new());
        let far = tokio::spawn(side(upstream, far, self.0, failed.clone()));
        side(client, near, self.0, failed).await;
        // An error of it only if it panicked: then its socket is closed already.
        let _ = far.await;
    }
}

/// Copies between a socket and its end of the pipe.
async fn side(
    mut stream: TcpStream,
    mut pipe: DuplexStream,
    buffer_bytes: usize,
    failed: Arc<Notify>,
) {
    // The pipe would pass a failure on as an end, so that is asked for first.
    let copied = tokio::select! {
        biased;
        () = failed.notified() => Err(io::ErrorKind::ConnectionReset.into()),
        copied = copy_bidirectional_with_sizes(
            &mut stream, &mut pipe, buffer_bytes, buffer_bytes,
        ) => copied,
    };
    if copied.is_err() {
        failed.notify_one();
        reset(stream);
    }
}
