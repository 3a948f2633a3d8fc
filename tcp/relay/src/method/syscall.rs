//! `read` and `write` of the C library, on epoll.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

use crate::epoll;
use crate::epoll::buffered::{Buffered, Calls};
use crate::method::{Files, Method};
use crate::relay::Relay;

pub const METHOD: Method = Method {
    name: "syscall",
    about: "read and write of the C library, on epoll",
    files: Files::Sockets,
    run,
};

fn run(relay: &'static Relay) -> io::Result<()> {
    epoll::run(relay, || Buffered::<ReadWrite>::new(relay.buffer_bytes))
}

struct ReadWrite;

impl Calls for ReadWrite {
    fn read(source: BorrowedFd<'_>, buffer: &mut Vec<u8>) -> Result<usize, Errno> {
        let room = buffer.spare_capacity_mut();
        // SAFETY: the kernel writes to the room of the buffer, and not behind it.
        let length =
            unsafe { libc::read(source.as_raw_fd(), room.as_mut_ptr().cast(), room.len()) };
        let length = result(length)?;
        // SAFETY: so many bytes of the room have just been written to.
        unsafe { buffer.set_len(buffer.len() + length) };
        Ok(length)
    }

    fn write(destination: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
        // SAFETY: the kernel only reads the bytes.
        result(unsafe { libc::write(destination.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) })
    }
}

fn result(length: isize) -> Result<usize, Errno> {
    usize::try_from(length)
        .map_err(|_| Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
}
