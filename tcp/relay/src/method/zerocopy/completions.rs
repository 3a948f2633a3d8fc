//! The error queue of a socket, on which the kernel tells of sends that have completed.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Of `linux/errqueue.h`.
const ORIGIN_ZEROCOPY: u8 = 5;
const CODE_ZEROCOPY_COPIED: u8 = 1;

/// The numbers of sends that have completed: a socket's first has number 0, those that
/// failed have none, and after 2^32 they begin again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completed {
    first: u32,
    last: u32,
    /// The kernel could not do without a copy.
    pub copied: bool,
}

impl Completed {
    pub fn numbers(self) -> impl Iterator<Item = u32> {
        let count = self.last.wrapping_sub(self.first);
        (0..=count).map(move |nth| self.first.wrapping_add(nth))
    }
}

/// Makes a socket tell of completions.
pub fn ask_for_them(socket: BorrowedFd<'_>) -> io::Result<()> {
    let yes: libc::c_int = 1;
    let length = size_of_val(&yes) as libc::socklen_t;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_ZEROCOPY);
    let (fd, value) = (socket.as_raw_fd(), (&raw const yes).cast());
    // SAFETY: the option is an int.
    match unsafe { libc::setsockopt(fd, level, name, value, length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The next of the queue; `None` when it is empty.
pub fn next(socket: BorrowedFd<'_>) -> io::Result<Option<Completed>> {
    // One message, of at most a header, an extended error and the address of who erred.
    let mut control = [0_u64; 16];
    // SAFETY: a header of zeros is one without name, bytes and control data.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(&control) as _;
    let (fd, flags) = (socket.as_raw_fd(), libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT);
    // SAFETY: there is room for so much control data, and for nothing else.
    if unsafe { libc::recvmsg(fd, &raw mut header, flags) } < 0 {
        return match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            error => Err(error),
        };
    }
    completed(&control).map(Some)
}

/// Reads a `cmsghdr` (length, level, type) with its `sock_extended_err` (errno, then
/// bytes of origin, type and code, then the two numbers).
fn completed(control: &[u64; 16]) -> io::Result<Completed> {
    let [level, kind] = halves(control[1]);
    let [errno, _] = halves(control[2]);
    let [_, _, _, _, origin, _, code, _] = control[2].to_ne_bytes();
    let [first, last] = halves(control[3]);
    let kind = (level.cast_signed(), kind.cast_signed());
    let is_error =
        kind == (libc::SOL_IP, libc::IP_RECVERR) || kind == (libc::SOL_IPV6, libc::IPV6_RECVERR);
    if !is_error || origin != ORIGIN_ZEROCOPY {
        return Err(io::Error::from_raw_os_error(errno.cast_signed()));
    }
    let copied = code & CODE_ZEROCOPY_COPIED != 0;
    Ok(Completed {
        first,
        last,
        copied,
    })
}

/// The two words of 32 bits, in the order in which they lie in memory.
fn halves(word: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    [
        u32::from_ne_bytes([a, b, c, d]),
        u32::from_ne_bytes([e, f, g, h]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(origin: u8, code: u8, first: u32, last: u32) -> [u64; 16] {
        let kind = u64::from(libc::SOL_IP as u32) | u64::from(libc::IP_RECVERR as u32) << 32;
        let error = u64::from(origin) << 32 | u64::from(code) << 48;
        let mut control = [0; 16];
        control[..4].copy_from_slice(&[32, kind, error, u64::from(first) | u64::from(last) << 32]);
        control
    }

    #[test]
    fn a_completion_has_a_range_of_numbers_that_may_go_round() {
        let origin = ORIGIN_ZEROCOPY;
        let completed = completed(&control(origin, 0, u32::MAX - 1, 1)).unwrap();
        assert!(!completed.copied);
        let numbers: Vec<u32> = completed.numbers().collect();
        assert_eq!(numbers, [u32::MAX - 1, u32::MAX, 0, 1]);
    }

    #[test]
    fn a_completion_says_whether_it_was_copied() {
        let (origin, copied) = (ORIGIN_ZEROCOPY, CODE_ZEROCOPY_COPIED);
        let completed = completed(&control(origin, copied, 7, 7)).unwrap();
        assert!(completed.copied);
        assert_eq!(completed.numbers().collect::<Vec<_>>(), [7]);
    }

    #[test]
    fn what_is_no_completion_is_an_error() {
        assert!(completed(&control(libc::SO_EE_ORIGIN_ICMP, 0, 0, 0)).is_err());
    }
}
