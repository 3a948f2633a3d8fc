//! Dials that the machine or the server's side limits: ports that refuse, a full
//! queue of the listener, no local port left.

use crate::peer::{Server, all_at_once, case, dial, one_by_one, run, target};
use crate::util::{expect, load, metric};
use socket2::{Domain, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;
use wsbench_schema::{Phase, PortRange, Target, decode_histogram};

/// Two listening ports and one between that refuses, out of the range from which
/// the kernel takes ports for others.
fn three_ports() -> (u16, [TcpListener; 2]) {
    let mut first = 13_000 + (std::process::id() % 1000) as u16 * 10;
    loop {
        let listen = |port| TcpListener::bind(("127.0.0.1", port));
        match (listen(first), listen(first + 1), listen(first + 2)) {
            (Ok(a), Ok(_), Ok(c)) => return (first, [a, c]),
            _ => first += 3,
        }
    }
}

#[test]
fn a_port_that_refuses_fails_its_connections_and_no_others() {
    let (first, listeners) = three_ports();
    let servers = listeners.map(|listener| {
        Server::on(listener, |peer| {
            peer.welcome()?;
            peer.echo()
        })
    });
    let ports = PortRange {
        first,
        last: first + 2,
    };
    let target = Target {
        ports,
        ..target(first)
    };
    let reports = run(one_by_one(30, 64, 200), &target);
    expect(&reports[&Phase::Connect], 20, &[("refused", 10)]);
    assert_eq!(
        metric(&reports[&Phase::Connect], "retried_refused_count"),
        10
    );
    expect(&reports[&Phase::Echo], 200, &[]);
    drop(servers);
}

/// Dials whose answer came between a whole number of seconds, and half a second
/// more, after they began.
fn dialled_after(late: Duration) -> Vec<u64> {
    const DIALS: u32 = 8;
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    socket.bind(&any.into()).unwrap();
    // Two wait in the queue; the kernel drops what the others send.
    socket.listen(1).unwrap();
    let listener = TcpListener::from(socket);
    let target = target(listener.local_addr().unwrap().port());
    let mut load = load(DIALS, 64);
    (load.dial.timeout_ms, load.dial.retries) = (10_000, 0);
    let report = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(late);
            let server = Server::on(listener, |peer| {
                peer.welcome()?;
                peer.echo()
            });
            drop(server);
        });
        dial(load, &target)
    });
    expect(&report, DIALS.into(), &[]);
    assert_eq!(metric(&report, "retried_count"), 0);
    let histogram = decode_histogram(&report.histograms["dial_ns"]).unwrap();
    assert_eq!(histogram.len(), u64::from(DIALS));
    let mut dials = Vec::new();
    for step in histogram.iter_recorded() {
        let count = step.count_since_last_iteration() as usize;
        dials.extend(std::iter::repeat_n(
            step.value_iterated_to() / 1_000_000,
            count,
        ));
    }
    dials
}

/// What the kernel dropped it repeats after a second, and again: the dials take
/// that long, and none has failed.
#[test]
fn a_full_queue_of_the_listener_shows_in_the_dials_and_is_no_failure() {
    all_at_once([
        case("late by half a second", || {
            let dials = dialled_after(Duration::from_millis(500));
            assert!(dials[0] >= 400, "{dials:?}");
            let repeated = dials.iter().filter(|ms| **ms >= 1000).count();
            assert!(repeated >= 5, "{dials:?}");
        }),
        case("late by one and a half", || {
            let dials = dialled_after(Duration::from_millis(1500));
            // Linux repeats after 1 and 2 seconds, before 6.5 after 1 and 3.
            let repeated = dials.iter().filter(|ms| **ms >= 2000).count();
            assert!(dials[0] >= 1400 && repeated >= 5, "{dials:?}");
        }),
    ]);
}

/// Moves this thread, and those that it starts, to a network of its own, in which
/// an address of TEST-NET-2 is this machine's and has ten ports.
fn own_network() -> Result<(), String> {
    let error = |error: std::io::Error| error.to_string();
    // SAFETY: only the network of this thread changes; it shares no memory by that.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(error(std::io::Error::last_os_error()));
    }
    for arguments in ["link set lo up", "address add 198.51.100.1/32 dev lo"] {
        let mut ip = Command::new("ip");
        let status = ip.args(arguments.split(' ')).status().map_err(error)?;
        if !status.success() {
            return Err(format!("ip {arguments}: {status}"));
        }
    }
    // Of the network of the thread that writes.
    std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", "40000 40009").map_err(error)
}

/// Somebody else has six of ten ports.
#[test]
fn a_connection_for_which_no_port_is_left_fails_by_that_cause() {
    let network = thread::spawn(|| {
        if let Err(reason) = own_network() {
            eprintln!("skipped: no network of its own: {reason}");
            return;
        }
        let listener = TcpListener::bind("198.51.100.1:9000").unwrap();
        let server = Server::on(listener, |peer| {
            peer.welcome()?;
            peer.echo()
        });
        let target = Target {
            host: "198.51.100.1".into(),
            ..server.target.clone()
        };
        let taken: Vec<TcpStream> = (0..6)
            .map(|_| TcpStream::connect("198.51.100.1:9000").unwrap())
            .collect();
        let reports = run(one_by_one(10, 64, 100), &target);
        let connect = &reports[&Phase::Connect];
        expect(connect, 4, &[("address_not_available", 6)]);
        assert_eq!(metric(connect, "retried_count"), 6);
        expect(&reports[&Phase::Echo], 100, &[]);
        drop(taken);
    });
    network.join().unwrap();
}
