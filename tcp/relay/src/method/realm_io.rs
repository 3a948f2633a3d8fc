//! The crate realm_io: splice through a pipe a direction, on tokio, as the proxy realm
//! relays TCP.

use std::io;

use realm_io::bidi_zero_copy;
use tokio::net::TcpStream;

use crate::method::{Files, Method};
use crate::relay::Relay;
use crate::tasks::{self, Copy, close};

pub const METHOD: Method = Method {
    name: "realm_io",
    about: "realm_io::bidi_zero_copy",
    // It opens both pipes at once and keeps them as long as the connection.
    files: Files::SocketsAndPipes,
    run,
};

fn run(relay: &'static Relay) -> io::Result<()> {
    tasks::run(relay, RealmIo)
}

struct RealmIo;

impl Copy for RealmIo {
    async fn copy(&self, mut client: TcpStream, mut upstream: TcpStream) {
        let copied = bidi_zero_copy(&mut client, &mut upstream).await;
        close(&copied, client, upstream);
    }
}
