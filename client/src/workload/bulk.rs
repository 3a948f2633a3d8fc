//! Transfers: a stretch of bytes on every connection, all at once, as fast as the
//! sockets take and give them.

mod slow;
mod tally;
mod transfer;

use super::total::Total;
use super::{Outcome, Workload};
use crate::cause::Cause;
use crate::engine::clock::{burn, now_ns};
use crate::engine::net::{Net, Writing};
use crate::engine::slot::{SlotId, State};
use crate::protocol::Cursor;
use crate::protocol::stream::pieces::Pieces;
use slow::SlowReaders;
use std::collections::VecDeque;
use std::net::Shutdown;
use tally::Tally;
use transfer::{Stage, Transfer};
use wsbench_schema::{Direction, metric};

/// From one reading of the bytes to the next, to begin with.
const READING_NS: u64 = 100_000_000;
/// What a connection sends at once before others have their turn: one piece at least.
const TURN_BYTES: u64 = 256 << 10;
/// Connections that have a turn between two looks at what came.
const TURNS_AT_ONCE: usize = 16;
/// Before any time, but not before that of an event which has none (0).
const AT_ONCE_NS: u64 = 1;

/// One shard's share of a bulk load.
#[derive(Clone, Debug)]
pub struct BulkShare {
    /// Transfers: one on each connection that was asked for.
    pub planned: u32,
    /// Pieces of a transfer.
    pub pieces: u32,
    /// Bytes of a piece.
    pub piece_bytes: u32,
    /// Where they go.
    pub direction: Direction,
    /// Bytes sent that have not come back, at most; 0 is no bound.
    pub window_bytes: u64,
    /// Of a hundred connections, how many read slowly, ...
    pub slow_percent: u32,
    /// ... and what each of those reads in a second.
    pub slow_bytes_per_s: u64,
    /// Number of the shard's first connection among all of the client.
    pub first_number: u32,
    /// When the phase begins.
    pub start_ns: u64,
    /// When what is not over is cut off.
    pub until_ns: Option<u64>,
    /// A transfer of which nothing has come for so long is lost.
    pub timeout_ns: u64,
    /// Work added for each piece; see `Load::client_burn_ns`.
    pub burn_ns: u64,
}

/// One shard's transfers.
pub struct Bulk {
    share: BulkShare,
    transfers: Vec<Transfer>,
    /// Connections that have something to send and wait for their turn.
    turns: VecDeque<SlotId>,
    slow: SlowReaders,
    total: Total,
    tally: Tally,
    sweep_at_ns: u64,
}

impl Bulk {
    /// One shard's transfers.
    #[must_use]
    pub fn new(share: BulkShare) -> Self {
        Self {
            transfers: Vec::new(),
            turns: VecDeque::new(),
            slow: SlowReaders::new(share.slow_percent, share.slow_bytes_per_s),
            total: Total::new(share.start_ns, READING_NS),
            tally: Tally::of(0),
            sweep_at_ns: 0,
            share,
        }
    }

    fn transfer(&mut self, id: SlotId) -> &mut Transfer {
        &mut self.transfers[id as usize]
    }

    fn bytes_of(&self, pieces: u32) -> u64 {
        u64::from(pieces) * u64::from(self.share.piece_bytes)
    }

    /// Bytes of a connection's pieces that its socket has taken.
    fn written(&self, net: &mut Net<Pieces>, id: SlotId) -> u64 {
        let begun = self.transfers[id as usize].sent;
        let slot = net.slot(id);
        match slot.batch_count {
            0 => self.bytes_of(begun),
            _ => self.bytes_of(begun.saturating_sub(1)) + u64::from(slot.batch_written),
        }
    }

