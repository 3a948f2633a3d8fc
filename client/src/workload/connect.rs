//! Dials: so many in flight, each with a timeout and retries, each timed by
//! itself, failures counted by cause.

use super::{Outcome, Workload};
use crate::cause::{Cause, Causes};
use crate::engine::clock::now_ns;
use crate::engine::dial::Route;
use crate::engine::net::{Net, Reading};
use crate::engine::slot::{Slot, SlotId, State};
use crate::protocol::handshake::ANSWER_MAX_BYTES;
use crate::protocol::{Protocol, Welcome};
use hdrhistogram::Histogram;
use mio::event::Event;
use mio::{Interest, Token};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::ops::Range;
use std::sync::Arc;
use wsbench_schema::{DialLoad, latency_histogram, metric};

/// How often attempts are looked through for those whose time is up.
const SWEEP_NS: u64 = 10_000_000;
/// Before any time, but not before that of an event which has none (0).
const AT_ONCE_NS: u64 = 1;

/// One shard's dials.
pub struct Connect {
    route: Arc<Route>,
    /// Number of the shard's first connection among all of the client.
    first_number: u32,
    seed: u64,
    concurrency: u32,
    timeout_ns: u64,
    retries: u32,
    retry_interval_ns: u64,
    /// The slots whose connections are still to be dialled for the first time.
    slots: Range<SlotId>,
    planned: u32,
    in_flight: u32,
    /// Attempts in order of their start, so that the oldest is first.
    attempts: VecDeque<(SlotId, u64)>,
    /// Connections to dial again, in order of that time.
    retry: VecDeque<(u64, SlotId)>,
    wake_at_ns: u64,
    latency: Histogram<u64>,
    succeeded: u64,
    lost: Causes,
    failed: Causes,
    retried: Causes,
    last_success_ns: u64,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Connect {
    /// A dial for each of `slots`, of which `concurrency` are in flight at once.
    #[must_use]
    pub fn new(
        route: Arc<Route>,
        load: &DialLoad,
        slots: Range<SlotId>,
        first_number: u32,
        concurrency: u32,
        seed: u64,
    ) -> Self {
        Self {
            route,
            first_number,
            seed,
            concurrency,
            timeout_ns: load.timeout_ms.saturating_mul(1_000_000),
            retries: load.retries,
            retry_interval_ns: load.retry_interval_ms.saturating_mul(1_000_000),
            planned: slots.len() as u32,
            slots,
            in_flight: 0,
            attempts: VecDeque::new(),
            retry: VecDeque::new(),
            wake_at_ns: u64::MAX,
            latency: latency_histogram(),
            succeeded: 0,
            lost: Causes::default(),
            failed: Causes::default(),
            retried: Causes::default(),
            last_success_ns: 0,
            request: Vec::new(),
            answer: vec![0; ANSWER_MAX_BYTES],
        }
    }

    /// A nonce that differs for every attempt of every connection, and the template
    /// with which the connection begins.
    fn attempt<O>(&self, slot: &Slot<O>, id: SlotId) -> (u64, u32) {
        let number = u64::from(self.first_number + id);
        let nonce = self
            .seed
            .wrapping_add(number << 16 | u64::from(slot.attempts))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (nonce, slot.next)
    }

    /// Starts dials until enough are in flight.
    fn fill<P: Protocol>(&mut self, net: &mut Net<P>, now: u64) {
        while self.in_flight < self.concurrency {
            let id = match self.retry.front() {
                Some((due, _)) if *due <= now => match self.retry.pop_front() {
                    Some((_, id)) => id,
                    None => return,
                },
                _ => match self.slots.next() {
                    Some(id) => id,
                    None => return,
                },
            };
            self.dial(net, id);
        }
    }

    fn dial<P: Protocol>(&mut self, net: &mut Net<P>, id: SlotId) {
        let began = now_ns();
        self.in_flight += 1;
        let connected = self
            .route
            .connect(self.first_number + id)
            .and_then(|mut stream| {
                let interest = Interest::READABLE | Interest::WRITABLE;
                net.registry
                    .register(&mut stream, Token(id as usize), interest)?;
                Ok(stream)
            });
        let slot = net.slot(id);
        slot.since_ns = began;
        match connected {
            Ok(stream) => {
                slot.stream = Some(stream);
                slot.state = State::Connecting;
                self.attempts.push_back((id, began));
            }
            Err(error) => self.attempt_failed(net, id, Cause::of(&error)),
        }
    }

    /// An attempt is over without success: again, or never.
    fn attempt_failed<P: Protocol>(&mut self, net: &mut Net<P>, id: SlotId, cause: Cause) {
        self.in_flight -= 1;
        let slot = net.slot(id);
        slot.stream = None;
        // What came behind the handshake of this attempt is not of the next one.
        (slot.aside, slot.odd) = (None, None);
        if u32::from(slot.attempts) < self.retries {
            slot.attempts = slot.attempts.saturating_add(1);
            slot.state = State::Unborn;
            self.retried.add(cause, 1);
            self.retry
                .push_back((now_ns() + self.retry_interval_ns, id));
        } else {
            slot.state = State::Dead;
            self.failed.add(cause, 1);
        }
    }

    /// The socket is connected or `connect` failed: sends the request.
    fn connected<P: Protocol>(
        &mut self,
        net: &mut Net<P>,
        id: SlotId,
        failed: bool,
    ) -> Result<(), Cause> {
        let (nonce, first) = self.attempt(net.slot(id), id);
        let port = self.route.destination(self.first_number + id).port();
        self.request.clear();
        net.protocol.request(nonce, first, port, &mut self.request);
        let slot = net.slot(id);
        let Some(stream) = slot.stream.as_mut() else {
            return Err(Cause::Io);
        };
        if failed && let Some(error) = stream.take_error().map_err(|error| Cause::of(&error))? {
            return Err(Cause::of(&error));
        }
        match stream.write(&self.request) {
            // The buffer of a new socket holds any request.
            Ok(written) if written < self.request.len() => Err(Cause::NoMemory),
            Ok(written) => {
                slot.state = State::Handshaking;
                net.sent_bytes += written as u64;
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(Cause::of(&error)),
        }
    }

    /// Reads the answer to the request. True once it is whole and right.
    fn answered<P: Protocol>(&mut self, net: &mut Net<P>, id: SlotId) -> Result<bool, Cause> {
        let (nonce, first) = self.attempt(net.slot(id), id);
        loop {
            let slot = net.slot(id);
            let Some(stream) = slot.stream.as_mut() else {
                return Err(Cause::Io);
            };
            let before = slot.aside.as_ref().map_or(0, |aside| aside.answer.len());
            if before == self.answer.len() {
                return Err(Cause::HandshakeMalformed);
            }
            let read = match stream.read(&mut self.answer[before..]) {
                Ok(0) => return Err(Cause::Closed),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(Cause::of(&error)),
            };
            if let Some(aside) = &slot.aside {
                self.answer[..before].copy_from_slice(&aside.answer);
            }
            net.received_bytes += read as u64;
            let answer = &self.answer[..before + read];
            match net.protocol.welcome(nonce, first, answer) {
                Welcome::Rejected(cause) => return Err(cause),
                Welcome::Partial => {
                    net.slot(id).aside.get_or_insert_default().answer = answer.to_vec();
                }
                Welcome::Accepted(length) => {
                    let slot = net.slot(id);
                    slot.aside = None;
                    slot.state = State::Open;
                    net.open += 1;
                    if before + read == self.answer.len() {
                        net.read_again(id);
                    }
                    if let Some(cause) = net.take_early(id, &answer[length..]) {
                        net.open -= 1;
                        return Err(cause);
                    }
                    return Ok(true);
                }
            }
        }
    }

    fn step<P: Protocol>(
        &mut self,
        net: &mut Net<P>,
        id: SlotId,
        event: &Event,
    ) -> Result<bool, Cause> {
        if net.slot(id).state == State::Connecting {
            if !event.is_writable() && !event.is_error() {
                return Ok(false);
            }
            self.connected(net, id, event.is_error())?;
        }
        if net.slot(id).state == State::Handshaking && event.is_readable() {
            return self.answered(net, id);
        }
        Ok(false)
    }

    /// Fails the attempts whose time is up.
    fn sweep<P: Protocol>(&mut self, net: &mut Net<P>, now: u64) {
        while let Some(&(id, began)) = self.attempts.front() {
            let slot = net.slot(id);
            let ours = slot.since_ns == began
                && matches!(slot.state, State::Connecting | State::Handshaking);
            if ours && now.saturating_sub(began) < self.timeout_ns {
                return;
            }
            self.attempts.pop_front();
            if ours {
                self.attempt_failed(net, id, Cause::TimedOut);
            }
        }
    }
}

impl<P: Protocol> Workload<P> for Connect {
    fn begin(&mut self, net: &mut Net<P>) {
        let now = now_ns();
        self.wake_at_ns = now + SWEEP_NS;
        self.fill(net, now);
    }

    fn answered(&mut self, _net: &mut Net<P>, _id: SlotId, _count: u32, _now_ns: u64) {
        // Nothing is awaited while dialling: any message is a fault.
    }

    fn dropped(&mut self, _net: &mut Net<P>, _id: SlotId, _in_flight: u32, cause: Cause) {
        // It was established, so it stays a success of dialling, and it is lost.
        self.lost.add(cause, 1);
    }

    fn dialling(&mut self, net: &mut Net<P>, id: SlotId, event: &Event) {
        match self.step(net, id, event) {
            Ok(false) => return,
            Ok(true) => {
                let now = now_ns();
                self.in_flight -= 1;
                self.succeeded += 1;
                self.last_success_ns = now;
                self.latency.saturating_record(now - net.slot(id).since_ns);
                // If the peer has closed behind its answer, no other event tells.
                if event.is_read_closed()
                    && let Reading::Fault(_, _, cause) = net.read(id, true)
                {
                    net.close(id);
                    self.lost.add(cause, 1);
                }
            }
            Err(cause) => self.attempt_failed(net, id, cause),
        }
        // Others are dialled when all events at hand have had their turn: a burst of
        // connects wakes the server's accepting threads once and not each time.
        self.wake_at_ns = AT_ONCE_NS;
    }

    fn wake_at_ns(&self) -> u64 {
        self.wake_at_ns
    }

    fn tick(&mut self, net: &mut Net<P>, now_ns: u64) {
        self.wake_at_ns = now_ns + SWEEP_NS;
        self.sweep(net, now_ns);
        self.fill(net, now_ns);
    }

    fn is_done(&self) -> bool {
        self.in_flight == 0 && self.slots.is_empty() && self.retry.is_empty()
    }

    fn planned(&self) -> u64 {
        self.planned.into()
    }

    fn progress(&self) -> (u64, u64) {
        (self.succeeded, self.failed.total())
    }

    fn outcome(self) -> Outcome {
        let mut outcome = Outcome {
            last_success_ns: self.last_success_ns,
            ..Outcome::default()
        };
        outcome.count(metric::PLANNED, self.planned.into());
        outcome.count(metric::SUCCEEDED, self.succeeded);
        outcome.losses(&self.lost);
        outcome.count(metric::RETRIED, self.retried.total());
        for (cause, count) in self.retried.iter() {
            outcome.count(metric::retried_by(&cause.name()), count);
        }
        outcome.failures(&self.failed);
        outcome
            .histograms
            .insert(metric::DIAL_LATENCY, self.latency);
        outcome
    }
}
