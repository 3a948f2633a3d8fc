//! The kernel redirects what one socket receives into the other: BPF's sockmap. Bytes
//! never come to user space, which watches for the ends of streams, and for
//! destinations that are slower than their sources.
//!
//! What user space must see to, as the kernel does not:
//!
//! - A socket's program runs when bytes arrive, so bytes that were there before it was
//!   added would wait for the next: [`wake`] has it run at once.
//! - It runs on a socket only after its destination can be found, so none is dropped.
//! - The kernel takes bytes from a source however few its destination takes. After each
//!   [`program::REPORT_BYTES`] the program tells, and a source that is too far ahead has
//!   its program taken away until its destination has caught up. Should this process get
//!   no CPU for so long that the source is [`LIMIT_BYTES`] ahead, then the program itself
//!   stops redirecting, and as it cannot begin again in order, that direction is copied.
//! - An end is handed on after the redirected bytes were written to the destination,
//!   which happens later, in a worker of the kernel.
//! - Only an established socket can be added. One whose peer has ended its stream already
//!   is read and written here.

mod bpf;
mod copy;
mod program;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::sockopt::socket_cookie;
use rustix::net::{Shutdown, shutdown};

use crate::method::{Files, Method};
use crate::relay::Relay;
use crate::watch::{self, Next, Watcher};

use bpf::{Count, Ring, Table, attach_verdict};
use copy::{Copied, Held};
use program::Maps;

pub const METHOD: Method = Method {
    name: "sockmap",
    about: "BPF sockmap: the kernel redirects, no bytes in user space",
    files: Files::Sockets,
    run,
};

/// Sockets of a thread at most: more than a process may have here.
const SOCKETS: u32 = 1 << 15;
/// A source that is so many bytes ahead of what its destination's socket holds is
/// stopped, and goes on when it is no more than a quarter of it ahead.
const AHEAD_BYTES: u64 = 4 * program::REPORT_BYTES;
/// And the program redirects no more than so many bytes ahead of what was known last.
const LIMIT_BYTES: u64 = 8 * AHEAD_BYTES;

fn run(relay: &'static Relay) -> io::Result<()> {
    let redirects = (0..relay.threads).map(|_| Redirect::load(relay.buffer_bytes));
    let redirects: Vec<Redirect> = redirects.collect::<Result<_, _>>().map_err(|error| {
        let remedy = "needs CAP_BPF and CAP_NET_ADMIN, and Linux with CONFIG_BPF_STREAM_PARSER";
        io::Error::new(
            error.kind(),
            format!("cannot use BPF's sockmap: {error} ({remedy})"),
        )
    })?;
    watch::run(relay, redirects)
}

/// What a thread has in the kernel.
struct Redirect {
    /// Where what a socket receives goes, by its cookie.
    targets: bpf::Sockets,
    /// Sockets that the program runs on, by their own cookie.
    sources: bpf::Sockets,
    counts: Table<Count>,
    /// Bytes that it may redirect in all.
    limits: Table<u64>,
    ring: Ring,
    _program: OwnedFd,
    buffer: Vec<u8>,
}

struct Pair {
    /// From the client to the upstream, and back.
    flows: [Flow; 2],
}

/// One direction, which comes from `cookie`.
struct Flow {
    cookie: u64,
    state: State,
    /// What was known of the destination at the last look.
    written: u64,
}

enum State {
    Redirected,
    /// The source is stopped until the destination has caught up.
    Stopped,
    /// The source has ended: so does the destination, when so many bytes were written.
    Ending(u64),
    /// Not redirected any more; copied here when so many bytes were written.
    Leaving(u64),
    Copied(Held),
    Ended,
}

impl Redirect {
    fn load(buffer_bytes: usize) -> io::Result<Self> {
        let targets = bpf::Sockets::new(SOCKETS)?;
        let sources = bpf::Sockets::new(SOCKETS)?;
        let counts = Table::new(SOCKETS)?;
        let limits = Table::new(SOCKETS)?;
        let ring = Ring::new()?;
        let instructions = program::verdict(&Maps {
            counts: &counts.file,
            limits: &limits.file,
            ring: &ring.file,
            targets: &targets.0,
        });
        let program = attach_verdict(&instructions, &sources)?;
        Ok(Self {
            targets,
            sources,
            counts,
            limits,
            ring,
            _program: program,
            buffer: vec![0; buffer_bytes],
        })
    }

