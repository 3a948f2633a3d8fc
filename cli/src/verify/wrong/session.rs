//! The scripted server's side of an open WebSocket: RFC 6455 in full, written apart
//! from the examiner's own frames.

use super::lapse::Lapse;
use super::parse::{Cut, Frame, frame, header_length};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Longest message.
const LIMIT_BYTES: usize = 64 << 20;
/// After an error the peer is read from so long, so that no reset overtakes the close frame.
const LINGER: Duration = Duration::from_secs(2);
/// A connection that should end is kept so long, which is longer than any test waits.
const STAYS: Duration = Duration::from_secs(60);
/// The end of what is read is waited for so long before it can overtake an answer.
const OVERTAKES_WITHIN: Duration = Duration::from_secs(1);

/// One connection after its handshake.
pub struct Session {
    stream: TcpStream,
    lapse: Lapse,
    bytes: Vec<u8>,
    /// Opcode and payload of the unfinished message.
    message: Option<(u8, Vec<u8>)>,
    fragments: usize,
    messages: usize,
    first_type: Option<u8>,
    /// A close frame was answered.
    closed: bool,
}

/// Whether the connection goes on; `None` ends it.
type Goes = Option<()>;

impl Session {
    pub fn new(stream: TcpStream, lapse: Lapse, behind: Vec<u8>) -> Self {
        Self {
            stream,
            lapse,
            bytes: behind,
            message: None,
            fragments: 0,
            messages: 0,
            first_type: None,
            closed: false,
        }
    }

    pub fn run(mut self, dead: &AtomicBool) -> Goes {
        loop {
            self.turn(dead)?;
            self.more()?;
        }
    }

    /// Everything that was read.
    fn turn(&mut self, dead: &AtomicBool) -> Goes {
        let mut bytes = std::mem::take(&mut self.bytes);
        let mut at = 0;
        let mut output = Vec::new();
        loop {
            match frame(&bytes[at..], self.lapse, self.limit()) {
                Ok((frame, length)) => {
                    at += length;
                    if frame.payload == b"before the reset" && self.lapse == Lapse::DiesByReset {
                        dead.store(true, Ordering::SeqCst);
                    }
                    if self.forgets_rest(&frame) {
                        at = bytes.len();
                    }
                    let goes = self.take(frame, &mut output);
                    if goes.is_none() {
                        self.write(&output)?;
                        return None;
                    }
                }
                Err(Cut::More) => break,
                Err(Cut::Wrong(code)) => {
                    self.write(&output)?;
                    return self.fail(code);
                }
            }
        }
        bytes.drain(..at);
        if self.lapse == Lapse::Merged
            && let Some((opcode, payload)) = self.message.take()
        {
            push(&mut output, 0x80 | opcode, &payload);
        }
        let cut = !bytes.is_empty() && bytes.len() < header_length(&bytes);
        if self.lapse == Lapse::WholeHeaders && cut {
            return None;
        }
        self.bytes = bytes;
        self.write(&output)
    }

    fn forgets_rest(&self, frame: &Frame) -> bool {
        match self.lapse {
            Lapse::OneFrameARead => true,
            Lapse::PingTakesRest => frame.opcode == 9,
            _ => false,
        }
    }

    fn limit(&self) -> usize {
        match self.lapse {
            Lapse::Limit(bytes) => bytes,
            Lapse::Unlimited => usize::MAX,
            _ => LIMIT_BYTES,
        }
    }

    /// Reads more, until the client ends it.
    fn more(&mut self) -> Goes {
        let more = read_more(&mut self.stream, &mut self.bytes);
        if more.is_none() && self.lapse == Lapse::IgnoresFin {
            thread::sleep(STAYS);
        }
        more
    }

    fn write(&mut self, output: &[u8]) -> Goes {
        if self.lapse == Lapse::FinOvertakes && !output.is_empty() {
            self.stream.set_read_timeout(Some(OVERTAKES_WITHIN)).ok()?;
            if matches!(self.stream.peek(&mut [0]), Ok(0)) {
                return None;
            }
        }
        if let Lapse::Drips(pause_ms) = self.lapse {
            for byte in output {
                thread::sleep(Duration::from_millis(pause_ms));
                self.stream.write_all(&[*byte]).ok()?;
            }
            return Some(());
        }
        self.stream.write_all(output).ok()
    }

