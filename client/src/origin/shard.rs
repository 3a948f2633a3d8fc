//! The loop of one thread of an origin.

use super::peer::{Peer, Scratch, Turn};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token, Waker};
use socket2::SockRef;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::TcpStream as Accepted;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

const EVENTS_AT_ONCE: usize = 1024;
/// How long a connection may linger.
const LINGER: Duration = Duration::from_secs(1);
const WAKER: Token = Token(usize::MAX);

/// One thread's connections.
pub struct Shard {
    poll: Poll,
    waker: Arc<Waker>,
    inlet: Receiver<Accepted>,
    peers: Vec<Option<Peer>>,
    free: Vec<usize>,
    /// Those that have more to do although no event will tell.
    restless: Vec<usize>,
    /// Those that linger, and until when; the first is first.
    lingering: VecDeque<(Instant, usize)>,
    scratch: Scratch,
    nodelay: bool,
}

impl Shard {
    /// Without connections; they come by the inlet, after a wake-up.
    pub fn new(inlet: Receiver<Accepted>) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        Ok(Self {
            poll,
            waker,
            inlet,
            peers: Vec::new(),
            free: Vec::new(),
            restless: Vec::new(),
            lingering: VecDeque::new(),
            scratch: Scratch::default(),
            nodelay: true,
        })
    }

    /// Whether connections get `TCP_NODELAY`; they do if nothing is said.
    pub fn set_nodelay(&mut self, nodelay: bool) {
        self.nodelay = nodelay;
    }

    /// Wakes it.
    pub fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// Serves until `ended`.
    pub fn serve(mut self, ended: &AtomicBool) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS_AT_ONCE);
        while !ended.load(Ordering::Relaxed) {
            let restless = std::mem::take(&mut self.restless);
            let calm = self.end_of_lingering();
            let timeout = match restless.is_empty() {
                true => calm,
                false => Some(Duration::ZERO),
            };
            match self.poll.poll(&mut events, timeout) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {
                    self.restless = restless;
                    continue;
                }
                result => result?,
            }
            for event in &events {
                match event.token() {
                    WAKER => self.take_in(),
                    Token(index) => self.turn(index),
                }
            }
            for index in restless {
                if let Some(Some(peer)) = self.peers.get_mut(index) {
                    peer.is_restless = false;
                }
                self.turn(index);
            }
        }
        Ok(())
    }

    /// Closes those that have lingered long enough. How long the next one may.
    fn end_of_lingering(&mut self) -> Option<Duration> {
        while let Some((until, index)) = self.lingering.front().copied() {
            let left = until.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                return Some(left);
            }
            self.lingering.pop_front();
            // It may have gone by itself, and its place been taken by another.
            let peer = self.peers.get(index).and_then(Option::as_ref);
            if peer.is_some_and(Peer::lingers) {
                self.forget(index);
            }
        }
        None
    }

    /// Takes the connections that were handed over.
    fn take_in(&mut self) {
        while let Ok(stream) = self.inlet.try_recv() {
            let mut stream = TcpStream::from_std(stream);
            let index = self.free.pop().unwrap_or(self.peers.len());
            let interest = Interest::READABLE | Interest::WRITABLE;
            let registered = stream.set_nodelay(self.nodelay).and_then(|()| {
                self.poll
                    .registry()
                    .register(&mut stream, Token(index), interest)
            });
            // One that is gone already is closed by being dropped.
            let peer = registered.is_ok().then(|| Peer::new(stream));
            match self.peers.get_mut(index) {
                Some(place) => *place = peer,
                None => self.peers.push(peer),
            }
            match self.peers[index] {
                // What it sent before it was registered comes as an event.
                Some(_) => {}
                None => self.free.push(index),
            }
        }
    }

    /// Does what can be done on a connection.
    fn turn(&mut self, index: usize) {
        let Some(peer) = self.peers.get_mut(index).and_then(Option::as_mut) else {
            return;
        };
        match peer.turn(&mut self.scratch) {
            Turn::Waits => return,
            Turn::Restless => {
                if !std::mem::replace(&mut peer.is_restless, true) {
                    self.restless.push(index);
                }
                return;
            }
            Turn::Lingers => {
                self.lingering.push_back((Instant::now() + LINGER, index));
                return;
            }
            Turn::Done => {}
            Turn::Reset => {
                let linger = Some(Duration::ZERO);
                // Refused only by a socket that is gone, which needs no reset.
                let _ = SockRef::from(peer.stream()).set_linger(linger);
            }
        }
        self.forget(index);
    }

    /// Closes a connection.
    fn forget(&mut self, index: usize) {
        if let Some(peer) = self.peers[index].take() {
            peer.give_back(&mut self.scratch);
            self.free.push(index);
        }
    }
}
