//! For each case a server that was made to fail it.

use super::lapse::Lapse;

/// Group and name of a case, and the lapse that it finds.
pub fn made_for() -> Vec<(String, Lapse)> {
    let mut table = Vec::new();
    let mut group = |group: &str, rows: Vec<(String, Lapse)>| {
        let rows = rows.into_iter();
        table.extend(rows.map(|(name, lapse)| (format!("{group}/{name}"), lapse)));
    };
    group("handshake", handshake());
    group("echo", echo());
    group("fragmentation", fragmentation());
    group("control", control());
    group("close", close());
    group("refused", refused());
    table
}

fn named(rows: &[(&str, Lapse)]) -> Vec<(String, Lapse)> {
    let rows = rows.iter();
    rows.map(|(name, lapse)| ((*name).to_owned(), *lapse))
        .collect()
}

fn handshake() -> Vec<(String, Lapse)> {
    named(&[
        ("good", Lapse::BadAccept),
        ("good", Lapse::BadStatus),
        ("request split at every byte", Lapse::WholeRequest),
        ("request one byte a segment", Lapse::WholeRequest),
        ("lower-case header names", Lapse::ExactNames),
        ("mixed-case header names", Lapse::ExactNames),
        ("mixed-case header values", Lapse::ExactValues),
        ("lists in header values", Lapse::NoLists),
        ("extra headers", Lapse::FewHeaders),
        ("cookie of 8 KiB", Lapse::ShortHead),
        ("missing key", Lapse::KeyOptional),
        ("key of other than 16 bytes", Lapse::AnyKey),
        ("missing version", Lapse::VersionOptional),
        ("missing Upgrade", Lapse::UpgradeOptional),
        ("missing Connection", Lapse::ConnectionOptional),
        ("method POST", Lapse::AnyMethod),
        ("HTTP/1.0", Lapse::AnyHttp),
        ("wrong path", Lapse::AnyPath),
        ("wrong version", Lapse::AnyVersion),
        ("wrong version is told the right one", Lapse::VersionUntold),
        ("frame in the request's segment", Lapse::RefusesEarly),
        ("pipelined second request", Lapse::AnswersTwice),
        ("unfinished requests", Lapse::OneAtATime),
    ])
}

fn echo() -> Vec<(String, Lapse)> {
    let mut rows = named(&[
        ("limit of 16 MiB or more", Lapse::Limit(1 << 20)),
        ("multibyte text", Lapse::AsciiOnly),
        ("frame cut in its header", Lapse::WholeHeaders),
        ("one byte a segment", Lapse::WholeHeaders),
        ("many frames in one segment", Lapse::Merged),
        ("many frames in one segment", Lapse::OneFrameARead),
        ("types kept in turn", Lapse::FirstType),
        ("10000 frames without reading", Lapse::Messages(5000)),
        ("10000 frames without reading", Lapse::FlipsAll),
    ]);
    for size in [0, 1, 125, 126, 127, 128, 65_535, 65_536, 1 << 20, 16 << 20] {
        rows.push((format!("text of {size} bytes"), Lapse::Flips(1, size)));
        rows.push((format!("binary of {size} bytes"), Lapse::Flips(2, size)));
    }
    rows
}

fn fragmentation() -> Vec<(String, Lapse)> {
    named(&[
        ("text in 2 fragments", Lapse::Fragments(1)),
        ("binary in 10 fragments", Lapse::Fragments(9)),
        ("binary in 1000 fragments", Lapse::Fragments(999)),
        ("types of messages in fragments", Lapse::BinaryFragments),
        ("empty fragments", Lapse::NoEmptyFragments),
        ("character cut by fragments", Lapse::WholeCharacters),
        ("ping between fragments", Lapse::NoPongWithin),
        ("ping in fragments", Lapse::FragmentedPing),
        ("continuation without a start", Lapse::LoneContinuation),
        (
            "unfinished continuation without a start",
            Lapse::LoneContinuation,
        ),
        ("new message within fragments", Lapse::NewMessage),
        ("new fragments within fragments", Lapse::NewMessage),
    ])
}

