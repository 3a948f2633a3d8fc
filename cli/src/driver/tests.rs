//! Scripted clients that behave, hang, leave and babble.

use super::*;
use std::path::Path;
use std::thread;
use wsbench_schema::{DialLoad, Load, MessageKind};

const READY: &str =
    r#"echo '{"event":"prepared","shards":1}'; echo '{"event":"ready","phase":"connect"}'; "#;
const DONE: &str = r#"echo '{"event":"done","phase":"connect","report":{"metrics":{"succeeded_count":7},"histograms":{}}}'; echo '{"event":"finished"}'; "#;

fn short() -> Patience {
    Patience {
        between: Duration::from_millis(600),
        within: Duration::from_millis(600),
        stop: Duration::from_millis(600),
        give_up: Duration::from_millis(600),
    }
}

/// Clients that run these shell scripts.
fn scripted(log: &Path, scripts: &[&str]) -> Clients {
    let shell = |script: &&str| {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        (command, log.to_path_buf())
    };
    let cpus: Vec<u32> = vec![0];
    Clients::start(scripts.iter().map(shell).collect(), &cpus, short()).unwrap()
}

fn load() -> Load {
    Load {
        connections: 7,
        payload_bytes: 16,
        message: MessageKind::Binary,
        check: true,
        dial: DialLoad::default(),
        echo: None,
        rate: None,
        after_connections: 0,
        bulk: None,
        release: None,
        transport: wsbench_schema::Transport::Websocket,
        client_burn_ns: 0,
    }
}

fn prepare(clients: &mut Clients) -> Result<(), Halt> {
    let shares = load().shares(clients.count()).unwrap();
    let target = "ws://127.0.0.1:1/ws".parse().unwrap();
    clients.prepare(&shares, &shares, &target, 1)
}

fn go_on() -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Runs one scripted client through its connect phase.
fn connect(script: &str) -> Result<Vec<PhaseReport>, Halt> {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut clients = scripted(log.path(), &[script]);
    prepare(&mut clients)?;
    clients.next_phase(&mut go_on)?;
    clients.go(Phase::Connect, &mut go_on, &mut |_| ())
}

fn reason(result: Result<Vec<PhaseReport>, Halt>) -> String {
    match result {
        Err(Halt::Client(reason)) => reason,
        other => panic!("expected a fault of the client, not {other:?}"),
    }
}

#[test]
fn a_client_goes_through_its_phases_and_leaves() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let script = format!(
        "read prepare; {READY} read go; \
         echo '{{\"event\":\"progress\",\"phase\":\"connect\",\"done\":3,\"failed\":1,\"total\":7}}'; \
         {DONE} read stop; echo \"$prepare $go $stop\" >&2"
    );
    let mut clients = scripted(log.path(), &[&script]);
    prepare(&mut clients).unwrap();
    assert_eq!(
        clients.next_phase(&mut go_on).unwrap(),
        Some(Phase::Connect)
    );
    let mut seen = Vec::new();
    let reports = clients
        .go(Phase::Connect, &mut go_on, &mut |progress| {
            seen.push((progress.done, progress.failed, progress.total));
        })
        .unwrap();
    assert_eq!(reports[0].metrics["succeeded_count"], 7);
    assert_eq!(seen, [(3, 1, 7)]);
    assert_eq!(clients.next_phase(&mut go_on).unwrap(), None);
    clients.stop();
    let told = std::fs::read_to_string(log.path()).unwrap();
    for word in [
        r#""op":"prepare""#,
        r#""op":"go","phase":"connect""#,
        r#""op":"stop""#,
    ] {
        assert!(told.contains(word), "{word} in {told}");
    }
}

#[test]
fn two_clients_begin_at_the_same_instant() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let quick = format!(
        "read prepare; {READY} read go; echo \"$go\" >&2; \
         echo '{{\"event\":\"progress\",\"phase\":\"connect\",\"done\":3,\"failed\":1,\"total\":4}}'; \
         {DONE} read stop"
    );
    // The first says that it is ready for what comes next while this one still works.
    let slow = quick.replace("read go;", "read go; sleep 0.3;");
    let mut clients = scripted(log.path(), &[&quick, &slow]);
    prepare(&mut clients).unwrap();
    clients.next_phase(&mut go_on).unwrap();
    let mut seen = Vec::new();
    let reports = clients
        .go(Phase::Connect, &mut go_on, &mut |progress| {
            seen.push((progress.done, progress.failed, progress.total));
        })
        .unwrap();
    // Never the one's alone, as if it were all.
    assert!(!seen.is_empty() && seen.iter().all(|seen| *seen == (6, 2, 8)));
    assert_eq!(reports.len(), 2);
    assert_eq!(clients.next_phase(&mut go_on).unwrap(), None);
    clients.stop();
    let told = std::fs::read_to_string(log.path()).unwrap();
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0], lines[1]);
    assert!(!lines[0].contains("null"), "{told}");
}

