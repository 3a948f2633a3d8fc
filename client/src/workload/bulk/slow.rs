//! Connections that read no more than so much a second, by leaving the rest in the
//! socket until its time has come.

use crate::engine::clock::now_ns;
use crate::engine::slot::SlotId;
use mio::net::TcpStream;
use socket2::SockRef;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Reads of a slow reader in a second, as far as a read is one byte at least ...
const READS_PER_S: u64 = 20;
/// ... and this at most.
const READ_MAX_BYTES: u64 = 64 << 10;
/// What the kernel may hold for a slow reader: it is the peer who has to wait.
const RECEIVE_BUFFER_BYTES: usize = 64 << 10;

#[derive(Clone, Copy, Debug, Default)]
struct Reader {
    is_slow: bool,
    is_paused: bool,
    /// When it may read again.
    next_ns: u64,
}

/// The slow readers of a shard.
#[derive(Debug)]
pub struct SlowReaders {
    percent: u32,
    bytes_per_s: u64,
    /// Bytes of a read.
    read_bytes: u64,
    readers: Vec<Reader>,
    /// Those that wait until they may read.
    paused: BinaryHeap<Reverse<(u64, SlotId)>>,
}

/// Whether a connection is a slow one: so many of any hundred in a row, evenly spread.
fn is_slow(number: u32, percent: u32) -> bool {
    let until = |number: u64| number * u64::from(percent) / 100;
    until(u64::from(number) + 1) > until(number.into())
}

impl SlowReaders {
    /// So many of a hundred connections, each with so many bytes a second.
    #[must_use]
    pub fn new(percent: u32, bytes_per_s: u64) -> Self {
        Self {
            percent,
            bytes_per_s,
            read_bytes: (bytes_per_s / READS_PER_S).clamp(1, READ_MAX_BYTES),
            readers: Vec::new(),
            paused: BinaryHeap::new(),
        }
    }

    /// Connection `id`, which has this number among all of the client, has a transfer.
    pub fn begin(&mut self, id: SlotId, number: u32, stream: &TcpStream) {
        if !is_slow(number, self.percent) {
            return;
        }
        if self.readers.len() <= id as usize {
            self.readers.resize(id as usize + 1, Reader::default());
        }
        self.readers[id as usize].is_slow = true;
        // It only makes the peer wait sooner: where it is refused, the peer waits later.
        let _ = SockRef::from(stream).set_recv_buffer_size(RECEIVE_BUFFER_BYTES);
    }

    fn reader(&mut self, id: SlotId) -> Option<&mut Reader> {
        let reader = self.readers.get_mut(id as usize);
        reader.filter(|reader| reader.is_slow)
    }

    /// Whether it reads slowly.
    #[must_use]
    pub fn is_slow(&self, id: SlotId) -> bool {
        self.readers.get(id as usize).is_some_and(|it| it.is_slow)
    }

    /// Whether it reads nothing just now because it is slow.
    #[must_use]
    pub fn is_paused(&self, id: SlotId) -> bool {
        self.readers.get(id as usize).is_some_and(|it| it.is_paused)
    }

    /// How much it may read now; `None` is everything. If it is nothing, it is
    /// [due](SlowReaders::due) later.
    #[inline]
    pub fn allowance(&mut self, id: SlotId) -> Option<usize> {
        let read_bytes = self.read_bytes as usize;
        let reader = self.reader(id)?;
        if now_ns() >= reader.next_ns {
            return Some(read_bytes);
        }
        self.pause(id);
        Some(0)
    }

    /// It has read so much: it waits for as long as that may take.
    #[inline]
    pub fn took(&mut self, id: SlotId, bytes: u64, now_ns: u64) {
        let per_s = u128::from(self.bytes_per_s.max(1));
        let takes_ns = (u128::from(bytes) * 1_000_000_000 / per_s) as u64;
        let Some(reader) = self.reader(id) else {
            return;
        };
        reader.next_ns = now_ns.saturating_add(takes_ns);
        // There may be more, of which no event will tell.
        self.pause(id);
    }

    fn pause(&mut self, id: SlotId) {
        let Some(reader) = self.reader(id) else {
            return;
        };
        if !reader.is_paused {
            reader.is_paused = true;
            let at_ns = reader.next_ns;
            self.paused.push(Reverse((at_ns, id)));
        }
    }

    /// When the next may read again.
    #[must_use]
    pub fn next_ns(&self) -> u64 {
        self.paused
            .peek()
            .map_or(u64::MAX, |Reverse((at_ns, _))| *at_ns)
    }

    /// One that may read again now.
    pub fn due(&mut self, now_ns: u64) -> Option<SlotId> {
        if self.next_ns() > now_ns {
            return None;
        }
        let Reverse((_, id)) = self.paused.pop()?;
        if let Some(reader) = self.reader(id) {
            reader.is_paused = false;
        }
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_readers_are_so_many_of_any_hundred_and_spread() {
        for percent in [0, 1, 10, 33, 99, 100] {
            for first in [0, 7, 1_000_003, u32::MAX - 200] {
                let slow = (first..first + 100).filter(|number| is_slow(*number, percent));
                assert_eq!(slow.count() as u32, percent);
            }
        }
        let slow: Vec<u32> = (0..40).filter(|number| is_slow(*number, 10)).collect();
        assert_eq!(slow, [9, 19, 29, 39]);
    }
}
