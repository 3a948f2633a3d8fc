//! Plain TCP: whatever comes in place of messages, pieces, the last word or a receipt.

use crate::cut::cut;
use std::sync::Arc;
use wsbench_client::Cause;
use wsbench_client::protocol::stream::Messages;
use wsbench_client::protocol::stream::opening::{self, Mode, Opening};
use wsbench_client::protocol::stream::pieces::Pieces;
use wsbench_client::protocol::stream::ring::Ring;
use wsbench_client::protocol::template::Templates;
use wsbench_client::protocol::{Cursor, Event, Protocol, Welcome};
use wsbench_schema::{Direction, MessageKind};

const LEN: usize = 50;
const AWAITED: u32 = 4;

/// Whole answers, bytes of the next one, and the fault that ended it.
type Verdict = (u32, u32, Option<Cause>);

fn verdict<P: Protocol>(protocol: &P, index: u32, segments: &[&[u8]]) -> Verdict {
    let (mut cursor, mut odd, mut reply) = (Cursor { index, offset: 0 }, None, Vec::new());
    let mut answers = 0;
    for segment in segments {
        let mut taken = 0;
        while taken < segment.len() {
            let rest = &segment[taken..];
            let awaited = AWAITED - answers;
            let (part, event) = protocol.receive(&mut cursor, &mut odd, awaited, rest, &mut reply);
            assert!(part <= rest.len() && reply.is_empty());
            taken += part;
            match event {
                Event::Answer => answers += 1,
                Event::More => assert_eq!(taken, segment.len(), "all was taken"),
                Event::Fault(cause) => return (answers, cursor.offset, Some(cause)),
                Event::Reply => panic!("nothing is replied to"),
            }
            assert!(part > 0, "it stands still");
        }
    }
    (answers, cursor.offset, None)
}

/// The right bytes with some changed, put in or left out, and any behind them.
fn spoilt(right: &[u8], program: &[u8]) -> Vec<u8> {
    let mut bytes = right.to_vec();
    for edit in program.chunks_exact(3) {
        let at = usize::from(edit[1]) % bytes.len().max(1);
        match edit[0] % 4 {
            0 if !bytes.is_empty() => bytes[at] ^= edit[2],
            1 if !bytes.is_empty() => drop(bytes.remove(at)),
            2 => bytes.insert(at, edit[2]),
            _ => bytes.push(edit[2]),
        }
    }
    bytes
}

/// How many of the bytes are the same from the beginning on.
fn same(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Wherever it is cut, the verdict is the same: right until the first byte that is not.
pub fn check(program: &[u8], cuts: &[usize]) {
    let templates = Templates::bare(MessageKind::Binary, LEN, 1, 7);
    let messages = Messages::new(Arc::new(templates), true);
    let ring = Arc::new(Ring::new(LEN as u32));
    let pieces = Pieces::new(Arc::clone(&ring), Direction::Both, AWAITED, 0);
    let all = |protocol: &dyn Fn(u32) -> Vec<u8>| (0..AWAITED).flat_map(protocol).collect();
    let of_messages: Vec<u8> = all(&|index| messages.outgoing(index, 1).to_vec());
    let of_pieces: Vec<u8> = all(&|index| pieces.outgoing(index, 1).to_vec());
    let last_word = pieces.outgoing(Pieces::LAST_WORD, 1).to_vec();

    let came = spoilt(&of_messages, program);
    let (answers, _, cause) = judged(&messages, 0, &came, cuts);
    let right = same(&came, &of_messages);
    assert_eq!(answers as usize, right / LEN);
    assert_eq!(cause.is_some(), right < came.len());

    let came = spoilt(&of_pieces, program);
    let (answers, offset, cause) = judged(&pieces, 0, &came, cuts);
    let right = same(&came, &of_pieces);
    assert_eq!(
        (answers as usize, offset as usize),
        (right / LEN, right % LEN)
    );
    assert_eq!(cause.is_some(), right < came.len());

    for index in [Pieces::LAST_WORD, Pieces::RECEIPT, Pieces::END] {
        let came = spoilt(&last_word, program);
        let (answers, _, cause) = judged(&pieces, index, &came, cuts);
        assert!(answers <= 1, "each is said once");
        assert!(cause.is_none_or(|cause| cause == Cause::Unexpected));
        assert!(index != Pieces::END || (answers, cause.is_some()) == (0, !came.is_empty()));
    }

    let opening = Opening {
        mode: Mode::Sink,
        piece_bytes: 1,
        pieces: 1,
        first: 0,
    };
    let sent = opening.to_bytes(9);
    let came = spoilt(&sent, program);
    let whole = opening::judge(&sent, &came);
    let is_right = same(&came, &sent) == sent.len();
    assert_eq!(whole == Welcome::Accepted(sent.len()), is_right);
    if let Ok(came) = <[u8; Opening::BYTES]>::try_from(came) {
        let read = Opening::parse(&came);
        assert!(read.is_none_or(|it| it.total_bytes() > 0 || it.mode == Mode::Echo));
    }
}

fn judged<P: Protocol>(protocol: &P, index: u32, came: &[u8], cuts: &[usize]) -> Verdict {
    let whole = verdict(protocol, index, &[came]);
    let single: Vec<&[u8]> = came.chunks(1).collect();
    for segments in [single, cut(came, cuts)] {
        let (answers, offset, cause) = verdict(protocol, index, &segments);
        assert_eq!((answers, cause), (whole.0, whole.2));
        // Where a message or a word is wrong, nobody asks.
        assert!(offset == whole.1 || cause.is_some());
    }
    whole
}
