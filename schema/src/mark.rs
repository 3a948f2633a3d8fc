//! Marks: what a reader must know about a row before comparing it.

use crate::metric::{CLIENT_CPU, CLIENT_CPUS, ELAPSED, Phase, SERVER_CPU, SERVER_CPUS};
use std::collections::BTreeMap;

/// The client's CPUs were busy while the server's were not: the row shows the
/// client's limit, not the server's.
pub const CLIENT_BOUND: &str = "client_bound";
/// Server and client shared CPUs.
pub const SHARED_CPUS: &str = "shared_cpus";
/// The subject was timed although it failed verification.
pub const UNVERIFIED: &str = "unverified";
/// The server closed connections that it should have kept.
pub const CONNECTIONS_LOST: &str = "connections_lost";

/// Client busy at least this much, in thousandths, ...
pub const CLIENT_BUSY_PERMILLE: u64 = 950;
/// ... while the server is busy less than this.
pub const SERVER_BUSY_PERMILLE: u64 = 900;

/// How busy a side's CPUs were in a phase, in thousandths: over the time to the
/// last success, since waiting for an answer that never comes is not idleness
/// that says anything about who is the limit.
fn busy_permille(metrics: &BTreeMap<String, u64>, phase: Phase, names: [&str; 3]) -> Option<u64> {
    let [cpu, window, cpus] = names.map(|name| metrics.get(&phase.metric(name)).copied());
    let available = u128::from(window?) * u128::from(cpus?);
    let busy = u128::from(cpu?) * 1000;
    u64::try_from(busy.checked_div(available)?).ok()
}

/// How busy the client's CPUs were in a phase, in thousandths; `None` if not measured.
#[must_use]
pub fn client_busy_permille(metrics: &BTreeMap<String, u64>, phase: Phase) -> Option<u64> {
    busy_permille(metrics, phase, [CLIENT_CPU, ELAPSED, CLIENT_CPUS])
}

/// How busy the server's CPUs were in a phase, in thousandths; `None` if not measured.
#[must_use]
pub fn server_busy_permille(metrics: &BTreeMap<String, u64>, phase: Phase) -> Option<u64> {
    busy_permille(metrics, phase, [SERVER_CPU, ELAPSED, SERVER_CPUS])
}

/// Whether the phase shows the client's limit: its CPUs at least 95 % busy
/// while the server's were under 90 %. `None` if either was not measured.
#[must_use]
pub fn client_bound(metrics: &BTreeMap<String, u64>, phase: Phase) -> Option<bool> {
    let client = client_busy_permille(metrics, phase)?;
    let server = server_busy_permille(metrics, phase)?;
    Some(client >= CLIENT_BUSY_PERMILLE && server < SERVER_BUSY_PERMILLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(client_cpu_ns: u64, server_cpu_ns: u64) -> BTreeMap<String, u64> {
        let pairs = [
            (CLIENT_CPU, client_cpu_ns),
            (ELAPSED, 1000),
            (CLIENT_CPUS, 2),
            (SERVER_CPU, server_cpu_ns),
            (SERVER_CPUS, 1),
        ];
        pairs
            .map(|(name, value)| (Phase::Echo.metric(name), value))
            .into()
    }

    #[test]
    fn client_bound_needs_a_busy_client_and_an_idle_server() {
        assert_eq!(client_bound(&busy(1900, 899), Phase::Echo), Some(true));
        assert_eq!(client_bound(&busy(1899, 899), Phase::Echo), Some(false));
        assert_eq!(client_bound(&busy(2000, 900), Phase::Echo), Some(false));
    }

    #[test]
    fn what_was_not_measured_is_not_judged() {
        assert_eq!(client_bound(&busy(2000, 0), Phase::Rate), None);
        assert_eq!(client_bound(&BTreeMap::new(), Phase::Echo), None);
    }
}
