//! The pool of messages, each as the client sends it and as a plain server
//! answers it.

use wsbench_schema::MessageKind;

/// Both forms of the pool stay within about twice this, so that they stay in
/// the second-level cache beside the slots of ten thousand connections.
const POOL_BYTES: usize = 64 << 10;
/// Templates at most, as in the original, ...
const TEMPLATES_MAX: usize = 1024;
/// ... and at least, so that an answer to the message before is noticed.
const TEMPLATES_MIN: usize = 4;

/// First byte of a frame that carries a whole message.
#[must_use]
pub fn first_byte(kind: MessageKind) -> u8 {
    0x80 | match kind {
        MessageKind::Text => 1,
        MessageKind::Binary => 2,
    }
}

/// Appends a frame's header; `mask` sets the mask bit only.
fn header(first_byte: u8, payload_len: usize, mask: bool, out: &mut Vec<u8>) {
    let bit = u8::from(mask) << 7;
    out.push(first_byte);
    match u16::try_from(payload_len) {
        Ok(len @ 0..=125) => out.push(bit | len as u8),
        Ok(len) => {
            out.push(bit | 126);
            out.extend(len.to_be_bytes());
        }
        Err(_) => {
            out.push(bit | 127);
            out.extend((payload_len as u64).to_be_bytes());
        }
    }
}

/// Appends a masked frame, as a client must send it.
pub fn masked_frame(first_byte: u8, payload: &[u8], key: [u8; 4], out: &mut Vec<u8>) {
    header(first_byte, payload.len(), true, out);
    out.extend(key);
    out.extend(
        payload
            .iter()
            .zip(key.iter().cycle())
            .map(|(byte, key)| byte ^ key),
    );
}

/// The pool.
pub struct Templates {
    count: u32,
    kind: MessageKind,
    payload_len: usize,
    /// Bytes of a frame as it is sent.
    sent_len: usize,
    /// The frames as they are sent, and the first ones once more behind them,
    /// so that any batch is in one piece.
    sent: Vec<u8>,
    /// Bytes of a header as it is answered.
    header_len: usize,
    /// The frames as a plain server answers them.
    answers: Vec<u8>,
}

impl Templates {
    /// Random payloads and masking keys from the seed. `batch` is the most
    /// messages that are ever sent at once.
    #[must_use]
    pub fn new(kind: MessageKind, payload_len: usize, batch: u32, seed: u64) -> Self {
        let count = (POOL_BYTES / payload_len.max(1)).clamp(TEMPLATES_MIN, TEMPLATES_MAX);
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut sent, mut answers) = (Vec::new(), Vec::new());
        let (mut sent_len, mut header_len) = (0, 0);
        for index in 0..count {
            let payload = payload(kind, payload_len, index, &mut random);
            let key = random.u32(1..).to_le_bytes();
            masked_frame(first_byte(kind), &payload, key, &mut sent);
            let start = answers.len();
            header(first_byte(kind), payload_len, false, &mut answers);
            header_len = answers.len() - start;
            answers.extend(payload);
            sent_len = sent.len() / (index + 1);
        }
        for index in 0..(batch.max(1) as usize - 1) {
            let start = (index % count) * sent_len;
            sent.extend_from_within(start..start + sent_len);
        }
        Self {
            count: count as u32,
            kind,
            payload_len,
            sent_len,
            sent,
            header_len,
            answers,
        }
    }

    /// The same payloads without headers and keys, as they are sent and answered
    /// where nothing frames them.
    #[must_use]
    pub fn bare(kind: MessageKind, payload_len: usize, batch: u32, seed: u64) -> Self {
        let framed = Self::new(kind, payload_len, 1, seed);
        let count = framed.count as usize;
        let payloads = (0..framed.count).flat_map(|index| framed.payload(index));
        let answers: Vec<u8> = payloads.copied().collect();
        let mut sent = answers.clone();
        for index in 0..(batch.max(1) as usize - 1) {
            let start = (index % count) * payload_len;
            sent.extend_from_within(start..start + payload_len);
        }
        Self {
            sent_len: payload_len,
            sent,
            header_len: 0,
            answers,
            ..framed
        }
    }

    /// Number of templates.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Type of every message.
    #[must_use]
    pub fn kind(&self) -> MessageKind {
        self.kind
    }

    /// Bytes of a frame as it is sent.
    #[must_use]
    pub fn sent_len(&self) -> usize {
        self.sent_len
    }

    /// `count` frames from `first` on, as they are sent.
    #[must_use]
    pub fn sent(&self, first: u32, count: u32) -> &[u8] {
        let start = first as usize * self.sent_len;
        &self.sent[start..start + count as usize * self.sent_len]
    }

    /// The frame with which a plain server answers.
    #[must_use]
    pub fn answer(&self, index: u32) -> &[u8] {
        let len = self.header_len + self.payload_len;
        let start = index as usize * len;
        &self.answers[start..start + len]
    }

    /// Bytes of the header of [`Templates::answer`].
    #[must_use]
    pub fn header_len(&self) -> usize {
        self.header_len
    }

    /// The message itself.
    #[must_use]
    pub fn payload(&self, index: u32) -> &[u8] {
        &self.answer(index)[self.header_len..]
    }
}

