//! Reads whatever comes and writes the same bytes back: one read and one write
//! a message. Runs until it is killed.

use crate::machine::{Ports, pin_to, raise_open_files};
use anyhow::{Context as _, Result, ensure};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, recv, send};
use std::net::{Ipv4Addr, SocketAddr};

/// How many ready sockets are taken from the kernel at once.
const EVENTS: usize = 128;

#[derive(clap::Args)]
pub struct Args {
    /// FIRST-LAST.
    #[arg(long)]
    ports: Ports,
    /// The only CPU to run on.
    #[arg(long)]
    cpu: Option<usize>,
}

pub fn run(args: &Args) -> Result<()> {
    raise_open_files()?;
    pin_to(args.cpu)?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut listeners = Vec::new();
    for port in args.ports.clone() {
        let listener = listen(port).with_context(|| format!("cannot listen on port {port}"))?;
        let token = EventData::new_u64(listeners.len() as u64);
        epoll::add(&epoll, &listener, token, EventFlags::IN)?;
        listeners.push(listener);
    }
    // The token of a connection is its place here, after the listeners.
    let mut connections: Vec<Option<OwnedFd>> = Vec::new();
    let mut free = Vec::new();
    let mut events = Vec::with_capacity(EVENTS);
    let mut buffer = vec![0; 64 << 10];
    loop {
        events.clear();
        match epoll::wait(&epoll, spare_capacity(&mut events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("epoll failed"),
        }
        for event in &events {
            let token = event.data.u64() as usize;
            let Some(place) = token.checked_sub(listeners.len()) else {
                let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
                let connection = accept_with(&listeners[token], flags).context("cannot accept")?;
                let place = free.pop().unwrap_or_else(|| {
                    connections.push(None);
                    connections.len() - 1
                });
                let token = EventData::new_u64((listeners.len() + place) as u64);
                epoll::add(&epoll, &connection, token, EventFlags::IN | EventFlags::ET)?;
                connections[place] = Some(connection);
                continue;
            };
            let Some(connection) = &connections[place] else {
                continue;
            };
            // Shorter than the buffer means that no more is there, so one read is enough
            // even though the kernel tells of new bytes only once.
            match recv(connection, &mut buffer, RecvFlags::empty()) {
                Ok((_, 0)) | Err(Errno::CONNRESET) => {
                    connections[place] = None;
                    free.push(place);
                }
                Ok((_, length)) => {
                    ensure!(
                        length < buffer.len(),
                        "messages of this size need another read"
                    );
                    let written = send(connection, &buffer[..length], SendFlags::NOSIGNAL);
                    ensure!(
                        written == Ok(length),
                        "wrote {written:?} of {length} bytes: messages are too large for one write"
                    );
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error).context("cannot read"),
            }
        }
    }
}

fn listen(port: u16) -> Result<socket2::Socket> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    // Inherited by accepted connections.
    socket.set_tcp_nodelay(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())?;
    socket.listen(4096)?;
    Ok(socket)
}
