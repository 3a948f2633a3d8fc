//! Copying in user space, for a socket that the kernel does not redirect.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// After so many reads the others have their turn.
const READS_A_TURN: usize = 16;

/// Bytes that the destination did not take yet.
#[derive(Default)]
pub struct Held {
    bytes: Vec<u8>,
    start: usize,
}

/// How a turn has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copied {
    /// Everything was delivered, and its end was read.
    Ended,
    /// There may be more, of which no event will tell.
    More,
    /// The source has nothing, or the destination takes nothing.
    WouldBlock,
}

impl Held {
    /// Reads and writes what can be.
    pub fn copy(
        &mut self,
        source: BorrowedFd<'_>,
        destination: BorrowedFd<'_>,
        buffer: &mut [u8],
    ) -> io::Result<Copied> {
        for _ in 0..READS_A_TURN {
            while self.start < self.bytes.len() {
                match send(destination, &self.bytes[self.start..], SendFlags::NOSIGNAL) {
                    Ok(sent) => self.start += sent,
                    Err(Errno::AGAIN) => return Ok(Copied::WouldBlock),
                    Err(error) => return Err(error.into()),
                }
            }
            *self = Self::default();
            match recv(source, &mut *buffer, RecvFlags::empty()) {
                Ok((_, 0)) => return Ok(Copied::Ended),
                Ok((_, length)) => self.take(destination, &buffer[..length])?,
                Err(Errno::AGAIN) => return Ok(Copied::WouldBlock),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Copied::More)
    }

    /// Keeps only what cannot be sent at once.
    fn take(&mut self, destination: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
        let sent = match send(destination, bytes, SendFlags::NOSIGNAL) {
            Ok(sent) => sent,
            Err(Errno::AGAIN) => 0,
            Err(error) => return Err(error.into()),
        };
        self.bytes = bytes[sent..].to_vec();
        Ok(())
    }
}
