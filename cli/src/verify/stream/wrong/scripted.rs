//! A relay or echo server in threads of the test's process, honest but for its fault.

use super::super::Upstream;
use super::super::resources::{Held, Resources};
use super::super::scene::reset;
use super::eagain;
use super::fault::Fault;
use rustix::net::SendFlags;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread;
use std::time::Duration;

const BUFFER_BYTES: usize = 32 << 10;
/// Thousands of threads need little each.
const STACK_BYTES: usize = 128 << 10;
/// For which a write must find no room to be a stall.
const STALL: Duration = Duration::from_millis(5);

/// One that lives as long as the test's process.
pub struct Scripted {
    pub addresses: Vec<SocketAddr>,
    world: Arc<World>,
}

/// What its connections share.
struct World {
    fault: Fault,
    /// `None` of an echo server.
    origins: Option<Vec<SocketAddr>>,
    is_dead: AtomicBool,
    sockets: AtomicUsize,
    pipes: AtomicUsize,
    memory_bytes: AtomicU64,
    served: (Mutex<usize>, Condvar),
    /// For [`Fault::HeadOfLine`].
    line: Mutex<()>,
    /// For [`Fault::KeepsPipe`].
    kept: Mutex<Vec<Vec<u8>>>,
    leaked: Mutex<Vec<TcpStream>>,
}

/// A connection and its other side.
struct Pair {
    near: TcpStream,
    far: TcpStream,
    ends: AtomicUsize,
    has_broken: AtomicBool,
    /// For [`Fault::WayBlocksWay`].
    line: Mutex<()>,
}

impl Scripted {
    pub fn start(fault: Fault, upstream: Option<&Upstream>) -> Self {
        let origins = upstream.map(|upstream| {
            let ports = upstream.ports().iter();
            ports
                .map(|port| SocketAddr::from(([127, 0, 0, 1], port)))
                .collect()
        });
        let world = Arc::new(World {
            fault,
            origins,
            is_dead: AtomicBool::new(false),
            sockets: AtomicUsize::new(0),
            pipes: AtomicUsize::new(0),
            memory_bytes: AtomicU64::new(0),
            served: Default::default(),
            line: Mutex::default(),
            kept: Mutex::default(),
            leaked: Mutex::default(),
        });
        let count = world.origins.as_ref().map_or(1, Vec::len);
        let listeners = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let addresses = listeners.enumerate().map(|(index, listener)| {
            let address = listener.local_addr().unwrap();
            let world = Arc::clone(&world);
            thread::spawn(move || listen(&listener, index, &world));
            address
        });
        let addresses = addresses.collect();
        Self { addresses, world }
    }
}

impl Resources for Scripted {
    fn held(&self) -> anyhow::Result<Held> {
        let world = &self.world;
        Ok(Held {
            sockets: world.sockets.load(SeqCst),
            other_files: world.pipes.load(SeqCst),
            threads: 0,
            rss_bytes: world.memory_bytes.load(SeqCst),
        })
    }
}

fn listen(listener: &TcpListener, index: usize, world: &Arc<World>) {
    for near in listener.incoming().flatten() {
        if world.is_dead.load(SeqCst) {
            return;
        }
        if let Fault::LimitedTo(most) = world.fault {
            let (served, changed) = &world.served;
            let free = changed.wait_while(served.lock().unwrap(), |served| *served >= most);
            drop(free);
        }
        *world.served.0.lock().unwrap() += 1;
        let world = Arc::clone(world);
        let serve = move || {
            world.sockets.fetch_add(2, SeqCst);
            serve(near, index, &world);
            world.sockets.fetch_sub(2, SeqCst);
            *world.served.0.lock().unwrap() -= 1;
            world.served.1.notify_all();
        };
        small_thread(serve);
    }
}

fn small_thread(run: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    let small = thread::Builder::new().stack_size(STACK_BYTES);
    small.spawn(run).unwrap()
}