    /// Sends what the socket takes, for a turn.
    fn send(&mut self, net: &mut Net<Pieces>, id: SlotId) {
        if self.transfer(id).stage != Stage::Moving || !net.is_open(id) {
            return;
        }
        if self.share.direction == Direction::Down {
            return self.ask(net, id);
        }
        let mut left = TURN_BYTES.div_ceil(u64::from(self.share.piece_bytes));
        while self.transfer(id).sent < self.share.pieces && !net.slot(id).is_writing() {
            if left == 0 {
                self.turns.push_back(id);
                break;
            }
            if !self.has_room(id) {
                self.transfer(id).is_full = true;
                break;
            }
            left -= 1;
            self.transfer(id).sent += 1;
            self.tally.sent += 1;
            if let Writing::Fault(cause) = net.send(id, 1) {
                net.close(id);
                self.fail(id, cause);
                return;
            }
        }
        self.taken(net, id);
    }

    /// Whether the window has room for one more piece.
    fn has_room(&self, id: SlotId) -> bool {
        let Transfer { sent, counted, .. } = self.transfers[id as usize];
        let out = self.bytes_of(sent + 1).saturating_sub(counted);
        self.share.window_bytes == 0 || out <= self.share.window_bytes
    }

    /// Asks the source for all pieces.
    fn ask(&mut self, net: &mut Net<Pieces>, id: SlotId) {
        if self.transfer(id).sent > 0 {
            return;
        }
        self.transfer(id).sent = self.share.pieces;
        net.slot(id).next = Pieces::GO;
        if let Writing::Fault(cause) = net.send(id, 1) {
            net.close(id);
            return self.fail(id, cause);
        }
        net.slot(id).awaited = self.share.pieces;
    }

    /// In direction up, what a socket takes is what can be seen of a transfer.
    fn taken(&mut self, net: &mut Net<Pieces>, id: SlotId) {
        if self.share.direction == Direction::Up {
            let written = self.written(net, id);
            self.advance(id, written, now_ns());
        }
    }

    /// So many bytes of a transfer count now.
    fn advance(&mut self, id: SlotId, bytes: u64, now: u64) {
        let more = self.transfer(id).advance(bytes, now);
        if more == 0 {
            return;
        }
        self.total.add(more, now);
        if self.share.direction != Direction::Up {
            self.tally.verified_bytes += more;
            self.tally.last_right_ns = now;
        }
    }

    /// Some of the pieces that come back, or down, came.
    fn came(&mut self, net: &mut Net<Pieces>, id: SlotId, count: u32, now: u64) {
        let pieces = self.share.pieces;
        let transfer = self.transfer(id);
        transfer.right += count;
        let right = transfer.right;
        let partly = match right < pieces {
            true => net.slot(id).cursor.offset.into(),
            false => 0,
        };
        let bytes = self.bytes_of(right) + partly;
        if self.share.direction == Direction::Both && bytes > self.written(net, id) {
            // Right they may be, but nobody can have them from us.
            net.close(id);
            return self.fail(id, Cause::Unexpected);
        }
        self.advance(id, bytes, now);
        if right < pieces {
            if self.transfers[id as usize].is_full && self.has_room(id) {
                self.transfer(id).is_full = false;
                self.turns.push_back(id);
            }
            return;
        }
        self.transfer(id).whole_ns = now;
        match self.share.direction {
            Direction::Both => self.say_last_word(net, id, Stage::LastWord),
            Direction::Down | Direction::Up => self.transfer(id).stage = Stage::Ending,
        }
    }

    /// Behind everything that was right.
    fn say_last_word(&mut self, net: &mut Net<Pieces>, id: SlotId, stage: Stage) {
        self.transfer(id).stage = stage;
        if !net.is_open(id) {
            return;
        }
        let slot = net.slot(id);
        slot.next = Pieces::LAST_WORD;
        if stage == Stage::LastWord {
            slot.cursor = Cursor {
                index: Pieces::LAST_WORD,
                offset: 0,
            };
        }
        if let Writing::Fault(cause) = net.send(id, 1) {
            net.close(id);
            self.fail(id, cause);
        }
    }

