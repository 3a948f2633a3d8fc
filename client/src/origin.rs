//! What is behind a relay: it accepts connections, reads the [opening] of each, sends
//! it back, and does what it says. It is as bare as the load engine, so that a relay
//! is the slowest of the three.
//!
//! [opening]: crate::protocol::stream::opening

mod listen;
mod peer;
mod shard;

use crate::EngineError;
use listen::{Acceptor, Listeners};
use mio::Waker;
use shard::Shard;
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use wsbench_schema::PortRange;

/// How often it is looked whether to stop.
const STOP_CHECK: Duration = Duration::from_millis(50);

/// Listening sockets, and a loop for each thread.
pub struct Origin {
    acceptor: Acceptor,
    shards: Vec<Shard>,
}

/// What an origin has for the threads that share its connections: each gets every so
/// manyth one, however they come.
pub(crate) struct Inlet {
    waker: Arc<Waker>,
    connections: std::sync::mpsc::Sender<TcpStream>,
}

impl Inlet {
    /// Hands a connection over; it is closed if its thread has ended.
    fn hand_over(&self, stream: TcpStream) {
        if self.connections.send(stream).is_ok() {
            // It fails only if the thread's descriptors are gone, and then so is the thread.
            let _ = self.waker.wake();
        }
    }
}

impl Origin {
    /// Listens on all of `ports`. `threads` share the connections; `None` is one for
    /// each CPU that this process may use.
    ///
    /// # Errors
    /// If the host is unknown, a port cannot be had, or the system has no
    /// descriptor left.
    pub fn bind(host: &str, ports: PortRange, threads: Option<usize>) -> Result<Self, EngineError> {
        crate::limits::allow_all()?;
        let listeners = Listeners::bind(host, ports)?;
        let threads = match threads {
            Some(threads) => threads.max(1),
            None => crate::engine::start::allowed_cpus()?.len().max(1),
        };
        let failed = |error| EngineError::System("make an epoll".into(), error);
        let (mut shards, mut inlets) = (Vec::new(), Vec::new());
        for _ in 0..threads {
            let (connections, inlet) = channel();
            let shard = Shard::new(inlet).map_err(failed)?;
            let waker = shard.waker();
            inlets.push(Inlet { waker, connections });
            shards.push(shard);
        }
        let acceptor = Acceptor::new(listeners, inlets).map_err(failed)?;
        Ok(Self { acceptor, shards })
    }

    /// Whether connections get `TCP_NODELAY`; they do if nothing is said.
    #[must_use]
    pub fn with_nodelay(mut self, nodelay: bool) -> Self {
        let shards = self.shards.iter_mut();
        shards.for_each(|shard| shard.set_nodelay(nodelay));
        self
    }

    /// The ports that it listens on: those asked for, and for port 0 the one that the
    /// kernel chose.
    ///
    /// # Errors
    /// If a socket cannot be asked.
    pub fn ports(&self) -> Result<Vec<u16>, EngineError> {
        let failed = |error| EngineError::System("ask for a socket's port".into(), error);
        self.acceptor.ports().map_err(failed)
    }

    /// Serves until `stop` becomes true, then closes everything.
    ///
    /// # Errors
    /// If epoll fails, or the system has no thread left.
    pub fn run(mut self, stop: &AtomicBool) -> Result<(), EngineError> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |error| EngineError::System(what, error)
        };
        let ended = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for shard in self.shards {
            let ended = Arc::clone(&ended);
            let thread = thread::Builder::new()
                .name("origin".into())
                .spawn(move || shard.serve(&ended))
                .map_err(failed("start a thread"))?;
            threads.push(thread);
        }
        let mut accepted = Ok(());
        while accepted.is_ok() && !stop.load(Ordering::Relaxed) {
            accepted = self.acceptor.accept(STOP_CHECK);
            if threads.iter().any(thread::JoinHandle::is_finished) {
                break;
            }
        }
        ended.store(true, Ordering::Relaxed);
        self.acceptor.wake_all();
        for thread in threads {
            let panicked = |_| io::Error::other("its thread panicked");
            let served = thread.join().map_err(panicked).flatten();
            served.map_err(failed("serve as an origin"))?;
        }
        accepted.map_err(failed("accept connections"))
    }
}
