//! One connection of an origin: what it has read and has to write.

use crate::protocol::stream::opening::{Mode, Opening};
use crate::protocol::stream::pieces::{GO, LAST_WORD};
use crate::protocol::stream::ring::Ring;
use mio::net::TcpStream;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::Shutdown;

/// One read takes at most this much, and so much of an echo waits at most: as long
/// as any does, nothing is read.
const BUFFER_BYTES: usize = 64 << 10;
/// Reads or writes before other connections have their turn.
const STEPS_AT_ONCE: u32 = 16;
/// What a source writes at once: a whole ring is ready.
const WRITE_BYTES: u64 = 64 << 10;
/// Backlogs that are kept for the next connection that needs one.
const SPARE_MAX: usize = 64;

/// What the connections of a thread share.
pub struct Scratch {
    buffer: Box<[u8]>,
    /// For pieces of any length: only its bytes matter here.
    ring: Ring,
    spare: Vec<Vec<u8>>,
}

impl Default for Scratch {
    fn default() -> Self {
        Self {
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            ring: Ring::new(BUFFER_BYTES as u32),
            spare: Vec::new(),
        }
    }
}

/// What came of a connection's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// An event will tell when it goes on.
    Waits,
    /// It can go on at once.
    Restless,
    /// It has said everything to an end that says no more, and may not live to see it go.
    Lingers,
    /// Both ends are done with it.
    Done,
    /// It must end with a reset.
    Reset,
}

/// What it is for.
#[derive(Debug)]
enum Role {
    /// So many bytes of the opening have come.
    Opening([u8; Opening::BYTES], usize),
    Echo,
    Sink(Transfer),
    Source(Transfer),
    /// Everything is said; the other end is awaited.
    Leaving,
}

/// A transfer, and where it stands.
#[derive(Debug)]
struct Transfer {
    /// Where the ring is read from.
    begin: u64,
    bytes: u64,
    /// Bytes that came right, or were written.
    done: u64,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// A source that was not told to begin.
    Quiet,
    Moving,
    /// A sink that has sent its receipt: so much of the last word has come.
    LastWord(usize),
    /// A sink that has told of a fault, or of what came until a half-close.
    Told,
}

/// A connection.
#[derive(Debug)]
pub struct Peer {
    stream: TcpStream,
    role: Role,
    /// What waits until the socket takes it, from `written` on.
    backlog: Vec<u8>,
    written: usize,
    /// The other end has said FIN.
    is_half_closed: bool,
    /// It is in the list of those that have more to do.
    pub is_restless: bool,
}

