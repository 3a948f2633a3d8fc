//! A TCP connection of the examiner: blocking calls that end by the examiner's
//! patience, and everything that is sent kept for the finding.

use super::super::case::{Outcome, Wrong};
use super::account::Account;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::SendFlags;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Read at a time.
const READ_BYTES: usize = 64 << 10;
/// A full socket is waited for so long before it is read from.
const UNREAD_FOR: Duration = Duration::from_millis(100);

/// How long a server is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// In which nothing comes and nothing is taken.
    pub silence: Duration,
    /// Nothing is waited for beyond, whatever comes.
    pub end: Instant,
}

impl Patience {
    /// Late if the time is over, however much comes.
    pub fn check(&self, what: &str) -> Outcome {
        match Instant::now() < self.end {
            true => Ok(()),
            false => Err(Wrong::late(format!(
                "not done when the time was over (last: {what})"
            ))),
        }
    }
}

/// Zero: the connection is reset when its socket is dropped.
fn linger_on_drop(stream: &TcpStream, time: Option<Duration>) -> io::Result<()> {
    rustix::net::sockopt::set_socket_linger(stream, time).map_err(io::Error::from)
}

/// Bytes out, bytes in.
pub struct Raw {
    stream: TcpStream,
    patience: Patience,
    account: Rc<Account>,
    received: Vec<u8>,
    /// Up to there `received` has been used.
    used: usize,
    /// How the server ended it, if it did: `closed` or `reset`.
    ended: Option<&'static str>,
}

impl Raw {
    /// Connects. What was `sent` before is forgotten.
    pub fn open(addr: SocketAddr, patience: Patience, account: Rc<Account>) -> Outcome<Self> {
        patience.check("connecting")?;
        let left = patience.end.saturating_duration_since(Instant::now());
        // A timeout of zero is refused by the library.
        let left = left.min(patience.silence).max(Duration::from_millis(1));
        let stream = TcpStream::connect_timeout(&addr, left).map_err(|error| {
            let seen = format!("cannot connect to {addr}: {error}");
            match error.kind() {
                ErrorKind::TimedOut => match patience.check("connecting") {
                    Ok(()) => Wrong::late(seen),
                    Err(over) => over,
                },
                _ => Wrong::new(seen),
            }
        })?;
        stream
            .set_nodelay(true)
            .and_then(|()| stream.set_nonblocking(true))
            // Hundreds of connections must not leave hundreds of ports in TIME_WAIT.
            .and_then(|()| linger_on_drop(&stream, Some(Duration::ZERO)))
            .map_err(|error| Wrong::new(error.to_string()))?;
        account.sent.take();
        account.opened();
        Ok(Self {
            stream,
            patience,
            account,
            received: Vec::new(),
            used: 0,
            ended: None,
        })
    }

    /// Its own address.
    pub fn local(&self) -> Outcome<SocketAddr> {
        let local = self.stream.local_addr();
        local.map_err(|error| Wrong::new(error.to_string()))
    }

    /// Begins the account of what was sent anew.
    pub fn forget_sent(&self) {
        self.account.sent.take();
    }

    /// The case's account.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Looks at the clock, and at how much came.
    pub fn check(&self, what: &str) -> Outcome {
        self.account.check()?;
        self.patience.check(what)
    }

    /// Received and not yet used.
    pub fn unread(&self) -> &[u8] {
        &self.received[self.used..]
    }

    /// These bytes have been used.
    pub fn consume(&mut self, count: usize) {
        self.used += count;
        if self.used == self.received.len() {
            self.received.clear();
            self.used = 0;
        } else if self.used > READ_BYTES {
            self.received.drain(..self.used);
            self.used = 0;
        }
    }