fn control() -> Vec<(String, Lapse)> {
    named(&[
        ("empty ping", Lapse::NoPongTo(0)),
        ("ping of 125 bytes", Lapse::NoPongTo(125)),
        ("ping of 125 bytes", Lapse::WrongPong),
        ("ping one byte a segment", Lapse::WholeHeaders),
        ("ping and data in one segment", Lapse::PingTakesRest),
        ("10 pings in one segment", Lapse::FirstPing),
        ("10 pings in one segment", Lapse::WrongPong),
        ("unsolicited pong", Lapse::PongEnds),
        ("ping of 126 bytes", Lapse::LongControl(9)),
        ("pong of 126 bytes", Lapse::LongControl(10)),
    ])
}

fn close() -> Vec<(String, Lapse)> {
    let mut rows = named(&[
        ("no code", Lapse::NoCloseFor(None)),
        ("longest reason", Lapse::ShortReason),
        ("code repeated", Lapse::Always1000),
        ("body of 1 byte", Lapse::RepeatsClose),
        ("reason of invalid UTF-8", Lapse::RepeatsClose),
        ("data after a close frame", Lapse::AnswersAfterClose),
        ("message right before a close frame", Lapse::CloseOvertakes),
        ("close frame of 126 bytes", Lapse::LongControl(8)),
        ("FIN without a close frame", Lapse::IgnoresFin),
        ("FIN within a frame", Lapse::IgnoresFin),
        ("half-close behind a message", Lapse::FinOvertakes),
        (
            "socket freed after the closing handshake",
            Lapse::OpenAfterClose,
        ),
        ("socket freed after a client is gone", Lapse::IgnoresFin),
        ("RST", Lapse::DiesByReset),
    ]);
    for code in [
        1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 4999,
    ] {
        rows.push((format!("code {code}"), Lapse::NoCloseFor(Some(code))));
    }
    rows.push(("code 1000".into(), Lapse::OpenAfterClose));
    for code in [0, 999, 1005, 1006, 1015] {
        rows.push((format!("forbidden code {code}"), Lapse::RepeatsCode(code)));
    }
    for code in [1004, 2999, 5000, 65535] {
        rows.push((format!("unused code {code}"), Lapse::RepeatsCode(code)));
    }
    rows
}

fn refused() -> Vec<(String, Lapse)> {
    let mut rows = named(&[
        ("frame without a mask", Lapse::Unmasked),
        ("length of 5 in 2 bytes", Lapse::LongLength),
        ("length of 5 in 8 bytes", Lapse::LongLength),
        ("length with the highest bit", Lapse::HighBit),
        ("length of 1 TiB", Lapse::Unlimited),
        ("RSV1 without an extension", Lapse::Bits(0x40)),
        ("RSV2 without an extension", Lapse::Bits(0x20)),
        ("RSV3 without an extension", Lapse::Bits(0x10)),
        ("RSV1 in a ping", Lapse::Bits(0x40)),
        ("invalid UTF-8: byte that none has", Lapse::AnyText),
        ("invalid UTF-8: lone continuation byte", Lapse::AnyText),
        ("invalid UTF-8: overlong form", Lapse::AnyText),
        ("invalid UTF-8: surrogate", Lapse::AnyText),
        ("invalid UTF-8: beyond U+10FFFF", Lapse::AnyText),
        ("invalid UTF-8: character cut by the end", Lapse::AnyText),
        (
            "invalid UTF-8: within a later fragment",
            Lapse::AnyTextInFragments,
        ),
        ("invalid UTF-8: across fragments", Lapse::AnyTextInFragments),
        (
            "invalid UTF-8: cut by the last fragment",
            Lapse::AnyTextInFragments,
        ),
        (
            "invalid UTF-8: refused before the message ends",
            Lapse::LateText,
        ),
        ("reason given for a protocol error", Lapse::NoReason),
        ("reason given for invalid UTF-8", Lapse::NoReason),
        ("reason given for a length of 1 TiB", Lapse::NoReason),
    ]);
    for opcode in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
        rows.push((format!("opcode {opcode}"), Lapse::Opcode(opcode)));
    }
    rows
}
