//! Why a dial or a message failed. Every failure is counted under exactly one cause.

use std::io;

macro_rules! causes {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)+) => {
        /// Why a dial or a message failed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Cause { $($(#[$doc])* $variant,)+ }

        impl Cause {
            /// Every cause.
            pub const ALL: &[Cause] = &[$(Cause::$variant,)+];

            /// As it stands in the names of metrics.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Cause::$variant => $name,)+ }
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
    /// The handshake was answered with another status than 101.
    HandshakeStatus => "handshake_status",
    /// `Upgrade` or `Connection` is missing or wrong, or something was agreed
    /// to that was not offered.
    HandshakeHeaders => "handshake_headers",
    /// `Sec-WebSocket-Accept` does not fit the key.
    HandshakeAccept => "handshake_accept",
    /// The answer is not an HTTP response, or it is too long.
    HandshakeMalformed => "handshake_malformed",
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
    /// A message came that answers nothing.
    Unexpected => "unexpected",
    /// Control frames came faster than their answers were read.
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

/// A count for each cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Causes([u64; Cause::ALL.len()]);

impl Default for Causes {
    fn default() -> Self {
        Self([0; Cause::ALL.len()])
    }
}

impl Causes {
    /// Counts `count` failures.
    pub fn add(&mut self, cause: Cause, count: u64) {
        self.0[cause as usize] += count;
    }

    /// Adds another's counts.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    /// All failures.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The causes that occurred.
    pub fn iter(&self) -> impl Iterator<Item = (Cause, u64)> {
        Cause::ALL
            .iter()
            .copied()
            .zip(self.0)
            .filter(|(_, count)| *count > 0)
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
        let mut sum = Causes::default();
        sum.merge(&causes);
        sum.merge(&causes);
        assert_eq!(sum.total(), 6);
        assert_eq!(
            sum.iter().collect::<Vec<_>>(),
            [(Cause::Refused, 2), (Cause::Lost, 4)]
        );
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
