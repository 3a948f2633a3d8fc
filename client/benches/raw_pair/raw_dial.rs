//! Dials as barely as can be: a `connect` and constant bytes as the handshake, whose
//! answer is taken for right by its first and last bytes.

use crate::machine::{Ports, own_cpu_ns, process_cpu_ns, raise_open_files};
use crate::raw_client::{Outcome, UPGRADE};
use anyhow::{Context as _, Result, bail, ensure};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};
use rustix::time::Timespec;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

const EVENTS: usize = 128;
/// A dial that takes longer has failed.
const PATIENCE: Timespec = Timespec {
    tv_sec: 10,
    tv_nsec: 0,
};

#[derive(clap::Args)]
pub struct Args {
    /// FIRST-LAST; connections are spread over them.
    #[arg(long)]
    ports: Ports,
    #[arg(long)]
    connections: usize,
    /// Dials in flight.
    #[arg(long)]
    in_flight: usize,
    /// The server's, to read its CPU time.
    #[arg(long)]
    pid: i32,
}

pub fn run(args: &Args) -> Result<()> {
    raise_open_files()?;
    let ports: Vec<u16> = args.ports.clone().into_iter().collect();
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut sockets: Vec<OwnedFd> = Vec::with_capacity(args.connections);
    let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
    let mut buffer = vec![0; 4096];
    let mut open = 0;
    let server_cpu_ns = process_cpu_ns(args.pid)?;
    let (start, cpu_ns) = (Instant::now(), own_cpu_ns());
    while open < args.connections {
        while sockets.len() < args.connections && sockets.len() - open < args.in_flight {
            let port = ports[sockets.len() % ports.len()];
            sockets.push(dial(port, &epoll, sockets.len())?);
        }
        events.clear();
        match epoll::wait(&epoll, spare_capacity(&mut events), Some(&PATIENCE)) {
            Ok(0) => bail!("{} dials are not answered", sockets.len() - open),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("epoll failed"),
        }
        for event in &events {
            let flags = event.flags;
            let socket = &sockets[event.data.u64() as usize];
            if flags.contains(EventFlags::IN) {
                let (_, length) = recv(socket, &mut buffer, RecvFlags::empty())?;
                let answer = &buffer[..length];
                ensure!(
                    answer.starts_with(b"HTTP/1.1 101 ") && answer.ends_with(b"\r\n\r\n"),
                    "no upgrade: {}",
                    String::from_utf8_lossy(answer)
                );
                open += 1;
            } else {
                let written = send(socket, UPGRADE, SendFlags::NOSIGNAL)?;
                ensure!(written == UPGRADE.len(), "wrote {written} bytes only");
            }
        }
    }
    let outcome = Outcome {
        messages: open as u64,
        elapsed_ns: start.elapsed().as_nanos() as u64,
        cpu_ns: own_cpu_ns() - cpu_ns,
        server_cpu_ns: process_cpu_ns(args.pid)? - server_cpu_ns,
    };
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(())
}

fn dial(port: u16, epoll: &OwnedFd, place: usize) -> Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    // Closed by a reset, so that no connection lingers in TIME_WAIT.
    set_socket_linger(&socket, Some(Duration::ZERO))?;
    match connect(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error).with_context(|| format!("cannot connect to port {port}")),
    }
    let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
    epoll::add(epoll, &socket, EventData::new_u64(place as u64), flags)?;
    Ok(socket)
}