    /// How the server ended it, if that was seen.
    pub fn ended(&self) -> Option<&'static str> {
        self.ended
    }

    /// Sends bytes. What arrives meanwhile is kept, so that a server that answers
    /// before it has read all cannot block both sides.
    pub fn send(&mut self, bytes: &[u8]) -> Outcome {
        self.send_some(bytes, true, true)
    }

    /// Sends bytes and reads nothing, until the server takes no more for a while: a
    /// right one stops reading when nobody takes its answers.
    pub fn send_unread(&mut self, bytes: &[u8]) -> Outcome {
        self.send_some(bytes, false, true)
    }

    /// Sends what no echo may bring back, such as a pong.
    pub fn send_unasked(&mut self, bytes: &[u8]) -> Outcome {
        self.send_some(bytes, true, false)
    }

    fn send_some(&mut self, mut bytes: &[u8], mut reads: bool, asks: bool) -> Outcome {
        while !bytes.is_empty() {
            self.check("sending")?;
            match self.stream.write(bytes) {
                Ok(0) => return Err(Wrong::new("a connection that takes no more bytes")),
                Ok(count) => {
                    self.note_sent(&bytes[..count], asks);
                    bytes = &bytes[count..];
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock && !reads => {
                    reads = self.wait(PollFlags::OUT, UNREAD_FOR)?.is_empty();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let events = PollFlags::IN | PollFlags::OUT;
                    let ready = self.wait(events, self.patience.silence)?;
                    if ready.is_empty() {
                        self.patience.check("sending")?;
                        return Err(Wrong::late("a server that does not read what it is sent"));
                    }
                    if ready.contains(PollFlags::IN) {
                        self.read_available()?;
                    }
                    if let Some(how) = self.ended {
                        return Err(Wrong::new(format!("the connection {how} while sending")));
                    }
                }
                // What it said before can still be read, so it has not ended yet.
                Err(error) if is_end(&error) => {
                    return Err(Wrong::new("the connection closed while sending"));
                }
                Err(error) => return Err(Wrong::new(format!("{error} while sending"))),
            }
        }
        Ok(())
    }

    /// Waits for more to use; false if the server has ended the connection.
    pub fn fill(&mut self, what: &str) -> Outcome<bool> {
        let before = self.unread().len();
        loop {
            if self.ended.is_some() {
                return Ok(false);
            }
            self.check(what)?;
            if self.wait(PollFlags::IN, self.patience.silence)?.is_empty() {
                self.patience.check(what)?;
                return Err(Wrong::late(format!("silence while waiting for {what}")));
            }
            self.read_available()?;
            if self.unread().len() > before {
                return Ok(true);
            }
        }
    }

    /// Sends a few bytes and the FIN behind them in one segment.
    pub fn send_last(&mut self, bytes: &[u8]) -> Outcome {
        let sent = rustix::net::send(&self.stream, bytes, SendFlags::MORE)
            .map_err(|error| Wrong::new(format!("{error} while sending")))?;
        self.note_sent(&bytes[..sent], true);
        match sent == bytes.len() {
            true => self.half_close(),
            false => Err(Wrong::late("a connection that takes no more bytes")),
        }
    }

    /// The client sends nothing more, and says so.
    pub fn half_close(&self) -> Outcome {
        let shut = self.stream.shutdown(Shutdown::Write);
        shut.map_err(|error| Wrong::new(format!("cannot half-close: {error}")))
    }

    /// Ends it by RST, as dropping it does.
    pub fn reset(self) {}

    /// Ends it by FIN, as a process that exits does.
    pub fn close(self) -> Outcome {
        linger_on_drop(&self.stream, None)
            .map_err(|error| Wrong::new(format!("cannot close: {error}")))
    }

    fn note_sent(&self, bytes: &[u8], asks: bool) {
        self.account.sent.borrow_mut().add(bytes);
        if asks {
            self.account.asked(bytes.len());
        }
    }

    /// Which of the events came in time; empty if none did.
    fn wait(&self, events: PollFlags, most: Duration) -> Outcome<PollFlags> {
        let end = self.patience.end.min(Instant::now() + most);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            // A server that never stops sending must not keep us for ever.
            if left.is_zero() {
                return Ok(PollFlags::empty());
            }
            let timeout = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            };
            let mut fds = [PollFd::new(&self.stream, events)];
            match poll(&mut fds, Some(&timeout)) {
                // An error or a hang-up is told by the call that follows.
                Ok(_) if fds[0].revents().is_empty() => return Ok(PollFlags::empty()),
                Ok(_) => return Ok(fds[0].revents() | events),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(Wrong::new(error.to_string())),
            }
        }
    }

    /// Reads what is there, without waiting.
    fn read_available(&mut self) -> Outcome {
        let mut buffer = [0; READ_BYTES];
        match self.stream.read(&mut buffer) {
            Ok(0) => self.ended = Some("closed"),
            Ok(count) => {
                self.received.extend_from_slice(&buffer[..count]);
                self.account.received(count);
                self.account.check()?;
            }
            Err(error) if is_transient(&error) => {}
            Err(error) if is_end(&error) => self.ended = Some("reset"),
            Err(error) => return Err(Wrong::new(format!("{error} while receiving"))),
        }
        Ok(())
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn is_end(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted
    )
}
