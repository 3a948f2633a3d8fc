//! `recv` and `send` by rustix, without the C library between, on epoll.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::epoll;
use crate::epoll::buffered::{Buffered, Calls};
use crate::method::{Files, Method};
use crate::relay::Relay;

pub const METHOD: Method = Method {
    name: "unix_syscall",
    about: "recv and send by rustix, on epoll",
    files: Files::Sockets,
    run,
};

fn run(relay: &'static Relay) -> io::Result<()> {
    epoll::run(relay, || Buffered::<RecvSend>::new(relay.buffer_bytes))
}

pub struct RecvSend;

impl Calls for RecvSend {
    fn read(source: BorrowedFd<'_>, buffer: &mut Vec<u8>) -> Result<usize, Errno> {
        let (length, _) = recv(source, spare_capacity(buffer), RecvFlags::DONTWAIT)?;
        Ok(length)
    }

    fn write(destination: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
        send(
            destination,
            bytes,
            SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
        )
    }
}
