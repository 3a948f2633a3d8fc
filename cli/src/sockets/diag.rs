//! Sockets of some local ports, asked of the kernel through `sock_diag`
//! (sock_diag(7)): it looks through all sockets itself and tells only those that are
//! meant, where `/proc/net/tcp` is a line of text for every socket of the machine.

use super::{Socket, TIME_WAIT};
use anyhow::{Context as _, bail};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::ControlFlow;
use wsbench_schema::PortRange;

// Of linux/netlink.h, linux/sock_diag.h and linux/inet_diag.h.
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
const INET_DIAG_REQ_BYTECODE: u16 = 1;
const INET_DIAG_BC_S_GE: u8 = 2;
const INET_DIAG_BC_S_LE: u8 = 3;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;

const HEADER_BYTES: usize = 16;
const REQUEST_BYTES: usize = 56;
/// A header and four instructions of four bytes.
const FILTER_BYTES: usize = 4 + 4 * 4;
/// `struct inet_diag_msg`.
const ANSWER_BYTES: usize = 72;
/// All states that there are, but for TIME_WAIT.
const ALIVE: u32 = 0x1ffe & !(1 << TIME_WAIT);

/// Gives the sockets of these local ports to `look` until it breaks, TIME_WAIT apart.
/// False if this kernel cannot be asked.
pub fn each_alive(
    ports: PortRange,
    look: &mut dyn FnMut(Socket) -> ControlFlow<()>,
) -> anyhow::Result<bool> {
    for family in [AF_INET, AF_INET6] {
        let kernel = socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        );
        let kernel = match kernel {
            Ok(kernel) => kernel,
            Err(Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT) => return Ok(false),
            Err(error) => return Err(error).context("cannot open a socket to the kernel"),
        };
        let request = request(family, ports);
        sendto(
            &kernel,
            &request,
            SendFlags::empty(),
            &SocketAddrNetlink::new(0, 0),
        )
        .context("cannot ask the kernel for its sockets")?;
        match answers(&kernel, look)? {
            End::Done => {}
            End::Broken => return Ok(true),
            // A module that is not there, or a family that this kernel lacks.
            End::Refused if family == AF_INET => return Ok(false),
            End::Refused => {}
        }
    }
    Ok(true)
}

/// How a list ended.
enum End {
    Done,
    Broken,
    Refused,
}

fn answers(
    kernel: &OwnedFd,
    look: &mut dyn FnMut(Socket) -> ControlFlow<()>,
) -> anyhow::Result<End> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let (length, _) = match recv(kernel, buffer.as_mut_slice(), RecvFlags::empty()) {
            Err(Errno::INTR) => continue,
            read => read.context("cannot read the kernel's sockets")?,
        };
        let mut rest = &buffer[..length];
        while let Some((kind, body, next)) = message(rest) {
            match kind {
                NLMSG_DONE => return Ok(End::Done),
                NLMSG_ERROR => {
                    let code = body
                        .first_chunk()
                        .map_or(0, |code| i32::from_ne_bytes(*code));
                    return match Errno::from_raw_os_error(-code) {
                        Errno::NOENT | Errno::OPNOTSUPP | Errno::AFNOSUPPORT => Ok(End::Refused),
                        error => Err(error).context("the kernel does not tell its sockets"),
                    };
                }
                _ => {
                    let Some(socket) = socket(body) else {
                        bail!("the kernel's answer about its sockets is of an unknown form");
                    };
                    if look(socket).is_break() {
                        return Ok(End::Broken);
                    }
                }
            }
            rest = next;
        }
        if length < HEADER_BYTES {
            bail!("the kernel's answer about its sockets was cut off");
        }
    }
}

/// Type and body of the first message, and what is behind it.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::try_from(u32::from_ne_bytes(*bytes.first_chunk()?)).ok()?;
    let kind = u16::from_ne_bytes([*bytes.get(4)?, *bytes.get(5)?]);
    let body = bytes.get(HEADER_BYTES..length)?;
    let next = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((kind, body, next))
}

fn socket(body: &[u8]) -> Option<Socket> {
    let body: &[u8; ANSWER_BYTES] = body.first_chunk()?;
    let end = |port: &[u8], address: &[u8]| {
        let ip = match body[0] {
            AF_INET => IpAddr::V4(Ipv4Addr::from(*address.first_chunk::<4>()?)),
            AF_INET6 => IpAddr::V6(Ipv6Addr::from(*address.first_chunk::<16>()?)),
            _ => return None,
        };
        let port = u16::from_be_bytes(*port.first_chunk()?);
        Some(SocketAddr::new(ip, port))
    };
    let inode = u32::from_ne_bytes(body[68..72].try_into().ok()?);
    Some(Socket {
        local: end(&body[4..6], &body[8..24])?,
        remote: end(&body[6..8], &body[24..40])?,
        state: body[1],
        inode: inode.into(),
    })
}

fn request(family: u8, ports: PortRange) -> Vec<u8> {
    let mut request = Vec::new();
    let length = (HEADER_BYTES + REQUEST_BYTES + FILTER_BYTES) as u32;
    request.extend(length.to_ne_bytes());
    request.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request.extend(DUMP.to_ne_bytes());
    request.extend([0; 8]);
    request.extend([family, IPPROTO_TCP, 0, 0]);
    request.extend(ALIVE.to_ne_bytes());
    request.resize(HEADER_BYTES + REQUEST_BYTES, 0);
    request.extend((FILTER_BYTES as u16).to_ne_bytes());
    request.extend(INET_DIAG_REQ_BYTECODE.to_ne_bytes());
    // Where to go on if it holds, and where if not: past the end means no.
    let mut instruction = |code: u8, yes: u8, no: u16| {
        request.extend([code, yes]);
        request.extend(no.to_ne_bytes());
    };
    instruction(INET_DIAG_BC_S_GE, 8, 20);
    instruction(0, 0, ports.first);
    instruction(INET_DIAG_BC_S_LE, 8, 12);
    instruction(0, 0, ports.last);
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_answer_is_none() {
        assert!(message(&[]).is_none());
        assert!(message(&[200, 0, 0, 0, 20, 0, 0, 0]).is_none());
        assert_eq!(socket(&[AF_INET; 71]), None);
        assert_eq!(socket(&[99; 72]), None);
    }
}
