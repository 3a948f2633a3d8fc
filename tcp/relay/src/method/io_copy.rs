//! `tokio::io::copy_bidirectional`, with buffers of the size asked for: the way that
//! tokio's documentation has for a proxy.

use std::io;

use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::TcpStream;

use crate::method::Method;
use crate::relay::Relay;
use crate::tasks::{self, Copy};

pub const METHOD: Method = Method {
    name: "io_copy",
    about: "tokio::io::copy_bidirectional",
    run,
};

fn run(relay: &'static Relay) -> io::Result<()> {
    tasks::run(relay, IoCopy(relay.buffer_bytes))
}

struct IoCopy(usize);

impl Copy for IoCopy {
    async fn copy(&self, client: &mut TcpStream, upstream: &mut TcpStream) -> io::Result<()> {
        copy_bidirectional_with_sizes(client, upstream, self.0, self.0).await?;
        Ok(())
    }
}
