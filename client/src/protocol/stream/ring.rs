//! What the bytes of a transfer are: a ring of random bytes, read round and round.
//!
//! Its length is a prime number, so that no buffer of a server divides it: what is
//! lost, doubled or swapped by whole buffers is at another place of the ring, and
//! differs. It fits in a second-level cache beside what is compared with it.

use wsbench_schema::SplitMix64;

/// The bytes of all transfers, for pieces of one length.
pub struct Ring {
    /// The ring, and its beginning once more behind it, so that any piece is whole.
    bytes: Vec<u8>,
    piece_bytes: u32,
}

impl Ring {
    /// A prime.
    pub const BYTES: u32 = 65_537;
    /// Both ends of a stream have it, without telling each other.
    const SEED: u64 = 0x0077_7362;

    /// The same bytes each time.
    #[must_use]
    pub fn new(piece_bytes: u32) -> Self {
        let mut random = SplitMix64::new(Self::SEED);
        let mut bytes = Vec::with_capacity(Self::BYTES as usize + 7 + piece_bytes as usize);
        while bytes.len() < Self::BYTES as usize {
            bytes.extend(random.next_u64().to_le_bytes());
        }
        bytes.truncate(Self::BYTES as usize);
        for at in 0..piece_bytes as usize {
            bytes.push(bytes[at]);
        }
        Self { bytes, piece_bytes }
    }

    /// Bytes of a piece.
    #[must_use]
    pub fn piece_bytes(&self) -> u32 {
        self.piece_bytes
    }

    /// Where the bytes of piece `number` begin in the ring. The piece behind the
    /// last of a round is the first again: there are as many pieces as bytes.
    #[must_use]
    fn begin(&self, number: u32) -> usize {
        (u64::from(number) * u64::from(self.piece_bytes) % u64::from(Self::BYTES)) as usize
    }

    /// A piece, as it is sent.
    #[must_use]
    pub fn piece(&self, number: u32) -> &[u8] {
        let begin = self.begin(number);
        &self.bytes[begin..begin + self.piece_bytes as usize]
    }

    /// What a stream that began with piece `first` goes on with behind `offset`
    /// bytes: some of it, in one piece.
    #[must_use]
    pub fn goes_on(&self, first: u32, offset: u64) -> &[u8] {
        let ring = u64::from(Self::BYTES);
        let begin = (self.begin(first) as u64 + offset % ring) % ring;
        &self.bytes[begin as usize..]
    }

    /// How many of `bytes` are right, until the first that is not: they stand
    /// behind `offset` bytes of a stream that began with piece `first`.
    #[inline]
    #[must_use]
    pub fn right(&self, first: u32, mut offset: u64, bytes: &[u8]) -> usize {
        let mut right = 0;
        while right < bytes.len() {
            let rest = &bytes[right..];
            // Not beyond the ring: what is behind it would take room in the cache twice.
            let expected = self.goes_on(first, offset);
            let until_end = expected.len() - self.piece_bytes as usize;
            let part = until_end.min(rest.len());
            if expected[..part] != rest[..part] {
                let same = expected.iter().zip(rest).take_while(|(a, b)| a == b);
                return right + same.count();
            }
            right += part;
            offset += part as u64;
        }
        right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `len` bytes of a stream that began with piece `first`.
    fn stream(ring: &Ring, first: u32, len: usize) -> Vec<u8> {
        let pieces = (0..).flat_map(|piece| ring.piece((first + piece) % Ring::BYTES));
        pieces.take(len).copied().collect()
    }

    #[test]
    fn the_length_is_a_prime() {
        let divides = |by: &u32| Ring::BYTES.is_multiple_of(*by);
        assert_eq!((2..=256).find(divides), None, "256 squared is below it");
    }

    #[test]
    fn pieces_follow_one_another_round_the_ring() {
        for piece_bytes in [1, 1000, 4096, 65_536, 65_537, 200_000] {
            let ring = Ring::new(piece_bytes);
            for first in [0, 1, 40_000, Ring::BYTES - 1] {
                let sent = stream(&ring, first, 300_000);
                for (offset, len) in [(0, 300_000), (1, 5), (65_530, 100_000), (299_999, 1)] {
                    let bytes = &sent[offset..offset + len];
                    let right = ring.right(first, offset as u64, bytes);
                    assert_eq!(right, len, "{piece_bytes} {first} {offset}");
                    let some = ring.goes_on(first, offset as u64);
                    let part = some.len().min(len);
                    assert_eq!(some[..part], bytes[..part]);
                }
            }
        }
    }

    #[test]
    fn what_is_right_ends_at_the_first_wrong_byte() {
        let ring = Ring::new(1000);
        let sent = stream(&ring, 7, 200_000);
        for at in [0, 1, 63, 64, 999, 65_536, 65_537, 131_074, 199_999] {
            let mut wrong = sent.clone();
            wrong[at] ^= 0x10;
            assert_eq!(ring.right(7, 0, &wrong), at);
        }
    }

    /// Lost, doubled or swapped: buffers have such sizes.
    #[test]
    fn a_shift_by_any_buffer_is_noticed_within_a_few_bytes() {
        let ring = Ring::new(32 << 10);
        let sent = stream(&ring, 0, 2 << 20);
        for buffer in (0..=20)
            .map(|power| 1_usize << power)
            .chain([1460, 65_483, 100_000])
        {
            let lost = &sent[buffer..];
            assert!(ring.right(0, 0, lost) < 8, "{buffer} bytes lost");
            let doubled = [&sent[..buffer], &sent[..]].concat();
            let right = ring.right(0, 0, &doubled) - buffer;
            assert!(right < 8, "{buffer} bytes doubled");
        }
    }
}
