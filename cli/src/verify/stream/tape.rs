//! What is sent: every connection and direction has its own piece of one endless
//! tape of bytes that look random, so that a byte that is missing, twice, in another's
//! place or of another connection is seen, and told as what it is.

use wsbench_schema::SplitMix64;

/// Bytes until the tape begins again: a prime, so that no buffer's size divides it.
const PERIOD: usize = 1_048_583;
/// Bytes of it that can be had in one piece.
pub const PIECE: usize = 256 << 10;
/// Wrong bytes that are looked for on the tape.
const SOUGHT: usize = 16;

/// The tape.
pub struct Tape(Vec<u8>);

impl Tape {
    pub fn new(seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let numbers = std::iter::repeat_with(|| random.next_u64().to_le_bytes());
        let mut bytes: Vec<u8> = numbers.flatten().take(PERIOD).collect();
        bytes.extend_from_within(..PIECE);
        Self(bytes)
    }

    /// What one direction of one connection carries.
    pub fn content(&self, serial: u64, length: u64) -> Content<'_> {
        let begin = SplitMix64::new(serial).below(PERIOD as u64);
        Content {
            tape: self,
            begin,
            length,
        }
    }
}

/// A piece of the tape.
#[derive(Clone, Copy)]
pub struct Content<'t> {
    tape: &'t Tape,
    begin: u64,
    pub length: u64,
}

impl<'t> Content<'t> {
    /// Where it continues on the tape.
    fn at(&self, position: u64) -> usize {
        usize::try_from((self.begin + position) % PERIOD as u64).unwrap_or(0)
    }

    /// What comes there, up to so many bytes.
    pub fn piece(&self, position: u64, most: usize) -> &'t [u8] {
        let left = usize::try_from(self.length - position).unwrap_or(usize::MAX);
        let begin = self.at(position);
        &self.tape.0[begin..begin + left.min(most).min(PIECE)]
    }

    /// Whether these bytes are what comes there: else what is wrong, in words.
    pub fn check(&self, position: u64, bytes: &[u8]) -> Result<(), String> {
        let mut done = 0;
        while done < bytes.len() {
            let place = position + done as u64;
            if place == self.length {
                let more = bytes.len() - done;
                return Err(format!("{more} bytes more than the {} sent", self.length));
            }
            let right = self.piece(place, bytes.len() - done);
            let have = &bytes[done..done + right.len()];
            if have != right {
                let same = have.iter().zip(right).take_while(|(a, b)| a == b).count();
                return Err(self.wrong(place + same as u64, &bytes[done + same..]));
            }
            done += right.len();
        }
        Ok(())
    }

    /// `0x12 for 0x34 at byte 17 of 65536, as if 4096 bytes were missing`.
    fn wrong(&self, position: u64, bytes: &[u8]) -> String {
        let sought = &bytes[..bytes.len().min(SOUGHT)];
        let right = self.piece(position, 1)[0];
        let place = format!(
            "0x{:02x} for 0x{right:02x} at byte {position} of {}",
            sought[0], self.length
        );
        // Fewer are anywhere by chance.
        if sought.len() < SOUGHT {
            return place;
        }
        let found = self.tape.0.windows(SOUGHT).position(|have| have == sought);
        let Some(found) = found else { return place };
        let ahead = (found + PERIOD - self.at(position)) % PERIOD;
        let behind = PERIOD - ahead;
        if ahead as u64 <= self.length - position {
            format!("{place}, as if {ahead} bytes were missing")
        } else if behind as u64 <= position {
            format!("{place}, as if {behind} bytes came twice")
        } else {
            format!("{place}, bytes of another connection")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(content: &Content<'_>) -> Vec<u8> {
        let mut all = Vec::new();
        while (all.len() as u64) < content.length {
            all.extend_from_slice(content.piece(all.len() as u64, 10_007));
        }
        all
    }

    #[test]
    fn what_is_wrong_is_told_as_what_it_is() {
        let tape = Tape::new(1);
        let content = tape.content(7, 300_000);
        let right = bytes(&content);
        assert_eq!(content.check(0, &right), Ok(()));
        assert_eq!(content.check(100_000, &right[100_000..]), Ok(()));
        let told = |bytes: &[u8]| content.check(0, bytes).unwrap_err();
        let lost = [&right[..5000], &right[5100..]].concat();
        assert!(told(&lost).contains("at byte 5000 of 300000, as if 100 bytes were missing"));
        let twice = [&right[..5000], &right[4000..]].concat();
        assert!(told(&twice).contains("at byte 5000 of 300000, as if 1000 bytes came twice"));
        let other = bytes(&tape.content(9, 100));
        let mixed = [&right[..90], &other[..]].concat();
        assert!(told(&mixed).ends_with("at byte 90 of 300000, bytes of another connection"));
        let mut flipped = right.clone();
        flipped[299_999] ^= 1;
        assert!(told(&flipped).ends_with("at byte 299999 of 300000"));
        let more = [&right[..], b"xy"].concat();
        assert_eq!(told(&more), "2 bytes more than the 300000 sent");
    }

    #[test]
    fn the_tape_goes_on_where_it_began() {
        let tape = Tape::new(1);
        let content = tape.content(1, 3 * PERIOD as u64);
        let all = bytes(&content);
        assert_eq!(all[..1000], all[PERIOD..PERIOD + 1000]);
        assert_ne!(all[..1000], all[1..1001]);
        assert_eq!(content.check(0, &all), Ok(()));
    }
}
