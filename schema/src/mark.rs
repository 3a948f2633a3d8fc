//! Marks: what a reader must know about a row before comparing it.

use crate::EchoLoad;
use crate::metric::{
    CLIENT_CPU, CLIENT_CPUS, CONCURRENCY, CONNECTIONS_LOST as LOST, ELAPSED, FAILED, HOST_BUSY,
    HOST_CPUS, HOST_MEMORY_PRESSURE, HOST_STEAL, ORIGIN_CPU, PLANNED, Phase, RUNNER_CPU,
    SERVER_CPU, SERVER_CPUS, SERVER_WINDOW, SHORTFALL, SUCCEEDED,
};
use std::collections::BTreeMap;
use std::fmt;

/// The client's CPUs were busy while the server's were not: the row shows the
/// client's limit, not the server's.
pub const CLIENT_BOUND: &str = "client_bound";
/// Server and client shared CPUs.
pub const SHARED_CPUS: &str = "shared_cpus";
/// The subject was timed although it failed verification.
pub const UNVERIFIED: &str = "unverified";
/// Connections were lost that should have lasted: closed by the server, or given
/// up by the client after a fault of the server.
pub const CONNECTIONS_LOST: &str = "connections_lost";
/// TPS x mean latency is not what was to be in flight; see [`InFlight`].
pub const LITTLES_LAW: &str = "littles_law";
/// More of what was due in the rate phase was never sent than
/// [`NEVER_SENT_PERCENT_MAX`] allows: the load was not the one that was asked.
pub const NOT_AS_ASKED: &str = "not_as_asked";

/// Others than the trial used the CPUs, or waited for memory, more than [`Noise`] allows.
pub const NOISY: &str = "noisy";

/// What disturbed a phase from outside, in thousandths of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noise {
    /// Of the CPU time of server's and client's CPUs: used by processes that are neither
    /// server, client, origin nor runner.
    pub foreign: u64,
    /// Of the same: taken by a hypervisor.
    pub steal: u64,
    /// Of the time: some process waited for memory.
    pub memory_pressure: u64,
}

/// `/proc/stat` counts in ticks: what is between two readings is wrong by up to so much
/// for each CPU.
const TICK_NS: u64 = 10_000_000;

impl Noise {
    /// Of foreign CPU time, at most.
    pub const FOREIGN_MOST: u64 = 50;
    /// Of stolen CPU time, at most.
    pub const STEAL_MOST: u64 = 10;
    /// Of waiting for memory, at most.
    pub const MEMORY_PRESSURE_MOST: u64 = 10;

    /// In a phase; `None` if it was not measured.
    #[must_use]
    pub fn of(metrics: &BTreeMap<String, u64>, phase: Phase) -> Option<Self> {
        let figure = |name| metrics.get(&phase.metric(name)).copied();
        let window = figure(SERVER_WINDOW)?;
        let cpus = figure(HOST_CPUS)?;
        let ours = [SERVER_CPU, CLIENT_CPU].map(figure);
        let beside = [ORIGIN_CPU, RUNNER_CPU].map(|name| figure(name).unwrap_or(0));
        let ours = ours[0]?.saturating_add(ours[1]?);
        let ours = beside.into_iter().fold(ours, u64::saturating_add);
        let error = cpus.saturating_mul(TICK_NS);
        let beyond = |time: u64, ours: u64| time.saturating_sub(ours).saturating_sub(error);
        let permille = |part: u64, of: u64| {
            let part = u128::from(part) * 1000 / u128::from(of.max(1));
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        let of_cpus = window.saturating_mul(cpus);
        Some(Self {
            foreign: permille(beyond(figure(HOST_BUSY)?, ours), of_cpus),
            steal: permille(beyond(figure(HOST_STEAL)?, 0), of_cpus),
            memory_pressure: permille(figure(HOST_MEMORY_PRESSURE).unwrap_or(0), window),
        })
    }

    /// The most of either, of each kind.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        Self {
            foreign: self.foreign.max(other.foreign),
            steal: self.steal.max(other.steal),
            memory_pressure: self.memory_pressure.max(other.memory_pressure),
        }
    }

    /// Whether the figures of the phase are to be read with care.
    #[must_use]
    pub fn is_too_much(self) -> bool {
        self.foreign > Self::FOREIGN_MOST
            || self.steal > Self::STEAL_MOST
            || self.memory_pressure > Self::MEMORY_PRESSURE_MOST
    }
}

impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |permille: u64| format!("{}.{} %", permille / 10, permille % 10);
        let (foreign, steal) = (percent(self.foreign), percent(self.steal));
        let memory = percent(self.memory_pressure);
        write!(
            f,
            "{foreign} of the CPUs used by others, {steal} stolen, {memory} of the time waiting for memory"
        )
    }
}

