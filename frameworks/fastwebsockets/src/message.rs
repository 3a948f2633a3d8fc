//! Messages from frames. The crate's own `FragmentCollector` does the same, but
//! does not limit what it collects: a peer that never ends a message would take
//! all memory.

use fastwebsockets::{Frame, OpCode, Payload, WebSocketError};

/// The message that a connection is in the middle of, if any.
pub struct Fragments {
    begun: Option<(OpCode, Vec<u8>)>,
    max_message: usize,
}

impl Fragments {
    pub fn new(max_message: usize) -> Self {
        Self {
            begun: None,
            max_message,
        }
    }

    /// The message that ends with this frame. A whole one is passed on as it is:
    /// the crate has checked its length, and its UTF-8 if it is text.
    pub fn collect<'f>(
        &mut self,
        frame: Frame<'f>,
    ) -> Result<Option<(OpCode, Payload<'f>)>, WebSocketError> {
        match (frame.opcode, &mut self.begun) {
            (OpCode::Continuation, None) => return Err(WebSocketError::InvalidContinuationFrame),
            (OpCode::Continuation, Some((_, collected))) => {
                if frame.payload.len() > self.max_message - collected.len() {
                    return Err(WebSocketError::FrameTooLarge);
                }
                collected.extend_from_slice(&frame.payload);
            }
            (_, Some(_)) => return Err(WebSocketError::InvalidFragment),
            (opcode, None) if frame.fin => return Ok(Some((opcode, frame.payload))),
            (opcode, None) => self.begun = Some((opcode, frame.payload.to_vec())),
        }
        if !frame.fin {
            return Ok(None);
        }
        let Some((opcode, collected)) = self.begun.take() else {
            return Ok(None);
        };
        if opcode == OpCode::Text && std::str::from_utf8(&collected).is_err() {
            return Err(WebSocketError::InvalidUTF8);
        }
        Ok(Some((opcode, collected.into())))
    }
}
