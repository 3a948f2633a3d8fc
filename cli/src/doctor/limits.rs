//! What could stop a run. Both ends are on this machine.

use super::{Amount, Bytes, Check, Demand, Limits, PAGE_BYTES, Side, Status, Sysctl};
use wsbench_client::engine::dial::ports_of_one_source;
use wsbench_report::units::counted;

/// Files that a process holds besides its connections: listeners, epolls, timers, logs.
pub const FILES_BESIDES: u64 = 200;
/// What the kernel keeps for a loopback connection: two sockets, each with its file and
/// its place in an epoll (measured on Linux 6.18 in `/proc/slabinfo`, with 40,000).
pub const KERNEL_BYTES: u64 = 8_300;
/// What most servers keep a connection; a thread or a large buffer a connection is more.
const SERVER_BYTES: u64 = 8 << 10;
/// Threads beside those of connections.
const THREADS_BESIDES: u64 = 1_000;
/// Memory areas of a thread: its stack, and the guard below.
pub const MAPS_A_THREAD: u64 = 2;

/// In the remedies, so that they need not be run twice.
fn roomy(amount: u64) -> u64 {
    amount.saturating_add(amount / 10)
}

pub fn checks(found: &Limits, demand: &Demand) -> Vec<Check> {
    let mut checks = vec![
        nofile(found, demand, Side::Client, demand.client_processes),
        nofile(found, demand, Side::Server, demand.server_processes),
    ];
    checks.push(nofile_soft(found, demand));
    checks.push(nr_open(found, demand));
    checks.extend(one_process(found, demand));
    checks.push(file_max(found, demand));
    checks.push(tuples(found, demand));
    checks.push(listening_ports(found, demand));
    let dials = demand.dials.min(demand.connections);
    let a_port = dials.div_ceil((demand.ports * demand.server_processes).max(1));
    checks.push(queue(
        "connections waiting to be accepted, a port",
        "net.core.somaxconn",
        found.somaxconn,
        a_port,
    ));
    checks.push(queue(
        "connections half open, a port",
        "net.ipv4.tcp_max_syn_backlog",
        found.syn_backlog,
        a_port,
    ));
    checks.push(conntrack(found, demand));
    checks.push(socket_buffers(found, demand));
    checks.extend(threads(found, demand));
    checks.push(memory(found, demand));
    checks
}

fn count(limit: Option<u64>) -> Amount {
    limit.map_or_else(|| Amount::Text("unlimited".into()), Amount::Count)
}

/// A limit that a setting of the kernel lifts.
fn setting(
    name: &'static str,
    side: Side,
    found: Option<u64>,
    needed: u64,
    status: Status,
    sysctl: &'static str,
) -> Check {
    let Some(limit) = found else {
        return Check::unknown(name, side, Amount::Count(needed));
    };
    let check = Check::new(name, side, Amount::Count(limit), Amount::Count(needed));
    match limit < needed {
        true => check.with_sysctls(status, vec![Sysctl::new(sysctl, roomy(needed).to_string())]),
        false => check,
    }
}

/// The soft limit is raised by the run itself, so the hard one counts.
fn nofile(found: &Limits, demand: &Demand, side: Side, processes: u64) -> Check {
    let needed = files(demand, side, processes);
    let name = "open files a process (hard limit)";
    let check = Check::new(name, side, count(found.nofile_hard), Amount::Count(needed));
    match found.nofile_hard {
        Some(hard) if hard < needed => lift_nofile(check, found, needed, Status::Short),
        _ => check,
    }
}

/// That one of so many processes of a side has open.
fn files(demand: &Demand, side: Side, processes: u64) -> u64 {
    let each = match side {
        Side::Server => demand.descriptors,
        Side::Client | Side::Both | Side::Machine => 1,
    };
    demand.connections.div_ceil(processes.max(1)) * each + FILES_BESIDES
}

/// Of the side whose processes hold more.
fn files_of_a_process(demand: &Demand) -> u64 {
    let client = files(demand, Side::Client, demand.client_processes);
    client.max(files(demand, Side::Server, demand.server_processes))
}