/// How much of what was due in a rate phase may stay unsent, in percent.
pub const NEVER_SENT_PERCENT_MAX: u64 = 1;

/// How much of what was due in the rate phase was sent, in percent, if that is
/// too little to be the load that was asked; `None` if it was enough or was not
/// measured. What was sent late is not missing: its latency says how late.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "percents are shown")]
pub fn too_little_sent_percent(metrics: &BTreeMap<String, u64>) -> Option<f64> {
    let [due, unsent] = [PLANNED, SHORTFALL].map(|name| metrics.get(&Phase::Rate.metric(name)));
    let (due, unsent) = (*due?, *unsent?);
    let is_too_little =
        u128::from(unsent) * 100 > u128::from(due) * u128::from(NEVER_SENT_PERCENT_MAX);
    is_too_little.then(|| 100.0 * due.saturating_sub(unsent) as f64 / due.max(1) as f64)
}

/// Client busy at least this much, in thousandths, ...
pub const CLIENT_BUSY_PERMILLE: u64 = 950;
/// ... while the server is busy less than this.
pub const SERVER_BUSY_PERMILLE: u64 = 900;

/// How busy a side's CPUs were in a phase, in thousandths: over the time to the
/// last success, since waiting for an answer that never comes is not idleness
/// that says anything about who is the limit. `beside` is what else ran there.
fn busy_permille(
    metrics: &BTreeMap<String, u64>,
    phase: Phase,
    [cpu, cpus]: [&str; 2],
    beside: u64,
) -> Option<u64> {
    let figure = |name| metrics.get(&phase.metric(name)).copied().map(u128::from);
    let available = figure(ELAPSED)? * figure(cpus)?;
    let busy = (figure(cpu)? + u128::from(beside)) * 1000;
    u64::try_from(busy.checked_div(available)?).ok()
}

/// How busy the client's CPUs were in a phase, in thousandths; `None` if not measured.
/// The origin behind a relay runs on them too, if there is one.
#[must_use]
pub fn client_busy_permille(metrics: &BTreeMap<String, u64>, phase: Phase) -> Option<u64> {
    let origin = metrics.get(&phase.metric(ORIGIN_CPU)).copied();
    busy_permille(
        metrics,
        phase,
        [CLIENT_CPU, CLIENT_CPUS],
        origin.unwrap_or(0),
    )
}

/// How busy the server's CPUs were in a phase, in thousandths; `None` if not measured.
#[must_use]
pub fn server_busy_permille(metrics: &BTreeMap<String, u64>, phase: Phase) -> Option<u64> {
    busy_permille(metrics, phase, [SERVER_CPU, SERVER_CPUS], 0)
}

/// Whether the phase shows the client's limit: its CPUs at least 95 % busy
/// while the server's were under 90 %. `None` if either was not measured.
#[must_use]
pub fn client_bound(metrics: &BTreeMap<String, u64>, phase: Phase) -> Option<bool> {
    let client = client_busy_permille(metrics, phase)?;
    let server = server_busy_permille(metrics, phase)?;
    Some(client >= CLIENT_BUSY_PERMILLE && server < SERVER_BUSY_PERMILLE)
}

/// Echoes in flight on average, which by Little's law are TPS x mean latency,
/// and between which bounds they must be.
///
/// The client keeps `concurrency` in flight. What is missing when the phase begins
/// (the first are sent one after another) and ends (the last are answered one
/// after another) is together no more than one mean latency of a server that
/// serves evenly. A lost connection may leave its place empty, and a failed echo has
/// its place for at most the timeout without having a latency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InFlight {
    /// Successes x mean latency / time to the last success.
    pub found: f64,
    /// At least; zero where the lower bound is not applied.
    pub least: f64,
    /// At most.
    pub most: f64,
}

/// The lower bound is applied to phases of at least this time, ...
pub const IN_FLIGHT_ELAPSED_MIN_NS: u64 = 1_000_000_000;
/// ... which are this many times as long as the mean latency.
pub const IN_FLIGHT_TURNS_MIN: f64 = 10.0;
/// How far beyond its bounds what was found may be, in percent of the bound.
pub const IN_FLIGHT_TOLERANCE_PERCENT: f64 = 5.0;

