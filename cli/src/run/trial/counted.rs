//! The pass before a subject's first trial in which its system calls are counted. It
//! is a trial with few messages, of which only the counts are kept.

use super::{Bench, Job, Steps, Stop, measure};
use crate::progress::note;
use std::collections::BTreeMap;
use wsbench_schema::{BulkLoad, EchoLoad, Load, Phase, RateLoad, metric};

/// Echoes of the pass at most, but one for each in flight.
const ECHOES: u64 = 10_000;
/// Bytes of all its transfers, or one piece of each.
const BYTES: u64 = 256 << 20;
/// Of its open loop.
const RATE_MS: u64 = 1_000;

/// Counts them; `None` if the user interrupted it. That they cannot be counted is told,
/// and is no fault of the subject.
///
/// # Errors
/// If the harness cannot go on.
pub fn count(bench: &Bench<'_>, job: &Job<'_>) -> anyhow::Result<Option<BTreeMap<String, u64>>> {
    let loads = [few(job.first())];
    let job = Job {
        loads: &loads,
        is_counting: true,
        titles: vec![format!("{}  counting system calls", job.title)],
        ..job.clone()
    };
    let mut steps = Steps::new(bench, &job, Box::new(|_, _| ()));
    match measure(bench, &job, &mut steps) {
        Ok(()) => {}
        Err(Stop::Interrupted) => return Ok(None),
        Err(Stop::Broken(error)) => return Err(error),
        Err(Stop::Failed { stage, reason }) => note(format_args!(
            "{}: its system calls are not counted, failed at {stage}: {reason}",
            job.title
        )),
    }
    let names = Phase::ALL.into_iter().flat_map(|phase| {
        let names = [metric::SERVER_SYSCALLS, metric::SERVER_SYSCALLS_BYTES];
        names.map(|name| phase.metric(name))
    });
    let mut metrics = steps.current.metrics;
    Ok(Some(
        names
            .filter_map(|name| metrics.remove_entry(&name))
            .collect(),
    ))
}

/// The same connections and messages, but few of them.
fn few(load: &Load) -> Load {
    let piece = u64::from(load.payload_bytes.max(1));
    let each = BYTES / u64::from(load.connections.max(1)) / piece * piece;
    Load {
        echo: load.echo.as_ref().map(|echo| EchoLoad {
            echoes: echo.echoes.min(ECHOES.max(echo.concurrency.into())),
            warmup_echoes: 0,
            ..echo.clone()
        }),
        rate: load.rate.as_ref().map(|rate| RateLoad {
            duration_ms: rate.duration_ms.min(RATE_MS),
            ..rate.clone()
        }),
        bulk: load.bulk.as_ref().map(|bulk| BulkLoad {
            bytes_per_connection: bulk.bytes_per_connection.min(each.max(piece)),
            ..bulk.clone()
        }),
        ..load.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::testing;
    use wsbench_schema::{Direction, Transport};

    #[test]
    fn a_pass_has_the_same_connections_and_messages_and_few_of_them() {
        let mut load = testing::plan("a").loads[0].clone();
        (load.transport, load.payload_bytes) = (Transport::Stream, 65_536);
        (load.connections, load.rate) = (1_000, None);
        if let Some(echo) = &mut load.echo {
            (echo.echoes, echo.warmup_echoes) = (1_000_000, 5_000);
        }
        let small = few(&load);
        small.validate().unwrap();
        let echo = small.echo.unwrap();
        assert_eq!((echo.echoes, echo.warmup_echoes), (10_000, 0));
        assert_eq!((small.connections, small.payload_bytes), (1_000, 65_536));
        load.echo = None;
        load.bulk = Some(BulkLoad {
            bytes_per_connection: 1 << 30,
            direction: Direction::Both,
            window_bytes: 0,
            slow_readers_percent: 0,
            slow_bytes_per_s: 0,
            duration_ms: None,
            timeout_ms: 1_000,
        });
        for (connections, expected) in [(1_000, 262_144), (1, 256 << 20), (100_000, 65_536)] {
            load.connections = connections;
            let small = few(&load);
            small.validate().unwrap();
            assert_eq!(small.bulk.unwrap().bytes_per_connection, expected);
        }
    }
}
