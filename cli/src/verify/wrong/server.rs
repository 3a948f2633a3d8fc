//! A server in threads of the test's process, honest but for its lapse.

use super::lapse::Lapse;
use super::session::Session;
use super::upgrade::upgrade;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// One that lives as long as the test's process.
pub struct Scripted {
    pub addr: SocketAddr,
    connections: Arc<AtomicUsize>,
    endless_bytes: Arc<AtomicUsize>,
}

impl Scripted {
    pub fn start(lapse: Lapse) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let endless_bytes = Arc::new(AtomicUsize::new(0));
        let written = Arc::clone(&endless_bytes);
        thread::spawn(move || {
            let dead = Arc::new(AtomicBool::new(false));
            for stream in listener.incoming().flatten() {
                let before = count.fetch_add(1, Ordering::SeqCst);
                let lapse = match lapse {
                    Lapse::SilentAtFirst if before < 2 => Lapse::Silent,
                    Lapse::SilentTwice if before < 4 && before % 2 == 1 => Lapse::Silent,
                    lapse => lapse,
                };
                if dead.load(Ordering::SeqCst) {
                    continue;
                }
                let dead = Arc::clone(&dead);
                let written = Arc::clone(&written);
                let served = thread::spawn(move || serve(stream, lapse, &dead, &written));
                if lapse == Lapse::OneAtATime {
                    let _ = served.join();
                }
            }
        });
        Self {
            addr,
            connections,
            endless_bytes,
        }
    }

    /// So far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// What [`Lapse::Endless`] could write so far.
    pub fn endless_bytes(&self) -> usize {
        self.endless_bytes.load(Ordering::SeqCst)
    }
}

/// Ends when the client is gone or the lapse says so.
fn serve(
    mut stream: TcpStream,
    lapse: Lapse,
    dead: &AtomicBool,
    written: &AtomicUsize,
) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let behind = upgrade(&mut stream, lapse)?;
    if let Lapse::Endless(first, then) = lapse {
        stream.write_all(first).ok()?;
        let then = then.repeat(4096);
        loop {
            stream.write_all(&then).ok()?;
            written.fetch_add(then.len(), Ordering::SeqCst);
        }
    }
    Session::new(stream, lapse, behind).run(dead)
}