#[test]
fn a_client_that_hangs_is_named_and_killed() {
    let began = Instant::now();
    let reason = reason(connect(&format!(
        "read prepare; {READY} read go; exec sleep 60"
    )));
    let expected = "the client process said nothing for 0.6 s";
    // A machine that is busy is named behind it.
    let rest = reason.strip_prefix(expected).expect(&reason);
    assert!(
        rest.is_empty() || rest.starts_with("; the machine"),
        "{rest}"
    );
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_client_that_leaves_tells_how_and_its_last_line() {
    let left = connect("read prepare; echo 'out of frames' >&2; exit 3");
    assert_eq!(
        reason(left),
        "the client process exited with code 3: out of frames"
    );
    let killed = connect(&format!("read prepare; {READY} read go; kill -9 $$"));
    let reason = reason(killed);
    let expected = "the client process was ended by signal 9 (SIGKILL: killed";
    assert!(reason.starts_with(expected), "{reason}");
}

#[test]
fn a_client_that_fails_gives_its_own_reason() {
    let script =
        "read prepare; echo '{\"event\":\"failed\",\"message\":\"no ports left\"}'; exit 1";
    assert_eq!(reason(connect(script)), "no ports left");
    // Even if it is gone before it could be told what to do.
    let script = "exec 0<&-; echo '{\"event\":\"failed\",\"message\":\"no ports left\"}'; exit 1";
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut clients = scripted(log.path(), &[script]);
    thread::sleep(Duration::from_millis(200));
    match prepare(&mut clients) {
        Err(Halt::Client(reason)) => assert_eq!(reason, "no ports left"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_of_several_clients_that_is_lost_is_named_by_its_number() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let good = format!("read prepare; {READY} read go; exec sleep 60");
    let killed = format!("read prepare; {READY} read go; kill -9 $$");
    let mut clients = scripted(log.path(), &[&good, &killed, &good]);
    prepare(&mut clients).unwrap();
    clients.next_phase(&mut go_on).unwrap();
    let lost = clients.go(Phase::Connect, &mut go_on, &mut |_| ());
    let lost = reason(lost);
    let expected = "client process 2 of 3 was ended by signal 9 (SIGKILL: killed";
    assert!(lost.starts_with(expected), "{lost}");
    let gives_up = "read prepare; echo '{\"event\":\"failed\",\"message\":\"no ports left\"}'";
    let mut clients = scripted(log.path(), &[&good, gives_up]);
    prepare(&mut clients).unwrap();
    match clients.next_phase(&mut go_on) {
        Err(Halt::Client(reason)) => assert_eq!(reason, "client process 2 of 2: no ports left"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn babble_and_events_out_of_turn_are_faults() {
    let babble = reason(connect("read prepare; echo hello; read go"));
    assert_eq!(
        babble,
        "the client process wrote `hello`, which is no event"
    );
    let early = reason(connect(&format!("read prepare; {DONE} read go")));
    assert!(early.ends_with("out of turn"), "{early}");
}

#[test]
fn the_watch_ends_a_wait() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut clients = scripted(log.path(), &["exec sleep 60"]);
    prepare(&mut clients).unwrap();
    let halt = clients.next_phase(&mut || ControlFlow::Break(()));
    assert!(matches!(halt, Err(Halt::Abandoned)), "{halt:?}");
}

#[test]
fn a_client_runs_where_it_is_told_to() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let script = "grep Cpus_allowed_list /proc/self/status >&2; read prepare";
    let mut clients = scripted(log.path(), &[script]);
    prepare(&mut clients).unwrap();
    clients.stop();
    let status = std::fs::read_to_string(log.path()).unwrap();
    assert_eq!(status.trim(), "Cpus_allowed_list:\t0");
}

#[test]
fn a_phase_that_is_given_up_ends_with_what_all_clients_measured_or_with_nothing() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let done = |script: &str| format!("read prepare; {READY} read go; {script}");
    let told = done(&format!("read stop; {DONE}"));
    let early = done(&format!("{DONE} read stop"));
    let mute = done("exec sleep 60");
    let killed = done("read stop; kill -9 $$");
    for (scripts, whole) in [
        (vec![&told], true),
        (vec![&early, &told], true),
        (vec![&told, &mute], false),
        (vec![&told, &killed], false),
    ] {
        let scripts: Vec<&str> = scripts.into_iter().map(String::as_str).collect();
        let mut clients = scripted(log.path(), &scripts);
        prepare(&mut clients).unwrap();
        clients.next_phase(&mut go_on).unwrap();
        let mut asked = 0;
        let mut soon = || {
            asked += 1;
            match asked < 3 {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        };
        let halt = clients.go(Phase::Connect, &mut soon, &mut |_| ());
        assert!(matches!(halt, Err(Halt::Abandoned)), "{halt:?}");
        match (clients.give_up(Phase::Connect, &mut go_on), whole) {
            (Rest::Whole(reports), true) => {
                assert_eq!(reports.len(), scripts.len());
                let counts = reports
                    .iter()
                    .map(|report| report.metrics["succeeded_count"]);
                assert!(counts.eq(scripts.iter().map(|_| 7)));
            }
            (Rest::Lost, false) => {}
            (rest, _) => panic!("{rest:?} of {scripts:?}"),
        }
    }
}

#[test]
fn who_wants_to_stop_does_not_wait_for_what_was_measured() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mute = format!("read prepare; {READY} read go; exec sleep 60");
    let mut clients = scripted(log.path(), &[&mute]);
    prepare(&mut clients).unwrap();
    clients.next_phase(&mut go_on).unwrap();
    let stop = &mut || ControlFlow::Break(());
    let halt = clients.go(Phase::Connect, stop, &mut |_| ());
    assert!(matches!(halt, Err(Halt::Abandoned)), "{halt:?}");
    let rest = clients.give_up(Phase::Connect, stop);
    assert!(matches!(rest, Rest::Abandoned), "{rest:?}");
}