    /// The sink has told how many bytes were right.
    fn receipt_came(&mut self, net: &mut Net<Pieces>, id: SlotId, now: u64) {
        let told = net.slot(id).odd.take().map_or(0, |it| it.right_bytes());
        let whole = self.bytes_of(self.share.pieces);
        let transfer = self.transfer(id);
        let written = transfer.counted;
        transfer.last_ns = now;
        self.tally.verified_bytes += told.min(written);
        self.tally.last_right_ns = now;
        let transfer = self.transfer(id);
        match transfer.stage {
            Stage::Moving if told == whole && written == whole => {
                transfer.whole_ns = now;
                self.say_last_word(net, id, Stage::Ending);
            }
            Stage::Cut if told <= written => {
                net.close(id);
                self.cut_off(id);
            }
            _ => {
                net.close(id);
                self.fail(id, Cause::WrongPayload);
            }
        }
    }

    fn succeed(&mut self, id: SlotId) {
        let whole_ns = self.transfer(id).whole_ns;
        let latency_ns = whole_ns.saturating_sub(self.share.start_ns);
        self.tally.succeeded(latency_ns);
        self.over(id);
    }

    fn fail(&mut self, id: SlotId, cause: Cause) {
        self.transfer(id).wait_until(now_ns());
        self.tally.failed(cause);
        self.over(id);
    }

    fn cut_off(&mut self, id: SlotId) {
        self.tally.cut_off();
        self.over(id);
    }

    fn over(&mut self, id: SlotId) {
        debug_assert!(self.transfer(id).stage != Stage::Over);
        self.transfer(id).stage = Stage::Over;
        if !self.slow.is_slow(id) {
            self.tally.stalled(&self.transfers[id as usize]);
        }
    }

    /// Time is up: what is not over is cut off. A sink is asked what came.
    fn cut(&mut self, net: &mut Net<Pieces>, now: u64) {
        for id in 0..self.transfers.len() as SlotId {
            let Transfer { stage, sent, .. } = *self.transfer(id);
            if stage != Stage::Moving {
                continue;
            }
            if self.share.direction != Direction::Up {
                net.close(id);
                self.cut_off(id);
            } else if sent < self.share.pieces || net.slot(id).is_writing() {
                self.half_close(net, id, now);
            }
        }
    }

    fn half_close(&mut self, net: &mut Net<Pieces>, id: SlotId, now: u64) {
        self.taken(net, id);
        let transfer = self.transfer(id);
        (transfer.stage, transfer.last_ns) = (Stage::Cut, now);
        let slot = net.slot(id);
        // The rest of a piece that is partly written.
        slot.batch_count = 0;
        let stream = slot.stream.as_ref();
        let closed = stream.map(|stream| stream.shutdown(Shutdown::Write));
        if let Some(Err(error)) = closed {
            net.close(id);
            self.fail(id, Cause::of(&error));
        }
    }

    /// Gives up the transfers of which nothing has come for too long.
    fn sweep(&mut self, net: &mut Net<Pieces>, now: u64) {
        let timeout_ns = self.share.timeout_ns;
        let mut oldest_ns = now;
        for id in 0..self.transfers.len() as SlotId {
            let Transfer { stage, last_ns, .. } = *self.transfer(id);
            if matches!(stage, Stage::None | Stage::Over) || self.slow.is_paused(id) {
                continue;
            }
            if now.saturating_sub(last_ns) >= timeout_ns {
                net.close(id);
                self.fail(id, Cause::Lost);
            } else {
                oldest_ns = oldest_ns.min(last_ns);
            }
        }
        let pause_ns = (timeout_ns / 16).clamp(1_000_000, 500_000_000);
        self.sweep_at_ns = oldest_ns.saturating_add(timeout_ns).max(now + pause_ns);
    }
}

impl Workload<Pieces> for Bulk {
    fn begin(&mut self, net: &mut Net<Pieces>) {
        let now = now_ns();
        self.transfers = vec![Transfer::NONE; net.slots.len()];
        self.sweep_at_ns = now.saturating_add(self.share.timeout_ns);
        self.tally = Tally::of(net.open);
        for id in 0..net.slots.len() as SlotId {
            let slot = net.slot(id);
            let (State::Open, Some(stream)) = (slot.state, &slot.stream) else {
                continue;
            };
            let number = self.share.first_number.wrapping_add(id);
            self.slow.begin(id, number, stream);
            if self.share.direction == Direction::Up {
                slot.cursor = Cursor {
                    index: Pieces::RECEIPT,
                    offset: 0,
                };
            }
            let transfer = self.transfer(id);
            (transfer.stage, transfer.last_ns) = (Stage::Moving, now);
            self.turns.push_back(id);
        }
    }

