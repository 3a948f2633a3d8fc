//! Streams of server frames, written from a program of bytes: so the same
//! programs serve the property tests and the fuzzer, and a stream is often
//! right, which random bytes never are.

use std::sync::{Arc, LazyLock};
use wsbench_client::protocol::template::{Templates, first_byte};
use wsbench_schema::MessageKind;

const LENGTHS: [usize; 8] = [0, 1, 5, 125, 126, 300, 65_535, 65_536];
/// Longer streams prove nothing more.
const STREAM_MAX: usize = 300_000;

static TEMPLATES: LazyLock<Vec<Arc<Templates>>> = LazyLock::new(|| {
    let kinds = [MessageKind::Binary, MessageKind::Text];
    let all = kinds
        .into_iter()
        .flat_map(|kind| LENGTHS.map(|length| (kind, length)));
    all.map(|(kind, length)| Arc::new(Templates::new(kind, length, 1, 42)))
        .collect()
});

/// What is sent to the client, and what the client awaits.
pub struct Case {
    pub templates: Arc<Templates>,
    pub check: bool,
    pub awaited: u32,
    pub bytes: Vec<u8>,
    /// Where in `bytes` each frame begins that was written as one.
    pub frames: Vec<usize>,
    /// Right echoes among them, if nothing else was written but control frames.
    pub echoes: u32,
}

/// Takes bytes of a program; zeros once it is over.
struct Program<'a>(&'a [u8]);

impl Program<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn below(&mut self, bound: usize) -> usize {
        let wide = usize::from(self.byte()) << 8 | usize::from(self.byte());
        (wide * bound) >> 16
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }
}

/// The program's first bytes are the case's settings, each further one an
/// instruction with its operands.
pub fn case(program: &[u8]) -> Case {
    let mut program = Program(program);
    let settings = program.byte();
    let pool = usize::from(settings & 1) * LENGTHS.len() + usize::from(settings >> 5);
    let mut case = Case {
        templates: Arc::clone(&TEMPLATES[pool]),
        check: settings & 2 == 0,
        // Mostly enough for all that is written.
        awaited: if settings & 4 == 0 {
            1000
        } else {
            (settings >> 3).into()
        },
        bytes: Vec::new(),
        frames: Vec::new(),
        echoes: 0,
    };
    while !program.0.is_empty() && case.bytes.len() < STREAM_MAX {
        case.step(&mut program);
    }
    case
}

impl Case {
    fn step(&mut self, program: &mut Program<'_>) {
        match program.byte() % 16 {
            0..=3 => {
                let whole = self.templates.answer(self.next()).to_vec();
                self.frames.push(self.bytes.len());
                self.bytes.extend(whole);
                self.echoes += 1;
            }
            4..=7 => self.fragments(program),
            8 | 9 => self.control(program),
            10 => self.close(program),
            11 => self.odd(program),
            12 => {
                let count = program.byte().into();
                let raw = program.bytes(count);
                self.bytes.extend(raw);
            }
            13 if !self.bytes.is_empty() => {
                let at = program.below(self.bytes.len());
                self.bytes[at] ^= 1 << (program.byte() % 8);
            }
            14 => {
                let left = self.bytes.len() - program.below(self.bytes.len() + 1);
                self.bytes.truncate(left);
            }
            _ => self.wrong(program),
        }
    }

    /// The template that is due.
    fn next(&self) -> u32 {
        self.echoes % self.templates.count()
    }

    fn data(&self) -> u8 {
        first_byte(self.templates.kind()) & 0x0F
    }

    /// A right echo in several frames, with control frames between them.
    fn fragments(&mut self, program: &mut Program<'_>) {
        let payload = self.templates.payload(self.next()).to_vec();
        let pieces = 1 + program.byte() % 4;
        let (mut first, mut at) = (self.data(), 0);
        for piece in 1..=pieces {
            let last = piece == pieces;
            let end = match last {
                true => payload.len(),
                false => at + program.below(payload.len() - at + 1),
            };
            self.frame(first | u8::from(last) << 7, &payload[at..end]);
            (first, at) = (0, end);
            if !last && program.byte().is_multiple_of(4) {
                self.control(program);
            }
        }
        self.echoes += 1;
    }

    /// A ping or a pong.
    fn control(&mut self, program: &mut Program<'_>) {
        let opcode = 9 + program.byte() % 2;
        let count = program.byte() % 126;
        let filler = program.byte();
        self.frame(0x80 | opcode, &vec![filler; count.into()]);
    }

    /// A close frame, right or not.
    fn close(&mut self, program: &mut Program<'_>) {
        let count = program.byte() % 8;
        let body = program.bytes(count.into());
        self.frame(0x88, &body);
    }

    /// Any first byte, any form of the length, masked or not.
    fn odd(&mut self, program: &mut Program<'_>) {
        let first = program.byte();
        let form = program.byte();
        let count = program.below(200);
        let filler = program.byte();
        let mask = form & 0x80;
        self.frames.push(self.bytes.len());
        self.bytes.push(first);
        match form % 4 {
            0 => {
                self.bytes.push(mask | 126);
                self.bytes.extend((count as u16).to_be_bytes());
            }
            1 => {
                self.bytes.push(mask | 127);
                let top = u64::from(program.byte()) << 56;
                self.bytes.extend((count as u64 | top).to_be_bytes());
            }
            _ => self.bytes.push(mask | (count as u8 % 126)),
        }
        if mask != 0 {
            self.bytes.extend([1, 2, 3, 4]);
        }
        let sent = match form % 4 {
            0 | 1 => count,
            _ => count % 126,
        };
        self.bytes.resize(self.bytes.len() + sent, filler);
    }

    /// A whole message that is not the awaited one.
    fn wrong(&mut self, program: &mut Program<'_>) {
        let index = program.below(self.templates.count() as usize) as u32;
        let mut payload = self.templates.payload(index).to_vec();
        let first = match program.byte() % 4 {
            0 => 0x81,
            1 => 0x82,
            _ => 0x80 | self.data(),
        };
        match program.byte() % 4 {
            0 => payload.truncate(program.byte().into()),
            1 => payload.push(program.byte()),
            2 => payload.fill(program.byte()),
            _ => {}
        }
        self.frame(first, &payload);
    }

    fn frame(&mut self, first: u8, payload: &[u8]) {
        self.frames.push(self.bytes.len());
        self.bytes.push(first);
        match payload.len() {
            len @ 0..=125 => self.bytes.push(len as u8),
            len @ 126..=65_535 => {
                self.bytes.push(126);
                self.bytes.extend((len as u16).to_be_bytes());
            }
            len => {
                self.bytes.push(127);
                self.bytes.extend((len as u64).to_be_bytes());
            }
        }
        self.bytes.extend(payload);
    }
}