impl InFlight {
    /// In an echo phase; `None` if it was not measured. A limit a second leaves fewer
    /// in flight, so that there is no lower bound.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "percents are compared")]
    pub fn of(metrics: &BTreeMap<String, u64>, load: &EchoLoad, mean_ns: f64) -> Option<Self> {
        let figure = |name| metrics.get(&Phase::Echo.metric(name)).map(|n| *n as f64);
        let (elapsed_ns, succeeded) = (figure(ELAPSED)?, figure(SUCCEEDED)?);
        let most = figure(CONCURRENCY)?;
        if elapsed_ns == 0.0 || succeeded == 0.0 || most == 0.0 {
            return None;
        }
        let timeout_ns = load.timeout_ms as f64 * 1e6;
        let failed = figure(FAILED).unwrap_or(0.0) * timeout_ns / elapsed_ns;
        let empty = most * mean_ns / elapsed_ns + failed + figure(LOST).unwrap_or(0.0);
        let is_long = elapsed_ns >= IN_FLIGHT_ELAPSED_MIN_NS as f64
            && elapsed_ns >= IN_FLIGHT_TURNS_MIN * mean_ns;
        let least = match is_long && load.limit_per_s == 0 {
            true => (most - empty).max(0.0),
            false => 0.0,
        };
        Some(Self {
            found: succeeded * mean_ns / elapsed_ns,
            least,
            most,
        })
    }

