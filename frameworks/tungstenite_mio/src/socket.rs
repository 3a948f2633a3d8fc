//! A non-blocking stream that knows when it has been read empty.
//!
//! An edge-triggered loop must read until the socket has no more. A read that
//! brings less than it asked for has shown that already, and the second one that
//! would only say "would block" is spared; tokio does the same. It holds unless
//! the peer has closed: the end of the stream is behind the bytes, and makes no
//! event of its own any more.

use std::io::{self, Read, Write};

use mio::event::Event;
use mio::net::TcpStream;

pub struct Socket {
    stream: TcpStream,
    empty: bool,
    peer_closed: bool,
}

impl Socket {
    /// A registered stream; its first event says that there is something to read.
    pub fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            empty: true,
            peer_closed: false,
        }
    }

    /// Takes in what poll said of it.
    pub fn note(&mut self, event: &Event) {
        self.peer_closed |= event.is_read_closed() || event.is_error();
        if event.is_readable() || self.peer_closed {
            self.empty = false;
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.empty {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let length = self.stream.read(buffer)?;
        self.empty = length < buffer.len() && !self.peer_closed;
        Ok(length)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
