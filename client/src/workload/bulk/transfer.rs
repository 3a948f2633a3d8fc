//! One transfer: how far it has come, and how long nothing came of it.

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The connection was never opened.
    None,
    /// Pieces are sent, or awaited.
    Moving,
    /// All pieces are back; the last word is on its way.
    LastWord,
    /// Everything was right; only the end of the stream may come.
    Ending,
    /// Time is up: the sink was told that no more comes, and tells what came.
    Cut,
    /// Succeeded, failed, or cut off.
    Over,
}

/// A transfer.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Where it stands.
    pub stage: Stage,
    /// Waits until so much has come back that its window has room again.
    pub is_full: bool,
    /// Pieces sent, wholly or in part, ...
    pub sent: u32,
    /// ... and pieces that came whole and right.
    pub right: u32,
    /// Bytes that count until now: those that came, or in direction up those that
    /// the socket took.
    pub counted: u64,
    /// When something came last.
    pub last_ns: u64,
    /// The longest time in which nothing came.
    pub stall_ns: u64,
    /// When the last byte came.
    pub whole_ns: u64,
}

impl Transfer {
    /// Of a connection that was never opened.
    pub const NONE: Self = Self {
        stage: Stage::None,
        is_full: false,
        sent: 0,
        right: 0,
        counted: 0,
        last_ns: 0,
        stall_ns: 0,
        whole_ns: 0,
    };

    /// So many bytes count now. Returns how many of them are new: if any are, it
    /// does not stall.
    #[inline]
    pub fn advance(&mut self, bytes: u64, now_ns: u64) -> u64 {
        let more = bytes.saturating_sub(self.counted);
        if more > 0 {
            self.counted = bytes;
            self.wait_until(now_ns);
            self.last_ns = now_ns;
        }
        more
    }

    /// Nothing has come since the last time.
    pub fn wait_until(&mut self, now_ns: u64) {
        let waited_ns = now_ns.saturating_sub(self.last_ns);
        self.stall_ns = self.stall_ns.max(waited_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_the_longest_time_in_which_nothing_new_came() {
        let mut transfer = Transfer {
            last_ns: 100,
            ..Transfer::NONE
        };
        assert_eq!(transfer.advance(10, 130), 10);
        assert_eq!(transfer.advance(10, 500), 0, "that is nothing new");
        assert_eq!((transfer.stall_ns, transfer.last_ns), (30, 130));
        assert_eq!(transfer.advance(25, 600), 15);
        assert_eq!((transfer.stall_ns, transfer.last_ns), (470, 600));
        transfer.wait_until(610);
        assert_eq!(transfer.stall_ns, 470);
    }
}
