//! Bytes on their way: written in pieces at one end of a connection, read and
//! compared at the other, both without blocking, so that one thread drives any number.

use super::tape::{Content, PIECE};
use crate::verify::case::{Outcome, Wrong};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wsbench_schema::SplitMix64;

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Without a byte that moves.
    pub silence: Duration,
    /// In all.
    pub end: Instant,
}

impl Patience {
    /// What is left of both, since something moved; `None` if it is over.
    pub fn left(&self, moved: Instant) -> Option<Duration> {
        let end = self.end.min(moved + self.silence);
        let left = end.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// How it was over, for messages.
    pub fn over(&self) -> &'static str {
        match Instant::now() < self.end {
            true => "silence",
            false => "not done when the time was over",
        }
    }
}

/// How what is sent is cut.
pub enum Pieces {
    /// As much as the socket takes.
    Whole,
    /// A byte a write, and no two side by side in the kernel's memory: it would
    /// put such into one place of a pipe.
    Singles(Arc<Scatter>),
    /// From one byte to so many.
    Random(SplitMix64, usize),
}

impl Pieces {
    fn next(&mut self) -> usize {
        match self {
            Self::Whole => PIECE,
            Self::Singles(_) => 1,
            Self::Random(random, most) => {
                1 + usize::try_from(random.below(*most as u64)).unwrap_or(0)
            }
        }
    }
}

/// A connection of the examiner with itself. The kernel copies what a thread writes,
/// whatever the socket, into memory one behind the other.
pub struct Scatter {
    here: TcpStream,
    there: TcpStream,
}

impl Scatter {
    pub fn new() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let here = TcpStream::connect(listener.local_addr()?)?;
        let (there, _) = listener.accept()?;
        here.set_nonblocking(true)?;
        there.set_nonblocking(true)?;
        Ok(Self { here, there })
    }

    /// A byte of its own behind that of another socket.
    fn step(&self) {
        // Where there is no room one was written just before.
        let _ = (&self.here).write(&[0]);
        let _ = (&self.there).read(&mut [0; 64]);
    }
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By FIN.
    Whole,
    /// By RST.
    Reset,
}

impl End {
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "an end (FIN)",
            Self::Reset => "a reset",
        }
    }
}

/// One direction.
pub struct Flow<'a> {
    /// As in `to the origin`.
    pub name: &'static str,
    pub from: &'a TcpStream,
    pub to: &'a TcpStream,
    pub content: Content<'a>,
    pub pieces: Pieces,
    /// Bytes asked for by a read.
    pub read_bytes: usize,
    /// All that is sent is followed by FIN, which must arrive.
    pub is_last: bool,
    pub sent: u64,
    pub got: u64,
    finished: bool,
    pub ended: Option<End>,
}

impl<'a> Flow<'a> {
    pub fn new(
        name: &'static str,
        from: &'a TcpStream,
        to: &'a TcpStream,
        content: Content<'a>,
    ) -> Self {
        Self {
            name,
            from,
            to,
            content,
            pieces: Pieces::Whole,
            read_bytes: PIECE,
            is_last: false,
            sent: 0,
            got: 0,
            finished: false,
            ended: None,
        }
    }

    /// With FIN behind it.
    pub fn last(self) -> Self {
        let is_last = true;
        Self { is_last, ..self }
    }

    /// Written in such pieces.
    pub fn in_pieces(self, pieces: Pieces) -> Self {
        Self { pieces, ..self }
    }

    /// Read in small pieces.
    pub fn read_by(self, read_bytes: usize) -> Self {
        Self { read_bytes, ..self }
    }

    fn is_done(&self) -> bool {
        self.got == self.content.length && (!self.is_last || self.ended.is_some())
    }

    fn is_sent(&self) -> bool {
        self.sent == self.content.length && (!self.is_last || self.finished)
    }

    /// One write, and FIN when all is written; whether anything moved.
    pub fn write(&mut self) -> Outcome<bool> {
        if self.is_sent() {
            return Ok(false);
        }
        if self.sent == self.content.length {
            self.finished = true;
            let shut = self.from.shutdown(Shutdown::Write);
            shut.map_err(|error| self.broken("while its end was sent", &error))?;
            return Ok(true);
        }
        let piece = self.content.piece(self.sent, self.pieces.next());
        match (&mut &*self.from).write(piece) {
            Ok(written) => {
                self.sent += written as u64;
                if let Pieces::Singles(scatter) = &self.pieces {
                    scatter.step();
                }
                Ok(true)
            }
            Err(error) if is_later(&error) => Ok(false),
            Err(error) => Err(self.broken("while writing", &error)),
        }
    }

    /// One read; whether anything moved. Bytes are compared, an end is kept.
    pub fn read(&mut self, buffer: &mut [u8]) -> Outcome<bool> {
        if self.ended.is_some() {
            return Ok(false);
        }
        let most = self.read_bytes.min(buffer.len());
        match (&mut &*self.to).read(&mut buffer[..most]) {
            Ok(0) => self.ended = Some(End::Whole),
            Ok(length) => {
                let checked = self.content.check(self.got, &buffer[..length]);
                checked.map_err(|seen| Wrong::new(format!("{}: {seen}", self.name)))?;
                self.got += length as u64;
            }
            Err(error) if is_later(&error) => return Ok(false),
            Err(error) if is_reset(&error) => self.ended = Some(End::Reset),
            Err(error) => return Err(self.broken("while reading", &error)),
        }
        Ok(true)
    }

