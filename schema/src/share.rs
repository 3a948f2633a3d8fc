//! A load cut into shares, one for each of several client processes, so that
//! all shares together are the load to the last connection, echo and message.

use crate::split::{apportion, share};
use crate::{DialLoad, EchoLoad, Load, RateLoad};

impl Load {
    /// The shares of `parts` processes. Connections, dials and echoes in flight
    /// are split evenly, the remainder to the first; echoes by those in flight;
    /// rates by connections that send.
    ///
    /// # Errors
    /// If a process would have nothing to do, naming the setting of which there is too little.
    pub fn shares(&self, parts: u32) -> Result<Vec<Self>, String> {
        self.enough_for(parts)?;
        let even = |total: u64| -> Vec<u64> {
            let part = |index| share(total, parts as usize, index);
            (0..parts as usize).map(part).collect()
        };
        let connections = even(self.connections.into());
        let already = even(self.after_connections.into());
        let dials = even(self.dial.concurrency.into());
        let echo = self
            .echo
            .as_ref()
            .map(|echo| Echoes::of(echo, &connections));
        let rate = self
            .rate
            .as_ref()
            .map(|rate| Senders::of(rate, &connections));
        let share = |index: usize| Self {
            connections: narrow(connections[index]),
            after_connections: narrow(already[index]),
            dial: DialLoad {
                concurrency: narrow(dials[index]),
                ..self.dial.clone()
            },
            echo: echo.as_ref().map(|echo| echo.share(index)),
            rate: rate.as_ref().map(|rate| rate.share(index)),
            ..self.clone()
        };
        Ok((0..parts as usize).map(share).collect())
    }

    /// Zero means `all` or `no limit` in some settings, so no share may round down to it.
    fn enough_for(&self, parts: u32) -> Result<(), String> {
        let mut wholes = vec![
            ("connections", u64::from(self.connections)),
            ("dials in flight", self.dial.concurrency.into()),
        ];
        if let Some(echo) = &self.echo {
            wholes.push(("echoes", echo.echoes));
            wholes.push(("warm-up echoes", echo.warmup_echoes));
            wholes.push(("echoes in flight", echo.concurrency.into()));
            wholes.push(("echoes a second", echo.limit_per_s));
        }
        if let Some(rate) = &self.rate {
            wholes.push(("connections that send", rate.connections.into()));
            wholes.push(("messages a second", rate.limit_per_s));
        }
        match wholes
            .iter()
            .find(|(_, of)| (1..u64::from(parts)).contains(of))
        {
            None if parts > 0 => Ok(()),
            None => Err("0 client processes; there must be at least 1".into()),
            Some((what, of)) => Err(format!(
                "{of} {what} cannot be split over {parts} client processes (make them at least {parts})"
            )),
        }
    }
}

/// Every process' part of a closed loop.
struct Echoes<'a> {
    of: &'a EchoLoad,
    in_flight: Vec<u64>,
    echoes: Vec<u64>,
    warmup: Vec<u64>,
    limit: Vec<u64>,
}

impl<'a> Echoes<'a> {
    fn of(of: &'a EchoLoad, connections: &[u64]) -> Self {
        let in_flight = some_of(of.concurrency, connections);
        // One in flight on every connection is each process' own affair.
        let weights = match of.concurrency {
            0 => connections,
            _ => &in_flight,
        };
        Self {
            of,
            echoes: spread(of.echoes, weights),
            warmup: spread(of.warmup_echoes, weights),
            limit: spread(of.limit_per_s, weights),
            in_flight,
        }
    }

    fn share(&self, index: usize) -> EchoLoad {
        EchoLoad {
            echoes: self.echoes[index],
            concurrency: narrow(self.in_flight[index]),
            limit_per_s: self.limit[index],
            warmup_echoes: self.warmup[index],
            ..self.of.clone()
        }
    }
}

/// Every process' part of an open loop.
struct Senders<'a> {
    of: &'a RateLoad,
    connections: Vec<u64>,
    limit: Vec<u64>,
}

impl<'a> Senders<'a> {
    fn of(of: &'a RateLoad, open: &[u64]) -> Self {
        let connections = some_of(of.connections, open);
        let weights = match of.connections {
            0 => open,
            _ => &connections,
        };
        Self {
            of,
            limit: spread(of.limit_per_s, weights),
            connections,
        }
    }

    fn share(&self, index: usize) -> RateLoad {
        RateLoad {
            connections: narrow(self.connections[index]),
            limit_per_s: self.limit[index],
            ..self.of.clone()
        }
    }
}

/// In proportion to `weights`, but at least 1 each, unless there is nothing to split.
fn spread(total: u64, weights: &[u64]) -> Vec<u64> {
    match total.checked_sub(weights.len() as u64) {
        Some(beyond) => apportion(beyond, weights)
            .iter()
            .map(|part| part + 1)
            .collect(),
        None => vec![0; weights.len()],
    }
}

