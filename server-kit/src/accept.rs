//! Accepting without dying and without spinning when the process is out of files.

use std::fmt::Arguments;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long not to accept when the machine has nothing to give.
const PAUSE: Duration = Duration::from_millis(50);

/// Accepts on a blocking listener for ever and hands each connection on.
pub fn accept_forever(
    listener: &TcpListener,
    mut connection: impl FnMut(TcpStream, SocketAddr),
) -> ! {
    loop {
        match listener.accept() {
            Ok((stream, peer)) => connection(stream, peer),
            Err(error) => {
                if let Some(pause) = pause_after_accept_error(&error) {
                    thread::sleep(pause);
                }
            }
        }
    }
}

/// How long to wait after `accept` failed: not at all when only that one
/// connection was lost, a moment when the process or the machine is out of files
/// or memory, which is also said.
pub fn pause_after_accept_error(error: &io::Error) -> Option<Duration> {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    if matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    ) {
        return None;
    }
    complain(format_args!(
        "cannot accept: {error} (connections wait; limit of open files: ulimit -n)"
    ));
    Some(PAUSE)
}

/// Says on stderr that connections are refused, at most once a second: what goes
/// wrong for one goes wrong for thousands.
pub fn complain(message: Arguments<'_>) {
    static LAST_SAID_S: AtomicU64 = AtomicU64::new(0);
    let now_s = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    if LAST_SAID_S.swap(now_s, Ordering::Relaxed) != now_s {
        eprintln!("{message}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_connection_is_no_reason_to_wait() {
        assert_eq!(
            pause_after_accept_error(&io::ErrorKind::ConnectionAborted.into()),
            None
        );
        assert_eq!(
            pause_after_accept_error(&io::ErrorKind::Interrupted.into()),
            None
        );
    }

    #[test]
    fn running_out_of_files_is() {
        let emfile = io::Error::from(rustix::io::Errno::MFILE);
        assert_eq!(pause_after_accept_error(&emfile), Some(PAUSE));
    }
}