/// A random payload; its first two bytes tell the templates apart as far as
/// two bytes can.
fn payload(kind: MessageKind, len: usize, index: usize, random: &mut fastrand::Rng) -> Vec<u8> {
    let mut payload = vec![0; len];
    match kind {
        MessageKind::Binary => {
            random.fill(&mut payload);
            for (byte, mark) in payload.iter_mut().zip((index as u16).to_le_bytes()) {
                *byte = mark;
            }
        }
        MessageKind::Text => {
            payload.fill_with(|| random.alphanumeric() as u8);
            for (byte, mark) in payload.iter_mut().zip([index % 64, index / 64]) {
                *byte = b'0' + mark as u8;
            }
        }
    }
    payload
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_the_shortest() {
        let of = |len| {
            let mut out = Vec::new();
            header(0x82, len, true, &mut out);
            out
        };
        assert_eq!(of(0), [0x82, 0x80]);
        assert_eq!(of(125), [0x82, 0x80 | 125]);
        assert_eq!(of(126), [0x82, 0xFE, 0, 126]);
        assert_eq!(of(65_535), [0x82, 0xFE, 0xFF, 0xFF]);
        assert_eq!(of(65_536), [0x82, 0xFF, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn unmasked_the_sent_form_is_the_answered_form() {
        for len in [0, 1, 125, 126, 1024, 65_536] {
            let templates = Templates::new(MessageKind::Binary, len, 3, 7);
            for index in 0..templates.count() {
                let frame = templates.sent(index, 1);
                let (_, rest) = frame.split_at(frame.len() - len - 4);
                let (key, masked) = rest.split_at(4);
                assert_ne!(key, [0; 4]);
                let plain: Vec<u8> = masked
                    .iter()
                    .zip(key.iter().cycle())
                    .map(|(a, b)| a ^ b)
                    .collect();
                assert_eq!(plain, templates.payload(index));
            }
        }
    }

    #[test]
    fn a_batch_goes_on_past_the_end_of_the_pool() {
        let templates = Templates::new(MessageKind::Text, 30_000, 9, 7);
        assert_eq!(templates.count(), 4);
        let batch = templates.sent(3, 9);
        assert_eq!(batch.len(), 9 * templates.sent_len());
        for (index, frame) in batch.chunks(templates.sent_len()).enumerate() {
            assert_eq!(frame, templates.sent((3 + index as u32) % 4, 1));
        }
    }

    #[test]
    fn payloads_differ_and_text_is_ascii() {
        for kind in [MessageKind::Binary, MessageKind::Text] {
            let templates = Templates::new(kind, 2, 1, 1);
            let mut seen = std::collections::HashSet::new();
            assert!((0..templates.count()).all(|index| seen.insert(templates.payload(index))));
        }
        let text = Templates::new(MessageKind::Text, 100, 1, 1);
        assert!((0..text.count()).all(|index| text.payload(index).is_ascii()));
    }
}
