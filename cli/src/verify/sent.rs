//! The bytes that a case sent, kept for the reader of its failure.

use std::fmt::Write as _;

/// Shown of the beginning and of the end.
const HEAD_BYTES: usize = 24;
const TAIL_BYTES: usize = 8;

/// First and last bytes of a stream, and its length.
#[derive(Debug, Default)]
pub struct Sent {
    head: Vec<u8>,
    tail: Vec<u8>,
    count: usize,
}

impl Sent {
    /// Takes the next bytes of the stream.
    pub fn add(&mut self, bytes: &[u8]) {
        self.count += bytes.len();
        let room = HEAD_BYTES - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        self.tail
            .extend_from_slice(&rest[rest.len().saturating_sub(TAIL_BYTES)..]);
        let surplus = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..surplus);
    }

    /// `81 85 .. (131 bytes)`; `None` if nothing was sent.
    pub fn shown(&self) -> Option<String> {
        if self.count == 0 {
            return None;
        }
        let mut text = hex(&self.head);
        if !self.tail.is_empty() {
            let left_out = self.count > self.head.len() + self.tail.len();
            text.push_str(if left_out { " .. " } else { " " });
            text.push_str(&hex(&self.tail));
        }
        let unit = if self.count == 1 { "byte" } else { "bytes" };
        let _ = write!(text, " ({} {unit})", self.count);
        Some(text)
    }
}

fn hex(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(parts: &[&[u8]]) -> Option<String> {
        let mut sent = Sent::default();
        for part in parts {
            sent.add(part);
        }
        sent.shown()
    }

    #[test]
    fn the_middle_of_many_bytes_is_left_out_however_they_came() {
        assert_eq!(shown(&[]), None);
        assert_eq!(shown(&[&[0x81]]).unwrap(), "81 (1 byte)");
        assert_eq!(shown(&[&[0x81], &[0x80]]).unwrap(), "81 80 (2 bytes)");
        let bytes: Vec<u8> = (0..40).collect();
        let head = "00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 10 11 12 13 14 15 16 17";
        let all = format!("{head} 18 19 1a 1b 1c 1d 1e 1f (32 bytes)");
        assert_eq!(shown(&[&bytes[..32]]).unwrap(), all);
        let cut = format!("{head} .. 20 21 22 23 24 25 26 27 (40 bytes)");
        assert_eq!(shown(&[&bytes]).unwrap(), cut);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(shown(&single).unwrap(), cut);
    }
}