    /// What came, for messages: `to the origin: 17 of 100 bytes came`.
    pub fn state(&self) -> String {
        let (name, got, length) = (self.name, self.got, self.content.length);
        format!("{name}: {got} of {length} bytes came")
    }

    fn broken(&self, doing: &str, error: &io::Error) -> Wrong {
        let what = match is_reset(error) {
            true => "a reset".to_owned(),
            false => format!("an error ({error})"),
        };
        Wrong::new(format!("{what} {doing}, {}", self.state()))
    }

    /// That it ended too early, or by a reset.
    fn check_end(&self) -> Outcome {
        match self.ended {
            None => Ok(()),
            Some(End::Whole) if self.is_done() => Ok(()),
            Some(end) => Err(Wrong::new(format!("{}, {}", end.name(), self.state()))),
        }
    }

    /// That no more than what was sent is meant.
    pub fn cut(&mut self) {
        self.content.length = self.sent;
    }

    /// Writes until that is refused.
    pub fn write_until_reset(&mut self, patience: Patience) -> Outcome {
        let mut moved = Instant::now();
        while self.sent < self.content.length {
            let piece = self.content.piece(self.sent, PIECE);
            match (&mut &*self.from).write(piece) {
                Ok(written) => {
                    self.sent += written as u64;
                    moved = Instant::now();
                }
                Err(error) if is_reset(&error) => return Ok(()),
                Err(error) if is_later(&error) => {
                    let Some(left) = patience.left(moved) else {
                        let (over, sent) = (patience.over(), self.sent);
                        let seen = format!("{over}, no reset, {sent} more bytes taken");
                        return Err(Wrong::late(seen));
                    };
                    wait(&[(self.from, PollFlags::OUT)], left)?;
                }
                Err(error) => return Err(self.broken("while writing", &error)),
            }
        }
        let sent = self.sent;
        Err(Wrong::new(format!("no reset, {sent} more bytes taken")))
    }

    /// Reads until the end, whichever it is; all that comes before it is compared.
    pub fn end(&mut self, patience: Patience) -> Outcome<End> {
        let mut buffer = vec![0; PIECE];
        let mut moved = Instant::now();
        loop {
            if let Some(end) = self.ended {
                return Ok(end);
            }
            if self.read(&mut buffer)? {
                moved = Instant::now();
                continue;
            }
            let Some(left) = patience.left(moved) else {
                let over = patience.over();
                return Err(Wrong::late(format!("{over}, no end, {}", self.state())));
            };
            wait(&[(self.to, PollFlags::IN)], left)?;
        }
    }
}

/// Drives them side by side until all has come whole and in order, ends included.
pub fn run(flows: &mut [Flow<'_>], patience: Patience) -> Outcome {
    let mut buffer = vec![0; PIECE];
    let mut moved = Instant::now();
    loop {
        let mut has_moved = false;
        for flow in flows.iter_mut() {
            has_moved |= flow.write()?;
            if !flow.is_done() {
                has_moved |= flow.read(&mut buffer)?;
                flow.check_end()?;
            }
        }
        let Some(late) = flows.iter().find(|flow| !flow.is_done()) else {
            return Ok(());
        };
        if has_moved {
            moved = Instant::now();
            if Instant::now() < patience.end {
                continue;
            }
        }
        let Some(left) = patience.left(moved) else {
            return Err(Wrong::late(format!(
                "{}, {}",
                patience.over(),
                late.state()
            )));
        };
        let mut awaited = Vec::new();
        for flow in flows.iter() {
            if !flow.is_sent() {
                awaited.push((flow.from, PollFlags::OUT));
            }
            if !flow.is_done() {
                awaited.push((flow.to, PollFlags::IN));
            }
        }
        wait(&awaited, left)?;
    }
}

/// Writes until none of them took anything for so long, or all is written.
pub fn fill(flows: &mut [Flow<'_>], quiet: Duration, patience: Patience) -> Outcome {
    loop {
        let mut has_moved = false;
        for flow in flows.iter_mut() {
            has_moved |= flow.sent < flow.content.length && flow.write()?;
        }
        let open: Vec<_> = flows
            .iter()
            .filter(|flow| flow.sent < flow.content.length)
            .map(|flow| (flow.from, PollFlags::OUT))
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        let Some(left) = patience.left(Instant::now()) else {
            return Err(Wrong::late(patience.over()));
        };
        if !has_moved && !wait(&open, quiet.min(left))? {
            return Ok(());
        }
    }
}

/// Waits until one of them is ready; whether one was in time.
pub fn wait(awaited: &[(&TcpStream, PollFlags)], most: Duration) -> Outcome<bool> {
    let mut ends: Vec<PollFd<'_>> = awaited
        .iter()
        .map(|(stream, flags)| PollFd::new(*stream, *flags))
        .collect();
    poll_for(&mut ends, most)
}

/// The same of anything.
pub fn poll_for(ends: &mut [PollFd<'_>], most: Duration) -> Outcome<bool> {
    let timeout = Timespec::try_from(most).ok();
    match poll(ends, timeout.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(true),
        Err(error) => Err(Wrong::new(format!("the examiner cannot wait: {error}"))),
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Writing behind a reset fails as a broken pipe.
pub fn is_reset(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
    matches!(
        error.kind(),
        ConnectionReset | BrokenPipe | ConnectionAborted | NotConnected
    )
}
