//! The least an echo can cost: one read, the length, unmask in place, one write.
//!
//! One epoll loop a thread. Connections are accepted by a sleeping thread a port
//! and dealt round, so that few connections are spread as evenly as many.

mod frame;
mod handshake;
mod kept;
mod shard;
mod spares;

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use rustix::net::sockopt::set_tcp_nodelay;
use wsbench_server_kit::{Options, Result, accept_forever, run, subject};

use crate::shard::Shard;

fn main() -> ExitCode {
    run(subject!(), serve)
}

fn serve(options: &Options) -> Result<()> {
    let listeners = options.listen()?;
    let shards: Arc<[Shard]> = (0..options.threads)
        .map(|_| Shard::new(options.max_message))
        .collect::<std::io::Result<_>>()?;
    let accepted = Arc::new(AtomicUsize::new(0));
    for listener in listeners {
        // Linux hands it down to every connection accepted here: no system call each.
        set_tcp_nodelay(&listener, options.nodelay)?;
        let (shards, accepted) = (shards.clone(), accepted.clone());
        thread::Builder::new().spawn(move || {
            accept_forever(&listener, |stream, _| {
                let turn = accepted.fetch_add(1, Ordering::Relaxed);
                shards[turn % shards.len()].adopt(stream.into());
            })
        })?;
    }
    let (ended, first_ended) = mpsc::channel();
    for index in 0..shards.len() {
        let (shards, ended) = (shards.clone(), ended.clone());
        thread::Builder::new().spawn(move || ended.send(shards[index].run()))?;
    }
    // A loop ends only when epoll fails; half a server must not stay up then.
    first_ended.recv()??;
    Ok(())
}
