//! Accepting, with room for both sockets of a connection before it is accepted.
//!
//! A connection without room for its second socket could only be reset. So the
//! seats are counted, and a client for whom there is none waits in the kernel's
//! queue until another connection has ended.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use rustix::net::{SocketFlags, accept_with};
use wsbench_server_kit::pause_after_accept_error;

use crate::relay::Relay;

/// How many more connections there may be.
pub struct Seats {
    free: Mutex<usize>,
    freed: Condvar,
}

/// One connection's; given back when dropped.
pub struct Seat(&'static Seats);

/// A connection that was accepted.
pub struct Client {
    pub socket: OwnedFd,
    /// Which listener it came in by, from 0 on.
    pub port: usize,
    /// Dropped when the connection's sockets are closed.
    pub seat: Seat,
}

impl Seats {
    pub fn new(seats: usize) -> Self {
        Self {
            free: Mutex::new(seats),
            freed: Condvar::new(),
        }
    }

    /// Takes one, once there is one.
    pub fn take(&'static self) -> Seat {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self
            .freed
            .wait_while(free, |free| *free == 0)
            .unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Seat(self)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}

/// Accepts on every port, each in a thread of its own, and hands clients on.
/// The sockets have `flags`; without any they block.
pub fn accept_on_threads(
    relay: &'static Relay,
    flags: SocketFlags,
    hand_on: impl Fn(Client) + Send + Sync + 'static,
) -> io::Result<()> {
    let hand_on = Arc::new(hand_on);
    for (port, listener) in relay.listeners.iter().enumerate() {
        let hand_on = hand_on.clone();
        let accept = move || {
            let mut seat = relay.seats.take();
            loop {
                match accept_with(listener, flags | SocketFlags::CLOEXEC) {
                    Ok(socket) => {
                        hand_on(Client { socket, port, seat });
                        seat = relay.seats.take();
                    }
                    Err(error) => {
                        if let Some(pause) = pause_after_accept_error(&error.into()) {
                            thread::sleep(pause);
                        }
                    }
                }
            }
        };
        thread::Builder::new().name("accept".into()).spawn(accept)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn who_finds_no_seat_waits_until_one_is_free() {
        let seats: &'static Seats = Box::leak(Box::new(Seats::new(2)));
        let (first, _second) = (seats.take(), seats.take());
        let (sender, seated) = mpsc::channel();
        let waiting = thread::spawn(move || {
            let seat = seats.take();
            sender.send(()).unwrap();
            seat
        });
        assert!(seated.try_recv().is_err());
        drop(first);
        seated.recv().unwrap();
        drop(waiting.join().unwrap());
        seats.take();
    }
}