impl Peer {
    /// Nothing has come.
    #[must_use]
    pub fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            role: Role::Opening([0; Opening::BYTES], 0),
            backlog: Vec::new(),
            written: 0,
            is_half_closed: false,
            is_restless: false,
        }
    }

    /// Its socket.
    #[must_use]
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Whether it has said everything to an end that says no more.
    #[must_use]
    pub fn lingers(&self) -> bool {
        matches!(&self.role, Role::Sink(it) if it.stage == Stage::Told) && self.is_half_closed
    }

    /// Leaves what others can use.
    pub fn give_back(mut self, scratch: &mut Scratch) {
        if self.backlog.capacity() > 0 && scratch.spare.len() < SPARE_MAX {
            self.backlog.clear();
            scratch.spare.push(self.backlog);
        }
    }

    /// Reads and writes for a turn.
    pub fn turn(&mut self, scratch: &mut Scratch) -> Turn {
        for _ in 0..STEPS_AT_ONCE {
            match self.step(scratch) {
                Ok(Some(turn)) => return turn,
                Ok(None) => {}
                // The other end is gone, or broke the rules.
                Err(Gone) => return Turn::Reset,
            }
        }
        Turn::Restless
    }

    /// One write, or one read and what follows of it. `None` if there may be more.
    fn step(&mut self, scratch: &mut Scratch) -> Result<Option<Turn>, Gone> {
        if self.written < self.backlog.len() {
            match write(&mut self.stream, &self.backlog[self.written..])? {
                0 => return Ok(Some(Turn::Waits)),
                written => self.written += written,
            }
            if self.written == self.backlog.len() {
                self.relieve(scratch);
            }
            return Ok(None);
        }
        if self.is_half_closed {
            return self.finish();
        }
        if let Role::Source(transfer) = &mut self.role
            && transfer.stage == Stage::Moving
        {
            return match transfer.pour(&mut self.stream, &scratch.ring)? {
                Some(turn) => Ok(Some(turn)),
                None if transfer.done < transfer.bytes => Ok(None),
                None => self.leave(),
            };
        }
        let read = match self.stream.read(&mut scratch.buffer) {
            Ok(0) => {
                self.is_half_closed = true;
                return Ok(None);
            }
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Some(Turn::Waits)),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(None),
            Err(_) => return Err(Gone),
        };
        let buffer = std::mem::take(&mut scratch.buffer);
        let taken = self.take(&buffer[..read], scratch);
        scratch.buffer = buffer;
        taken.map(|()| None)
    }

    /// Takes what came.
    fn take(&mut self, mut bytes: &[u8], scratch: &mut Scratch) -> Result<(), Gone> {
        if let Role::Opening(seen, len) = &mut self.role {
            let part = bytes.len().min(Opening::BYTES - *len);
            seen[*len..*len + part].copy_from_slice(&bytes[..part]);
            *len += part;
            bytes = &bytes[part..];
            if *len < Opening::BYTES {
                return Ok(());
            }
            let seen = *seen;
            self.role = Role::of(Opening::parse(&seen).ok_or(Gone)?);
            self.say(&seen, scratch)?;
        }
        match &mut self.role {
            _ if bytes.is_empty() => Ok(()),
            Role::Echo => self.say(bytes, scratch),
            Role::Sink(transfer) => match transfer.check(bytes, &scratch.ring)? {
                Some(right) => self.say(&right.to_le_bytes(), scratch),
                None => self.leave_if_told(),
            },
            Role::Source(transfer) if transfer.stage == Stage::Quiet && bytes == GO => {
                transfer.stage = Stage::Moving;
                Ok(())
            }
            Role::Opening(..) | Role::Source(_) | Role::Leaving => Err(Gone),
        }
    }

    /// Writes, or lets wait what the socket does not take.
    fn say(&mut self, bytes: &[u8], scratch: &mut Scratch) -> Result<(), Gone> {
        let written = match self.backlog.is_empty() {
            true => write(&mut self.stream, bytes)?,
            false => 0,
        };
        if written < bytes.len() {
            if self.backlog.capacity() == 0 {
                self.backlog = scratch.spare.pop().unwrap_or_default();
            }
            self.backlog.extend(&bytes[written..]);
        }
        Ok(())
    }

    /// Nothing waits any more.
    fn relieve(&mut self, scratch: &mut Scratch) {
        self.written = 0;
        self.backlog.clear();
        if scratch.spare.len() < SPARE_MAX {
            scratch.spare.push(std::mem::take(&mut self.backlog));
        } else {
            self.backlog = Vec::new();
        }
    }

    /// The other end sends no more, and everything that it is owed is written.
    fn finish(&mut self) -> Result<Option<Turn>, Gone> {
        match &mut self.role {
            Role::Opening(_, 0) | Role::Echo | Role::Leaving => Ok(Some(Turn::Done)),
            Role::Sink(transfer) if transfer.stage == Stage::Moving => {
                // Its time was up: it is told what came, and then it goes. Not at once:
                // whoever says FIN first, and is told FIN too, is left with a port in
                // TIME_WAIT. But a relay may not tell of the reset that ends it.
                transfer.stage = Stage::Told;
                let right = transfer.done.to_le_bytes();
                match write(&mut self.stream, &right)? == right.len() {
                    true => Ok(Some(Turn::Lingers)),
                    false => Err(Gone),
                }
            }
            // Until it is gone.
            Role::Sink(transfer) if transfer.stage == Stage::Told => {
                match self.stream.take_error() {
                    Ok(None) => Ok(Some(Turn::Waits)),
                    _ => Err(Gone),
                }
            }
            Role::Opening(..) | Role::Sink(_) | Role::Source(_) => Err(Gone),
        }
    }

    /// A sink that has got its last word leaves.
    fn leave_if_told(&mut self) -> Result<(), Gone> {
        match &self.role {
            Role::Sink(Transfer {
                stage: Stage::LastWord(len),
                ..
            }) if *len == LAST_WORD.len() => self.leave().map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Says FIN and awaits the other end's.
    fn leave(&mut self) -> Result<Option<Turn>, Gone> {
        self.role = Role::Leaving;
        self.stream.shutdown(Shutdown::Write).map_err(|_| Gone)?;
        Ok(None)
    }
}

impl Role {
    fn of(opening: Opening) -> Self {
        let transfer = |stage| Transfer {
            begin: u64::from(opening.first) * u64::from(opening.piece_bytes),
            bytes: opening.total_bytes(),
            done: 0,
            stage,
        };
        match opening.mode {
            Mode::Echo => Role::Echo,
            Mode::Sink => Role::Sink(transfer(Stage::Moving)),
            Mode::Source => Role::Source(transfer(Stage::Quiet)),
        }
    }
}

impl Transfer {
    /// Writes what comes next. A turn if the socket takes nothing.
    fn pour(&mut self, stream: &mut TcpStream, ring: &Ring) -> Result<Option<Turn>, Gone> {
        let bytes = ring.goes_on(0, self.begin + self.done);
        let part = (self.bytes - self.done).min(WRITE_BYTES);
        let part = bytes.len().min(part as usize);
        match write(stream, &bytes[..part])? {
            0 => Ok(Some(Turn::Waits)),
            written => {
                self.done += written as u64;
                Ok(None)
            }
        }
    }

    /// Checks what came. The receipt, if it is due.
    fn check(&mut self, bytes: &[u8], ring: &Ring) -> Result<Option<u64>, Gone> {
        let mut rest = bytes;
        let mut receipt = None;
        if self.stage == Stage::Moving {
            let left = self.bytes - self.done;
            let part = usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
            let right = ring.right(0, self.begin + self.done, &rest[..part]);
            self.done += right as u64;
            rest = &rest[part..];
            if right < part {
                self.stage = Stage::Told;
                return Ok(Some(self.done));
            }
            if self.done == self.bytes {
                self.stage = Stage::LastWord(0);
                receipt = Some(self.done);
            }
        }
        if let Stage::LastWord(len) = &mut self.stage {
            let part = rest.len().min(LAST_WORD.len() - *len);
            let is_right = LAST_WORD[*len..*len + part] == rest[..part];
            *len += part;
            // More than was to come.
            if !is_right || part < rest.len() {
                return Err(Gone);
            }
        }
        Ok(receipt)
    }
}

/// The other end is gone, or shall be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gone;

/// As much as the socket takes; zero if it takes nothing now.
fn write(stream: &mut TcpStream, bytes: &[u8]) -> Result<usize, Gone> {
    loop {
        match stream.write(bytes) {
            Ok(written) => return Ok(written),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Err(Gone),
        }
    }
}
