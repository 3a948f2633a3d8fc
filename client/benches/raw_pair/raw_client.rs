//! Sends a constant message on each connection and counts the bytes of the
//! answer: one write and one read a message, the next idle connection in FIFO order.

use crate::machine::{Ports, own_cpu_ns, pin_to, process_cpu_ns, raise_open_files};
use anyhow::{Context as _, Result, bail, ensure};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::time::Timespec;
use serde::{Deserialize, Serialize};
use socket2::SockRef;
use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

/// How many ready sockets are taken from the kernel at once.
const EVENTS: usize = 128;
/// An answer that takes longer is lost.
const PATIENCE: Timespec = Timespec {
    tv_sec: 10,
    tv_nsec: 0,
};
/// The key is the example of RFC 6455, section 1.3; the answer's hash is not looked at.
pub const UPGRADE: &[u8] = b"GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n\
    Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

#[derive(clap::Args)]
pub struct Args {
    /// FIRST-LAST; connections are spread over them.
    #[arg(long)]
    ports: Ports,
    /// The only CPU to run on.
    #[arg(long)]
    cpu: Option<usize>,
    #[arg(long)]
    connections: usize,
    /// Messages in all, after five a connection that do not count.
    #[arg(long)]
    messages: u64,
    /// Of the message, without WebSocket framing.
    #[arg(long, default_value_t = 1024)]
    bytes: usize,
    /// At most as many as there are connections, which is the default.
    #[arg(long)]
    in_flight: Option<usize>,
    /// Messages written at once; the next follow when all are answered.
    #[arg(long, default_value_t = 1)]
    batch: usize,
    /// The server speaks WebSocket.
    #[arg(long)]
    upgrade: bool,
    /// The server's, to read its CPU time.
    #[arg(long)]
    pid: i32,
}

/// What a run took. Printed as one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
pub struct Outcome {
    pub messages: u64,
    pub elapsed_ns: u64,
    /// Of the client process.
    pub cpu_ns: u64,
    pub server_cpu_ns: u64,
}

pub fn run(args: &Args) -> Result<()> {
    raise_open_files()?;
    pin_to(args.cpu)?;
    let in_flight = args.in_flight.unwrap_or(args.connections);
    ensure!(
        (1..=args.connections).contains(&in_flight),
        "--in-flight {in_flight} is not within 1 and --connections {}",
        args.connections
    );
    let mut client = Client::dial(args)?;
    client.exchange(5 * args.connections as u64, in_flight)?;
    let batches = args.messages / args.batch as u64;
    let server_cpu_ns = process_cpu_ns(args.pid)?;
    let cpu_ns = own_cpu_ns();
    let start = Instant::now();
    client.exchange(batches, in_flight)?;
    let outcome = Outcome {
        messages: batches * args.batch as u64,
        elapsed_ns: start.elapsed().as_nanos() as u64,
        cpu_ns: own_cpu_ns() - cpu_ns,
        server_cpu_ns: process_cpu_ns(args.pid)? - server_cpu_ns,
    };
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(())
}

struct Client {
    epoll: OwnedFd,
    connections: Vec<Connection>,
    message: Vec<u8>,
    answer_bytes: usize,
    /// Connections with nothing in flight, the longest idle first.
    idle: VecDeque<usize>,
    events: Vec<Event>,
    buffer: Vec<u8>,
}

struct Connection {
    socket: TcpStream,
    missing_bytes: usize,
}