fn nofile_soft(found: &Limits, demand: &Demand) -> Check {
    let needed = files_of_a_process(demand);
    let check = Check::new(
        "open files a process (soft limit, which a run raises by itself)",
        Side::Both,
        count(found.nofile_soft),
        Amount::Count(needed),
    );
    let is_short = |limit: Option<u64>| limit.is_some_and(|limit| limit < needed);
    match is_short(found.nofile_soft) && is_short(found.nofile_hard) {
        true => check.with(
            Status::Advice,
            "lift the hard limit; up to that a run raises this one by itself",
        ),
        false => check,
    }
}

fn nr_open(found: &Limits, demand: &Demand) -> Check {
    let needed = files_of_a_process(demand);
    let name = "what the hard limit may be raised to (fs.nr_open)";
    let Some(most) = found.nr_open else {
        return Check::unknown(name, Side::Both, Amount::Count(needed));
    };
    let check = Check::new(name, Side::Both, Amount::Count(most), Amount::Count(needed));
    // A hard limit that is enough already need not be raised, and the row of one
    // that is not lifts this setting with it.
    match most < needed && found.nofile_hard.is_some_and(|hard| hard < needed) {
        true => {
            let setting = Sysctl::new("fs.nr_open", roomy(needed).to_string());
            check.with(Status::Advice, setting.command())
        }
        false => check,
    }
}

/// What lifts the hard limit so that a process can open so many files.
pub fn files_remedy(needed: u64) -> String {
    let wanted = roomy(needed);
    format!(
        "ulimit -n {wanted} (as root with CAP_SYS_RESOURCE; in a container: --ulimit nofile={wanted})"
    )
}

fn lift_nofile(check: Check, found: &Limits, needed: u64, status: Status) -> Check {
    let wanted = roomy(needed);
    let first = match found.nr_open {
        Some(most) if most < wanted => vec![Sysctl::new("fs.nr_open", wanted.to_string())],
        _ => Vec::new(),
    };
    let commands: Vec<String> = first.iter().map(Sysctl::command).collect();
    let remedy = commands.into_iter().chain([files_remedy(needed)]);
    let remedy = remedy.collect::<Vec<_>>().join(" && ");
    Check {
        fix: first,
        ..check.with(status, remedy)
    }
}

/// Several processes a side work, but a user of one sees something simpler.
fn one_process(found: &Limits, demand: &Demand) -> Option<Check> {
    let needed = demand.connections + FILES_BESIDES;
    let hard = found.nofile_hard.filter(|hard| *hard < needed)?;
    let (client, server) = (demand.client_processes, demand.server_processes);
    if client.min(server) < 2 {
        return None;
    }
    let check = Check::new(
        "open files for one process a side",
        Side::Both,
        Amount::Count(hard),
        Amount::Count(needed),
    );
    let mut check = lift_nofile(check, found, needed, Status::Advice);
    if let Some(remedy) = &mut check.remedy {
        *remedy = format!("{client} client and {server} server processes share them; or: {remedy}");
    }
    Some(check)
}

fn file_max(found: &Limits, demand: &Demand) -> Check {
    let processes = demand.client_processes + demand.server_processes;
    let needed = (1 + demand.descriptors) * demand.connections
        + processes * FILES_BESIDES
        + found.files_open.unwrap_or_default();
    let name = "open files of the machine";
    setting(
        name,
        Side::Machine,
        found.file_max,
        needed,
        Status::Short,
        "fs.file-max",
    )
}

/// Connections that the four parts of an address leave room for. Loopback has
/// source addresses enough, each used for less than half the local ports: beyond
/// that the kernel's search for a free one takes milliseconds.
fn tuples(found: &Limits, demand: &Demand) -> Check {
    let ports = (demand.ports * demand.server_processes).max(1);
    let local = u32::try_from(found.ephemeral_ports).unwrap_or(u32::MAX);
    let each = u64::from(ports_of_one_source(local));
    let sources = demand.connections.div_ceil(ports * each).max(1);
    let room = sources * ports * each;
    Check::new(
        "local addresses and ports",
        Side::Client,
        Amount::Text(format!(
            "{room}: {} x {} x {each} of {local} local ports (7/16)",
            counted(sources, "address"),
            counted(ports, "port"),
        )),
        Amount::Count(demand.connections),
    )
}

