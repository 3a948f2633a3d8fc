//! Why a dial or a message failed or a connection was lost. Each is counted under
//! exactly one cause.

use std::borrow::Cow;
use std::io;

macro_rules! causes {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)+) => {
        /// Why a dial or a message failed or a connection was lost.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Cause {
            $($(#[$doc])* $variant,)+
            /// The handshake was answered with this status instead of 101; 0
            /// stands for all beyond the first few that were seen.
            HandshakeStatus(u16),
        }

        impl Cause {
            /// As it stands in the names of metrics.
            #[must_use]
            pub fn name(self) -> Cow<'static, str> {
                match self {
                    $(Cause::$variant => $name.into(),)+
                    Cause::HandshakeStatus(0) => "handshake_status_other".into(),
                    Cause::HandshakeStatus(status) => format!("handshake_status_{status}").into(),
                }
            }
        }
    };
}

causes! {
    /// Nobody listens, or the listener refused.
    Refused => "refused",
    /// No connection, or no complete handshake, within the dial timeout.
    TimedOut => "timed_out",
    /// The local address is in use.
    AddressInUse => "address_in_use",
    /// No local port is left for this destination.
    AddressNotAvailable => "address_not_available",
    /// No route to the host or network.
    Unreachable => "unreachable",
    /// This process or machine may open no more files.
    TooManyFiles => "too_many_files",
    /// The kernel has no memory for the socket.
    NoMemory => "no_memory",
    /// `Upgrade` or `Connection` is missing or wrong, or something was agreed
    /// to that was not offered.
    HandshakeHeaders => "handshake_headers",
    /// `Sec-WebSocket-Accept` does not fit the key.
    HandshakeAccept => "handshake_accept",
    /// The answer is not an HTTP response, or it is too long.
    HandshakeMalformed => "handshake_malformed",
    /// The opening of a stream did not come back as it was sent.
    WrongOpening => "wrong_opening",
    /// The peer closed the connection: with a close frame or without.
    Closed => "closed",
    /// The peer reset the connection.
    Reset => "reset",
    /// A byte of the payload differs from what was sent.
    WrongPayload => "wrong_payload",
    /// A text message came back as binary or the reverse.
    WrongOpcode => "wrong_opcode",
    /// The message came back longer or shorter than it was sent.
    WrongLength => "wrong_length",
    /// Bytes that RFC 6455 does not allow from a server.
    BadFrame => "bad_frame",
    /// A message, or a byte of a stream, came that answers nothing.
    Unexpected => "unexpected",
    /// Control frames came faster than their answers were read, or the answers
    /// were not read at all.
    Flooded => "flooded",
    /// No answer within the timeout.
    Lost => "lost",
    /// The connection failed, by the cause of another message, while this one
    /// was in flight.
    ConnectionLost => "connection_lost",
    /// Any other error of the operating system.
    Io => "io",
}

impl Cause {
    /// The cause behind an error of a socket.
    #[must_use]
    pub fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Cause::Refused,
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => Cause::Reset,
            io::ErrorKind::BrokenPipe => Cause::Reset,
            io::ErrorKind::TimedOut => Cause::TimedOut,
            io::ErrorKind::AddrInUse => Cause::AddressInUse,
            io::ErrorKind::AddrNotAvailable => Cause::AddressNotAvailable,
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
                Cause::Unreachable
            }
            io::ErrorKind::OutOfMemory => Cause::NoMemory,
            _ => match error
                .raw_os_error()
                .map(rustix::io::Errno::from_raw_os_error)
            {
                Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE) => Cause::TooManyFiles,
                Some(rustix::io::Errno::NOBUFS | rustix::io::Errno::NOMEM) => Cause::NoMemory,
                _ => Cause::Io,
            },
        }
    }
}

/// Statuses that are counted apart: a server may answer each dial with another.
const STATUSES_MAX: usize = 8;

/// A count for each cause that occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    /// In the order in which they were seen first; there are few.
    counts: Vec<(Cause, u64)>,
    total: u64,
}

impl Causes {
    /// Counts `count` failures or losses.
    pub fn add(&mut self, cause: Cause, count: u64) {
        if count == 0 {
            return;
        }
        self.total += count;
        let cause = self.counted_as(cause);
        match self.counts.iter_mut().find(|(seen, _)| *seen == cause) {
            Some((_, so_far)) => *so_far += count,
            None => self.counts.push((cause, count)),
        }
    }

    fn counted_as(&self, cause: Cause) -> Cause {
        let is_status = |cause: &Cause| matches!(cause, Cause::HandshakeStatus(_));
        let seen = || self.counts.iter().map(|(seen, _)| *seen);
        let is_new = is_status(&cause) && seen().all(|seen| seen != cause);
        match is_new && seen().filter(is_status).count() >= STATUSES_MAX {
            true => Cause::HandshakeStatus(0),
            false => cause,
        }
    }

    /// All failures.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The causes that occurred.
    pub fn iter(&self) -> impl Iterator<Item = (Cause, u64)> {
        self.counts.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_counts_under_one_cause() {
        let mut causes = Causes::default();
        causes.add(Cause::Lost, 2);
        causes.add(Cause::Refused, 1);
        causes.add(Cause::Lost, 3);
        causes.add(Cause::Reset, 0);
        assert_eq!(causes.total(), 6);
        assert_eq!(
            causes.iter().collect::<Vec<_>>(),
            [(Cause::Lost, 5), (Cause::Refused, 1)]
        );
    }

    #[test]
    fn a_status_is_told_and_a_server_cannot_fill_the_report_with_them() {
        assert_eq!(Cause::HandshakeStatus(503).name(), "handshake_status_503");
        let mut causes = Causes::default();
        for status in 200..600 {
            causes.add(Cause::HandshakeStatus(status), 1);
            causes.add(Cause::HandshakeStatus(200), 1);
        }
        let counts: Vec<_> = causes.iter().collect();
        assert_eq!(counts[0], (Cause::HandshakeStatus(200), 401));
        assert_eq!(counts.len(), 9);
        let other = (Cause::HandshakeStatus(0), 392);
        assert_eq!((counts[8], causes.total()), (other, 800));
        assert_eq!(other.0.name(), "handshake_status_other");
    }

    #[test]
    fn errors_of_sockets_have_their_cause() {
        let of = |errno: rustix::io::Errno| Cause::of(&errno.into());
        assert_eq!(of(rustix::io::Errno::MFILE), Cause::TooManyFiles);
        assert_eq!(of(rustix::io::Errno::NOBUFS), Cause::NoMemory);
        assert_eq!(
            of(rustix::io::Errno::ADDRNOTAVAIL),
            Cause::AddressNotAvailable
        );
        assert_eq!(of(rustix::io::Errno::CONNREFUSED), Cause::Refused);
        assert_eq!(of(rustix::io::Errno::PIPE), Cause::Reset);
        assert_eq!(of(rustix::io::Errno::INVAL), Cause::Io);
    }
}