    /// Starts a direction: in the kernel, if the sockets are in a state for it.
    fn begin(&self, sockets: &watch::Sockets, side: usize, found: bool) -> io::Result<Flow> {
        let source = sockets.get(side);
        let cookie = socket_cookie(source)?;
        let count = Count {
            bytes: 0,
            token: sockets.token(),
            passes: 0,
        };
        self.counts.insert(cookie, count)?;
        self.limits.insert(cookie, LIMIT_BYTES)?;
        let state = if found && added(self.sources.insert(cookie, source))? {
            wake(source)?;
            State::Redirected
        } else {
            State::Copied(Held::default())
        };
        Ok(Flow {
            cookie,
            state,
            written: 0,
        })
    }

    /// Looks at what a direction waits for.
    fn go_on(
        &mut self,
        sockets: &watch::Sockets,
        side: usize,
        flow: &mut Flow,
    ) -> io::Result<Next> {
        let (source, destination) = (sockets.get(side), sockets.get(1 - side));
        let before = flow.written;
        if !matches!(flow.state, State::Copied(_) | State::Ended) {
            flow.written = written(destination)?;
        }
        let later = Next::Later {
            changed: flow.written != before,
        };
        match &mut flow.state {
            State::Redirected => {
                let count = self.counts.get(flow.cookie)?;
                if count.passes != 0 {
                    flow.state = State::Leaving(count.bytes);
                    return self.go_on(sockets, side, flow);
                }
                if count.bytes.saturating_sub(flow.written) < AHEAD_BYTES {
                    self.limits
                        .insert(flow.cookie, flow.written + LIMIT_BYTES)?;
                    return Ok(Next::Waiting);
                }
                self.sources.remove(flow.cookie)?;
                flow.state = State::Stopped;
                // What it passed before it was taken away can only be read with it.
                if self.counts.get(flow.cookie)?.passes != 0 {
                    self.sources.insert(flow.cookie, source)?;
                    wake(source)?;
                    flow.state = State::Leaving(self.counts.get(flow.cookie)?.bytes);
                }
                Ok(Next::Later { changed: true })
            }
            State::Stopped => {
                let bytes = self.counts.get(flow.cookie)?.bytes;
                if bytes.saturating_sub(flow.written) > AHEAD_BYTES / 4 {
                    return Ok(later);
                }
                self.limits
                    .insert(flow.cookie, flow.written + LIMIT_BYTES)?;
                if added(self.sources.insert(flow.cookie, source))? {
                    flow.state = State::Redirected;
                    wake(source)?;
                    return Ok(Next::Waiting);
                }
                flow.state = State::Leaving(bytes);
                self.go_on(sockets, side, flow)
            }
            State::Ending(bytes) if flow.written >= *bytes => {
                shutdown(destination, Shutdown::Write)?;
                flow.state = State::Ended;
                Ok(Next::Ended)
            }
            State::Leaving(bytes) if flow.written >= *bytes => {
                flow.state = State::Copied(Held::default());
                watch_for_bytes(sockets)?;
                self.go_on(sockets, side, flow)
            }
            State::Ending(_) | State::Leaving(_) => Ok(later),
            State::Copied(held) => match held.copy(source, destination, &mut self.buffer)? {
                Copied::Ended => {
                    shutdown(destination, Shutdown::Write)?;
                    flow.state = State::Ended;
                    Ok(Next::Ended)
                }
                Copied::More => Ok(Next::Again),
                Copied::WouldBlock => Ok(Next::Waiting),
            },
            State::Ended => Ok(Next::Ended),
        }
    }
}

impl Watcher for Redirect {
    type Pair = Pair;