fn listening_ports(found: &Limits, demand: &Demand) -> Check {
    let needed = demand.ports * demand.server_processes;
    let check = Check::new(
        "ports to listen on, outside the local port range",
        Side::Server,
        Amount::Count(found.listening_ports),
        Amount::Count(needed),
    );
    match found.listening_ports < needed {
        true => check.with_sysctls(
            Status::Short,
            vec![Sysctl::new("net.ipv4.ip_local_port_range", "32768 60999")],
        ),
        false => check,
    }
}

/// A dial that finds the queue full is sent again by the kernel, after 1 s, 3 s, ...
fn queue(name: &'static str, sysctl: &'static str, found: Option<u64>, needed: u64) -> Check {
    setting(name, Side::Server, found, needed, Status::Advice, sysctl)
}

fn conntrack(found: &Limits, demand: &Demand) -> Check {
    let name = "tracked connections";
    match found.conntrack {
        None => Check::new(
            name,
            Side::Machine,
            Amount::Text("loopback is not tracked".into()),
            Amount::Count(demand.connections),
        ),
        Some((used, most)) => setting(
            name,
            Side::Machine,
            Some(most),
            used + demand.connections,
            Status::Short,
            "net.netfilter.nf_conntrack_max",
        ),
    }
}

fn socket_buffers(found: &Limits, demand: &Demand) -> Check {
    let in_flight = demand.in_flight.max(1);
    let needed = Demand {
        in_flight,
        ..*demand
    }
    .buffer_bytes();
    let name = format!(
        "memory of all socket buffers: {} in flight",
        counted(in_flight, "message")
    );
    let needs = Amount::Bytes(Bytes(needed));
    match found.tcp_memory_bytes {
        None => Check::unknown(name, Side::Machine, needs),
        Some(most) => {
            let check = Check::new(name, Side::Machine, Amount::Bytes(Bytes(most)), needs);
            let pages = roomy(needed) / PAGE_BYTES;
            let value = format!("{} {} {pages}", pages / 2, pages / 4 * 3);
            match most < needed {
                true => {
                    check.with_sysctls(Status::Advice, vec![Sysctl::new("net.ipv4.tcp_mem", value)])
                }
                false => check,
            }
        }
    }
}

/// For servers that take a thread for each connection; others need none of it.
fn threads(found: &Limits, demand: &Demand) -> [Check; 3] {
    let all = demand.connections + THREADS_BESIDES;
    let a_process = all.div_ceil(demand.server_processes.max(1));
    let one = |name, side, found, needed, sysctl| {
        setting(name, side, found, needed, Status::Advice, sysctl)
    };
    [
        one(
            "process and thread numbers, if a connection is a thread",
            Side::Machine,
            found.pid_max,
            all,
            "kernel.pid_max",
        ),
        one(
            "threads of the machine, if a connection is a thread",
            Side::Machine,
            found.threads_max,
            all,
            "kernel.threads-max",
        ),
        one(
            "memory areas a process, if a connection is a thread",
            Side::Server,
            found.map_count_max,
            MAPS_A_THREAD * a_process,
            "vm.max_map_count",
        ),
    ]
}