impl Client {
    fn dial(args: &Args) -> Result<Self> {
        let (message, answer_bytes) = if args.upgrade {
            let (frame, header_bytes) = masked_frame(args.bytes);
            (frame, args.bytes + header_bytes)
        } else {
            (vec![0xa5; args.bytes], args.bytes)
        };
        let (message, answer_bytes) = (message.repeat(args.batch), answer_bytes * args.batch);
        let mut client = Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            connections: Vec::with_capacity(args.connections),
            message,
            answer_bytes,
            idle: (0..args.connections).collect(),
            events: Vec::with_capacity(EVENTS),
            buffer: vec![0; 64 << 10],
        };
        ensure!(
            answer_bytes < client.buffer.len(),
            "--bytes {} times --batch {} is more than one read takes",
            args.bytes,
            args.batch
        );
        let ports = args
            .ports
            .clone()
            .into_iter()
            .cycle()
            .take(args.connections);
        for (place, port) in ports.enumerate() {
            let socket = connect(port, args.upgrade)
                .with_context(|| format!("connection {place} to port {port}"))?;
            let token = EventData::new_u64(place as u64);
            epoll::add(
                &client.epoll,
                &socket,
                token,
                EventFlags::IN | EventFlags::ET,
            )?;
            client.connections.push(Connection {
                socket,
                missing_bytes: 0,
            });
        }
        Ok(client)
    }

    /// Nothing is in flight before and after.
    fn exchange(&mut self, messages: u64, in_flight: usize) -> Result<()> {
        let mut unsent = messages;
        let mut unanswered = messages;
        for _ in 0..in_flight {
            self.send_next(&mut unsent)?;
        }
        while unanswered > 0 {
            let mut events = std::mem::take(&mut self.events);
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&PATIENCE)) {
                Ok(0) => bail!("{unanswered} messages are not answered"),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error).context("epoll failed"),
            }
            // All reads, then all writes: on 64 connections that costs a tenth less than
            // each write after its read, as the server begins a batch when this one ends.
            let unanswered_before = unanswered;
            for event in &events {
                let place = event.data.u64() as usize;
                if self.receive(place)? {
                    unanswered -= 1;
                    self.idle.push_back(place);
                }
            }
            for _ in unanswered..unanswered_before {
                self.send_next(&mut unsent)?;
            }
            self.events = events;
        }
        Ok(())
    }

    fn send_next(&mut self, unsent: &mut u64) -> Result<()> {
        if *unsent == 0 {
            return Ok(());
        }
        let Some(place) = self.idle.pop_front() else {
            return Ok(());
        };
        *unsent -= 1;
        let connection = &mut self.connections[place];
        connection.missing_bytes = self.answer_bytes;
        let written =
            send(&connection.socket, &self.message, SendFlags::NOSIGNAL).context("cannot send")?;
        ensure!(
            written == self.message.len(),
            "wrote {written} of {} bytes: messages are too large for one write",
            self.message.len()
        );
        Ok(())
    }

    /// True if the answer is complete.
    fn receive(&mut self, place: usize) -> Result<bool> {
        let connection = &mut self.connections[place];
        match recv(&connection.socket, &mut self.buffer, RecvFlags::empty()) {
            Ok((_, 0)) => bail!("the server closed connection {place}"),
            Ok((_, length)) => {
                connection.missing_bytes = connection
                    .missing_bytes
                    .checked_sub(length)
                    .with_context(|| format!("connection {place}: {length} bytes are too many"))?;
                Ok(connection.missing_bytes == 0)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(error) => Err(error).with_context(|| format!("cannot read connection {place}")),
        }
    }
}

fn connect(port: u16, upgrade: bool) -> Result<TcpStream> {
    let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    socket.set_nodelay(true)?;
    // Closed by a reset, so that no connection lingers in TIME_WAIT.
    SockRef::from(&socket).set_linger(Some(Duration::ZERO))?;
    if upgrade {
        socket.write_all(UPGRADE)?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut part = [0; 1024];
            let length = socket.read(&mut part)?;
            ensure!(length > 0, "closed during the upgrade");
            head.extend(&part[..length]);
        }
        let head = String::from_utf8_lossy(&head);
        ensure!(head.starts_with("HTTP/1.1 101 "), "no upgrade: {head}");
    }
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// A whole binary frame, and how long the header of its answer is.
fn masked_frame(payload_bytes: usize) -> (Vec<u8>, usize) {
    let mut frame = vec![0x82];
    match payload_bytes {
        0..=125 => frame.push(0x80 | payload_bytes as u8),
        126..=0xffff => {
            frame.push(0x80 | 126);
            frame.extend((payload_bytes as u16).to_be_bytes());
        }
        _ => {
            frame.push(0x80 | 127);
            frame.extend((payload_bytes as u64).to_be_bytes());
        }
    }
    let header_bytes = frame.len();
    let mask = [0x37, 0xfa, 0x21, 0x3d];
    frame.extend(mask);
    // The payload is 0xa5 all over, as without framing.
    frame.extend(
        mask.iter()
            .cycle()
            .take(payload_bytes)
            .map(|byte| byte ^ 0xa5),
    );
    (frame, header_bytes)
}