fn serve(near: TcpStream, index: usize, world: &Arc<World>) {
    if world.fault == Fault::Silent {
        world.leaked.lock().unwrap().push(near);
        return;
    }
    let Some(far) = far_of(&near, index, world) else {
        return;
    };
    near.set_nodelay(true).unwrap();
    far.set_nodelay(true).unwrap();
    match world.fault {
        Fault::LeaksSockets => {
            world.leaked.lock().unwrap().push(near.try_clone().unwrap());
            world.sockets.fetch_add(1, SeqCst);
        }
        Fault::KeepsPipes(most) => {
            let more = |have| (have < most).then_some(have + 2);
            let _ = world.pipes.fetch_update(SeqCst, SeqCst, more);
        }
        Fault::KeepsMemory(bytes) => {
            world.memory_bytes.fetch_add(bytes, SeqCst);
        }
        _ => {}
    }
    let pair = Arc::new(Pair {
        near,
        far,
        ends: AtomicUsize::new(0),
        has_broken: AtomicBool::new(false),
        line: Mutex::default(),
    });
    if world.origins.is_none() {
        carry(&pair, true, world);
        return;
    }
    let back = {
        let (pair, world) = (Arc::clone(&pair), Arc::clone(world));
        move || carry(&pair, false, &world)
    };
    if world.fault == Fault::HalfDuplex {
        carry(&pair, true, world);
        back();
        return;
    }
    let back = small_thread(back);
    carry(&pair, true, world);
    back.join().unwrap();
    if world.fault == Fault::NoSecondFin {
        world
            .leaked
            .lock()
            .unwrap()
            .push(pair.near.try_clone().unwrap());
    }
}

/// The other side of a connection; none if the origin refuses.
fn far_of(near: &TcpStream, index: usize, world: &World) -> Option<TcpStream> {
    let Some(origins) = &world.origins else {
        return near.try_clone().ok();
    };
    if world.fault == Fault::Lazy && near.peek(&mut [0]).unwrap_or(0) == 0 {
        return None;
    }
    let origin = &origins[index];
    let connected = match world.fault {
        Fault::HastyConnect => TcpStream::connect_timeout(origin, Duration::from_millis(100)),
        _ => TcpStream::connect(origin),
    };
    if let Ok(far) = connected {
        return Some(far);
    }
    match world.fault {
        Fault::HoldsRefused => world.leaked.lock().unwrap().push(near.try_clone().unwrap()),
        Fault::FinForReset => {}
        Fault::DiesOnRefusal => world.is_dead.store(true, SeqCst),
        _ => reset(near).unwrap(),
    }
    None
}

/// One direction, to its end.
fn carry(pair: &Arc<Pair>, is_to_far: bool, world: &World) {
    let (from, to) = match is_to_far {
        true => (&pair.near, &pair.far),
        false => (&pair.far, &pair.near),
    };
    let copied = match world.fault {
        Fault::ReadsWithoutBound => unbounded(pair, from, to, world),
        Fault::TrustsEagain => eagain::copy(from, to),
        _ => Copy::new(pair, world).run(from, to),
    };
    let is_second = pair.ends.fetch_add(1, SeqCst) == 1;
    match (copied, world.fault) {
        (Ok(()), Fault::NoFin) => world.leak(pair),
        (Ok(()), Fault::NoSecondFin) if is_second => {}
        (Ok(()), Fault::ResetsAtFin) => _ = reset(to),
        (Ok(()), Fault::ClosesBoth) => {
            let _ = to.shutdown(Shutdown::Both);
            let _ = from.shutdown(Shutdown::Both);
        }
        (Ok(()), _) => _ = to.shutdown(Shutdown::Write),
        (Err(_), fault) => broken(pair, fault, world),
    }
}

fn broken(pair: &Pair, fault: Fault, world: &World) {
    if !pair.has_broken.swap(true, SeqCst) && fault == Fault::LeaksPipes {
        world.pipes.fetch_add(2, SeqCst);
    }
    match fault {
        Fault::IgnoresReset => world.leak(pair),
        Fault::FinForReset => {
            let _ = pair.near.shutdown(Shutdown::Both);
            let _ = pair.far.shutdown(Shutdown::Both);
        }
        fault => {
            if fault == Fault::DiesOnReset {
                world.is_dead.store(true, SeqCst);
            }
            let _ = reset(&pair.near);
            let _ = reset(&pair.far);
        }
    }
}

/// The state of one direction.
struct Copy<'w> {
    pair: &'w Pair,
    world: &'w World,
    done: u64,
    held_back: Option<Vec<u8>>,
    has_erred: bool,
}

impl<'w> Copy<'w> {
    fn new(pair: &'w Pair, world: &'w World) -> Self {
        Self {
            pair,
            world,
            done: 0,
            held_back: None,
            has_erred: false,
        }
    }

