//! What a user asks of a search: `--slo 'tp99<10ms'` and what goes with it.

use crate::args::units::{duration, whole_millis};
use anyhow::{Context as _, bail};
use std::time::Duration;
use wsbench_schema::{Bound, EchoLoad, Load, Objective, RateLoad, SloRecord, Suite};

/// The flags.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SloArgs {
    /// Find the highest rate that holds this: tp50, tp90, tp95, tp99, tp99.9 or max, as in
    /// 'tp99<10ms' or 'tp50<1ms,tp99.9<20ms'
    ///
    /// Instead of trials there are searches, one for each server and round, in messages a
    /// second over all connections (open loop). Latency is counted from when a message was
    /// due. No message may fail or stay unsent, and no connection may be lost. Connections
    /// and payload are those of the profile and of -c and -b.
    #[arg(long, value_name = "OBJECTIVE", value_parser = objective, help_heading = "Highest rate")]
    pub slo: Option<Objective>,
    /// How near the rate that is found is to one that was missed [default: 5%]
    #[arg(long, value_name = "PERCENT", value_parser = resolution, help_heading = "Highest rate")]
    pub slo_resolution: Option<u64>,
    /// How long messages are due in a stage; three times as long in one that confirms
    /// [default: 3s, and at least twenty times the longest latency that is asked for]
    #[arg(long, value_name = "DURATION", value_parser = stage, help_heading = "Highest rate")]
    pub slo_duration: Option<Duration>,
}

/// The same, decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slo {
    /// What is to be held.
    pub objective: Objective,
    /// Between neighbouring rates, in thousandths.
    pub resolution_permille: u64,
    /// Of a stage that does not confirm.
    pub stage_ms: u64,
}

/// Percentiles that can be asked for.
const NAMES: [(&str, u64); 6] = [
    ("tp50", 500),
    ("tp90", 900),
    ("tp95", 950),
    ("tp99", 990),
    ("tp99.9", 999),
    ("max", Bound::MAX),
];
/// A longer latency is no objective of an echo.
const LATENCY_MOST: Duration = Duration::from_secs(60);
const RESOLUTION_PERMILLE: u64 = 50;
const STAGE_MS: u64 = 3000;
const STAGE_LEAST: Duration = Duration::from_millis(200);
const STAGE_MOST: Duration = Duration::from_secs(600);
/// A stage is so many times as long as the longest latency that is asked for: a backlog
/// that grows would not show in less.
const TIMES_LATENCY: u64 = 20;

/// `tp99<10ms,max<1s`.
pub fn objective(text: &str) -> Result<Objective, String> {
    let mut bounds: Vec<Bound> = Vec::new();
    for part in text.split(',') {
        let bound = bound(part.trim())?;
        if bounds.iter().any(|known| known.permille == bound.permille) {
            return Err(format!("{} is there twice", bound.name()));
        }
        bounds.push(bound);
    }
    Ok(Objective(bounds))
}

fn bound(text: &str) -> Result<Bound, String> {
    let (name, limit) = text
        .split_once('<')
        .ok_or_else(|| format!("`{text}` has no `<` (write tp99<10ms)"))?;
    let name = name.trim();
    let known = NAMES.iter().find(|(known, _)| *known == name);
    let Some((_, permille)) = known else {
        let names = NAMES.map(|(name, _)| name).join(", ");
        return Err(format!("`{name}` is not one of {names}"));
    };
    let limit = limit.trim();
    let limit = duration(limit.strip_prefix('=').unwrap_or(limit).trim())?;
    if limit.is_zero() || limit > LATENCY_MOST {
        let most = LATENCY_MOST.as_secs();
        return Err(format!(
            "`{text}`: a latency is above 0 and at most {most}s"
        ));
    }
    Ok(Bound {
        permille: *permille,
        below_ns: u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX),
    })
}

/// `5%`, `0.5%`, `5`.
fn resolution(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a share from 0.5% to 50%");
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    let percent: f64 = number.parse().map_err(|_| wrong())?;
    match percent {
        0.5..=50.0 => Ok((percent * 10.0).round() as u64),
        _ => Err(wrong()),
    }
}

