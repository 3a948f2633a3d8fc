//! Reads server frames in any form the RFC allows: fragments, and control frames
//! between them. The engine uses it only once an answer is not byte for byte
//! what a plain server sends.

use super::template::{Templates, masked_frame};
use crate::cause::Cause;

const CONTROL_MAX: usize = 125;
/// Header of an unmasked frame at most.
const HEADER_MAX: usize = 10;

const OP_CONTINUATION: u8 = 0;
const OP_TEXT: u8 = 1;
const OP_BINARY: u8 = 2;
const OP_CLOSE: u8 = 8;
const OP_PING: u8 = 9;
const OP_PONG: u8 = 10;

/// What the reader found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// All bytes taken, nothing complete.
    More,
    /// The awaited message ended, and it was right.
    Message,
    /// A pong was appended to the reply.
    Pong,
    /// A pong came; nothing is to be done.
    Nothing,
    /// The peer broke the rules, answered wrongly, or said that it closes.
    Fault(Cause),
}

/// State between two bytes. It stands for one message and the control frames
/// around it.
#[derive(Debug)]
pub struct FrameReader {
    header: [u8; HEADER_MAX],
    header_len: u8,
    /// Payload still to come of the frame whose header is complete.
    payload_left: u64,
    in_payload: bool,
    /// Whether a data message has begun, and how much of it was right.
    message_begun: bool,
    message_len: usize,
    control: [u8; CONTROL_MAX],
    control_len: u8,
}

impl Default for FrameReader {
    fn default() -> Self {
        Self {
            header: [0; HEADER_MAX],
            header_len: 0,
            payload_left: 0,
            in_payload: false,
            message_begun: false,
            message_len: 0,
            control: [0; CONTROL_MAX],
            control_len: 0,
        }
    }
}

impl FrameReader {
    /// Between two messages and between two frames.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.header_len == 0 && !self.in_payload && !self.message_begun
    }

    /// Takes bytes up to the next find and returns how many it took. The
    /// message is compared with template `index`; `awaited` says whether one
    /// is awaited at all.
    pub fn read(
        &mut self,
        templates: &Templates,
        index: u32,
        check: bool,
        awaited: bool,
        bytes: &[u8],
        reply: &mut Vec<u8>,
    ) -> (usize, Found) {
        let mut taken = 0;
        while taken < bytes.len() || (self.in_payload && self.payload_left == 0) {
            if !self.in_payload {
                self.header[usize::from(self.header_len)] = bytes[taken];
                self.header_len += 1;
                taken += 1;
                match self.frame_begins(templates, awaited) {
                    Ok(()) => continue,
                    Err(cause) => return (taken, Found::Fault(cause)),
                }
            }
            let rest = &bytes[taken..];
            let part =
                usize::try_from(self.payload_left).map_or(rest.len(), |left| left.min(rest.len()));
            if let Err(cause) = self.payload(&rest[..part], templates, index, check) {
                return (taken, Found::Fault(cause));
            }
            taken += part;
            self.payload_left -= part as u64;
            if self.payload_left == 0 {
                match self.frame_ends(reply) {
                    Some(found) => return (taken, found),
                    None => continue,
                }
            }
        }
        (taken, Found::More)
    }

    fn opcode(&self) -> u8 {
        self.header[0] & 0x0F
    }

    fn is_final(&self) -> bool {
        self.header[0] & 0x80 != 0
    }

    /// After each byte of a header: checks it and, at its end, enters the payload.
    fn frame_begins(&mut self, templates: &Templates, awaited: bool) -> Result<(), Cause> {
        let is_control = self.opcode() >= OP_CLOSE;
        if self.header_len == 1 {
            return self.opcode_is_right(templates, awaited);
        }
        let short = self.header[1];
        if self.header_len == 2 && (short & 0x80 != 0 || (is_control && short > CONTROL_MAX as u8))
        {
            return Err(Cause::BadFrame);
        }
        let extended = match short {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        if usize::from(self.header_len) < 2 + extended {
            return Ok(());
        }
        let length = match extended {
            0 => u64::from(short),
            _ => self.header[2..2 + extended]
                .iter()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
        };
        // The shortest form is required, and the top bit must be zero.
        let least = [0, 126, 65_536][extended.div_ceil(4)];
        if length < least || length >> 63 != 0 {
            return Err(Cause::BadFrame);
        }
        // Judged here and not when the bytes come: the cause must not depend on
        // how many of them come at once.
        if !is_control && !self.length_is_right(templates, length) {
            return Err(Cause::WrongLength);
        }
        self.payload_left = length;
        self.in_payload = true;
        self.control_len = 0;
        Ok(())
    }

    /// Whether the message can still have, or at its last frame has, the length
    /// of what was sent.
    fn length_is_right(&self, templates: &Templates, length: u64) -> bool {
        let left = (templates.payload(0).len() - self.message_len) as u64;
        length == left || (length < left && !self.is_final())
    }

    fn opcode_is_right(&mut self, templates: &Templates, awaited: bool) -> Result<(), Cause> {
        if self.header[0] & 0x70 != 0 {
            return Err(Cause::BadFrame);
        }
        match self.opcode() {
            OP_TEXT | OP_BINARY if self.message_begun => Err(Cause::BadFrame),
            OP_TEXT | OP_BINARY if !awaited => Err(Cause::Unexpected),
            opcode @ (OP_TEXT | OP_BINARY) => {
                if opcode != super::template::first_byte(templates.kind()) & 0x0F {
                    return Err(Cause::WrongOpcode);
                }
                self.message_begun = true;
                self.message_len = 0;
                Ok(())
            }
            OP_CONTINUATION if self.message_begun => Ok(()),
            OP_CLOSE | OP_PING | OP_PONG if self.is_final() => Ok(()),
            _ => Err(Cause::BadFrame),
        }
    }

    fn payload(
        &mut self,
        part: &[u8],
        templates: &Templates,
        index: u32,
        check: bool,
    ) -> Result<(), Cause> {
        if self.opcode() >= OP_CLOSE {
            let start = usize::from(self.control_len);
            self.control[start..start + part.len()].copy_from_slice(part);
            self.control_len += part.len() as u8;
            return Ok(());
        }
        let end = self.message_len + part.len();
        if check && templates.payload(index)[self.message_len..end] != *part {
            return Err(Cause::WrongPayload);
        }
        self.message_len = end;
        Ok(())
    }

    fn frame_ends(&mut self, reply: &mut Vec<u8>) -> Option<Found> {
        self.in_payload = false;
        self.header_len = 0;
        let control = &self.control[..usize::from(self.control_len)];
        match self.opcode() {
            OP_PING => {
                let key = fastrand::u32(1..).to_le_bytes();
                masked_frame(0x80 | OP_PONG, control, key, reply);
                Some(Found::Pong)
            }
            OP_PONG => Some(Found::Nothing),
            OP_CLOSE => Some(Found::Fault(match closes(control) {
                true => Cause::Closed,
                false => Cause::BadFrame,
            })),
            _ if !self.is_final() => None,
            _ => {
                self.message_begun = false;
                Some(Found::Message)
            }
        }
    }
}

/// Whether a close frame has the form of one: nothing, or a code and a reason in
/// UTF-8. Which code it is changes nothing: the peer closes.
fn closes(body: &[u8]) -> bool {
    match body {
        [] => true,
        [_, _, reason @ ..] => std::str::from_utf8(reason).is_ok(),
        _ => false,
    }
}
