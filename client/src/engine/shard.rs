//! The loop of one shard: events of its epoll become calls of the workload.

use super::clock::now_ns;
use super::net::{Net, Reading, Writing};
use super::slot::{SlotId, State};
use super::timer::Timer;
use crate::cause::Cause;
use crate::protocol::Protocol;
use crate::workload::{Outcome, Workload};
use mio::event::Event;
use mio::{Events, Poll, Token, Waker};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Events taken from the kernel at once. Timers are looked at between any two.
const EVENTS_AT_ONCE: usize = 1024;
/// The tokens from here on belong to no connection.
const FIRST_OTHER: Token = Token(usize::MAX - 1);
const WAKER: Token = FIRST_OTHER;
const TIMER: Token = Token(usize::MAX);

/// What a shard has done until now, for others to read.
///
/// It is all that a shard writes while it runs and another thread reads, once a
/// second; it has a cache line to itself, and the one that is fetched
/// with it. The rest belongs to the shard's thread: the slots, the read buffer and the
/// epoll are moved into it ([`Shard`] is not shared), and a workload makes its queue and
/// its histograms on it. What shards have in common is only read: the templates and the
/// route (without interior mutability) and the flag to stop, which is written once.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counters {
    /// What the phase is to make.
    pub planned: AtomicU64,
    /// Successes in the phase.
    pub done: AtomicU64,
    /// Failures in the phase.
    pub failed: AtomicU64,
}

const _: () = assert!(align_of::<Counters>() == 128 && size_of::<Counters>() == 128);

impl Counters {
    /// Before a phase.
    pub fn reset(&self) {
        for counter in [&self.planned, &self.done, &self.failed] {
            counter.store(0, Ordering::Relaxed);
        }
    }
}

/// One thread's epoll and connections.
pub struct Shard<P: Protocol> {
    poll: Poll,
    timer: Timer,
    waker: Arc<Waker>,
    net: Net<P>,
}

impl<P: Protocol> Shard<P> {
    /// An epoll, a timer, and `connections` unborn connections.
    ///
    /// # Errors
    /// If the kernel has no descriptor left for them.
    pub fn new(protocol: P, connections: u32) -> io::Result<Self> {
        let poll = Poll::new()?;
        let timer = Timer::new(poll.registry(), TIMER)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let net = Net::new(protocol, connections, poll.registry().try_clone()?);
        Ok(Self {
            poll,
            timer,
            waker,
            net,
        })
    }

    /// Makes the shard look at once whether it must stop. Otherwise it sleeps
    /// until something comes or is due: idle connections cost nothing.
    #[must_use]
    pub fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// Connections that can carry messages.
    #[must_use]
    pub fn open(&self) -> u32 {
        self.net.open
    }

    /// Closes every connection.
    pub fn close(mut self) {
        for id in 0..self.net.slots.len() as SlotId {
            self.net.close(id);
        }
    }

    /// Runs one phase to its end, or until `stop` and a wake-up.
    ///
    /// # Errors
    /// If epoll fails.
    pub fn run<W: Workload<P>>(
        &mut self,
        mut workload: W,
        counters: &Counters,
        stop: &AtomicBool,
    ) -> io::Result<Outcome> {
        let net = &mut self.net;
        (net.sent_bytes, net.received_bytes) = (0, 0);
        let mut events = Events::with_capacity(EVENTS_AT_ONCE);
        workload.begin(net);
        counters
            .planned
            .store(workload.planned(), Ordering::Relaxed);
        while !workload.is_done() && !stop.load(Ordering::Relaxed) {
            let now = now_ns();
            if now >= workload.wake_at_ns() {
                workload.tick(net, now);
                if workload.is_done() {
                    break;
                }
            }
            let unread = net.take_unread();
            let until = match unread.is_empty() {
                true => workload.wake_at_ns(),
                false => now,
            };
            self.timer.wait(&mut self.poll, &mut events, now, until)?;
            for event in &events {
                if event.token() >= FIRST_OTHER {
                    continue;
                }
                let id = event.token().0 as SlotId;
                let now = handle(net, &mut workload, id, event);
                if now >= workload.wake_at_ns() {
                    workload.tick(net, now);
                }
            }
            for id in unread {
                net.slot(id).is_unread = false;
                // It may have been closed, and dialled again, meanwhile.
                if net.is_open(id) {
                    receive(net, &mut workload, id, true);
                }
            }
            let (done, failed) = workload.progress();
            counters.done.store(done, Ordering::Relaxed);
            counters.failed.store(failed, Ordering::Relaxed);
        }
        let mut outcome = workload.outcome();
        outcome.count(wsbench_schema::metric::SENT_BYTES, net.sent_bytes);
        outcome.count(wsbench_schema::metric::RECEIVED_BYTES, net.received_bytes);
        Ok(outcome)
    }
}

/// One event of one connection. Returns the time if it was read, else 0.
#[inline]
fn handle<P: Protocol, W: Workload<P>>(
    net: &mut Net<P>,
    workload: &mut W,
    id: SlotId,
    event: &Event,
) -> u64 {
    match net.slot(id).state {
        State::Open => {}
        State::Connecting | State::Handshaking => {
            workload.dialling(net, id, event);
            return 0;
        }
        // Closed while its event was on the way.
        State::Unborn | State::Dead => return 0,
    }
    if event.is_writable() && net.slot(id).is_writing() {
        match net.flush(id) {
            Writing::Whole => workload.drained(net, id),
            Writing::Waits => workload.progressed(net, id),
            Writing::Fault(cause) => {
                drop_connection(net, workload, id, cause);
                return 0;
            }
        }
    }
    if event.is_readable() || event.is_read_closed() || event.is_error() {
        let peer_closed = event.is_read_closed() || event.is_error();
        return receive(net, workload, id, peer_closed);
    }
    0
}

/// Reads an open connection. Returns the time if it was read, else 0.
#[inline]
fn receive<P: Protocol, W: Workload<P>>(
    net: &mut Net<P>,
    workload: &mut W,
    id: SlotId,
    peer_closed: bool,
) -> u64 {
    let reading = match workload.allowance(id) {
        None => net.read(id, peer_closed),
        Some(most) => net.read_at_most(id, most),
    };
    match reading {
        // Nothing was there.
        Reading::Answers(_, 0) => 0,
        Reading::Answers(count, now) => {
            workload.received(net, id, count, now);
            now
        }
        Reading::Fault(count, now, cause) => {
            if count > 0 {
                // Counted, but nothing more is sent: the connection goes first.
                let in_flight = net.close(id);
                workload.answered(net, id, count, now);
                workload.dropped(net, id, in_flight, cause);
            } else {
                drop_connection(net, workload, id, cause);
            }
            now
        }
    }
}

/// Closes a connection and tells the workload.
pub fn drop_connection<P: Protocol, W: Workload<P>>(
    net: &mut Net<P>,
    workload: &mut W,
    id: SlotId,
    cause: Cause,
) {
    let in_flight = net.close(id);
    workload.dropped(net, id, in_flight, cause);
}
