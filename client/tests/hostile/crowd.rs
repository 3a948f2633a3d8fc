//! A thousand connections to servers of every kind at once. The good ones are
//! served as if they were alone.

use crate::peer::{
    BURST, Peer, Server, all_at_once, burst, case, frame, one_by_one, run, with_timeout,
};
use crate::util::{expect, metric, welcome};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wsbench_schema::{Load, Phase, PhaseReport};

const CONNECTIONS: u64 = 1000;
/// Of each kind.
const EACH: u64 = CONNECTIONS / KINDS.len() as u64;
const PAYLOAD: u32 = 64;

/// Of so many, on a machine that does other things too, the last is late.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How a connection is served; it ends when this returns.
type Kind = fn(&mut Peer) -> Option<()>;

/// What becomes of a connection.
enum Fate {
    /// It answers everything.
    Good,
    /// The dial fails by this cause.
    NotDialled(&'static str),
    /// The first message fails by this cause.
    Fails(&'static str),
}

use Fate::{Fails, Good, NotDialled};

/// The kinds, in turn by the number of the connection.
#[rustfmt::skip]
const KINDS: [(Fate, Kind); 20] = [
    (Good, echo), (Good, echo), (Good, echo), (Good, echo),
    (Good, |peer| {
        peer.welcome()?;
        loop {
            let message = peer.message()?;
            let (a, b) = message.payload.split_at(30);
            peer.send([frame(0x02, a), frame(0x89, b"ping"), frame(0x80, b)].concat())?;
            assert_eq!(peer.pong()?, b"ping");
        }
    }),
    (NotDialled("handshake_status_503"), |peer| {
        peer.request()?;
        peer.send("HTTP/1.1 503 Busy\r\n\r\n")?;
        peer.drain();
        None
    }),
    (NotDialled("handshake_accept"), |peer| {
        let request = peer.request()?;
        peer.send(welcome(&request.replace("Key: ", "Key: x")))?;
        peer.drain();
        None
    }),
    (NotDialled("handshake_malformed"), |peer| {
        peer.request()?;
        peer.send(frame(0x82, b"no 101"))?;
        peer.drain();
        None
    }),
    (NotDialled("closed"), |peer| { peer.request()?; None }),
    (NotDialled("reset"), |peer| { peer.request()?; peer.reset() }),
    (Fails("wrong_payload"), |peer| wrong(peer, |answer| answer[40] ^= 1)),
    (Fails("wrong_length"), |peer| wrong(peer, |answer| { answer[1] -= 1; answer.pop(); })),
    (Fails("wrong_opcode"), |peer| wrong(peer, |answer| answer[0] = 0x81)),
    (Fails("bad_frame"), |peer| wrong(peer, |answer| answer[1] |= 0x80)),
    (Fails("closed"), |peer| wrong(peer, |answer| *answer = frame(0x88, &[3, 243]))),
    (Fails("closed"), |peer| {
        peer.welcome()?;
        let message = peer.message()?;
        peer.send(&message.answer[..9])?;
        peer.half_close()
    }),
    (Fails("reset"), |peer| {
        peer.welcome()?;
        peer.message()?;
        peer.reset()
    }),
    (Fails("lost"), |peer| { peer.welcome()?; peer.drain(); None }),
    (Fails("lost"), |peer| {
        peer.welcome()?;
        let message = peer.message()?;
        peer.send_apart(&message.answer[..9])?;
        peer.drain();
        None
    }),
    (Fails("lost"), |peer| {
        peer.welcome()?;
        peer.read_nothing()
    }),
];

fn echo(peer: &mut Peer) -> Option<()> {
    peer.welcome()?;
    peer.echo()
}

fn wrong(peer: &mut Peer, change: fn(&mut Vec<u8>)) -> Option<()> {
    peer.welcome()?;
    let mut answer = peer.message()?.answer;
    change(&mut answer);
    peer.send(answer)?;
    peer.drain();
    None
}

/// Connections that fail by each cause.
fn failures(of: fn(&Fate) -> Option<&'static str>) -> BTreeMap<&'static str, u64> {
    let mut failures = BTreeMap::new();
    for cause in KINDS.iter().filter_map(|(fate, _)| of(fate)) {
        *failures.entry(cause).or_default() += EACH;
    }
    failures
}

/// Runs the load; the last phase, and how many messages each good connection got.
fn serve(load: Load) -> (PhaseReport, Vec<usize>) {
    let good = Arc::new(Mutex::new(Vec::new()));
    let ended = Arc::clone(&good);
    let server = Server::start(move |peer| {
        let (fate, kind) = &KINDS[peer.number % KINDS.len()];
        kind(peer);
        if matches!(fate, Good) {
            ended.lock().unwrap().push(peer.taken);
        }
        None
    });
    let mut load = with_timeout(load, TIMEOUT);
    // Who is dialled twice would be two kinds.
    load.dial.retries = 0;
    let mut reports = run(load, &server.target);
    server.expect_content();
    let failed = failures(|fate| match fate {
        NotDialled(cause) => Some(cause),
        Good | Fails(_) => None,
    });
    let failed: Vec<_> = failed.into_iter().collect();
    let dialled = CONNECTIONS - EACH * failed.len() as u64;
    expect(&reports[&Phase::Connect], dialled, &failed);
    let (_, report) = reports.pop_last().unwrap();
    let good = std::mem::take(&mut *good.lock().unwrap());
    (report, good)
}

fn failing() -> BTreeMap<&'static str, u64> {
    failures(|fate| match fate {
        Fails(cause) => Some(cause),
        Good | NotDialled(_) => None,
    })
}

fn count(of: fn(&Fate) -> bool) -> u64 {
    KINDS.iter().filter(|(fate, _)| of(fate)).count() as u64 * EACH
}

#[test]
fn among_a_thousand_of_all_kinds_the_good_are_served_as_if_alone() {
    all_at_once([
        case("closed loop", the_good_make_every_echo_that_is_left),
        case("open loop", the_good_get_every_message_that_is_due),
    ]);
}

fn the_good_make_every_echo_that_is_left() {
    const ECHOES: u64 = 5000;
    let (report, good) = serve(one_by_one(CONNECTIONS as u32, PAYLOAD, ECHOES));
    let failed: Vec<_> = failing().into_iter().collect();
    let bad = count(|fate| matches!(fate, Fails(_)));
    expect(&report, ECHOES - bad, &failed);
    assert_eq!(metric(&report, "connections_lost_count"), bad);
    assert_eq!(good.len() as u64, count(|fate| matches!(fate, Good)));
    let answered: usize = good.iter().sum();
    assert_eq!(answered as u64, ECHOES - bad);
}

fn the_good_get_every_message_that_is_due() {
    let (report, good) = serve(burst(CONNECTIONS as u32, PAYLOAD));
    let mut failed = failing();
    let bad = count(|fate| matches!(fate, Fails(_)));
    failed.insert("connection_lost", bad * (BURST as u64 - 1));
    let failed: Vec<_> = failed.into_iter().collect();
    let each = BURST;
    expect(&report, (good.len() * each) as u64, &failed);
    assert_eq!(good.len() as u64, count(|fate| matches!(fate, Good)));
    assert!(good.iter().all(|taken| *taken == each), "{good:?}");
}
