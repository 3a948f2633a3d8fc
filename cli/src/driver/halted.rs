//! A phase that was halted: what the clients measured of it until then.

use super::process::Line;
use super::{Clients, TICK, Watch, sum};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Instant;
use wsbench_schema::{ClientCommand, ClientEvent, Phase, PhaseReport, Progress};

/// What came of a phase in which [`Clients::go`] failed.
#[derive(Debug)]
pub enum Rest {
    /// The report of every client.
    Whole(Vec<PhaseReport>),
    /// A client is gone, or does not tell: what the others measured is not the whole.
    Lost,
    /// The caller's watch said so.
    Abandoned,
}

impl Clients {
    /// Ends the phase that [`Clients::go`] was halted in, and waits a bounded
    /// time for what each client measured. No other phase can follow.
    pub fn give_up(&mut self, phase: Phase, watch: Watch<'_>) -> Rest {
        let deadline = Instant::now() + self.patience.give_up;
        for index in 0..self.processes.len() {
            if self.processes[index].pending {
                // One that cannot be told has closed its output, which is noticed below.
                let _ = self.write(index, &ClientCommand::Stop);
            }
        }
        while self.reports.iter().any(Option::is_none) {
            if watch().is_break() {
                return Rest::Abandoned;
            }
            if let Some((index, event)) = self.unheard() {
                match event {
                    ClientEvent::Progress(_) => {}
                    ClientEvent::Done {
                        phase: ended,
                        report,
                    } if ended == phase => {
                        self.reports[index] = Some(*report);
                        self.processes[index].pending = false;
                    }
                    _ => return Rest::Lost,
                }
                continue;
            }
            if Instant::now() >= deadline {
                return Rest::Lost;
            }
            match self.events.recv_timeout(TICK) {
                Ok((index, Line::Event(event))) => {
                    self.processes[index].unheard.push_back(event);
                }
                // It leaves after its report, which came before.
                Ok((index, Line::Closed)) if self.reports[index].is_some() => {}
                Ok((_, Line::Closed | Line::Other(_))) | Err(RecvTimeoutError::Disconnected) => {
                    return Rest::Lost;
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        Rest::Whole(self.reports.drain(..).flatten().collect())
    }

    /// How far the last phase had come when its clients last told, if any did.
    pub fn last_told(&self, phase: Phase) -> Option<Progress> {
        let any = self.shares.iter().any(Option::is_some);
        any.then(|| sum(phase, &self.shares))
    }
}