fn memory(found: &Limits, demand: &Demand) -> Check {
    let kernel = demand.connections * KERNEL_BYTES;
    let all = kernel + demand.connections * SERVER_BYTES;
    let name = "memory: kernel and a server of 8 KiB a connection";
    let needs = Amount::Bytes(Bytes(all));
    let Some(available) = found.available_bytes else {
        return Check::unknown(name, Side::Machine, needs);
    };
    let check = Check::new(name, Side::Machine, Amount::Bytes(Bytes(available)), needs);
    if available < kernel {
        check.with(
            Status::Short,
            "fewer connections (-c), or a machine with more memory",
        )
    } else if available < all {
        check.with(
            Status::Advice,
            "a server that keeps less a connection may fit",
        )
    } else {
        check
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::processes::{self, Count, Processes};

    /// A machine on which nothing is short for a million.
    fn large() -> Limits {
        Limits {
            nofile_soft: Some(1024),
            nofile_hard: Some(1_100_000),
            nr_open: Some(1_100_000),
            file_max: Some(4_000_000),
            files_open: Some(1_000),
            ephemeral_ports: 28_232,
            listening_ports: 30_000,
            somaxconn: Some(4_096),
            syn_backlog: Some(2_048),
            conntrack: None,
            tcp_memory_bytes: Some(2 << 30),
            pid_max: Some(4 << 20),
            threads_max: Some(2 << 20),
            map_count_max: Some(4 << 20),
            available_bytes: Some(64 << 30),
        }
    }

    fn million() -> Demand {
        Demand {
            connections: 1_000_000,
            client_processes: 1,
            server_processes: 1,
            descriptors: 1,
            ports: 10,
            dials: 2_000,
            in_flight: 10_000,
            payload_bytes: 1_024,
        }
    }

    /// Name, status and remedy of the only check that is not fine.
    #[track_caller]
    fn only(found: &Limits, demand: &Demand) -> (String, Status, String) {
        let checks = checks(found, demand);
        let bad: Vec<_> = checks
            .iter()
            .filter(|one| one.status != Status::Ok)
            .collect();
        let [check] = bad[..] else {
            panic!("{bad:#?}");
        };
        let remedy = check.remedy.clone().unwrap_or_default();
        (check.name.to_string(), check.status, remedy)
    }

    #[test]
    fn a_large_machine_holds_a_million() {
        let checks = checks(&large(), &million());
        assert!(
            checks.iter().all(|check| check.status == Status::Ok),
            "{checks:#?}"
        );
        super::super::refuse(&checks, &million()).unwrap();
    }

    #[test]
    fn each_limit_is_named_with_the_command_that_lifts_it() {
        use Status::{Advice, Short};
        type Change = fn(&mut Limits);
        let cases: [(Change, &str, Status, &str); 11] = [
            (
                |l| l.file_max = Some(2_000_000),
                "open files of the machine",
                Short,
                "sysctl -w fs.file-max=2201540",
            ),
            (
                |l| l.listening_ports = 9,
                "ports to listen on, outside the local port range",
                Short,
                "sysctl -w net.ipv4.ip_local_port_range=\"32768 60999\"",
            ),
            (
                |l| l.somaxconn = Some(128),
                "connections waiting to be accepted, a port",
                Advice,
                "sysctl -w net.core.somaxconn=220",
            ),
            (
                |l| l.syn_backlog = Some(128),
                "connections half open, a port",
                Advice,
                "sysctl -w net.ipv4.tcp_max_syn_backlog=220",
            ),
            (
                |l| l.conntrack = Some((500, 262_144)),
                "tracked connections",
                Short,
                "sysctl -w net.netfilter.nf_conntrack_max=1100550",
            ),
            (
                |l| l.tcp_memory_bytes = Some(39 << 20),
                "memory of all socket buffers: 10000 messages in flight",
                Advice,
                "sysctl -w net.ipv4.tcp_mem=\"5500 8250 11000\"",
            ),
            (
                |l| l.pid_max = Some(32_768),
                "process and thread numbers, if a connection is a thread",
                Advice,
                "sysctl -w kernel.pid_max=1101100",
            ),
            (
                |l| l.threads_max = Some(190_000),
                "threads of the machine, if a connection is a thread",
                Advice,
                "sysctl -w kernel.threads-max=1101100",
            ),
            (
                |l| l.map_count_max = Some(65_530),
                "memory areas a process, if a connection is a thread",
                Advice,
                "sysctl -w vm.max_map_count=2202200",
            ),
            (
                |l| l.available_bytes = Some(12_000_000_000),
                "memory: kernel and a server of 8 KiB a connection",
                Advice,
                "a server that keeps less a connection may fit",
            ),
            (
                |l| l.available_bytes = Some(8_000_000_000),
                "memory: kernel and a server of 8 KiB a connection",
                Short,
                "fewer connections (-c), or a machine with more memory",
            ),
        ];
        for (change, name, status, remedy) in cases {
            let mut limits = large();
            change(&mut limits);
            let expected = (name.to_owned(), status, remedy.to_owned());
            assert_eq!(only(&limits, &million()), expected);
        }
    }

    #[test]
    fn open_files_are_short_for_one_process_and_enough_for_many() {
        let limits = Limits {
            nofile_hard: Some(20_000),
            nr_open: Some(1 << 20),
            ..large()
        };
        let alone = checks(&limits, &million());
        let error = super::super::refuse(&alone, &million())
            .unwrap_err()
            .to_string();
        let expected = "cannot hold 1000000 connections: open files a process (hard limit): \
                        20000, 1000200 needed (sysctl -w fs.nr_open=1100220 && ulimit -n 1100220";
        assert!(error.starts_with(expected), "{error}");
        let many = Demand {
            client_processes: 52,
            server_processes: 52,
            ..million()
        };
        let (name, status, remedy) = only(&limits, &many);
        assert_eq!(
            (name.as_str(), status),
            ("open files for one process a side", Status::Advice)
        );
        assert!(
            remedy.starts_with("52 client and 52 server processes share them; or: "),
            "{remedy}"
        );
    }

    #[test]
    fn loopback_has_addresses_for_any_number() {
        let check = tuples(&large(), &million());
        let expected = "1111320: 9 addresses x 10 ports x 12348 of 28232 local ports (7/16)";
        let found = Amount::Text(expected.into());
        assert_eq!((check.found, check.status), (found, Status::Ok));
        let few = Demand {
            connections: 9,
            ports: 1,
            ..million()
        };
        let found = tuples(&large(), &few).found.to_string();
        assert!(found.starts_with("12348: 1 address x 1 port x "), "{found}");
    }

    #[test]
    fn the_soft_limit_and_what_the_hard_one_may_become_have_rows_of_their_own() {
        let rows = |change: fn(&mut Limits)| {
            let mut limits = large();
            change(&mut limits);
            let checks = [
                nofile_soft(&limits, &million()),
                nr_open(&limits, &million()),
            ];
            checks.map(|check| (check.found.to_string(), check.status))
        };
        use Status::{Advice, Ok, Unknown};
        let row = |found: &str, status| (found.to_owned(), status);
        assert_eq!(rows(|_| ()), [row("1024", Ok), row("1100000", Ok)]);
        let low = rows(|limits| {
            limits.nofile_hard = Some(20_000);
            limits.nr_open = Some(30_000);
        });
        assert_eq!(low, [row("1024", Advice), row("30000", Advice)]);
        let hidden = rows(|limits| {
            limits.nofile_soft = None;
            limits.nr_open = None;
        });
        assert_eq!(hidden, [row("unlimited", Ok), row("not visible", Unknown)]);
    }

    #[test]
    fn a_hard_limit_below_what_any_process_needs_is_not_shared_by_many() {
        let load = wsbench_schema::Load {
            connections: 1_500,
            ..crate::run::testing::load()
        };
        let each_most = processes::each_most(Some(150));
        let auto = Processes::of(1_500, Count::Auto, Count::Auto, each_most, 1);
        let demand = Demand::of(&load, 10, auto);
        assert_eq!((demand.client_processes, demand.server_processes), (1, 1));
        let check = nofile(&large(), &demand, Side::Client, 1);
        assert_eq!(check.needed, Amount::Count(1_700));
    }

    #[test]
    fn what_the_kernel_does_not_say_stops_nobody() {
        let limits = Limits {
            listening_ports: 30_000,
            ephemeral_ports: 28_232,
            ..Limits::default()
        };
        let checks = checks(&limits, &million());
        assert!(checks.iter().any(|check| check.status == Status::Unknown));
        super::super::refuse(&checks, &million()).unwrap();
    }
}
