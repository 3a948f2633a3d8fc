//! A TCP relay, or without an upstream a server that sends back what it gets, that goes
//! astray where it is told to, so that tests can check what the harness says about it.
//! Never shipped: an example is built by `cargo test`, and by nothing else.
//!
//! Two threads a connection, blocking, nothing of the harness in it, so that no
//! mistake is shared with what it tests.

use clap::{ArgAction, Parser};
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{process, thread};

/// Bytes on their way to the client are meant, from 0 on. Those of an opening count.
#[derive(Debug, Parser)]
#[command(version)]
struct Switches {
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// One port or FIRST-LAST.
    #[arg(long, value_parser = ports)]
    ports: (u16, u16),
    /// HOST:PORT or HOST:FIRST-LAST.
    #[arg(long, value_parser = upstream)]
    upstream: Option<(String, (u16, u16))>,
    #[arg(long, default_value_t = true, action = ArgAction::Set)]
    nodelay: bool,
    /// Ignored: two threads a connection.
    #[arg(long)]
    threads: Option<u32>,
    /// Ignored.
    #[arg(long)]
    buffer: Option<u32>,
    /// Ignored: nothing is counted.
    #[arg(long)]
    counters: Option<PathBuf>,

    /// Leave out that byte of each connection.
    #[arg(long)]
    lose_at: Option<u64>,
    /// Change places of that byte of each connection and the next.
    #[arg(long)]
    swap_at: Option<u64>,
    /// Exit with code 1 behind so many bytes of all connections.
    #[arg(long)]
    die_after: Option<u64>,
    /// Pass no more on behind so many bytes of all connections.
    #[arg(long)]
    stop_after: Option<u64>,
    /// Accept, and never answer nor connect.
    #[arg(long)]
    never_connect: bool,
}

fn ports(text: &str) -> Result<(u16, u16), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| text.parse().map_err(|error| format!("{text}: {error}"));
    Ok((port(first)?, port(last)?))
}

fn upstream(text: &str) -> Result<(String, (u16, u16)), String> {
    let (host, range) = text.rsplit_once(':').ok_or("no HOST:PORT")?;
    Ok((host.to_owned(), ports(range)?))
}

/// What goes wrong, and how far all connections have come.
struct Faults {
    switches: Switches,
    passed: AtomicU64,
}

fn main() -> io::Result<()> {
    let switches = Switches::parse();
    let (host, (first, last)) = (switches.host, switches.ports);
    let faults = Arc::new(Faults {
        switches,
        passed: AtomicU64::new(0),
    });
    for (nth, port) in (first..=last).enumerate() {
        let listener = TcpListener::bind((host, port))?;
        rustix::net::listen(&listener, 4096)?;
        let faults = Arc::clone(&faults);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let faults = Arc::clone(&faults);
                // A connection that ends in an error ends; that is all a peer can see of it.
                start(move || drop(serve(client, nth, &faults)));
            }
        });
    }
    loop {
        thread::park();
    }
}

fn start(work: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(256 << 10);
    if let Err(error) = thread.spawn(work) {
        eprintln!("relay_astray: {error}");
    }
}

fn serve(client: TcpStream, nth: usize, faults: &Arc<Faults>) -> io::Result<()> {
    client.set_nodelay(faults.switches.nodelay)?;
    if faults.switches.never_connect {
        loop {
            thread::park();
        }
    }
    let client = Arc::new(client);
    let Some((host, (first, last))) = &faults.switches.upstream else {
        copy(&client, &client, Some(faults));
        return Ok(());
    };
    let places = usize::from(last - first) + 1;
    let port = (*first..=*last).nth(nth % places).unwrap_or(*first);
    let upstream = match TcpStream::connect((host.as_str(), port)) {
        Ok(upstream) => Arc::new(upstream),
        Err(error) => {
            disconnect(&client);
            return Err(error);
        }
    };
    upstream.set_nodelay(faults.switches.nodelay)?;
    let (from, to) = (Arc::clone(&client), Arc::clone(&upstream));
    start(move || copy(&from, &to, None));
    copy(&upstream, &client, Some(faults));
    Ok(())
}

/// Until the source ends, which is passed on; an error resets both.
fn copy(mut from: &TcpStream, mut to: &TcpStream, faults: Option<&Arc<Faults>>) {
    let mut buffer = [0; 32 << 10];
    let mut offset = 0;
    let mut step = || -> io::Result<bool> {
        let length = from.read(&mut buffer)?;
        if length == 0 {
            to.shutdown(Shutdown::Write)?;
            return Ok(false);
        }
        let bytes = &mut buffer[..length];
        match faults {
            None => to.write_all(bytes)?,
            Some(faults) => faults.pass(bytes, offset, to)?,
        }
        offset += length as u64;
        Ok(true)
    };
    loop {
        match step() {
            Ok(true) => {}
            Ok(false) => return,
            Err(_) => {
                disconnect(from);
                disconnect(to);
                return;
            }
        }
    }
}

/// Resets it, and wakes the other thread that waits for it.
fn disconnect(stream: &TcpStream) {
    let _ = rustix::net::connect_unspec(stream);
}

impl Faults {
    /// Writes what came at that offset of a connection, but for what goes wrong.
    fn pass(&self, bytes: &mut [u8], offset: u64, mut to: &TcpStream) -> io::Result<()> {
        let switches = &self.switches;
        let within = |at: Option<u64>| {
            let place = at?.checked_sub(offset)?;
            usize::try_from(place).ok().filter(|at| *at < bytes.len())
        };
        let (lost, swapped) = (within(switches.lose_at), within(switches.swap_at));
        if let Some(at) = swapped
            && at + 1 < bytes.len()
        {
            bytes.swap(at, at + 1);
        }
        match lost {
            None => to.write_all(bytes)?,
            Some(at) => {
                to.write_all(&bytes[..at])?;
                to.write_all(&bytes[at + 1..])?;
            }
        }
        let length = bytes.len() as u64;
        let passed = self.passed.fetch_add(length, Ordering::Relaxed) + length;
        let is_over = |most: Option<u64>| most.is_some_and(|most| passed >= most);
        if is_over(switches.die_after) {
            eprintln!("relay_astray: told to die");
            process::exit(1);
        }
        while is_over(switches.stop_after) {
            thread::park();
        }
        Ok(())
    }
}
