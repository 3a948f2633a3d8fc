//! The pool again, with a thread a connection: what the pool does without tasks.

use std::io::{self, ErrorKind, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use wsbench_server_kit::Result;

use super::Strategy;
use crate::counters::count_read;
use crate::kept::Kept;
use crate::options::Options;
use crate::pool::{Lease, PATIENCE, Pool, bound};
use crate::threads::{self, STACK_MARGIN_BYTES, read};

pub const STRATEGY: Strategy = Strategy {
    name: "pool_threads",
    about: "a thread a connection, a buffer from a shared bounded pool while bytes are at hand",
    run,
};

fn run(options: &Options, listeners: Vec<TcpListener>) -> Result<()> {
    let pool = Arc::new(Pool::new(bound(options.threads), options.buffer));
    threads::serve(listeners, STACK_MARGIN_BYTES, move |stream| {
        echo(stream, &pool)
    })
}

fn echo(stream: &TcpStream, pool: &Pool) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    loop {
        wait_until_readable(stream)?;
        let mut buffer = pool.take_blocking()?;
        let length = read(stream, &mut buffer)?;
        if length == 0 {
            break;
        }
        count_read(length);
        write(stream, pool, buffer, length)?;
    }
    stream.shutdown(Shutdown::Write)
}

/// A read would wait as well, but with a buffer in its hands.
fn wait_until_readable(stream: &TcpStream) -> io::Result<()> {
    loop {
        match poll(&mut [PollFd::new(stream, PollFlags::IN)], None) {
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => return Ok(()),
        }
    }
}

/// Writes the buffer out, or gives it back sooner where a peer takes nothing and others wait.
fn write(stream: &TcpStream, pool: &Pool, buffer: Lease<'_>, length: usize) -> io::Result<()> {
    let mut sent = 0;
    while sent < length {
        match write_for_a_while(stream, &buffer[sent..length])? {
            0 if pool.is_empty() => break,
            taken => sent += taken,
        }
    }
    if sent == length {
        return Ok(());
    }
    let rest = Kept::copy(&buffer[sent..length]);
    drop(buffer);
    let mut sent = 0;
    while sent < rest.len() {
        sent += write_for_a_while(stream, &rest[sent..])?;
    }
    Ok(())
}

/// How much the socket took; 0 if it had no room for as long as the write timeout.
fn write_for_a_while(mut stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match stream.write(bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