fn stage(text: &str) -> Result<Duration, String> {
    let length = whole_millis(text)?;
    match (STAGE_LEAST..=STAGE_MOST).contains(&length) {
        true => Ok(length),
        false => Err(format!(
            "{text} is not from {STAGE_LEAST:?} to {STAGE_MOST:?}"
        )),
    }
}

impl SloArgs {
    /// What is asked, over what a resumed run was begun with.
    ///
    /// # Errors
    /// If there is no objective for what is said of it.
    pub fn over(&self, base: Option<Slo>) -> anyhow::Result<Option<Slo>> {
        let objective = self
            .slo
            .clone()
            .or(base.as_ref().map(|base| base.objective.clone()));
        let Some(objective) = objective else {
            let of_none = self.slo_resolution.is_some() || self.slo_duration.is_some();
            if of_none {
                bail!("--slo-resolution and --slo-duration have no effect without --slo");
            }
            return Ok(None);
        };
        let kept = base.filter(|base| base.objective == objective);
        let resolution = kept.as_ref().map(|kept| kept.resolution_permille);
        let least_ms = objective.longest_ns().saturating_mul(TIMES_LATENCY) / 1_000_000;
        let of_kept = kept.map(|kept| kept.stage_ms);
        let said = self.slo_duration.map(|said| said.as_millis() as u64);
        let stage_ms = said.or(of_kept).unwrap_or(STAGE_MS.max(least_ms));
        if stage_ms < least_ms {
            bail!(
                "--slo-duration is {stage_ms} ms, which is too short for {objective}: a backlog that \
                 grows would not show (make it at least {TIMES_LATENCY} times the longest latency: {least_ms}ms)"
            );
        }
        Ok(Some(Slo {
            objective,
            resolution_permille: (self.slo_resolution.or(resolution))
                .unwrap_or(RESOLUTION_PERMILLE),
            stage_ms,
        }))
    }
}

/// Messages a second that are beyond what any client sends.
const RATE_MOST_PER_S: u64 = 20_000_000;
/// The longest that a stage becomes where the rate is so low that messages are few.
const LONGEST_MS: u64 = 60_000;
/// Of warm-up at most, and half a stage.
const WARMUP_MS: u64 = 1000;
/// Warm-up echoes, at least: of few connections five each are none.
const WARMUP_ECHOES: u64 = 20_000;
/// A message that waits so many times as long as is asked for need not be waited for.
const PATIENCE_TIMES: u64 = 10;
const PATIENCE_LEAST_MS: u64 = 2000;
/// Of messages that are due in a stage to those that it needs: how many are due is by
/// chance where connections send less than once in a stage.
const AMPLE_PERCENT: u64 = 130;
/// A stage that confirms is so many times as long as another.
pub const CONFIRM_TIMES: u64 = 3;

impl Slo {
    /// Names of settings of a plan.
    const RESOLUTION: &str = "slo_resolution_permille";
    const STAGE: &str = "slo_stage_ms";