/// A number that means `all` when it is zero. More than there are connections is all of them.
fn some_of(count: u32, connections: &[u64]) -> Vec<u64> {
    let all: u64 = connections.iter().sum();
    match u64::from(count) {
        0 => vec![0; connections.len()],
        some => (0..connections.len())
            .map(|index| share(some.min(all), connections.len(), index))
            .collect(),
    }
}

/// A part of a `u32`.
fn narrow(part: u64) -> u32 {
    u32::try_from(part).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MessageKind, Transport};

    fn load() -> Load {
        Load {
            connections: 11,
            payload_bytes: 1024,
            message: MessageKind::Binary,
            check: true,
            dial: DialLoad {
                concurrency: 7,
                ..DialLoad::default()
            },
            echo: Some(EchoLoad {
                echoes: 101,
                duration_ms: Some(500),
                concurrency: 8,
                limit_per_s: 1_001,
                timeout_ms: 1000,
                warmup_echoes: 55,
            }),
            rate: Some(RateLoad {
                connections: 10,
                duration_ms: 1000,
                per_connection_per_s: 20,
                batch_bytes: 16_384,
                window: 0,
                limit_per_s: 199,
                timeout_ms: 1000,
            }),
            after_connections: 0,
            bulk: None,
            release: None,
            transport: Transport::Websocket,
            client_burn_ns: 3,
        }
    }

    /// Everything that is split.
    fn totals(loads: &[Load]) -> Vec<u64> {
        let echo = |load: &Load| load.echo.clone().unwrap();
        let rate = |load: &Load| load.rate.clone().unwrap();
        let figures: [&dyn Fn(&Load) -> u64; 8] = [
            &|load| load.connections.into(),
            &|load| load.dial.concurrency.into(),
            &|load| echo(load).echoes,
            &|load| echo(load).warmup_echoes,
            &|load| echo(load).concurrency.into(),
            &|load| echo(load).limit_per_s,
            &|load| rate(load).connections.into(),
            &|load| rate(load).limit_per_s,
        ];
        figures
            .iter()
            .map(|figure| loads.iter().map(figure).sum())
            .collect()
    }

    fn loads(load: &Load, parts: u32) -> Vec<Load> {
        load.shares(parts).unwrap()
    }

    #[test]
    fn all_shares_together_are_the_load_however_odd_the_remainders() {
        for parts in 1..=7 {
            let loads = loads(&load(), parts);
            assert_eq!(totals(&loads), totals(&[load()]), "{parts} parts");
            for share in &loads {
                share.validate().unwrap();
                assert!(
                    totals(std::slice::from_ref(share))
                        .iter()
                        .all(|part| *part > 0)
                );
                let (echo, rate) = (share.echo.clone().unwrap(), share.rate.clone().unwrap());
                assert!(echo.concurrency <= share.connections);
                assert!(rate.connections <= share.connections);
                assert_eq!((rate.per_connection_per_s, share.client_burn_ns), (20, 3));
            }
        }
        assert_eq!(loads(&load(), 1), [load()]);
    }

    #[test]
    fn no_share_rounds_down_to_nothing() {
        for parts in 1..=30 {
            for in_flight in parts..=3 * parts {
                let mut load = load();
                load.connections = 3 * parts;
                load.dial.concurrency = parts;
                load.rate = None;
                let echo = load.echo.as_mut().unwrap();
                echo.concurrency = in_flight;
                (echo.echoes, echo.warmup_echoes) = (parts.into(), parts.into());
                echo.limit_per_s = parts.into();
                for share in loads(&load, parts) {
                    let echo = share.echo.unwrap();
                    let least = echo.echoes.min(echo.warmup_echoes).min(echo.limit_per_s);
                    assert!(least > 0, "{parts} parts, {in_flight} in flight");
                }
            }
        }
    }

    #[test]
    fn what_means_all_or_unlimited_means_it_in_every_share() {
        let mut load = load();
        let (echo, rate) = (load.echo.as_mut().unwrap(), load.rate.as_mut().unwrap());
        (echo.concurrency, echo.limit_per_s, echo.warmup_echoes) = (0, 0, 0);
        (rate.connections, rate.limit_per_s) = (0, 0);
        for share in loads(&load, 3) {
            let (echo, rate) = (share.echo.unwrap(), share.rate.unwrap());
            assert_eq!((echo.concurrency, echo.limit_per_s), (0, 0));
            assert_eq!(echo.warmup_echoes, 0);
            assert_eq!((rate.connections, rate.limit_per_s), (0, 0));
        }
        // More than there are connections is one on each.
        load.echo.as_mut().unwrap().concurrency = 5_000;
        let shares = loads(&load, 3);
        assert_eq!(totals(&shares)[4], 11);
    }

    #[test]
    fn a_process_without_work_is_refused_with_the_setting() {
        let error = load().shares(9).unwrap_err();
        assert_eq!(
            error,
            "7 dials in flight cannot be split over 9 client processes (make them at least 9)"
        );
        let mut load = load();
        load.dial.concurrency = 2000;
        let error = load.shares(9).unwrap_err();
        assert!(error.starts_with("8 echoes in flight cannot"), "{error}");
        assert!(load.shares(0).is_err());
    }
}
