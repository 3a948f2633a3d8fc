//! The crate tokio-splice: splice through a pipe a direction, on tokio.

use std::io;

use tokio::net::TcpStream;
use tokio_splice::zero_copy_bidirectional;

use crate::method::{Files, Method};
use crate::relay::Relay;
use crate::tasks::{self, Copy, close};

pub const METHOD: Method = Method {
    name: "tokio_splice",
    about: "tokio_splice::zero_copy_bidirectional",
    // It opens both pipes at once and keeps them as long as the connection.
    files: Files::SocketsAndPipes,
    run,
};

fn run(relay: &'static Relay) -> io::Result<()> {
    tasks::run(relay, TokioSplice)
}

struct TokioSplice;

impl Copy for TokioSplice {
    async fn copy(&self, mut client: TcpStream, mut upstream: TcpStream) {
        let copied = zero_copy_bidirectional(&mut client, &mut upstream).await;
        close(&copied, client, upstream);
    }
}
