//! `std::io::copy` between blocking sockets, a thread a direction.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::thread;

use rustix::net::{SocketFlags, connect_unspec};
use wsbench_server_kit::complain;

use crate::accept::{Client, Seat, accept_on_threads};
use crate::method::{Files, Method};
use crate::relay::{Relay, reset};

pub const METHOD: Method = Method {
    name: "io_copy_direct",
    about: "std::io::copy on blocking sockets, a thread a direction",
    files: Files::Sockets,
    run,
};

/// `std::io::copy` has 8 KiB on the stack. What is not touched takes no memory.
const STACK_BYTES: usize = 64 << 10;

struct Pair {
    client: TcpStream,
    upstream: TcpStream,
    /// Given back after the sockets are closed: fields are dropped in their order.
    _seat: Seat,
}

fn run(relay: &'static Relay) -> io::Result<()> {
    accept_on_threads(relay, SocketFlags::empty(), move |client| {
        if let Err(error) = spawn(move || serve(relay, client)) {
            complain(format_args!(
                "cannot serve a connection: {error} (closed it)"
            ));
        }
    })?;
    loop {
        thread::park();
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = thread::Builder::new().stack_size(STACK_BYTES);
    thread.spawn(work).map(drop)
}

fn serve(relay: &Relay, client: Client) {
    let Ok(upstream) = relay.connect_upstream_blocking(client.port) else {
        reset(client.socket);
        return;
    };
    let pair = Arc::new(Pair {
        client: client.socket.into(),
        upstream,
        _seat: client.seat,
    });
    let down = pair.clone();
    match spawn(move || flow(&down.upstream, &down.client)) {
        Ok(()) => flow(&pair.client, &pair.upstream),
        Err(error) => {
            complain(format_args!(
                "cannot serve a connection: {error} (reset it)"
            ));
            disconnect(&pair.client);
            disconnect(&pair.upstream);
        }
    }
}

fn flow(mut source: &TcpStream, mut destination: &TcpStream) {
    let copied =
        io::copy(&mut source, &mut destination).and_then(|_| destination.shutdown(Shutdown::Write));
    if copied.is_err() {
        // In this order: the other thread reads from the destination, and must find that
        // it cannot pass its end on.
        disconnect(source);
        disconnect(destination);
    }
}

/// Resets a connection that another thread is reading or writing, and wakes that one:
/// closing does neither.
fn disconnect(stream: &TcpStream) {
    if connect_unspec(stream).is_err() {
        // Linux 6.4 to 6.6 do not while another thread waits. The end of it is seen then.
        let _ = stream.shutdown(Shutdown::Both);
    }
}
