//! The examiner's own end behind a relay: ports that behave in different ways. A
//! connection accepted on the relay's i-th port comes out at the i-th of these.

use super::flow::{Patience, poll_for};
use super::scene::reset;
use crate::ports;
use crate::verify::case::{Outcome, Wrong};
use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use wsbench_schema::PortRange;

/// How a port of the upstream behaves; its place among the ports is the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// As it should.
    Plain = 0,
    /// Nobody listens.
    Refused = 1,
    /// Takes no connection between [`Upstream::hold_back`] and [`Upstream::relent`].
    Slow = 2,
    /// With small buffers and segments, so that little is under way when it does not
    /// read: a relay is then full by what it holds itself.
    Narrow = 3,
}

impl Role {
    pub const ALL: [Self; 4] = [Self::Plain, Self::Refused, Self::Slow, Self::Narrow];

    pub fn index(self) -> usize {
        self as usize
    }
}

/// Connections that wait to be accepted, at most.
const BACKLOG: i32 = 4096;
/// Of who reads. The kernel doubles it.
pub const NARROW_BUFFER_BYTES: usize = 32 << 10;
/// Of who writes: no more than any system allows, and not less. The kernel of a relay that
/// does not read answers the last segments of a full buffer after 40 ms, so that a short
/// one fills the window of the relay's socket in many such steps.
pub const NARROW_SEND_BYTES: usize = 192 << 10;
/// As on Ethernet; the loopback's are 64 KiB, of which the kernel keeps room for many.
pub const NARROW_SEGMENT_BYTES: u32 = 1448;
/// For a connection that was given up.
const FORGET_MOST: Duration = Duration::from_millis(500);
/// A free range may be taken before it is bound.
const ATTEMPTS: usize = 8;

/// All of them.
pub struct Upstream {
    ports: PortRange,
    plain: TcpListener,
    /// Bound, and not listening: nobody else can have the port.
    _refused: Socket,
    slow: TcpListener,
    /// They fill the queue of [`Role::Slow`], so that the kernel answers nobody else.
    fillers: Mutex<Vec<TcpStream>>,
    narrow: TcpListener,
    /// Connections that were opened and have not come yet, by role.
    expected: [AtomicUsize; Role::ALL.len()],
}

impl Upstream {
    /// On free ports of that host.
    ///
    /// # Errors
    /// If the host is not this one, or sockets cannot be had.
    pub fn bind(host: &str) -> anyhow::Result<Self> {
        let mut attempt = 1;
        loop {
            match Self::bind_once(host) {
                Err(error) if attempt == ATTEMPTS => {
                    return Err(error.context("ports for the examiner's own end"));
                }
                Err(_) => attempt += 1,
                bound => return bound,
            }
        }
    }

    fn bind_once(host: &str) -> anyhow::Result<Self> {
        let address = ports::resolve(host)?;
        let count = u16::try_from(Role::ALL.len()).context("ports")?;
        let ports = ports::free_ports(count, host)?;
        let at = |role: Role| {
            let port = ports.iter().nth(role.index()).context("too few ports")?;
            bound(address, port)
        };
        let plain = listening(at(Role::Plain)?, BACKLOG)?;
        let slow = listening(at(Role::Slow)?, 0)?;
        let narrow = at(Role::Narrow)?;
        narrow.set_recv_buffer_size(NARROW_BUFFER_BYTES)?;
        narrow.set_send_buffer_size(NARROW_SEND_BYTES)?;
        narrow.set_tcp_mss(NARROW_SEGMENT_BYTES)?;
        let upstream = Self {
            ports,
            plain,
            _refused: at(Role::Refused)?,
            slow,
            fillers: Mutex::default(),
            narrow: listening(narrow, BACKLOG)?,
            expected: Default::default(),
        };
        Ok(upstream)
    }

    /// For `--upstream`. The relay is to have as many ports.
    pub fn ports(&self) -> PortRange {
        self.ports
    }

    /// Whoever waits at [`Role::Slow`] is answered from now on.
    pub fn relent(&self) {
        // What filled the queue is taken out of it, and closed.
        for filler in self.lock().drain(..) {
            let _ = reset(&filler);
            let _ = self.slow.accept();
        }
    }

    /// Fills the queue of [`Role::Slow`], so that the kernel leaves all others unanswered.
    ///
    /// # Errors
    /// If a socket cannot be had.
    pub fn hold_back(&self) -> anyhow::Result<()> {
        // Of an earlier asking.
        self.relent();
        while self.slow.accept().is_ok() {}
        let address = SockAddr::from(self.slow.local_addr()?);
        let mut fillers = self.lock();
        // A backlog of 0 takes one.
        let filler = Socket::new(address.domain(), Type::STREAM, Some(Protocol::TCP))?;
        filler.connect(&address).context("cannot fill a backlog")?;
        fillers.push(filler.into());
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<TcpStream>> {
        self.fillers
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// That a connection was opened which is to come out here.
    pub fn expect(&self, role: Role) {
        self.expected[role.index()].fetch_add(1, Ordering::Relaxed);
    }

    /// Takes what comes late of cases that did not wait for it, so that nobody
    /// takes it for a new one.
    pub fn forget(&self, role: Role, patience: Patience) -> Outcome {
        let silence = patience.silence.min(FORGET_MOST);
        while self.expected[role.index()].load(Ordering::Relaxed) > 0 {
            let patience = Patience {
                silence,
                ..patience
            };
            if self.accept(role, patience).is_err() {
                self.expected[role.index()].store(0, Ordering::Relaxed);
            }
        }
        while self.accepted(role)?.is_some() {}
        Ok(())
    }

    /// The next connection of a port, if it comes in time.
    pub fn accept(&self, role: Role, patience: Patience) -> Outcome<TcpStream> {
        let begin = Instant::now();
        loop {
            if let Some(stream) = self.accepted(role)? {
                return Ok(stream);
            }
            let Some(left) = patience.left(begin) else {
                let over = patience.over();
                return Err(Wrong::late(format!("{over}, no connection to the origin")));
            };
            if let Some(listener) = self.listener(role) {
                poll_for(&mut [PollFd::new(listener, PollFlags::IN)], left)?;
            }
        }
    }

    /// One that waits.
    pub fn accepted(&self, role: Role) -> Outcome<Option<TcpStream>> {
        let Some(listener) = self.listener(role) else {
            return Ok(None);
        };
        let broken = |error: std::io::Error| {
            Wrong::new(format!("the examiner cannot accept a connection: {error}"))
        };
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true).map_err(broken)?;
                stream.set_nodelay(true).map_err(broken)?;
                let less = |expected: usize| expected.checked_sub(1);
                let expected = &self.expected[role.index()];
                // One that nobody opened is found by whoever takes it.
                let _ = expected.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
                Ok(Some(stream))
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::ConnectionAborted
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(broken(error)),
        }
    }

    fn listener(&self, role: Role) -> Option<&TcpListener> {
        match role {
            Role::Plain => Some(&self.plain),
            Role::Slow => Some(&self.slow),
            Role::Narrow => Some(&self.narrow),
            Role::Refused => None,
        }
    }
}

fn bound(address: IpAddr, port: u16) -> anyhow::Result<Socket> {
    let address = SocketAddr::new(address, port);
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket
        .bind(&address.into())
        .with_context(|| format!("cannot bind {address}"))?;
    Ok(socket)
}

fn listening(socket: Socket, backlog: i32) -> anyhow::Result<TcpListener> {
    socket.listen(backlog)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}