    fn run(&mut self, from: &TcpStream, to: &TcpStream) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER_BYTES];
        if self.world.fault == Fault::KeepsPipe {
            let kept = self.world.kept.lock().unwrap().pop();
            self.put(to, &kept.unwrap_or_default())?;
        }
        loop {
            let length = (&mut &*from).read(&mut buffer)?;
            if length == 0 {
                break;
            }
            let bytes = self.faulty(buffer[..length].to_vec());
            self.put(to, &bytes)?;
            self.done += length as u64;
        }
        let rest = self.held_back.take().unwrap_or_default();
        match self.world.fault {
            Fault::LosesLastByte => Ok(()),
            _ => self.put(to, &rest),
        }
    }

    fn faulty(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        match self.world.fault {
            Fault::LosesLastByte => {
                let last = bytes.pop();
                let before = self.held_back.replace(last.into_iter().collect());
                [before.unwrap_or_default(), bytes].concat()
            }
            // Not the first, which says whose bytes they are.
            Fault::SwapsSegments if !self.has_erred && self.done > 0 => {
                match self.held_back.take() {
                    None => {
                        self.held_back = Some(bytes);
                        Vec::new()
                    }
                    Some(before) => {
                        self.has_erred = true;
                        [bytes, before].concat()
                    }
                }
            }
            Fault::Duplicates if !self.has_erred && self.done > 0 => {
                self.has_erred = true;
                bytes.repeat(2)
            }
            Fault::FlipsBehind(bound) if !self.has_erred && self.done > bound => {
                self.has_erred = true;
                bytes[0] ^= 1;
                bytes
            }
            _ => bytes,
        }
    }

    fn put(&self, mut to: &TcpStream, bytes: &[u8]) -> io::Result<()> {
        match self.world.fault {
            Fault::DropsRest => match some(to, bytes)? {
                0 => to.write_all(bytes),
                _ => Ok(()),
            },
            Fault::HangsAfterStall => {
                let before = to.write_timeout()?;
                to.set_write_timeout(Some(STALL))?;
                let written = to.write_all(bytes);
                to.set_write_timeout(before)?;
                if written.is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
                    self.world.hang(to);
                }
                Ok(())
            }
            Fault::HeadOfLine => {
                let _line = self.world.line.lock().unwrap();
                to.write_all(bytes)
            }
            Fault::WayBlocksWay => {
                let _line = self.pair.line.lock().unwrap();
                to.write_all(bytes)
            }
            Fault::KeepsPipe => {
                let mut left = bytes;
                while !left.is_empty() {
                    match to.write(left) {
                        Ok(length) => left = &left[length..],
                        Err(error) => {
                            self.world.kept.lock().unwrap().push(left.to_vec());
                            return Err(error);
                        }
                    }
                }
                Ok(())
            }
            _ => to.write_all(bytes),
        }
    }
}

impl World {
    /// Keeps both ends open.
    fn leak(&self, pair: &Pair) {
        let ends = [&pair.near, &pair.far].map(|end| end.try_clone().unwrap());
        self.leaked.lock().unwrap().extend(ends);
    }

    /// Keeps the connection, and does nothing more for it.
    fn hang(&self, to: &TcpStream) {
        self.leaked.lock().unwrap().push(to.try_clone().unwrap());
        loop {
            thread::park();
        }
    }
}

/// What the socket takes without waiting.
fn some(to: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    match rustix::net::send(to, bytes, SendFlags::DONTWAIT) {
        Ok(length) => Ok(length),
        Err(rustix::io::Errno::AGAIN) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

fn unbounded(
    pair: &Arc<Pair>,
    mut from: &TcpStream,
    to: &TcpStream,
    world: &World,
) -> io::Result<()> {
    let (sender, receiver) = mpsc::channel::<Vec<u8>>();
    let mut writer = to.try_clone()?;
    let pair = Arc::clone(pair);
    let writing = small_thread(move || {
        for bytes in receiver {
            if writer.write_all(&bytes).is_err() {
                let _ = reset(&pair.near);
                let _ = reset(&pair.far);
                return;
            }
        }
    });
    let mut buffer = vec![0; BUFFER_BYTES];
    let read = loop {
        match from.read(&mut buffer) {
            Ok(0) => break Ok(()),
            Ok(length) => {
                world.memory_bytes.fetch_add(length as u64, SeqCst);
                if sender.send(buffer[..length].to_vec()).is_err() {
                    break Ok(());
                }
            }
            Err(error) => break Err(error),
        }
    };
    drop(sender);
    writing.join().unwrap();
    read
}
