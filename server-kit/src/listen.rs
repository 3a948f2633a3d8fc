//! Listening sockets, one a port, with a backlog for thousands of dials at once.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

use crate::options::Options;

/// Connections that may wait to be accepted, a port. The kernel caps it at net.core.somaxconn.
const BACKLOG: i32 = 4096;

/// An address that could not be listened on.
#[derive(Debug)]
pub struct ListenError {
    address: SocketAddr,
    cause: io::Error,
}

impl std::fmt::Display for ListenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { address, cause } = self;
        write!(f, "cannot listen on {address}: {cause}")?;
        match cause.kind() {
            io::ErrorKind::AddrInUse => {
                write!(f, " (see by whom: ss -ltnp 'sport = :{}')", address.port())
            }
            io::ErrorKind::AddrNotAvailable => write!(f, " (no interface has it: ip address)"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for ListenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

impl Options {
    /// Listens on every port. The sockets block, so that a runtime which wants
    /// them otherwise says so.
    ///
    /// # Errors
    /// The first address that could not be listened on; none is kept then.
    pub fn listen(&self) -> Result<Vec<TcpListener>, ListenError> {
        self.addresses().map(listen_on).collect()
    }
}

/// Listens on one address, as [`Options::listen`] does on each.
///
/// # Errors
/// The address and why.
pub fn listen_on(address: SocketAddr) -> Result<TcpListener, ListenError> {
    try_listen(address).map_err(|cause| ListenError { address, cause })
}

fn try_listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    // Connections of an earlier run in TIME_WAIT must not keep the port; another listener does.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(backlog())?;
    Ok(socket.into())
}

/// A machine tuned for more keeps its longer queue.
fn backlog() -> i32 {
    fs::read_to_string("/proc/sys/net/core/somaxconn")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .map_or(BACKLOG, |somaxconn: i32| somaxconn.max(BACKLOG))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[test]
    fn a_port_in_use_is_one_line_with_address_cause_and_remedy() {
        let held = listen_on("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = held.local_addr().unwrap();
        let error = listen_on(address).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!(
                "cannot listen on {address}: Address already in use"
            )),
            "{error}"
        );
        assert!(
            error.ends_with(&format!(
                "(see by whom: ss -ltnp 'sport = :{}')",
                address.port()
            )),
            "{error}"
        );
    }

    #[test]
    fn a_listener_takes_hundreds_of_dials_before_it_accepts_one() {
        let listener = listen_on("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        // std's own backlog is 128 (older) or 4096; beyond it a dial waits a second and more for its SYN to be sent again.
        let dials: Vec<_> = (0..400)
            .map(|_| {
                TcpStream::connect_timeout(&address, std::time::Duration::from_millis(500)).unwrap()
            })
            .collect();
        assert_eq!(dials.len(), 400);
    }
}
