//! `tokio::io::copy_bidirectional`, with buffers of the size asked for: the way that
//! tokio's documentation has for a proxy.

use std::io;

use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::TcpStream;

use crate::method::{Files, Method};
use crate::relay::Relay;
use crate::tasks::{self, Copy, close};

pub const METHOD: Method = Method {
    name: "io_copy",
    about: "tokio::io::copy_bidirectional",
    files: Files::Sockets,
    run,
};

fn run(relay: &'static Relay) -> io::Result<()> {
    tasks::run(relay, IoCopy(relay.buffer_bytes))
}

struct IoCopy(usize);

impl Copy for IoCopy {
    async fn copy(&self, mut client: TcpStream, mut upstream: TcpStream) {
        let copied =
            copy_bidirectional_with_sizes(&mut client, &mut upstream, self.0, self.0).await;
        close(&copied, client, upstream);
    }
}
