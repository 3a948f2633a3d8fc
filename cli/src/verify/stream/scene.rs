//! What a case has at hand: the subject's addresses, the examiner's own end, and
//! connections through it.

use super::flow::{End, Flow, Patience, Scatter, is_reset};
use super::resources::{Held, Resources};
use super::tape::{Content, Tape};
use super::upstream::{
    NARROW_BUFFER_BYTES, NARROW_SEGMENT_BYTES, NARROW_SEND_BYTES, Role, Upstream,
};
use crate::verify::case::{Outcome, Wrong};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How much is asked.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Of the longest stream.
    pub bulk_bytes: u64,
    /// Offered to who does not take it: more than all buffers of a kernel.
    pub offered_bytes: u64,
    /// Connections at once.
    pub crowd: usize,
    /// Connections that are full at once.
    pub stalled: usize,
    /// A socket that takes nothing for so long is full.
    pub quiet: Duration,
}

/// Bytes of the number with which a connection of many is told from the others.
const NUMBER_BYTES: usize = 8;
/// Connections that are opened before the first of them is accepted: no more than
/// a small listening queue holds.
const BATCH: usize = 64;
/// For one case.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// The subject's, a port each; by [`Role`] if it is a relay.
    pub addresses: &'a [SocketAddr],
    /// `None` if the subject answers itself.
    pub upstream: Option<&'a Upstream>,
    pub resources: &'a dyn Resources,
    pub tape: &'a Tape,
    pub scatter: &'a Arc<Scatter>,
    /// Connections so far.
    pub serial: &'a AtomicU64,
    pub scale: Scale,
    /// What it held before the first case.
    pub before: Held,
    pub patience: Patience,
}

/// A connection from end to end.
pub struct Link<'a> {
    /// The client's end.
    pub near: TcpStream,
    /// The origin's; `None` if the subject itself sends back what it gets.
    pub far: Option<TcpStream>,
    is_relayed: bool,
    /// Its ends close by FIN.
    is_over: bool,
    tape: &'a Tape,
    serial: u64,
}

/// Where bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    ToOrigin,
    ToClient,
}

impl Way {
    pub const BOTH: [Self; 2] = [Self::ToOrigin, Self::ToClient];

    /// Those that are apart: of an echo server, one there and back.
    pub fn of(is_relayed: bool) -> &'static [Self] {
        match is_relayed {
            true => &Self::BOTH,
            false => &Self::BOTH[..1],
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::ToOrigin => "to the origin",
            Self::ToClient => "to the client",
        }
    }

    pub fn back(self) -> Self {
        match self {
            Self::ToOrigin => Self::ToClient,
            Self::ToClient => Self::ToOrigin,
        }
    }

    /// Who writes.
    pub fn from(self) -> &'static str {
        match self {
            Self::ToOrigin => "client",
            Self::ToClient => "origin",
        }
    }

    /// Who reads.
    pub fn to(self) -> &'static str {
        self.back().from()
    }
}

impl<'a> Scene<'a> {
    /// What the subject holds now.
    pub fn held(&self) -> Outcome<Held> {
        let cannot = |error| Wrong::new(format!("the examiner cannot see it: {error:#}"));
        self.resources.held().map_err(cannot)
    }

    /// The same with other patience.
    pub fn patient(self, silence: Duration) -> Self {
        let silence = self.patience.silence.max(silence);
        let patience = Patience {
            silence,
            ..self.patience
        };
        Self { patience, ..self }
    }

    fn address(&self, role: Role) -> SocketAddr {
        self.addresses[role.index() % self.addresses.len()]
    }

    /// The client's end of a new connection.
    fn connect(&self, role: Role) -> Outcome<TcpStream> {
        let address = self.address(role);
        self.try_connect(role)?.map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => Wrong::late("silence while connecting"),
            _ => Wrong::new(format!("cannot connect to {address}: {error}")),
        })
    }

    fn try_connect(&self, role: Role) -> Outcome<io::Result<TcpStream>> {
        match self.patience.left(Instant::now()) {
            Some(most) => Ok(connected(self.address(role), role, most)),
            None => Err(Wrong::late(self.patience.over())),
        }
    }

    /// That a connection was opened which is to be accepted.
    fn expect(&self, role: Role) {
        if let Some(upstream) = self.upstream {
            upstream.expect(role);
        }
    }

    /// How a connection ends whose origin refuses.
    pub fn refused(&self) -> Outcome<End> {
        match self.try_connect(Role::Refused)? {
            // It may be reset before this thread goes on.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(End::Reset),
            Err(_) => self.connect(Role::Refused).map(|_| End::Reset),
            Ok(near) => {
                let link = self.link(near, None);
                link.flow(Way::ToClient, 0).end(self.patience)
            }
        }
    }

    fn link(&self, near: TcpStream, far: Option<TcpStream>) -> Link<'a> {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        let tape = self.tape;
        Link {
            near,
            far,
            is_relayed: self.upstream.is_some(),
            is_over: false,
            tape,
            serial,
        }
    }

    /// A connection of which the origin's end is not there, or not yet.
    pub fn half_open(&self, role: Role) -> Outcome<Link<'a>> {
        Ok(self.link(self.connect(role)?, None))
    }

    /// A connection from end to end, over which nothing has gone yet.
    pub fn open(&self, role: Role) -> Outcome<Link<'a>> {
        let Some(upstream) = self.upstream else {
            return Ok(self.link(self.connect(role)?, None));
        };
        upstream.forget(role, self.patience)?;
        let near = self.connect(role)?;
        self.expect(role);
        let far = upstream.accept(role, self.patience)?;
        Ok(self.link(near, Some(far)))
    }

    /// Many at once: the first bytes of each say which it is.
    pub fn open_many(&self, role: Role, count: usize) -> Outcome<Vec<Link<'a>>> {
        let mut links = Vec::new();
        if let Some(upstream) = self.upstream {
            upstream.forget(role, self.patience)?;
        }
        while links.len() < count {
            let batch = BATCH.min(count - links.len());
            let opened: Outcome<Vec<TcpStream>> = (0..batch).map(|_| self.connect(role)).collect();
            let Some(upstream) = self.upstream else {
                links.extend(opened?.into_iter().map(|near| self.link(near, None)));
                continue;
            };
            let begin = links.len();
            for near in opened? {
                self.expect(role);
                let link = self.link(near, None);
                let number = link.serial.to_be_bytes();
                (&link.near).write_all(&number).map_err(|error| {
                    Wrong::new(format!("cannot write the first bytes: {error}"))
                })?;
                links.push(link);
            }
            for _ in 0..batch {
                let far = upstream.accept(role, self.patience)?;
                let serial = number(&far, self.patience)?;
                let mut own = links[begin..].iter_mut();
                let own = own.find(|link| link.serial == serial && link.far.is_none());
                let own = own.ok_or_else(|| {
                    let seen = "that none of the new connections begins with";
                    Wrong::new(format!("first bytes ({serial:016x}) {seen}"))
                })?;
                own.far = Some(far);
            }
        }
        Ok(links)
    }
}

