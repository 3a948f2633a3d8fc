//! A shard's thread: it runs the phases that it is ordered to.

use super::clock::now_ns;
use super::shard::{Counters, Shard};
use crate::EngineError;
use crate::protocol::Protocol;
use crate::protocol::stream::pieces::Pieces;
use crate::workload::Outcome;
use crate::workload::bulk::{Bulk, BulkShare};
use crate::workload::connect::Connect;
use crate::workload::echo::{Echo, EchoShare};
use crate::workload::rate::{Rate, RateShare};
use crate::workload::release::{Release, ReleaseShare};
use mio::Waker;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A phase as a shard is told to run it: its part of everything is in it.
pub enum Order {
    /// Open the connections.
    Connect(Box<Connect>),
    /// The closed loop, warm-up included.
    Echo(Box<EchoShare>),
    /// The open loop.
    Rate(Box<RateShare>),
    /// Transfers.
    Bulk(Box<BulkShare>),
    /// Close some of the connections.
    Release(ReleaseShare),
}

/// Runs an order on a shard. Which phases there are depends on the protocol; it is
/// chosen once, so that nothing in a phase asks for it.
pub type Run<P> = fn(&mut Shard<P>, Order, &Counters, &AtomicBool) -> io::Result<Outcome>;

/// Runs a phase of messages.
pub fn run_messages<P: Protocol>(
    shard: &mut Shard<P>,
    order: Order,
    counters: &Counters,
    stop: &AtomicBool,
) -> io::Result<Outcome> {
    match order {
        Order::Connect(connect) => shard.run(*connect, counters, stop),
        Order::Echo(share) => shard.run(Echo::new(*share), counters, stop),
        Order::Rate(share) => shard.run(Rate::new(*share), counters, stop),
        Order::Release(share) => shard.run(Release::new(share), counters, stop),
        Order::Bulk(_) => Err(io::Error::other("this client carries messages only")),
    }
}

/// Runs a phase of transfers.
pub fn run_transfers(
    shard: &mut Shard<Pieces>,
    order: Order,
    counters: &Counters,
    stop: &AtomicBool,
) -> io::Result<Outcome> {
    match order {
        Order::Connect(connect) => shard.run(*connect, counters, stop),
        Order::Bulk(share) => shard.run(Bulk::new(*share), counters, stop),
        Order::Echo(_) | Order::Rate(_) | Order::Release(_) => {
            Err(io::Error::other("this client carries transfers only"))
        }
    }
}

struct Command {
    order: Order,
    start_ns: u64,
}

struct Report {
    outcome: io::Result<Outcome>,
    open: u32,
}

/// A shard on a thread of its own, as the engine holds it.
pub struct Worker {
    /// What the shard has done until now.
    pub counters: Arc<Counters>,
    /// Connections that it has room for.
    pub room: u32,
    /// Number of its first connection among all of the client.
    pub first_number: u32,
    /// Connections that can carry messages, as of the last phase.
    pub open: u32,
    waker: Arc<Waker>,
    orders: Option<Sender<Command>>,
    reports: Receiver<Report>,
    thread: Option<JoinHandle<()>>,
}

/// Sleeps until a time of [`now_ns`].
pub fn sleep_until(at_ns: u64) {
    let now = now_ns();
    if at_ns > now {
        std::thread::sleep(Duration::from_nanos(at_ns - now));
    }
}

impl Worker {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system has no thread left.
    pub fn start<P: Protocol>(
        shard: Shard<P>,
        run: Run<P>,
        cpu: usize,
        room: u32,
        first_number: u32,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, EngineError> {
        let (orders, inbox) = channel::<Command>();
        let (outbox, reports) = channel();
        let waker = shard.waker();
        let counters = Arc::new(Counters::default());
        let theirs = Arc::clone(&counters);
        let body = move || serve(shard, run, cpu, &inbox, &outbox, &theirs, &stop);
        let thread = std::thread::Builder::new()
            .name(format!("shard-{cpu}"))
            .spawn(body)
            .map_err(|error| EngineError::System("start a thread".into(), error))?;
        Ok(Self {
            waker,
            orders: Some(orders),
            reports,
            thread: Some(thread),
            counters,
            room,
            first_number,
            open: 0,
        })
    }

    /// Begins a phase at `start_ns`.
    ///
    /// # Errors
    /// If the thread has ended.
    pub fn begin(&self, order: Order, start_ns: u64) -> Result<(), EngineError> {
        let ended = || EngineError::Shard("its thread has ended".into());
        let orders = self.orders.as_ref().ok_or_else(ended)?;
        orders
            .send(Command { order, start_ns })
            .map_err(|_| ended())
    }

    /// What the shard measured; `None` if the phase lasts longer than `timeout`.
    ///
    /// # Errors
    /// If epoll failed or the thread panicked.
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<Outcome>, EngineError> {
        match self.reports.recv_timeout(timeout) {
            Ok(Report { outcome, open }) => {
                self.open = open;
                let failed = |error| EngineError::System("wait for events".into(), error);
                outcome.map(Some).map_err(failed)
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                Err(EngineError::Shard("its thread panicked".into()))
            }
        }
    }

    /// Makes the shard see a stop that was asked for.
    pub fn wake(&self) {
        // It fails only if the shard's descriptors are gone, and then so is the shard.
        let _ = self.waker.wake();
    }

    /// No phase follows: the thread closes its connections and ends.
    pub fn dismiss(&mut self) {
        self.orders = None;
    }

    /// Waits until it has.
    pub fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic was reported by the phase in which it happened.
            let _ = thread.join();
        }
    }
}

/// A shard's thread: runs phases until nobody orders any more.
fn serve<P: Protocol>(
    mut shard: Shard<P>,
    run: Run<P>,
    cpu: usize,
    orders: &Receiver<Command>,
    reports: &Sender<Report>,
    counters: &Counters,
    stop: &AtomicBool,
) {
    let mut set = CpuSet::new();
    set.set(cpu);
    // Pinning is a courtesy to the caches: where it is refused, the scheduler places the thread.
    let _ = sched_setaffinity(None, &set);
    while let Ok(Command { order, start_ns }) = orders.recv() {
        sleep_until(start_ns);
        let outcome = run(&mut shard, order, counters, stop);
        let open = shard.open();
        if reports.send(Report { outcome, open }).is_err() {
            break;
        }
    }
    shard.close();
}
