//! Echo server on tungstenite over mio: an edge-triggered loop a thread, driven by hand.
//!
//! A thread a port accepts and deals the connections round over the loops. With
//! SO_REUSEPORT the kernel would deal by a hash, which gives few connections
//! unevenly to the loops.

mod connection;
mod event_loop;
mod socket;

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use tungstenite::protocol::WebSocketConfig;
use wsbench_server_kit::{Options, Result, accept_forever, complain, run, subject};

use crate::event_loop::{EventLoop, Inbox};

/// What tungstenite's documentation advises for many connections. Its default of
/// 128 KiB is allocated for every one, and zeroed for every read.
const READ_BUFFER_BYTES: usize = 4 << 10;

fn main() -> ExitCode {
    run(subject!("tungstenite"), serve)
}

fn serve(options: &Options) -> Result<()> {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .max_message_size(Some(options.max_message))
        .max_frame_size(Some(options.max_message));
    let listeners = options.listen()?;
    let (ended, first_ended) = mpsc::channel();
    let mut inboxes = Vec::new();
    for _ in 0..options.threads {
        let (event_loop, inbox) = EventLoop::new(config)?;
        inboxes.push(inbox);
        let ended = ended.clone();
        thread::Builder::new().spawn(move || ended.send(event_loop.run()))?;
    }
    let (inboxes, accepted): (Arc<[Inbox]>, _) = (inboxes.into(), Arc::new(AtomicUsize::new(0)));
    let nodelay = options.nodelay;
    for listener in listeners {
        let (inboxes, accepted) = (inboxes.clone(), accepted.clone());
        thread::Builder::new().spawn(move || {
            accept_forever(&listener, |stream, _| {
                let turn = accepted.fetch_add(1, Ordering::Relaxed);
                let handed_on = stream
                    .set_nonblocking(true)
                    .and_then(|()| stream.set_nodelay(nodelay))
                    .and_then(|()| inboxes[turn % inboxes.len()].put(stream));
                if let Err(error) = handed_on {
                    complain(format_args!(
                        "cannot serve a connection: {error} (closed it)"
                    ));
                }
            })
        })?;
    }
    // A loop ends only when epoll fails; half a server must not stay up then.
    first_ended.recv()??;
    Ok(())
}