    fn connected(&mut self, sockets: &watch::Sockets) -> io::Result<(Pair, Next)> {
        // First where bytes go, of both, then what makes them go.
        let (client, upstream) = (sockets.get(0), sockets.get(1));
        let up = added(self.targets.insert(socket_cookie(client)?, upstream))?;
        let down = added(self.targets.insert(socket_cookie(upstream)?, client))?;
        let flows = [self.begin(sockets, 0, up)?, self.begin(sockets, 1, down)?];
        if flows
            .iter()
            .any(|flow| matches!(flow.state, State::Copied(_)))
        {
            watch_for_bytes(sockets)?;
        } else {
            sockets.watch(0, EventFlags::RDHUP)?;
            sockets.watch(1, EventFlags::RDHUP)?;
        }
        let mut pair = Pair { flows };
        let next = self.again(&mut pair, sockets)?;
        Ok((pair, next))
    }

    fn event(
        &mut self,
        pair: &mut Pair,
        sockets: &watch::Sockets,
        side: usize,
        flags: EventFlags,
    ) -> io::Result<Next> {
        if flags.contains(EventFlags::ERR) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let flow = &mut pair.flows[side];
        if flags.contains(EventFlags::RDHUP) && matches!(flow.state, State::Redirected) {
            // What came with the end may not have been redirected yet.
            wake(sockets.get(side))?;
            let count = self.counts.get(flow.cookie)?;
            flow.state = match count.passes {
                0 => State::Ending(count.bytes),
                _ => State::Leaving(count.bytes),
            };
        }
        self.again(pair, sockets)
    }

    fn again(&mut self, pair: &mut Pair, sockets: &watch::Sockets) -> io::Result<Next> {
        let [up, down] = &mut pair.flows;
        let next = [self.go_on(sockets, 0, up)?, self.go_on(sockets, 1, down)?];
        // The one that has most to do says when the pair is looked at again.
        let order = [
            Next::Again,
            Next::Later { changed: true },
            Next::Later { changed: false },
            Next::Waiting,
        ];
        let first = order.into_iter().find(|it| next.contains(it));
        Ok(first.unwrap_or(Next::Ended))
    }

    fn release(&mut self, pair: Pair) {
        for flow in pair.flows {
            // The sockets leave their maps by themselves when they are closed.
            let _ = self.counts.remove(flow.cookie);
            let _ = self.limits.remove(flow.cookie);
        }
    }

    fn bell(&self) -> Option<BorrowedFd<'_>> {
        Some(self.ring.file.as_fd())
    }

    fn rung(&mut self, tokens: &mut Vec<u64>) {
        tokens.extend(std::iter::from_fn(|| self.ring.pop()));
    }
}

/// Whether a socket was added to a map: not if it is not established any more.
fn added(result: io::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Has the program run on what a socket has received and not looked at. Nothing else
/// does before more arrives; setting this option, to what it is, tells the socket's
/// owner of all that is there.
fn wake(socket: BorrowedFd<'_>) -> io::Result<()> {
    let one: libc::c_int = 1;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_RCVLOWAT);
    let length = size_of_val(&one) as libc::socklen_t;
    // SAFETY: the option is an int.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const one).cast(),
            length,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Bytes that were ever written to a socket: sent for the first time, or not sent yet.
fn written(socket: BorrowedFd<'_>) -> io::Result<u64> {
    // The offsets of `tcp_info`, of which libc has only the beginning.
    const UNSENT: usize = 144;
    const SENT: usize = 200;
    const SENT_AGAIN: usize = 208;
    let mut info = [0_u8; 256];
    let mut length = info.len() as libc::socklen_t;
    let (level, name) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    // SAFETY: there is room for so many bytes, and they may be anything.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            name,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| info[at + i]));
    let unsent = u32::from_ne_bytes(std::array::from_fn(|i| info[UNSENT + i]));
    Ok(word(SENT) - word(SENT_AGAIN) + u64::from(unsent))
}

/// Is told of what a direction that is copied here needs.
fn watch_for_bytes(sockets: &watch::Sockets) -> io::Result<()> {
    let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP;
    sockets.watch(0, flags)?;
    sockets.watch(1, flags)
}