    /// Fails the connection as section 7.1.7 says.
    fn fail(&mut self, code: u16) -> Goes {
        if self.lapse != Lapse::NoReason {
            let mut output = Vec::new();
            push(&mut output, 0x88, &code.to_be_bytes());
            self.write(&output)?;
        }
        self.end()
    }

    /// Ends its own side, and waits for the client's end.
    fn end(&mut self) -> Goes {
        if self.lapse == Lapse::OpenAfterClose {
            thread::sleep(STAYS);
        }
        self.stream.shutdown(Shutdown::Write).ok()?;
        self.stream.set_read_timeout(Some(LINGER)).ok()?;
        let mut bytes = Vec::new();
        while read_more(&mut self.stream, &mut bytes).is_some() {
            bytes.clear();
        }
        None
    }

    /// Takes a frame that is right by itself.
    fn take(&mut self, frame: Frame, output: &mut Vec<u8>) -> Goes {
        if self.closed {
            if self.lapse == Lapse::AnswersAfterClose && frame.opcode < 8 {
                push(output, 0x80 | frame.opcode, &frame.payload);
                self.write(output)?;
                output.clear();
                return self.end();
            }
            return Some(());
        }
        match frame.opcode {
            0..=2 => self.data(frame, output),
            8 => self.close(&frame.payload, output),
            9 => {
                self.ping(&frame.payload, output);
                Some(())
            }
            10 if self.lapse == Lapse::PongEnds => None,
            _ => Some(()),
        }
    }

    fn ping(&mut self, payload: &[u8], output: &mut Vec<u8>) {
        let within = self.message.is_some() && self.lapse == Lapse::NoPongWithin;
        let again = self.lapse == Lapse::FirstPing && !output.is_empty();
        if within || again || self.lapse == Lapse::NoPongTo(payload.len()) {
            return;
        }
        let mut payload = payload.to_vec();
        if self.lapse == Lapse::WrongPong {
            payload.reverse();
        }
        push(output, 0x8a, &payload);
    }

    fn data(&mut self, frame: Frame, output: &mut Vec<u8>) -> Goes {
        let Frame {
            fin,
            opcode,
            payload,
        } = frame;
        if self.lapse == Lapse::Merged {
            let (_, merged) = self.message.get_or_insert((opcode, Vec::new()));
            merged.extend(payload);
            return Some(());
        }
        let whole_characters = str::from_utf8(&payload).is_ok();
        match (opcode, &mut self.message) {
            (0, Some((_, message))) if !payload.is_empty() => message.extend(&payload),
            (0, Some(_)) if self.lapse == Lapse::NoEmptyFragments => return None,
            (0, Some(_)) => {}
            (0, None) if self.lapse == Lapse::LoneContinuation && fin => {
                self.message = Some((2, payload));
            }
            (0, None) if self.lapse == Lapse::LoneContinuation => return Some(()),
            (0, None) => return self.fail_behind(1002, output),
            (_, Some(_)) if self.lapse != Lapse::NewMessage => {
                return self.fail_behind(1002, output);
            }
            (opcode, _) => {
                if !fin && payload.is_empty() && self.lapse == Lapse::NoEmptyFragments {
                    return None;
                }
                self.message = Some((opcode, payload));
                self.fragments = 0;
            }
        }
        self.fragments += 1;
        let (opcode, message) = self.message.as_ref()?;
        if message.len() > self.limit() {
            return self.fail_behind(1009, output);
        }
        if self.lapse == Lapse::WholeCharacters && *opcode == 1 && !whole_characters
            || matches!(self.lapse, Lapse::Fragments(most) if self.fragments > most)
        {
            return None;
        }
        if *opcode == 1 && !self.is_text(message, fin) {
            return self.fail_behind(1007, output);
        }
        if fin {
            let (opcode, message) = self.message.take()?;
            return self.answer(opcode, message, output);
        }
        Some(())
    }

    /// What came before is answered first.
    fn fail_behind(&mut self, code: u16, output: &mut Vec<u8>) -> Goes {
        let output = std::mem::take(output);
        self.write(&output)?;
        self.fail(code)
    }

    fn is_text(&self, message: &[u8], fin: bool) -> bool {
        let unchecked = match self.lapse {
            Lapse::AnyText => true,
            Lapse::AnyTextInFragments => self.fragments > 1 || !fin,
            Lapse::LateText => !fin,
            _ => false,
        };
        match str::from_utf8(message) {
            Ok(_) => true,
            // A character that is only cut may come whole.
            Err(error) => unchecked || error.error_len().is_none() && !fin,
        }
    }

