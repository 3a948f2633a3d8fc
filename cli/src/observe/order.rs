//! Which phase may begin or end next. Checked where the figures are taken, so
//! that a client that lost its way gets a reason and never wrong figures.

use thiserror::Error;
use wsbench_schema::Phase;

/// A phase that may not begin or end now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OutOfOrder {
    /// Another phase has begun and not ended.
    #[error("phase {phase} cannot begin: {open} has not ended (a new client begins with connect)")]
    Open {
        /// The one that was asked for.
        phase: Phase,
        /// The one that runs.
        open: Phase,
    },
    /// Phases of a client begin in the order in which they are defined.
    #[error("phase {phase} cannot begin after {last} (a new client begins with connect)")]
    Late {
        /// The one that was asked for.
        phase: Phase,
        /// The last one that began.
        last: Phase,
    },
    /// A phase that is not running cannot end.
    #[error("phase {phase} cannot end: it has not begun, or another client has begun since")]
    NotOpen {
        /// The one that was asked for.
        phase: Phase,
    },
}

/// The phases so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct PhaseOrder {
    last: Option<Phase>,
    open: bool,
}

impl PhaseOrder {
    /// Connect may begin at any time: then a new client has come, and what an
    /// earlier one left open is void.
    pub fn begin(&mut self, phase: Phase) -> Result<(), OutOfOrder> {
        if let Some(last) = self.last.filter(|_| phase != Phase::Connect) {
            if self.open {
                return Err(OutOfOrder::Open { phase, open: last });
            }
            if phase <= last {
                return Err(OutOfOrder::Late { phase, last });
            }
        }
        self.last = Some(phase);
        self.open = true;
        Ok(())
    }

    /// Only the phase that runs may end.
    pub fn end(&mut self, phase: Phase) -> Result<(), OutOfOrder> {
        if !self.open || self.last != Some(phase) {
            return Err(OutOfOrder::NotOpen { phase });
        }
        self.open = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Phase::{Connect, Echo, Rate, Warmup};

    #[test]
    fn phases_follow_each_other_and_may_be_left_out() {
        let mut order = PhaseOrder::default();
        for phase in [Connect, Echo, Rate, Connect, Warmup] {
            order.begin(phase).unwrap();
            order.end(phase).unwrap();
        }
    }

    #[test]
    fn what_is_out_of_order_is_refused_and_changes_nothing() {
        let mut order = PhaseOrder::default();
        assert_eq!(order.end(Echo), Err(OutOfOrder::NotOpen { phase: Echo }));
        order.begin(Echo).unwrap();
        let open = OutOfOrder::Open {
            phase: Rate,
            open: Echo,
        };
        assert_eq!(order.begin(Rate), Err(open));
        assert_eq!(order.end(Rate), Err(OutOfOrder::NotOpen { phase: Rate }));
        order.end(Echo).unwrap();
        assert_eq!(order.end(Echo), Err(OutOfOrder::NotOpen { phase: Echo }));
        let late = OutOfOrder::Late {
            phase: Warmup,
            last: Echo,
        };
        assert_eq!(order.begin(Warmup), Err(late));
        order.begin(Rate).unwrap();
    }

    #[test]
    fn a_new_client_voids_what_the_last_one_left_open() {
        let mut order = PhaseOrder::default();
        order.begin(Echo).unwrap();
        order.begin(Connect).unwrap();
        assert_eq!(order.end(Echo), Err(OutOfOrder::NotOpen { phase: Echo }));
        order.end(Connect).unwrap();
    }
}