    /// As they are kept.
    pub fn settings(&self) -> [(&'static str, String); 3] {
        [
            (SloRecord::SETTING, self.objective.to_string()),
            (Self::RESOLUTION, self.resolution_permille.to_string()),
            (Self::STAGE, self.stage_ms.to_string()),
        ]
    }

    /// Of a saved run's settings; `None` if its trials are no searches.
    pub fn of(setting: impl Fn(&str) -> Option<String>) -> anyhow::Result<Option<Self>> {
        let Some(text) = setting(SloRecord::SETTING) else {
            return Ok(None);
        };
        let number = |name: &str| -> anyhow::Result<u64> {
            let text = setting(name);
            let text = text.with_context(|| format!("the plan has no setting `{name}`"))?;
            text.parse()
                .with_context(|| format!("the plan has `{text}` as its setting `{name}`"))
        };
        Ok(Some(Self {
            objective: objective(&text).map_err(anyhow::Error::msg)?,
            resolution_permille: number(Self::RESOLUTION)?,
            stage_ms: number(Self::STAGE)?,
        }))
    }

    /// What is the same in all stages: connections, payload and checks of the only load,
    /// a closed loop to warm up, and the lowest rate.
    ///
    /// # Errors
    /// If there are several loads, or servers of the suite know no such messages.
    pub fn load(&self, suite: Suite, loads: &[Load]) -> anyhow::Result<Load> {
        if !suite.is_websocket() {
            bail!(
                "--slo is for WebSocket servers; those of the suite `{suite}` are not asked for single messages at a rate"
            );
        }
        let [load] = loads else {
            bail!(
                "--slo searches under one load, and there are {} (give one value to --connections and --payload, and no --ramp)",
                loads.len()
            );
        };
        let mut base = Load {
            echo: Some(EchoLoad {
                echoes: EchoLoad::default_warmup(load.connections).max(WARMUP_ECHOES),
                duration_ms: Some(WARMUP_MS.min(self.stage_ms / 2)),
                concurrency: 0,
                limit_per_s: 0,
                timeout_ms: 10_000,
                warmup_echoes: 0,
            }),
            rate: None,
            bulk: None,
            release: None,
            ..load.clone()
        };
        base.rate = Some(self.rate(load.connections, self.least_per_s(), 1));
        base.validate().map_err(anyhow::Error::msg)?;
        Ok(base)
    }

    /// The load of a stage.
    pub fn stage(&self, base: &Load, rate_per_s: u64, is_confirming: bool) -> Load {
        let times = if is_confirming { CONFIRM_TIMES } else { 1 };
        Load {
            rate: Some(self.rate(base.connections, rate_per_s, times)),
            ..base.clone()
        }
    }

    /// One message at a time on each connection's own schedule; the limit makes the whole
    /// exact, whatever it is divided by.
    fn rate(&self, connections: u32, rate_per_s: u64, times: u64) -> RateLoad {
        let each = rate_per_s.div_ceil(connections.max(1).into());
        let patience_ms = self.objective.longest_ns().saturating_mul(PATIENCE_TIMES) / 1_000_000;
        RateLoad {
            connections: 0,
            duration_ms: self.duration_ms(rate_per_s) * times,
            per_connection_per_s: u32::try_from(each).unwrap_or(u32::MAX),
            batch_bytes: 0,
            window: 0,
            limit_per_s: rate_per_s,
            timeout_ms: patience_ms.max(PATIENCE_LEAST_MS),
        }
    }

    /// Messages that are to be due in a stage.
    fn ample(&self) -> u64 {
        self.objective.needs() * AMPLE_PERCENT / 100
    }

    /// How long a stage is: longer where messages are so few that a percentile of them
    /// would mean nothing.
    fn duration_ms(&self, rate_per_s: u64) -> u64 {
        let for_samples_ms = (self.ample() * 1000).div_ceil(rate_per_s.max(1));
        self.stage_ms.max(for_samples_ms)
    }

    /// The lowest rate of which a stage of bearable length has messages enough.
    pub fn least_per_s(&self) -> u64 {
        let longest_ms = LONGEST_MS.max(self.stage_ms);
        (self.ample() * 1000).div_ceil(longest_ms).max(1)
    }

    /// Where a search begins: the lowest rate of which the shortest stage is long enough.
    pub fn first_per_s(&self) -> u64 {
        (self.ample() * 1000).div_ceil(self.stage_ms).max(1)
    }

    /// No more is tried.
    pub fn most_per_s(connections: u32) -> u64 {
        let each = u64::from(Load::RATE_MAX_PER_S);
        (each * u64::from(connections)).min(RATE_MOST_PER_S)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::testing;

    fn args(text: &str) -> SloArgs {
        SloArgs {
            slo: Some(objective(text).unwrap()),
            ..SloArgs::default()
        }
    }

    fn slo(text: &str) -> Slo {
        args(text).over(None).unwrap().unwrap()
    }

    #[test]
    fn an_objective_reads_back_as_it_is_written() {
        for (text, written) in [
            ("tp99<10ms", "tp99<10ms"),
            (" tp50 < 1ms , tp99.9<=0.02s", "tp50<1ms,tp99.9<20ms"),
            ("max<1500us", "max<1500us"),
        ] {
            let objective = objective(text).unwrap();
            assert_eq!(objective.to_string(), written);
            assert_eq!(super::objective(written).unwrap(), objective);
        }
    }

    #[test]
    fn what_is_no_objective_says_how_to_write_one() {
        for (text, expected) in [
            ("tp99", "`tp99` has no `<` (write tp99<10ms)"),
            ("", "`` has no `<`"),
            (
                "tp75<1ms",
                "`tp75` is not one of tp50, tp90, tp95, tp99, tp99.9, max",
            ),
            ("tp99<10", "`10` has no unit"),
            ("tp99<0", "a latency is above 0"),
            ("tp99<2m", "at most 60s"),
            ("tp99<1ms,tp99<2ms", "tp99 is there twice"),
            ("tp99<1ms,", "`` has no `<`"),
        ] {
            let error = objective(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        for text in ["0%", "51%", "x", "NaN", "-5"] {
            assert!(resolution(text).is_err(), "{text}");
        }
        assert_eq!((resolution("5%"), resolution("0.5")), (Ok(50), Ok(5)));
    }

    #[test]
    fn a_stage_is_long_enough_for_its_percentile_and_for_a_backlog_to_show() {
        let base = |slo: &Slo| slo.load(Suite::Websocket, &[testing::load()]).unwrap();
        let messages = |slo: &Slo, rate_per_s| {
            let rate = slo.stage(&base(slo), rate_per_s, false).rate.unwrap();
            assert_eq!(rate.limit_per_s, rate_per_s);
            // The limit is what holds.
            assert!(u64::from(rate.per_connection_per_s) * 100 >= rate_per_s);
            rate_per_s * rate.duration_ms / 1000
        };
        for text in ["tp99<10ms", "tp99.9<10ms", "max<1s", "tp50<30s"] {
            let slo = slo(text);
            let (least, first) = (slo.least_per_s(), slo.first_per_s());
            assert!(least <= first, "{text}");
            for rate in [least, first, 100_000] {
                assert!(
                    messages(&slo, rate) >= slo.objective.needs(),
                    "{text} {rate}"
                );
            }
            assert!(slo.stage_ms >= 20 * slo.objective.longest_ns() / 1_000_000);
        }
        let slo = slo("tp99<10ms");
        let load = slo.stage(&base(&slo), 1001, true);
        load.validate().unwrap();
        let rate = load.rate.unwrap();
        assert_eq!((rate.duration_ms, rate.per_connection_per_s), (9000, 11));
        let short = SloArgs {
            slo_duration: Some(Duration::from_secs(1)),
            ..args("tp50<1s")
        };
        let error = short.over(None).unwrap_err().to_string();
        assert!(error.contains("make it at least 20 times"), "{error}");
    }

    #[test]
    fn what_cannot_be_searched_is_refused() {
        let slo = slo("tp99<10ms");
        let one = [testing::load()];
        let of = |suite, loads: &[Load]| slo.load(suite, loads).unwrap_err().to_string();
        let error = of(Suite::Transfer, &one);
        assert!(
            error.starts_with("--slo is for WebSocket servers"),
            "{error}"
        );
        let error = of(Suite::Websocket, &[testing::load(), testing::load()]);
        assert!(error.contains("there are 2"), "{error}");
        let idle = SloArgs {
            slo_resolution: Some(50),
            ..SloArgs::default()
        };
        let error = idle.over(None).unwrap_err().to_string();
        assert!(error.ends_with("without --slo"), "{error}");
    }

    #[test]
    fn a_resumed_run_is_asked_the_same() {
        let begun = Slo {
            resolution_permille: 20,
            ..slo("tp99<10ms")
        };
        let settings: std::collections::BTreeMap<_, _> = begun.settings().into();
        let read = Slo::of(|name| settings.get(name).cloned()).unwrap();
        assert_eq!(read.as_ref(), Some(&begun));
        assert_eq!(SloArgs::default().over(read.clone()).unwrap(), read);
        assert_eq!(args("tp99<10ms").over(read).unwrap(), Some(begun));
        assert_eq!(Slo::of(|_| None).unwrap(), None);
    }
}