    #[inline]
    fn received(&mut self, net: &mut Net<Pieces>, id: SlotId, count: u32, now_ns: u64) {
        let Transfer { stage, counted, .. } = *self.transfer(id);
        match (stage, self.share.direction) {
            (Stage::Moving, Direction::Both | Direction::Down) => {
                self.came(net, id, count, now_ns);
            }
            (Stage::Moving | Stage::Cut, _) if count > 0 => self.receipt_came(net, id, now_ns),
            (Stage::LastWord, _) if count > 0 => {
                net.close(id);
                self.succeed(id);
            }
            _ => {}
        }
        let more = self.transfer(id).counted - counted;
        self.slow.took(id, more.max(1), now_ns);
        burn(u64::from(count) * self.share.burn_ns);
    }

    fn answered(&mut self, net: &mut Net<Pieces>, id: SlotId, count: u32, now_ns: u64) {
        self.received(net, id, count, now_ns);
    }

    #[inline]
    fn allowance(&mut self, id: SlotId) -> Option<usize> {
        self.slow.allowance(id)
    }

    fn dropped(&mut self, net: &mut Net<Pieces>, id: SlotId, _in_flight: u32, cause: Cause) {
        let Transfer { stage, .. } = *self.transfer(id);
        match (stage, cause) {
            (Stage::None | Stage::Over, _) => {}
            (Stage::Ending, Cause::Closed) => self.succeed(id),
            (Stage::Moving, _) if self.share.direction != Direction::Up => {
                // What came before the fault was right.
                self.came(net, id, 0, now_ns());
                self.fail(id, cause);
            }
            _ => self.fail(id, cause),
        }
    }

    fn drained(&mut self, net: &mut Net<Pieces>, id: SlotId) {
        self.send(net, id);
    }

    fn progressed(&mut self, net: &mut Net<Pieces>, id: SlotId) {
        self.taken(net, id);
    }

    fn wake_at_ns(&self) -> u64 {
        if !self.turns.is_empty() {
            return AT_ONCE_NS;
        }
        self.total
            .next_ns()
            .min(self.slow.next_ns())
            .min(self.sweep_at_ns)
            .min(self.share.until_ns.unwrap_or(u64::MAX))
    }

    fn tick(&mut self, net: &mut Net<Pieces>, now_ns: u64) {
        self.total.pass(now_ns);
        if self.share.until_ns.is_some_and(|until| now_ns >= until) {
            self.share.until_ns = None;
            self.cut(net, now_ns);
        }
        while let Some(id) = self.slow.due(now_ns) {
            // The pause was the reader's own.
            self.transfer(id).last_ns = now_ns;
            net.read_again(id);
        }
        if now_ns >= self.sweep_at_ns {
            self.sweep(net, now_ns);
        }
        for _ in 0..self.turns.len().min(TURNS_AT_ONCE) {
            if let Some(id) = self.turns.pop_front() {
                self.send(net, id);
            }
        }
    }

    fn is_done(&self) -> bool {
        self.tally.under_way == 0
    }

    fn planned(&self) -> u64 {
        u64::from(self.share.planned) * self.bytes_of(self.share.pieces)
    }

    fn progress(&self) -> (u64, u64) {
        (self.total.amount(), self.tally.failures())
    }

    fn outcome(self) -> Outcome {
        let bytes = self.bytes_of(self.share.pieces);
        let mut outcome = self.tally.outcome(self.share.planned, bytes);
        let series = self.total.into_series(now_ns());
        outcome.series.insert(metric::CLIENT_BYTES_SERIES, series);
        outcome
    }
}