    /// Whether TPS and latency fit each other.
    #[must_use]
    pub fn holds(&self) -> bool {
        let tolerance = IN_FLIGHT_TOLERANCE_PERCENT / 100.0;
        self.found >= self.least * (1.0 - tolerance) && self.found <= self.most * (1.0 + tolerance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ECHO: EchoLoad = EchoLoad {
        echoes: 0,
        duration_ms: None,
        concurrency: 0,
        limit_per_s: 0,
        timeout_ms: 5000,
        warmup_echoes: 0,
    };

    /// So many echoes in `ms`, and their mean latency in milliseconds.
    fn in_flight(ms: u64, echoes: u64, mean_ms: f64, more: &[(&str, u64)]) -> InFlight {
        let figures = [
            (ELAPSED, ms * 1_000_000),
            (SUCCEEDED, echoes),
            (CONCURRENCY, 1000),
        ];
        let figures = figures.iter().chain(more);
        let figures = figures.map(|(name, n)| (Phase::Echo.metric(name), *n));
        InFlight::of(&figures.collect(), &ECHO, mean_ms * 1e6).unwrap()
    }

    #[test]
    fn a_full_closed_loop_obeys_littles_law() {
        // 1,000 in flight for 2 s, 100 ms each, but for what begin and end leave empty.
        for echoes in [20_000, 19_000] {
            let found = in_flight(2000, echoes, 100.0, &[]);
            assert!(found.holds(), "{found:?}");
        }
        assert_eq!(in_flight(2000, 20_000, 100.0, &[]).found, 1000.0);
    }

    #[test]
    fn fewer_or_more_in_flight_than_there_can_be_are_found() {
        // Latencies that leave out half of the waiting; places that stood empty;
        // latencies longer than all the time there was.
        for (echoes, mean_ms) in [(20_000, 50.0), (18_000, 100.0), (20_000, 106.0)] {
            let found = in_flight(2000, echoes, mean_ms, &[]);
            assert!(!found.holds(), "{found:?}");
        }
    }

    #[test]
    fn the_lower_bound_is_not_for_short_phases_or_limited_ones() {
        // 10 ms each in 0.99 s; 110 ms each in 1 s; both a tenth of what it should be.
        for (ms, mean_ms) in [(990, 10.0), (1000, 110.0)] {
            let echoes = (ms as f64 * 100.0 / mean_ms) as u64;
            let found = in_flight(ms, echoes, mean_ms, &[]);
            assert!(found.holds() && found.least == 0.0, "{found:?}");
            let many = in_flight(ms, echoes * 11, mean_ms, &[]);
            assert!(!many.holds(), "{many:?}");
        }
        let (ms, echoes, mean_ms) = (1000, 10_000, 10.0);
        assert!(!in_flight(ms, echoes, mean_ms, &[]).holds());
        let limited = EchoLoad {
            limit_per_s: 10_000,
            ..ECHO
        };
        let figures = [
            (ELAPSED, 1_000_000_000),
            (SUCCEEDED, 10_000),
            (CONCURRENCY, 1000),
        ];
        let figures = figures
            .map(|(name, n)| (Phase::Echo.metric(name), n))
            .into();
        assert!(InFlight::of(&figures, &limited, 1e7).unwrap().holds());
    }

    #[test]
    fn what_failed_and_what_was_lost_is_allowed_for_and_nothing_more() {
        // 150 of 1,000 places were empty all the time.
        let found = |more: &[(&str, u64)]| in_flight(2000, 170_000, 10.0, more);
        assert!(!found(&[]).holds());
        assert!(found(&[(LOST, 150)]).holds());
        assert!(!found(&[(LOST, 50)]).holds());
        // A failed echo is in flight for 5 s of 2 s.
        assert!(found(&[(FAILED, 60)]).holds());
        assert!(!found(&[(FAILED, 20)]).holds());
    }

    #[test]
    fn without_an_answer_there_is_nothing_in_flight_to_judge() {
        assert_eq!(InFlight::of(&BTreeMap::new(), &ECHO, 1.0), None);
    }

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
    fn the_origin_behind_a_relay_is_busy_where_the_client_is() {
        let with_origin = |client_cpu_ns, origin_cpu_ns| {
            let mut metrics = busy(client_cpu_ns, 500);
            metrics.insert(Phase::Echo.metric(ORIGIN_CPU), origin_cpu_ns);
            client_bound(&metrics, Phase::Echo)
        };
        assert_eq!(with_origin(1000, 899), Some(false));
        assert_eq!(with_origin(1000, 900), Some(true));
        assert_eq!(with_origin(u64::MAX, u64::MAX), Some(true));
    }

    #[test]
    fn more_than_a_hundredth_unsent_is_not_the_load_that_was_asked() {
        let sent = |due, unsent| {
            let figures = [(PLANNED, due), (SHORTFALL, unsent)];
            let metrics = figures.map(|(name, n)| (Phase::Rate.metric(name), n));
            too_little_sent_percent(&metrics.into()).map(|percent| format!("{percent:.1}"))
        };
        assert_eq!(sent(250_013, 171_079).as_deref(), Some("31.6"));
        assert_eq!(sent(10_000, 101).as_deref(), Some("99.0"));
        assert_eq!(sent(10_000, 100), None);
        assert_eq!(sent(10_000, 0), None);
        assert_eq!(sent(0, 0), None);
        assert_eq!(sent(u64::MAX, u64::MAX).as_deref(), Some("0.0"));
    }

    /// Of two CPUs in a second, of which server and client used 0.8 s each.
    fn noise(busy_ms: u64, more: &[(&str, u64)]) -> Option<Noise> {
        let ms = 1_000_000;
        let figures = [
            (SERVER_WINDOW, 1000 * ms),
            (HOST_CPUS, 2),
            (SERVER_CPU, 800 * ms),
            (CLIENT_CPU, 800 * ms),
            (HOST_BUSY, busy_ms * ms),
            (HOST_STEAL, 0),
        ];
        let all = figures.iter().chain(more);
        let all = all.map(|(name, value)| (Phase::Echo.metric(name), *value));
        Noise::of(&all.collect(), Phase::Echo)
    }

    #[test]
    fn what_others_did_is_what_is_left_of_the_cpus_time() {
        // A tick for each of two CPUs is nobody's.
        assert_eq!(noise(1620, &[]).unwrap().foreign, 0);
        assert_eq!(noise(1500, &[]).unwrap().foreign, 0);
        assert_eq!(noise(1740, &[]).unwrap().foreign, 60);
        let with_runner = noise(1740, &[(RUNNER_CPU, 40_000_000)]).unwrap();
        assert_eq!(with_runner.foreign, 40);
        assert_eq!(
            noise(u64::MAX / 1_000_000, &[]).map(Noise::is_too_much),
            Some(true)
        );
    }

    #[test]
    fn each_kind_of_noise_alone_is_too_much_beyond_its_level() {
        let is_too_much =
            |busy_ms, more: &[(&str, u64)]| noise(busy_ms, more).unwrap().is_too_much();
        assert!(!is_too_much(1720, &[]) && is_too_much(1722, &[]));
        assert!(!is_too_much(1600, &[(HOST_STEAL, 40_000_000)]));
        assert!(is_too_much(1600, &[(HOST_STEAL, 42_000_000)]));
        assert!(!is_too_much(1600, &[(HOST_MEMORY_PRESSURE, 10_000_000)]));
        assert!(is_too_much(1600, &[(HOST_MEMORY_PRESSURE, 11_000_000)]));
        let noise = noise(1720, &[(HOST_STEAL, 42_000_000)])
            .unwrap()
            .to_string();
        assert!(
            noise.starts_with("5.0 % of the CPUs used by others, 1.1 % stolen"),
            "{noise}"
        );
    }

    #[test]
    fn what_was_not_measured_is_not_judged() {
        assert_eq!(Noise::of(&BTreeMap::new(), Phase::Echo), None);
        assert_eq!(too_little_sent_percent(&BTreeMap::new()), None);
        assert_eq!(client_bound(&busy(2000, 0), Phase::Rate), None);
        assert_eq!(client_bound(&BTreeMap::new(), Phase::Echo), None);
    }
}