    fn answer(&mut self, opcode: u8, mut payload: Vec<u8>, output: &mut Vec<u8>) -> Goes {
        self.messages += 1;
        let first_type = *self.first_type.get_or_insert(opcode);
        let mut first = 0x80 | opcode;
        match self.lapse {
            Lapse::FlipsAll => flip(&mut payload),
            Lapse::Flips(of, length) if of == opcode && length == payload.len() => match length {
                0 => payload.push(b'x'),
                _ => flip(&mut payload),
            },
            Lapse::OneByteMore => payload.push(b'x'),
            Lapse::OneByteLess => drop(payload.pop()),
            Lapse::AlwaysBinary => first = 0x82,
            Lapse::BinaryFragments if self.fragments > 1 => first = 0x82,
            Lapse::FirstType => first = 0x80 | first_type,
            Lapse::AsciiOnly => {
                for byte in &mut payload {
                    *byte = if byte.is_ascii() { *byte } else { b'?' };
                }
            }
            Lapse::Short16 => payload.truncate(0xffff),
            Lapse::Twice => push(output, first, &payload),
            Lapse::Silent => return Some(()),
            Lapse::Slow(pause_ms) => {
                thread::sleep(Duration::from_millis(pause_ms));
                push(output, first, &payload);
                let answer = std::mem::take(output);
                return self.write(&answer);
            }
            Lapse::Closes => return None,
            Lapse::Messages(most) if self.messages > most => return None,
            Lapse::ClosesWithCode => {
                push(output, 0x88, b"\x03\xf3tired");
                return None;
            }
            Lapse::Masks => {
                output.extend([first, 0x80 | 5, 0, 0, 0, 0, 1, 2, 3, 4, 5]);
                return Some(());
            }
            Lapse::ReservedBit => first |= 0x40,
            Lapse::AnswersInFragments => {
                let half = payload.len() / 2;
                push(output, opcode, &payload[..half]);
                push(output, 0x89, b"are you there?");
                push(output, 0x00, &payload[half..]);
                push(output, 0x80, b"");
                return Some(());
            }
            _ => {}
        }
        push(output, first, &payload);
        Some(())
    }

    fn close(&mut self, body: &[u8], output: &mut Vec<u8>) -> Goes {
        let code = match *body {
            [] => None,
            [byte] => Some(u16::from(byte)),
            [high, low, ..] => Some(u16::from_be_bytes([high, low])),
        };
        let reason = body.get(2..).unwrap_or_default();
        let allowed =
            matches!(code, None | Some(1000..=1003 | 1007..=1014 | 3000..=4999)) && body.len() != 1;
        if self.lapse == Lapse::CloseOvertakes {
            output.clear();
        }
        let repeats = match self.lapse {
            Lapse::RepeatsClose => true,
            Lapse::RepeatsCode(repeated) => code == Some(repeated),
            _ => false,
        };
        if self.lapse == Lapse::NoCloseFor(code)
            || self.lapse == Lapse::ShortReason && reason.len() > 100
        {
            return None;
        }
        if !allowed && !repeats {
            return self.fail_behind(1002, output);
        }
        if str::from_utf8(reason).is_err() && !repeats {
            return self.fail_behind(1007, output);
        }
        match self.lapse {
            Lapse::Always1000 => push(output, 0x88, &1000_u16.to_be_bytes()),
            _ => push(output, 0x88, body),
        }
        self.write(output)?;
        output.clear();
        self.closed = true;
        match self.lapse {
            Lapse::AnswersAfterClose => Some(()),
            _ => self.end(),
        }
    }
}

fn flip(payload: &mut [u8]) {
    if let Some(last) = payload.last_mut() {
        *last ^= 1;
    }
}

/// False if the client has ended it.
pub fn read_more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    let mut buffer = [0; 16 << 10];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return None,
            Ok(count) => {
                bytes.extend_from_slice(&buffer[..count]);
                return Some(());
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// Adds a server's frame.
fn push(output: &mut Vec<u8>, first: u8, payload: &[u8]) {
    output.push(first);
    match payload.len() {
        short @ 0..=125 => output.push(short as u8),
        medium @ 126..=0xffff => {
            output.push(126);
            output.extend((medium as u16).to_be_bytes());
        }
        long => {
            output.push(127);
            output.extend((long as u64).to_be_bytes());
        }
    }
    output.extend_from_slice(payload);
}
