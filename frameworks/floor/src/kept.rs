//! What is kept of a connection in the middle of something: the frame that is cut,
//! or the answers that its peer has not taken.

use std::ops::Range;

use rustix::io::Errno;

use crate::frame;
use crate::spares::Spares;

/// Read beyond a frame's end: only a read that leaves room has surely left nothing behind.
const SLACK: usize = 1 << 10;

/// Where a connection stands, in the bytes it was answered from.
#[derive(Default)]
pub struct Progress {
    pub upgraded: bool,
    /// Answers that the peer has not taken yet.
    pub unsent: Range<usize>,
    /// From here on the bytes are the start of a request or frame.
    pub consumed: usize,
    /// Length in all of that frame, as far as it is known.
    pub next_frame: usize,
    /// The connection ends once everything is sent.
    pub last: bool,
}

pub struct Kept {
    pub bytes: Vec<u8>,
    pub progress: Progress,
    /// So much of the payload of the frame that is cut has been unmasked.
    pub unmasked: usize,
    /// There may be something to read, of which no event will tell.
    pub unread: bool,
}

/// How a connection's turn ended.
pub enum Next {
    /// Nothing of it is kept; `drained` if nothing is left to read either.
    Idle {
        upgraded: bool,
        drained: bool,
    },
    Keep(Kept),
    Close,
}

impl Kept {
    /// Copies out of the thread's buffer what is not dealt with, into room for all of its frame.
    pub fn copy(
        bytes: &[u8],
        mut progress: Progress,
        unread: bool,
        spares: &mut Spares,
    ) -> Result<Self, Errno> {
        let from = if progress.unsent.is_empty() {
            progress.consumed
        } else {
            progress.unsent.start
        };
        progress.consumed -= from;
        progress.unsent = 0..progress.unsent.end.saturating_sub(from);
        let bytes = &bytes[from..];
        let mut own = spares.take(bytes.len().max(progress.next_frame) + SLACK)?;
        own.extend_from_slice(bytes);
        Ok(Self {
            bytes: own,
            progress,
            unmasked: 0,
            unread,
        })
    }

    pub fn is_writing(&self) -> bool {
        !self.progress.unsent.is_empty()
    }

    /// Makes room for the rest of the frame, and says how much there is.
    pub fn make_room(&mut self, spares: &mut Spares) -> Result<usize, Errno> {
        let needed = self.bytes.len().max(self.progress.next_frame) + SLACK;
        if self.bytes.capacity() < needed {
            let mut own = spares.take(needed)?;
            own.extend_from_slice(&self.bytes);
            spares.give(std::mem::replace(&mut self.bytes, own));
        }
        Ok(self.bytes.capacity() - self.bytes.len())
    }

    /// Forgets what has been answered and sent.
    pub fn settle(mut self, spares: &mut Spares) -> Next {
        if self.is_writing() {
            return Next::Keep(self);
        }
        if self.progress.last {
            spares.give(self.bytes);
            return Next::Close;
        }
        self.bytes.drain(..self.progress.consumed);
        self.progress.consumed = 0;
        if self.bytes.is_empty() {
            spares.give(self.bytes);
            return Next::Idle {
                upgraded: self.progress.upgraded,
                drained: !self.unread,
            };
        }
        if self.progress.upgraded {
            // Now, while it is in the cache.
            self.unmasked = frame::unmask_cut(&mut self.bytes, self.unmasked);
        }
        Next::Keep(self)
    }
}
