//! The bytes that a case sent, kept for who reads its finding.

use std::fmt::Write as _;

/// Kept of the beginning, such that a request is whole, and of the end.
const HEAD_BYTES: usize = 512;
const TAIL_BYTES: usize = 64;

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
        let bytes: Vec<u8> = (0..=255).cycle().take(600).collect();
        let all = format!("{} (576 bytes)", hex(&bytes[..576]));
        assert_eq!(shown(&[&bytes[..576]]).unwrap(), all);
        let (head, tail) = (hex(&bytes[..512]), hex(&bytes[536..]));
        let cut = format!("{head} .. {tail} (600 bytes)");
        assert_eq!(shown(&[&bytes]).unwrap(), cut);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(shown(&single).unwrap(), cut);
    }
}
