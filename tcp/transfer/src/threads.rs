//! A thread a connection, with blocking sockets.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::{fs, mem};

use rustix::net::sockopt::set_socket_linger;
use wsbench_server_kit::{Result, accept_forever, complain};

use crate::counters::{Served, Slot, add, count_read, subtract};

/// Stack beside the buffer: thread-local storage, the frames of the loop, and those of a panic.
pub const STACK_MARGIN_BYTES: usize = 48 << 10;
/// A stack and the stack of its signal handler, each with its guard.
const MAPS_A_THREAD: usize = 4;
const MAPS_FOR_ALL_ELSE: usize = 2_000;
const DEFAULT_MOST_MAPS: usize = 65_530;

/// Serves each connection in a thread of its own with so large a stack.
pub fn serve(
    listeners: Vec<TcpListener>,
    stack_bytes: usize,
    connection: impl Fn(&TcpStream) -> io::Result<()> + Clone + Send + 'static,
) -> Result<()> {
    let starter = Starter::new(most_threads(), stack_bytes);
    let mut acceptors: Vec<JoinHandle<()>> = Vec::new();
    for listener in listeners {
        let (starter, connection) = (starter.clone(), connection.clone());
        acceptors.push(thread::Builder::new().spawn(move || {
            add(Slot::Threads, 1);
            accept_forever(&listener, |stream, _| {
                starter.start(stream, connection.clone())
            })
        })?);
    }
    for acceptor in acceptors {
        acceptor
            .join()
            .map_err(|_| "an accepting thread has panicked")?;
    }
    Ok(())
}

/// Where the kernel has no more maps for a thread, std does not return an error but aborts: its signal
/// stack is made by the new thread. So threads end before maps do.
fn most_threads() -> usize {
    let maps = fs::read_to_string("/proc/sys/vm/max_map_count")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(DEFAULT_MOST_MAPS);
    maps.saturating_sub(MAPS_FOR_ALL_ELSE) / MAPS_A_THREAD
}

#[derive(Clone)]
struct Starter {
    living: Arc<AtomicUsize>,
    most: usize,
    stack_bytes: usize,
}

impl Starter {
    fn new(most: usize, stack_bytes: usize) -> Self {
        Self {
            living: Arc::default(),
            most,
            stack_bytes,
        }
    }

    /// Starts a thread for a connection; if it cannot, the connection is reset and the server goes on.
    fn start(
        &self,
        stream: TcpStream,
        connection: impl FnOnce(&TcpStream) -> io::Result<()> + Send + 'static,
    ) {
        let waiting = Waiting(Some(stream));
        let place = Place(self.living.clone());
        if self.living.fetch_add(1, Ordering::Relaxed) >= self.most {
            complain(format_args!(
                "cannot start more than {} threads (connection reset; limit: vm.max_map_count)",
                self.most
            ));
            return;
        }
        let thread = thread::Builder::new().stack_size(self.stack_bytes);
        let started = thread.spawn(move || {
            let _place = place;
            add(Slot::Threads, 1);
            if let Some(stream) = waiting.begin() {
                let _served = Served::begin();
                // How one connection ended is its own affair, and its peer's.
                let _ = connection(&stream);
            }
            subtract(Slot::Threads, 1);
        });
        if let Err(error) = started {
            complain(format_args!(
                "cannot start a thread: {error} (connection reset; limits: ulimit -u, ulimit -v, \
                 kernel.threads-max, kernel.pid_max)"
            ));
        }
    }
}

/// One of the threads that may live.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection without a thread yet: dropped like this it is reset, so that its peer knows at once.
struct Waiting(Option<TcpStream>);

impl Waiting {
    fn begin(mut self) -> Option<TcpStream> {
        mem::take(&mut self.0)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(stream) = &self.0 {
            add(Slot::Refused, 1);
            // If even that fails, closing is all that is left to do.
            let _ = set_socket_linger(stream, Some(std::time::Duration::ZERO));
        }
    }
}

/// Echoes through one buffer until the peer has ended.
pub fn echo_through(mut stream: &TcpStream, buffer: &mut [u8]) -> io::Result<()> {
    loop {
        let length = read(stream, buffer)?;
        if length == 0 {
            return stream.shutdown(Shutdown::Write);
        }
        count_read(length);
        stream.write_all(&buffer[..length])?;
    }
}

/// Reads, again if a signal came between.
pub fn read(mut stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_connection_beyond_the_last_thread_is_reset_and_the_others_are_served() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let starter = Starter::new(2, 64 << 10);
        let (ended, ends) = mpsc::channel();
        let dial = || {
            let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let ended = ended.clone();
            starter.start(listener.accept().unwrap().0, move |stream| {
                let result = echo_through(stream, &mut [0; 1024]);
                ended.send(()).map_err(io::Error::other)?;
                result
            });
            peer
        };
        let echo = |mut peer: &TcpStream| {
            peer.write_all(b"bytes")?;
            peer.read_exact(&mut [0; 5])
        };
        let (first, second, third) = (dial(), dial(), dial());
        assert_eq!(echo(&third).unwrap_err().kind(), ErrorKind::ConnectionReset);
        echo(&first).unwrap();
        echo(&second).unwrap();
        drop(first);
        ends.recv().unwrap();
        // Its place is free a moment after it has ended.
        while starter.living.load(Ordering::Relaxed) == 2 {
            thread::yield_now();
        }
        echo(&dial()).unwrap();
    }
}