/// The number that a connection begins with.
fn number(far: &TcpStream, patience: Patience) -> Outcome<u64> {
    let mut bytes = [0; NUMBER_BYTES];
    let mut have = 0;
    let begin = Instant::now();
    while have < NUMBER_BYTES {
        match (&mut &*far).read(&mut bytes[have..]) {
            Ok(0) => return Err(Wrong::new("an end (FIN) before the first bytes")),
            Ok(length) => have += length,
            Err(error) if is_reset(&error) => {
                return Err(Wrong::new("a reset before the first bytes"));
            }
            Err(_) => {
                let Some(left) = patience.left(begin) else {
                    let over = patience.over();
                    return Err(Wrong::late(format!("{over}, the first bytes did not come")));
                };
                super::flow::wait(&[(far, rustix::event::PollFlags::IN)], left)?;
            }
        }
    }
    Ok(u64::from_be_bytes(bytes))
}

fn connected(address: SocketAddr, role: Role, most: Duration) -> io::Result<TcpStream> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    if role == Role::Narrow {
        socket.set_send_buffer_size(NARROW_SEND_BYTES)?;
        socket.set_recv_buffer_size(NARROW_BUFFER_BYTES)?;
        socket.set_tcp_mss(NARROW_SEGMENT_BYTES)?;
    }
    socket.connect_timeout(&address.into(), most)?;
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

impl Link<'_> {
    fn content(&self, way: Way, length: u64) -> Content<'_> {
        let direction = u64::from(way == Way::ToClient);
        self.tape.content(self.serial * 2 + direction, length)
    }

    /// The origin's end, which of an echo server is the client's.
    pub fn far(&self) -> &TcpStream {
        self.far.as_ref().unwrap_or(&self.near)
    }

    /// So many bytes that way.
    pub fn flow(&self, way: Way, length: u64) -> Flow<'_> {
        let content = self.content(way, length);
        let name = match self.is_relayed {
            true => way.name(),
            false => "there and back",
        };
        let (from, to) = match way {
            Way::ToOrigin => (&self.near, self.far()),
            Way::ToClient => (self.far(), &self.near),
        };
        Flow::new(name, from, to, content)
    }

    /// So many bytes each way; of an echo server there and back.
    pub fn flows(&self, length: u64) -> Vec<Flow<'_>> {
        let ways = Way::of(self.is_relayed).iter();
        ways.map(|way| self.flow(*way, length)).collect()
    }

    /// The end from which bytes go that way.
    pub fn source(&self, way: Way) -> &TcpStream {
        match way {
            Way::ToOrigin => &self.near,
            Way::ToClient => self.far(),
        }
    }

    /// Closes both ends by FIN: that which bytes of this way come from, and the
    /// other when it has seen that.
    pub fn close(mut self, way: Way, patience: Patience) -> Outcome {
        let shut = self.source(way).shutdown(Shutdown::Write);
        shut.map_err(|error| Wrong::new(format!("cannot end a connection: {error}")))?;
        let end = self.flow(way, 0).end(patience)?;
        // Only now both are closed, one behind the other.
        self.is_over = true;
        match end {
            End::Whole => Ok(()),
            End::Reset => Err(Wrong::new(end.name())),
        }
    }
}

impl Drop for Link<'_> {
    /// Leaves no port in TIME_WAIT.
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        for end in [Some(&self.near), self.far.as_ref()].into_iter().flatten() {
            // An end that is gone already needs none.
            let _ = reset(end);
        }
    }
}

/// Sends RST at once. The socket is of no use afterwards.
pub fn reset(stream: &TcpStream) -> Outcome {
    let asked = rustix::net::connect_unspec(stream);
    asked.map_err(|error| Wrong::new(format!("the examiner cannot reset: {error}")))
}
